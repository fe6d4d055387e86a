"""The clock benchmark against C and cyclictest."""

import itertools
import json
import os
import re
import sys

import compare
import results

CPU = max(os.sched_getaffinity(0))
REPORTS = {"percentiles": "percentiles", "default": "highest,cumulative,histogram"}
CLOCKS = "realtime", "monotonic", "monotonic-raw", "rdtsc", "rdtscp", "rdtscp-lfence"
WAKEUPS, FACTOR, SLACK_US = 5000, 1.25, 2


def again(ours):
    """How runs of one command line agree: the median of rounds 1, 2, 5, 6 and so on over that of the others, as many of
    which had either order.
    """
    return compare.of_medians(*([of for at, of in enumerate(ours) if at % 4 in part] for part in ((0, 1), (2, 3))))


@compare.measurement("the loop of the clock benchmark against the bare instructions in C",
                     rounds=compare.rounds(8, least=4))
def compare_clock(rounds):
    """Compares the loop of `hcabench clock` with the bare instruction sequence of each clock in C, compiled with -O2
    (listings/clock_loop.c): the median iteration, with --report percentiles and with its default,
    highest,cumulative,histogram, on the last CPU that this may use, in turn, after one round that does not count.
    Prints the medians of both, and the median of the rounds' ratios: a processor that changes its speed between two
    rounds changes both sides of a round. Besides, the median over rounds 1, 2, 5, 6 and so on by that over the others,
    which shows how well runs of one command line agree. Exit code 1 if the first is above 1.05, if the second is off
    one by more than a quarter (as docs/clock.md says), or if anything went wrong. Clocks that hcabench cannot read here
    (exit code 2) are named; at least one must be compared.
    """
    listing = compare.listings() / "clock_loop"
    compared, all_met = 0, True
    for clock, (name, report) in itertools.product(CLOCKS, REPORTS.items()):
        # In a virtual machine each of them may leave it.
        iterations = 20_000 if clock == "rdtscp" else 2_000_000
        print(f"\n{clock}, {name}, {iterations} iterations")

        def measured():
            return compare.hcabench(
                "clock", "--clock", clock, "--report", report, "--iterations", iterations,
                "--baseline-iterations", "10k", "--threshold", "1s", "--cpu", CPU,
            )

        def ours():
            compare.checked(measured())
            row = results.first(compare.OUT / "summary.csv")
            return round(float(row["p50_ns"]) / float(row["nanos_per_tick"]))

        def theirs():
            return json.loads(compare.run("taskset", "-c", CPU, listing, clock, iterations))["median"]

        # Does not count: it settles the processor's speed, and shows whether the clock can be read.
        trial = measured()
        if trial.returncode == 2:
            print(f"cannot be read here: {trial.stderr.strip().splitlines()[-1]}")
            continue
        compare.checked(trial)
        theirs()
        figures = compare.turns(rounds, ours, theirs, "C", "tick")
        all_met &= compare.judge(compare.of_rounds(*figures), most=1.05, rounds=figures)
        all_met &= compare.judge(again(figures[0]), 0.75, 1.25)
        compared += 1
    if not compared:
        sys.exit("no clock could be compared")
    return all_met


def of_cyclictest(text):
    """Least, median, mean and greatest lateness in us, of its histogram, which counts whole us, cut off."""
    found = re.findall(r"^(\d+)\s+(\d+)$", text, re.MULTILINE)
    counts = [(int(us) + 0.5, int(count)) for us, count in found if int(count)]
    late = [us for us, count in counts for _ in range(count)]
    return late[0], late[(len(late) - 1) // 2], sum(late) / len(late), late[-1]


def judge_wakeup(name, ours, theirs):
    """Whether two latenesses agree; the least and the greatest are not judged."""
    agree = ours <= theirs * FACTOR + SLACK_US and theirs <= ours * FACTOR + SLACK_US
    return agree or name in ("min", "max")


@compare.measurement("how late a timer wakes a thread, against cyclictest", setup="run test",
                     rounds=compare.rounds(6, least=2))
def compare_wakeup(rounds):
    """Compares `hcabench clock --report wakeup` with cyclictest (rt-tests): how late clock_nanosleep wakes a thread on
    the last CPU that this may use, every millisecond for 5 s, in turn. Both under SCHED_FIFO 80 and with
    /dev/cpu_dma_latency held, where this user may; else both without. Prints the median over the rounds of least,
    median and mean lateness in us. cyclictest counts whole us, cut off, which half a us is added for. Exit code 1 if a
    median or a mean is off by more than a quarter and 2 us, or if anything went wrong. Maxima are shown and not
    judged: no two runs agree in them. In the test machine: ci/vm -- ci/measure compare-wakeup, with HCABENCH_PROGRAM.
    """
    may = not compare.attempt("chrt", "-f", "80", "true").returncode
    options = ["--priority", "80"] if may else []
    their_options = ["--priority=80", "--policy=fifo"] if may else []

    def ours():
        compare.checked(compare.hcabench(
            "clock", "--report", "wakeup", "--iterations", WAKEUPS, "--interval", "1ms", "--cpu", CPU, *options
        ))
        row = next(row for row in results.rows(compare.OUT / "summary.csv") if row["timer"] == "nanosleep")
        return [float(row[column]) / 1000 for column in ("min_ns", "p50_ns", "mean_ns", "max_ns")]

    def theirs():
        return of_cyclictest(compare.run(
            "cyclictest", f"--affinity={CPU}", "--threads=1", "--interval=1000", f"--loops={WAKEUPS}", "--quiet",
            "--histogram=100000", *their_options,
        ))

    *_, figures = compare.alternate(rounds, {"ours": ours, "theirs": theirs})
    print(f"{rounds} rounds of {WAKEUPS} wake-ups on CPU {CPU}, {'SCHED_FIFO 80' if may else 'SCHED_OTHER'}")
    print(f"{'us':8} {'hcabench':>14} {'cyclictest':>14}")
    all_met = True
    for at, name in enumerate(("min", "median", "mean", "max")):
        one, other = (results.median([figure[at] for figure in of]) for of in figures.values())
        met = judge_wakeup(name, one, other)
        print(f"{name:8} {one:14.1f} {other:14.1f}{'' if met else '  NOT MET'}")
        all_met &= met
    print(f"median and mean within a factor of {FACTOR} and {SLACK_US} us: {'met' if all_met else 'NOT MET'}")
    return all_met
