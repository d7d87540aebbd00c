# SPDX-License-Identifier: BSD-3-Clause
"""What the statistics of a job must show (`check=` in the table of suite.py).

A check gets the statistics of all ranks, added up; it raises Fail, and may return a note for the
report. Without these a test would pass where nothing of what it is about has happened.
"""
import ctypes
import os

from testbed.outcome import check


def some(counter, otherwise):
    """A check that COUNTER has moved."""
    return lambda stats: check(stats[counter] > 0, otherwise)


def none(counter, what):
    """A check that COUNTER has not moved."""
    return lambda stats: check(stats[counter] == 0, f"{stats[counter]} {what}")


something_landed = some("landed", "no message landed")
nothing_landed = none("landed", "messages landed")
nothing_rebound = none("bytes_rebound", "bytes rebound")
something_left = some("left_at_sender", "no message was left with its sender")
something_waited = some("bundled", "no message waited for another")
nothing_waited = none("bundled", "messages waited")
something_streamed = some("streamed", "no message was packed or unpacked bit by bit")
something_offered = some("offered", "no message was announced on a channel")
senders_held = some("senders_held", "no sender was held")
no_sender_held = none("senders_held", "messages held")
nothing_left = none("detachments", "detachments")
by_ucx = some("atomics", "UCX accumulated nothing")
by_messages = none("atomics", "elements accumulated by UCX")


def left(times, apart=None):
    """A check that ranks have left so often, and that messages to or of them had to wait.

    APART: have announced messages connections of their own, which are made anew each time?
    """
    def judge(stats):
        check(stats["detachments"] >= times, f"only {stats['detachments']} detachments")
        made = stats["bulk_endpoints"]
        check(apart is None or (made >= times if apart else made == 0), f"{made} endpoints for bulk")
        check(stats["parked"] > 0, "no message had to wait for a rank that was away")
        return f"{stats['detachments']} detachments, {stats['parked']} messages parked"
    return judge


def keys_anew(times):
    """The same, and windows were reached by UCX again: keys to their memory were made anew."""
    def judge(stats):
        note = left(times)(stats)
        check(stats["window_keys"] > 0, "no key to a window was received anew")
        check(stats["window_refusals"] == 0, f"{stats['window_refusals']} keys were not to be had")
        return f"{note}, {stats['window_keys']} keys received anew"
    return judge


def no_keys_anew(times):
    """The same, and windows have gone on by active messages, since there were no keys."""
    def judge(stats):
        note = left(times)(stats)
        check(stats["window_keys"] == 0, f"{stats['window_keys']} keys received anew")
        check(stats["window_refusals"] > 0, "no key was asked for")
        return note
    return judge


def on_several_vcis(times, ranks, judge_first):
    """The same as JUDGE_FIRST, which is one of the checks above, and the lanes of further VCIs than the first, which
    has to have them, were connected anew."""
    def judge(stats):
        note = judge_first(stats)
        made = stats["endpoints"] - stats["bulk_endpoints"]
        least = 3 * times * (ranks - 1)
        check(made >= least, f"only {made} endpoints but for bulk: 1 VCI makes {2 * times * (ranks - 1)}")
        return f"{note}, {made} endpoints"
    return judge


def on_several_vcis_of_worlds(times, others):
    """A check that connections on further VCIs than the first to OTHERS, of other worlds, were made anew so often."""
    def judge(stats):
        made = stats["foreign_endpoints"]
        check(2 * made >= 3 * times * others, f"only {made} endpoints to other worlds: 1 VCI makes {times * others}")
        return f"{made} endpoints to other worlds"
    return judge


def left_in_silence(times):
    """A check that ranks have left so often, of a program that sends nothing meanwhile."""
    return lambda stats: check(stats["detachments"] >= times, f"only {stats['detachments']} detachments")


def left_by_messages(stats):
    by_messages(stats)
    return left(1)(stats)


def kernel_copies():
    """May UCX have the kernel copy between processes (CMA)? What it asks itself."""
    word, local = ctypes.c_long(1), ctypes.c_long(0)

    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    into = Piece(ctypes.addressof(local), ctypes.sizeof(local))
    of = Piece(ctypes.addressof(word), ctypes.sizeof(word))
    read = ctypes.CDLL(None).process_vm_readv
    return read(os.getpid(), ctypes.byref(into), 1, ctypes.byref(of), 1, 0) == of.length


def landed_by_one_copy(stats):
    (something_landed if kernel_copies() else nothing_landed)(stats)


def foreseen(stats):
    """Of 20 receives at least 15; fewer only where a busy machine made messages late themselves.

    Returns what is said of them in a failure."""
    summary = ", ".join(f"{name} {stats[name]}" for name in
                        ("landed", "messages_direct", "messages_rebound", "messages_copied",
                         "prediction_hits", "prediction_misses", "prediction_unknown",
                         "copied_by_reason"))
    check(stats["landed"] >= 8, f"too few messages landed: {summary}")
    check(stats["prediction_hits"] >= min(15, stats["landed"] - 2),
          f"too few addresses foreseen: {summary}")
    return summary


def rebound_and_foreseen(stats):
    summary = foreseen(stats)
    check(stats["bytes_rebound"] > 0, f"nothing rebound: {summary}")


def foreseen_and_cheapest(stats):
    """With costs as the process has measured them: rebound, unless copying is cheaper here."""
    summary = foreseen(stats)
    if stats["bytes_rebound"] > 0:
        return ""
    reasons = {reason for reason, count in stats["copied_by_reason"].items() if count}
    check(reasons == {"small"}, f"nothing rebound: {summary}")
    return "copied, which is cheaper on this machine"


def copied_when_unforeseen(stats):
    check(stats["messages_copied"] > 0, "no message copied")
    check(stats["prediction_misses"] + stats["prediction_unknown"] > 0, "no address unforeseen")


def within_budget(budget_mib):
    """A check that landing memory took at most BUDGET_MIB, and that it was spent."""
    def within(stats):
        high = stats["landing_high_water"]
        check(high <= budget_mib << 20,
              f"landing memory reached {high >> 20} MiB, budget {budget_mib} MiB")
        check(stats["budget_refusals"] > 0, "the budget was never spent: no flood")
        something_landed(stats)
    return within


def within_unexpected_budget(budget, held=True, least=None):
    """A check that waiting messages took LEAST bytes (an eighth of BUDGET), at most BUDGET; and
    that it was spent if HELD."""
    def within(stats):
        high = stats["unexpected_memory_high_water"]
        check(high <= budget, f"unexpected messages took {high} bytes, budget {budget}")
        check(high >= (budget // 8 if least is None else least),
              f"only {high} bytes of messages waited: no flood (budget {budget})")
        check(not held or stats["senders_held"] > 0,
              f"no sender was held: no flood ({high} bytes, budget {budget})")
    return within
