# SPDX-License-Identifier: BSD-3-Clause
"""Run an MPI program across hosts on one machine, with a time limit.

The hosts are network namespaces (see 'hosts'); those already up under
$ZC_HOSTS are used, and given the link and cores asked for; else some are made for
this run. Without the right to make them the program runs on one host over TCP
loopback, and a line says so; with --link or --cores that is an error.
"""
import argparse
import json
import sys

from testbed import mpi, network
from testbed.outcome import EXIT_USAGE, Error
from testbed.process import exit_on_sigterm

EPILOG = """exit status: the program's; 2 usage; 123 hung in MPI_Finalize (--finalize-grace);
124 time limit reached: what was left has been ended, the ranks that hung are named"""


def parse():
    parser = argparse.ArgumentParser(
        prog="mpirun", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpich", metavar="PREFIX", help="MPICH to use (default: $ZC_MPICH)")
    parser.add_argument("-n", "--ranks", type=int, default=2, metavar="N", help="default 2")
    parser.add_argument("--netmod", choices=["ucx", "zc"], help="default: the library's own")
    network.add_network_options(parser)
    parser.add_argument("-e", "--env", action="append", default=[], metavar="VAR=VAL",
                        help="set in the ranks' environment (repeatable)")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS",
                        help="default 300")
    parser.add_argument("--finalize-grace", type=float, metavar="SECONDS",
                        help=f"allowed after a rank has printed '{mpi.FINALIZING}'")
    parser.add_argument("--stacks", action="store_true", help="on a hang print stacks (gdb)")
    parser.add_argument("--result", metavar="FILE", help="write what happened as JSON")
    parser.add_argument("program")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    for pair in options.env:
        if "=" not in pair:
            parser.error(f"not VAR=VAL: {pair}")
    if options.ranks < 1:
        parser.error("-n wants a positive number")
    return options


def echo(stream, line):
    target = sys.stdout if stream == "out" else sys.stderr
    target.write(line)
    target.flush()


def main():
    options = parse()
    exit_on_sigterm()
    try:
        prefix = mpi.prefix_or_die(options.mpich)
        with network.network_of(options) as hosts:
            if hosts.hosts != options.hosts:
                print(f"mpirun: on {hosts.describe()}", file=sys.stderr)
            library = mpi.Mpi(prefix, hosts, netmod=options.netmod)
            result = library.run([options.program, *options.args], ranks=options.ranks,
                             timeout=options.timeout, finalize_grace=options.finalize_grace,
                             environment=dict(pair.split("=", 1) for pair in options.env),
                             stacks=options.stacks, echo=echo)
            if result.timed_out or result.hung_in_finalize:
                print(f"mpirun: {result.reason()}\n{result.stacks}", end="\n", file=sys.stderr)
            if options.result:
                with open(options.result, "w", encoding="utf-8") as file:
                    json.dump({"hosts": hosts.hosts, "why": hosts.why,
                               "link": hosts.link, "cores": hosts.cores,
                               "status": result.status, "timed_out": result.timed_out,
                               "hung_in_finalize": result.hung_in_finalize,
                               "unfinished": result.unfinished,
                               "seconds": round(result.seconds, 3)}, file)
                    file.write("\n")
            return result.status
    except Error as error:
        print(f"mpirun: {error}", file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
