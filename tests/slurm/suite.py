# SPDX-License-Identifier: BSD-3-Clause
"""Launch MPI programs under Slurm, on a cluster made for the occasion.

A controller, two nodes and their authentication run in a temporary folder and on two hosts.
Jobs are started the ways docs/launching.md gives: Hydra's mpiexec inside salloc and sbatch,
and srun with Slurm's own PMI. Each must give the right result, on both nodes. All of it is
gone afterwards, whatever happened.
"""
import os
import pathlib
import re
import subprocess
import time

from testbed import mpi, statistics
from testbed.network import ADDRESSES
from testbed.outcome import check
from testbed.suite import Note, Suite
from tests.slurm import holding, moving
from tests.slurm.site import BEDS, HOSTS, PATH, Site

TOP = pathlib.Path(__file__).resolve().parents[2]

CONFIGURATION = """\
ClusterName=zc
SlurmctldHost=h1({addresses[0]})
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
InactiveLimit=0
KillWait=2
NodeName=h1 NodeAddr={addresses[0]} CPUs={cpus} State=UNKNOWN
NodeName=h2 NodeAddr={addresses[1]} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=h1,h2 Default=YES MaxTime=INFINITE State=UP
"""
# slurmd wants a plugin even where nothing is confined; a namespace's /sys has no cgroups.
CGROUP = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"

SALLOC = ("salloc", "-Q")
TWO = ("-N2", "-n2")
PMI2 = ("srun", "-K", "--mpi=pmi2")
# Since Slurm 20.11 steps of a job share processors only where they say so; our mpiexec does.
OVERLAP = ("env", "SLURM_OVERLAP=1")


class Cluster(Site):
    """A controller and a node on h1, a node on h2, and the programs that jobs run."""

    commands = ("slurmctld", "slurmd", "salloc", "sbatch", "srun", "scancel", "squeue", "sinfo",
                "munged")
    packages = "slurm-wlm and munge"

    def __init__(self, setup):
        super().__init__(setup)
        self.environment.update(PATH=PATH, SLURM_CONF=f"{self.folder}/slurm.conf",
                                **setup.network.environment())
        self.mpiexec = mpi.find_tool(setup.prefix, "mpiexec")
        self.hold = pathlib.Path(setup.options.library).resolve() / "bin/zc-hold"
        tests = TOP / "tests/mpi"
        self.programs = mpi.build(
            setup.prefix, [TOP / "examples/halo.c", tests / "spawn.c", tests / "death.c"],
            setup.build_dir, headers=tests.glob("*.h"))
        self.on_node = self.folder / "on-node"
        self.on_node.write_text('#!/bin/sh\necho "on node $(hostname)"\nexec "$@"\n')
        self.on_node.chmod(0o755)
        setup.header = statistics.TITLES

    def start(self):
        self._configure()
        self._start_munge()
        self._start("slurmctld", "h1", "slurmctld", "-D")
        for node in HOSTS:
            self._start(f"slurmd on {node}", node, "slurmd", "-D", "-N", node)
        self.wait("nodes", lambda: self._ask("sinfo", "--noheader", "--Node",
                                             "--format=%T").split() == ["idle"] * 2, 30)

    def finish(self):
        """No job of one test may hold the nodes in the next."""
        give_up = time.monotonic() + 20 * self.setup.patience
        while time.monotonic() < give_up:
            queue = self._ask("squeue", "--noheader", "--format=%i")
            if not queue.strip():
                return
            self._ask("scancel", "--full", "--signal=KILL", *queue.split())
            self._ask("scancel", *queue.split())
            time.sleep(0.5)

    def _ask(self, *words):
        try:
            return subprocess.run(self.command("h1", words), env=self.environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False,
                                  timeout=15 * self.setup.patience).stdout
        except subprocess.TimeoutExpired:
            return "?"

    def _configure(self):
        for name in ("state", "munge", *HOSTS):
            (self.folder / name).mkdir()
        (self.folder / "munge").chmod(0o700)
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            folder=self.folder, addresses=ADDRESSES, cpus=os.cpu_count()))
        (self.folder / "cgroup.conf").write_text(CGROUP)

    def _start_munge(self):
        """One for both nodes: they share the file system, and so its socket."""
        at = self.folder / "munge"
        # --force: root may own the socket, and no other user need reach it.
        self.daemon("munged", ["munged", "--foreground", "--force", f"--key-file={at}/key",
                               f"--socket={at}/socket", f"--pid-file={at}/pid",
                               f"--log-file={at}/log", f"--seed-file={at}/seed"])
        self.wait("munged", (at / "socket").is_socket, 10)

    def _start(self, what, host, program, *options):
        self.daemon(what, self.daemon_command(host, [program, *options, "-f",
                                                     self.folder / "slurm.conf"]))

    def batch(self, *words):
        script = self.folder / "job"
        script.write_text("#!/bin/sh\n" + " ".join(map(str, words)) + "\n")
        output = self.folder / "job.out"
        return ["sh", "-c", f"sbatch --quiet --wait -N2 -n2 -o {output} {script};"
                            f" status=$?; cat {output}; exit $status"]

    def halo(self, columns=65536, iterations=20):
        return [self.on_node, self.programs["halo"], "-r", 8, "-c", columns, "-i", iterations,
                "-x", 3]

    def submit(self, words, timeout=60):
        """(exit status, output, statistics) of a job of WORDS, which must end by itself."""
        stats = self.folder / "statistics"
        for old in self.folder.glob(f"{stats.name}.*"):
            old.unlink()
        netmod = self.setup.options.netmod
        status, output = self.run(words, timeout, {
            "MPIR_CVAR_CH4_NETMOD": netmod, statistics.CVAR + "LANDING_THREAD": "1",
            statistics.CVAR + "STATS_FILE": str(stats)})
        check(status is not None, "no end in time", output)
        return status, output, statistics.add_up(stats)

    def spawns(self, *launcher):
        """Two ranks spawn others, in one allocation."""
        status, output, total = self.submit([*SALLOC, *TWO, *launcher,
                                             self.programs["spawn"], "exchange"])
        check(status == 0, f"exit status {status}", output)
        return note(total)

    def solves(self, words, ranks=2, timeout=60):
        """WORDS run halo(): its result must be right, on both nodes, with messages that landed."""
        status, output, total = self.submit(words, timeout)
        check(status == 0, f"exit status {status}", output)
        line = rf"(\d+) iterations on {ranks} ranks, .* result verified"
        check(re.search(line, output), f"no line like '{line}'", output)
        nodes = set(re.findall(r"on node (\S+)", output))
        check(nodes == set(HOSTS), f"ran on {', '.join(sorted(nodes)) or 'no node'} only", output)
        if self.setup.options.netmod == "zc":
            reported = total["ranks"] if total else 0
            check(reported == ranks, f"statistics of {reported} ranks, not {ranks}", output)
            check(total["landed"], "no message landed", output)
        return note(total)

    def dies(self, *words):
        """WORDS run two ranks, of which one is killed: the job must end with an error."""
        status, output, _ = self.submit([*words, self.programs["death"], "delivery", "receiver"])
        check(status != 0, "ended as if nothing had happened", output)
        check("rank 0 is killed" in output, "it ended before", output)


def note(total):
    return Note(statistics.table(total), statistics=total)


suite = Suite("slurm", "launching under Slurm: mpiexec in jobs, and srun", beds=BEDS,
              needs=("root", "mpich"), open=Cluster)
SUITES = [suite]


TESTS = {
    "salloc, mpiexec": lambda of: of.solves([*SALLOC, *TWO, of.mpiexec, *of.halo()]),
    "salloc, mpiexec, 4 ranks": lambda of: of.solves(
        [*SALLOC, "-N2", "-n4", "-O", of.mpiexec, *of.halo(32768, 10)], ranks=4, timeout=90),
    "sbatch, mpiexec": lambda of: of.solves(of.batch(of.mpiexec, *of.halo())),
    "srun --mpi=pmi2": lambda of: of.solves([*PMI2, *TWO, *of.halo()]),
    "sbatch, srun --mpi=pmi2": lambda of: of.solves(of.batch(*PMI2, *of.halo())),
    "salloc, mpiexec, spawn": lambda of: of.spawns(of.mpiexec),
    "salloc, mpiexec, agents": lambda of: moving.with_agents(
        of, [*SALLOC, "-N2", "-n4", "-O"]),
    "salloc, mpiexec, no program at the target": lambda of: moving.without_program(
        of, [*SALLOC, *TWO]),
    "salloc, srun --mpi=pmi2, moves": lambda of: moving.by_srun(
        of, [*SALLOC, "-N2", "-n4", "-O", *OVERLAP], *PMI2),
    "salloc, srun --mpi=pmi2, moves after a minute": lambda of: moving.by_srun(
        of, [*SALLOC, "-N2", "-n4", "-O"], *PMI2, after=70),
    "salloc, srun --mpi=pmi2, successors that end": lambda of: moving.by_srun_refused(
        of, [*SALLOC, "-N2", "-n4", "-O", *OVERLAP], *PMI2),
    "salloc, srun --mpi=pmi2, spawn": lambda of: of.spawns(*OVERLAP, *PMI2),
    "salloc, mpiexec, a rank dies": lambda of: of.dies(*SALLOC, *TWO, of.mpiexec),
    "srun -K, a rank dies": lambda of: of.dies(*PMI2, *TWO),
    "srun --mpi=pmi2, zc-hold": lambda of: of.solves([*PMI2, *TWO, of.hold, *of.halo()]),
    "srun -K, zc-hold, a rank dies": lambda of: of.dies(*PMI2, *TWO, of.hold),
    "srun --mpi=pmi2, zc-hold, ranks move": lambda of: holding.ring(
        of, lambda words: [*PMI2, *TWO, *words]),
    "salloc, mpiexec, zc-hold, worlds move": lambda of: holding.worlds(
        of, lambda words: [*SALLOC, *TWO, of.mpiexec, *words]),
    "salloc, srun --mpi=pmi2, zc-hold, worlds move": lambda of: holding.worlds(
        of, lambda words: [*SALLOC, *TWO, *OVERLAP, *PMI2, *words]),
    "srun --mpi=pmi2, zc-hold, ScaLAPACK moves": lambda of: holding.scalapack(
        of, lambda words: [*PMI2, *TWO, *words]),
    "sbatch, mpiexec, zc-hold, ScaLAPACK moves": lambda of: holding.scalapack(
        of, lambda words: of.batch(of.mpiexec, *words)),
}
for the_name, what_shows_it in TESTS.items():
    suite.test(the_name)(what_shows_it)
