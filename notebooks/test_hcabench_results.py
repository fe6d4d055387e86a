"""What the notebooks share, on the sample and on folders that are not whole. Run by ci/notebooks."""

import json
import shutil
import tempfile
import unittest
from pathlib import Path

import numpy as np

import hcabench_figures as figures
import hcabench_results as results

SAMPLE = Path(__file__).parent / "sample"


class Folders(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def copy(self, benchmark):
        return Path(shutil.copytree(SAMPLE / benchmark, self.folder / benchmark))

    def refused(self, words, path, benchmark="hca"):
        with self.assertRaisesRegex(results.ResultsError, words):
            results.load(path, benchmark)

    def test_each_point_has_the_folder_that_its_settings_name(self):
        run = results.load(SAMPLE / "hca", "hca")
        self.assertEqual(run.summary.folder.nunique(), len(run.summary))
        for point in run.summary.itertuples():
            self.assertIn(f"{point.service}-send-{point.size_bytes}B-burst{point.burst}-", point.folder.name)
            self.assertEqual("-inline-" in point.folder.name, point.inline == "on")
        run = results.load(SAMPLE / "queue", "queue")
        for point in run.summary.itertuples():
            self.assertTrue(point.folder.name.startswith(f"{point.queue}-cap{point.capacity}-{point.payload_bytes}B-"))

    def test_what_varies_is_told_from_what_does_not(self):
        run = results.load(SAMPLE / "hca", "hca")
        self.assertEqual(run.varying(), ["service", "size_bytes", "burst", "inline"])
        self.assertIn("pause 0 ns", run.the_same())
        self.assertNotIn("burst", run.the_same())

    def test_folders_that_are_no_results_are_refused(self):
        self.refused("no such folder", self.folder / "gone")
        self.refused("summary.csv: there is no such file", self.folder)
        self.refused("open clock.ipynb", SAMPLE / "clock")
        (self.folder / "summary.csv").write_text("a,b\n1,2\n")
        self.refused("not a summary of hcabench", self.folder)

    def test_damaged_folders_are_refused(self):
        copy = self.copy("hca")
        one = next(copy.glob("*/settings.json"))
        whole = one.read_text()
        one.write_text(whole[: len(whole) // 2])
        self.refused("not JSON, or not all of it", copy)
        one.unlink()
        self.refused("a point without a folder", copy)

    def test_an_incomplete_run_is_read_and_marked(self):
        copy = self.copy("hca")
        (copy / "INCOMPLETE").write_text("These results are incomplete. Interrupted.\n")
        run = results.load(copy, "hca")
        self.assertIn("Interrupted", run.incomplete)
        self.assertEqual(run.title("Latency"), "Latency (INCOMPLETE run)")

    def test_lost_messages_have_no_latency(self):
        run = results.load(SAMPLE / "hca", "hca")
        self.assertGreater(run.summary.messages_lost.sum(), 0, "the sample is to have lost messages")
        for point in run.summary.itertuples():
            self.assertEqual(results.messages(point).latency_ns.isna().sum(), point.messages_lost)

    def test_a_column_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(results.ResultsError, "wrong_ns"):
            results.table(SAMPLE / "clock" / "jumps.csv", ["cpu", "wrong_ns"])


class Figures(unittest.TestCase):
    def test_medians_of_counted_samples_are_those_of_the_samples(self):
        random = np.random.default_rng(6)
        for length in (1, 2, 9, 10):
            values = random.integers(0, 6, length)
            distinct, counts = np.unique(values, return_counts=True)
            self.assertEqual(figures.median_of(distinct, counts), np.median(values), values)

    def test_nearest_rank_never_interpolates(self):
        values, counts = np.array([30, 10, 20]), np.array([1, 2, 1])
        self.assertEqual([results.nearest_rank(values, counts, p) for p in (0.1, 50, 75, 75.1, 100)], [10, 10, 20, 30, 30])

    def test_a_distribution_between_its_values_is_even(self):
        distribution = results.Distribution(np.array([10.0, 20.0]), np.array([2, 4]))
        np.testing.assert_allclose(distribution.below([0, 10, 15, 20, 99]), [0, 2, 4, 6, 6])

    def test_numbers_never_have_an_exponent(self):
        words = [figures.number_in_words(value) for value in (12_620.4, 29.514, 100, 0.25)]
        self.assertEqual(words, ["12,620", "29.51", "100", "0.25"])
        self.assertEqual(figures.number_in_words(103, 2), "100")

    def test_a_sweep_of_one_setting_has_no_surface(self):
        summary = results.load(SAMPLE / "hca", "hca").summary
        one = summary[(summary.burst == summary.burst.min()) & (summary.service == "rc") & (summary.inline == "off")]
        self.assertIsNone(figures.surface(one, "size_bytes", "burst", "latency_p50_us", "messages_lost", "Title"))


class Samples(unittest.TestCase):
    def test_they_name_no_machine_and_no_folder_of_one(self):
        documents = list(SAMPLE.glob("**/settings.json"))
        self.assertGreater(len(documents), 2)
        for file in documents:
            machine = json.loads(file.read_text())["machine"]
            self.assertIsNone(machine["hostname"], file)
            self.assertIsNone(machine["kernel_command_line"], file)


if __name__ == "__main__":
    unittest.main()
