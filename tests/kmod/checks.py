# SPDX-License-Identifier: BSD-3-Clause
"""What each tool says of zc.ko, built for a kernel, and of its source: lists of complaints."""
import contextlib
import os
import pathlib
import re
import shutil
import tempfile

from testbed.outcome import Skip
from tests.kmod.debian import (APT, CACHE, KERNELS, by_version, fetched, last_lines, run,
                               say, sections)

TOP = pathlib.Path(__file__).resolve().parents[2]
RMAP = CACHE / "rmap"            # mm/rmap.c of each series, by its version

# typeof_unqual: sparse before 0.6.5 does not know it.
SPARSE = ["KBUILD_CHECKSRC=2", "CF=-D__typeof_unqual__=__typeof__"]

# Said about the machine, not about the source.
ENVIRONMENT = re.compile(r"compiler differs from the one used|pahole version differs|"
                         r"The kernel was built (with|by):|You are using:|Skipping BTF generation|"
                         r"but sparse is not available|checker-valid\.sh|jobserver")
COMPLAINT = re.compile(r"\b(warning|error|Error \d+|undefined|fatal)\b", re.IGNORECASE)

# checkpatch speaks to patches for the kernel's own tree. Each exception says why.
ALLOWED = {
    "kmod/zc_compat.h": {
        "LINUX_VERSION_CODE": "one source for many kernels",
        "CONSTANT_COMPARISON": "takes KERNEL_VERSION() for a variable",
    },
    "Kbuild": {"EMBEDDED_FILENAME": "the line that includes kmod/Kbuild"},
}


def project_version():
    return re.search(r"^project\(\w+ VERSION ([\d.]+)", (TOP / "CMakeLists.txt").read_text(),
                     re.M)[1]


def copy_source(source, into):
    shutil.copy(source / "Kbuild", into)
    shutil.copytree(source / "kmod", into / "kmod", ignore=shutil.ignore_patterns(
        "*.o", "*.ko", "*.mod", "*.mod.c", ".*.cmd", "modules.order", "Module.symvers"))


def complaints(result, tree):
    """What a tool said, paths from the top; at least one line if it failed."""
    # Within the Debian 13 the copy is at a shorter path.
    found = [line.replace(f"{tree}/", "").replace(f"/tmp/{tree.name}/", "")
             for line in result.stdout.splitlines()
             if COMPLAINT.search(line) and not ENVIRONMENT.search(line)]
    telling = [line for line in found if not line.startswith("make")]
    found = list(dict.fromkeys(telling or found))
    return found or ([last_lines(result.stdout)] if result.returncode else [])


def check_build(kernel, tree):
    found = complaints(kernel.make(tree, ["W=1"]), tree)
    if not found and not (tree / "zc.ko").exists():
        found = ["make succeeded, and there is no zc.ko"]
    return found


def check_sparse(kernel, tree):
    result = kernel.make(tree, SPARSE)
    if "CHECK" not in result.stdout:
        raise Skip("sparse did not run: " + last_lines(result.stdout, 1))
    found = []
    for line in complaints(result, tree):
        match = re.match(r"(\S+?):(\d+):\d+: (warning|error): (.*)", line)
        if match and match[1].startswith("kmod/"):
            # MODULE_*() of 7.2 and later calls __builtin_strlen() in a constant,
            # which sparse before 0.6.5 cannot compute.
            text = (tree / match[1]).read_text().splitlines()[int(match[2]) - 1]
            if match[4] == "bad constant expression" and text.startswith("MODULE_"):
                continue
            found.append(line)
        elif not match or match[3] == "error":
            found.append(line)      # it did not get through the kernel's headers
    return found


def check_modinfo(kernel, tree):
    info = {}
    for entry in sections(tree / "zc.ko")[".modinfo"].decode().split("\0"):
        key, _, value = entry.partition("=")
        info.setdefault(key, value)
    expected = {"name": "zc", "license": "GPL", "version": project_version()}
    found = [f"{key} is {info.get(key)!r}, not {value!r}"
             for key, value in expected.items() if info.get(key) != value]
    found += [f"no {key}" for key in ("author", "description", "srcversion")
              if not info.get(key)]
    if not info.get("vermagic", "").startswith(kernel.release + " "):
        found.append(f"vermagic {info.get('vermagic')!r} is not of {kernel.release}")
    return found


def check_symbols(kernel, tree):
    """What the module asks kprobes for, at load time."""
    asked = set()
    for file in (tree / "kmod").glob("*.c"):
        asked |= set(re.findall(r'zc_symbol\("(\w+)"\)', file.read_text()))
    if not asked:
        return ['no zc_symbol("...") in the source: this check must follow it']
    if not kernel.vmlinux.exists():
        raise Skip("no vmlinux to look them up in")
    module = b"".join(content for name, content in sections(tree / "zc.ko").items()
                      if name.startswith(".rodata"))
    types = sections(kernel.vmlinux).get(".BTF")
    if types is None:
        raise Skip("its vmlinux has no type information")
    needed = {name for name in asked if f"{name}\0".encode() in module}
    return [f"the kernel has no function {name}" for name in sorted(needed)
            if f"\0{name}\0".encode() not in types]


def check_depmod(kernel, tree):
    """What depmod says of it where it is installed."""
    with tempfile.TemporaryDirectory(prefix="zc-depmod-") as folder:
        into = pathlib.Path(folder) / "lib/modules" / kernel.release
        (into / "updates").mkdir(parents=True)
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            (into / name).touch()
        shutil.copy(tree / "zc.ko", into / "updates")
        result = run(["/sbin/depmod", "-b", folder, kernel.release])
        found = [line for line in result.stdout.splitlines() if re.search(r"\bzc\b", line)]
        return found or ([last_lines(result.stdout)] if result.returncode else [])


# What the module calls by an address it has looked up, and how it could be declared instead.
OTHERWISE = {"flush_tlb_mm_range": ("unsigned int stride_shift", "unsigned long stride_shift"),
             "__put_anon_vma": ("put_nothing(struct anon_vma *anon_vma)",
                                "put_nothing(const struct anon_vma *anon_vma)")}


def check_prototypes(kernel, tree):
    """Each function that is looked up is called as the kernel declares it, or it does not build."""
    module = b"".join(content for name, content in sections(tree / "zc.ko").items()
                      if name.startswith(".rodata"))
    asked = {name for file in (tree / "kmod").glob("*.c")
             for name in re.findall(r'zc_symbol\("(\w+)"\)', file.read_text())}
    found = [f"no other declaration of {name} is tried: this check must follow the source"
             for name in sorted(asked - set(OTHERWISE))]
    for name in sorted(asked & set(OTHERWISE)):
        if f"{name}\0".encode() not in module:
            continue    # not of this kernel
        with kernel.workplace() as other:
            copy_source(tree, other)
            changed = 0
            for file in (other / "kmod").glob("*.[ch]"):
                text = file.read_text()
                changed += text.count(OTHERWISE[name][0])
                file.write_text(text.replace(*OTHERWISE[name]))
            result = kernel.make(other, [])
            if not changed:
                found.append(f"{name}: {OTHERWISE[name][0]!r} is not in the source")
            elif not result.returncode:
                found.append(f"builds although {name} is declared otherwise")
            elif "static assertion failed" not in result.stdout:
                found.append(f"{name} declared otherwise: {last_lines(result.stdout)}")
    return found


@contextlib.contextmanager
def installed_source(top):
    """What `make install` puts below PREFIX/src, by CMake's own rules."""
    with tempfile.TemporaryDirectory(prefix="zc-install-") as folder:
        folder = pathlib.Path(folder)
        for command in (["cmake", "-S", top, "-B", folder / "build", "-G", "Ninja",
                         "-DZC_TESTS=OFF", "-DZC_BENCH=OFF"],
                        ["cmake", "--install", folder / "build", "--component", "kmod",
                         "--prefix", folder / "prefix"]):
            result = run(command)
            if result.returncode:
                raise Skip(f"cmake: {last_lines(result.stdout)}")
        yield folder


def check_dkms(kernel, top):
    if not shutil.which("dkms"):
        raise Skip("dkms is not installed")
    if os.geteuid():
        raise Skip("dkms needs root")
    version = project_version()
    with installed_source(top) as folder:
        source = folder / f"prefix/src/zc-{version}"
        if not (source / "dkms.conf").exists():
            return [f"{source.relative_to(folder)}/dkms.conf is not installed"]
        (folder / "dkms").mkdir()
        result = run(["dkms", "build", "zc/" + version, "-k", kernel.release,
                      "--kernelsourcedir", kernel.headers, "--sourcetree", folder / "prefix/src",
                      "--dkmstree", folder / "dkms"])
        built = list((folder / "dkms/zc" / version).glob(f"{kernel.release}/*/module/zc.ko*"))
        if result.returncode or not built:
            log = folder / f"dkms/zc/{version}/build/make.log"
            return [last_lines(log.read_text() if log.exists() else result.stdout, 6)]
    return []


def checkpatch():
    """Debian has it in its source package only."""
    folder = CACHE / "checkpatch"
    if not (folder / "checkpatch.pl").exists():
        names = ["checkpatch.pl", "spelling.txt", "const_structs.checkpatch"]
        folder.mkdir(parents=True, exist_ok=True)
        unpacked = by_version(p.parent.name for p in KERNELS.glob("source-*/.complete"))
        packed = by_version(map(str, pathlib.Path("/usr/src").glob("linux-source-*.tar.xz")))
        if unpacked:
            for name in names:
                shutil.copy(KERNELS / unpacked[-1] / "scripts" / name, folder)
        elif packed:
            top = pathlib.Path(packed[-1]).name.removesuffix(".tar.xz")
            result = run(["tar", "-xf", packed[-1], "-C", folder, "--strip-components=2",
                          *(f"{top}/scripts/{name}" for name in names)])
            if result.returncode:
                raise Skip(f"tar: {last_lines(result.stdout)}")
        else:
            raise Skip("no source of a kernel: install linux-source-6.1")
    return folder / "checkpatch.pl"


# ---- what the module takes from the kernel's source ----

def keep_rmap(archive, version):
    """Takes mm/rmap.c out of a tar file of the kernel's source."""
    RMAP.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RMAP) as folder:
        result = run(["tar", "-xf", archive, "-C", folder, "--strip-components=1",
                      "--wildcards", "--occurrence=1", "*/mm/rmap.c"])
        if result.returncode:
            raise Skip(f"tar: {last_lines(result.stdout, 1)}")
        (pathlib.Path(folder) / "mm/rmap.c").rename(RMAP / f"{version}.c")
    return RMAP / f"{version}.c"


def fetch_rmap(series, trixie):
    """From the package of that series' source, or from the source package of one of its kernels."""
    reason = Skip(f"the mirror has no source of {series}")
    with tempfile.TemporaryDirectory(dir=APT) as folder:
        folder = pathlib.Path(folder)
        package = f"linux-source-{series}"
        if package in trixie.packages():
            say(f"fetching {package}")
            trixie.unpack([package], folder)
            return keep_rmap(folder / f"usr/src/{package}.tar.xz",
                             trixie.version(package).partition("-")[0])
        for version in trixie.source_versions(series):
            say(f"fetching the source of {version}")
            try:
                archive = trixie.upstream_source("linux", version, folder)
                return keep_rmap(archive, version.partition("-")[0])
            except Skip as one:
                reason = one
    raise reason


def rmap_source(series, trixie):
    """The newest mm/rmap.c of a series that can be had: its path and version. TRIXIE: makes one."""
    kept = by_version(p.stem for p in RMAP.glob(f"{series}.*.c"))
    if kept:
        return RMAP / f"{kept[-1]}.c", kept[-1]
    unpacked = [*KERNELS.glob(f"source-{series}.*/mm/rmap.c"),
                *KERNELS.glob(f"{series}.*/headers/mm/rmap.c")]
    if unpacked:
        folder = unpacked[-1].relative_to(KERNELS).parts[0].removeprefix("source-")
        return unpacked[-1], re.match(r"[\d.]+", folder)[0]
    packed = pathlib.Path(f"/usr/src/linux-source-{series}.tar.xz")
    if packed.exists():
        # Which of the series it is, only its package knows.
        path = keep_rmap(packed, f"{series}.0")
    elif trixie().offline:
        raise Skip(f"no source of {series} in the cache")
    else:
        path = fetch_rmap(series, trixie())
    return path, path.stem


def check_walks(source, version, tree):
    """
    That a walk of the reverse mapping holds the folio lock, and that it looks again which
    anon_vma the folio has, in those kernels of which the module believes it.
    """
    def body(name):
        found = re.search(rf"^[a-z][^\n;#]*\b{name}\([^;{{]*\n\{{.*?^\}}", text, re.M | re.S)
        return found[0] if found else ""

    text = source.read_text()
    walk, referenced, look = map(body, ("rmap_walk_anon", "folio_referenced",
                                        "folio_lock_anon_vma_read"))
    locked = "(!folio_test_locked(folio), folio)" in walk.partition("if (locked)")[0]
    if not walk or not look or locked == ("!is_locked && (!folio_test_anon(folio)" in referenced):
        return ["mm/rmap.c is not as this check knows it: it must follow"]
    # With the folio locked there is no need to look again.
    true = {"ZC_RMAP_WALKS_UNLOCKED": not locked,
            "ZC_RMAP_TRUSTS_RCU": not locked and "goto retry" not in look}
    header = (tree / "kmod/zc_compat.h").read_text()
    found = []
    for name, is_so in true.items():
        until = re.search(rf"^#define {name} \(LINUX_VERSION_CODE < KERNEL_VERSION"
                          r"\((\d+), (\d+), (\d+)\)\)$", header, re.M)
        if not until:
            found.append(f"no {name} in kmod/zc_compat.h: this check must follow it")
        elif (tuple(map(int, version.split("."))) < tuple(map(int, until.groups()))) != is_so:
            found.append(f"{name} is {not is_so} for it, and should be {is_so}")
    return found


def check_checkpatch(tree):
    script = checkpatch()
    # Where it would be in the kernel's tree, for checkpatch knows that folder.
    public = tree / "include/uapi/linux"
    public.mkdir(parents=True)
    shutil.copy(tree / "kmod/uapi/zc_ioctl.h", public)
    files = ["Kbuild", "kmod/Kbuild", "include/uapi/linux/zc_ioctl.h",
             *sorted(str(p.relative_to(tree)) for p in tree.glob("kmod/*.[ch]"))]
    result = run(["perl", script, "--strict", "--no-tree", "--no-summary", "--terse",
                  "--show-types", "-f", *files], cwd=tree)
    found = []
    for line in result.stdout.splitlines():
        match = re.match(r"([^:]+):\d+: (?:ERROR|WARNING|CHECK):(\w+):", line)
        if match and match[2] in ALLOWED.get(match[1], {}):
            continue
        found.append(line)
    return found


def check_kernel_doc(tree):
    folder = fetched("6.12") or fetched("6.1")
    if not folder:
        raise Skip("no kernel-doc: needs the headers of 6.1 or 6.12")
    script = folder / "headers/scripts/kernel-doc"
    files = [*tree.glob("kmod/*.[ch]"), *tree.glob("kmod/uapi/*.h")]
    result = run(["perl", script, "-none", *files])
    return complaints(result, tree)


def check_header(tree):
    """The interface header alone, as C and C++ see it, 64 and 32 bits."""
    sizes = {"zc_range": 40, "zc_exchange": 40, "zc_features": 24, "zc_uring_cmd": 16}
    program = tree / "alone.c"
    program.write_text('#include "zc_ioctl.h"\n#include "zc_ioctl.h"\n#ifndef __cplusplus\n'
                       '#define static_assert _Static_assert\n#endif\n' + "".join(
                           f'static_assert(sizeof(struct {name}) == {size}, "{name}");\n'
                           for name, size in sizes.items()) +
                       'static_assert(ZC_IOC_EXCHANGE != ZC_IOC_FEATURES, "commands");\n')
    found = []
    for language in (["-xc", "-std=c11"], ["-xc++", "-std=c++17"]):
        for bits in ("-m64", "-m32"):
            result = run(["gcc", *language, bits, "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                          "-fsyntax-only", "-I", tree / "kmod/uapi",
                          "-I/usr/include/x86_64-linux-gnu", program])
            found += complaints(result, tree)
    return found
