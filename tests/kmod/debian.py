# SPDX-License-Identifier: BSD-3-Clause
"""The kernels that zc.ko is built for, as Debian has them, and what builds modules for them.

  6.1, 6.12    the newest of Debian 12 (tests/kmod/kernels fetches them)
  6.12-trixie  Debian 13's own
  6.18         the newest of that series in Debian 13's backports
  newest       the newest of Debian 13's backports

6.12-trixie and newest need a newer compiler and C library than Debian 12 has: they are
built in a Debian 13 that debootstrap puts into the cache (550 MB, half a minute
to four; needs root). Of 6.18 Debian has no headers any more: they are made from the
kernel's source and the configuration in its image, by this machine's compiler, as far
as the mirror still has both. What cannot be had is a Skip.
"""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from testbed.outcome import Skip

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("ZC_CACHE_DIR") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "zc")
KERNELS = CACHE / "kernels"
CHROOT = CACHE / "trixie"
APT = CACHE / "trixie-apt"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
TRIXIE = {"6.12-trixie": r"6\.12\.", "newest": r"\d"}     # by the names of their packages
MADE = {"6.18": r"6\.18\."}      # headers made from source and image
NAMES = ["6.1", "6.12", "6.12-trixie", *MADE, "newest"]
IN_CHROOT = "gcc-14,make,sparse,kmod,libelf1t64,perl-base"

# Debian builds modules without vmlinux at hand.
MAKE = ["CONFIG_DEBUG_INFO_BTF_MODULES=", f"-j{os.cpu_count()}", "modules"]


def say(text):
    print(f"kernels: {text}", file=sys.stderr, flush=True)


def run(command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          **options)


def last_lines(text, count=3):
    return " / ".join(text.strip().splitlines()[-count:])


@contextlib.contextmanager
def locked(name):
    try:
        file = open(CACHE / f".{name}-lock", "w", encoding="ascii")
    except PermissionError as error:
        raise Skip(f"not our cache: {error}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def by_version(names):
    return sorted(names, key=lambda n: [int(p) if p.isdigit() else p
                                        for p in re.split(r"(\d+)", n)])


# make -C headers M=DIR modules, as for every other kernel. objtool looks into /proc.
INSIDE = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
HEADERS = """\
# Written by tests/kmod/debian.py: builds within the Debian 13 of the cache.
modules:
	work=$$(mktemp -d {chroot}/tmp/zc-build-XXXXXX) && chmod 755 $$work && \\
	cp -R $(M)/. $$work && unshare --mount --pid --fork sh -c '{inside}' {chroot} \\
	    $(MAKE) -C /usr/src/linux-headers-{release} $(MAKEOVERRIDES) \\
	    M=/tmp/$${{work##*/}} modules; \\
	status=$$?; cp $$work/*.ko $(M) || status=1; rm -rf $$work; exit $$status
"""

# ---- kernels of Debian 12 ----

def fetched(series):
    """The newest one in the cache, complete."""
    found = [p.parent.name for p in KERNELS.glob(f"{series}.*+deb12-amd64/.complete")]
    found += [p.parent.name for p in KERNELS.glob(f"{series}.*-[0-9]*-amd64/.complete")]
    return KERNELS / by_version(found)[-1] if found else None


class HostKernel:
    """Built on this machine, against unpacked headers."""

    def __init__(self, name, offline):
        if offline:
            folder = fetched(name)
            if not folder:
                raise Skip("not in the cache")
        else:
            result = subprocess.run([HERE / "kernels", name], stdout=subprocess.PIPE, text=True,
                                    check=False)
            if result.returncode:
                raise Skip("tests/kmod/kernels cannot fetch it")
            folder = pathlib.Path(result.stdout.split()[-1])
        self.name, self.release, self.folder = name, folder.name, folder
        self.headers = folder / "headers"
        self.vmlinux = folder / "vmlinux"

    @contextlib.contextmanager
    def workplace(self):
        with tempfile.TemporaryDirectory(prefix="zc-build-") as folder:
            yield pathlib.Path(folder)

    def make(self, tree, arguments):
        return run(["make", "-C", self.headers, f"M={tree}", *arguments, *MAKE])


# ---- kernels of Debian 13, built within it ----

class Trixie:
    """A Debian 13 in the cache, and an apt that knows its packages."""

    def __init__(self, offline):
        self.offline = offline
        with locked("trixie"):
            if not offline:
                self.update()

    def have_chroot(self):
        with locked("trixie"):
            if not (CHROOT / "usr/bin/gcc-14").exists():
                self.bootstrap()

    @staticmethod
    def mirror():
        for file in sorted(pathlib.Path("/etc/apt").glob("sources.list.d/*.sources")):
            for entry in re.split(r"\n\s*\n", file.read_text()):
                uri = re.search(r"^URIs:\s*(\S+)", entry, re.M)
                if uri and re.search(r"^Components:.*\bmain\b", entry, re.M) \
                        and "security" not in entry.split("Suites:")[-1].split("\n")[0]:
                    return uri[1].rstrip("/")
        for file in [pathlib.Path("/etc/apt/sources.list")]:
            for line in file.read_text().splitlines() if file.exists() else []:
                match = re.match(r"deb\s+(?:\[.*?\]\s*)?(\S+)\s+(\S+)\s.*\bmain\b", line)
                if match and "security" not in match[2]:
                    return match[1].rstrip("/")
        raise Skip("no Debian mirror in /etc/apt")

    def bootstrap(self):
        if self.offline:
            raise Skip("no Debian 13 in the cache")
        if os.geteuid():
            raise Skip("debootstrap needs root")
        if not shutil.which("debootstrap"):
            raise Skip("debootstrap is not installed")
        say("putting a Debian 13 into the cache")
        partial = CHROOT.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        result = run(["debootstrap", "--variant=minbase", f"--include={IN_CHROOT}",
                      "trixie", partial, self.mirror()])
        if result.returncode:
            shutil.rmtree(partial, ignore_errors=True)
            raise Skip(f"debootstrap: {last_lines(result.stdout)}")
        shutil.rmtree(partial / "var/cache/apt/archives", ignore_errors=True)
        shutil.rmtree(CHROOT, ignore_errors=True)
        partial.rename(CHROOT)

    def apt(self, *command, **options):
        return run(command, env={**os.environ, "APT_CONFIG": str(APT / "apt.conf")}, **options)

    def update(self):
        (APT / "lists/partial").mkdir(parents=True, exist_ok=True)
        (APT / "archives/partial").mkdir(parents=True, exist_ok=True)
        (APT / "status").touch()
        (APT / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in {
            "Dir::Etc::sourcelist": APT / "sources.list", "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": APT / "lists", "Dir::State::status": APT / "status",
            "Dir::Cache": APT, "APT::Sandbox::User": "root",
            "APT::Default-Release": "trixie-backports"}.items()))
        mirror = self.mirror()
        (APT / "sources.list").write_text("".join(
            f"{kind} [signed-by={KEYS}] {mirror} {suite} main\n" for kind, suite in
            (("deb", "trixie"), ("deb", "trixie-backports"), ("deb-src", "trixie-backports"))))
        result = self.apt("apt-get", "-q", "update")
        if result.returncode or re.search(r"^(W|E):", result.stdout, re.M):
            if not list((APT / "lists").glob("*trixie-backports*Packages*")):
                raise Skip(f"no list of packages: {last_lines(result.stdout)}")
            say("the lists of packages are not fresh")

    def packages(self):
        return set(self.apt("apt-cache", "pkgnames", "linux-").stdout.split())

    def depends(self, package):
        shown = self.apt("apt-cache", "show", "--no-all-versions", package).stdout
        line = re.search(r"^Depends: (.*)", shown, re.M)
        return re.findall(r"[a-z][^ ,|(]*", line[1]) if line else []

    def newest(self, pattern):
        """The newest release whose headers are there with all they need."""
        def complete(release):
            names = [f"linux-headers-{release}", f"linux-image-{release}"]
            for name in names:
                needed = [d for d in self.depends(name) if d.startswith(
                    ("linux-headers-", "linux-kbuild-", "linux-binary-", "linux-modules-"))]
                if name not in known or not set(needed) <= known:
                    return False
            return True

        known = self.packages()
        releases = by_version(re.fullmatch(r"linux-headers-(.*)", n)[1] for n in known
                              if re.fullmatch(rf"linux-headers-{pattern}[\d.]*\+deb13-amd64", n))
        return next((r for r in reversed(releases) if complete(r)), None)

    def unpack(self, packages, into):
        with tempfile.TemporaryDirectory(dir=APT) as folder:
            result = self.apt("apt-get", "-q", "download", *packages, cwd=folder)
            if result.returncode:
                raise Skip(f"apt-get download: {last_lines(result.stdout)}")
            for deb in pathlib.Path(folder).glob("*.deb"):
                result = run(["dpkg", "-x", deb, into])
                if result.returncode:
                    raise Skip(f"dpkg -x: {last_lines(result.stdout)}")

    def version(self, package):
        """Of the newest one, as its source package has it."""
        shown = self.apt("apt-cache", "show", "--no-all-versions", package).stdout
        return re.search(r"^Version: (.*)", shown, re.M)[1]

    def upstream_source(self, package, version, into):
        """Fetches the tar file that a source package is made from, and nothing of Debian's."""
        shown = self.apt("apt-get", "-q", "source", "--print-uris", f"{package}={version}").stdout
        found = re.search(r"^'(\S+)' (\S+\.orig\.tar\.xz) \d+ (SHA256:\w+)", shown, re.M)
        if not found:
            raise Skip(f"the mirror lists no source of {package} {version}")
        file = into / found[2]
        result = self.apt("/usr/lib/apt/apt-helper", "download-file", found[1], str(file), found[3])
        if result.returncode:
            raise Skip(f"{found[2]}: {last_lines(result.stdout, 1)}")
        return file

    def source_versions(self, series):
        """Of the kernel's source package, the newest first."""
        listed = self.apt("apt-cache", "madison", "linux").stdout
        return reversed(by_version(set(re.findall(rf"\|\s*({series}\.\S+)\s*\|.*Sources", listed))))

    def enter(self, command):
        user = ["--user", "--map-root-user"] if os.geteuid() else []
        return run(["unshare", *user, "--mount", "--pid", "--fork", "sh", "-c", INSIDE, CHROOT,
                    *command])


class TrixieKernel:
    """Built within Debian 13."""

    def __init__(self, name, trixie):
        self.name, self.trixie = name, trixie
        trixie.have_chroot()
        chosen = APT / f"chosen-{name}"
        if trixie.offline:
            if not chosen.exists():
                raise Skip("not in the cache")
            self.release = chosen.read_text().strip()
        else:
            self.release = trixie.newest(TRIXIE[name])
            if not self.release:
                raise Skip("the mirror has no complete set of headers")
            self.fetch_headers()
            chosen.write_text(self.release + "\n")
        self.folder = KERNELS / self.release
        self.headers = pathlib.Path(f"/usr/src/linux-headers-{self.release}")
        self.vmlinux = CHROOT / f"usr/src/linux-headers-{self.release}/vmlinux"

    def fetch_headers(self):
        package = f"linux-headers-{self.release}"
        if (CHROOT / f"usr/src/.{package}").exists():
            return
        if not os.access(CHROOT / "usr/src", os.W_OK):
            raise Skip("unpacking its headers needs root")
        say(f"fetching {package}")
        needed = [d for d in self.trixie.depends(package)
                  if d.startswith(("linux-headers-", "linux-kbuild-"))]
        self.trixie.unpack([package, *needed], CHROOT)
        (CHROOT / f"usr/src/.{package}").touch()

    def fetch_image(self):
        """In the layout of common.sh."""
        if not (self.folder / ".complete").exists():
            self.unpack_image()
        # What each of its modules depends on: as the package's installation would have it.
        if not (self.folder / f"root/lib/modules/{self.release}/modules.dep").exists():
            done = run(["/sbin/depmod", "-b", self.folder / "root", self.release])
            if done.returncode:
                raise Skip(f"depmod: {last_lines(done.stdout, 1)}")

    def unpack_image(self):
        if self.trixie.offline:
            raise Skip("its image is not in the cache")
        image = f"linux-image-{self.release}"
        say(f"fetching {image}")
        parts = [d for d in self.trixie.depends(image)
                 if re.match(r"linux-(binary|modules|base)-\d", d)]
        partial = KERNELS / f".partial-{self.release}"
        shutil.rmtree(partial, ignore_errors=True)
        root = partial / "root"
        root.mkdir(parents=True)
        self.trixie.unpack([image, *parts], root)
        if not (root / "lib").exists():
            (root / "lib").symlink_to("usr/lib")
        boot = root / f"boot/vmlinuz-{self.release}"
        if not boot.exists():
            boot.parent.mkdir(exist_ok=True)
            boot.symlink_to(f"../lib/modules/{self.release}/vmlinuz")
        (partial / "vmlinux").write_bytes(unpacked_kernel(boot))
        (partial / "modules").symlink_to(f"root/lib/modules/{self.release}/kernel")
        (partial / "headers").mkdir()
        (partial / "headers/Makefile").write_text(HEADERS.format(
            chroot=CHROOT, release=self.release, inside=INSIDE.replace("$", "$$")))
        (partial / ".complete").touch()
        if self.folder.exists():
            shutil.rmtree(self.folder)
        partial.rename(self.folder)

    @contextlib.contextmanager
    def workplace(self):
        with tempfile.TemporaryDirectory(prefix="zc-build-", dir=CHROOT / "tmp") as folder:
            os.chmod(folder, 0o755)
            yield pathlib.Path(folder)

    def make(self, tree, arguments):
        inside = pathlib.Path("/") / tree.relative_to(CHROOT)
        result = self.trixie.enter(["make", "-C", self.headers, f"M={inside}", *arguments, *MAKE])
        if re.search(r"^(unshare|mount|chroot):", result.stdout, re.M):
            raise Skip(f"cannot enter the Debian 13: {last_lines(result.stdout, 1)}")
        return result


# ---- kernels whose headers are gone ----

# Of the source, what headers and their tools are made from.
NOT_NEEDED = ["*/drivers/*.[ch]", "*/sound/*.[ch]", "*/fs/*/*.[ch]", "*/net/*/*.[ch]",
              "*/tools/testing/*", "*/Documentation/*/*", "*.dts", "*.dtsi"]


class MadeKernel(HostKernel):
    """Built on this machine, against headers made from the source for the kernel of an image."""

    def __init__(self, name, trixie):  # pylint: disable=super-init-not-called
        self.name, self.trixie = name, trixie
        self.folder = self.complete() if trixie.offline else self.fetch()
        self.release = self.folder.name
        self.headers = self.folder / "headers"
        self.vmlinux = self.folder / "vmlinux"

    def complete(self):
        found = [p.parent.name for p in KERNELS.glob(f"{self.name}.*+deb13-amd64/.complete")]
        if not found:
            raise Skip("not in the cache")
        return KERNELS / by_version(found)[-1]

    def fetch(self):
        """The newest one of which both the image and the source are to be had."""
        pattern = rf"linux-image-({MADE[self.name]}[\d.]*\+deb13-amd64)"
        releases = by_version(found[1] for found in map(
            lambda n: re.fullmatch(pattern, n), self.trixie.packages()) if found)
        reason = Skip("the mirror lists no image")
        with locked(f"made-{self.name}"):
            for release in reversed(releases):
                if (KERNELS / release / ".complete").exists():
                    return KERNELS / release
                try:
                    return self.make_one(release)
                except Skip as one:
                    reason = one
            with contextlib.suppress(Skip):
                return self.complete()
        raise reason

    def make_one(self, release):
        image = f"linux-image-{release}"
        say(f"fetching {image} and its source")
        partial = KERNELS / f".partial-{release}"
        shutil.rmtree(partial, ignore_errors=True)
        root, headers = partial / "root", partial / "headers"
        root.mkdir(parents=True)
        headers.mkdir()
        self.trixie.unpack([image], root)
        if not (root / "lib").exists():
            (root / "lib").symlink_to("usr/lib")
        tar = self.trixie.upstream_source("linux", self.trixie.version(image), partial)
        result = run(["tar", "-xf", tar, "-C", headers, "--strip-components=1",
                      *(f"--exclude={name}" for name in NOT_NEEDED)])
        if result.returncode:
            raise Skip(f"tar: {last_lines(result.stdout, 1)}")
        tar.unlink()
        (partial / "vmlinux").write_bytes(unpacked_kernel(root / f"boot/vmlinuz-{release}"))
        self.prepare(headers, root / f"boot/config-{release}", release)
        # Debian's own patches to the source do not change what is exported; this is what is.
        (headers / "Module.symvers").write_text("".join(
            f"0x00000000\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL\t\n"
            for name in sorted(exported(partial / "vmlinux"))))
        (partial / "modules").symlink_to(f"root/lib/modules/{release}/kernel")
        result = run(["/sbin/depmod", "-b", root, release])
        if result.returncode:
            raise Skip(f"depmod: {last_lines(result.stdout, 1)}")
        shutil.rmtree(KERNELS / release, ignore_errors=True)
        partial.rename(KERNELS / release)
        (KERNELS / release / ".complete").touch()
        return KERNELS / release

    @staticmethod
    def prepare(headers, config, release):
        """What a module is built against: configured as the image is, but for the compiler."""
        shutil.copy(config, headers / ".config")
        # Whether there is type information changes structures; it is never asked to make any.
        number = re.search(r"^CONFIG_PAHOLE_VERSION=(\d)(\d+)", config.read_text(), re.M)
        pahole = headers / "pahole-version"
        pahole.write_text(f"#!/bin/sh\necho v{number[1]}.{number[2]}\n" if number else "")
        pahole.chmod(0o755)
        local = release[len(re.match(r"[\d.]+", release)[0]):]
        for goal in ("olddefconfig", "modules_prepare", "kernelrelease"):
            result = run(["make", "-s", "-C", headers, f"PAHOLE={pahole}", f"LOCALVERSION={local}",
                          f"-j{os.cpu_count()}", goal], stdin=subprocess.DEVNULL)
            if result.returncode:
                raise Skip(f"make {goal}: {last_lines(result.stdout)}")
        if result.stdout.split()[-1] != release:
            raise Skip(f"the source is of {last_lines(result.stdout, 1)}")


# ---- what files say ----

def unpacked_kernel(path):
    """The ELF file within a boot file (Documentation/arch/x86/boot.rst)."""
    data = path.read_bytes()
    start = (data[0x1f1] + 1) * 512 + struct.unpack_from("<I", data, 0x248)[0]
    length = struct.unpack_from("<I", data, 0x24c)[0]
    packed = data[start:start + length - 4]     # the last four: length unpacked
    for magic, tool in {b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}.items():
        if packed.startswith(magic):
            return subprocess.run([tool, "-dc"], input=packed, stdout=subprocess.PIPE,
                                  check=True).stdout
    raise Skip(f"{path.name} is packed by a method unknown here")


def placed_sections(path):
    """Name to address and content of the sections of an ELF file for x86-64."""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    return {data[strings + h[0]:data.index(b"\0", strings + h[0])].decode():
            (h[3], data[h[4]:h[4] + h[5]]) for h in headers if h[1] != 8}


def sections(path):
    return {name: content for name, (_, content) in placed_sections(path).items()}


def exported(path):
    """Names of the functions and variables that a kernel's ELF file exports."""
    found = placed_sections(path)
    strings, text = found["__ksymtab_strings"]
    names = set()
    for table in ("__ksymtab", "__ksymtab_gpl"):
        address, entries = found[table]
        for at in range(0, len(entries), 12):
            # Three distances, each from where it is: to the symbol, its name, its namespace.
            begin = address + at + 4 + struct.unpack_from("<i", entries, at + 4)[0] - strings
            names.add(text[begin:text.index(b"\0", begin)].decode())
    return names


def bootable(name):
    """The folder of 'newest' or one of MADE, with its image, as tests/kmod/kernels makes folders."""
    if name in MADE:
        return MadeKernel(name, Trixie(offline=False)).folder
    kernel = TrixieKernel(name, Trixie(offline=False))
    with locked("trixie"):
        kernel.fetch_image()
    return kernel.folder
