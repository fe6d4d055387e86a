"""Distributions by interval: how a latency went on within a run."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from .files import ResultsError, check_text, missing

# The comment before the intervals of a round.
ROUND_OF_LOG = re.compile(r"#\[Round: (\d+), (\d+) intervals of [\d.]+ s, (\d+) samples, \d+ below zero, \d+ not kept\]")


def intervals(path, percents=(50, 99, 99.9)):
    """A `.hlog` file of distributions by interval: a row for each round and interval, with its time since its round
    began and its length in seconds, its samples, percentiles (`p99_ns`) and maximum in nanoseconds, NaN without samples.

    It takes the package hdrhistogram. A round that is not whole is an error.
    """
    try:
        from hdrh.histogram import HdrHistogram
    except ImportError:
        raise ResultsError("hdrhistogram is not installed; install it with `pip install hdrhistogram`") from None

    path, rows, heads = Path(path), [], {}
    try:
        check_text(path)
        for line in path.read_text().splitlines():
            if head := ROUND_OF_LOG.fullmatch(line):
                number, *counted = (int(part) for part in head.groups())
                heads[number], begun = counted, None
            elif line[:1].isdigit():
                begin, length, _, encoded = line.split(",")
                begun = float(begin) if begun is None else begun
                histogram = HdrHistogram.decode(encoded)
                count = histogram.get_total_count()
                values = [histogram.get_value_at_percentile(percent) for percent in percents]
                values = [*values, histogram.get_max_value()] if count else [np.nan] * (len(values) + 1)
                rows.append([number, float(begin) - begun, float(length), count, *values])
    except FileNotFoundError:
        raise ResultsError(missing(path)) from None
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
