"""Tests of the verdicts of comparisons."""

import contextlib
import inspect
import io
import json
import unittest

import big
import cargo
import clock
import compare
import cores
import equals
import latency
import memory
import ranks

compare.add_all()


def silently(function, *arguments):
    """What it returns, and what it printed."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        return function(*arguments), said.getvalue()


class Table(unittest.TestCase):
    def test_options_are_read_and_refused(self):
        asked = compare.options_of("compare-perftest", ["--rounds", "2", "--pair", "send,peer"])
        self.assertEqual(asked, {"rounds": 2, "pair": ["send", "peer"]})
        self.assertEqual(compare.options_of("compare-equals", [])["away_rounds"], 8)
        for words in (["--rounds", "0"], ["--rounds", "101"], ["--rounds", "1.5"], ["--pair", "send,sent"], ["7"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
                compare.options_of("compare-perftest", words)
            self.assertIn(words[-1].split(",")[-1], said.getvalue())

    def test_each_has_a_usage_text_and_takes_its_options(self):
        for name, one in compare.MEASUREMENTS.items():
            self.assertGreater(len(one.measure.__doc__), 30, name)
            for function in filter(None, (one.measure, one.machine)):
                self.assertEqual(set(inspect.signature(function).parameters), set(one.options), name)


class Ratios(unittest.TestCase):
    def test_limits_are_allowed_themselves(self):
        for found, limits, met in ((1.1, (None, 1.1), True), (1.11, (None, 1.1), False), (0.98, (0.98,), True),
                                   (0.97, (0.98,), False), (1.03, (0.98, 1.02), False), (5, (0.98,), True)):
            is_met, said = silently(compare.judge, found, *limits)
            self.assertEqual((is_met, "NOT MET" in said), (met, not met), (found, limits))

    def test_less_than_expected_is_remarked_only(self):
        is_met, said = silently(compare.judge, 0.8, None, 1.05, 0.85)
        self.assertTrue(is_met and "below 0.85" in said)
        self.assertNotIn("below", silently(compare.judge, 0.9, None, 1.05, 0.85)[1])

    def test_the_bounds_of_a_median_leave_out_what_chance_may(self):
        self.assertEqual(compare.bounds([3, 1, 2]), (2, 1, 3))
        self.assertEqual(compare.bounds(range(6)), (2.5, 0, 5))
        self.assertEqual(compare.bounds(range(9)), (4, 1, 7))
        self.assertEqual(compare.bounds(range(21)), (10, 5, 15))

    def test_rounds_are_shown_as_what_they_are(self):
        for count, what in ((5, r"range of 5 rounds"), (6, r"95 % bounds")):
            rounds = [range(1, count + 1), [1] * count]
            is_met, said = silently(compare.judge, 1.04, 0.95, 1.05, None, rounds)
            self.assertTrue(is_met)
            self.assertRegex(said, rf"ratio +1\.040 .*\n +1\.000 +{count}\.000   {what}")
        self.assertEqual(len(silently(compare.judge, 1.04)[1].splitlines()), 1)

    def test_of_medians_and_of_rounds(self):
        self.assertEqual(compare.of_medians([1, 2, 9], [1, 1, 1]), 2)
        # A processor that changes its speed between two rounds changes both sides of a round.
        self.assertEqual(compare.of_rounds([1, 10, 20], [1, 10, 20]), 1)
        self.assertEqual([compare.ratio(*of) for of in ((0, 0), (1, 0), (0, 1))], [1, float("inf"), 0])
        with self.assertRaises(ValueError):
            compare.of_rounds([1, 2], [1])

    def test_neither_is_always_first(self):
        order = []
        sides = {name: lambda name=name: order.append(name) or len(order) for name in "ab"}
        *_, figures = compare.alternate(3, sides)
        self.assertEqual("".join(order), "abbaab")
        self.assertEqual(figures, {"a": [1, 4, 5], "b": [2, 3, 6]})
        (ours, theirs), said = silently(compare.turns, 2, lambda: 1, lambda: 3, "C")
        self.assertEqual((ours, theirs), ([1, 1], [3, 3]))
        self.assertRegex(said, r"median +1\.00 +3\.00\nspread % +0\.00 +0\.00")
        *_, last = silently(compare.turns, 3, iter((8, 10, 12)).__next__, lambda: 1, "C")[1].splitlines()
        self.assertRegex(last, r"spread % +40\.00 +0\.00")

    def test_a_command_that_fails_ends_the_comparison(self):
        self.assertEqual(compare.run("echo", 1), "1\n")
        with self.assertRaisesRegex(SystemExit, "(?s)why.*exit code 3"):
            compare.run("sh", "-c", "echo why; exit 3")
        with self.assertRaisesRegex(SystemExit, "within 0.1 s"):
            compare.run("sleep", 5, seconds=0.1)


class Cargo(unittest.TestCase):
    def test_silence_and_ignored_tests_are_no_success(self):
        line = "test result: ok. {} passed; 0 failed; {} ignored; 0 measured".format
        self.assertTrue(cargo.all_passed(line(3, 0)))
        failed = line(3, 0).replace("0 failed", "1 failed")
        for said in ("", line(0, 0), line(3, 1), f"{line(3, 0)}\n{line(0, 0)}", failed):
            self.assertFalse(cargo.all_passed(said), said)

    def test_the_program_that_cargo_built(self):
        target = {"kind": ["test"], "name": "softroce"}
        messages = [{"reason": "x"}, {"target": target}, {"target": target, "executable": "/a"}]
        self.assertEqual(cargo.built("\n".join(map(json.dumps, messages)), "test", "softroce"), "/a")
        with self.assertRaises(SystemExit):
            cargo.built("{}", "test", "softroce")


class Clock(unittest.TestCase):
    def test_whether_runs_agree(self):
        self.assertEqual(clock.again([20, 20, 20, 20]), 1)
        # Slower in the rounds 3 and 4.
        self.assertEqual(clock.again([20, 20, 40, 40, 20, 20, 40, 40]), 0.5)
        self.assertEqual(clock.again([0, 0, 1, 1]), 0)

    def test_wakeups(self):
        table = "# Histogram\n000001 00001\n000003 00002\n000004 0\n000100 00001\n# Total: 4\n"
        self.assertEqual(clock.of_cyclictest(table), (1.5, 3.5, (1.5 + 7 + 100.5) / 4, 100.5))
        for ours, theirs, met in ((52, 40, True), (52.1, 40, False), (40, 52.1, False), (2, 0.1, True)):
            self.assertEqual(clock.judge_wakeup("median", ours, theirs), met)
            self.assertTrue(clock.judge_wakeup("max", ours, theirs))

    def test_memory_of_figures(self):
        self.assertEqual(big.verdict(1024, 10, 10), "")
        self.assertIn("MEMORY", big.verdict(1025, 1, 10))
        self.assertIn("SLOW", big.verdict(1, 11, 10))


class Latency(unittest.TestCase):
    def test_all_runs_have_the_same_pages(self):
        self.assertIsNone(latency.other_pages({"2m,2m"}, {"2m,2m"}))
        for ours, theirs in (({"2m,2m"}, {"4k,2m"}), ({"2m", "4k"}, {"2m"}), (set(), set()), ({""}, {""})):
            self.assertIn("not the same pages", latency.other_pages(ours, theirs))

    def test_the_median_of_perftest(self):
        table = " #bytes #iterations t_min t_max t_typical\n 8       20000          1.50    90.1     2.75    3.0\n"
        self.assertEqual(latency.of_perftest(table, 20_000), 2.75)
        with self.assertRaises(StopIteration):
            latency.of_perftest(table, 2000)


class Others(unittest.TestCase):
    def test_intervals_overlap(self):
        def rows(*intervals):
            return [{"latency_low_ns": str(low), "latency_high_ns": str(high)} for low, high in intervals]

        self.assertTrue(memory.judge_lowest(rows((1, 3), (2, 4))))
        self.assertTrue(memory.judge_lowest(rows((1, 9), (2, 4))))
        self.assertFalse(memory.judge_lowest(rows((1, 2), (3, 4))))
        self.assertFalse(memory.judge_lowest(rows((1, 2))))

    def test_levels_take_little_more_than_their_windows(self):
        row = {"setup_time_ns": "1e9", "settle_time_ns": "1e9", "windows": "10", "window_ns": "1e8"}
        for wall, met in ((6.4e9, True), (6.5e9, False)):
            self.assertEqual(silently(memory.judge_levels, wall, [row, row])[0], met)
        with self.assertRaises(ZeroDivisionError):
            silently(memory.judge_levels, 1e9, [])

    def test_equal_runs(self):
        def comparison(*verdicts):
            return {"comparison": {"points": [{"figures": [{"figure": "f", "verdict": it} for it in verdicts]}]}}

        self.assertEqual(equals.shown(comparison("no-difference-shown", "worse")), ["f=worse"])
        for nothing in (comparison(), comparison("worse", "not-judged")):
            with self.assertRaises(SystemExit):
                equals.shown(nothing)
        self.assertEqual(equals.limits(200, 20), (10, 18))


CLEAR = (("a", "-"), ("b", "-"), ("c", "-"), ("d", "5"), ("e", "4"))


def ranking(queues, title="throughput"):
    """What a run prints of its ranks: queues with the places that are not told apart from each."""
    text = f"queue  through\nbaton  1\n\nranks by {title}\n"
    text += "place  queue    median  rounds needed  not distinguished from places\n"
    text += "                   M/s    from place 1\n-----  -----  ------  ---  ---\n"
    for place, (queue, alike) in enumerate(queues):
        text += f"{place + 1:>5}  {queue:<16}  {'12.34':>6}  {('-', '159', '>1000')[place % 3]:>14}  {alike}\n"
    return text + "rank: what there is to say.\n"


class Ranks(unittest.TestCase):
    def judged(self, runs, accepted, *said, fifth=False, expected=()):
        texts = [run if isinstance(run, str) else ranking(run) for run in runs]
        found, printed = silently(ranks.judge, texts, fifth, expected)
        self.assertEqual(found, accepted, printed)
        for part in said:
            self.assertIn(part, printed)

    def test_two_runs_alike_and_two_that_contradict_each_other(self):
        self.judged([CLEAR, CLEAR], True, "alike: throughput: a, b, c", "a is told apart from the fifth, e")
        a, b, c, d, e = CLEAR
        self.judged([CLEAR, [a, c, b, d, e]], False, "b and c change places")
        # Behind the first three it does not matter.
        d, e = ("d", "-"), ("e", "-")
        self.judged([[a, b, c, e, d], CLEAR], True)
        # One that comes from behind, and is told apart from the first three.
        self.judged([CLEAR, [d, a, b, c, e]], False, "a and d change places")

    def test_who_says_that_it_cannot_tell_does_not_contradict(self):
        unsure = [("c", "2..5"), ("a", "1, 3..5"), ("b", "1, 2, 4, 5"), ("e", "1..3, 5"), ("d", "1..4")]
        self.judged([CLEAR, unsure], True, "not told apart: throughput: a, b, c in one run, c, a, b in the other",
                    "c is not told apart from the fifth, d")
        # Of the places it says that it cannot tell, not of others.
        half = [("c", "3"), ("a", "3"), ("b", "1, 2"), ("d", "-"), ("e", "-")]
        self.judged([CLEAR, half], False, "a and c change places")
        # A queue that missed the load is not ranked, and its run says so.
        self.judged([CLEAR, CLEAR[1:]], True, "ranked in one run only: a")

    def test_what_was_not_ranked_was_not_compared(self):
        for runs, where in (([(), ()], "either run"), ([CLEAR, ()], "one run"), ([(), CLEAR], "one run")):
            self.judged(runs, False, f"NOT RANKED: throughput: no queue in {where}")
        self.judged([CLEAR, CLEAR], True, expected=["throughput"])
        self.judged([CLEAR, CLEAR], False, "NOT COMPARED", "median latency", expected=["throughput", "median latency"])

    def test_that_queues_missed_the_load_has_to_be_said(self):
        def missed(rows):
            return f"\nranks by median latency\nrank: {rows} of these 5 rows kept the requested load\n"

        none, only_one, silent = (ranking(CLEAR) + missed(rows) for rows in ("none", "only one", "all"))
        ranked = ranking(CLEAR) + ranking(CLEAR, "median latency")
        both = "cannot be told: median latency: no two queues kept the load, as both runs said"
        not_ranked = "NOT RANKED: median latency: no queue in either run"
        self.judged([none, none], True, both)
        self.judged([none, only_one], True, both)
        self.judged([ranked, none], True, "as one run said")
        # Nothing is compared where there is nothing else.
        self.judged([missed("none"), missed("none")], False, "NOT COMPARED: no ranking has queues in both")
        # On an idle machine they have to keep it.
        self.judged([none, none], False, not_ranked, fifth=True)
        # One that ranks nothing without saying why is no such run.
        self.judged([none, silent], False, not_ranked)

    def test_where_the_first_has_to_be_told_apart_from_the_fifth_there_is_a_fifth(self):
        self.judged([CLEAR, CLEAR], True, fifth=True)
        few = CLEAR[:4]
        self.judged([few, few], True, "no fifth, as 4 are ranked")
        self.judged([few, few], False, fifth=True)
        alike = [("a", "5"), *CLEAR[1:4], ("e", "1, 4")]
        self.judged([alike, alike], True)
        self.judged([alike, CLEAR], False, "a is not told apart from the fifth, e", fifth=True)


class Cores(unittest.TestCase):
    def test_the_cell_of_a_pair_is_read_of_a_table_with_or_without_others(self):
        said = " CPU    0    3\n   0    0   48\n   3   47    0\n"
        self.assertEqual([cores.cell_of(said, 0, 3), cores.cell_of(said, 3, 0)], [48, 47])
        with self.assertRaises(ValueError):
            cores.cell_of(said, 1, 3)

    def test_means_of_one_pair_are_read_and_no_others(self):
        self.assertEqual(cores.mean_of(",\n48.25,\n"), 48.25)
        self.assertEqual(cores.mean_of(",48\n50,\n"), 49)
        for said in ("", "1,2,3\n"):
            with self.assertRaises(ValueError):
                cores.mean_of(said)
