"""Distributions: files of HdrHistogram percentiles, and percentiles of counted samples."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .files import ResultsError, check_text, missing


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


def distribution(path):
    """A file of HdrHistogram percentiles, by hcabench or a program of another language, with its closing lines: without
    them it is not whole."""
    path = Path(path)
    try:
        check_text(path)
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
        raise ResultsError(missing(path)) from None
    except (ValueError, IndexError):
        raise ResultsError(f"{path}: not a file of HdrHistogram percentiles, or not all of it") from None
    if totals[-1] != int(total[1]):
        raise ResultsError(f"{path}: its rows count {totals[-1]} samples, its end says {total[1]}: rows are missing")
    counts = np.diff(totals)
    return Distribution(values[counts > 0], counts[counts > 0])


def nearest_rank(values, counts, percent):
    """The smallest value that at least so many percent of all samples do not exceed: how the clock's are defined."""
    order = np.argsort(values)
    passed = np.cumsum(counts[order])
    rank = max(1, int(np.ceil(passed[-1] * (percent / 100) * (1 - 1e-12))))
    return values[order][np.searchsorted(passed, rank)]
