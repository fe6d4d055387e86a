"""A run of a benchmark: its summary, its rounds, its settings and its files."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from .files import MARK, PACKAGE, ResultsError, described, document, table
from .frames import FRAMES, to_polars, units_of, with_units
from .words import in_words

VARIABLE = "HCABENCH_RESULTS"

FORMAT = 2
FINDINGS = "findings.json"
# What a fabric has in place of settings.json, and what names a pair.
FABRIC, PAIR = "fabric.json", ["from_rank", "to_rank"]

# Values that a subtitle leaves out.
UNREMARKABLE = {
    "jitter_percent": 0, "receiver_jitter_percent": 0, "receiver_load": "none", "measure_failed": False, "receiver_pause_ns": 0,
    "queue_pairs": 1,
}


@dataclass
class Run:
    """A run: its summary, a row a point (for the clock, a point is a CPU), its rounds, and what the points share.

    The points of a fabric are its ordered pairs: `frame("pairs.csv")` has a row each, the summary a row a tier.
    `settings_columns`, `varying`, `the_same` and `machine` find nothing in it: its settings are in `settings`.

    `fields` has what datapackage.json states of the columns of each CSV file, by the path of the file; `columns` those
    of the summary. Frames of pandas have the units of their columns in `attrs["units"]`.
    """

    path: Path
    benchmark: str
    summary: pd.DataFrame
    runs: pd.DataFrame
    settings: dict
    fields: dict
    incomplete: str | None = None
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)
    findings: list | None = None

    @property
    def columns(self):
        """The columns of the summary by name, each with type, unit, title and meaning."""
        return self.fields["summary.csv"]

    def files(self):
        """The names that `frame` takes, without the folders of points."""
        return sorted({Path(path).name for path in self.fields})

    def frame(self, name, columns=None, frames="pandas"):
        """A CSV file of the run as a frame of pandas or polars, with the types of datapackage.json.

        `name` is `summary.csv`, `runs.csv`, `left_out.csv` or the file of a point, such as `POINT/messages.csv`.
        `messages.csv` alone is that of all points, one after another, with the column `point` first. An empty cell is
        NaN in pandas (`pd.NA` in a column of integers, which is `Int64` then), null in polars. `columns` are those to
        read, all by default.
        """
        if frames not in FRAMES:
            raise ValueError(f"frames: '{frames}' is not allowed, must be {' or '.join(FRAMES)}")
        paths, fields = self._paths(name), self._fields(name)
        parts = []
        for path in paths:
            part = table(self.path / path, columns, self.fields[path])
            if path != name:
                part.insert(0, "point", str(Path(path).parent))
            parts.append(part)
        read = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
        if frames == "polars":
            return to_polars(read, fields)
        return with_units(read, fields)

    def units(self, name):
        """The units of the columns of a file, by column; those that have none are not in it."""
        return units_of(self._fields(name))

    def _paths(self, name):
        paths = [name] if name in self.fields else [path for path in self.fields if path.endswith(f"/{name}")]
        if not paths:
            there = [path.relative_to(self.path) for path in (self.path / name, *self.path.glob(f"*/{name}")) if path.exists()]
            if there and there[0].suffix == ".csv":
                raise ResultsError(f"{self.path}: {PACKAGE} does not describe '{there[0]}'; read it with hcabench.table")
            raise ResultsError(f"{self.path}: '{name}' is not a file of this run; it has {', '.join(self.files())}")
        return paths

    def _fields(self, name):
        fields = self.fields[self._paths(name)[0]]
        return fields if name in self.fields else {"point": {"type": "string"}} | fields

    def settings_columns(self):
        """The columns of the summary that are settings, in its order."""
        return [name for name, column in self.columns.items() if column["hcabench:kind"] == "setting"]

    def unit(self, name):
        """The unit of a column of the summary; empty without one."""
        return self.columns[name].get("unit", "")

    def of_rounds(self, point):
        """The rounds of a point, a row of the summary, or of a fabric of pairs.csv: rows of runs.csv, in their order."""
        keys = PAIR if self.benchmark == "fabric" else ["point"]
        same = [self.runs[key] == getattr(point, key) for key in keys]
        return self.runs[np.logical_and.reduce(same)].sort_values("round")

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


def load(path, benchmark=None):
    """Reads the run in the folder `path`; with `benchmark` (hca, queue, clock, node, memory, cores, fabric) it must be of
    that."""
    path = Path(path)
    if not path.is_dir():
        raise ResultsError(f"{path}: there is no such folder (paths are relative to {Path.cwd()})")
    of_fabric = (path / FABRIC).exists()
    settings = document(path / (FABRIC if of_fabric else "settings.json"))
    _check_format(path, settings)
    found = "fabric" if of_fabric else settings["benchmark"]
    if benchmark not in (None, found):
        fix = "" if of_fabric else f"; open {found}.ipynb for them"
        raise ResultsError(f"{path}: results of the benchmark {found}, not {benchmark}{fix}")
    if of_fabric and not (path / PACKAGE).exists():
        raise ResultsError(f"{path}: results of `hcabench fabric` without {PACKAGE}, of an older version or of a run that was "
                           "killed: read its CSV files by themselves")
    mark = path / MARK
    fields = described(path)
    if "summary.csv" not in fields:
        raise ResultsError(f"{path / PACKAGE}: it does not describe summary.csv")
    summary = _described(path / "summary.csv", fields)
    if summary.empty:
        raise ResultsError(f"{path / 'summary.csv'}: no point was measured to its end")
    if not of_fabric:
        summary = _with_folders(path, summary, fields["summary.csv"])
    runs = _described(path / "runs.csv", fields)
    # A pair's name may be another one in a later round, when more ranks of its hosts have come.
    keys = (["tier"], [*PAIR, "round"]) if of_fabric else (["point"], ["point", "round"])
    for name, table_of, key in (("summary.csv", summary, keys[0]), ("runs.csv", runs, keys[1])):
        again = table_of[table_of.duplicated(key)]
        if len(again):
            raise ResultsError(f"{path / name}: in it twice: {', '.join(str(value) for value in again.iloc[0][key])}")
    strange = set() if of_fabric else set(runs.point) - set(summary.point)
    if strange and not mark.exists():
        raise ResultsError(f"{path / 'runs.csv'}: points that the summary does not have: {sorted(strange)}")
    left_out, findings = path / "left_out.csv", path / FINDINGS
    return Run(
        path=path,
        benchmark=found,
        summary=with_units(summary, fields["summary.csv"]),
        runs=with_units(runs, fields["runs.csv"]),
        settings=settings,
        fields=fields,
        incomplete=mark.read_text().strip() if mark.exists() else None,
        left_out=table(left_out, fields=fields.get(left_out.name)) if left_out.exists() else pd.DataFrame(),
        findings=settings["findings"] if of_fabric else _findings(findings) if findings.exists() else None,
    )


def _check_format(path, settings):
    program = settings.get("hcabench")
    written = program.get("format") if isinstance(program, dict) else None
    if written is None and not (path / "summary.csv").exists():
        raise ResultsError(f"{path}: not the folder of a run")
    if written is None or written < FORMAT:
        raise ResultsError(f"{path}: written by an older hcabench (results format 1, not {FORMAT}): measure again")
    if written > FORMAT:
        raise ResultsError(f"{path}: written by a newer hcabench (results format {written}, not {FORMAT}); install its module")


def _findings(path):
    read = document(path)
    # A plain list in folders of the first versions that had findings.
    if isinstance(read, list):
        return read
    if read["count"] != len(read["findings"]):
        raise ResultsError(f"{path}: {len(read['findings'])} findings in place of {read['count']}")
    return read["findings"]


def _described(path, fields):
    """A CSV file, which must have the columns that the package describes, in their order."""
    described = fields.get(path.name, {})
    read, wanted = table(path, fields=described), list(described)
    if list(read.columns) != wanted:
        strange = sorted(set(read.columns) ^ set(wanted))
        raise ResultsError(f"{path}: its columns are not those that datapackage.json describes: {strange or 'another order'}")
    return read


def _same(stated, cell):
    """Whether a cell of the summary has the value of a document; the summary rounds, to two decimals at the coarsest."""
    if stated is None or pd.isna(cell):
        return stated is None and pd.isna(cell)
    numbers = [isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in (stated, cell)]
    return abs(stated - cell) <= 0.005 + 1e-9 * abs(stated) if all(numbers) else str(stated) == str(cell)


def _with_folders(path, summary, columns):
    """The summary with the folder of each point, whose document must have the same settings."""
    settings = [name for name, column in columns.items() if column["hcabench:kind"] == "setting"]
    folders, documents = [], []
    for row in summary.to_dict("records"):
        folder = path / row["point"]
        read = document(folder / "settings.json")
        stated = read.get("point")
        if not isinstance(stated, dict):
            raise ResultsError(f"{folder / 'settings.json'}: not the settings of a point")
        wrong = [name for name in settings if not _same(stated.get(name), row[name])]
        if wrong:
            raise ResultsError(f"{path}: the summary and {row['point']} differ in {', '.join(wrong)}")
        folders.append(folder)
        documents.append(read)
    more = pd.DataFrame({"folder": folders, "document": documents})
    return pd.concat([summary, more], axis="columns").copy()
