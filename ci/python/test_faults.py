"""Tests of how ci/faults judges."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import faults

FILES = faults.Limit("ulimit -n", "8", r"ulimit -n")
QUEUE = faults.COMMANDS["queue"]


def ended(code, errors="", **changed):
    return faults.Ended(**{"code": code, "errors": errors, "seconds": 0, "left": 0, "killed": False, **changed})


def results(folder, status="complete", rows=2):
    """A results folder, as far as it is looked at."""
    out = folder / "out"
    out.mkdir()
    (out / "settings.json").write_text(json.dumps({"status": status}))
    for name in ("runs.csv", "summary.csv"):
        (out / name).write_text("name,status\n" + "a,complete\n" * rows)
    return out


class Judged(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        whole = tempfile.TemporaryDirectory()
        self.addCleanup(whole.cleanup)
        self.baseline = faults.Baseline(0, (), faults.results_in(results(Path(whole.name))))

    def judged(self, case, command=QUEUE, limit=FILES):
        return faults.judged(limit, command, self.baseline, case, self.folder)

    def test_a_run_that_is_done_has_all_rows_and_no_mark(self):
        self.assertIn("no results", self.judged(ended(0)))
        out = results(self.folder)
        self.assertEqual(self.judged(ended(0)), "")
        (out / "INCOMPLETE").touch()
        self.assertIn("marked", self.judged(ended(0)))
        self.assertEqual(self.judged(ended(1, "raise ulimit -n")), "")
        (out / "INCOMPLETE").unlink()
        (out / "runs.csv").write_text("name,status\na,complete\n")
        for code in (0, 1):
            self.assertIn("not whole", self.judged(ended(code, "raise ulimit -n")))
        (out / "runs.csv").unlink()
        self.assertIn("not whole", self.judged(ended(0)))

    def test_what_ends_it_is_no_fault_only_with_the_limit_or_an_option(self):
        for said in ("raise ulimit -n", "--count 3: lower it", "no RDMA device"):
            self.assertEqual(self.judged(ended(1, said)), "")
        for said in ("", "something failed", "raise ulimit -u", "raise ulimit -n or ulimit -u"):
            self.assertNotEqual(self.judged(ended(2, said)), "")

    def test_panics_signals_codes_and_what_is_left_are_faults(self):
        self.assertIn("panicked", self.judged(ended(1, "panicked at ulimit -n")))
        self.assertIn("SIGABRT", self.judged(ended(-6)))
        self.assertIn("no end", self.judged(ended("no end")))
        self.assertIn("exit code 3", self.judged(ended(3, "ulimit -n")))
        self.assertIn("exit code 101", self.judged(ended(101, "ulimit -n")))
        self.assertIn("left", self.judged(ended(1, "ulimit -n", left=1)))
        (self.folder / "out.tmp").touch()
        self.assertIn("left out.tmp", self.judged(ended(1, "ulimit -n")))

    def test_a_figure_is_whole_or_not_there(self):
        command = faults.COMMANDS["plot"]
        self.assertIn("no file", self.judged(ended(0), command))
        self.assertEqual(self.judged(ended(1, "ulimit -n"), command), "")
        (self.folder / "plot.svg").write_text("<svg>")
        self.assertIn("cut", self.judged(ended(1, "ulimit -n"), command))
        (self.folder / "plot.svg").write_text("<svg></svg>\n")
        self.assertEqual(self.judged(ended(0), command), "")


class Cases(unittest.TestCase):
    def test_all_are_at_least_a_thousand_and_few_are_of_each_limit(self):
        every = faults.cases(False, [])
        self.assertGreaterEqual(len(every), 1000)
        few = faults.cases(True, [])
        self.assertLessEqual(len(few), 60)
        self.assertEqual({limit.kind for limit, _ in few}, {limit.kind for limit, _ in every})
        self.assertEqual({name for _, name in few}, set(faults.FEW))
        with self.assertRaises(SystemExit):
            faults.cases(False, ["nothing"])

    def test_a_limit_that_was_not_set_is_no_good_case(self):
        campaign = faults.Campaign.__new__(faults.Campaign)
        for row, code in (((1, 1, 0, 0, 0), 0), ((1, 0, 0, 0, 1), 1), ((1, 0, 0, 1, 0), 1), ((0, 0, 0, 0, 0), 1)):
            columns = ("cases", "done", "refused", "bad", "not tried")
            campaign.table = {"disk": dict(zip(columns, row))}
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(campaign.print_table(), code)


if __name__ == "__main__":
    unittest.main()
