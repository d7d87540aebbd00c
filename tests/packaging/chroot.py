# SPDX-License-Identifier: BSD-3-Clause
"""A Debian in a folder: made once, kept in the cache, copied for each run, entered by chroot(8).

It is the release of this machine, since packages that are built here need its libraries. apt in it
has the mirrors of this machine's apt, Debian's only.
"""
import fcntl
import os
import pathlib
import shutil
import subprocess

from testbed import process
from testbed.outcome import Fail, Skip

CACHE = pathlib.Path(os.environ.get("ZC_CACHE_DIR") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "zc")
# A compiler and its like, and what our packages are to be installed beside. Of two packages that
# can make users, the small one: systemd, removed, would itself leave files.
PACKAGES = ["gcc", "libc6-dev", "man-db", "mpich", "libmpich-dev", "dkms",
            "systemd-standalone-sysusers"]
# For DKMS; a mirror need not have those of a kernel that it has.
HEADERS = "linux-headers-amd64"
# MPI wants /dev/shm, hwloc /sys. The last process of the namespace takes all others with it.
INSIDE = """mount -t proc proc "$0/proc" &&
mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
cp /etc/resolv.conf /etc/hosts "$0/etc/" && exec chroot "$0" "$@"
"""
# What apt is told of the network; the rest of its configuration is the machine's own matter.
NETWORK = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Retries")
KEEP = {"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}


def of_this_machine(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False).stdout


def release():
    """The code name of this machine's Debian."""
    for line in pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise Skip("this machine has no Debian")


def mirrors():
    """[(mirror, suite)] of Debian's component main, as this machine's apt has them."""
    listed = of_this_machine("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)",
                             "Created-By: Packages", "Component: main", "Origin: Debian")
    found = list(dict.fromkeys(tuple(line.split()) for line in listed.splitlines()))
    if not any(suite == release() for _, suite in found):
        raise Skip("this machine's apt has no list of Debian's packages (apt-get update)")
    return found


class Chroot:
    """A Debian at FOLDER."""

    def __init__(self, folder, patience=1.0):
        self.folder = pathlib.Path(folder)
        self.patience = patience

    def path(self, inside):
        """Where the file INSIDE is, seen from here."""
        return self.folder / inside.lstrip("/")

    def attempt(self, *command, timeout=60, environment=None):
        """(exit status or None when time was up, output) of COMMAND, run within."""
        kept = {name: value for name, value in os.environ.items() if name in KEEP}
        return process.run(
            ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "sh", "-c", INSIDE,
             self.folder, *command], self.folder / "tmp",
            {**kept, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
             "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
             **(environment or {})}, timeout * self.patience)

    def run(self, *command, timeout=60, environment=None):
        """Output of COMMAND, run within; Fail unless it ends well."""
        status, output = self.attempt(*command, timeout=timeout, environment=environment)
        if status != 0:
            ended = f"no end in {timeout * self.patience:.0f} s" if status is None else \
                f"exit status {status}"
            raise Fail(f"{' '.join(map(str, command))}: {ended}", output)
        return output

    def apt(self, *words, timeout=900):
        return self.run("apt-get", "-q", "-y", "--no-install-recommends", *words, timeout=timeout)

    def kernels(self):
        """Releases of those whose headers are there."""
        return [path.parent.name for path in self.path("/usr/lib/modules").glob("*/*")
                if path.name == "build"]

    def paths(self):
        """Of all files, but for those of users, and what apt and others keep for their own work."""
        words = ["find", "/", "-xdev"]
        for own in ("/root", "/tmp", "/var/cache", "/var/log", "/var/lib/apt"):
            words += ["-path", own, "-prune", "-o"]
        return set(self.run(*words, "-print").splitlines())

    def configure_apt(self):
        keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
        self.path("/etc/apt/sources.list").write_text("".join(
            f"deb [signed-by={keys}] {mirror} {suite} main\n" for mirror, suite in mirrors()),
            encoding="utf-8")
        settings = [line for line in of_this_machine("apt-config", "dump").splitlines()
                    if line.startswith(NETWORK)]
        self.path("/etc/apt/apt.conf.d/90test").write_text("\n".join(
            [*settings, 'APT::Sandbox::User "root";', ""]), encoding="utf-8")


def base(log=print):
    """The Chroot in the cache, made if it is not there or has other packages."""
    chroot = Chroot(CACHE / f"{release()}-packages", patience=3.0)
    about = " ".join([*PACKAGES, HEADERS]) + "\n"
    made = chroot.path("/.made")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / ".packages-lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists() and made.read_text(encoding="utf-8") == about:
            return chroot
        log(f"putting a Debian ({release()}) into the cache", flush=True)
        make(chroot)
        made.write_text(about, encoding="utf-8")
    return chroot


def make(chroot):
    mirror = next(mirror for mirror, suite in mirrors() if suite == release())
    shutil.rmtree(chroot.folder, ignore_errors=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", release(), chroot.folder, mirror],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Skip("debootstrap: " + " / ".join(done.stdout.splitlines()[-3:]))
    chroot.configure_apt()
    chroot.apt("update")
    chroot.apt("install", *PACKAGES)
    status, _ = chroot.attempt("apt-get", "-q", "-y", "--no-install-recommends", "install", HEADERS,
                               timeout=900)
    if status != 0:
        chroot.apt("-f", "install")
    # As the kernel itself, which is not here, would have it.
    for kernel in chroot.kernels():
        chroot.run("depmod", kernel)
    chroot.apt("clean")


def copy(folder, patience, log=print):
    """A Chroot at FOLDER, which may be changed."""
    made = base(log)
    subprocess.run(["cp", "-a", "--reflink=auto", made.folder, folder], check=True)
    chroot = Chroot(folder, patience)
    chroot.configure_apt()
    chroot.apt("update")
    return chroot
