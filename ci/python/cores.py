"""`hcabench cores` against other programs between the same two CPUs."""

import functools
import os
import re
import sys

import compare
import results

ALLOWED = sorted(os.sched_getaffinity(0))
# The crate that it is compared with; built as it is on crates.io.
CRATE = "core-to-core-latency"
VERSION = "1.2.0"
BATCHES = 20_000
# The fastest of as many batches as a round of ours keeps (MOST_BATCHES in one_pair.rs): of more it is faster.
KEPT = 4096
# Long enough for that number of batches with 0.7 us for a round trip; three eighths of it count for them.
LONG = "800ms"
LEAST = {"counted": 0.95, "c": 0.95, "default": 0.95, "least": 0.85, "crate": None}


def crate():
    """The program of that crate, in a folder that stays for the next call."""
    root = compare.TARGET / "tools"
    program = root / "bin" / CRATE
    there = compare.attempt("cargo", "install", "--list", "--root", root).stdout
    if not program.exists() or f"{CRATE} v{VERSION}:" not in there:
        compare.build("cargo", "install", "--quiet", "--locked", "--root", root, "--version", VERSION, CRATE)
    return program


def mean_of(said, pairs=1):
    """The figures in the CSV that the crate prints: half of a round trip in ns, of a pair in both directions or one."""
    cells = [float(cell) for line in said.splitlines() for cell in line.split(",") if re.fullmatch(r"[\d.]+", cell)]
    if len(cells) not in (pairs, 2 * pairs):
        raise ValueError(f"not {pairs} pair(s): {said!r}")
    return results.median(cells)


def cell_of(said, row, column):
    """A cell of the table of c2clat."""
    lines = [line.split() for line in said.splitlines()]
    head = next(line for line in lines if line[:1] == ["CPU"])
    for line in lines:
        if line[:1] == [str(row)] and line is not head:
            return float(line[head.index(str(column))])
    raise ValueError(f"no CPU {row}: {said!r}")


def ours(cpus, column, *options):
    """A figure of both directions of the pair, the median over rounds."""
    compare.checked(compare.hcabench("cores", "--cpus", ",".join(map(str, cpus)), *options))
    (path,) = compare.OUT.glob("*/pairs.csv")
    return results.median([float(row[column]) for row in results.rows(path)])


def in_c(program, cpus, figure, batches, *options):
    """The same method in C."""
    said = compare.run(program, "--ask", cpus[0], "--answer", cpus[1], "--batches", batches, *options)
    return float(results.values(said)[figure])


def of_crate(program, cpus):
    """The crate's method of two lines, which prints means of samples of 100 round trips."""
    one, other = cpus
    return mean_of(compare.run("taskset", "-c", f"{one},{other}", program, 100, BATCHES, "--csv", "-b", 2))


def of_c2clat(program, cpus):
    """The fastest of as many samples of 100 round trips."""
    one, other = cpus
    return cell_of(compare.run("taskset", "-c", f"{one},{other}", program, "-s", KEPT), one, other)


@compare.measurement(
    "half of a round trip of a cache line against core-to-core-latency, c2clat and C",
    rounds=compare.rounds(7), cpus=(",".join(map(str, ALLOWED[:2])), str, "the two CPUs, with a comma"),
    c2clat=("", str, "the program c2clat of github.com/rigtorp/c2clat; without it the same figure in C counts"),
    only=compare.parts("counted", "c", "default", "least", "crate"),
)
def compare_cores(rounds, cpus, c2clat, only):
    """Compares `hcabench cores` with programs that measure half of a round trip of a cache line by loads and stores of
    two lines, in turn, between the same two CPUs. What counts is the median of the rounds' ratios, at most 1.05:

      counted the median of batches of 100 round trips, against the same in C with looks that are counted
              (listings/cache_line.c --count-looks); at least 0.95
      c       the median of batches of 100 round trips, against C without a count; at least 0.95
      default the median of batches by the default duration and rounds, against the same C; at least 0.95
      least   the fastest of 4096 batches, against c2clat, which prints that in whole nanoseconds; without --c2clat
              against the same figure in C; at least 0.85. It is on no registry of packages, so build it before:
              g++ -O3 -DNDEBUG c2clat.cpp -o c2clat -pthread
      crate   our median against the mean that core-to-core-latency prints (its benchmark 2, of crates.io), which a
              stop of either thread makes longer: a busy machine has the larger mean; no least ratio

    Looks of ours are counted, as an end that gives up has to look at the clock now and then. So a look takes longer
    than in a bare loop, and the fastest batches are up to a tenth shorter, in C as well. A likely reason is that a
    processor reads a line ahead of time in many looks at once, and has to repeat all of these when the line changes;
    no counter of a processor has shown that yet.

    Exit code 1 if a limit is broken.
    """
    pair = [int(cpu) for cpu in re.findall(r"\d+", cpus)]
    if len(set(pair)) != 2:
        sys.exit(f"--cpus {cpus}: it takes two CPUs, allowed here: {ALLOWED}")
    listing = compare.listings() / "cache_line"
    median, least = "half_round_trip_ns", "half_round_trip_least_ns"
    long, longest = ("--rounds", 3, "--duration", "50ms"), ("--rounds", 1, "--duration", LONG)
    sides = {
        "counted": (median, long, functools.partial(in_c, listing, pair, "ns", BATCHES, "--count-looks"), "C counted"),
        "c": (median, long, functools.partial(in_c, listing, pair, "ns", BATCHES), "C"),
        "default": (median, (), functools.partial(in_c, listing, pair, "ns", BATCHES), "C"),
        "least": (least, longest, functools.partial(of_c2clat, c2clat, pair), "c2clat") if c2clat else
                 (least, longest, functools.partial(in_c, listing, pair, "least_ns", KEPT * 10 // 9), "C"),
        "crate": (median, long, None, CRATE[:9]),
    }
    met = []
    for name in only:
        column, options, theirs, title = sides[name]
        if theirs is None:
            theirs = functools.partial(of_crate, crate(), pair)
        print(f"\n{name}: {column} between CPUs {pair[0]} and {pair[1]}, and {title}")
        figures = compare.turns(rounds, functools.partial(ours, pair, column, *options), theirs, title, "ns")
        met.append(compare.judge(compare.of_rounds(*figures), LEAST[name], 1.05, rounds=figures))
    return all(met)
