# SPDX-License-Identifier: BSD-3-Clause
"""The two hosts that ranks move between in a benchmark, and how it ends where there are none."""
import contextlib
import sys
import tempfile

from testbed import mpi, network
from testbed.migration import TOP, Stage
from testbed.outcome import EXIT_FAILED, EXIT_SKIPPED, Error, Fail, Skip
from testbed.process import exit_on_sigterm

HEAT = TOP / "examples/heat2d.c"
PINGPONG = TOP / "bench/migrate/pingpong.c"
SOURCES = (HEAT, TOP / "bench/migrate/send.c", PINGPONG)


def add_options(parser):
    parser.add_argument("--mpich", metavar="PREFIX", help="MPICH to use (default: $ZC_MPICH)")
    parser.add_argument("--library", metavar="DIR", default=str(TOP / "build/release"),
                        help="build with libzcm and its tools (default build/release)")


@contextlib.contextmanager
def stage_of(options, flags=(), link=None, sources=SOURCES):
    """A Stage with the programs of SOURCES, built with FLAGS; Skip where no hosts can be made."""
    prefix = mpi.prefix_or_die(options.mpich)
    network.enter_private_namespace()
    with network.Network("2", link=link) as hosts, tempfile.TemporaryDirectory(prefix="zcm-") as scratch:
        hosts.autogroup.print_warning()
        if not hosts.between_hosts:
            raise Skip(hosts.why)
        yield Stage(prefix, hosts, options.library, TOP / "build/mpi/migrate-bench",
                    sources, scratch=scratch, flags=flags)


def exit_status(name, run, *arguments):
    """What RUN(*ARGUMENTS) makes of the program NAME; why it ends early is said on stderr."""
    exit_on_sigterm()
    try:
        run(*arguments)
    except Skip as reason:
        print(f"{name}: {reason}", file=sys.stderr)
        return EXIT_SKIPPED
    except (Error, Fail) as error:
        print(f"{name}: {error}\n{getattr(error, 'output', '')}".rstrip(), file=sys.stderr)
        return EXIT_FAILED
    return 0
