"""Reads the results folders of hcabench as pandas tables, for the notebooks beside this file.

A folder is one run of one of the three benchmarks: `hcabench` (here called hca), `hcabench queue` and `hcabench clock`.
`load` reads its summary and settings; samples are read point by point, and only the columns that are asked for, so that
a sweep of any length fits into memory. Nothing is removed as an outlier.
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

# The columns of summary.csv that are settings, in the order in which they are shown.
SETTINGS = {
    "hca": [
        "service", "operation", "size_bytes", "burst", "inline", "unsignaled", "poll_recv", "poll_comp",
        "pause_ns", "timestamp", "clock", "warmup", "repeat",
    ],
    "queue": [
        "queue", "capacity", "payload_bytes", "load", "rate_per_s", "wait_ns", "burst", "jitter_percent",
        "receiver_load", "receiver_rate_per_s", "receiver_wait_ns", "receiver_burst", "receiver_jitter_percent",
        "percent_of_saturation", "cores", "sender_cpu", "receiver_cpu", "measure", "measure_failed", "clock", "count",
        "warmup",
    ],
    "clock": ["clock", "cpu"],
}

# What a setting is called in settings.json, where that differs from its column.
IN_JSON = {"size_bytes": "size", "payload_bytes": "payload"}


# The list of what hcabench wrote, in the order in which it did.
LIST = ".hcabench-files"
MARK = "INCOMPLETE"

# Values that go without saying.
UNREMARKABLE = {"jitter_percent": 0, "receiver_jitter_percent": 0, "receiver_load": "none", "measure_failed": False}


class ResultsError(Exception):
    """A folder that cannot be read as results, with what to do about it."""


@dataclass
class Run:
    """A run: its summary, a row a point (for the clock, a row a CPU), and the circumstances that its points share."""

    path: Path
    benchmark: str
    summary: pd.DataFrame
    settings: dict
    incomplete: str | None = None
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)

    def varying(self, but=()):
        """The settings that differ between points."""
        return [
            name
            for name in SETTINGS[self.benchmark]
            if name not in but and name in self.summary and self.summary[name].nunique(dropna=False) > 1
        ]

    def the_same(self):
        """In words, the settings that all points share, for a subtitle."""
        words = []
        for name in SETTINGS[self.benchmark]:
            if name in self.summary and self.summary[name].nunique(dropna=False) == 1:
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

    def title(self, what):
        """A figure's title: marked, where the run is not whole."""
        return what if self.incomplete is None else f"{what} (INCOMPLETE run)"


def results_folder(default):
    """The folder that the environment variable HCABENCH_RESULTS names, else `default`."""
    return Path(os.environ.get(VARIABLE) or default)


def load(path, benchmark):
    """Reads the run in `path`, which must be one of `benchmark`: hca, queue or clock."""
    path = Path(path)
    if not path.is_dir():
        raise ResultsError(f"{path}: there is no such folder (paths are relative to {Path.cwd()})")
    summary = table(path / "summary.csv")
    found = _benchmark_of(summary)
    if found is None:
        raise ResultsError(f"{path / 'summary.csv'}: not a summary of hcabench, its columns are {list(summary)[:5]}...")
    if found != benchmark:
        raise ResultsError(f"{path}: these are results of the benchmark {found}: open {found}.ipynb for them")
    if summary.empty:
        raise ResultsError(f"{path / 'summary.csv'}: no point was measured to its end")
    if benchmark == "clock":
        settings = _document(path / "settings.json")
    else:
        summary, settings = _with_folders(path, summary, benchmark)
    mark = path / MARK
    left_out = path / "left_out.csv"
    return Run(
        path=path,
        benchmark=benchmark,
        summary=summary,
        settings=settings,
        incomplete=mark.read_text().strip() if mark.exists() else None,
        left_out=table(left_out) if left_out.exists() else pd.DataFrame(),
    )


def table(path, columns=None):
    """A CSV file; with `columns`, only those, in this order.

    A last row that was not written to its end is an error; of an incomplete run it is left out, with a warning.
    """
    path = Path(path)
    try:
        source = path
        if _is_cut(path):
            if not any((folder / MARK).exists() for folder in path.parents[:2]):
                raise ResultsError(f"{path}: its last row is cut off; copy the file again from where it was measured")
            text = path.read_bytes()
            source = io.BytesIO(text[: text.rfind(b"\n") + 1])
            warnings.warn(f"{path}: its last row is cut off and left out, the run is incomplete", stacklevel=2)
        read = pd.read_csv(source, usecols=columns)
    except FileNotFoundError:
        raise ResultsError(f"{path}: there is no such file; is the folder that of a whole run?") from None
    except (ValueError, pd.errors.ParserError) as error:
        raise ResultsError(f"{path}: {error}") from error
    return read if columns is None else read[list(columns)]


def messages(point, columns=("repeat", "seq", "t_subm_ns", "latency_ns", "completion_latency_ns")):
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


def distribution(path):
    """A file of HdrHistogram percentiles, with its closing lines: without them it is not whole."""
    path = Path(path)
    values, totals, closing = [], [0], {}
    try:
        for line in path.read_text().splitlines():
            if line.startswith("#["):
                closing |= re.findall(r"(\w[\w ]*?) *= *([0-9.]+)(?=[,\]])", line)
                continue
            if line.startswith("#") or not line.strip() or line.lstrip().startswith("Value"):
                continue
            value, _, total, *_ = line.split()
            values.append(float(value) * 1000)
            totals.append(int(total))
    except FileNotFoundError:
        raise ResultsError(f"{path}: there is no such file; is the folder that of a whole run?") from None
    except ValueError:
        raise ResultsError(f"{path}: not a file of HdrHistogram percentiles, or not all of it") from None
    if not {"Mean", "Max", "Total count", "Buckets", "SubBuckets"} <= set(closing):
        raise ResultsError(f"{path}: its closing lines are not there, or not all: it is cut off")
    if totals[-1] != int(closing["Total count"]):
        raise ResultsError(f"{path}: its rows count {totals[-1]} samples, its end says {closing['Total count']}: rows are missing")
    values, counts = np.array(values), np.diff(totals)
    return Distribution(values[counts > 0], counts[counts > 0])


def differences(run, cpu):
    """All differences that `hcabench clock` counted on a CPU, as (lengths in ns, how often); None where it did not."""
    path = run.path / f"histogram-cpu{cpu}.json"
    if not path.exists():
        return None
    document = _document(path)
    if not document["counts"]:
        return None
    lengths, counts = np.array(document["counts"]).T
    return lengths * document["nanos_per_tick"], counts


def in_words(name, value):
    """A setting as a reader would say it: `size_bytes` 4096 is `4 KiB`."""
    if name in ("size_bytes", "payload_bytes"):
        return bytes_in_words(value)
    if name == "rate_per_s":
        return f"{rate_in_words(value)}/s"
    if name in ("service", "queue", "operation"):
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
    return f"{count // 1024} KiB" if count >= 1024 and count % 1024 == 0 else f"{count} B"


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


def _benchmark_of(summary):
    if {"service", "latency_p50_us", "messages_sent"} <= set(summary):
        return "hca"
    if {"queue", "enqueue_p50_ns"} <= set(summary):
        return "queue"
    if {"cpu", "iterations", "jumps"} <= set(summary):
        return "clock"
    return None


def _document(path):
    try:
        return json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise ResultsError(f"{path}: there is no such file; is the folder that of a whole run?") from None
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON, or not all of it: {error}") from error


def _is_cut(path):
    """Whether a file of lines ends within one."""
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _key_of_document(document, benchmark):
    """What a point's settings.json says of it, as the summary's columns say it."""
    point = dict(document["point"])
    if benchmark == "queue":
        run, cpus = document["run"], point["cpus"]
        point = {
            "queue": point["queue"], "capacity": point["capacity"], "payload": point["payload"],
            "percent_of_saturation": point["percent_of_saturation"],
            "cores": cpus["cores"], "sender_cpu": cpus["sender"], "receiver_cpu": cpus["receiver"],
            **{name: run[name] for name in ("measure", "measure_failed", "clock", "count", "warmup")},
            **_load_of_document(point["sender"], ""), **_load_of_document(point["receiver"], "receiver_"),
        }
    return point


def _load_of_document(load, side):
    named = {f"{side}{name}": load.get(name) for name in ("load", "rate_per_s", "wait_ns", "burst")}
    return named | {f"{side}jitter_percent": 100 * load["jitter"]}


def _same(told, column):
    """Whether a cell of the summary says what a document tells; the summary rounds, to two decimals at the coarsest."""
    if told is None or pd.isna(column):
        return told is None and pd.isna(column)
    numbers = [isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in (told, column)]
    return abs(told - column) <= 0.005 + 1e-9 * abs(told) if all(numbers) else str(told) == str(column)


def _listed(path):
    """The folders of points on the run's list, in the order in which they were measured; None without a list."""
    try:
        lines = (path / LIST).read_text().splitlines()
    except FileNotFoundError:
        return None
    return [path / line[:-1] for line in lines if line.endswith("/") and "/" not in line[:-1]]


def _with_folders(path, summary, benchmark):
    """The summary with the folder of each point: rows are in the order of the run's list. Without the list, which a copy
    may leave behind, settings.json tells, as far as it can: not the folder's name."""
    listed = _listed(path)
    files = sorted(path.glob("*/settings.json")) if listed is None else [folder / "settings.json" for folder in listed]
    if listed is not None:
        if len(files) < len(summary):
            raise ResultsError(f"{path}: the summary has {len(summary)} points, the run's list ({LIST}) {len(files)}")
        if len(files) > len(summary) and not (path / MARK).exists():
            raise ResultsError(f"{path}: the summary has {len(summary)} points, the run's list ({LIST}) {len(files)}: rows are missing")
        files = files[: len(summary)]  # an incomplete run ends in a point without a row
    points = []
    for file in files:
        document = _document(file)
        try:
            points.append((_key_of_document(document, benchmark), file.parent, document))
        except (KeyError, TypeError) as error:
            raise ResultsError(f"{file}: not the settings of a point: {error!r}") from error
    if not points:
        raise ResultsError(f"{path}: no folder of a point in it, only the summary")
    names = points[0][0]
    columns = [name for name in SETTINGS[benchmark] if IN_JSON.get(name, name) in names and name in summary]
    found = []
    for number, row in enumerate(summary[columns].to_dict("records")):
        candidates = points if listed is None else points[number : number + 1]
        fit = [point for point in candidates if all(_same(point[0][IN_JSON.get(name, name)], value) for name, value in row.items())]
        if not fit and listed is not None:
            raise ResultsError(f"{path}: the settings of row {number + 1} of the summary are not those in {points[number][1].name}: {row}")
        if not fit:
            raise ResultsError(f"{path}: the summary has a point without a folder: {row}")
        if len(fit) > 1 or any(fit[0] is other for other in found):
            raise ResultsError(f"{path}: without {LIST} the points with these settings cannot be told apart: {row}; "
                               "copy the folder whole, hidden files too")
        found.append(fit[0])
    more = pd.DataFrame({"folder": [folder for _, folder, _ in found], "document": [document for _, _, document in found]})
    summary = pd.concat([summary, more], axis="columns").copy()
    return summary, points[0][2]
