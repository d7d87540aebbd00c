# SPDX-License-Identifier: BSD-3-Clause
"""The suite, the jobs that its tests run, and what they ask of these jobs."""
import contextlib
import functools
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess

from testbed.migration import SAID, STOP, TOP, Job, Stage
from testbed.network import INTERFACE
from testbed.outcome import Skip, check, wait_for
from testbed.suite import Bed, Suite

HERE = pathlib.Path(__file__).resolve().parent
IDENTICAL = "bit-identical to the serial solution"
HEAT = ["--rows", 32, "--columns", 512]
ANY_HOST = {"ZC_MIGRATE_HOSTS": "any"}     # also one that mpiexec was not given
ON_OPEN_MPI = {"openmpi": "/usr"}
LAUNCHED = "no launcher can be asked before the ranks meet, and each successor has its own"


@contextlib.contextmanager
def open_stage(setup):
    if not setup.network.between_hosts:
        raise Skip(setup.network.why or "ranks move between two hosts")
    stage = Stage(setup.prefix, setup.network, setup.options.library, setup.build_dir,
                  [TOP / "examples/heat2d.c", HERE / "state.c", HERE / "saving.c",
                   HERE / "types.c", HERE / "forgetful.c", HERE / "profile_calls.c",
                   HERE / "communicators.c", HERE / "mpi_1.c", HERE / "cliques.c",
                   HERE / "known.c", HERE / "threads.c", HERE / "asks.c", HERE / "devices.c",
                   HERE / "plugin.c", HERE / "mpi_files.c"],
                  scratch=setup.scratch, family=setup.family, netmod=setup.options.netmod,
                  environment=setup.environment, patience=setup.patience)
    stage.seed = setup.seed
    yield stage


suite = Suite("migrate", "ranks of running jobs move between two hosts, with faults, too",
              beds=[Bed("two-hosts", tags=frozenset({"fast"}), hosts="2"),
                    Bed("long", tags=frozenset({"nightly"}), hosts="2", only="long", long=True),
                    Bed("three-hosts", tags=frozenset({"nightly"}), hosts="3", only="cut",
                        long=True),
                    Bed("openmpi", tags=frozenset({"fast"}), hosts="2", only="openmpi",
                        options=ON_OPEN_MPI),
                    Bed("openmpi-all", tags=frozenset({"nightly"}), hosts="2",
                        options=ON_OPEN_MPI)],
              needs=("mpich",), families=("mpich", "openmpi"), open=open_stage)


def mpich_only(why):
    """With Open MPI the test is skipped, for this reason."""
    def mark(function):
        @functools.wraps(function)
        def of_mpich(stage):
            if stage.family != "mpich":
                raise Skip(why)
            return function(stage)
        return of_mpich
    return mark


def heat(stage, *extra, **how):
    return heat_of(stage, "heat2d", *extra, **how)


def heat_of(stage, program, *extra, iterations=10000000, **how):
    """The same by another build of it."""
    return Job(stage, program, *HEAT, "--iterations", iterations, "--until", STOP, *extra, **how)


def state_of(pid):
    """As proc(5) has it; "" if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_channel(pid):
    """The function of the kernel that it sleeps in; "": there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/wchan").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def strike(pid, number, states):
    """A signal takes its effect when the process runs next: wait for one of STATES."""
    os.kill(pid, number)
    wait_for(f"process {pid} is in one of '{states}'", lambda: state_of(pid) in states, 30,
             every=0.01)


def kill(pid):
    strike(pid, signal.SIGKILL, ("Z", "X", ""))


def stop(pid):
    strike(pid, signal.SIGSTOP, ("T",))


@contextlib.contextmanager
def cut_off(stage, host):
    """Nothing passes to or from HOST. Of two hosts, each sees that its link is down."""
    network = stage.network
    if int(network.hosts) > 2:
        network.cut(host)
        try:
            yield
        finally:
            network.heal(host)
        return
    link = network.on(host, "ip", "link", "set", INTERFACE)
    subprocess.run([*link, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run([*link, "up"], check=True)
        # The kernel sees up to a second later that the link is there, and UCX begins without it else.
        for each in (1, 2):
            wait_for(f"the link of host {each} is there", lambda each=each: "state UP" in subprocess.run(
                network.on(each, "ip", "link", "show", INTERFACE), check=True, capture_output=True,
                text=True).stdout, 10)


def limit_memory(pid):
    """It gets no more than it has: as with a full cgroup, whose end is SIGKILL's, or no overcommit."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        words = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
        most = int(words[0]) * os.sysconf("SC_PAGESIZE")
        resource.prlimit(pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def give_memory(pid):
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextlib.contextmanager
def small_disk(stage, size):
    """The folder where a file system of its own has room for SIZE, as mount(8) has it."""
    place = stage.new_directory()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place],
                      capture_output=True, check=False).returncode != 0:
        raise Skip("cannot mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def hosts_of(job):
    return [rank["host"] for rank in job.status()["ranks"]]


def moved(job, ranks, host, via="memory"):
    """The answer to a move of RANKS to HOST that is carried out."""
    code, answer, said = job.ask("move", "--rank", ",".join(map(str, ranks)), "--to", host,
                                 "--via", via)
    check(code == 0, f"move of {ranks} to {host}: status {code}: {said}", job.said()[-SAID:])
    return answer


def saved(job):
    """The safe point that JOB, when asked, saves itself at."""
    code, answer, said = job.ask("checkpoint")
    check(code == 0, f"checkpoint: status {code}: {said}", job.said()[-SAID:])
    return answer["safe_point"]


def restart(stage, place):
    """The launcher of a job that begins with what PLACE has."""
    return [str(stage.library / "bin/zcm-run"), "--restart", place]


def refused(job, *words, code=1, says):
    got, _, said = job.ask(*words)
    check(got == code, f"{words}: exit status {got}, not {code}: {said}", job.said()[-SAID:])
    check(re.search(says, said), f"{words}: said '{said}', not '{says}'", job.said()[-SAID:])


def answer_at_socket(job, request):
    """The answer of JOB itself to REQUEST: zcctl does not let every request through."""
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect(job.sockets + "/test.sock")
        talk.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(talk.makefile().readline())


def ends_well(stage, job, says, timeout=60):
    """The program is stopped, or comes to its end by itself."""
    job.stop()
    finishes(stage, job, says, timeout)


def finishes(stage, job, says, timeout=60):
    status = job.wait(timeout * stage.patience)
    check(status == 0 and says in job.said(), f"exit status {status}, wanted 0 and '{says}'",
          job.said()[-SAID:])


def ends_with_error(job, says, timeout, exit_status=None):
    """JOB ends within TIMEOUT seconds, with EXIT_STATUS or any but 0, and it SAYS (a regex) why."""
    status = job.wait(timeout)
    check(status not in (0, None) and exit_status in (status, None),
          f"exit status {status}, where an error is due: '{says}'", job.said()[-SAID:])
    check(re.search(says, job.said()), f"it does not say '{says}'", job.said()[-SAID:])
