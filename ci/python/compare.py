"""What comparisons share: programs are run in turn, and a verdict is given on the ratio of what they measured."""

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import results

PROGRAM = os.environ.get("HCABENCH_PROGRAM", "hcabench")
FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
# Where the results of the last run are.
OUT = FOLDER / "results"


def attempt(*command, seconds=120):
    """Runs a command to its end, whatever that is."""
    words = [str(word) for word in command]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        return subprocess.run(words, **pipes, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        sys.exit(f"{shlex.join(words)}: it did not end within {seconds} s")


def checked(done):
    """The output of a command; where it failed, the end of the comparison."""
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{shlex.join(done.args)}: failed with exit code {done.returncode}")
    return done.stdout


def run(*command, seconds=120):
    """The output of a command that has to succeed."""
    return checked(attempt(*command, seconds=seconds))


def hcabench(*arguments, seconds=120):
    """The command line of a run with its results in OUT, and how it ended."""
    return attempt(PROGRAM, *arguments, "--quiet", "--force", "--out", OUT, seconds=seconds)


def summary(*arguments, seconds=120):
    """The first row of the summary of a run that has to succeed."""
    checked(hcabench(*arguments, seconds=seconds))
    return results.first(OUT / "summary.csv")


def alternate(rounds, sides):
    """Calls functions by name, in turn, every second round the other way round: neither is always the first.
    Their figures by name, after each round.
    """
    figures = {name: [] for name in sides}
    for number in range(rounds):
        for name in reversed(sides) if number % 2 else sides:
            figures[name].append(sides[name]())
        yield figures


def turns(rounds, ours, theirs, name, unit="us"):
    """Measures both in turn, and shows each round and the medians; the figures of both."""

    def line(label, pair):
        print(f"{label!s:8} {pair[0]:14.2f} {pair[1]:14.2f}", flush=True)

    print(f"{'round':8} {f'hcabench [{unit}]':>14} {f'{name} [{unit}]':>14}")
    for figures in alternate(rounds, {"ours": ours, "theirs": theirs}):
        line(len(figures["ours"]), [of[-1] for of in figures.values()])
    line("median", [results.median(of) for of in figures.values()])
    return list(figures.values())


def ratio(one, other):
    """Of two figures; nothing is as much as nothing."""
    if other:
        return one / other
    return float("inf") if one else 1.0


def of_medians(ours, theirs):
    """The ratio of two medians."""
    return ratio(results.median(ours), results.median(theirs))


def of_rounds(ours, theirs):
    """The median of the ratios of the rounds: what changes both sides of a round changes none of them."""
    return results.median([ratio(*pair) for pair in zip(ours, theirs, strict=True)])


def judge(found, least=None, most=None, expected=None):
    """Prints whether a ratio is within its limits, and returns it. One below what is expected is remarked only."""
    met = (least is None or found >= least) and (most is None or found <= most)
    limits = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (most is not None)
    word = "" if met else "  NOT MET"
    if expected is not None and found < expected:
        word += f"  below {expected}, which is expected"
    print(f"{'ratio':8} {found:14.3f}   {', '.join(limits)}{word}", flush=True)
    return met
