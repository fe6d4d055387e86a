"""`hcabench memory` against C, and what a level of load costs."""

import functools
import os
import subprocess
import sys
import time

import compare
import results

WINDOWS, WINDOW_MS = 100, 10


class Machine:
    """What is measured with: the buffers, and who runs where."""

    def __init__(self, listings, size, chase_cpu, generators):
        self.listings, self.size, self.chase_cpu, self.generators = listings, size, chase_cpu, generators

    def run(self, *arguments):
        compare.summary(
            "memory", "--size", f"{self.size}M", "--pages", "2m", "--chase-cpu", self.chase_cpu, "--generators",
            self.generators, "--rounds", "1", *arguments, seconds=600,
        )

    def windows(self, *arguments):
        """The windows of one level, as many as in C."""
        self.run(*arguments, "--windows", WINDOWS, "--window", f"{WINDOW_MS}ms", "--smooth", "none")
        (path,) = compare.OUT.glob("*/windows.csv")
        return results.rows(path)

    @functools.cached_property
    def isa(self):
        """The widest instruction set that there is, as listings are named by it."""
        self.windows("--pause", "0", "--read-share", "50")
        isa = results.first(compare.OUT / "summary.csv")["isa"]
        return "avx512f" if isa == "avx512" else isa

    def listing(self, program, *arguments, windows=WINDOWS, window=WINDOW_MS):
        """The command line of a listing."""
        words = [f"{self.listings}/{program}", *arguments, "--size", self.size, "--pages", "2m"]
        return [*words, "--windows", windows, "--window", window]

    def in_c(self, program, *arguments):
        return results.values(compare.run(*self.listing(program, *arguments), seconds=600))

    def beside_a_chase(self, measure):
        """Measures while a chase runs on its CPU."""
        command = self.listing("pointer_chase", "--cpu", self.chase_cpu, windows=600, window=1000)
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as chase:
            try:
                if "chasing=1\n" not in chase.stdout:
                    sys.exit("pointer_chase failed")
                return measure()
            finally:
                chase.kill()


def latency(machine, rounds):
    """The chase while generators rest, against C."""

    def ours():
        windows = machine.windows("--pause", "off", "--read-share", "50")
        return results.median([float(window["latency_ns"]) for window in windows])

    print("\nlatency of a load, idle")
    figures = compare.turns(
        rounds, ours, lambda: float(machine.in_c("pointer_chase", "--cpu", machine.chase_cpu)["ns"]), "C", "ns"
    )
    return compare.judge(compare.of_rounds(*figures), 0.98, 1.02, rounds=figures)


def bandwidth(machine, rounds, kind, share, store):
    """Bandwidth at full speed, against C."""
    load = ["--pause", "0", "--read-share", share, "--store", store]
    command = [f"memory_bandwidth-{machine.isa}", "--kind", kind, "--store", store, "--cpus", machine.generators]

    def ours():
        windows = machine.windows(*load)
        return results.median([
            (int(window["lines_read"]) + int(window["lines_stored"])) * 64e3 / float(window["time_ns"])
            for window in windows
        ])

    print(f"\n{kind}, {store} stores, {share} % reads, {machine.isa}")
    def theirs():
        return float(machine.beside_a_chase(lambda: machine.in_c(*command))["mb_s"])

    figures = compare.turns(rounds, ours, theirs, "C", "MB/s")
    return compare.judge(compare.of_rounds(*figures), 0.98, rounds=figures)


def judge_lowest(rows):
    """Whether the intervals of two points overlap."""
    lows, highs = ([float(row[f"latency_{end}_ns"]) for row in rows] for end in ("low", "high"))
    return len(rows) == 2 and max(lows) <= min(highs)


def lowest(machine):
    """Whether the least load is next to none."""
    print("\nlatency with the longest pause, and without generators, ns")
    machine.run("--read-share", "50", "--pause", "max,off", "--rounds", "8", "--smooth", "none")
    rows = results.rows(compare.OUT / "summary.csv")
    for row in rows:
        print(f"{'max' if row['pause_nops'] else 'off':8} {float(row['latency_ns']):14.2f}   "
              f"{row['latency_low_ns']} to {row['latency_high_ns']}")
    met = judge_lowest(rows)
    print("they overlap" if met else "they do not overlap  NOT MET")
    return met


def judge_levels(wall_ns, rows):
    """The time of a run without its set-up, over what it waits and measures."""
    # Of a run that has it once, the other cells are empty.
    setup = sum(float(row["setup_time_ns"] or 0) for row in rows)
    measured = sum(float(row["settle_time_ns"]) + int(row["windows"]) * float(row["window_ns"]) for row in rows)
    print(f"{'wall':8} {wall_ns / 1e9:14.2f} s, of these {setup / 1e9:.2f} s for buffers")
    print(f"{'levels':8} {len(rows):14}, {measured / 1e9:.2f} s of settle and window time")
    return compare.judge((wall_ns - setup) / measured, most=1.10)


def levels(machine):
    """What a run takes beside what it waits and measures."""
    print("\ntime of a run")
    begun = time.monotonic_ns()
    machine.run()
    return judge_levels(time.monotonic_ns() - begun, results.rows(compare.OUT / "runs.csv"))


ALLOWED = sorted(os.sched_getaffinity(0))


@compare.measurement(
    "idle latency and bandwidth against C, and what a level of load costs", folder="/dev/shm",
    rounds=compare.rounds(5), size=(256, compare.whole(1, 65536), "of each buffer in MiB"),
    chase_cpu=(ALLOWED[-1], int, "the CPU of the chase"),
    generators=(ALLOWED[0], str, "the CPUs of the load, with commas"),
    only=compare.parts("latency", "lowest", "read", "copy", "triad", "levels"),
)
def compare_memory(rounds, size, chase_cpu, generators, only):
    """Compares `hcabench memory` with plain C (listings/), in turn, with buffers of the same size, in the same kind of
    pages, on the same CPUs. What counts is the median of the rounds' ratios, of each round the median of its windows:

      latency  the pointer chase while generators rest, against listings/pointer_chase.c; from 0.98 to 1.02
      read     bandwidth at full speed, reads only, against listings/memory_bandwidth.c; at least 0.98
      copy     the same with half of the accesses stores; regular ones, and non-temporal ones
      triad    the same with 66 % reads: 33 to 17 stores, where STREAM's triad has 2 to 1; stores cost more, so
               this is no advantage
      lowest   the latency beside generators with the longest pause, and while they rest: their 95 % intervals
               over eight rounds must overlap. Not in turn, and once.
      levels   the wall time of a run with many levels of load, its set-up apart, against the sum of their settle
               and window times; at most 1.10. Not in turn, and once. Results are in memory here (/dev/shm): a level
               is made durable by a dozen fsync, which take what the disk takes, 1 to 4 ms each on a busy one.

    In C too, bytes of the lines that are read and stored count, and a pointer chase runs on its CPU beside the load.
    The instruction set is the widest that there is. Exit code 1 if a limit is broken.
    """
    if str(chase_cpu) == str(generators):
        sys.exit(f"a load and a chase take two CPUs, allowed here: {ALLOWED}")
    machine = Machine(compare.listings(), size, chase_cpu, generators)
    met = []
    for name in only:
        if name == "latency":
            met.append(latency(machine, rounds))
        elif name == "read":
            met.append(bandwidth(machine, rounds, name, 100, "regular"))
        elif name in ("copy", "triad"):
            share = 50 if name == "copy" else 66
            met += [bandwidth(machine, rounds, name, share, store) for store in ("regular", "non-temporal")]
        else:
            met.append({"lowest": lowest, "levels": levels}[name](machine))
    return all(met)
