"""Reads the results folders of hcabench as pandas tables, for the notebooks beside this file.

A folder is one run of one of the three benchmarks: `hcabench` (here called hca), `hcabench queue` and `hcabench clock`.
`load` reads its summary and settings; samples are read point by point, and only the columns that are asked for, so that
a sweep of any length fits into memory. Nothing is removed as an outlier.
"""

import json
import os
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
    mark = path / "INCOMPLETE"
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
    """A CSV file; with `columns`, only those, in this order."""
    path = Path(path)
    try:
        read = pd.read_csv(path, usecols=columns)
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
        values = np.concatenate([[self.values_ns[0] * (1 - 1e-9)], self.values_ns])
        return np.interp(limits_ns, values, np.concatenate([[0], np.cumsum(self.counts)]))


def distribution(path):
    """A file of HdrHistogram percentiles."""
    path = Path(path)
    values, totals = [], []
    try:
        for line in path.read_text().splitlines():
            if line.startswith("#") or not line.strip() or line.lstrip().startswith("Value"):
                continue
            value, _, total, *_ = line.split()
            values.append(float(value) * 1000)
            totals.append(int(total))
    except FileNotFoundError:
        raise ResultsError(f"{path}: there is no such file; is the folder that of a whole run?") from None
    except ValueError:
        raise ResultsError(f"{path}: not a file of HdrHistogram percentiles") from None
    if not values:
        raise ResultsError(f"{path}: no value in it")
    values, counts = np.array(values), np.diff(totals, prepend=0)
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


def _key_of_document(document, benchmark):
    """What a point's settings.json says of it, as the summary's columns say it."""
    point = dict(document["point"])
    if benchmark == "queue":
        sender, cpus = point.get("sender", {}), point.get("cpus", {})
        point = {
            "queue": point["queue"], "capacity": point["capacity"], "payload": point["payload"],
            "load": sender.get("load"), "rate_per_s": sender.get("rate_per_s"), "wait_ns": sender.get("wait_ns"),
            "burst": sender.get("burst"), "percent_of_saturation": point.get("percent_of_saturation"),
            "sender_cpu": cpus.get("sender"), "receiver_cpu": cpus.get("receiver"),
        }
    return point


def _comparable(value):
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return round(float(value), 3)  # the summary's decimals
    return str(value)


def _with_folders(path, summary, benchmark):
    """The summary with the folder of each point; settings.json tells which it is, not the folder's name."""
    folders, settings = {}, None
    for file in sorted(path.glob("*/settings.json")):
        document = _document(file)
        point = _key_of_document(document, benchmark)
        settings = settings or document
        folders[frozenset((name, _comparable(value)) for name, value in point.items())] = (file.parent, document)
    if not folders:
        raise ResultsError(f"{path}: no folder of a point in it, only the summary")
    names = {name for name, _ in next(iter(folders))}
    columns = [name for name in SETTINGS[benchmark] if IN_JSON.get(name, name) in names]
    found = []
    for row in summary[columns].to_dict("records"):
        key = frozenset((IN_JSON.get(name, name), _comparable(value)) for name, value in row.items())
        if key not in folders:
            raise ResultsError(f"{path}: the summary has a point without a folder: {row}")
        found.append(folders[key])
    summary = summary.assign(folder=[folder for folder, _ in found], document=[document for _, document in found])
    return summary, settings
