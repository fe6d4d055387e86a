"""Opens results of hcabench as frames of pandas or polars, with units.

    import hcabench
    run = hcabench.load("results/20261120-122004")
    run.summary                                             # pandas, a row a point; run.runs has a row a point and round
    run.summary.attrs["units"]["latency_p50_ns"]            # "ns"
    run.frame("messages.csv", ["seq", "latency_ns"])        # of all points, with a column `point`
    run.frame("summary.csv", frames="polars")               # run.units("summary.csv") has the units

A folder is one run of a benchmark: `hcabench` (here called hca), `hcabench queue`, `clock`, `node`, `memory`, `cores` or
`fabric`.
Its `datapackage.json` describes its CSV files: types, units, which columns are settings. `load` reads the summary,
the rounds and the settings; samples are read on request, by point and column, so that a sweep of any length fits into memory. Nothing
is removed as an outlier. A folder that cannot be read is a `ResultsError`, with the cause and the fix.

`hcabench.figures` draws with matplotlib.
"""

from .distribution import Distribution, distribution, nearest_rank
from .files import MARK, ResultsError, table
from .intervals import intervals
from .run import Run, load, results_folder
from .samples import differences, elements, exchanged, jumps, messages
from .words import bytes_in_words, in_words, label, rate_in_words

__all__ = [
    "MARK", "Distribution", "ResultsError", "Run", "bytes_in_words", "differences", "distribution", "elements", "exchanged",
    "in_words", "intervals", "jumps", "label", "load", "messages", "nearest_rank", "rate_in_words", "results_folder", "table",
]
