# SPDX-License-Identifier: BSD-3-Clause
"""The suites that `tests/run` knows: name, and the module here that has it in SUITES; in order of cost."""

SUITES = {
    "unit": "unit",
    "mpi": "mpi.suite",
    "languages": "mpi.languages.suite",
    "fail-nth": "mpi.fail_nth.suite",
    "hold": "holder.suite",
    "detach": "detach.suite",
    "hold-moves": "holder.moves_suite",
    "hold-tools": "holder.tools_suite",
    "migrate": "migrate.suite",
    "instrument": "instrument.suite",
    "living": "agent.living_suite",
    "dispatch": "agent.dispatch_suite",
    "membership": "agent.membership_suite",
    "trace": "trace.suite",
    "forecast": "forecast.suite",
    "proof": "proof.suite",
    "mpich": "mpi.mpich_suite",
    "programs": "programs.suite",
    "slurm": "slurm.suite",
    "ssh": "slurm.ssh_suite",
    "deb": "packaging.suite",
    "kmod-build": "kmod.build_suite",
    "kmod": "kmod.suite",
    "shows": "shows",
}
