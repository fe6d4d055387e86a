"""Samples of one point, a row of a summary: messages, elements, exchanges, jumps, differences."""

from functools import lru_cache

import pandas as pd

from .files import ResultsError, described, table


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
    order the rows stand. `strange` is what was never sent, `again` what came for another time. Times are since the Unix
    epoch, and exact: columns of them are `Int64` where one is missing.
    """
    sent, arrived, lost = (_typed(point.folder / name) for name in ("in.csv", "out.csv", "lost.csv"))
    key = ["round", "publisher", "seq"]
    noted = sent.dropna(subset="seq").rename(columns={"t_sent_ns": "t_noted_ns"})
    if noted.duplicated(key).any():
        raise ResultsError(f"{point.folder / 'in.csv'}: a number of a publisher is there twice")
    arrived = arrived.sort_values("t_received_ns", kind="stable")
    of_step = ["step", "t_intended_ns", "t_noted_ns"]
    noted = noted[[*key, *of_step]].astype({"seq": "int64"} | dict.fromkeys(of_step, "Int64"))
    arrived = arrived.merge(noted, on=key, how="left")
    arrived["strange"] = arrived.step.isna()
    if not arrived.strange.any():
        arrived = arrived.astype({name: "int64" for name in of_step if arrived[name].notna().all()})
    # In a fan-out each subscriber gets a copy of its own.
    arrived["again"] = arrived.duplicated(key + (["subscriber"] if point.scenario == "fan-out" else []))
    return sent, arrived, lost


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


def _typed(path):
    """A file of a point, with the types of the run's datapackage.json."""
    run = path.parents[1]
    fields = _described(run, (run / "datapackage.json").stat().st_mtime_ns)
    return table(path, fields=fields.get(f"{path.parent.name}/{path.name}"))


@lru_cache(maxsize=1)
def _described(run, _changed):
    return described(run)
