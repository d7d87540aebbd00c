# SPDX-License-Identifier: BSD-3-Clause
"""The test bed: hosts on one machine, jobs and agents on them, and the runner of the tests.

    hosts, rsh, names   namespaces, links of a rate, processors of hosts (a script of its own)
    mpirun              one MPI program across them, for users
    network             the hosts as a context
    process             processes of one run: found, described, ended
    mpi                 build MPI programs, run them within a time limit
    migration           jobs whose ranks can move between two hosts
    profiles            what ranks report to the agents of their nodes
    statistics          the ranks' statistics of ch4:zc, added up
    outcome             Skip, Fail, check, wait_for
    suite               what a folder of tests declares
    runner              tests/run

Tests (tests/) and benchmarks (bench/) use it; it uses neither of them, but that the runner
loads the suites that tests/__init__.py lists.
"""
