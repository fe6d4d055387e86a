"""The clock benchmark against C and cyclictest, and what memory it takes."""

import json
import os
import re
import subprocess
import sys
import time

import compare
import results

CPU = max(os.sched_getaffinity(0))
REPORTS = {"percentiles": "percentiles", "default": "highest,cumulative,histogram"}
LOOP_LIMIT, AGAIN_LIMIT = 1.05, 0.25
WAKEUPS, FACTOR, SLACK_US = 5000, 1.25, 2
MOST_KIB, START_MS, GROWTH = 65536, 1000, 1.25


def judge_loop(ours, theirs):
    """The ratio to C, how runs of one command line agree, and whether both are within their limits."""
    found = compare.of_rounds(ours, theirs)
    # As many of either have either order.
    halves = [[of for at, of in enumerate(ours) if at % 4 in part] for part in ((0, 1), (2, 3))]
    again = compare.of_medians(*halves)
    return found, again, 0 < found <= LOOP_LIMIT and abs(again - 1) <= AGAIN_LIMIT


@compare.measurement("the loop of the clock benchmark against the bare instructions in C",
                     rounds=compare.rounds(8, least=4))
def compare_clock(rounds):
    """Compares the loop of `hcabench clock` with the bare instruction sequence of each clock in C, compiled with -O2
    (listings/clock_loop.c): the median iteration, with --report percentiles and with its default,
    highest,cumulative,histogram, on the last CPU that this may use, in turn, after one round that does not count.
    Prints the median of the medians of both, and the median of the rounds' ratios: a processor that changes its speed
    between two rounds changes both sides of a round. Besides, `again`: the median over rounds 1, 2, 5, 6 and so on by
    that over the others, which tells how well runs of one command line agree; as many of both have either order. Exit
    code 1 if a ratio is above 1.05, if `again` is off one by more than a quarter (as docs/clock.md says), or if
    anything went wrong. Clocks that hcabench cannot read here (exit code 2) are named; at least one must be compared.
    """
    listing = compare.listings() / "clock_loop"
    compared, failed = 0, False
    head = ("clock", "report", "iterations", "ours [tick]", "C [tick]", "ratio", "again")
    print("{:14} {:12} {:>10} {:>12} {:>12} {:>8} {:>8}".format(*head))
    for clock in ("realtime", "monotonic", "monotonic-raw", "rdtsc", "rdtscp", "rdtscp-lfence"):
        # In a virtual machine each of them may leave it.
        iterations = 20_000 if clock == "rdtscp" else 2_000_000

        def measured(report):
            return compare.hcabench(
                "clock", "--clock", clock, "--report", REPORTS[report], "--iterations", iterations,
                "--baseline-iterations", "10k", "--threshold", "1s", "--cpu", CPU,
            )

        def ours(report):
            compare.checked(measured(report))
            row = results.first(compare.OUT / "summary.csv")
            return round(float(row["p50_ns"]) / float(row["nanos_per_tick"]))

        def theirs():
            return json.loads(compare.run("taskset", "-c", CPU, listing, clock, iterations))["median"]

        # Does not count: it settles the processor's speed, and shows whether the clock can be read.
        trial = measured("percentiles")
        if trial.returncode == 2:
            print(f"{clock:14} cannot be read here: {trial.stderr.strip().splitlines()[-1]}")
            continue
        compare.checked(trial)
        theirs()
        sides = {"percentiles": lambda: ours("percentiles"), "C": theirs, "default": lambda: ours("default")}
        *_, figures = compare.alternate(rounds, sides)
        for report in REPORTS:
            found, again, met = judge_loop(figures[report], figures["C"])
            medians = results.median(figures[report]), results.median(figures["C"])
            print(f"{clock:14} {report:12} {iterations:10} {medians[0]:12.1f} {medians[1]:12.1f} {found:8.3f} "
                  f"{again:8.3f}{'' if met else '  NOT MET'}", flush=True)
            failed |= not met
        compared += 1
    if not compared:
        sys.exit("no clock could be compared")
    word = "NOT MET" if failed else "met"
    print(f"at most {LOOP_LIMIT} is required, and two runs within {AGAIN_LIMIT}: {word}")
    return not failed


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


def taken(*arguments):
    """The most memory that a run had (VmHWM, in KiB), and how long it took in ms."""
    command, most, begun = [compare.PROGRAM, "clock", *arguments], 0, time.monotonic()
    with open(compare.FOLDER / "log", "w+") as log:
        run = subprocess.Popen([*command, "--quiet", "--force", "--out", compare.OUT], stderr=log, stdout=log)
        while run.poll() is None:
            with open(f"/proc/{run.pid}/status") as status:
                most = max([most, *(int(line.split()[1]) for line in status if line.startswith("VmHWM"))])
            time.sleep(0.02)
        log.seek(0)
        compare.checked(subprocess.CompletedProcess(command, run.returncode, log.read(), ""))
    return most, (time.monotonic() - begun) * 1000


def judge_memory(runs):
    """Of runs of 2 s the most memory, the shortest start and end, and whether both are within their limits."""
    most, least = max(kib for kib, _ in runs), min(ms for _, ms in runs) - 2000
    return most, least, most <= MOST_KIB and least <= START_MS


@compare.measurement("its memory over short and long runs, and a second to start",
                     seconds=(60, compare.whole(2, 3600), "how long the longer run is"))
def clock_memory(seconds):
    """Compares the memory (VmHWM) of `hcabench clock --report histogram` over SECONDS with that over one second. Exit
    code 1 if the longer run takes more than 1.25 times as much, if the default on one CPU takes more than 64 MiB, or
    if it does not begin to watch within a second, in the best of three runs. With --causes trace the same, where this
    user may trace (root, in ci/vm for instance); else that is said and left out.
    """
    all_met = True
    for causes in ("counters", "trace"):
        if causes == "trace" and not os.access("/sys/kernel/tracing/events/sched/sched_switch/format", os.R_OK):
            print("--causes trace: this user may not trace here")
            continue
        most, least, met = judge_memory([taken("--duration", "2s", "--causes", causes) for _ in range(3)])
        print(f"--causes {causes}: {most} KiB (at most {MOST_KIB}), start and end {least:.0f} ms (at most {START_MS}): "
              f"{'met' if met else 'NOT MET'}", flush=True)
        all_met &= met
    histogram = ["--report", "histogram", "--baseline-iterations", "1M"]
    short, long = (taken(*histogram, "--duration", f"{length}s")[0] for length in (1, seconds))
    print(f"memory of a histogram: {short} KiB over 1 s, {long} KiB over {seconds} s, ratio {long / short:.3f} "
          f"(at most {GROWTH} is required)")
    return all_met and long <= short * GROWTH
