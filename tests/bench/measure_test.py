# SPDX-License-Identifier: BSD-3-Clause
"""What bench/mpi makes of its samples: statistics, verdict, memory model, picture."""
import argparse
import contextlib
import io
import pathlib
import subprocess
import tempfile
import threading
import time
import types
import unittest
import xml.etree.ElementTree

from bench import spread
from bench.mpi import demo, measure, memory_model, picture, publish, report, settings, verdict
from bench.mpi.settings import ONE_HOST, PLAIN, Setting
from testbed import mpi
from testbed.network import Network
from testbed.outcome import Error

MIB = 1 << 20
PEERS = ["ucx", "openmpi"]
FULL = Setting("10gbit", "full")


def samples_of(case, metric, size, **rounds):
    """zc=[1, 2]: a sample in each of two rounds."""
    samples = report.Samples()
    for impl, values in rounds.items():
        for turn, value in enumerate(values):
            samples.add(case, impl, size, metric, value, turn)
    return samples


def only(samples):
    (found,) = verdict.compare(samples, "zc", PEERS)
    return found


class Statistics(unittest.TestCase):
    def test_percentile_lies_between_neighbours(self):
        self.assertEqual(spread.percentile([4, 1, 3, 2], 0.5), 2.5)
        self.assertEqual(spread.percentile([7], 0.9), 7)

    def test_reads_only_known_figures_and_names_their_parameter(self):
        samples = report.Samples()
        text = ('{"bench":"matching","bytes":8,"rep":0,"queued":1000,"reverse":2.5}\n'
                "# finalizing\n"
                '{"bench":"matching","bytes":8,"rep":1,"queued":1000,"rev')
        self.assertEqual(samples.read("matching", "zc", text), 1)
        self.assertEqual(list(samples), [("matching", "zc", 8, "reverse/queued:1000")])

    def test_series_is_in_order_of_the_parameter(self):
        samples = report.Samples()
        for queued in (1000, 10, 100):
            samples.add("matching", "zc", 8, f"reverse/queued:{queued}", 1)
        self.assertEqual([report.place_of(*point) for point in samples.series("matching", "reverse")],
                         [10, 100, 1000])

    def test_record_has_the_fields_that_scripts_rely_on(self):
        samples = samples_of("latency", "latency", 8, zc=[1, 2, 3])
        self.assertEqual(list(samples.records("mpi", FULL)), [
            {"bench": "mpi", "link": "10gbit", "cores": "full", "case": "latency", "impl": "zc", "bytes": 8, "metric": "latency",
             "unit": "us", "median": 2, "p10": 1.2, "p90": 2.8, "n": 3}])


class Demonstration(unittest.TestCase):
    def test_shows_figures_that_have_a_parameter(self):
        shown = demo.Demo.__new__(demo.Demo)
        shown.options = types.SimpleNamespace(impls=["ucx", "zc"])
        samples = report.Samples()
        shown.samples, shown.hung = {FULL: samples}, {}
        shown.print_statistics = lambda: None
        for impl, ms in (("ucx", 30), ("zc", 20)):
            samples.read("halo", impl,
                         f'{{"bytes": 1048576, "ranks": 2, "time_to_solution": {ms}}}')
        with contextlib.redirect_stdout(io.StringIO()) as out:
            shown.print_results()
        self.assertIn("imbalanced halo exchange: time to solution, ms; links of 10gbit, full cores",
                      out.getvalue())
        self.assertRegex(out.getvalue(), r"1 MiB +30 .* 20 .* 1\.50x")


class Comparisons(unittest.TestCase):
    def test_best_peer_is_the_fastest(self):
        found = only(samples_of("latency", "latency", 8, zc=[2], ucx=[4], openmpi=[3]))
        self.assertEqual(found.peer, "openmpi")
        self.assertAlmostEqual(found.gain, 1.5)

    def test_best_peer_is_the_one_with_most_where_more_is_better(self):
        found = only(samples_of("preposted", "bandwidth", MIB, zc=[2], ucx=[4], openmpi=[3]))
        self.assertEqual(found.peer, "ucx")
        self.assertAlmostEqual(found.gain, 0.5)

    def test_worse_in_every_round_is_beyond_noise(self):
        self.assertTrue(only(samples_of("latency", "latency", 8, zc=[12, 12], ucx=[10, 10])).worse)

    def test_better_in_one_round_is_noise(self):
        found = only(samples_of("latency", "latency", 8, zc=[12, 9, 12], ucx=[10, 10, 10]))
        self.assertLess(found.gain, 1)
        self.assertFalse(found.worse)

    def test_less_than_the_tolerance_is_noise(self):
        self.assertFalse(only(samples_of("latency", "latency", 8, zc=[10.3], ucx=[10])).worse)

    def test_percentages_are_compared_in_points(self):
        found = only(samples_of("overlap", "receiver", MIB, zc=[90], ucx=[-10]))
        self.assertEqual(found.gain, 100)
        self.assertTrue(only(samples_of("overlap", "receiver", MIB, zc=[-10], ucx=[90])).worse)

    def test_nothing_to_compare_with(self):
        self.assertEqual(verdict.compare(samples_of("latency", "latency", 8, zc=[1]), "zc", PEERS), [])


class Verdict(unittest.TestCase):
    def state(self, samples, words):
        rows, _ = verdict.judge(samples, "zc", PEERS)
        (row,) = [row for row in rows if words in row.target]
        return row.state

    def test_late_receiver_needs_a_hundredfold_from_16_mib(self):
        met = samples_of("late", "post_to_data", 16 * MIB, zc=[100], ucx=[10001])
        missed = samples_of("late", "post_to_data", 16 * MIB, zc=[100], ucx=[9999])
        self.assertEqual(self.state(met, "100 times"), "met")
        self.assertEqual(self.state(missed, "100 times"), "missed")
        self.assertEqual(self.state(met, "10 times"), "not measured")

    def test_overlap_needs_more_than_ninety_per_cent(self):
        for share, state in ((91, "met"), (90, "missed")):
            samples = samples_of("overlap", "sender", 256 << 10, zc=[share], ucx=[0])
            self.assertEqual(self.state(samples, "of the sender"), state)
            self.assertEqual(self.state(samples, "of the receiver"), "not measured")

    def test_small_overlap_is_not_promised(self):
        samples = samples_of("overlap", "sender", 64 << 10, zc=[0], ucx=[0])
        self.assertEqual(self.state(samples, "of the sender"), "not measured")

    def test_bandwidth_below_the_best_peer_within_noise(self):
        samples = samples_of("preposted", "bandwidth", MIB, zc=[100, 98, 97], ucx=[99, 99, 99])
        self.assertEqual(self.state(samples, "pre-posted"), "within noise")

    def test_one_bad_place_is_named_as_worse(self):
        samples = samples_of("rate", "rate", 8, zc=[50], ucx=[100])
        rows, worse = verdict.judge(samples, "zc", PEERS)
        self.assertEqual([row.state for row in rows if "message rate" in row.target], ["missed"])
        self.assertEqual([each.case for each in worse], ["rate"])
        self.assertIn("0.50x", worse[0].show())


    def test_total_is_judged_beside_work_and_reading(self):
        for ratio, state in ((1.03, "met"), (1.04, "missed")):
            samples = samples_of("late", "relative", 16 * MIB, zc=[ratio], ucx=[1])
            self.assertEqual(self.state(samples, "at most 1.03"), state)

    def test_the_worst_operation_decides_on_passive_targets(self):
        samples = samples_of("passive", "put", 8, zc=[100])
        self.assertEqual(self.state(samples, "8 bytes while it"), "met")
        samples.add("passive", "zc", 8, "accumulate", 45000)
        self.assertEqual(self.state(samples, "8 bytes while it"), "missed")

    def test_small_messages_beside_bulk_are_judged_beside_ucx(self):
        samples = samples_of("pingpong-beside-bulk", "latency", 64 * MIB, zc=[5], ucx=[25],
                             openmpi=[1])
        self.assertEqual(self.state(samples, "5 times stock"), "met")


class SeveralSettings(unittest.TestCase):
    def test_large_access_is_judged_by_the_rate_of_the_link(self):
        for us, state in ((4361, "met"), (4363, "missed")):     # 4 MiB at 10 Gbit/s: 3,355 us
            rows, _ = self.judge({setting: samples_of("passive", "get", 4 * MIB, zc=[us])
                                  for setting in (PLAIN, FULL)})
            self.assertEqual([(row.setting, row.state) for row in rows if "30 %" in row.target],
                             [(FULL, state)])

    def judge(self, samples):
        return verdict.judge_all(samples, "zc", PEERS)

    def test_each_setting_is_judged_by_itself(self):
        rows, worse = self.judge({
            PLAIN: samples_of("latency", "latency", 8, zc=[10], ucx=[10]),
            FULL: samples_of("latency", "latency", 8, zc=[20], ucx=[10])})
        states = {row.setting: row.state for row in rows if "latency up to" in row.target}
        self.assertEqual(states, {PLAIN: "met", FULL: "missed"})
        self.assertEqual([each.setting for each in worse], [FULL])
        self.assertIn("10gbit/full: latency at 8 B: 0.50x", worse[0].show())

    def test_what_was_not_measured_anywhere_is_one_row(self):
        rows, _ = self.judge({PLAIN: samples_of("latency", "latency", 8, zc=[1], ucx=[1]),
                              FULL: samples_of("rate", "rate", 8, zc=[1], ucx=[1])})
        self.assertEqual([row.setting for row in rows if "pipeline" in row.target], [None])
        self.assertEqual([row.setting for row in rows if "message rate" in row.target], [FULL])

    def test_follow_from_options(self):
        def asked(*words):
            return measure.parse(["--mpich", "x", *words]).settings
        self.assertEqual(asked("--quick"), [PLAIN])
        self.assertEqual(asked(), settings.MAIN)
        self.assertEqual(asked("--long"), settings.LONG)
        self.assertEqual(asked("--quick", "--settings", "10gbit/full"), [FULL])

    def test_are_read_from_an_option(self):
        self.assertEqual(settings.parse("bare/spare,10gbit/full"), [PLAIN, FULL])
        for wrong in ("", "bare", "bare/some", "fast/full", "none/spare", "bare/full,bare/full"):
            with self.subTest(wrong), self.assertRaises(argparse.ArgumentTypeError):
                settings.parse(wrong)


class MemoryModel(unittest.TestCase):
    def add(self, samples, sizes):
        for ranks in sizes:
            init = 10_000 + 2 * ranks
            samples.add(memory_model.CASE, "zc", 0, f"init/ranks:{ranks}", init)
            samples.add(memory_model.CASE, "zc", 0, f"touched/ranks:{ranks}",
                        init + 300 + 5 * (ranks - 1))
        memory_model.add(samples, ["zc"])

    def test_finds_the_slopes(self):
        samples = report.Samples()
        self.add(samples, [8, 16, 64])

        def value(metric):
            (found,) = samples.values(memory_model.TO, "zc", 0, metric)
            return found
        self.assertAlmostEqual(value("fixed"), 10_000)
        self.assertAlmostEqual(value("per_rank"), 2 * 1024)
        self.assertAlmostEqual(value("per_peer"), 5 * 1024)
        self.assertAlmostEqual(value("known/ranks:100000"), (10_000 + 200_000) / 1024)

    def test_small_jobs_do_not_count(self):
        samples = report.Samples()
        samples.add(memory_model.CASE, "zc", 0, "init/ranks:2", 1)
        samples.add(memory_model.CASE, "zc", 0, "touched/ranks:2", 1)
        self.add(samples, [8, 16, 64])
        (found,) = samples.values(memory_model.TO, "zc", 0, "fixed")
        self.assertAlmostEqual(found, 10_000)

    def test_two_sizes_are_no_model(self):
        samples = report.Samples()
        self.add(samples, [2, 4, 8, 64])
        self.assertEqual(samples.series(memory_model.TO, "fixed"), [])

    def test_the_model_is_no_point_of_the_verdict(self):
        samples = report.Samples()
        samples.add(memory_model.TO, "zc", 0, "per_peer", 9)
        samples.add(memory_model.TO, "ucx", 0, "per_peer", 1)
        self.assertEqual(verdict.compare(samples, "zc", PEERS), [])


class Publishing(unittest.TestCase):
    def test_replaces_what_is_between_the_marks(self):
        text = f"before\n{publish.BEGIN}old\n{publish.END}after\n"
        new = publish.replace(publish.replace(text, "first"), "second")
        self.assertEqual(new, f"before\n{publish.BEGIN}\nsecond\n{publish.END}after\n")

    def test_refuses_a_document_without_marks(self):
        with self.assertRaises(ValueError):
            publish.replace("before\nafter\n", "new")

    def test_settings_have_tables_of_their_own(self):
        records = [record for setting, value in ((PLAIN, 1), (FULL, 2), (ONE_HOST, 3))
                   for record in samples_of("latency", "latency", 8, zc=[value]).records("mpi", setting)]
        about = {"date": "2000-01-01T00:00", "cpu": "", "kernel": "", "thp": "", "hosts": "2",
                 "versions": {}, "seconds": 60, "rounds": 1, "load": [0], "load_after": [0],
                 "settings": ["bare/spare", "10gbit/full"], "verdict": [], "worse": [],
                 "left_out": {}, "failed": [], "hung_in_finalize": {}}
        text = publish.render(about, records)
        for heading, value in (("; bare links", 1), ("; links of 10gbit, full cores", 2), ("", 3)):
            self.assertIn(f"## ping-pong latency, µs{heading}\n\n|  | zc | zc p10..p90 |\n"
                          f"| --- | ---: | ---: |\n| 8 B | {value} | {value}..{value} |\n", text)

    def test_the_document_has_the_marks(self):
        publish.replace(publish.DOCUMENT.read_text(encoding="utf-8"), "")


class Picture(unittest.TestCase):
    ABOUT = {"hosts": "2", "cpu": "a < b & c", "kernel": "6", "date": "2000-01-01T00:00",
             "load": [0]}

    def draw(self, samples):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out/mpi.svg"
            drawn = picture.draw({PLAIN: samples}, ["zc", "ucx-async"], self.ABOUT, path)
            return xml.etree.ElementTree.parse(path).getroot() if drawn else None

    def test_a_line_for_each_library(self):
        samples = report.Samples()
        for impl in ("zc", "ucx-async"):
            for size in (1, 8, 64):
                samples.add("latency", impl, size, "latency", 5)
        lines = self.draw(samples).findall("{*}polyline")
        self.assertEqual(len(lines), 2)
        self.assertTrue(all(len(line.get("points").split()) == 3 for line in lines))

    def test_a_bar_for_a_single_point(self):
        samples = samples_of("startup", "mpiexec", 0, zc=[300, 310])
        root = self.draw(samples)
        self.assertEqual(root.findall("{*}polyline"), [])
        self.assertIn("305", [node.text for node in root.findall("{*}text")])

    def test_a_section_for_each_setting(self):
        samples = samples_of("startup", "mpiexec", 0, zc=[300])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mpi.svg"
            picture.draw({PLAIN: samples, FULL: samples, ONE_HOST: report.Samples()}, ["zc"],
                         self.ABOUT, path)
            root = xml.etree.ElementTree.parse(path).getroot()
        said = [node.text for node in root.findall("{*}text")]
        self.assertEqual(said.count("300"), 2)
        self.assertIn("bare links", said)
        self.assertIn("links of 10gbit, full cores", said)
        self.assertNotIn("one host", said)

    def test_no_figures_no_picture(self):
        self.assertIsNone(self.draw(report.Samples()))


class Cases(unittest.TestCase):
    def test_every_case_has_a_program_and_a_metric(self):
        for case in measure.CASES.values():
            self.assertTrue((report.HERE / f"{case.program}.c").is_file(), case.name)
            self.assertTrue(any(of == case.name for of, _ in report.METRICS), case.name)

    def test_progress_threads_take_part_in_fewer_rounds(self):
        case = measure.CASES["alltoall"]
        self.assertTrue(case.wants("zc-async", 0))
        self.assertFalse(case.wants("zc-async", 1))
        self.assertTrue(case.wants("zc", 2))

    def test_shared_memory_is_between_zc_and_ucx(self):
        self.assertEqual([impl for impl in measure.PEERS
                          if measure.CASES["latency-one-host"].wants(impl, 0)], ["zc", "ucx"])

    def test_progress_threads_run_once_where_they_matter_in_further_settings(self):
        self.assertTrue(measure.CASES["passive"].wants("ucx-async", 0, further=True))
        self.assertFalse(measure.CASES["passive"].wants("ucx-async", 1, further=True))
        self.assertFalse(measure.CASES["latency"].wants("ucx-async", 0, further=True))
        self.assertTrue(measure.CASES["latency"].wants("ucx", 2, further=True))

    def planned(self, asked, **options):
        measurement = measure.Measurement.__new__(measure.Measurement)
        measurement.options = types.SimpleNamespace(**{
            "impl": ["zc"], "cases": None, "long": False, "quick": False,
            **options})
        measurement.left_out, measurement.settings, measurement.rounds = {}, asked, 1
        return [(setting, case.name, arguments)
                for _, setting, case, arguments, _ in measurement.plan()]

    def test_the_first_setting_has_all_cases_and_the_others_the_main_ones(self):
        plan = self.planned([PLAIN, FULL])
        for name in ("late", "matching", "latency-one-host"):
            self.assertIn((PLAIN, name, "full"), plan)
        self.assertIn((FULL, "late", "further"), plan)
        self.assertFalse([each for each in plan if each[0] == FULL
                          and each[1] in ("matching", "latency-one-host", "memory-growth")])

    def test_cases_that_are_named_run_in_every_setting_but_those_of_one_host(self):
        plan = self.planned([PLAIN, FULL], cases=["matching", "latency-one-host"])
        self.assertEqual(plan, [(PLAIN, "matching", "full"), (PLAIN, "latency-one-host", "full"),
                                (FULL, "matching", "full")])

    def test_settings_that_cannot_be_made_are_left_out_and_told(self):
        class Hosts:
            between_hosts, link, cores = True, "bare", "full"

            @staticmethod
            def change(link, _):
                if link != "bare":
                    raise Error("no tbf")

        with contextlib.redirect_stdout(io.StringIO()) as out:
            made, not_made = settings.check(Hosts(), [FULL, PLAIN])
            with self.assertRaises(Error):
                settings.check(Hosts(), [FULL])
        self.assertEqual((made, list(not_made)), ([PLAIN], [FULL]))
        self.assertIn("left out: 10gbit/full: no tbf", out.getvalue())

    def test_without_hosts_there_is_one_setting(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            made, _ = settings.check(Network("loopback"), [FULL, PLAIN])
        self.assertEqual(made, [ONE_HOST])
        self.assertIn("10gbit/full,bare/spare", out.getvalue())

    def test_long_cases_are_asked_for(self):
        name = "overlap-collectives-8"
        self.assertNotIn((PLAIN, name, "full"), self.planned([PLAIN]))
        self.assertIn((PLAIN, name, "full"), self.planned([PLAIN], long=True))
        self.assertIn((PLAIN, name, "full"), self.planned([PLAIN], cases=[name]))

    def test_every_panel_is_of_a_known_metric(self):
        for case, metric, _ in picture.PANELS:
            self.assertIn((case, metric), report.METRICS)


class Launching(unittest.TestCase):
    def wait(self, command, patience, grace=None, finalizing=False):
        """(status, result) of waiting for COMMAND at most PATIENCE seconds."""
        told, result = threading.Event(), mpi.Result()
        if finalizing:
            told.set()
        with subprocess.Popen(command) as process:
            status = mpi._wait(process, time.monotonic() + patience, told, grace, result, None)
            process.kill()
        return status, result

    def test_tells_how_a_run_ended(self):
        self.assertEqual(self.wait(["sh", "-c", "exit 3"], 60)[0], 3)
        self.assertEqual(self.wait(["sh", "-c", "kill -9 $$"], 60)[0], 128 + 9)

    def test_a_run_that_does_not_end_is_timed_out(self):
        status, result = self.wait(["sleep", "60"], 0.2)
        self.assertIsNone(status)
        self.assertTrue(result.timed_out)

    def test_a_run_that_hangs_in_finalize_is_told_apart(self):
        status, result = self.wait(["sleep", "60"], 60, grace=0.2, finalizing=True)
        self.assertIsNone(status)
        self.assertTrue(result.hung_in_finalize)
        self.assertFalse(result.timed_out)

    def test_open_mpi_has_a_slot_for_every_rank_and_tcp_only(self):
        words = Network("2", name="t").open_mpi_command("mpirun", 3)
        self.assertIn("10.111.0.1:2,10.111.0.2:2", words)
        self.assertIn("tcp,self", words)
        self.assertEqual(words[-2:], ["-n", "3"])

    def test_ranks_go_to_as_many_hosts_as_there_are(self):
        network = Network("3", name="t")
        self.assertIn("10.111.0.1,10.111.0.2,10.111.0.3", network.command("mpiexec", 3))
        self.assertIn("10.111.0.1:2,10.111.0.2:2,10.111.0.3:2",
                      network.open_mpi_command("mpirun", 4))

    def test_open_mpi_on_one_host_uses_what_it_likes(self):
        self.assertNotIn("tcp,self", Network("1").open_mpi_command("mpirun", 2))


if __name__ == "__main__":
    unittest.main()
