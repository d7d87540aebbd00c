# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on the site's two hosts of which a rank is moved, or is refused to be."""
import json
import pathlib
import shutil
import tempfile

from testbed import migration, mpi
from testbed.outcome import check

IDENTICAL = "bit-identical to the serial solution"
# One command, as Slurm ends an allocation with the command that it was made for: it ends as the job
# does. Its arguments are those of the job; the environment has the rest.
SCRIPT = """\
knows() {
    zcctl ranks --json --agent "$AGENTS"/zcm-*/zcmd.sock > known &&
        python3 -c "import json; exit(len(json.load(open('known'))['ranks']) != $1)"
}
until_it() {
    until "$@"; do
        kill -0 $job || { wait $job; exit; }
        sleep 0.2
    done
}
cd "$FOLDER"
"$@" &
job=$!
until_it zcctl status > status 2>&1
[ -z "$AGENTS" ] || until_it knows 2
sleep "$AFTER"
zcctl move --rank "$RANK" --to "$TARGET" > moved 2>&1 && moved=yes
[ -z "$AGENTS" ] || [ -z "$moved" ] || until_it knows 3
touch stop
wait $job
"""


def run(site, launcher, zcm_run, program, *, ranks, rank, target, agents="", fault="", after=0):
    """Move RANK to TARGET: what zcctl said, and the job's output. It must end well, with the right
    result. LAUNCHER zcm-run ZCM_RUN -n RANKS PROGRAM"""
    library = pathlib.Path(site.setup.options.library).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="moving-", dir=site.folder))
    (folder / "script").write_text(SCRIPT)
    status, output = site.run(
        [*launcher, "sh", folder / "script", library / "bin/zcm-run", *zcm_run, "-n", ranks, program,
         "--rows", 32, "--columns", 512, "--iterations", 100000000, "--until", folder / "stop"],
        90 + after, {"PATH": f"{library / 'bin'}:{site.environment['PATH']}",
             "LD_LIBRARY_PATH": str(library / "lib"),
             "MPIR_CVAR_CH4_NETMOD": site.setup.options.netmod,
             "ZC_MIGRATE_SOCKETS": str(folder / "sockets"), "ZC_MIGRATE_HOSTS": "h1,h2",
             "FOLDER": str(folder), "RANK": str(rank), "TARGET": target, "AGENTS": str(agents),
             "ZC_MIGRATE_FAULT": fault, "AFTER": str(after)})
    check(status == 0, f"exit status {status}", output)
    check(IDENTICAL in output, "no right result", output)
    return (folder / "moved").read_text(), output, folder


def heat2d(site):
    return migration.build(site.setup.prefix, ["examples/heat2d.c"],
                           pathlib.Path(site.setup.options.library).resolve(),
                           site.setup.build_dir)["heat2d"]


def mpiexec(site):
    return ["--mpiexec", mpi.find_tool(site.setup.prefix, "mpiexec"), "--"]


def with_agents(site, launcher, *options):
    """Agents and successors are started as ranks are, and nothing is left of them."""
    moved, output, folder = run(
        site, launcher, ["--agents", "--agents-dir", site.here, *mpiexec(site), *options],
        heat2d(site), ranks=4, rank=3, target="h1", agents=site.here)
    check("rank 3 is on h1 now" in moved, moved, output)
    check("agents on h1, h2" in output, "not said: agents on h1, h2", output)
    ranks = sorted(rank["rank"] for rank in json.loads((folder / "known").read_text())["ranks"])
    check(len(ranks) == 3 and 3 in ranks, f"the agent on h1 knows of ranks {ranks}", output)
    left = [*site.here.iterdir(), *site.here_on_h2.iterdir()]
    check(not left, f"left behind: {left}", output)


def without_program(site, launcher, *options):
    """The target is asked by what starts ranks: it has no such program, and the job goes on."""
    program = site.here / "heat2d"
    shutil.copy2(heat2d(site), program)
    try:
        moved, output, _ = run(site, launcher, [*mpiexec(site), "-hosts", "h1", *options], program,
                               ranks=2, rank=1, target="h2")
    finally:
        program.unlink()
    check(f"host h2 has no program {program}" in moved, moved, output)


def by_srun_refused(site, launcher, srun, *options):
    """A successor is a step of its own: its end is that of the move, and of nothing else."""
    for fault, says in (("successor-killed-early", "the successor is gone"),
                        ("successor-killed", "the successor is gone"),
                        ("successor-exits", "the successor is gone"),
                        ("corrupt", "corrupted in transit")):
        moved, output, _ = run(site, launcher, ["--mpiexec", srun, "--", *options], heat2d(site),
                               ranks=4, rank=3, target="h1", fault=fault)
        check(says in moved, f"{fault}: {moved}", output)


def by_srun(site, launcher, srun, *options, after=0):
    """There is no Hydra to start zcm-launch: successors are started by MPI_Comm_spawn. AFTER so many
    seconds: srun ends what was spawned 60 s after its own processes, unless it is told to wait."""
    moved, output, _ = run(site, launcher, ["--mpiexec", srun, "--", *options], heat2d(site),
                           ranks=4, rank=3, target="h1", after=after)
    check("rank 3 is on h1 now" in moved, moved, output)
