# SPDX-License-Identifier: BSD-3-Clause
"""Tests of migration: jobs on two hosts (network namespaces) whose ranks move while they run.

The tests are the same for MPICH with ch4:zc and for Debian's Open MPI.
"""
# Each module adds its tests to the suite.  pylint: disable-next=unused-import
from tests.migrate import (moves, reports, requests, faults, checkpoints, fault_matrix,  # noqa: F401
                           communicators, mpi_files, saving, standing_by, neighbours, others_run, verifying, languages, examples, scale, hydra,
                           random_moves, libraries, builds, signals)
from tests.migrate.jobs import suite

SUITES = [suite]
