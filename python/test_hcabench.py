"""The module hcabench, on the samples and on folders that are not whole. Run by ci/notebooks."""

import gzip
import json
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars

import hcabench as results
from hcabench import figures

SAMPLE = Path(__file__).parents[1] / "notebooks/sample"
FABRIC = Path(__file__).parent / "sample/fabric"
LOG = Path(__file__).parents[1] / "crates/results/src/results/read/hlog/two_rounds.hlog"
OF_OTHERS = Path(__file__).parents[1] / "crates/results/src/results/read/hgrm_of_others"


class Frames(unittest.TestCase):
    def test_a_run_opens_without_the_name_of_its_benchmark(self):
        for folder in SAMPLE.iterdir():
            if folder.is_dir():
                self.assertEqual(results.load(folder).benchmark, folder.name)

    def test_each_file_of_each_sample_is_a_frame_of_both_with_units(self):
        kinds = {"string": polars.String, "integer": polars.Int64, "number": polars.Float64, "boolean": polars.Boolean}
        count = 0
        for folder in (folder for folder in SAMPLE.iterdir() if folder.is_dir()):
            run = results.load(folder)
            for name in run.files():
                types = next(fields for path, fields in run.fields.items() if Path(path).name == name)
                by_pandas, by_polars = run.frame(name), run.frame(name, frames="polars")
                self.assertEqual(list(by_pandas.columns), by_polars.columns)
                self.assertEqual(by_pandas.attrs["units"], run.units(name))
                for column in by_pandas:
                    read, other = by_pandas[column], by_polars[column]
                    self.assertEqual(read.isna().sum(), other.null_count(), (folder, name, column))
                    if column != "point":
                        wanted = kinds.get(types[column]["type"], polars.String)
                        self.assertEqual(other.dtype, wanted, (folder, name, column))
                    self.assertEqual(read.dropna().tolist(), other.drop_nulls().to_list(), (folder, name, column))
                    if column.endswith("_ns"):
                        self.assertEqual(run.units(name)[column], "ns")
                count += 1
        self.assertGreater(count, 15)

    def test_samples_of_all_points_have_their_point(self):
        run = results.load(SAMPLE / "hca")
        frame = run.frame("messages.csv", ["seq", "latency_ns"])
        self.assertEqual(list(frame.columns), ["point", "seq", "latency_ns"])
        self.assertEqual(frame.attrs["units"], {"latency_ns": "ns"})
        counted = frame.groupby("point").size()
        self.assertEqual(dict(counted), dict(zip(run.summary.point, run.summary.messages_sent)))
        point = run.summary.point[0]
        self.assertEqual(len(run.frame(f"{point}/messages.csv")), counted[point])

    def test_what_cannot_be_given_is_refused_with_what_can(self):
        run = results.load(SAMPLE / "queue")
        with self.assertRaisesRegex(results.ResultsError, "'messages.csv' is not a file of this run; it has runs.csv, summary.csv"):
            run.frame("messages.csv")
        with self.assertRaisesRegex(ValueError, "'dask' is not allowed, must be pandas or polars"):
            run.frame("summary.csv", frames="dask")
        with mock.patch.dict("sys.modules", polars=None), self.assertRaisesRegex(results.ResultsError, "pip install polars"):
            run.frame("summary.csv", frames="polars")

    def test_units_survive_a_selection(self):
        summary = results.load(SAMPLE / "hca").summary
        self.assertEqual(summary[summary.service == "rc"][["service", "latency_p50_ns"]].attrs["units"]["latency_p50_ns"], "ns")

    def test_a_fabric_opens_with_its_pairs(self):
        run = results.load(FABRIC)
        self.assertEqual((run.benchmark, run.incomplete), ("fabric", None))
        self.assertEqual(run.summary.tier.tolist()[-1], "all")
        pairs = run.frame("pairs.csv")
        ranks = run.settings["ranks"]
        self.assertEqual(len(pairs), ranks * (ranks - 1))
        self.assertEqual(pairs.attrs["units"]["half_round_trip_p50_ns"], "ns")
        pair = next(pairs.itertuples())
        self.assertEqual(len(run.of_rounds(pair)), pair.rounds)
        messages = run.frame(f"{pair.point}/messages.csv")
        self.assertGreater(len(messages), 0)
        self.assertIn("findings: ", run.findings_in_words())
        with self.assertRaisesRegex(results.ResultsError, "benchmark fabric, not hca"):
            results.load(FABRIC, "hca")

    def test_a_fabric_whose_tables_nothing_describes_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            document = {"hcabench": {"format": 2}, "engine": None, "findings": []}
            Path(folder, "fabric.json").write_text(json.dumps(document))
            with self.assertRaisesRegex(results.ResultsError, "results of `hcabench fabric` without datapackage.json"):
                results.load(folder)


class Cells(unittest.TestCase):
    """Cells keep what the text of their file has, by the types of datapackage.json."""

    LARGE = 2**60 + 1

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())) / "queue"
        shutil.copytree(SAMPLE / "queue", self.folder)

    def lines(self, name):
        return [line.split(",") for line in (self.folder / name).read_text().splitlines()]

    def write(self, name, lines):
        (self.folder / name).write_text("".join(",".join(cells) + "\n" for cells in lines))

    def test_labels_that_look_like_numbers_or_like_nothing_stay_texts(self):
        points = [cells[0] for cells in self.lines("summary.csv")[1:]]
        labels = ["007", "NA", "2026", "null", "None", "1e3"]
        names = dict(zip(points, [*labels, *points[len(labels):]]))
        for old, new in names.items():
            (self.folder / old).rename(self.folder / new)
        for name in ("summary.csv", "runs.csv"):
            head, *rows = self.lines(name)
            failure = head.index("failure")
            for cells in rows:
                cells[0], cells[failure] = names[cells[0]], {"007": "NA", "NA": "007"}.get(names[cells[0]], "")
            self.write(name, [head, *rows])
        run = results.load(self.folder)
        self.assertEqual(run.summary.point.tolist(), list(names.values()))
        self.assertEqual([str(folder.name) for folder in run.summary.folder], list(names.values()))
        for frame in (run.summary, run.frame("summary.csv")):
            self.assertEqual(frame.failure.dropna().tolist(), ["NA", "007"])
        self.assertEqual(run.frame("summary.csv", frames="polars")["failure"].drop_nulls().to_list(), ["NA", "007"])
        for point in run.summary.itertuples():
            self.assertEqual(len(run.of_rounds(point)), 3)

    def test_whole_numbers_beside_empty_cells_are_exact(self):
        head, *rows = self.lines("runs.csv")
        place = head.index("duration_ns")
        self.assertEqual(results.load(self.folder).fields["runs.csv"]["duration_ns"]["type"], "integer")
        for number, cells in enumerate(rows):
            cells[place] = "" if number % 2 else str(self.LARGE + number)
        self.write("runs.csv", [head, *rows])
        text = [cells[place] for cells in self.lines("runs.csv")[1:]]
        run = results.load(self.folder)
        for column in (run.runs.duration_ns, run.frame("runs.csv").duration_ns):
            self.assertEqual(str(column.dtype), "Int64")
            self.assertEqual(["" if pd.isna(cell) else str(cell) for cell in column], text)
        column = run.frame("runs.csv", frames="polars")["duration_ns"]
        self.assertEqual(column.dtype, polars.Int64)
        self.assertEqual(["" if cell is None else str(cell) for cell in column], text)
        # Of a row that is cut off, the rows before it.
        (self.folder / results.MARK).write_text("These results are incomplete. Interrupted.\n")
        with open(self.folder / "runs.csv", "a") as file:
            file.write("cut")
        with self.assertWarnsRegex(UserWarning, "cut off and left out"):
            column = run.frame("runs.csv").duration_ns
        self.assertEqual(["" if pd.isna(cell) else str(cell) for cell in column], text)

    def test_a_whole_number_that_is_none_is_refused(self):
        head, *rows = self.lines("runs.csv")
        for cell in ("1.5", "NA", "many"):
            rows[0][head.index("round")] = cell
            self.write("runs.csv", [head, *rows])
            with self.assertRaisesRegex(results.ResultsError, "runs.csv: "):
                results.load(self.folder)

    def test_figures_take_whole_numbers_with_empty_cells(self):
        self.addCleanup(plt.close, "all")
        whole = pd.DataFrame({"x": [8, 8, 16, 16, 32, 32], "y": [1, 2] * 3, "z": [10, 11, 12, 14, 15, 17], "lost": 0})
        whole = whole.assign(line="one", low=whole.z - 1, high=whole.z + 1)
        exact = whole.astype({name: "Int64" for name in ("x", "y", "z", "lost", "low", "high")})
        holes = exact.assign(z=exact.z.mask(exact.z == 17))
        for table in (exact, holes):
            figure = figures.surface(table, "x", "y", "z", "lost", "Title")
            figure.canvas.draw()
            title = "1 of 6 without a value: holes" if table is holes else ""
            self.assertEqual(figure.axes[0].get_title(), title)
            figures.medians(table, "x", "line", "Title", y="z", low="low", high="high", panel="y").canvas.draw()
            missing = int(table.z.isna().sum())
            labels = ["all: median 13 ns" if not missing else "all: median 12 ns, 1 lost"]
            self.assertEqual(labels_of(figures.histogram({"all": table.z}, "Title", range_ns=(0, 100))), labels)
            self.assertEqual(labels_of(figures.percentiles({"all": table.z}, "Title")), ["all, 1 lost" if missing else "all"])


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

    def test_arrivals_find_their_steps_in_any_order(self):
        copy = self.copy("node")
        point = next(results.load(copy, "node").summary.itertuples())
        _, arrived, lost = results.exchanged(point)
        self.assertEqual((len(arrived), len(lost)), (point.arrivals, point.not_delivered))
        self.assertFalse(arrived.strange.any() or arrived.again.any())
        self.assertTrue((arrived.t_sent_ns == arrived.t_noted_ns).all())
        rows = results.table(point.folder / "out.csv")
        stranger = rows.iloc[[0]].assign(seq=1_000_000)
        rows = pd.concat([rows.iloc[::-1], rows.iloc[[3]], stranger])
        rows.to_csv(point.folder / "out.csv", index=False)
        _, again, _ = results.exchanged(point)
        self.assertEqual((again.again.sum(), again.strange.sum()), (1, 1))
        known = again[~again.again & ~again.strange].sort_values("seq")
        for column in ("step", "t_intended_ns", "t_noted_ns", "t_received_ns"):
            self.assertEqual(known[column].tolist(), arrived.sort_values("seq")[column].tolist(), column)
        self.assertTrue((known.t_sent_ns == known.t_noted_ns).all())

    def test_times_of_steps_beside_one_that_was_not_sent_are_exact(self):
        copy = self.copy("node")
        point = next(results.load(copy, "node").summary.itertuples())
        whole, _, _ = results.exchanged(point)
        head, *rows = (point.folder / "in.csv").read_text().splitlines()
        cells = rows[-1].split(",")
        cells[head.split(",").index("seq")] = cells[head.split(",").index("t_sent_ns")] = ""
        (point.folder / "in.csv").write_text("\n".join([head, *rows[:-1], ",".join(cells)]) + "\n")
        sent, arrived, _ = results.exchanged(point)
        self.assertEqual(sent.t_sent_ns.tolist()[:-1], whole.t_sent_ns.tolist()[:-1])
        self.assertTrue(pd.isna(sent.t_sent_ns.iloc[-1]))
        known = arrived[~arrived.strange]
        self.assertEqual((len(known), len(arrived)), (len(rows) - 1, len(rows)))
        self.assertTrue((known.t_sent_ns == known.t_noted_ns).all())

    def test_what_varies_is_told_from_what_does_not(self):
        run = results.load(SAMPLE / "hca", "hca")
        self.assertEqual(run.varying(), ["service", "size_bytes", "burst", "inline"])
        self.assertIn("pause 0 ns", run.the_same())
        self.assertNotIn("burst", run.the_same())

    def test_columns_are_told_by_the_package(self):
        run = results.load(SAMPLE / "hca", "hca")
        self.assertEqual(run.settings_columns()[:3], ["service", "operation", "size_bytes"])
        self.assertEqual((run.unit("latency_p50_ns"), run.unit("service")), ("ns", ""))
        copy = self.copy("hca")
        package = json.loads((copy / "datapackage.json").read_text())
        package["resources"][0]["schema"]["fields"].pop()
        (copy / "datapackage.json").write_text(json.dumps(package))
        self.refused("not those that datapackage.json describes", copy)

    def test_folders_that_are_no_results_are_refused(self):
        self.refused("no such folder", self.folder / "gone")
        self.refused("settings.json: there is no such file", self.folder)
        self.refused("open clock.ipynb", SAMPLE / "clock")
        (self.folder / "settings.json").write_text("{}")
        self.refused("not the folder of a run", self.folder)

    def test_other_formats_are_refused(self):
        copy = self.copy("hca")
        settings = copy / "settings.json"
        document = json.loads(settings.read_text())
        for version, words in ((1, "older hcabench .*measure again"), (None, "older hcabench"), (3, "newer hcabench")):
            document["hcabench"]["format"] = version
            settings.write_text(json.dumps(document))
            self.refused(words, copy)

    def test_damaged_folders_are_refused(self):
        copy = self.copy("hca")
        one = next(copy.glob("*/settings.json"))
        whole = one.read_text()
        one.write_text(whole[: len(whole) // 2])
        self.refused("not JSON, or not all of it", copy)
        one.unlink()
        self.refused("settings.json: there is no such file", copy)

    def test_the_cause_of_a_damage_is_named(self):
        copy = self.copy("hca")
        whole = results.load(copy, "hca")
        point = next(whole.summary.itertuples())
        files = [copy / "settings.json", copy / "summary.csv", copy / "runs.csv", point.folder / "settings.json", point.folder / "messages.csv"]
        for file in files:
            good = file.read_bytes()

            def refused(words, damaged):
                file.write_bytes(damaged)
                with self.assertRaisesRegex(results.ResultsError, f"{file.name}: .*{words}"):
                    results.messages(next(results.load(copy, "hca").summary.itertuples()))

            refused("compressed with gzip; unpack it with gunzip", gzip.compress(good))
            refused("UTF-16", good.decode().encode("utf-16"))
            if file.suffix == ".csv":
                refused("is empty", b"")
                refused("semicolons; save it with commas", good.replace(b",", b";"))
            if file.name in ("summary.csv", "runs.csv"):
                refused("in it twice", good + good.splitlines(keepends=True)[1])
            file.unlink()
            (file.parent / f"{file.name}.gz").write_bytes(gzip.compress(good))
            with self.assertRaisesRegex(results.ResultsError, f"{file.name}.gz is there in its place; unpack it with gunzip"):
                results.messages(next(results.load(copy, "hca").summary.itertuples()))
            (file.parent / f"{file.name}.gz").unlink()
            for alike in (b"\xef\xbb\xbf" + good, good.replace(b"\n", b"\r\n")):
                file.write_bytes(alike)
                again = results.load(copy, "hca")
                self.assertEqual(list(again.summary.columns), list(whole.summary.columns))
                self.assertTrue(results.messages(next(again.summary.itertuples())).equals(results.messages(point)) or file.name == "messages.csv")
            file.write_bytes(good)

    def test_distributions_of_others_are_read(self):
        # As the programs of other languages write 1500, 2500, 2500 and 7000; the reader of hcabench has the same files.
        files = sorted(OF_OTHERS.glob("*.hgrm"))
        self.assertEqual([file.stem for file in files], ["c", "go", "java", "python", "rust"])
        for file in files:
            read = results.distribution(file)
            self.assertEqual((list(read.values_ns), list(read.counts)), ([1500, 2501, 7003], [1, 2, 1]), file)
            copy = self.folder / file.name
            lines = file.read_bytes().splitlines(keepends=True)
            last = next(number for number, line in enumerate(lines) if line.startswith(b"#["))
            copy.write_bytes(b"".join(lines[: last - 2] + lines[last:]))
            with self.assertRaisesRegex(results.ResultsError, "rows are missing"):
                results.distribution(copy)

    def test_a_log_has_the_intervals_of_the_samples(self):
        # As the test of the reader of hcabench makes them: one in 10 ms, but for a stall.
        moments = np.array([at for at in range(250) if not 120 <= at < 200])
        read = results.intervals(LOG, (50, 99))
        self.assertEqual(list(read["round"]), [0] * 5 + [1] * 5)
        for number in range(2):
            samples = 1000 + moments * moments * 7919 * (number + 1) % 1_000_003
            own = read[read["round"] == number]
            self.assertEqual(own.samples.sum(), len(samples))
            for interval in own.itertuples():
                inside = np.sort(samples[moments // 50 == round(interval.begin_s / 0.5)])
                self.assertEqual(interval.samples, len(inside))
                if len(inside) == 0:
                    self.assertTrue(np.isnan(interval.max_ns))
                    continue
                ranks = [int(np.ceil(len(inside) * percent / 100)) - 1 for percent in (50, 99)]
                for found, exact in zip((interval.p50_ns, interval.p99_ns, interval.max_ns), (*inside[ranks], inside[-1])):
                    self.assertTrue(exact <= found <= exact * 1.001 + 1, (found, exact))

    def test_a_log_is_read_by_the_reader_of_hdrhistogram(self):
        from hdrh.histogram import HdrHistogram
        from hdrh.log import HistogramLogReader

        reader, found = HistogramLogReader(str(LOG), HdrHistogram(1, 2**62, 3)), []
        self.addCleanup(reader.close)
        while (interval := reader.get_next_interval_histogram()) is not None:
            found.append((interval.get_start_time_stamp(), interval.get_end_time_stamp(), interval.get_total_count()))
        begun = [1_764_000_000_000, 1_764_000_100_000]
        times = [(start + 500 * place, start + 500 * place + (490 if place == 4 else 500)) for start in begun for place in range(5)]
        self.assertEqual(found, [(*time, count) for time, count in zip(times, [50, 50, 20, 0, 50] * 2)])

    def test_a_log_without_the_package_names_the_command_that_installs_it(self):
        with mock.patch.dict("sys.modules", {"hdrh": None, "hdrh.histogram": None}):
            with self.assertRaisesRegex(results.ResultsError, "hdrhistogram is not installed; .*`pip install hdrhistogram`"):
                results.intervals(LOG)

    def test_a_log_that_is_cut_is_refused(self):
        lines, file = LOG.read_text().splitlines(keepends=True), self.folder / "latency.hlog"
        second = next(at for at, line in enumerate(lines) if line.startswith("#[Round: 1"))
        for kept in set(range(len(lines))) - {second}:
            file.write_text("".join(lines[:kept]))
            with self.assertRaises(results.ResultsError, msg=f"{kept} of {len(lines)} lines"):
                results.intervals(file)
        file.write_text("".join(lines)[:-9])
        with self.assertRaisesRegex(results.ResultsError, "or not all of it"):
            results.intervals(file)

    def test_a_row_must_say_what_its_folder_says(self):
        copy = self.copy("queue")
        rows = (copy / "summary.csv").read_text().splitlines(keepends=True)
        first, second = (row.split(",", 1) for row in rows[1:3])
        rows[1:3] = [f"{second[0]},{first[1]}", f"{first[0]},{second[1]}"]
        (copy / "summary.csv").write_text("".join(rows))
        self.refused("the summary and .* differ in", copy, "queue")

    def test_rounds_of_points_that_are_not_there_are_refused(self):
        copy = self.copy("queue")
        rows = (copy / "summary.csv").read_text().splitlines(keepends=True)
        (copy / "summary.csv").write_text("".join(rows[:-1]))
        self.refused("points that the summary does not have", copy, "queue")

    def test_a_row_that_is_cut_is_refused_or_left_out_with_a_word(self):
        copy = self.copy("hca")
        point = next(results.load(copy, "hca").summary.itertuples())
        file = point.folder / "messages.csv"
        whole = results.messages(point)
        text = file.read_text()
        for cut in (text[:-1], text[:-12]):  # within a number, and before a whole cell
            file.write_text(cut)
            with self.assertRaisesRegex(results.ResultsError, "messages.csv: its last row is cut off"):
                results.messages(point)
        (copy / results.MARK).write_text("These results are incomplete. Interrupted.\n")
        with self.assertWarnsRegex(UserWarning, "messages.csv: its last row is cut off and left out"):
            read = results.messages(point)
        self.assertTrue(read.equals(whole[:-1].astype(read.dtypes)))

    def test_a_distribution_that_is_cut_is_refused(self):
        source = next((SAMPLE / "queue").glob("*/latency.hgrm"))
        whole = source.read_text()
        file = self.folder / "latency.hgrm"
        lines = whole.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines) if line.startswith("#["))
        # Not every program writes the last line.
        for kept in range(len(lines) - 1):
            file.write_text("".join(lines[:kept]))
            with self.assertRaises(results.ResultsError, msg=f"{kept} of {len(lines)} lines"):
                results.distribution(file)
        for words, text in {
            "it is cut off": whole[: whole.rindex("]")],
            "or not all of it": "".join([*lines[: end - 1], f"{lines[end - 1][:20]}\n", *lines[end:]]),
            "rows are missing": "".join(lines[: end - 9] + lines[end:]),
        }.items():
            file.write_text(text)
            with self.assertRaisesRegex(results.ResultsError, words):
                results.distribution(file)
        file.write_text(whole)
        self.assertEqual(results.distribution(file).counts.sum(), 15000)

    def test_an_incomplete_run_is_read_and_marked(self):
        copy = self.copy("hca")
        (copy / "INCOMPLETE").write_text("These results are incomplete. Interrupted.\n")
        run = results.load(copy, "hca")
        self.assertIn("Interrupted", run.incomplete)
        self.assertEqual(run.title("Latency"), "Latency (INCOMPLETE run)")

    def test_findings_are_shown_with_the_points_that_they_are_about(self):
        copy = self.copy("hca")
        self.assertIn("no findings.json", results.load(copy, "hca").findings_in_words())
        points = results.load(copy, "hca").summary.point.tolist()

        def finding(severity, problem, points, cause="", fix=""):
            return {"severity": severity, "problem": problem, "cause": cause, "fix": fix, "points": points}

        found = [
            finding("invalid", "software devices (rxe0)", [], "no adapter"),
            finding("reservation", "too few samples", points[:2], fix="use --repeat"),
            finding("reservation", "memory is shared", points),
            finding("reservation", "messages were lost", points[:1]),
            finding("advice", "pages are small", points),
        ]
        (copy / "findings.json").write_text(json.dumps({"count": 5, "findings": found}))
        self.assertEqual(
            results.load(copy, "hca").findings_in_words().splitlines(),
            [
                "findings: 4",
                "- invalid: software devices (rxe0): no adapter",
                f"- reservation: 2 of {len(points)} points: too few samples; use --repeat",
                f"- reservation: all {len(points)} points: memory is shared",
                f"- reservation: {points[0]}: messages were lost",
            ],
        )

    def test_a_finding_that_was_lost_shows(self):
        copy = self.copy("hca")
        (copy / "findings.json").write_text(json.dumps({"count": 2, "findings": [{"kind": "note"}]}))
        with self.assertRaisesRegex(results.ResultsError, "1 findings in place of 2"):
            results.load(copy, "hca")
        (copy / "findings.json").write_text("[]")
        self.assertEqual(results.load(copy, "hca").findings, [])

    def test_lost_messages_have_no_latency(self):
        run = results.load(SAMPLE / "hca", "hca")
        self.assertGreater(run.summary.messages_lost.sum(), 0, "the sample is to have lost messages")
        for point in run.summary.itertuples():
            self.assertEqual(results.messages(point).latency_ns.isna().sum(), point.messages_lost)

    def test_a_column_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(results.ResultsError, "wrong_ns"):
            results.table(next((SAMPLE / "clock").glob("*/jumps.csv")), ["t_ns", "wrong_ns"])


def labels_of(figure):
    return figure.axes[0].get_legend_handles_labels()[1]


class Figures(unittest.TestCase):
    def tearDown(self):
        plt.close("all")

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

    def test_lost_messages_are_counted_in_the_legend(self):
        some = np.array([100.0, np.nan, 300.0, np.nan, 200.0])
        series = {"some": some, "none": np.full(1234, np.nan), "all": np.array([5.0]), "pairs": (np.array([7]), np.array([2]))}
        said = {
            "histogram": ["some: median 200 ns, 2 lost", "none: no samples, 1,234 lost", "all: median 5 ns", "pairs: median 7 ns"],
            "percentiles": ["some, 2 lost", "none: no samples, 1,234 lost", "all", "pairs"],
        }
        for name, labels in said.items():
            figure = getattr(figures, name)(series, "Title")
            self.assertEqual(labels_of(figure), labels, name)
        figure = figures.histogram(series, "Title", missing="without")
        self.assertIn("none: no samples, 1,234 without", labels_of(figure))

    def test_where_everything_was_lost_the_figure_says_so(self):
        empty = {"ud": np.full(3, np.nan), "distribution": results.Distribution(np.array([]), np.array([], dtype=int))}
        labels = ["ud: no samples, 3 lost", "distribution: no samples"]
        for range_ns in (None, "auto", (0, 500)):
            self.assertEqual(labels_of(figures.histogram(empty, "Title", range_ns=range_ns)), labels)
        self.assertEqual(labels_of(figures.percentiles(empty, "Title")), labels)

    def test_a_surface_has_holes_and_counts_them(self):
        rows = [(x, y, 10.0 + x + y, 0.0) for x in (8, 16, 32, 64) for y in (1, 2, 4)]
        table = pd.DataFrame(rows, columns=["x", "y", "z", "lost"])
        faces = lambda figure: len(figure.axes[0].collections[0].get_facecolor())
        whole = figures.surface(table, "x", "y", "z", "lost", "Title")
        self.assertEqual((faces(whole), whole.axes[0].get_title()), (6, ""))
        for absent in (table[(table.x != 64) | (table.y != 4)], table.assign(z=table.z.where((table.x != 64) | (table.y != 4)))):
            heights = figures.heights_of(absent, "x", "y", "z")
            self.assertEqual((heights.shape, int(heights.isna().sum().sum())), ((3, 4), 1))
            figure = figures.surface(absent, "x", "y", "z", "lost", "Title")
            self.assertEqual(figure.axes[0].get_title(), "1 of 12 without a value: holes")
            figure.canvas.draw()
        # A ladder without two neighbours in both directions: nothing to span a face over.
        ladder = table[(table.x > 16) == (table.y > 1)].query("y < 4 and x in (8, 32)")
        self.assertIsNone(figures.surface(ladder, "x", "y", "z", "lost", "Title"))

    def test_a_panel_without_a_surface_is_named(self):
        rows = [(line, x, y, 5.0, 0.0) for line in ("rc", "ud") for x in (8, 16) for y in (1, 2)]
        table = pd.DataFrame(rows, columns=["line", "x", "y", "z", "lost"])
        table.loc[table.line == "ud", "z"] = np.nan
        figure = figures.surface(table, "x", "y", "z", "lost", "Title", "all the same", panel="line")
        self.assertIn("too few values for a surface: ud", figure.get_suptitle())

    def test_bins_of_half_decades_hold_their_values(self):
        for values in ([1000], [1000, 1000], [999], [1, 10], [3.2, 31_000], [100_000, 1_000_000]):
            edges = figures.half_decades(np.array(values, dtype=float))
            self.assertGreaterEqual(len(edges), 3, values)
            self.assertTrue(edges[0] <= min(values) and max(values) < edges[-1], (values, edges))
            np.testing.assert_allclose(edges[1:] / edges[:-1], 10**0.5)

    def test_a_sweep_of_one_setting_has_no_surface(self):
        summary = results.load(SAMPLE / "hca", "hca").summary
        one = summary[(summary.burst == summary.burst.min()) & (summary.service == "rc") & (summary.inline == "off")]
        self.assertIsNone(figures.surface(one, "size_bytes", "burst", "latency_p50_ns", "messages_lost", "Title"))


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
