"""Our own queue against all others, at several places of the code."""

import collections
import itertools
import json
import sys

import cargo
import compare
import results
from results import median

MEASURED = {"throughput": ["--measure", "throughput"], "latency": ["--load", "constant-rate", "--rate", "1M"]}
WITHOUT_PENALTY = ("b-queue:penalty=0", "equeue:penalty=0")
BASELINE = "lamport"
OWN = "baton"
# What it can be.
KINDS = ("baton-batching", "baton-demoting")
# What the bridge to C++ costs.
CALLED = "baton-by-call"
# With which no queue of others is compared.
OURS = (OWN, *KINDS, CALLED, "sharded")
# What our own queue is to be, in its ratio to the best of others and to the best of what it could have been.
LIMITS = {"throughput": 1.05, "median latency": 1.0}
LIMITS_OF_CHOICE = {"throughput": 0.95, "median latency": 1.05}
# What was published as faster than Lamport's under load.
FASTER_THAN_BASELINE = ["b-queue", "fastforward", "mcringbuffer"]


def medians(folders, column, scale):
    """By capacity and size, and queue: what the summary says of all rounds, in each place."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for place, folder in enumerate(folders):
        path = folder / "summary.csv"
        # What was not measured at all is missed below, in each verdict.
        for row in results.rows(path) if path.exists() else []:
            if row[column] and row["rounds"] != "0":
                shape = int(row["capacity"]), int(row["payload_bytes"])
                found[shape][row["queue"]][place] = float(row[column]) * scale
    return found


def is_within(what, ratio, limits):
    """Whether a ratio is at least, or of a time at most, its limit."""
    return ratio >= limits[what] if what == "throughput" else ratio <= limits[what]


def is_ours(queue):
    """Whether a queue is one of ours, whatever parameters follow its name."""
    return queue.split(":")[0] in OURS


def against(what, by_queue, others, places):
    """The ratios of our own queue to the best of others in each place that has both, and how often each was that."""
    best = max if what == "throughput" else min
    own = by_queue.get(OWN, {})
    ratios, firsts = [], collections.Counter()
    for place in range(places):
        of_place = {queue: by_queue[queue][place] for queue in others if place in by_queue.get(queue, {})}
        if place in own and of_place:
            first = best(of_place, key=of_place.get)
            firsts[first] += 1
            ratios.append(own[place] / of_place[first])
    return ratios, firsts


def verdict(shape, what, by_queue, places):
    """Our own queue against the best other in each place: whether it is as good as it is to be, what is said, and the
    table's line."""
    ratios, firsts = against(what, by_queue, [queue for queue in by_queue if not is_ours(queue)], places)
    # A place without a figure may be the one where our own queue would have lost.
    used = f"{len(ratios)} of {places}"
    head = f"| {shape[0]} | {shape[1]} B | {what} |"
    if not ratios:
        said = f"NOT MET: no place has figures of {OWN} and of another queue for the {what}"
        return False, said, f"{head} - | - | {used} | - | no |"
    ratio, span = median(ratios), f"{min(ratios):.3f} to {max(ratios):.3f}"
    met = is_within(what, ratio, LIMITS) and len(ratios) == places
    other = firsts.most_common(1)[0][0]
    said = (f"{'met' if met else 'NOT MET'}: {OWN} has {ratio:.3f} times the {what} of the best other, mostly "
            f"{other} ({span} in {used} places)")
    return met, said, f"{head} {ratio:.3f} | {span} | {used} | {other} | {'yes' if met else 'no'} |"


def choice(what, by_queue, places):
    """Our own queue against the best of what it could have been: whether the choice was right, and what is said; right
    and nothing where none of these was measured."""
    ratios, firsts = against(what, by_queue, KINDS, places)
    if not ratios:
        return True, ""
    ratio, limit = median(ratios), LIMITS_OF_CHOICE[what]
    right = is_within(what, ratio, LIMITS_OF_CHOICE)
    bound = "at least" if what == "throughput" else "at most"
    return right, (f"the choice{'' if right else ', NOT MET'}: {OWN} has {ratio:.3f} times the {what} of the best of "
                   f"what it could be, mostly {firsts.most_common(1)[0][0]} ({bound} {limit})")


def promised(rates):
    """The queues that were published as faster than the baseline, and how much faster they are."""
    there = [queue for queue in FASTER_THAN_BASELINE if queue in rates and BASELINE in rates]
    return {queue: median(rates[queue].values()) / median(rates[BASELINE].values()) for queue in there}


def measured(place, alignment, queue, rounds, capacities, sizes):
    """Builds the program with that alignment and measures throughput and latency; the names of the queues."""
    # The loops are in the library, so all is built with the flag; each in a folder that stays for the next call.
    target = compare.TARGET / alignment
    compare.build("cargo", "build", "--quiet", "--release", "--locked", "--no-default-features", "--features", "cpp",
                  "--bin", "hcabench", "--target-dir", target, RUSTFLAGS=f"-C llvm-args=-{alignment}")
    program = target / "release/hcabench"
    if not queue:
        names = json.loads(compare.run(program, "queue", "--list", "--json"))
        queue = ",".join([*(one["name"] for one in names), *WITHOUT_PENALTY])
    options = ["--queue", queue, "--capacity", capacities, "--payload", sizes, "--rounds", rounds, "--quiet"]
    for kind, how in MEASURED.items():
        command = [program, "queue", *options, *how]
        # The options are judged before anything is measured.
        if not place:
            judged = compare.attempt(*command, "--dry-run")
            if judged.returncode:
                print(judged.stderr, file=sys.stderr, end="")
                sys.exit(judged.returncode)
        folder = compare.FOLDER / f"{kind}-{place}"
        if compare.attempt(*command, "--out", folder, seconds=None, stderr=None).returncode:
            print(f"not all of {kind} with {alignment} was measured", file=sys.stderr)
    return queue


@compare.measurement(
    "our own queue against all others, at six placements of the code", setup="bench", program=False,
    capacity=("64,1024,65536", str, "elements each queue can hold"), payload=("8,64", str, "bytes of an element"),
    queue=("", str, "only these, and our own; without it all, and those that wait after a look that found nothing "
           "without that as well"),
    rounds=(9, compare.whole(1, 1000), "of which the median is taken"),
    places=(6, compare.whole(1, 6), "so many of the six builds"),
)
def compare_queues(capacity, payload, queue, rounds, places):
    """Compares all queues, those of C++ among them, by `hcabench queue --rounds N`, under one policy for failed
    attempts: throughput without time stamps, and median latency at a million elements a second, at several capacities
    and sizes of elements. The program is built six times with its code aligned in other ways. In each of these places
    our own queue, baton, is compared with the best of the others there, and the median of these ratios counts: at least
    1.05 of throughput, at most 1 of latency. Our other queues are in the tables alone, and a line says how baton does
    against the best of what it could have been: at least 0.95 of its throughput, at most 1.05 of its latency.
    Prints a table for each capacity and size, made of summary.csv, with the median over the places, and one of the
    verdicts for docs/validation.md. Exit code 1 when our own queue is not the best everywhere, when it chose wrong, or
    when an idea that was published as faster than Lamport's queue is not. Takes half an hour beside the first builds,
    on CPUs that the program chooses: leave it some with taskset. With --places 3 --rounds 5 it takes at most twelve
    minutes.

    The queues of C++ are called, not inlined: rustc could inline only what a clang of its own LLVM has compiled. What
    that costs is what baton-by-call loses against baton: our own queue behind the same calls, which is in the tables
    and competes with nobody. A place where our own queue or all others have no figure is one that was not won.
    """
    if queue and OWN not in queue.split(","):
        queue = f"{OWN},{queue}"
    for place, alignment in enumerate(cargo.ALIGNMENTS[:places]):
        queue = measured(place, alignment, queue, rounds, capacity, payload)
    throughput, latency = (
        medians([compare.FOLDER / f"{kind}-{place}" for place in range(places)], column, scale)
        for kind, column, scale in (("throughput", "throughput_per_s", 1e-6), ("latency", "latency_p50_ns", 1))
    )
    met, lines = True, []
    # All that were asked for, whatever was measured.
    for shape in itertools.product(*(sorted(map(int, asked.split(","))) for asked in (capacity, payload))):
        rates, times = throughput[shape], latency[shape]
        print(f"capacity {shape[0]}, elements of {shape[1]} B")
        print(f"{'queue':20}{'million/s':>10}{'least':>10}{'most':>10}{'p50 ns':>10}{'least':>10}{'most':>10}")
        for queue in (queue for queue in rates if queue in times):
            cells = [cell(of[queue].values()) for of in (rates, times) for cell in (median, min, max)]
            print(f"{queue:20}" + "".join(f"{cell:10.{digits}f}" for cell, digits in zip(cells, (1, 1, 1, 0, 0, 0))))
        for what, by_queue in (("throughput", rates), ("median latency", times)):
            is_met, said, line = verdict(shape, what, by_queue, places)
            met &= is_met
            lines.append(line)
            print(said)
            is_right, said = choice(what, by_queue, places)
            met &= is_right
            if said:
                print(said)
        if OWN in rates and CALLED in rates:
            ratio = median(rates[CALLED].values()) / median(rates[OWN].values())
            print(f"the bridge: {OWN} behind calls has {ratio:.2f} times the throughput of {OWN}")
        for queue, ratio in promised(rates).items():
            met &= ratio >= 1
            word = "as promised" if ratio >= 1 else "SLOWER THAN PROMISED"
            print(f"{word}: {queue} has {ratio:.2f} times the throughput of {BASELINE}")
        print()
    print(f"the median of {places} places of the code, of medians over rounds, and the least and the most of them")
    print("\n| capacity | size | figure | ratio to the best other | in the places | used | mostly | met |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", *lines, sep="\n")
    print(f"\nThe ratio is the median of {places} places, of medians over {rounds} rounds.")
    return met


def by_round(path, column):
    """By capacity and size, queue and round: the figures of a run."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in results.rows(path):
        if row[column]:
            shape = int(row["payload_bytes"]), int(row["capacity"])
            found[shape][row["queue"]][int(row["round"])] = float(row[column])
    return found


def ratio_of(queue, base, by_queue):
    """The bounds of the ratio of two queues, whose rounds take turns; none without a round that has both."""
    rounds = [number for number in by_queue.get(queue, {}) if number in by_queue.get(base, {})]
    return compare.bounds([by_queue[queue][number] / by_queue[base][number] for number in rounds]) if rounds else None


@compare.measurement(
    "where each of the queues that baton can be is the best", setup="bench",
    capacity=("64,256,1024,4096,16384,65536,262144", str, "elements each queue can hold"),
    payload=("8,64,256", str, "bytes of an element"), queue=("", str, "these as well"),
    rounds=(21, compare.whole(6, 1000), "in which all take turns"),
)
def sweep_batons(capacity, payload, queue, rounds):
    """Measures what baton can be, over capacities and sizes of elements: the one that fills batches, and the one that
    demotes, in arrays of any size. Prints the throughput of the first in million elements a second, and its latency,
    and the ratio of each other to it, round by round, with the bounds of 95 % of its median.
    Where these leave out 1 the ratio is marked. The constants of crates/queues/src/baton.rs are interpolated between
    measured places: such a table is to replace them.
    Takes seven minutes. Other batches: --queue baton-batching:batch=64.
    """
    base, demoting = KINDS
    others = [f"{demoting}:largest=1000000", *(queue.split(",") if queue else [])]
    options = ["--queue", ",".join([base, *others]), "--capacity", capacity, "--payload", payload, "--rounds", rounds]
    met = True
    for kind, (column, scale, better) in {"throughput": ("throughput_per_s", 1e-6, "more"),
                                          "latency": ("latency_p50_ns", 1, "less")}.items():
        folder = compare.FOLDER / f"sweep-{kind}"
        command = [compare.PROGRAM, "queue", *options, "--quiet", *MEASURED[kind], "--out", folder]
        met &= not compare.attempt(*command, seconds=None, stderr=None).returncode
        if not (folder / "runs.csv").exists():
            return False
        print(f"{kind}: {better} is better\n{'bytes':>6}{'capacity':>9}{'KiB':>8}{base:>16}  ratio to it")
        for (size, elements), by_queue in sorted(by_round(folder / "runs.csv", column).items()):
            first = f"{median(by_queue[base].values()) * scale:16.1f}" if base in by_queue else f"{'-':>16}"
            cells = [(name, ratio) for name in others if (ratio := ratio_of(name, base, by_queue))]
            texts = [f"{name} {middle:.3f} ({low:.3f} to {high:.3f}){'' if low <= 1 <= high else ' *'}"
                     for name, (middle, low, high) in cells]
            print(f"{size:6}{elements:9}{size * elements / 1024:8.1f}{first}  {', '.join(texts)}")
        print()
    return met


# How long a consumer takes for an element, in microseconds, and the condition that is searched.
SERVICE_TIMES_US = (10, 25, 100)
CONDITION = "p50<1ms"


@compare.measurement("the rate that --find-rate finds against that of a consumer with a fixed time for each element",
                     rounds=(40, compare.whole(6, 1000), "rounds at a rate at the most"))
def find_rate(rounds):
    """Searches the highest rate of a queue whose consumer takes an element every 10, 25 and 100 us
    (--receiver-load constant-rate), and compares it with one over that time: above it the queue grows without end, and
    below it nothing waits. Exit code 1 if a search ends without an answer, or if its rate is off by more than 5 %.
    """
    met = True
    for time_us in SERVICE_TIMES_US:
        truth = 1e6 / time_us
        words = ["queue", "--queue", "lamport", "--rate", f"{truth / 5:.0f},{truth * 5:.0f}",
                 "--receiver-load", "constant-rate", "--receiver-rate", f"{truth:.0f}", "--find-rate", CONDITION,
                 "--duration", "200ms", "--rounds", rounds, "--order-seed", 1]
        compare.checked(compare.hcabench(*words, seconds=3600))
        found = json.loads((compare.OUT / "settings.json").read_text())["details"]["find_rate"][0]
        print(f"\nan element every {time_us} us, {truth:.0f} a second: {found['text'].rstrip()}", flush=True)
        if found["rate_per_s"] is None:
            print("NOT MET: no answer")
            met = False
        else:
            met &= compare.judge(compare.ratio(found["rate_per_s"], truth), 0.95, 1.05)
    return met
