"""Tests of the readers of results and of what is judged of tables."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import fabric
import licences
import links
import notebooks
import queues
import results
import truth


class Folder(unittest.TestCase):
    """A folder for each test, and nothing on the terminal."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.said = io.StringIO()
        silent = contextlib.redirect_stdout(self.said)
        silent.__enter__()
        self.addCleanup(silent.__exit__, None, None, None)

    def table(self, name, header, *rows):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    def json(self, name, document):
        (self.folder / name).write_text(json.dumps(document))


class Readers(Folder):
    def test_cells_with_commas_and_quotes_are_one(self):
        path = self.table("summary.csv", "point,failure,p50_ns", '"a,b","said ""no""",1500', "c,,2")
        self.assertEqual(results.first(path), {"point": "a,b", "failure": 'said "no"', "p50_ns": "1500"})
        self.assertEqual(len(results.rows(path)), 2)
        with self.assertRaises(ValueError):
            results.first(self.table("empty.csv", "point"))

    def test_a_time_counts_only_where_all_messages_arrived(self):
        said = results.values("received=2000\nlatency_p50_ns=1500\npages=2m,2m\n")
        self.assertEqual(results.time_us(said, "latency_p50_ns", "received", 2000), 1.5)
        for wrong in (1999, 2001, ""):
            with self.assertRaises(SystemExit):
                results.time_us({**said, "received": str(wrong)}, "latency_p50_ns", "received", 2000)
        with self.assertRaises(SystemExit):
            results.time_us({}, "latency_p50_ns", "received", 2000)

    def test_median(self):
        self.assertEqual(results.median([3, 1, 2, 10]), 2.5)

    def test_two_kernels_have_two_boot_ids(self):
        self.assertEqual(results.boot_ids([{"boot_id": "b"}, {"boot_id": "a"}]), ["a", "b"])
        for ids in (["a", "a"], ["a", None], ["a"], ["a", "b", "b"]):
            with self.assertRaises(ValueError):
                results.boot_ids([{"boot_id": it} for it in ids])


class Fabrics(Folder):
    def nodes(self, *verdicts):
        rows = [f"{rank},{way},{verdict},{score}" for rank, (way, verdict, score) in enumerate(verdicts)]
        self.table("nodes.csv", "rank,direction,verdict,score", *rows)

    def test_only_the_delayed_node_may_be_named(self):
        self.nodes(("", "fine", 1), ("egress", "slow", 40), ("", "fine", ""))
        self.assertTrue(fabric.named(self.folder, "1", "egress"))
        self.assertFalse(fabric.named(self.folder, "1", "ingress"))
        self.assertFalse(fabric.named(self.folder, "0", "egress"))
        self.assertFalse(fabric.named(self.folder))
        self.nodes(("egress", "slow", 30), ("egress", "slow", 40))
        self.assertFalse(fabric.named(self.folder, "1", "egress"))
        self.nodes(("", "fine", 50), ("egress", "slow", 40))
        self.assertFalse(fabric.named(self.folder, "1", "egress"))
        self.nodes(("", "fine", 50))
        self.assertTrue(fabric.named(self.folder))

    def test_all_pairs_are_there_but_those_of_the_dead(self):
        pairs = [(one, other) for one in range(4) for other in range(4) if one != other]
        row = "{},{},0,complete".format

        def write(there, left_out):
            self.table("runs.csv", "from_rank,to_rank,round,status", *(row(*pair) for pair in there))
            self.table("left_out.csv", "from_rank,to_rank", *("{},{}".format(*pair) for pair in left_out))

        of_dead = [pair for pair in pairs if 2 in pair]
        others = [pair for pair in pairs if 2 not in pair]
        write(pairs, [])
        self.assertTrue(fabric.there(self.folder))
        self.assertFalse(fabric.there(self.folder, "2"), "nothing is left out")
        write(others, of_dead)
        self.assertTrue(fabric.there(self.folder, "2"))
        self.assertFalse(fabric.there(self.folder))
        write(others[1:], of_dead)
        self.assertFalse(fabric.there(self.folder, "2"), "a pair of the living is missing")
        write(others, [*of_dead, (0, 1)])
        self.assertFalse(fabric.there(self.folder, "2"), "a pair of the living is left out")

    def test_what_was_whole_is_not_measured_again(self):
        rows = [f"{number},{number}" for number in range(12)]
        before = self.table("before.csv", "pair,time", *rows[:5])
        self.assertTrue(fabric.kept(before, self.table("after.csv", "pair,time", *rows)))
        again = ["0,9", "1,9", "2,9", *rows[3:]]
        self.assertFalse(fabric.kept(before, self.table("after.csv", "pair,time", *again)))
        self.assertFalse(fabric.kept(before, self.table("after.csv", "pair,time", *rows[:11])))

    def test_hosts_and_their_clocks(self):
        self.json("settings.json", {"obtained": {"hosts": {"a": {"boot_id": "x"}, "b": {"boot_id": "y"}}}})
        self.assertTrue(fabric.hosts(self.folder))
        self.json("fabric.json", {"there": [{"boot_id": "x"}, {"boot_id": "x"}]})
        with self.assertRaises(ValueError):
            fabric.hosts(self.folder)
        for low, high, is_right in ((176.1, 206.3, True), (-1, 206, False), (201, 206, False), (100, 199, False)):
            self.table("runs.csv", "clock_rate_low_ppm,clock_rate_high_ppm,p50_ns", f"{low},{high},")
            self.assertEqual(fabric.rate(self.folder, "200"), is_right)
        self.assertTrue(fabric.empty(self.folder, "p50_ns"))
        self.assertFalse(fabric.empty(self.folder, "p50_ns", "clock_rate_low_ppm"))


class Truth(Folder):
    def known(self, *rows):
        return self.table("truth.csv", "a_ns,day_ns,low_ns,high_ns", *rows)

    def samples(self, *rows, arrived=None):
        self.table("run/point/out.csv", "t_sent_ns,t_received_ns,latency_low_ns,latency_high_ns", *rows)
        self.table("run/runs.csv", "point,messages_received", f"point,{len(rows) if arrived is None else arrived}")

    def judged(self):
        return truth.judge(self.folder / "truth.csv", self.folder / "run")

    def noticed(self, later):
        return truth.noticed(self.folder / "truth.csv", self.folder / "run", later)

    def setUp(self):
        super().setUp()
        self.known("7,0,1000,1010", "8,1000,1000,1010")

    def test_the_second_clock_may_run_at_another_rate(self):
        self.assertEqual(truth.truth_at([(0, 10, 20), (100, 30, 50)], 50), (20, 35))
        self.assertEqual([truth.truth_at([(0, 1, 2), (9, 1, 2)], at) for at in (-1, 0, 10)], [None] * 3)

    def test_all_that_a_latency_may_be_is_within_its_bounds(self):
        # 500 to 510 ns.
        self.samples("100,1610,500,510")
        self.assertTrue(self.judged())
        self.assertEqual([self.noticed(later) for later in ("-20", "0", "5", "20")], [True, False, False, True])

    def test_one_sample_outside_is_enough_and_nearly_all_have_to_be_proved(self):
        right, edge, unknown = "100,1610,490,520", "100,1610,505,520", "2000,1610,490,520"
        outside, without = "100,1610,511,520", "100,1610,,"
        for others, holds in (([edge], True), ([edge] * 2, False), ([unknown], True), ([unknown] * 2, False),
                              ([outside], False), ([without], False)):
            self.samples(*[right] * (100 - len(others)), *others)
            self.assertEqual(self.judged(), holds, others)
        self.samples(right, "100,,,", arrived=1)
        self.assertTrue(self.judged(), "a lost one needs no bounds")

    def test_messages_of_the_hca_benchmark_have_no_times_of_day(self):
        self.known("0,7,1000,1010", "1000,8,1000,1010")
        self.table("run/runs.csv", "point,messages_received", "point,1")
        for header in ("t_subm_ns,t_recv_ns", "t_subm_ns,t_send_ns,t_recv_ns"):
            send = "50,100" if "send" in header else "100"
            self.table("run/point/messages.csv", header + ",latency_low_ns,latency_high_ns", f"{send},1610,500,510")
            self.assertTrue(self.judged())

    def test_where_a_machine_stood_still_the_rows_beside_it_count(self):
        self.known("7,0,1000,1010", "8,100,500,9010", "9,200,1000,1010")
        self.samples("99,1609,490,520")
        self.assertTrue(self.judged())

    def test_a_point_whose_samples_are_missing_proves_nothing(self):
        right = "100,1610,490,520"
        for rows, arrived in (([], 0), ([right], 2)):
            self.samples(*rows, arrived=arrived)
            self.assertFalse(self.judged())


class Queues(Folder):
    def test_two_queues_are_compared_round_by_round(self):
        self.table("runs.csv", "capacity,payload_bytes,queue,round,p50_ns", "64,8,a,0,4", "64,8,b,0,2", "64,8,a,1,9",
                   "64,8,b,1,3", "64,8,a,2,", "64,8,b,2,5")
        found = queues.by_round(self.folder / "runs.csv", "p50_ns")
        self.assertEqual(queues.ratio_of("a", "b", found[8, 64]), (2.5, 2, 3))
        self.assertIsNone(queues.ratio_of("a", "c", found[8, 64]))

    def verdict(self, what, own, other):
        by_queue = {"baton": dict(enumerate(own)), "rtrb": dict(enumerate(other)), queues.CALLED: {0: 99, 1: 99, 2: 99}}
        return queues.verdict((64, 8), what, by_queue, 3)[:2]

    def test_our_own_queue_is_the_best_in_the_median_of_all_places(self):
        self.assertTrue(self.verdict("throughput", [10, 10, 8], [9, 9, 9])[0])
        self.assertFalse(self.verdict("throughput", [8, 8, 10], [9, 9, 9])[0])
        self.assertTrue(self.verdict("median latency", [8, 8, 10], [9, 9, 9])[0])
        self.assertFalse(self.verdict("median latency", [10, 10, 8], [9, 9, 9])[0])
        # A place without a figure is one that was not won.
        self.assertFalse(self.verdict("throughput", [10, 10], [9, 9, 9])[0])
        met, said = self.verdict("throughput", [], [9, 9, 9])
        self.assertTrue(not met and "no place has figures" in said)

    def test_our_own_queue_has_to_win_by_its_limit_and_not_against_itself(self):
        self.assertFalse(self.verdict("throughput", [10.4] * 3, [10] * 3)[0])
        self.assertTrue(self.verdict("throughput", [10.5] * 3, [10] * 3)[0])
        self.assertTrue(self.verdict("median latency", [10] * 3, [10] * 3)[0])
        by_queue = {"baton": {0: 20}, "rtrb:batch=1": {0: 10}, "baton-batching:batch=64": {0: 99}}
        self.assertTrue(queues.verdict((64, 8), "throughput", by_queue, 1)[0])

    def test_the_choice_may_not_cost_more_than_its_limit(self):
        def choice(what, own):
            by_queue = {"baton": {0: own}, "baton-batching": {0: 100}, "baton-demoting": {0: 100}, "rtrb": {0: 1}}
            return queues.choice(what, by_queue, 1)

        self.assertTrue(choice("throughput", 95)[0])
        right, said = choice("throughput", 94)
        self.assertTrue(not right and "NOT MET" in said and "at least 0.95" in said)
        self.assertTrue(choice("median latency", 105)[0])
        self.assertFalse(choice("median latency", 106)[0])
        self.assertEqual(queues.choice("throughput", {"baton": {0: 1}, "rtrb": {0: 2}}, 1), (True, ""))

    def test_figures_are_those_of_the_summary(self):
        self.table("place/summary.csv", "capacity,payload_bytes,queue,rounds,p50_ns", "64,8,baton,2,2",
                   "64,8,lamport,9,", "64,8,rtrb,0,99")
        found = queues.medians([self.folder / "place", self.folder / "missing"], "p50_ns", 2)
        self.assertEqual(found, {(64, 8): {"baton": {0: 4}}})
        self.assertEqual(queues.promised({"lamport": {0: 4}, "b-queue": {0: 5}}), {"b-queue": 1.25})


class Repository(Folder):
    def test_links_lead_to_files_and_headings(self):
        (self.folder / "a.md").write_text("# One & two\n```\n# no heading\n```\n[b](#one--two) [c](a.md#one--two)\n")
        page = self.folder / "b.md"
        page.write_text("[a](a.md) [x](x.md) [y](a.md#no-heading) [w](https://example.org)\n")
        broken, count = links.broken_links([str(self.folder / "a.md"), str(page)])
        self.assertEqual(count, 5)
        self.assertEqual(len(broken), 2)
        self.assertRegex(broken[0] + broken[1], "x.md.*#no-heading")

    def test_a_licence_can_be_met(self):
        for allowed in ("MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(GPL-2.0 OR MIT) AND ISC", "Apache-2.0 WITH it"):
            self.assertTrue(licences.allows(allowed), allowed)
        for refused in ("GPL-3.0", "MIT AND GPL-3.0", "MIT AND (GPL-2.0 OR MPL-2.0)", "MIT)"):
            self.assertFalse(licences.allows(refused), refused)
        package = {"name": "it", "license": None, "license_file": None}
        self.assertEqual(licences.refusal(package), "it: None")
        (self.folder / "LICENSE").write_text("all rights reserved")
        manifest = str(self.folder / "Cargo.toml")
        self.assertIn("the file", licences.refusal({**package, "license_file": "LICENSE", "manifest_path": manifest}))


class Notebooks(Folder):
    def test_only_the_last_row_is_falsified_and_whole_numbers_stay_whole(self):
        path = self.table("p/out.csv", "seq,t_ns", "1,5", "2,9000000000000000001")
        notebooks.falsify(self.folder, "*/out.csv", "t_ns", "1000000000")
        self.assertEqual([row["t_ns"] for row in results.rows(path)], ["5", "9000000001000000001"])
        notebooks.falsify(self.folder, "*/out.csv", "t_ns", "-9000000001000000002")
        notebooks.falsify(self.folder, "*/out.csv", "t_ns", "0.5")
        self.assertEqual(results.rows(path)[1], {"seq": "2", "t_ns": "-0.5"})
        notebooks.reorder(self.folder)
        self.assertEqual(sorted(row["seq"] for row in results.rows(path)), ["1", "2"])

    def test_outputs_are_found_and_what_names_the_machine_is_taken_out(self):
        self.json("a.ipynb", {"cells": [{"outputs": [], "execution_count": None}]})
        notebooks.cleared(self.folder / "a.ipynb")
        self.json("a.ipynb", {"cells": [{"outputs": [1]}]})
        with self.assertRaises(SystemExit):
            notebooks.cleared(self.folder / "a.ipynb")
        machine = {"hostname": "x", "kernel_command_line": "y", "cpus": 2}
        self.json("settings.json", {"machine": machine, "command_line": ["/a/hcabench", "--quiet"]})
        notebooks.publish(self.folder)
        found = results.document(self.folder / "settings.json")
        self.assertEqual(found["machine"], {"hostname": None, "kernel_command_line": None, "cpus": 2})
        self.assertEqual(found["command_line"], ["hcabench", "--quiet"])
        self.json("settings.json", {"machine": {"hostname": "x"}})
        with self.assertRaises(SystemExit):
            notebooks.publish(self.folder)
