"""Reads the results folders of hcabench as pandas tables, for the notebooks beside this file.

A folder is one run of a benchmark: `hcabench` (here called hca), `hcabench queue`, `hcabench clock`, `hcabench node`,
`hcabench memory`. What its CSV files hold (types, units, which columns are settings) stands in its `datapackage.json`.
`load` reads its summary and settings; samples are read point by point, and only the columns that are asked for, so that a sweep of any
length fits into memory. Nothing is removed as an outlier.
"""

import io
import json
import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

VARIABLE = "HCABENCH_RESULTS"

FORMAT = 2
MARK = "INCOMPLETE"
FINDINGS = "findings.json"

# Values that go without saying.
UNREMARKABLE = {
    "jitter_percent": 0, "receiver_jitter_percent": 0, "receiver_load": "none", "measure_failed": False, "receiver_pause_ns": 0,
    "queue_pairs": 1,
}


class ResultsError(Exception):
    """A folder that cannot be read as results, with what to do about it."""


@dataclass
class Run:
    """A run: its summary, a row a point (for the clock, a point is a CPU), its rounds, and what the points share."""

    path: Path
    benchmark: str
    summary: pd.DataFrame
    runs: pd.DataFrame
    settings: dict
    columns: dict
    incomplete: str | None = None
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)
    findings: list | None = None

    def settings_columns(self):
        """The columns of the summary that are settings, in its order."""
        return [name for name, column in self.columns.items() if column["hcabench:kind"] == "setting"]

    def unit(self, name):
        """The unit of a column of the summary; empty without one."""
        return self.columns[name].get("unit", "")

    def of_rounds(self, point):
        """The rounds of a point, a row of the summary: rows of runs.csv, in their order."""
        return self.runs[self.runs.point == point.point].sort_values("round")

    def varying(self, but=()):
        """The settings that differ between points, without the warm-up, which is whole bursts."""
        return [
            name
            for name in self.settings_columns()
            if name not in {"warmup", *but} and name in self.summary and self.summary[name].nunique(dropna=False) > 1
        ]

    def the_same(self, but=()):
        """In words, the settings that all points share, for a subtitle, without those of `but`."""
        words = []
        for name in self.settings_columns():
            if name not in but and name in self.summary and self.summary[name].nunique(dropna=False) == 1:
                value = self.summary[name].iloc[0]
                if not pd.isna(value) and value != UNREMARKABLE.get(name):
                    words.append(in_words(name, value))
        return ", ".join(words)

    def machine(self):
        """In words, the machine that was measured, and that it was a virtual one where it was."""
        machine = self.settings.get("machine") or {}
        parts = [(machine.get("processor") or {}).get("name"), machine.get("kernel_release")]
        virtualisation = machine.get("virtualisation") or {}
        if virtualisation.get("emulated"):
            parts.append("emulated: its figures say nothing about hardware")
        elif virtualisation.get("guest"):
            parts.append("a virtual machine")
        return " | ".join(part for part in parts if part)

    def findings_in_words(self):
        """What to know before the figures are believed: a line for each finding but advice, in the words of `hcabench show`."""
        if self.findings is None:
            return f"findings: an earlier version recorded no {FINDINGS}; run `hcabench show {self.path} --all`"
        lines = [self._finding_in_words(finding) for finding in self.findings if finding["severity"] != "advice"]
        return "\n".join([f"findings: {len(lines) or 'none'}", *lines])

    def _finding_in_words(self, finding):
        concerned, points = len(finding["points"]), len(self.summary)
        words = finding["problem"] + (f": {finding['cause']}" if finding["cause"] else "") + (f"; {finding['fix']}" if finding["fix"] else "")
        if concerned == 1 and points > 1:
            words = f"{finding['points'][0]}: {words}"
        elif concerned and points > 1:
            words = (f"all {points}" if concerned == points else f"{concerned} of {points}") + f" points: {words}"
        return f"- {finding['severity']}: {words}"

    def title(self, what):
        """A figure's title: marked, where the run is not whole."""
        return what if self.incomplete is None else f"{what} (INCOMPLETE run)"


def results_folder(default):
    """The folder that the environment variable HCABENCH_RESULTS names, else `default`."""
    return Path(os.environ.get(VARIABLE) or default)


def load(path, benchmark):
    """Reads the run in `path`, which must be one of `benchmark`: hca, queue, clock, node or memory."""
    path = Path(path)
    if not path.is_dir():
        raise ResultsError(f"{path}: there is no such folder (paths are relative to {Path.cwd()})")
    settings = _document(path / "settings.json")
    found = _benchmark_of(path, settings)
    if found != benchmark:
        raise ResultsError(f"{path}: these are results of the benchmark {found}: open {found}.ipynb for them")
    mark = path / MARK
    package = _document(path / "datapackage.json")
    fields = {resource["path"]: resource["schema"]["fields"] for resource in package["resources"]}
    if "summary.csv" not in fields:
        raise ResultsError(f"{path / 'datapackage.json'}: it does not describe summary.csv")
    columns = {field["name"]: field for field in fields["summary.csv"]}
    summary = _described(path / "summary.csv", fields)
    if summary.empty:
        raise ResultsError(f"{path / 'summary.csv'}: no point was measured to its end")
    summary, runs = _with_folders(path, summary, columns), _described(path / "runs.csv", fields)
    for name, table_of, key in (("summary.csv", summary, ["point"]), ("runs.csv", runs, ["point", "round"])):
        again = table_of[table_of.duplicated(key)]
        if len(again):
            raise ResultsError(f"{path / name}: in it twice: {', '.join(str(value) for value in again.iloc[0][key])}")
    strange = set(runs.point) - set(summary.point)
    if strange and not mark.exists():
        raise ResultsError(f"{path / 'runs.csv'}: points that the summary does not have: {sorted(strange)}")
    left_out, findings = path / "left_out.csv", path / FINDINGS
    return Run(
        path=path,
        benchmark=benchmark,
        summary=summary,
        runs=runs,
        settings=settings,
        columns=columns,
        incomplete=mark.read_text().strip() if mark.exists() else None,
        left_out=table(left_out) if left_out.exists() else pd.DataFrame(),
        findings=_findings(findings) if findings.exists() else None,
    )


def table(path, columns=None):
    """A CSV file; with `columns`, only those, in this order.

    A last row that was not written to its end is an error; of an incomplete run it is left out, with a warning.
    """
    path = Path(path)
    try:
        _check_text(path)
        source = path
        if _is_cut(path):
            if not any((folder / MARK).exists() for folder in path.parents[:2]):
                raise ResultsError(f"{path}: its last row is cut off; copy the file again from where it was measured")
            text = path.read_bytes()
            source = io.BytesIO(text[: text.rfind(b"\n") + 1])
            warnings.warn(f"{path}: its last row is cut off and left out, the run is incomplete", stacklevel=2)
        read = pd.read_csv(source, usecols=columns, encoding="utf-8-sig")
    except FileNotFoundError:
        raise ResultsError(_missing(path)) from None
    except (ValueError, pd.errors.ParserError) as error:
        raise ResultsError(f"{path}: {error}") from error
    return read if columns is None else read[list(columns)]


def messages(point, columns=("round", "repeat", "seq", "t_subm_ns", "latency_ns", "completion_latency_ns")):
    """The messages of a point of the HCA benchmark, a row of its summary; empty cells are NaN."""
    return table(point.folder / "messages.csv", columns)


def elements(point):
    """The elements of a point of `hcabench queue --elements`, with what each operation took; None without them."""
    path = point.folder / "elements.csv"
    if not path.exists():
        return None
    read = table(path)
    read["enqueue_ns"] = read.t_enqueued_ns - read.t_enqueue_ns
    read["dequeue_ns"] = read.t_dequeued_ns - read.t_dequeue_ns
    return read


def exchanged(point):
    """Of a point of `hcabench node --samples`: its steps, its arrivals and what did not arrive.

    An arrival has the step and the times that its publisher noted, found by round, publisher and number: in whichever
    order the rows stand. `strange` is what was never sent, `again` what came for another time.
    """
    sent, arrived, lost = (table(point.folder / name) for name in ("in.csv", "out.csv", "lost.csv"))
    key = ["round", "publisher", "seq"]
    noted = sent.dropna(subset="seq").rename(columns={"t_sent_ns": "t_noted_ns"})
    if noted.duplicated(key).any():
        raise ResultsError(f"{point.folder / 'in.csv'}: a number of a publisher is there twice")
    arrived = arrived.sort_values("t_received_ns", kind="stable")
    arrived = arrived.merge(noted[[*key, "step", "t_intended_ns", "t_noted_ns"]].astype({"seq": "int64"}), on=key, how="left")
    arrived["strange"] = arrived.step.isna()
    # In a fan-out each subscriber gets a copy of its own.
    arrived["again"] = arrived.duplicated(key + (["subscriber"] if point.scenario == "fan-out" else []))
    return sent, arrived, lost


@dataclass
class Distribution:
    """Percentiles as a file has them: between two of its values it does not tell where the samples lie."""

    values_ns: np.ndarray
    counts: np.ndarray

    def below(self, limits_ns):
        """How many samples are at most so long, as if they lay evenly between two values of the file."""
        if len(self.values_ns) == 0:
            return np.zeros(len(limits_ns))
        values = np.concatenate([[self.values_ns[0] * (1 - 1e-9)], self.values_ns])
        return np.interp(limits_ns, values, np.concatenate([[0], np.cumsum(self.counts)]))


# What the closing lines call the number of samples: HdrHistogram for Java, C, Go and Rust, and for Python, with decimals.
TOTAL = re.compile(r"(?:Total count|TotalCount) *= *(\d+)(?:\.0*)? *\]")


# What stands before the intervals of a round.
ROUND_OF_LOG = re.compile(r"#\[Round: (\d+), (\d+) intervals of [\d.]+ s, (\d+) samples, \d+ below zero, \d+ not kept\]")


def distribution(path):
    """A file of HdrHistogram percentiles, by hcabench or a program of another language, with its closing lines: without
    them it is not whole."""
    path = Path(path)
    try:
        _check_text(path)
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
        closing = [line for line in lines if line.startswith("#[")]
        total = TOTAL.search("\n".join(closing))
        # Not every program writes the last of them.
        if total is None or not closing[-1].endswith("]"):
            raise ResultsError(f"{path}: its closing lines are not there, or not all: it is cut off")
        rows = [line.split() for line in lines if line and not line.startswith("#")]
        header = rows.pop(0) if rows else ["Value", "TotalCount"]
        value, count = header.index("Value"), header.index("TotalCount")
        values = np.array([float(row[value]) for row in rows])
        totals = np.array([0] + [int(row[count]) for row in rows])
        if (np.diff(totals) < 0).any() or (np.diff(values) < 0).any():
            raise ValueError("its rows descend")
    except FileNotFoundError:
        raise ResultsError(_missing(path)) from None
    except (ValueError, IndexError):
        raise ResultsError(f"{path}: not a file of HdrHistogram percentiles, or not all of it") from None
    if totals[-1] != int(total[1]):
        raise ResultsError(f"{path}: its rows count {totals[-1]} samples, its end says {total[1]}: rows are missing")
    counts = np.diff(totals)
    return Distribution(values[counts > 0], counts[counts > 0])


def intervals(path, percents=(50, 99, 99.9)):
    """A `.hlog` file of distributions by interval: a row for each round and interval, with its time since its round
    began and its length in seconds, its samples, percentiles (`p99_ns`) and maximum in nanoseconds, NaN without samples.

    It takes the package hdrhistogram. A round that is not whole is an error.
    """
    from hdrh.histogram import HdrHistogram

    path, rows, heads = Path(path), [], {}
    try:
        _check_text(path)
        for line in path.read_text().splitlines():
            if head := ROUND_OF_LOG.fullmatch(line):
                number, *told = (int(part) for part in head.groups())
                heads[number], begun = told, None
            elif line[:1].isdigit():
                begin, length, _, encoded = line.split(",")
                begun = float(begin) if begun is None else begun
                histogram = HdrHistogram.decode(encoded)
                count = histogram.get_total_count()
                values = [histogram.get_value_at_percentile(percent) for percent in percents] + [histogram.get_max_value()]
                rows.append([number, float(begin) - begun, float(length), count, *(values if count else [np.nan] * len(values))])
    except FileNotFoundError:
        raise ResultsError(_missing(path)) from None
    except Exception as error:  # the package has several, and zlib has its own
        raise ResultsError(f"{path}: not a log of hcabench, or not all of it: {error}") from error
    names = [f"p{str(percent).replace('.', '')}_ns" for percent in percents]
    read = pd.DataFrame(rows, columns=["round", "begin_s", "length_s", "samples", *names, "max_ns"])
    for number, (count, samples) in heads.items():
        own = read[read["round"] == number]
        if (len(own), own.samples.sum()) != (count, samples):
            raise ResultsError(f"{path}: round {number} has {len(own)} of {count} intervals: it is cut off")
    if not heads:
        raise ResultsError(f"{path}: no round is in it: it is cut off")
    return read


def jumps(run, columns=("round", "t_ns", "jump_ns", "cause")):
    """The jumps of all CPUs that `hcabench clock` watched, with a column `cpu`; NaN where nothing was read."""
    of_cpus = []
    for point in run.summary.itertuples():
        read = table(point.folder / "jumps.csv", columns)
        read.insert(0, "cpu", point.cpu)
        of_cpus.append(read)
    return pd.concat(of_cpus, ignore_index=True)


def differences(point):
    """How often each difference was counted on a CPU, a row for each round and length; None where they were not."""
    path = point.folder / "histogram.csv"
    return table(path) if path.exists() else None


def in_words(name, value):
    """A setting as a reader would say it: `size_bytes` 4096 is `4 KiB`."""
    if name in ("size_bytes", "payload_bytes", "sample_bytes"):
        return bytes_in_words(value)
    if name == "rate_per_s":
        return f"{rate_in_words(value)}/s"
    if name in ("service", "queue", "operation", "type", "scenario"):
        return str(value)
    if name == "inline":
        return "inline" if value == "on" else "not inline"
    if name.endswith("_ns"):
        return f"{name[:-3].replace('_', ' ')} {value:g} ns"
    if name == "percent_of_saturation":
        return f"{value:g} % of saturation"
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return f"{name.replace('_', ' ')} {value}"


def label(point, names):
    """What tells a point from the others, by the settings that vary."""
    words = [in_words(name, getattr(point, name)) for name in names if not pd.isna(getattr(point, name))]
    return ", ".join(words) or "all"


def bytes_in_words(count):
    """4096 is `4 KiB`."""
    count = int(count)
    for size, unit in ((2**20, "MiB"), (2**10, "KiB")):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"


def rate_in_words(rate):
    """250000 is `250k`."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= unit:
            return f"{rate / unit:.3g}{name}"
    return f"{rate:.3g}"


def nearest_rank(values, counts, percent):
    """The smallest value that at least so many percent of all samples do not exceed: how the clock's are defined."""
    order = np.argsort(values)
    passed = np.cumsum(counts[order])
    rank = max(1, int(np.ceil(passed[-1] * (percent / 100) * (1 - 1e-12))))
    return values[order][np.searchsorted(passed, rank)]


def _benchmark_of(path, settings):
    told = settings.get("hcabench")
    written = told.get("format") if isinstance(told, dict) else None
    if written is None and not (path / "summary.csv").exists():
        raise ResultsError(f"{path}: not the folder of a run")
    if written is None or written < FORMAT:
        raise ResultsError(f"{path}: written by an older hcabench (results format 1); these notebooks read format {FORMAT}: measure again")
    if written > FORMAT:
        raise ResultsError(f"{path}: written by a newer hcabench (results format {written}); take its notebooks")
    return settings["benchmark"]


def _document(path):
    try:
        _check_text(path)
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ResultsError(_missing(path)) from None
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON, or not all of it: {error}") from error


def _findings(path):
    document = _document(path)
    # A plain list in folders of the first versions that had findings.
    if isinstance(document, list):
        return document
    if document["count"] != len(document["findings"]):
        raise ResultsError(f"{path}: {len(document['findings'])} findings in place of {document['count']}")
    return document["findings"]


PACKED = {b"\x1f\x8b": ("gzip", "gunzip", ".gz"), b"\x28\xb5\x2f\xfd": ("zstd", "unzstd", ".zst"), b"\xfd7zXZ": ("xz", "unxz", ".xz")}


def _missing(path):
    """What is said of a file that is not there."""
    for _, unpack, ending in PACKED.values():
        if Path(f"{path}{ending}").exists():
            return f"{path}: {Path(path).name}{ending} is there in its place; unpack it with {unpack}"
    return f"{path}: there is no such file; is the folder that of a whole run?"


def _check_text(path):
    """Refuses a file that is not text in UTF-8 with commas, with the cause; as the reader of hcabench does."""
    path = Path(path)
    with open(path, "rb") as file:
        first = file.readline(1 << 16)
    for begins, (by, unpack, _) in PACKED.items():
        if first.startswith(begins):
            raise ResultsError(f"{path}: is compressed with {by}; unpack it with {unpack}, and give it its name again")
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ResultsError(f"{path}: is text in UTF-16; save it as UTF-8")
    if path.suffix == ".csv":
        if not first.strip():
            raise ResultsError(f"{path}: is empty")
        for separator, name in ((b";", "semicolons"), (b"\t", "tabs")):
            if b"," not in first and separator in first:
                raise ResultsError(f"{path}: its cells are separated by {name}; save it with commas")


def _is_cut(path):
    """Whether a file of lines ends within one."""
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _described(path, fields):
    """A CSV file, which must have the columns that the package describes, in their order."""
    read = table(path)
    wanted = [field["name"] for field in fields.get(path.name, [])]
    if list(read.columns) != wanted:
        strange = sorted(set(read.columns) ^ set(wanted))
        raise ResultsError(f"{path}: its columns are not those that datapackage.json describes: {strange or 'another order'}")
    return read


def _same(told, column):
    """Whether a cell of the summary says what a document tells; the summary rounds, to two decimals at the coarsest."""
    if told is None or pd.isna(column):
        return told is None and pd.isna(column)
    numbers = [isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in (told, column)]
    return abs(told - column) <= 0.005 + 1e-9 * abs(told) if all(numbers) else str(told) == str(column)


def _with_folders(path, summary, columns):
    """The summary with the folder of each point, which must say the same of its settings."""
    folders, documents = [], []
    for row in summary.to_dict("records"):
        folder = path / row["point"]
        document = _document(folder / "settings.json")
        told = document.get("point")
        if not isinstance(told, dict):
            raise ResultsError(f"{folder / 'settings.json'}: not the settings of a point")
        settings = [name for name, column in columns.items() if column["hcabench:kind"] == "setting"]
        wrong = [name for name in settings if not _same(told.get(name), row[name])]
        if wrong:
            raise ResultsError(f"{path}: the summary and {row['point']} differ in {', '.join(wrong)}")
        folders.append(folder)
        documents.append(document)
    more = pd.DataFrame({"folder": folders, "document": documents})
    return pd.concat([summary, more], axis="columns").copy()
