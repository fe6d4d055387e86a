#!/usr/bin/env python3
"""Usage: ci/python/queues.py names
       ci/python/queues.py FOLDER PLACES TABLE ROUNDS CAPACITIES SIZES OWN

Prints the names of the queues in the JSON on standard input, with commas; or judges what ci/compare-queues has
measured: FOLDER/throughput-PLACE and FOLDER/latency-PLACE. Exit code 1 if a queue is not what it has to be.
"""

import collections
import itertools
import json
import sys
from pathlib import Path

import results
from results import median

BASELINE = "lamport"
# What the bridge to C++ costs.
INLINED, CALLED = "baton", "baton-by-call"
# What was published as faster than Lamport's under load.
FASTER_THAN_BASELINE = ["b-queue", "fastforward", "mcringbuffer"]


def medians(folders, column, scale):
    """By capacity and size, and queue: the median over rounds in each place."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for place, folder in enumerate(folders):
        figures = collections.defaultdict(list)
        path = folder / "runs.csv"
        # What was not measured at all is missed below, in each verdict.
        for row in results.rows(path) if path.exists() else []:
            if row["status"] == "complete":
                shape = int(row["capacity"]), int(row["payload_bytes"])
                figures[shape, row["queue"]].append(float(row[column]) * scale)
        for (shape, queue), values in figures.items():
            found[shape][queue][place] = median(values)
    return found


def verdict(shape, what, by_queue, own_name, places):
    """Our own queue against the best other in each place: whether it is as good, what is said, and the table's line."""
    more_is_better = what == "throughput"
    best = max if more_is_better else min
    own = by_queue.get(own_name, {})
    others = {queue: of for queue, of in by_queue.items() if queue not in (own_name, CALLED)}
    ratios, firsts = [], collections.Counter()
    for place in range(places):
        of_place = {queue: of[place] for queue, of in others.items() if place in of}
        if place in own and of_place:
            first = best(of_place, key=of_place.get)
            firsts[first] += 1
            ratios.append(own[place] / of_place[first])
    # A place without a figure may be the one where our own queue would have lost.
    used = f"{len(ratios)} of {places}"
    head = f"| {shape[0]} | {shape[1]} B | {what} |"
    if not ratios:
        said = f"NOT MET: no place has figures of {own_name} and of another queue for the {what}"
        return False, said, f"{head} - | - | {used} | - | no |"
    ratio, span = median(ratios), f"{min(ratios):.3f} to {max(ratios):.3f}"
    met = (ratio >= 1 if more_is_better else ratio <= 1) and len(ratios) == places
    other = firsts.most_common(1)[0][0]
    said = (f"{'met' if met else 'NOT MET'}: {own_name} has {ratio:.3f} times the {what} of the best other, mostly "
            f"{other} ({span} in {used} places)")
    return met, said, f"{head} {ratio:.3f} | {span} | {used} | {other} | {'yes' if met else 'no'} |"


def promised(rates):
    """The queues that were published as faster than the baseline, and how much faster they are."""
    there = [queue for queue in FASTER_THAN_BASELINE if queue in rates and BASELINE in rates]
    return {queue: median(rates[queue].values()) / median(rates[BASELINE].values()) for queue in there}


def main(folder, places, table, rounds, capacities, sizes, own):
    places = int(places)
    throughput, latency = (
        medians([Path(folder) / f"{kind}-{place}" for place in range(places)], column, scale)
        for kind, column, scale in (("throughput", "throughput_per_s", 1e-6), ("latency", "latency_p50_ns", 1))
    )
    met, lines = True, []
    # All that were asked for, whatever was measured.
    for shape in itertools.product(*(sorted(map(int, asked.split(","))) for asked in (capacities, sizes))):
        rates, times = throughput[shape], latency[shape]
        print(f"capacity {shape[0]}, elements of {shape[1]} B")
        print(f"{'queue':20}{'million/s':>10}{'least':>10}{'most':>10}{'p50 ns':>10}{'least':>10}{'most':>10}")
        for queue in (queue for queue in rates if queue in times):
            cells = [cell(of[queue].values()) for of in (rates, times) for cell in (median, min, max)]
            print(f"{queue:20}" + "".join(f"{cell:10.{digits}f}" for cell, digits in zip(cells, (1, 1, 1, 0, 0, 0))))
        for what, by_queue in (("throughput", rates), ("median latency", times)):
            is_met, said, line = verdict(shape, what, by_queue, own, places)
            met &= is_met
            lines.append(line)
            print(said)
        if INLINED in rates and CALLED in rates:
            ratio = median(rates[CALLED].values()) / median(rates[INLINED].values())
            print(f"the bridge: {INLINED} behind calls has {ratio:.2f} times the throughput of {INLINED}")
        for queue, ratio in promised(rates).items():
            met &= ratio >= 1
            word = "as promised" if ratio >= 1 else "SLOWER THAN PROMISED"
            print(f"{word}: {queue} has {ratio:.2f} times the throughput of {BASELINE}")
        print()
    print(f"the median of {places} places of the code, of medians over rounds, and the least and the most of them")
    if table:
        head = "| capacity | size | figure | ratio to the best other | in the places | used | mostly | met |"
        lines = [head, "| --- | --- | --- | --- | --- | --- | --- | --- |", *lines, ""]
        lines.append(f"The ratio is the median of {places} places, of medians over {rounds} rounds.\n")
        Path(table).write_text("\n".join(lines), encoding="utf-8")
    return met


if __name__ == "__main__":
    if sys.argv[1] == "names":
        print(",".join(queue["name"] for queue in json.load(sys.stdin)))
    else:
        sys.exit(not main(*sys.argv[1:]))
