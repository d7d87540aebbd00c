# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs across hosts: what ch4:zc promises, and what of it ch4:ucx does (--netmod ucx).

Each program is built with the prefix's mpicc and run under a time limit; a hang is a failure. With
ch4:zc the statistics that the netmod writes are checked too, and the tests about matching and
memory run in several configurations (name@copy: no rebinding; name@no-thread: no landing thread;
name@small-budget: landing memory of 3 MiB; name@by-ucx: large messages by UCX's connections for bulk;
name@left: as on a network too fast to land anything; some name@few-unexpected: 1 KiB for short
messages that are not expected, so that their senders are held). Stock ch4:ucx over TCP sometimes
never comes back from MPI_Finalize: that is noted, not counted.
"""
import contextlib

from testbed import network
from testbed.statistics import CVAR
from testbed.suite import Bed, Suite
from tests.mpi.checks import (
    by_messages, by_ucx, copied_when_unforeseen, foreseen_and_cheapest, keys_anew, landed_by_one_copy,
    left, left_by_messages, left_in_silence, no_keys_anew, no_sender_held, nothing_landed, nothing_left,
    nothing_rebound, nothing_waited, on_several_vcis, on_several_vcis_of_worlds, rebound_and_foreseen,
    senders_held, something_landed, something_left, something_offered, something_streamed, something_waited, within_budget,
    within_unexpected_budget)
from tests.mpi.job import VARIANTS, Stage, Test

# One of 8 bytes is paid for, one of 300 is announced and fetched, one of 4,000 stays with its
# sender.
FEW_UNEXPECTED = {CVAR + "UNEXPECTED_BUDGET": "1k"}
NUM_VCIS = "MPIR_CVAR_CH4_NUM_VCIS"
MOST_VCIS = 16  # mpi-ch4-netmod/build
# Copying is so dear that what a process learns from its deliveries, a factor of four at most each
# way, does not change which is cheaper, whatever this machine is.
REBINDING_IS_CHEAPER = {
    "copy_ns_fixed": 1e6, "copy_ns_per_byte": 10, "copy_ns_per_byte_long": 10,
    "mremap_ns_fixed": 1000, "mremap_ns_per_page": 10, "mremap_ns_per_2m": 1000,
    "kmod_ns_fixed": 1000, "kmod_ns_per_page": 10, "kmod_ns_per_2m": 1000}
FLOOD_BUDGET_MIB = 64
# Beside landing memory: the program, its libraries, UCX's own pools, and the
# envelopes of 10,000 messages that wait.
FLOOD_ALLOWANCE_MIB = 200
# Beside the budget, of flood_small: libraries' pools, and the envelopes of 20,000 messages that
# their senders hold.
FLOOD_SMALL_ALLOWANCE_MIB = 8
# What a process needs for 20,000 sends that it has not completed.
OWN_SENDS_MIB = 40
# The beds, beside that of two hosts, that run a test.
ONE_HOST, THREE_HOSTS, LONG = (frozenset({tag}) for tag in ("one-host", "three-hosts", "long"))


def few_unexpected(name, *args, check=senders_held, environment=None, **more):
    return Test(name, *args, name=f"{name}@few-unexpected", netmods=("zc",), check=check,
                environment={**FEW_UNEXPECTED, **(environment or {})}, **more)


def small_flood(what, messages, *args, budget_mib=1, allowance_mib=FLOOD_SMALL_ALLOWANCE_MIB,
                held=True, least=None, name=None, environment=None, **more):
    """Of MESSAGES, which may take BUDGET_MIB and ALLOWANCE_MIB."""
    limit_mib = budget_mib + allowance_mib
    return Test("flood_small", what, *map(str, (messages, limit_mib, *args)),
                name=name or f"flood-small-{what}", netmods=("zc",),
                environment={CVAR + "UNEXPECTED_BUDGET": f"{budget_mib}m", **(environment or {})},
                check=within_unexpected_budget(budget_mib << 20, held, least), **more)


def unnoticed_death(phase, who, suffix="", asserts=None, **more):
    """Of a process whose launcher goes on. ASSERTS: the message of a connection over which UCX 1.13
    may end the process that is left, when it gives up one that was not complete."""
    return Test("death", phase, who, "unnoticed", name=f"death-{phase}-{who}-unnoticed{suffix}",
                timeout=30, dies=True, netmods=("zc",), never_says="wrong data|survived",
                says="has lost its connection to rank" + (f"|got {asserts} message" if asserts else ""),
                launcher=("-disable-auto-cleanup",), **more)


def leaves(suffix, what="all", ranks=3, told="1", times=100, options=(), environment=None,
           check=None, hosts=("2", "loopback"), program="leaves", words=None, **more):
    """Ranks TOLD leave TIMES each, while all send to each other. WORDS: arguments behind FILE."""
    number = told.count(",") + 1
    return Test(program, "FILE", *(words or (str(number), *what.split())), name=f"leaves-{suffix}", ranks=ranks,
                netmods=("zc",), hosts=hosts,
                check=None if more.get("dies") else check or left(times * number),
                holder=("-r", told, "-n", str(times), "-u", "FILE", "-b", "FILE.ready", *options),
                environment={CVAR + "DETACH": "1", **(environment or {})}, **more)


def stays(suffix, why, what="all", ranks=2, **more):
    """A rank that is told to leave refuses, and goes on."""
    return leaves(f"refused-{suffix}", what, ranks=ranks, told="0", times=5, options=("-e", why),
                  check=nothing_left, says=f"does not leave: .*{why}", timeout=60, **more)


def led_away(program, *args, name=None, ranks=2, told="0", environment=None, check=None, **more):
    """A program of another test, while a rank leaves as often as it can."""
    return Test(program, *args, name=f"{name or program}@leaves", ranks=ranks, netmods=("zc",),
                hosts=("2", "loopback"), holder=("-r", told, "-n", "0"), check=check or left(1),
                environment={CVAR + "DETACH": "1", **(environment or {})}, timeout=600, **more)


def leaves_worlds(suffix, what, ranks=2, told="0", children=2, told_children="-", times=30, options=(), **more):
    """Ranks TOLD, and children TOLD_CHILDREN, leave TIMES each, while processes of several worlds send to each other."""
    by_parents = times * (told.count(",") + 1) if told != "-" else 0
    number = (told.count(",") + 1 if told != "-" else 0) + (told_children.count(",") + 1 if told_children != "-" else 0)
    return leaves(f"worlds-{suffix}", ranks=ranks, told=told, times=times,
                  words=(str(number), str(children), told_children, str(times), *what.split()), options=("-w", "20", *options),
                  **{"program": "leaves_worlds", "check": left(by_parents), "timeout": 300, **more})


def leaves_worlds_vcis(suffix, what, vcis=4, others=None, told="0", told_children="-", ranks=2, children=2, times=30,
                       environment=None, **more):
    """The same by threads, on several VCIs; children have OTHERS."""
    movers, moving_children = (0 if each == "-" else each.count(",") + 1 for each in (told, told_children))
    if 1 not in (vcis, others):
        more = {"check": on_several_vcis_of_worlds(times, movers * children + moving_children * ranks), **more}
    return leaves_worlds(f"vcis-{suffix}", f"threads {what}" + (f" children-{others}" if others else ""), told=told,
                         told_children=told_children, ranks=ranks, children=children, times=times,
                         environment={NUM_VCIS: str(vcis), **(environment or {})}, **{"timeout": 600, **more})


def leaves_dies(mover, what, ranks=1, apart=None):
    """MOVER, a parent or its child, ends while it is away, and the other one does WHAT; the holder that the launcher
    starts tells no rank to leave. APART: by this communicator, and there are two VCIs."""
    parted = what.startswith("parted")
    survive = ".*".join(["has survived"] * ranks)
    of_two = apart is not None
    return Test("leaves_dies", "start", "FILE", mover, what, *([str(apart)] if of_two else []), ranks=ranks,
                netmods=("zc",),
                name=f"leaves-dies-{mover}-{what}" + (f"-{ranks}" if ranks > 1 else "") +
                (f"-vcis-{apart}" if of_two else ""),
                hosts=("2", "loopback"), launcher=("-disable-auto-cleanup",), holder=("-r", "9"), timeout=60,
                dies=mover == "parent" and not parted, never_says="would not notice",
                says=rf"(?s)(?=.*has come back).*{survive}" if parted else survive,
                environment={CVAR + "DETACH": "1", **({NUM_VCIS: "2"} if of_two else {})})


def window_dies(what, suffix="", ranks=2, environment=None, **more):
    """Of three processes that have a window one dies. One rank: each is a world of its own."""
    return Test("window_dies", what, name=f"window-dies-{what}" + ("-3-worlds" if ranks == 1 else "") + suffix,
                netmods=("zc",), ranks=ranks, timeout=120, launcher=("-disable-auto-cleanup",), environment=environment,
                **{"says": "two have survived", **more})


def leaves_windows(suffix, what="all", told="1", times=100, check=None, timeout=600, **more):
    """The same while all use windows, which UCX reaches."""
    if not check and "dies" not in more:
        what += " reached"
    number = told.count(",") + 1
    return leaves(f"windows-{suffix}", told=told, times=times, program="leaves_windows",
                  words=(str(number), "0", "-", "0", *what.split()),
                  check=check or keys_anew(times * number), timeout=timeout, **more)


def leaves_windows_of_worlds(suffix, what="all", **more):
    """The same while processes of several worlds use windows of all of them."""
    return leaves_worlds(f"windows-{suffix}", f"{what} reached", program="leaves_windows", **more)


def leaves_vcis(suffix, what="messages collectives", vcis=4, ranks=3, told="1", times=50, environment=None,
                check=None, judge_first=None, timeout=600, **more):
    """The same while threads of all send to each other on several VCIs, of which more than the first are connected
    anew. JUDGE_FIRST: what else the statistics have to show."""
    number = times * (told.count(",") + 1)
    judge_first = judge_first or (keys_anew if "windows" in what else left)(number)
    return leaves(f"vcis-{suffix}", what, ranks=ranks, told=told, times=times, program="leaves_vcis",
                  environment={NUM_VCIS: str(vcis), **(environment or {})}, timeout=timeout,
                  check=check or on_several_vcis(number, ranks, judge_first), **more)


# Windows are reached by active messages, and not by UCX.
BY_MESSAGES = {CVAR + "NATIVE_RMA": "0"}
DEATHS = ("announced", "flight", "landed", "delivery", "idle")

TESTS = [
    Test("order", variants=True, check=something_landed, tags=ONE_HOST),
    # Messages of a few KiB, so that what is held is what waits.
    few_unexpected("cancel", tags=ONE_HOST),
    few_unexpected("ssend"),
    few_unexpected("probe", tags=ONE_HOST),
    few_unexpected("truncation"),
    few_unexpected("datatypes", "16"),
    few_unexpected("threads", "3000"),
    # Parts are no sends: none is held.
    few_unexpected("partitioned", "3000", check=None),
    Test("order", name="order-3-ranks", ranks=3, variants=True, check=something_landed,
         tags=THREE_HOSTS),
    Test("queues", "1500", ranks=3, variants=True, tags=ONE_HOST),
    Test("queues", "1500", name="queues-4-vcis", ranks=3, environment={NUM_VCIS: "4"},
         netmods=("zc",)),
    Test("probe", variants=True, check=something_landed, tags=ONE_HOST),
    Test("cancel", variants=True, check=something_landed, tags=ONE_HOST),
    Test("truncation", variants=True, check=something_landed, tags=ONE_HOST),
    Test("datatypes", variants=True, check=something_landed, tags=ONE_HOST),
    *(Test("noncontiguous", "types", name=f"noncontiguous-types{where}", netmods=("zc",),
           timeout=120, environment=environment, check=something_streamed)
      for where, environment in [("", {}), ("-unlanded", {CVAR + "LANDING_THRESHOLD": "inf"}),
                                 ("-eager", {CVAR + "RNDV_THRESHOLD": "inf"})]),
    *(Test("noncontiguous", "memory", str(mib), name=f"noncontiguous-memory{size}", netmods=("zc",),
           environment={CVAR + "LANDING_BUDGET": "16m"}, timeout=timeout, check=something_streamed,
           tags=LONG if size else ())
      for mib, size, timeout in [(256, "", 60), (2048, "-2-gib", 400)]),
    Test("noncontiguous", "truncated", name="noncontiguous-truncated", netmods=("zc",), timeout=120,
         environment={CVAR + "LANDING_BUDGET": "8m"}, check=something_streamed),
    # A channel fetches nothing by UCX.
    Test("refused", netmods=("zc",), timeout=30, environment={CVAR + "LANE": "ucx"}),
    Test("refused_credit", "single", name="refused-credit", netmods=("zc",), timeout=30,
         environment={CVAR + "UNEXPECTED_BUDGET": "1m"}),
    Test("refused_credit", "burst", name="refused-credit-burst", netmods=("zc",), timeout=30,
         hosts=("2", "loopback"), check=something_waited,
         environment={CVAR + "UNEXPECTED_BUDGET": "1m", CVAR + "BUNDLE": "1"}),
    Test("zero", check=something_landed, tags=ONE_HOST),
    Test("ssend", variants=True, check=something_landed, tags=ONE_HOST),
    Test("bursts", hosts=("2", "loopback"), check=something_waited),
    Test("bursts", name="bursts-always", netmods=("zc",), hosts=("2", "loopback"),
         environment={CVAR + "BUNDLE": "1"}, check=something_waited),
    Test("bursts", name="bursts-always-4-vcis", netmods=("zc",), hosts=("2", "loopback"),
         environment={CVAR + "BUNDLE": "1", NUM_VCIS: "4"}, check=something_waited),
    Test("bursts", name="bursts-never", netmods=("zc",), environment={CVAR + "BUNDLE": "0"},
         check=nothing_waited),
    Test("bursts", name="bursts-no-thread", netmods=("zc",), check=nothing_waited,
         environment={CVAR + "BUNDLE": "1", CVAR + "LANDING_THREAD": "0"}),
    Test("bursts", "stopped", name="bursts-stopped", hosts=("2", "loopback")),
    Test("bursts", "stopped", name="bursts-stopped-always", netmods=("zc",),
         hosts=("2", "loopback"), environment={CVAR + "BUNDLE": "1"}, check=something_waited),
    # Over shared memory there is nothing to be gained.
    Test("bursts", name="bursts-one-host", netmods=("zc",), hosts=("1",), check=nothing_waited),
    Test("bursts", "stay", "received", name="bursts-stay", netmods=("zc",),
         hosts=("2", "loopback"), check=something_waited, environment={CVAR + "BUNDLE": "1"}),
    Test("bursts", "stay", "received", "busy", name="bursts-stay-busy", netmods=("zc",),
         hosts=("2", "loopback"), check=something_waited, environment={CVAR + "BUNDLE": "1"}),
    *(Test("blocked", *arguments.split(), name=f"blocked-{arguments.split()[0]}", netmods=("zc",),
           hosts=("2", "loopback"), check=something_waited, environment={CVAR + "BUNDLE": "1"})
      for arguments in ("join", "thread", "reduce received", "start received",
                        "delete received", "query received", "handler received")),
    # The spawned process writes its statistics over those of rank 0.
    Test("blocked", "spawn", name="blocked-spawn", netmods=("zc",), hosts=("2", "loopback"),
         environment={CVAR + "BUNDLE": "1"}),
    *(Test("callbacks", what, "done", name=f"callbacks-{what}", netmods=("zc",))
      for what in ("communicator", "datatype")),
    Test("callbacks", "leave", "done", name="callbacks-leave", netmods=("zc",),
         check=something_landed),
    Test("persistent", variants=True, check=something_landed, tags=ONE_HOST),
    Test("persistent_collectives", ranks=4),
    Test("partitioned", variants=True, tags=ONE_HOST),
    Test("testall"),
    Test("collectives", ranks=4, variants=True, tags=ONE_HOST | THREE_HOSTS),
    # In two-phase calls the ranks that write are sent nearly all by ranks on other hosts.
    Test("io", "collective", "FILE", name="io-collective", ranks=4, variants=True,
         check=something_landed, tags=ONE_HOST | THREE_HOSTS),
    *(Test("io", what, "FILE", name=f"io-{what}", ranks=4, timeout=120)
      for what in ("blocking", "nonblocking", "shared", "types", "big", "missing", "handlers")),
    # By the driver for NFS, which locks what it reads and writes; here on a local file system.
    *(Test("io", what, "FILE", name=f"io-{what}-nfs", ranks=4, timeout=120,
           environment={"ROMIO_FSTYPE_FORCE": "nfs:"})
      for what in ("types", "nonblocking", "shared")),
    *(Test("io", "threads", "FILE", name=f"io-threads{suffix}", netmods=netmods, timeout=120,
           environment=environment)
      for suffix, netmods, environment in (("", ("ucx", "zc"), None), ("-4-vcis", ("zc",), {NUM_VCIS: "4"}))),
    Test("rma", variants=True, tags=ONE_HOST | THREE_HOSTS),
    Test("rma", "threads", name="rma-threads"),
    Test("rma", "nocheck", name="rma-nocheck", timeout=30),
    Test("rma", name="rma-by-messages", environment={CVAR + "NATIVE_RMA": "0"}, netmods=("zc",)),
    # Stock ch4:ucx, Debian's too, adds to other ranks' memory where units are not bytes.
    Test("atomics", ranks=4, netmods=("zc",), environment={CVAR + "NATIVE_ATOMICS": "1"},
         check=by_ucx),
    Test("atomics", name="atomics-auto", ranks=4, netmods=("zc",), hosts=("1",), check=by_ucx),
    Test("atomics", name="atomics-far", ranks=4, netmods=("zc",), hosts=("2", "loopback"),
         check=by_messages),
    # Those of ranks that may leave would have to change their way when one does.
    Test("atomics", name="atomics-where-ranks-leave", ranks=4, netmods=("zc",), hosts=("2", "loopback"),
         environment={CVAR + "NATIVE_ATOMICS": "1", CVAR + "DETACH": "1"}, check=by_messages),
    Test("atomics", name="atomics-by-messages", ranks=4, environment={CVAR + "NATIVE_RMA": "0"},
         netmods=("zc",), check=by_messages),
    # Too few ranks, and the collective steps alone would connect them all.
    Test("windows", ranks=8, netmods=("zc",), hosts=("2", "loopback")),
    Test("sends_to_itself", ranks=1),
    Test("own_calls_help_others", netmods=("zc",), environment={CVAR + "LANDING_THREAD": "0"},
         check=something_landed, tags=ONE_HOST),
    Test("goes_on_outside_mpi", netmods=("zc",), environment={CVAR + "LANDING_THREAD": "1"}),
    Test("tool", netmods=("zc",), environment={CVAR + "UNEXPECTED_BUDGET": "8k"}, tags=ONE_HOST),
    Test("tool", "closed", name="tool-closed", netmods=("zc",), check=something_landed,
         tags=ONE_HOST),
    Test("order", name="order-not-within-host", environment={CVAR + "INTRA_NODE": "0"},
         netmods=("zc",), hosts=("1",), check=nothing_landed),
    # Nothing is announced but what the kernel copies from process to process.
    Test("order", name="order-one-copy", environment={CVAR + "RNDV_THRESHOLD": "inf"},
         netmods=("zc",), hosts=("1",), check=landed_by_one_copy),
    Test("order", name="order-all-eager", environment={CVAR + "RNDV_THRESHOLD": "inf"},
         netmods=("zc",), hosts=("2", "loopback"), check=nothing_landed),
    Test("threads", variants=True, check=something_landed, tags=ONE_HOST),
    Test("threads", name="threads-4-vcis", environment={NUM_VCIS: "4"}, netmods=("zc",),
         check=something_landed),
    *(Test("bound", *arguments.split(), name="bound-" + arguments.replace(" ", "-"),
           ranks=1 if arguments.startswith("spawn") else 2, netmods=("zc",),
           environment={CVAR + "LANDING_THREAD": "auto"})
      for arguments in ("apart", "apart multiple", "together", "together multiple",
                        "spawn apart", "spawn together", "in-pairs")),
    Test("busy_processors", netmods=("zc",), hosts=("2",), environment={CVAR + "LANDING_THREAD": "auto"}),
    # With stock's yield, which does nothing, these take minutes on two processors.
    Test("waiting_threads_yield", ranks=4, netmods=("zc",), timeout=60),
    Test("waiting_threads_yield", name="waiting_threads_yield-4-vcis", ranks=4, netmods=("zc",),
         timeout=60, environment={NUM_VCIS: "4"}),
    Test("vcis", name="vcis-1", environment={NUM_VCIS: "1"}, check=something_landed,
         netmods=("zc",)),
    Test("vcis", name="vcis-4", environment={NUM_VCIS: "4"}, variants=True,
         check=something_landed, netmods=("zc",)),
    Test("vcis", name="vcis-16-3-ranks", environment={NUM_VCIS: str(MOST_VCIS)}, ranks=3,
         check=something_landed, netmods=("zc",)),
    Test("vcis", "blocked", name="vcis-1-blocked", netmods=("zc",),
         environment={NUM_VCIS: "1", "EXPECT_LANDING": "1"}, check=something_landed),
    Test("vcis", "blocked", name="vcis-4-blocked", netmods=("zc",),
         environment={NUM_VCIS: "4", "EXPECT_LANDING": "1"}, check=something_landed),
    Test("vcis", "tested", name="vcis-4-tested",
         environment={NUM_VCIS: "4", CVAR + "LANDING_THREAD": "0"}),
    *(Test("vcis", "worlds", theirs, name=f"vcis-worlds-{ours}-and-{theirs}-{2 * ranks}-processes",
           ranks=ranks, netmods=("zc",), environment={NUM_VCIS: ours}, check=something_landed,
           timeout=120, tags=ONE_HOST if ours == theirs else ())
      for ours, theirs, ranks in (("4", "4", 1), ("4", "4", 2), ("4", "2", 1), ("2", "3", 2),
                                  ("1", "4", 1), ("4", "1", 1))),
    Test("vcis", "unequal", name="vcis-unequal", netmods=("zc",), dies=True, timeout=30,
         says=f"{NUM_VCIS} must be the same for all processes: it is . here, and . at rank"),
    Test("vcis", name="vcis-too-many", netmods=("zc",), dies=True, timeout=30,
         environment={NUM_VCIS: str(MOST_VCIS + 1)},
         says=f"{NUM_VCIS} is {MOST_VCIS + 1}, more than the {MOST_VCIS} that"),
    Test("finalize", "flight", name="finalize-4-vcis-stress", repeat=20, timeout=30,
         netmods=("zc",), environment={NUM_VCIS: "4"}),
    Test("untouched", variants=True, check=something_landed, tags=ONE_HOST | THREE_HOSTS),
    # Within one host what the kernel copies may be faster than a delivery, and then stays with its
    # sender. Which of rebinding and copying is cheaper depends on the machine, unless the costs are
    # given: on some it is copying, of 8 MiB as well.
    *(Test("rebound", "20", str(mib << 20), name=f"rebound-{mib}-mib", hosts=("2",),
           costs=REBINDING_IS_CHEAPER, check=rebound_and_foreseen) for mib in (8, 16)),
    *(Test("rebound", "20", str(mib << 20), name=f"rebound-{mib}-mib-as-measured", hosts=("2",),
           check=foreseen_and_cheapest) for mib in (8, 16)),
    Test("wrong_prediction", variants=True, check=copied_when_unforeseen),
    Test("reuse", variants=True, check=something_landed),
    Test("reuse", name="reuse-fast-network", netmods=("zc",), check=something_left,
         hosts=("2",), environment={CVAR + "NETWORK_RATE": "inf"}),
    Test("memory", variants=True, check=something_landed),
    Test("limits", "5700", netmods=("zc",)),
    Test("limits", "400", name="limits-few", netmods=("zc",), check=nothing_rebound),
    Test("limits", "locked", "64", name="limits-locked", netmods=("zc",),
         hosts=("2", "loopback"),
         environment={CVAR + "STATS_FILE": ""}),
    Test("landing_idle", netmods=("zc",), timeout=90, check=something_landed),
    Test("line", netmods=("zc",), environment={CVAR + "LANDING_BUDGET": "5m"}),
    Test("line", "two", name="line-2-vcis", netmods=("zc",),
         environment={CVAR + "LANDING_BUDGET": "5m", NUM_VCIS: "2"}),
    Test("many_ranks", ranks=8),
    *(Test("background", what, name=f"background-{what}", ranks=5, netmods=("zc",))
      for what in ("user-op", "idup")),
    Test("background", "poll", name="background-poll", netmods=("zc",)),
    *(Test("background", "advances", name=f"background-advances-{ranks}-ranks", ranks=ranks,
           netmods=("zc",)) for ranks in (2, 3, 4)),
    Test("background", "advances", name="background-advances-4-vcis", ranks=3, netmods=("zc",),
         environment={NUM_VCIS: "4"}),
    Test("first_contact", ranks=8, repeat=5, netmods=("zc",)),
    Test("first_contact", "60", name="first_contact-few-descriptors", ranks=8, netmods=("zc",),
         hosts=("2", "loopback"), says="too few descriptors"),
    Test("halo", "-r", "8", "-c", "65536", "-i", "20", "-x", "3", name="halo-4-ranks", ranks=4,
         variants=True, tags=ONE_HOST | THREE_HOSTS),
    Test("flood", "10000", str(FLOOD_BUDGET_MIB + FLOOD_ALLOWANCE_MIB), timeout=180,
         environment={CVAR + "LANDING_BUDGET": f"{FLOOD_BUDGET_MIB}m"},
         check=within_budget(FLOOD_BUDGET_MIB)),
    Test("flood_small", "send", "1000000", name="flood-small", timeout=120),
    small_flood("send", 100000),
    small_flood("isend", 100000, tags=ONE_HOST),
    small_flood("late", 100000, "3", tags=ONE_HOST),
    small_flood("reverse", 100000, budget_mib=64, allowance_mib=-48, held=False, least=6000000),
    small_flood("wild", 20000, ranks=17, timeout=180),
    # The longest of them finds no credit while there is enough for others.
    small_flood("sizes", 20000, timeout=180, least=32 << 10),
    small_flood("unequal", 12000, allowance_mib=40, timeout=180),
    small_flood("overtake", 20000),
    small_flood("both", 20000, allowance_mib=FLOOD_SMALL_ALLOWANCE_MIB + OWN_SENDS_MIB),
    small_flood("control", 20000),
    # 128 bytes each at most: 37 MiB.
    small_flood("send", 300000, budget_mib=64, allowance_mib=-27, held=False, least=1 << 20,
                name="flood-small-budget"),
    # With costs that are given: to measure them takes memory for a while.
    Test("flood_small", "queued", "1000000", name="flood-small-queued", netmods=("zc",),
         costs=REBINDING_IS_CHEAPER, tags=ONE_HOST),
    Test("flood_small", "send", "300000", name="flood-small-no-limit", netmods=("zc",),
         environment={CVAR + "UNEXPECTED_BUDGET": "inf"}, check=no_sender_held),
    small_flood("send", 100000, name="flood-small-4-vcis", environment={NUM_VCIS: "4"}),
    small_flood("late", 10000000, "60", budget_mib=64, name="flood-small-10000000",
                timeout=900, tags=LONG),
    *(Test("flood_worlds", *arguments.split(), name=f"flood-worlds-{arguments.split()[0]}",
           netmods=("zc",), environment={CVAR + "UNEXPECTED_BUDGET": "1m"}, timeout=120)
      for arguments in ("up 50000", "down 50000", "both 10000", "greeting 0 20")),
    *(Test("flood_worlds", what, name=f"flood-worlds-{what}", netmods=("zc",), ranks=1,
           environment={CVAR + "UNEXPECTED_BUDGET": "1m"}, timeout=60)
      for what in ("rejoin", "retry")),
    # Over shared memory UCX never gives up what a dead process has not read.
    Test("flood_worlds", "die", "40000", name="flood-worlds-die", netmods=("zc",), ranks=1,
         hosts=("2", "loopback"),
         environment={CVAR + "UNEXPECTED_BUDGET": "1m"}, timeout=60,
         launcher=("-disable-auto-cleanup",), says="the parent has survived"),
    Test("flood_worlds", "both", "50000", name="flood-worlds-no-limit", netmods=("zc",),
         environment={CVAR + "UNEXPECTED_BUDGET": "inf"}),
    *(Test("flood_small", "die", "50000", name=f"flood-small-{who}-dies", netmods=("zc",),
           environment={CVAR + "UNEXPECTED_BUDGET": "1m", "DIES": who}, timeout=60, dies=True,
           says="the flood is here", never_says="instead of")
      for who in ("sender", "receiver")),
    *(Test("flood_small", "die", "50000", "0", "unnoticed", netmods=("zc",), hosts=("2",),
           name=f"flood-small-{who}-dies-unnoticed", timeout=60, dies=True,
           environment={CVAR + "UNEXPECTED_BUDGET": "1m", "DIES": who}, never_says="instead of",
           says="has lost its connection to rank", launcher=("-disable-auto-cleanup",))
      for who in ("sender", "receiver")),
    Test("finalize", "quick", name="finalize-quick-stress", repeat=20, timeout=30,
         tags=ONE_HOST),
    # Where there is another interface than lo, UCX connects over both.
    Test("finalize", "traced", name="finalize-traced-stress", repeat=40, timeout=30,
         netmods=("zc",), hosts=("loopback",),
         environment={"UCX_NET_DEVICES": "all", CVAR + "LANDING_THREAD": "0",
                      CVAR + "STATS_FILE": ""}),
    Test("finalize", "unmatched", name="finalize-unmatched-stress", repeat=20, timeout=30,
         netmods=("zc",)),
    Test("finalize", "flight", name="finalize-flight-stress", repeat=20, timeout=30,
         netmods=("zc",)),
    *(Test("spawn", *arguments.split(), name=f"spawn-{arguments.split()[0]}", netmods=("zc",),
           timeout=60, tags=ONE_HOST)
      for arguments in ("exchange", "multiple", "arguments", "connect 200", "reconnect 150", "leave")),
    *(Test("spawn", what, name=f"spawn-{what}", netmods=("zc",), timeout=60)
      for what in ("tree", "closed-port", "died", "stopped")),
    # As below zc-hold, which another command stands for.
    *(Test("spawn", what, name=f"spawn-{what}-by-another", netmods=("zc",), timeout=60,
           environment={"ZC_HOLD_SPAWNED": "env\nBY=zc-hold and more"}) for what in ("exchange", "tree", "arguments")),
    # What a rank below zc-hold has started has its environment, and is not below zc-hold.
    Test("spawn", "exchange", name="spawn-exchange-by-nothing", netmods=("zc",), timeout=60,
         environment={"ZC_HOLD_SPAWNED": "env\nBY=zc-hold and more", "ZC_HOLD_RANK": "1 0 1 h1 job",
                      CVAR + "DETACH": "1", CVAR + "DETACH_FD": "77"}),
    # With lo, one more is too many for the name of a port.
    *(Test("spawn", what, name=f"spawn-{what}-{interfaces}-more-interfaces", netmods=("zc",),
           ranks=ranks, timeout=60, hosts=("2",), interfaces=interfaces)
      for what, ranks, interfaces in (("exchange", 2, 1), ("exchange", 2, 12), ("tree", 2, 12),
                                      ("held", 1, 1), ("lag", 1, 1), ("ended-port", 1, 1),
                                      ("died", 2, 1), ("closed-port", 2, 1), ("ports", 3, 1))),
    Test("spawn", "elsewhere", name="spawn-elsewhere", netmods=("zc",), hosts=("2",), timeout=60, launcher=("-ppn", "2")),
    Test("spawn", "exit", name="spawn-exit", netmods=("zc",), timeout=60,
         says="its parent has exited"),
    Test("spawn", "outlive", name="spawn-outlive", netmods=("zc",), timeout=60, dies=True,
         says="BAD TERMINATION"),
    *(Test("spawn_fails", "kinds", name=f"spawn-fails{suffix}", netmods=("zc",), timeout=120, tags=ONE_HOST,
           says="before MPI_Init .signal 9", launcher=launcher, environment=environment)
      for suffix, launcher, environment in (
          ("", (), {}), ("-uncleaned", ("-disable-auto-cleanup",), {}),
          ("-by-another", (), {"ZC_HOLD_SPAWNED": "env\nBY=zc-hold and more"}))),
    Test("spawn_fails", "rounds", "200", name="spawn-fails-rounds", netmods=("zc",), timeout=120, tags=ONE_HOST),
    Test("spawn_fails", "rounds", "1000", name="spawn-fails-rounds-1000", netmods=("zc",), timeout=600, tags=LONG),
    Test("spawn_fails", "no-host", network.ADDRESSES[1], name="spawn-fails-no-host", netmods=("zc",), timeout=120, hosts=("2",),
         says="a launcher has ended before", environment={"ZC_MUCH_ENVIRONMENT": "x" * 120_000}),
    Test("spawn_fails", "fatal", name="spawn-fails-fatal", netmods=("zc",), timeout=30, dies=True,
         says="Error in spawn call"),
    Test("spawn_fails", "waits", "FILE", name="spawn-fails-not-while-it-waits", netmods=("zc",), timeout=60,
         environment={CVAR + "LANDING_THREAD": "0"}),
    *(Test("spawn_fails", "names", name=f"spawn-beside-names{suffix}", netmods=("zc",), ranks=1, timeout=120, tags=ONE_HOST,
           environment=environment) for suffix, environment in (("", {}), ("-4-vcis", {NUM_VCIS: "4"}))),
    Test("spawn", "ports", name="spawn-ports", netmods=("zc",), ranks=3, timeout=60),
    *(Test("spawn", what, name=f"spawn-{what}", netmods=("zc",), ranks=1, timeout=60)
      for what in ("lag", "held", "withdraw", "given-up", "ended-port")),
    *(Test("spawn", what, name=f"spawn-{what}-4-vcis", netmods=("zc",), timeout=60,
           environment={NUM_VCIS: "4"}) for what in ("exchange", "tree", "leave")),
    Test("spawn", "crowd", *network.ADDRESSES, netmods=("zc",), ranks=1, hosts=("2",),
         environment={CVAR + "LANDING_THREAD": "auto"}, name="spawn-crowd"),
    # On one host the first of them go over shared memory, and keep what that costs.
    Test("spawn", "rounds", "40", name="spawn-rounds", netmods=("zc",), timeout=120,
         hosts=("2", "loopback")),
    Test("spawn", "rounds", "10000", name="spawn-rounds-10000", netmods=("zc",), ranks=1,
         timeout=3600, tags=LONG),
    *(Test("worlds", *arguments.split(), name=f"worlds-{arguments.split()[0]}", netmods=("zc",),
           ranks=2 if arguments == "used" else 1, timeout=60, tags=ONE_HOST)
      for arguments in ("used", "listens", "churn 60", "silent 60", "late 6", "part 3",
                        "finalizes")),
    *(Test("worlds", what, times, name=f"worlds-{what}", netmods=("zc",), ranks=1, timeout=120,
           environment={NUM_VCIS: "4"}, tags=ONE_HOST)
      for what, times in (("vcis", "30"), ("late-vcis", "4"))),
    *(Test("worlds", "credited", children, name=f"worlds-credited-{children}-of-{budget}",
           netmods=("zc",), ranks=1, timeout=60,
           environment={NUM_VCIS: str(MOST_VCIS), CVAR + "UNEXPECTED_BUDGET": budget})
      for children, budget in (("1", "4m"), ("4", "16m"))),
    *(Test("worlds", what, name=f"worlds-{what}", netmods=("zc",), ranks=ranks, timeout=60,
           hosts=("2", "loopback"), launcher=("-disable-auto-cleanup",), says=says, environment=more)
      for what, ranks, says, more in (
          ("died", 1, "the parent has survived", None),
          ("died-vcis", 1, "the parent has survived", {NUM_VCIS: "4"}),
          ("came-back", 1, "the parent has survived", None),
          ("leaders", 2, "the parents have survived", None),
          ("ended", 1, "it has ended well", None),
          ("ended-vcis", 1, "it has ended well", {NUM_VCIS: "4"}),
          ("left-alone", 2, "the buffer is left alone",
           {"MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": "pairwise",
            "MPIR_CVAR_IBCAST_INTRA_ALGORITHM": "tsp_tree"}))),
    *(window_dies(what, ranks=ranks) for ranks in (1, 2) for what in (
        "operations", "local", "fetching", "fetched", "locks", "lock-alls", "holds", "queues", "starts", "posts", "tests",
        "completes", "fences", "natives", "asks", "creating", "freeing")),
    *(window_dies("atomics", ranks=ranks, environment={CVAR + "NATIVE_ATOMICS": "1"}) for ranks in (1, 2)),
    *(window_dies("threads", suffix, environment=environment)
      for suffix, environment in (("", None), ("-vcis", {NUM_VCIS: "4"}), ("-no-thread", {CVAR + "LANDING_THREAD": "0"}))),
    window_dies("twice", ranks=1, says="one has survived"),
    *(window_dies(what, suffix, environment=environment)
      for suffix, environment in (("-vcis", {NUM_VCIS: "4"}), ("-detach", {CVAR + "DETACH": "1"}),
                                  ("-messages", {CVAR + "NATIVE_RMA": "0"}), ("-no-thread", {CVAR + "LANDING_THREAD": "0"}))
      for what in ("operations", "fetching", "fetched", "locks", "lock-alls", "queues", "starts", "fences", "natives", "asks")
      # An assertion of UCX 1.13 may end those that are left: docs/design.md
      if suffix != "-detach" or what not in ("fetching", "fetched")),
    Test("partitioned_worlds", "exchange", name="partitioned-worlds-exchange", netmods=("zc",), ranks=1,
         timeout=60, tags=ONE_HOST),
    *(Test("partitioned_worlds", what, name=f"partitioned-worlds-{what}", netmods=("zc",), ranks=1,
           timeout=60, hosts=("2", "loopback"), launcher=("-disable-auto-cleanup",),
           says="the parent has survived")
      for what in ("died", "replaced")),
    Test("worlds", "many", "24", name="worlds-many", netmods=("zc",), ranks=1, timeout=120,
         environment={CVAR + "UNEXPECTED_BUDGET": "16m"}),
    Test("worlds", "churn", "1000", name="worlds-churn-1000", netmods=("zc",), ranks=1,
         timeout=600, tags=LONG | ONE_HOST),
    Test("worlds", "many", "300", name="worlds-many-300", netmods=("zc",), ranks=1, timeout=900,
         tags=LONG),
    Test("last_words", name="abort-last-words", repeat=5, timeout=30, dies=True,
         says="line 1000 of 1000"),
    *(Test("beside_bulk", what, name=f"beside-bulk-{what}", netmods=("zc",),
           hosts=("2", "loopback"), check=something_offered) for what in ("word", "answer")),
    Test("beside_bulk", "word", name="beside-bulk-word-by-ucx", netmods=("zc",),
         environment={CVAR + "LANE": "ucx"}, hosts=("2", "loopback")),
    # In one job of fifteen or so each answer waits for the large message all the same; why is not
    # known yet.
    Test("beside_bulk", "answer", name="beside-bulk-answer-by-ucx", netmods=("zc",),
         environment={CVAR + "LANE": "ucx"}, hosts=("2", "loopback"), tags=LONG),
    Test("answers_itself", netmods=("zc",), hosts=("2", "loopback"), check=something_left,
         environment={CVAR + "LANE": "ucx", CVAR + "BULK_APART": "1", CVAR + "NETWORK_RATE": "inf"}),
    *(Test("first_bulk", way, what, name=f"first-bulk-{what}-{way}", netmods=("zc",),
           hosts=("2", "loopback"),
           environment={CVAR + "LANE": "ucx", CVAR + "BULK_APART": "1" if what == "apart" else "auto"})
      for what, way in (("shares", "up"), ("shares", "down"), ("shares", "both"), ("large", "up"),
                        ("large", "down"), ("apart", "up"), ("burst", "up"), ("burst", "both"))),
    *(Test("channel", what, name=f"channel-{what}", netmods=("zc",), hosts=("2",),
           environment={CVAR + "LANE": "thread"})
      for what in ("open", "silent", "slow", "strangers", "no-memory", "length")),
    *(Test("channel", what, name=f"channel-{what}", netmods=("zc",), hosts=("2",),
           environment={CVAR + "LANE": "thread"}, says="it has no channel of its own")
      for what in ("none-listens", "none-connects", "nowhere", "unlike")),
    *(leaves(f"{ranks}-ranks", ranks=ranks, times=times, timeout=600)
      for ranks, times in ((2, 100), (3, 100), (8, 50))),
    leaves("tracked", times=5, options=("-f",)),
    *(leaves(f"told-{what}", what, times=5, options=("-m",))
      for what in ("all", "pairs", "collectives")),
    leaves("no-thread", environment={CVAR + "LANDING_THREAD": "0"}, timeout=600),
    leaves("1000-times", times=1000, options=("-c",), timeout=900, tags=LONG),
    leaves("computes", "pairs computing", times=50, timeout=600),
    leaves("to-itself", "itself collectives", ranks=2, times=50, timeout=600,
           check=left(50)),
    # What is announced stays with its sender, unless a rank leaves: then there is no landing memory
    # for all of it.
    leaves("announced", times=50, timeout=600, check=left(50, apart=True),
           environment={CVAR + "LANDING_THRESHOLD": "inf", CVAR + "RNDV_THRESHOLD": "1k",
                        CVAR + "LANDING_BUDGET": "1m", CVAR + "BULK_APART": "1"}),
    leaves("one-connection", times=50, timeout=600, check=left(50, apart=False),
           environment={CVAR + "BULK_APART": "0"}),
    leaves("few-unexpected", times=50, timeout=600,
           environment={CVAR + "UNEXPECTED_BUDGET": "64k", CVAR + "LANDING_BUDGET": "1m"}),
    leaves("holds-nothing-of-ucx", ranks=2, times=20, options=("-c",), timeout=120),
    leaves("stale-token", ranks=2, times=20, options=("-s",), timeout=120),
    *(Test("copied", "FILE", *late, name=f"leaves-stale-copy{''.join('-' + word for word in late)}", ranks=3,
           netmods=("zc",), hosts=("2", "loopback"), check=left(times), timeout=120, says="the copy was refused",
           # A rank that has no processor does not answer within a second.
           holder=("-r", "0", "-n", str(times), "-u", "FILE", "-l", "not all ranks have answered in time"),
           environment={CVAR + "DETACH": "1", CVAR + "LANDING_THREAD": "0", **more})
      for late, times, more in (((), 20, {}), (("late",), 1, {CVAR + "DETACH_SECONDS": "1"}))),
    leaves("two-at-once", told="0,2", times=20, options=("-w", "1"), timeout=600),
    # One has to stay: of two that are told at once one is refused, and told again.
    leaves("both-of-two-at-once", told="0,1", ranks=2, times=20, options=("-w", "1"), timeout=600),
    leaves("all-at-once", told="0,1,2", times=20, options=("-w", "1", "-a", "20"), timeout=600),
    leaves("most-at-once", told="0,1,2,4,5", ranks=6, times=20, options=("-w", "20", "-a", "50"), timeout=600),
    leaves("two-together", told="0,2", times=20, options=("-g",), timeout=600),
    leaves("two-together-apart", told="0,2", times=20, options=("-g",), timeout=600,
           environment={CVAR + "BULK_APART": "1"}),
    leaves("all-but-one-together", told="0,1,3,4", ranks=5, times=10, options=("-g", "-a", "20"), timeout=600),
    leaves("together-no-thread", told="0,2", times=20, options=("-g",), timeout=600,
           environment={CVAR + "LANDING_THREAD": "0"}),
    leaves("together-1000-times", told="0,1,2,3,4,5,6", ranks=8, times=1000, options=("-g", "-a", "50"),
           timeout=3000, tags=LONG),
    leaves("31-of-32-together", told=",".join(map(str, range(31))), ranks=32, times=20, options=("-g", "-a", "50"),
           timeout=3000, tags=LONG),
    leaves("silent-peer", told="0", times=50, options=("-t", "in time", "-x", "2", "-w", "200"),
           timeout=240, says="not all ranks have answered in time .rank 2",
           environment={CVAR + "DETACH_SECONDS": "1"}),
    # Hydra may lose what is said of it.
    leaves("peer-dies", told="0", times=10, options=("-k", "2"), timeout=60, dies=True,
           never_says="wrong data", launcher=("-disable-auto-cleanup",)),
    leaves("peer-of-two-dies", told="0,1", ranks=4, times=10, options=("-g", "-k", "3"), timeout=60, dies=True,
           never_says="wrong data", launcher=("-disable-auto-cleanup",)),
    Test("zero", name="bad-setting-detach_fd", timeout=30, dies=True, netmods=("zc",),
         environment={CVAR + "DETACH": "1", CVAR + "DETACH_FD": "99"},
         says=f"bad value of {CVAR}DETACH_FD: no socket"),
    *(stays(f"port{suffix}", "it has a port open", "pairs port", environment=environment)
      for suffix, environment in (("", None), ("-vcis", {NUM_VCIS: "2"}))),
    leaves("beside-a-child", "pairs world", ranks=2, told="0", times=30, options=("-w", "20"), says="rank 0 left 30 times",
           check=lambda stats: None),
    leaves("beside-a-child-vcis", "pairs world", ranks=2, told="0", times=30, options=("-w", "20"),
           says="rank 0 left 30 times", check=lambda stats: None, environment={NUM_VCIS: "2"}),
    leaves("beside-an-ended-child", "pairs ended", ranks=2, told="0", times=30, says="rank 0 left 30 times",
           check=lambda stats: None),
    leaves("beside-a-dead-child", "pairs died", ranks=2, told="0", times=30, says="rank 0 left 30 times",
           check=lambda stats: None, launcher=("-disable-auto-cleanup",)),
    leaves_worlds("pairs", "pairs"),
    leaves_worlds("wildcards", "wildcards pairs"),
    leaves_worlds("across", "across computing"),
    leaves_worlds("collectives", "collectives"),
    leaves_worlds("all", "pairs wildcards across collectives computing", ranks=3, told="1", children=3),
    leaves_worlds("alone", "across pairs", ranks=1, children=1),
    leaves_worlds("no-thread", "pairs across computing", environment={CVAR + "LANDING_THREAD": "0"}),
    leaves_worlds("few-unexpected", "pairs across", environment={CVAR + "UNEXPECTED_BUDGET": "64k",
                                                                 CVAR + "LANDING_BUDGET": "1m"}),
    leaves_worlds("children", "pairs across", told="0", told_children="1", options=("-t", "another world")),
    leaves_worlds("all-of-both", "pairs across", told="0,1", told_children="0,1", times=15),
    leaves_worlds("creates", "creates"),
    leaves_worlds("children-create", "creates pairs", told="1", told_children="0,1", times=15),
    leaves_worlds("spawns", "spawns pairs"),
    leaves_worlds("ports", "ports pairs", options=("-t", "has a port open")),
    leaves_worlds("early", "pairs creates early", told="0,1"),
    leaves_worlds("stale-token", "pairs across", options=("-s",)),
    leaves_worlds("holds-nothing-of-ucx", "pairs across", options=("-c",)),
    # Several VCIs. All that processes of two worlds have on one of them is its own.
    leaves_worlds("4-vcis", "pairs wildcards across collectives", environment={NUM_VCIS: "4"}),
    leaves_worlds_vcis("2", "pairs", vcis=2),
    leaves_worlds_vcis("4", "pairs across"),
    leaves_worlds_vcis("16", "pairs", vcis=MOST_VCIS, times=10),
    leaves_worlds_vcis("all", "pairs wildcards across collectives computing", ranks=3, told="1", children=3),
    leaves_worlds_vcis("no-thread", "pairs across computing", environment={CVAR + "LANDING_THREAD": "0"}),
    leaves_worlds_vcis("few-unexpected", "pairs across",
                       environment={CVAR + "UNEXPECTED_BUDGET": "64k", CVAR + "LANDING_BUDGET": "1m"}),
    leaves_worlds_vcis("children", "pairs across", told_children="1", options=("-t", "another world")),
    leaves_worlds_vcis("all-of-both", "pairs across", told="0,1", told_children="0,1", times=15),
    leaves_worlds_vcis("creates", "creates"),
    leaves_worlds_vcis("children-create", "creates pairs", told="1", told_children="0,1", times=10),
    leaves_worlds_vcis("spawns", "spawns pairs"),
    leaves_worlds_vcis("ports", "ports pairs", options=("-t", "has a port open")),
    leaves_worlds_vcis("early", "pairs creates early", told="0,1", times=15),
    leaves_worlds_vcis("stale-token", "pairs across", options=("-s",)),
    leaves_worlds_vcis("holds-nothing-of-ucx", "pairs across", options=("-c",)),
    # Of worlds with different numbers of VCIs all communicators are on those that both have.
    *(leaves_worlds_vcis(f"{vcis}-and-{others}{who}", "pairs across", vcis=vcis, others=others, told=told,
                         told_children=told_children, times=times)
      for vcis, others in ((4, 1), (1, 4), (4, 2), (2, 3))
      for who, told, told_children, times in (("", "0", "-", 30), ("-all", "0,1", "0,1", 15))),
    leaves_worlds_vcis("1000-times", "pairs across creates", told="0,1", told_children="0,1", times=1000, timeout=6000,
                       tags=LONG),
    *(leaves_dies(mover, what, apart=apart) for apart in (None, 0, 1) for mover in ("parent", "child")
      for what in ("receives", "sends", "ssends", "probes", "reduces", "finalizes", "parted", "parted-freed")),
    *(leaves_dies(mover, what, apart=apart) for apart in (None, 1) for mover in ("parent", "child")
      for what in ("puts", "rputs", "rgets", "draws", "locks", "fences", "starts", "posts")),
    *(leaves_dies("child", what, ranks=2, apart=apart) for apart in (None, 0, 1) for what in ("parted", "parted-freed")),
    *(leaves_windows_of_worlds(what, f"{what} computing") for what in ("fence", "pscw", "lock", "held")),
    leaves_windows_of_worlds("all"),
    leaves_windows_of_worlds("alone", ranks=1, children=1),
    leaves_windows_of_worlds("3-and-3", ranks=3, children=3, told="1", told_children="2"),
    leaves_windows_of_worlds("children", told="0", told_children="1", options=("-t", "another world")),
    leaves_windows_of_worlds("all-of-both", ranks=3, told="0,1,2", told_children="0,1", times=15),
    leaves_windows_of_worlds("connected", "all connect", ranks=3, told="0,1", told_children="0,1", times=15),
    leaves_windows_of_worlds("left-before", "all first", ranks=1, told_children="0,1", times=15),
    leaves_windows_of_worlds("left-before-connected", "all first connect", ranks=1, told_children="0,1", times=15),
    leaves_windows_of_worlds("no-thread", told_children="0", environment={CVAR + "LANDING_THREAD": "0"}),
    leaves_windows_of_worlds("holds-nothing-of-ucx", options=("-c",)),
    leaves_worlds("32-children", "pairs", children=30, times=10),
    # The statistics of a child may take the place of its parent's, so the holder tells how often a rank has left.
    *(led_away(program, *words.split(), name=f"{program}-{words.split()[0]}{told and '-' + told.replace(',', '-')}",
               ranks=ranks, told=told, check=lambda stats: None, says=r"left [1-9]\d* times")
      for program, words, ranks, told in (
          ("spawn", "exchange", 2, "0"), ("spawn", "exchange", 2, "1"), ("spawn", "multiple", 2, "0"),
          ("spawn", "connect 200", 2, "0"), ("spawn", "reconnect 150", 2, "0,1"), ("spawn", "tree", 2, "0"),
          ("spawn", "ports", 3, "0,1,2"), ("spawn", "rounds 40", 2, "0,1"), ("worlds", "finalizes", 1, "0"),
          ("partitioned_worlds", "exchange", 1, "0"))),
    *(led_away(program, *words.split(), name=f"{program}-{words.split()[0]}-4-vcis", ranks=ranks, told=told,
               check=lambda stats: None, says=r"left [1-9]\d* times", environment={NUM_VCIS: "4"})
      for program, words, ranks, told in (
          ("spawn", "exchange", 2, "1"), ("spawn", "multiple", 2, "0"), ("spawn", "connect 200", 2, "0"),
          ("spawn", "reconnect 150", 2, "0,1"), ("spawn", "tree", 2, "0"), ("spawn", "ports", 3, "0,1,2"),
          ("spawn", "rounds 40", 2, "0,1"), ("worlds", "finalizes", 1, "0"), ("partitioned_worlds", "exchange", 1, "0"))),
    leaves_worlds("1000-times", "pairs across creates", told="0,1", told_children="0,1", times=1000, timeout=3000,
                  tags=LONG),
    stays("shared-memory", "UCX uses shared memory", hosts=("1",)),
    *(led_away(*words.split(), ranks=ranks) for words, ranks in (
        ("order", 3), ("probe", 2), ("cancel", 2), ("ssend", 2), ("truncation", 2),
        ("threads", 2), ("persistent_collectives", 4), ("collectives", 4), ("bursts", 2))),
    led_away("noncontiguous", "types", told="1", tags=LONG),
    led_away("queues", "1500", ranks=3, told="2"),
    led_away("datatypes", "16"),
    # Several VCIs. Those of a program that uses one leave as well.
    leaves("several-vcis", environment={NUM_VCIS: "2"}),
    *(leaves_vcis(f"{vcis}-{ranks}-ranks", vcis=vcis, ranks=ranks, times=times, told=str(ranks - 1))
      for vcis, ranks, times in ((2, 2, 100), (4, 2, 100), (2, 3, 50), (4, 3, 50), (4, 8, 10))),
    leaves_vcis("16", vcis=MOST_VCIS, times=20),
    leaves_vcis("no-thread", environment={CVAR + "LANDING_THREAD": "0"}),
    leaves_vcis("computes", "messages computing"),
    leaves_vcis("blocked", "messages blocked", vcis=2),
    # No thread asks for progress on the first VCI.
    *(leaves_vcis(f"alone{suffix}", "alone", vcis=2, ranks=2, times=20, check=left_in_silence(20), timeout=120,
                  environment=environment)
      for suffix, environment in (("", {}), ("-no-thread", {CVAR + "LANDING_THREAD": "0"}))),
    # Nor does progress on another VCI look there, so the other rank does not answer.
    leaves_vcis("no-global-progress", "alone probing", vcis=2, ranks=2, told="0", times=3, options=("-e", "in time"),
                environment={"MPIR_CVAR_CH4_GLOBAL_PROGRESS": "0", CVAR + "DETACH_SECONDS": "1"}, check=nothing_left,
                says="does not leave: not all ranks have answered in time .rank 1", timeout=120),
    leaves_vcis("windows", "messages windows"),
    leaves_vcis("windows-computing", "windows computing", ranks=2),
    leaves_vcis("windows-two-together", "windows messages", told="0,2", times=20, options=("-g",)),
    leaves_vcis("windows-by-messages", "windows", environment={**BY_MESSAGES}, judge_first=left(50)),
    leaves_vcis("announced", "messages", judge_first=left(50, apart=True),
                environment={CVAR + "LANDING_THRESHOLD": "inf", CVAR + "RNDV_THRESHOLD": "1k",
                             CVAR + "LANDING_BUDGET": "1m", CVAR + "BULK_APART": "1"}),
    leaves_vcis("one-connection", environment={CVAR + "BULK_APART": "0"}),
    # Credit is returned in packets of its own, which have no numbers.
    leaves_vcis("few-unexpected", environment={CVAR + "UNEXPECTED_BUDGET": "64k", CVAR + "LANDING_BUDGET": "1m"}),
    leaves_vcis("holds-nothing-of-ucx", ranks=2, times=20, options=("-c",)),
    leaves_vcis("stale-token", ranks=2, times=20, options=("-s",)),
    leaves_vcis("two-at-once", told="0,2", times=20, options=("-w", "1")),
    leaves_vcis("two-together", told="0,2", times=20, options=("-g",)),
    leaves_vcis("all-at-once", told="0,1,2", times=10, options=("-w", "1", "-a", "20")),
    leaves_vcis("silent-peer", told="0", times=30, options=("-t", "in time", "-x", "2", "-w", "200"), timeout=240,
                says="not all ranks have answered in time .rank 2", environment={CVAR + "DETACH_SECONDS": "1"}),
    leaves_vcis("peer-dies", told="0", times=10, options=("-k", "2"), timeout=60, dies=True,
                never_says="wrong data", launcher=("-disable-auto-cleanup",)),
    leaves_vcis("1000-times", "messages collectives windows", times=1000, options=("-c",), timeout=3000, tags=LONG),
    *(led_away(program, *words, name=f"{name}-4-vcis", ranks=ranks, environment={NUM_VCIS: "4"})
      for program, words, name, ranks in (
          ("vcis", ("traffic",), "vcis", 2), ("threads", (), "threads", 2), ("rma", ("threads",), "rma-threads", 2),
          ("queues", ("1500",), "queues", 3))),
    # Windows. windows.c counts connections, of which a rank that leaves makes some to all.
    *(test for by, environment in (("", {}), ("-by-messages", BY_MESSAGES)) for test in (
        led_away("rma", name=f"rma{by}", environment=environment),
        led_away("rma", name=f"rma-target{by}", told="1", environment=environment),
        led_away("rma", "threads", name=f"rma-threads{by}", environment=environment),
        led_away("atomics", name=f"atomics{by}", ranks=4, told="2", environment=environment),
        *(leaves(f"windows{suffix}{by}", "pairs window", told=told, times=times, environment=environment,
                 options=options, timeout=600)
          for suffix, told, times, options in (("", "1", 100, ()), ("-two-at-once", "0,2", 20, ("-g", )))))),
    # A rank comes back with a port that it has had before, and the two count their connections differently.
    led_away("rma", "threads", name="rma-threads-ports-again",
             environment={**BY_MESSAGES, "UCX_TCP_PORT_RANGE": "20001-20200"}),
    # UCX could do them, but for the messages that go on while a rank is away.
    led_away("atomics", name="atomics-wanted", ranks=4, told="2",
             environment={CVAR + "NATIVE_ATOMICS": "1"}, check=left_by_messages),
    *(leaves_windows(f"{ranks}-ranks", ranks=ranks, times=times, told=str(ranks - 1))
      for ranks, times in ((2, 200), (3, 200), (8, 50))),
    leaves_windows("all-by-messages", environment=BY_MESSAGES, check=left(100)),
    *(leaves_windows(what, f"{what} computing") for what in ("fence", "pscw", "lock", "held")),
    leaves_windows("no-thread", environment={CVAR + "LANDING_THREAD": "0"}),
    leaves_windows("holds-nothing-of-ucx", ranks=2, times=20, options=("-c",)),
    leaves_windows("two-together", told="0,2", times=30, options=("-g",)),
    leaves_windows("two-told-at-once", told="0,2", times=30, options=("-w", "1")),
    leaves_windows("all-at-once", told="0,1,2", times=20, options=("-w", "1", "-a", "20")),
    # It refuses again and again, and its windows are as before.
    leaves_windows("silent-peer", told="0", times=20, options=("-t", "in time", "-x", "2", "-w", "200"),
                   says="not all ranks have answered in time .rank 2",
                   environment={CVAR + "DETACH_SECONDS": "1"}),
    leaves_windows("unregistered", "fence pscw lock held unregistered", times=50, check=no_keys_anew(50),
                   says="of which one has been away, go on by active messages"),
    leaves_windows("peer-dies", told="0", times=10, options=("-k", "2"), timeout=60, dies=True,
                   never_says="wrong data", launcher=("-disable-auto-cleanup",)),
    leaves_windows("1000-times", times=1000, tags=LONG),
    # By Hydra, which sees that a process has ended, and by ourselves, where no launcher sees it.
    *(Test("death", phase, who, name=f"death-{phase}-{who}", timeout=30, dies=True,
           never_says="wrong data|survived",
           environment={CVAR + "LANDING_THRESHOLD": "inf"} if phase == "announced" else None)
      for phase in DEATHS for who in ("sender", "receiver")),
    # It answers its first bulk: of what was announced in 4 of 40 runs on a busy machine.
    *(unnoticed_death(phase, who, hosts=("2",), asserts="REP" if who == "sender" and
                      phase in ("flight", "announced") else None,
                      environment={CVAR + "LANDING_THRESHOLD": "inf"} if phase == "announced" else None)
      for phase in DEATHS for who in ("sender", "receiver")),
    # Over TCP within one host, too. There UCX 1.13 ended the other process in 2 of 12 runs.
    *(unnoticed_death(phase, who, "-tcp", hosts=("1",), environment={"UCX_TLS": "tcp,self"})
      for phase in ("flight", "idle") for who in ("sender", "receiver")),
    *(Test("death", "finalize", who, "unnoticed", name=f"death-finalize-{who}-unnoticed",
           timeout=30, dies=True, ranks=4, netmods=("zc",), hosts=("2",),
           launcher=("-disable-auto-cleanup",),
           says="MPI_Finalize waits for nobody any more") for who in ("sender", "receiver")),
    *(Test("zero", name=f"bad-setting-{name.lower()}", timeout=30, dies=True, netmods=("zc",),
           environment={CVAR + name: value}, says=f"bad value of {CVAR}{name}: .*{said}")
      for name, value, said in [
          ("RNDV_THRESHOLD", "64q", "64q"),
          ("ONE_COPY_THRESHOLD", "little", "little"),
          ("LANDING_THRESHOLD", "-1", "-1"),
          ("LANDING_BUDGET", "lots", "lots"),
          ("UNEXPECTED_BUDGET", "plenty", "plenty"),
          ("LANDING_THREAD", "maybe", "maybe"),
          ("NETWORK_RATE", "fast", "fast"),
          ("BULK_APART", "yes", "yes"),
          ("LANE", "slow", "slow"),
          ("BUNDLE", "perhaps", "perhaps"),
          ("BACKEND", "magic", "magic"),
          ("PREDICTOR", "oracle", "oracle"),
          ("INTRA_NODE", "perhaps", "perhaps"),
          ("COST_FILE", "/nowhere/costs", "/nowhere/costs"),
          ("DETACH", "often", "often"),
          ("DETACH_SECONDS", "0", "less than 1"),
          ("HORIZON", "0", "less than 1")]),
]


@contextlib.contextmanager
def stage_of(setup):
    setup.header = f"netmod {setup.options.netmod}"
    yield Stage(setup)


suite = Suite("mpi", "MPI programs across hosts, in several configurations of the netmod",
              beds=[Bed("two-hosts", tags=frozenset({"fast"}), hosts="2"),
                    Bed("three-hosts", tags=frozenset({"fast"}), hosts="3", link="10gbit",
                        cores="full", only="three-hosts"),
                    Bed("one-host", tags=frozenset({"nightly"}), hosts="1", only="one-host"),
                    Bed("loopback", tags=frozenset({"nightly"}), hosts="loopback",
                        only="loopback"),
                    Bed("long", tags=frozenset({"nightly"}), hosts="2", only="long")],
              needs=("mpich",), open=stage_of,
              tests=[*TESTS, *(test.with_variant(variant) for variant in VARIANTS
                               for test in TESTS if test.variants)])
SUITES = [suite]
