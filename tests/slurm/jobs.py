# SPDX-License-Identifier: BSD-3-Clause
"""Start what may hang or leave others behind, and end all of it."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../hosts"))
import launch  # noqa: E402


def run(command, folder, environment, timeout, at_end=lambda: None):
    """(exit status or None when time was up, output) of COMMAND.

    Afterwards AT_END is called and every process that carries the run's mark is ended:
    ranks and proxies are often in sessions and groups of their own.
    """
    mark = uuid.uuid4().hex
    # A file, not a pipe: what outlives its starter would keep a pipe open.
    with tempfile.TemporaryFile(dir=folder) as output:
        process = subprocess.Popen(command, cwd=folder, env={**environment, launch.MARK: mark},
                                   stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with undisturbed():
                if process.poll() is None:
                    process.terminate()
                at_end()
                kill(pid for pid, _ in list(launch.processes(mark)))
                process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def end(daemons, network, hosts):
    """End DAEMONS politely, then whatever still lives on HOSTS of NETWORK: it is ours alone."""
    for daemon in reversed(daemons):
        daemon.terminate()
    for daemon in daemons:
        try:
            daemon.wait(timeout=5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
    for host in hosts:
        listed = subprocess.run(["ip", "netns", "pids", f"{network.name}-{host}"],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                check=False)
        kill(map(int, listed.stdout.split()))


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def exit_on_first_signal():
    """Clear up when told to go, and be told only once: half of it would leave daemons behind."""
    def go(number, _):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, signal.SIG_IGN)
        sys.exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, go)


@contextlib.contextmanager
def undisturbed():
    """Signals wait until what is inside is done: it must not be left half done."""
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)


@contextlib.contextmanager
def hosts():
    """A pair of hosts of this process's own, so that all that runs there may be ended."""
    network = launch.Network("2", name=f"zc-{os.getuid()}-{os.getpid()}")
    try:
        with undisturbed():
            network.__enter__()
        yield network
    finally:
        with undisturbed():
            network.__exit__()
