# SPDX-License-Identifier: BSD-3-Clause
"""Forecasts for real MPI programs whose waits are known.

Ranks rest (sleep) for 50 ms where a wait is meant to be. A loaded machine makes waits longer, never
shorter: times have lower bounds that hold there, and upper ones only against other times of the run.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import xml.etree.ElementTree

from testbed.outcome import Error, Fail, Skip, wait_for
from testbed.statistics import CVAR
from testbed.suite import Bed, Suite
from tests.trace import suite as trace

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
REST = 0.05     # seconds, of each rest
ROUNDS = 5
BYTES = 4 << 20
SVG = "{http://www.w3.org/2000/svg}"
HTML = "{http://www.w3.org/1999/xhtml}"


class Bench(trace.Bench):
    """As for traces, with zc-forecast and the programs here."""

    programs = PROGRAMS

    def __init__(self, setup):
        super().__init__(setup)
        self.forecaster = self.tool.parent / "zc-forecast"
        if not os.access(self.forecaster, os.X_OK):
            raise Error(f"no zc-forecast in {self.tool.parent} (make build, or --library DIR)")
        # Of our library: with ch4:zc hardly a sender is held, and there is little to forecast.
        self.environment["MPIR_CVAR_CH4_NETMOD"] = setup.options.recorded_netmod or "ucx"
        self.lands = setup.options.recorded_netmod == "zc"
        if self.lands:
            self.environment[CVAR + "LANDING_THREAD"] = "1"

    def forecast(self, program, *args, ranks=2, code=0, options=(), **environment):
        """What zc-forecast --json says of a run of PROGRAM."""
        status, out, err = self.run([self.forecaster, "--json", *options, *self.mpiexec(ranks),
                                     program, *args], **environment)
        if status != code:
            raise Fail(f"exit code {status}, not {code}", out + err)
        said = json.loads(out.splitlines()[-1])
        if said["no_forecast"] or not said["forecast"]:
            raise Fail(f"no forecast: {said['no_forecast']}")
        return said


def add_options(parser):
    parser.add_argument("--recorded-netmod", choices=["ucx", "zc"],
                        help="of our library, with which programs are recorded (default: of the bed, or ucx)")


@contextlib.contextmanager
def open_bench(setup):
    yield Bench(setup)


suite = Suite("forecast", "zc-forecast and programs of each MPI",
              beds=[Bed("mpich", tags=frozenset({"fast"}), options={"mpich": "/usr"}),
                    Bed("openmpi", tags=frozenset({"nightly"}), options={"openmpi": "/usr"}),
                    Bed("project", tags=frozenset({"nightly"})),
                    Bed("ch4-zc", tags=frozenset({"nightly"}), only="ch4-zc",
                        options={"recorded_netmod": "zc"})],
              needs=("mpich",), families=("mpich", "openmpi"), open=open_bench, options=add_options)
SUITES = [suite]


def check_late(said, messages):
    """Each message came while its receiver rested: its sender was held for about that long."""
    late = said["total"]["late_receivers"]
    if late["messages"] != messages or late["bytes"] != messages * BYTES:
        raise Fail(f"late receivers: {late}")
    # The receiver's rest may begin before the send does, on few processors by some ms.
    if not 0.5 * messages * REST <= late["held_seconds"] <= total(said, "recorded_seconds"):
        raise Fail(f"held for {late['held_seconds']} s")
    if late["transfer_seconds"] <= 0:
        raise Fail("no transfer was waited for")


def landed(bench, program, how):
    """Each send is over before its receive is posted, which is in that order however slow the machine
    is: all messages have landed, no sender was held, and nothing is to be gained."""
    said = bench.forecast(program, round(REST * 1000), ROUNDS, how, 0, "landed")
    early, late_ones = said["total"]["unexpected"], said["total"]["late_receivers"]
    if early != {"messages": ROUNDS, "bytes": ROUNDS * BYTES}:
        raise Fail(f"early messages: {early}")
    if late_ones["messages"] or late_ones["bytes"] or late_ones["held_seconds"]:
        raise Fail(f"ch4:zc holds a sender: {late_ones}")
    if round(said["forecast"]["saved_seconds"], 6):
        raise Fail(f"{said['forecast']}")


def total(said, what):
    """The sum over the ranks."""
    return sum(rank[what] for rank in said["forecast"]["ranks"])


def receive_of_late():
    """Where late.c receives, FILE:LINE."""
    lines = (PROGRAMS / "late.c").read_text(encoding="utf-8").splitlines()
    return f"late.c:{next(number for number, line in enumerate(lines, 1) if 'MPI_Recv(' in line)}"


def check_order(gain):
    if not gain["least_saved_seconds"] <= gain["saved_seconds"] <= gain["most_saved_seconds"]:
        raise Fail(f"an estimate outside its bounds: {gain}")


def late(bench, how):
    """4 MiB that are sent 50 ms too early, five times; sender and receiver rest one after the other,
    so with ch4:zc they would rest at once. But a synchronous send waits for its receiver."""
    program = bench.build("late.c", "-g")
    if bench.lands and how != "ssend":
        landed(bench, program, how)
        return
    said = bench.forecast(program, round(REST * 1000), ROUNDS, how)
    check_late(said, ROUNDS)
    forecast = said["forecast"]
    check_order(forecast)
    # Of the two rests of a round one is left. The last one of the sender is the end of the run.
    if how == "ssend" and forecast["saved_seconds"] > 0.2 * forecast["recorded_seconds"]:
        raise Fail(f"{forecast['saved_seconds']} s are saved")
    if how != "ssend" and forecast["saved_seconds"] < 0.4 * ROUNDS * REST:
        raise Fail(f"only {forecast['saved_seconds']} s of {forecast['recorded_seconds']} are saved")
    if forecast["saved_seconds"] > 0.75 * forecast["recorded_seconds"]:
        raise Fail("more is saved than the ranks were held")
    costly = max(said["sites"], key=lambda site: site["late_receivers"]["held_seconds"])
    if not costly["send"].startswith("main (late.c:") or f"({receive_of_late()})" not in costly["receive"]:
        raise Fail(f"not the call sites of late.c: {costly['send']} -> {costly['receive']}")


for the_way in ("send", "ssend", "isend", "sendrecv"):
    suite.test(f"late_{the_way}", tags={"ch4-zc"})(lambda bench, how=the_way: late(bench, how))


@suite.test()
def by_call_site(bench):
    """Of each pair of call sites: the most memory of its unexpected messages, how many of them are
    foreseen, and what ch4:zc gives back of it alone. Three messages of 1 MiB lie together at one place,
    all in the same buffers each round; at the other it is one, in a new buffer each time."""
    folder = bench.folder()
    said = bench.forecast(bench.build("two_sites.c", "-g"), options=["-o", folder / "run"])
    sites = {site["send"].split(" ")[0]: site for site in said["sites"]}
    for name, at_once, messages in (("send_three", 3 << 20, 3 * 12), ("send_one", 1 << 20, 12)):
        site = sites[name]
        if site["unexpected_memory"] != {"bytes": at_once, "rank": 1}:
            raise Fail(f"{name}: {site['unexpected_memory']}")
        if site["unexpected"]["messages"] != messages or site["foreseen"]["asked"] != messages:
            raise Fail(f"{name}: {site}")
        check_order(site["forecast"])
    if sites["send_three"]["foreseen"]["hit_rate"] < 0.75 or sites["send_one"]["foreseen"]["right"]:
        raise Fail(f"{said['sites']}")
    # Rank 0 is held at both places; it is the last to end, and so has what each of them holds it.
    for name in sites:
        if sites[name]["forecast"]["saved_seconds"] <= 0:
            raise Fail(f"{name}: {sites[name]['forecast']}")
    if any(site["foreseen"]["asked"] > said["total"]["foreseen"]["asked"] for site in said["sites"]):
        raise Fail(f"{said['total']['foreseen']}")
    status, out, err = bench.run([bench.forecaster, "report", folder / "run", "--sites", "1", "--json"])
    few = [site["forecast"] for site in json.loads(out)["sites"]]
    if status or sum(gain is not None for gain in few) != 1:
        raise Fail(f"exit code {status}, gains: {few}", err)


@suite.test()
def several_pairs(bench):
    """Four ranks: two messages at once, each with its own pair of ranks."""
    said = bench.forecast(bench.build("late.c", "-g"), round(REST * 1000), ROUNDS, ranks=4)
    check_late(said, 2 * ROUNDS)
    if said["forecast"]["saved_seconds"] < 0.4 * ROUNDS * REST:
        raise Fail(f"{said['forecast']}")


@suite.test()
def foreseen(bench):
    """One buffer for all messages: all but the first are foreseen."""
    said = bench.forecast(bench.build("late.c", "-g"), round(REST * 1000), 12)
    if said["foreseen"]["asked"] < 12 or said["foreseen"]["right"] < 10:
        raise Fail(f"{said['foreseen']}")


@suite.test(tags={"ch4-zc"})
def balanced(bench):
    """Nothing to gain: a fraction of the run, which is 0.5 s of rest."""
    said = bench.forecast(bench.build("balanced.c", "-g"))
    late_ones = said["total"]["late_receivers"]
    if late_ones["messages"] or late_ones["held_seconds"]:
        raise Fail(f"late receivers: {late_ones}")
    if said["forecast"]["saved_percent"] > 2:
        raise Fail(f"{said['forecast']}")


@suite.test(tags={"ch4-zc"})
def late_sender(bench):
    """A receiver that waits for its sender waits with ch4:zc, too."""
    said = bench.forecast(bench.build("late_sender.c", "-g"))
    late_ones = said["total"]["late_senders"]
    if late_ones["messages"] < ROUNDS or late_ones["seconds"] < 0.5 * ROUNDS * REST:
        raise Fail(f"late senders: {late_ones}")
    if said["total"]["late_receivers"]["messages"]:
        raise Fail(f"{said['total']}")
    if said["forecast"]["saved_seconds"] > 0.2 * ROUNDS * REST:
        raise Fail(f"{said['forecast']}")


@suite.test()
def overlap(bench):
    """A transfer that both sides wait for after 50 ms of rest could have been over by then."""
    said = bench.forecast(bench.build("overlap.c", "-g"))
    if said["total"]["lost_overlap_seconds"] <= 0:
        raise Fail(f"{said['total']}")
    check_order(said["forecast"])


def polling(bench, how, waits):
    """Rank 1 has what it waits for 50 ms earlier, in each of the rounds, if its looking for that is
    a wait. What it does between two looks is work, which the forecast keeps. Looks in vain leave no
    records."""
    folder = bench.folder() / "run"
    said = bench.forecast(bench.build("polling.c", "-g"), how, ranks=3, options=["-o", folder])
    size = (folder / "r1.zct").stat().st_size
    if size > 1 << 14:
        raise Fail(f"{size} bytes were recorded")
    saved = said["forecast"]["saved_seconds"] / (ROUNDS * REST)
    if waits != (saved > 0.5):
        raise Fail(f"{said['forecast']}")


for the_poll in ("probe", "iprobe", "improbe", "test", "testsome", "each_test", "each_testall",
                 "each_start", "busy"):
    suite.test(f"polling_{the_poll}")(
        lambda bench, how=the_poll: polling(bench, how, how != "busy"))


@suite.test()
def polling_late_work(bench):
    """What rank 1 does between two looks, 14 ms, is work however long it looked before."""
    said = bench.forecast(bench.build("polling.c", "-g"), "late_work", ranks=3)
    rank = said["forecast"]["ranks"][1]
    if rank["recorded_seconds"] - rank["saved_seconds"] < ROUNDS * (0.014 + REST):
        raise Fail(f"{rank}")


@suite.test(tags={"ch4-zc"})
def one_sided(bench):
    """What is not recorded is counted by function and call site, and said to be no part of this."""
    folder = bench.folder() / "run"
    said = bench.forecast(bench.build("one_sided.c", "-g"), options=["-o", folder])
    found = {}
    for use in said["not_recorded"]:
        if not use["site"].startswith(("main (one_sided.c:", "start_persistent (one_sided.c:")):
            raise Fail(f"{use}")
        calls, size = found.get(use["function"], (0, 0))
        found[use["function"]] = calls + use["calls"], size + use["bytes"]
    wanted = {"MPI_Put": (10, 40960), "MPI_Get": (2, 2048), "MPI_Accumulate": (2, 16),
              "MPI_Fetch_and_op": (2, 16), "MPI_Win_*": (10, 0)}
    if found not in (wanted, {**wanted, "MPI_Start": (6, 0)}):    # MPI-3, MPI-4
        raise Fail(f"{found}")
    status, out, err = bench.run([bench.forecaster, "report", folder])
    if status or "not in the forecast: 42 KiB that went one-sided" not in out:
        raise Fail(f"exit code {status}", out + err)


@suite.test(tags={"ch4-zc"})
def startall(bench):
    """The time of one call that starts many is counted once."""
    said = bench.forecast(bench.build("startall.c", "-g"))
    seconds = {use["site"].split(" ")[0]: use["seconds"] for use in said["not_recorded"]
               if use["function"] == "MPI_Start"}
    if not seconds:
        raise Skip("no persistent collectives before MPI-4")
    if sorted(seconds) != ["start_all", "start_each"]:
        raise Fail(f"{said['not_recorded']}")
    if seconds["start_all"] > 20 * seconds["start_each"]:
        raise Fail(f"{seconds}")


@suite.test()
def fortran(bench):
    """The call sites are the program's, not those of the MPI library's wrappers."""
    for flags, name in (((), "late90"), (("-DUSE_F08=1",), "late08")):
        program = bench.build("late.f90", "-g", "-O0", *flags, output=name)
        said = bench.forecast(program)
        check_late(said, ROUNDS)
        for site in said["sites"]:
            if not site["send"].startswith("give") or not site["receive"].startswith("take"):
                raise Fail(f"{name}: {site['send']} -> {site['receive']}")


@suite.test()
def measured_clock(bench):
    """As if each rank had a clock of its own: compared at both ends of the run."""
    said = bench.forecast(bench.build("late.c", "-g"), round(REST * 1000), ROUNDS,
                          ZC_TRACE_CLOCK="measure")
    check_late(said, ROUNDS)
    if not 0 < said["clock_error_us"] < 20000:
        raise Fail(f"{said['clock_error_us']}")


@suite.test()
def recordings(bench):
    """A recording that is kept gives the same forecast again, and events for a trace viewer."""
    folder = bench.folder()
    said = bench.forecast(bench.build("late.c", "-g"), round(REST * 1000), ROUNDS, "send", 3, code=3,
                          options=["-o", folder / "run", "--trace", folder / "events.json"])
    status, out, err = bench.run([bench.forecaster, "report", "--json", folder / "run"])
    if status or json.loads(out) != said:
        raise Fail(f"exit code {status}, or another forecast", out + err)
    events = json.loads((folder / "events.json").read_text(encoding="utf-8"))["traceEvents"]
    held = [event for event in events if event.get("cat") == "late receiver" and event["ph"] == "X"]
    if len(held) != ROUNDS or any(event["pid"] != 0 for event in held):
        raise Fail(f"{held}")
    status, out, err = bench.run([bench.forecaster, "report", folder / "run"])
    if status or "forecast, by replay" not in out or receive_of_late() not in out:
        raise Fail(f"exit code {status}", out + err)


@suite.test()
def page(bench):
    """The timeline is well-formed, needs nothing else, and shows each held sender; in a browser, too."""
    folder = bench.folder()
    bench.forecast(bench.build("late.c", "-g"), round(REST * 1000), ROUNDS,
                   options=["--html", folder / "run.html"])
    root = xml.etree.ElementTree.parse(folder / "run.html").getroot()
    for element in root.iter():
        if {"src", "href"} & set(element.attrib):
            raise Fail(f"{element.tag} is from elsewhere: {element.attrib}")
    held = [element for element in root.iter(SVG + "rect") if element.get("class") == "held"]
    if len(held) != ROUNDS or not all("late.c" in element.find(SVG + "title").text for element in held):
        raise Fail(f"{len(held)} held senders, not {ROUNDS}, or without their call sites")
    rows = list(root.iter(HTML + "tr"))
    cells = [[cell.text for cell in row] for row in rows]
    if len(cells) != 3 or len({len(row) for row in cells}) != 1 or cells[1][0] != "all":
        raise Fail(f"no table of the call sites: {cells}")
    found = dict(zip(cells[0], cells[2]))
    if "late.c" not in found["sent"] or found["unexpected"] != str(ROUNDS) or \
            found["at most at one time"] != "4096 KiB (rank 1)" or "%" not in found["foreseen"] or \
            "%" not in found["ch4:zc gives back"]:
        raise Fail(f"the call site: {found}")
    browser = shutil.which("chromium")
    if not browser:
        return "no chromium here: parsed only"
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
         "--dump-dom", f"file://{folder}/run.html"], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=120 * bench.patience, check=False)
    if done.stdout.count('class="held"') != ROUNDS:
        raise Fail(f"chromium shows {done.stdout.count('class=')} elements", done.stdout[:2000] + done.stderr)
    if done.stdout.count('class="site"') != 1 or "<td>4096 KiB (rank 1)</td>" not in done.stdout:
        raise Fail("chromium shows no table of the call sites", done.stdout[-2000:] + done.stderr)
    return "shown by chromium"


@suite.test()
def without_calls(bench):
    """A recording by zc-trace alone says what it says, and that there is no forecast."""
    folder, _, _ = bench.trace(bench.build("late.c", "-g"), round(REST * 1000), ROUNDS, ranks=2)
    status, out, err = bench.run([bench.forecaster, "report", folder])
    if status or "forecast: none" not in out or "zc-trace --calls" not in out:
        raise Fail(f"exit code {status}", out + err)


@suite.test(tags={"ch4-zc"})
def nothing_is_left(bench):
    """Without -o the recording goes away with the run."""
    work = bench.folder()
    program = bench.build("late.c", "-g")
    command = " ".join(map(str, [bench.forecaster, "--json", *bench.mpiexec(2), program, 1, 1]))
    status, out, err = bench.run(["sh", "-c", f"cd {work} && {command}"])
    if status or list(work.iterdir()):
        raise Fail(f"exit code {status}, left: {list(work.iterdir())}", out + err)


@suite.test()
def interrupted(bench):
    """A report can be interrupted (here while it waits for who reads its page, which is nobody). It
    says which folder it leaves, and what to do with it."""
    work = bench.folder()
    os.mkfifo(work / "page")
    words = [bench.forecaster, "--html", "page", *bench.mpiexec(2), bench.build("late.c", "-g"), 1, 1]
    command = f"cd {work} && exec " + " ".join(map(str, words))
    with bench.start(["sh", "-c", command]) as running:
        wait_for("the report is there", lambda: "foreseen" in "".join(running.out),
                 60 * bench.patience)
        running.process.send_signal(signal.SIGTERM)
        status = running.wait(60 * bench.patience)
        if status is None:
            raise Fail("no end in time after SIGTERM", running.said())
    left = [path for path in work.iterdir() if path.name != "page"]
    if status != -signal.SIGTERM or len(left) != 1:
        raise Fail(f"exit status {status}, left: {left}", running.said())
    if f"zc-forecast report {left[0]}\n" not in running.said():
        raise Fail(f"{left[0]} is left without a word", running.said())
    status, out, err = bench.run([bench.forecaster, "report", left[0]])
    if status or "2 of 2 ranks recorded" not in out:
        raise Fail(f"the recording that was left: exit code {status}", out + err)


@suite.test()
def page_cannot_be_written(bench):
    """Said before the program runs; if it comes up later, the recording is kept."""
    work = bench.folder()
    program = bench.build("late.c", "-g")
    command = [*bench.mpiexec(2), program, 1, 1]
    status, out, err = bench.run([bench.forecaster, "--html", work / "none/page", *command])
    if status != 125 or "none/page: cannot be written" not in err or out:
        raise Fail(f"exit code {status}", out + err)
    status, out, err = bench.run([bench.forecaster, "--html", "/dev/full", *command])
    said = "the recording is kept: zc-forecast report "
    if status != 125 or "/dev/full: cannot be written" not in err or said not in err:
        raise Fail(f"exit code {status}", out + err)
    if "2 of 2 ranks recorded" not in out:
        raise Fail("no report", out + err)
    folder = err.split(said)[1].strip()
    again = bench.run([bench.forecaster, "report", folder])
    if again[0] or again[1] != out:
        raise Fail(f"exit code {again[0]}, or another report", "".join(again[1:]))
    shutil.rmtree(folder)


@suite.test()
def page_in_the_folder(bench):
    """Of the recording, which is not there yet; and the reader of the text has enough of it."""
    work = bench.folder()
    words = " ".join(map(str, [bench.forecaster, "-o", "run", "--html", "run/page.html",
                               *bench.mpiexec(2), bench.build("late.c", "-g"), 1, 1]))
    status, out, err = bench.run(["sh", "-c", f"cd {work} && {{ {words}; echo $? >&3; }} 3>code | :"])
    code = (work / "code").read_text(encoding="utf-8")
    if status or code not in ("0\n", "141\n") or not (work / "run/page.html").stat().st_size:
        raise Fail(f"exit code {code}", out + err)


@suite.test()
def rank_cannot_be_read(bench):
    """The file of one rank is empty: the others are reported, and there is no forecast."""
    folder = bench.folder() / "run"
    bench.forecast(bench.build("late.c", "-g"), 1, 1, options=["-o", folder])
    (folder / "r1.zct").write_bytes(b"")
    status, out, err = bench.run([bench.forecaster, "report", "--json", folder])
    if status or f"{folder}/r1.zct: not a zc-trace file" not in err:
        raise Fail(f"exit code {status}", out + err)
    said = json.loads(out)
    if said["recorded_ranks"] != 1 or said["no_forecast"] != "not all ranks were recorded":
        raise Fail(f"{said}")


@suite.test(tags={"ch4-zc"})
def shared_handle(bench):
    """Eight words that were there early, of requests that may all have one handle: nothing is waited
    for but the ninth, whose sender is late."""
    for words in ((), ("threads",)):
        said = bench.forecast(bench.build("shared_handle.c", "-g"), *words, ranks=3)
        late_ones = said["total"]["late_receivers"]
        if late_ones["held_seconds"] or late_ones["transfer_seconds"]:
            raise Fail(f"late receivers: {late_ones}")
        if said["total"]["late_senders"]["messages"] != ROUNDS:
            raise Fail(f"late senders: {said['total']['late_senders']}")


@suite.test()
def from_another_folder(bench):
    """The program was called by a relative name: its lines are found from anywhere."""
    work = bench.folder()
    shutil.copy(bench.build("late.c", "-g"), work / "program")
    words = " ".join(map(str, [bench.forecaster, "-o", "run", *bench.mpiexec(2), "./program", 1, 1]))
    status, out, err = bench.run(["sh", "-c", f"cd {work} && {words}"])
    if status:
        raise Fail(f"exit code {status}", out + err)
    status, out, err = bench.run([bench.forecaster, "report", "--json", work / "run"])
    if status or not any(site["send"].startswith("main (late.c:") for site in json.loads(out)["sites"]):
        raise Fail(f"exit code {status}", out + err)
