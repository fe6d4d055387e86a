"""Samples of one point, a row of a summary: messages, elements, exchanges, jumps, differences."""

import pandas as pd

from .files import ResultsError, table


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
