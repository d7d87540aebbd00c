# SPDX-License-Identifier: BSD-3-Clause
"""A guest of QEMU: a kernel, zc.ko and test programs; built, started, and read to its end.

A guest has two processors and two NUMA nodes, swap, huge pages, and nothing but
the module, the programs and busybox (guest/init). The programs are those of ./programs
and libzc's for two NUMA nodes (tests/libzc/node_program.cpp). Programs print TAP.

Kernels: 6.1 and 6.12 (Debian 12's, fetched by ./kernels), newest and 6.18 (Debian 13's
backports, fetched by debian.py), debug (built by ./debug-kernel), or a folder as ./kernels
makes them. Logs stay in build/kmod/KERNEL/.

Instructions (--icount): one processor, and the guest's clock advances by exactly
one nanosecond per instruction executed. clock_gettime(CLOCK_MONOTONIC_RAW) and
the time stamp counter therefore count instructions, the kernel's included; see
guest/icount.c for what was verified.
"""
import contextlib
import fcntl
import lzma
import os
import pathlib
import shlex
import shutil
import subprocess
import time

from testbed.outcome import Error, Skip
from tests.kmod import debian
from tests.kmod.report import Report, emulator_erred, kernel_bugs

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
BUILD = TOP / "build/kmod"
QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"

# Of the kernel's own modules, what a guest needs where it is not built in.
# KVM (emulated too) is there as a user of MMU notifiers.
MODULES = ["virtio_pci", "virtio_blk", "zram", "kvm-amd"]
STACK_MODULES = ["9pnet_virtio", "9p", "overlay"]

# no_timer_check: on a busy machine the kernel takes a late timer for a broken one.
COMMAND_LINE = ("console=ttyS0 quiet panic=-1 oops=panic no_timer_check log_buf_len=8M"
                " rcupdate.rcu_cpu_stall_timeout=300")
# pci=noacpi: emulated under KASAN, ACPI's routing tables run out of the time allowed.
DEBUG_COMMAND_LINE = " kasan_multi_shot kmemleak=on page_owner=on pci=noacpi"

# Seconds a program, the start, and a test of exchange_test may take: emulated, beside
# others. With the detectors everything takes some ten times as long.
PROGRAM_LIMIT, START_LIMIT = 1200, 600
DEBUG_PROGRAM_LIMIT, DEBUG_START_LIMIT, DEBUG_TEST_LIMIT = 5400, 1800, 900


def command(*words, **options):
    """Output of a command of ours; its errors go to the terminal."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                          check=False, **options)
    if done.returncode:
        raise Error(f"{words[0]} failed")
    return done.stdout


@contextlib.contextmanager
def locked(folder, wait=True):
    """Keeps a folder to ourselves; yields False if it is another's and we shall not WAIT."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


@contextlib.contextmanager
def guest_folder(kernel, mode):
    """One that no other guest uses now: several guests may run the same kernel."""
    number = 1
    while True:
        folder = BUILD / kernel.name / (mode if number == 1 else f"{mode}-{number}")
        with locked(folder, wait=False) as ours:
            if ours:
                yield folder
                return
        number += 1


# ---- what goes into a guest ----

def kernel_folder(name):
    if name == "debug":
        return pathlib.Path(command(HERE / "debug-kernel").strip())
    if name in ("newest", *debian.MADE):
        return debian.bootable(name)
    if (pathlib.Path(name) / "vmlinux").exists():
        return pathlib.Path(name).resolve()
    return pathlib.Path(command(HERE / "kernels", name).strip())


def build_module(kernel, work):
    """zc.ko for this kernel, built in a copy: one checkout serves many kernels."""
    source = work / "module"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    built = shutil.ignore_patterns("*.o", "*.ko", "*.mod", "*.mod.c", ".*", "Module.symvers")
    shutil.copy(TOP / "Kbuild", source)
    shutil.copytree(TOP / "kmod", source / "kmod", ignore=built)
    log = work / "module.log"
    with open(log, "w", encoding="utf-8") as file:
        # Without the kernel's own type information there is none to add to.
        done = subprocess.run(
            ["make", "-C", str(kernel / "headers"), f"M={source}", "CONFIG_DEBUG_INFO_BTF_MODULES=",
             "modules"], stdout=file, stderr=subprocess.STDOUT, check=False)
    module = source / "zc.ko"
    if done.returncode or not module.exists():
        raise Error(f"the module does not build; the end of {log}:\n"
                    + "\n".join(log.read_text().splitlines()[-15:]))
    return module


def build_programs():
    """Paths of the test programs, by name."""
    folder = HERE / "programs"
    out = BUILD / "programs"
    with locked(out):
        command("make", "-s", "-C", folder, f"OUT={out}")
    names = command("make", "-s", "-C", folder, f"OUT={out}", "list").split()
    return {name: out / name for name in names}


def build_tool(source):
    """A static program for the guest, from one file."""
    with locked(BUILD / "tools"):
        out = BUILD / "tools" / source.stem
        if not out.exists() or out.stat().st_mtime < source.stat().st_mtime:
            command("gcc", "-O2", "-Wall", "-static", "-o", out, source)
    return out


def build_node_tests():
    """libzc's own program for a machine with two NUMA nodes, built as libzc is."""
    with locked(BUILD / "tools"):
        log = BUILD / "libzc.log"
        with open(log, "w", encoding="utf-8") as file:
            for words in (["--preset", "release"],
                          ["--build", "--preset", "release", "--target", "zc_node_tests"]):
                if subprocess.run(["cmake", *words], cwd=TOP, stdout=file, stderr=file,
                                  check=False).returncode:
                    raise Error(f"libzc's test of NUMA nodes does not build; the end of {log}:\n"
                                + "\n".join(log.read_text().splitlines()[-15:]))
    return TOP / "build/release/bin/zc_node_tests"


def stack_words(options):
    """The script that runs MPI in the guest, and where it finds what it needs."""
    prefix = options.mpich or command(TOP / "mpi-ch4-netmod/build", "--print-prefix").strip()
    mpicc = pathlib.Path(prefix) / "bin/mpicc"
    if not mpicc.exists():
        raise Skip(f"no MPICH in {prefix} (mpi-ch4-netmod/build, or --mpich PREFIX)")
    with locked(BUILD / "tools"):
        out = BUILD / "tools/rebound"
        command(mpicc, "-O2", "-o", out, TOP / "tests/mpi/rebound.c")
    return [str(HERE / "guest/stack"), os.path.abspath(prefix), str(out)]


def module_files(kernel, wanted):
    """The kernel's own modules WANTED and what they depend on, in loading order."""
    if not (kernel / "modules").exists():
        return []
    base = (kernel / "modules").resolve().parent
    paths, needs = {}, {}
    for line in (base / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        paths[path.rpartition("/")[2].partition(".")[0].replace("-", "_")] = path
        needs[path] = others.split()
    order = []
    for name in wanted:
        path = paths.get(name.replace("-", "_"))
        # The last one depended on is the first one to load. Not listed: built in.
        for one in [*reversed(needs.get(path, [])), path]:
            if one and one not in order:
                order.append(one)
    return [base / path for path in order]


def pack(guest, files, modules, plan):
    """An initial file system: FILES ({path: source}), the kernel's MODULES, and the PLAN."""
    root = guest / "root"
    shutil.rmtree(root, ignore_errors=True)
    for name in ["bin", "sbin", "dev", "proc", "sys", "tmp", "modules", "programs", "etc"]:
        (root / name).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nzc:x:1000:1000::/tmp:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nzc:x:1000:\n")
    (root / "plan").write_text(plan)
    for path, source in files.items():
        shutil.copy(source, root / path)
        (root / path).chmod(0o755)
    for number, source in enumerate(modules):
        content = source.read_bytes()
        if source.suffix == ".xz":
            content = lzma.decompress(content)
        (root / "modules" / f"{number:02}-{source.name.partition('.')[0]}.ko").write_bytes(content)
    # Not compressed: unpacking would be emulated too.
    archive = guest / "initramfs"
    with open(archive, "wb") as file:
        subprocess.run("find . | cpio --quiet -o -H newc -R 0:0", shell=True, cwd=root,
                       stdout=file, check=True)
    return archive


# ---- a guest ----

def boot_file(kernel):
    """The ELF file starts sooner; a kernel that cannot be entered that way has the other."""
    packed = kernel / "bzImage"
    return packed if packed.exists() else kernel / "vmlinux"


def qemu_words(options, stack, debug, kernel, archive, guest):
    # QEMU 7.2 sometimes delivers an interrupt just after cmpxchg16b with flags taken from another
    # register. The kernel's allocator uses that instruction, and the kernel then crashes.
    words = [QEMU, "-cpu", "max,-cx16", "-nodefaults", "-no-user-config", "-display", "none",
             "-no-reboot", "-kernel", str(boot_file(kernel)), "-initrd", str(archive),
             "-append", COMMAND_LINE + (DEBUG_COMMAND_LINE if debug else "") + " " + options.append,
             "-serial", f"file:{guest / 'console.log'}", "-serial", f"file:{guest / 'report.log'}",
             "-drive", f"file={guest / 'swap'},format=raw,if=virtio,cache=unsafe"]
    mib = 2048 if debug else 1024
    if options.icount:
        words += ["-accel", "tcg", "-icount", "shift=0,sleep=off", "-m", str(mib)]
    else:
        words += ["-accel", "tcg,thread=multi", "-smp", "2,sockets=2", "-m", str(mib)]
        for node in (0, 1):
            words += ["-object", f"memory-backend-ram,id=memory{node},size={mib // 2}M",
                      "-numa", f"node,cpus={node},memdev=memory{node}"]
    if options.gdb:
        words += ["-gdb", f"unix:{options.gdb},server=on,wait=off"]
    if stack:
        words += ["-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,"
                  "multidevs=remap"]
    return words


class Guest:
    """A machine with a kernel that runs PROGRAMS one after the other: while the block goes on.

    programs: lists of words, each beginning with a path
    options:  those of the suite
    stack:    the guest sees the host's root, and cannot change it: MPI can run in it
    """

    def __init__(self, kernel, programs, options, stack=False):
        self.kernel = kernel_folder(kernel)
        self.again = lambda: Guest(kernel, programs, options, stack)
        self.programs, self.options, self.stack = programs, options, stack
        self.debug = self.kernel.name.startswith("debug")
        self.report = Report(options.console)
        self.in_time = True

    def __enter__(self):
        mode = "stack" if self.stack else "icount" if self.options.icount else "guest"
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(guest_folder(self.kernel, mode))
            stack.callback(self._clear)
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _clear(self):
        if not self.options.keep:
            shutil.rmtree(self.folder / "root", ignore_errors=True)
            (self.folder / "initramfs").unlink(missing_ok=True)

    def _start(self, stack):
        files = {"init": HERE / "guest/init", "bin/busybox": BUSYBOX,
                 "zc.ko": build_module(self.kernel, self.folder),
                 "sbin/swap_equally": build_tool(HERE / "guest/swap_equally.c")}
        plan, limits = [], []
        for words in self.programs:
            path = pathlib.Path(words[0])
            files[f"programs/{path.name}"] = path
            limits.append(self._limit(path.name))
            patience = ["--timeout", str(DEBUG_TEST_LIMIT)] if (
                self.debug and path.name == "exchange_test" and "--timeout" not in words) else []
            plan.append(f"ZC_TIMEOUT={limits[-1]} run "
                        + shlex.join([path.name, *patience, *words[1:]]))
        modules = module_files(self.kernel, MODULES + (STACK_MODULES if self.stack else []))
        archive = pack(self.folder, files, modules, "\n".join(plan) + "\n")
        for name in ("console.log", "report.log"):
            (self.folder / name).write_text("")
        with open(self.folder / "swap", "wb") as file:
            file.truncate(256 << 20)
        stack.callback((self.folder / "swap").unlink)
        self.lines = stack.enter_context(
            open(self.folder / "report.log", encoding="utf-8", errors="replace"))
        self.rest = ""
        log = stack.enter_context(open(self.folder / "qemu.log", "w", encoding="utf-8"))
        self.process = subprocess.Popen(
            qemu_words(self.options, self.stack, self.debug, self.kernel, archive, self.folder),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)
        self.begin = time.monotonic()
        self.deadline = self.begin + (self.options.guest_timeout or sum(limits) + (
            DEBUG_START_LIMIT if self.debug else START_LIMIT))

    def _limit(self, name):
        """Seconds until a program is taken for one that hangs."""
        if self.options.guest_timeout:
            return max(60, self.options.guest_timeout - 60)
        limit = DEBUG_PROGRAM_LIMIT if self.debug else PROGRAM_LIMIT
        return limit + (4 * (self.options.torture or 0) if name == "torture" else 0)

    def read(self, enough):
        """Reads what the guest reports until ENOUGH(), or to its end, or until time is up."""
        while not enough():
            ended = self.process.poll() is not None
            *lines, self.rest = (self.rest + self.lines.read()).split("\n")
            for line in lines:
                self.report.line(line.rstrip("\r"))
            if ended:
                return
            if time.monotonic() > self.deadline:
                self.in_time = False
                self.process.kill()
                return
            if not lines:
                time.sleep(0.1)

    def result(self, number):
        """What became of the program NUMBER, judged; waits for its end."""
        programs = self.report.programs
        self.read(lambda: len(programs) > number and programs[number].seconds is not None)
        if len(programs) <= number:
            return None
        programs[number].judge()
        return programs[number]

    def end(self):
        """(what is wrong with the guest itself, lines that tell more, whether it is no more than
        an error of the emulator); waits for its end."""
        self.read(lambda: False)
        problems = list(self.report.problems)
        if not self.in_time:
            problems.append(f"no end after {time.monotonic() - self.begin:.0f} s")
        elif not (self.report.finished and self.report.log_complete) and not problems:
            problems.append("the machine ended before the tests did")
        console = (self.folder / "console.log").read_text(errors="replace").splitlines()
        log = self.report.log or console
        (self.folder / "kernel.log").write_text("\n".join(log) + "\n")
        bugs = kernel_bugs(log)
        problems += [f"kernel log: {log[i].strip()}" for i in bugs[:20]]
        if len(bugs) > 20:
            problems.append(f"kernel log: {len(bugs) - 20} more")
        more = log[bugs[0]:bugs[0] + 60] if bugs else [] if self.report.kernel else \
            [*console[-20:], (self.folder / "qemu.log").read_text()]
        erred = len(problems) == len(bugs) == 1 and emulator_erred(log, bugs[0])
        return problems, more, erred
