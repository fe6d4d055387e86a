"""What measurements share: their table, programs that are run in turn, and a verdict on what these measured."""

import argparse
import atexit
import collections
import importlib
import inspect
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import results

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")).absolute()
PROGRAM = os.environ.get("HCABENCH_PROGRAM", "hcabench")
FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
# Where the results of the last run are.
OUT = FOLDER / "results"

Measurement = collections.namedtuple("Measurement", "measure shows setup program machine folder asked_only options")
MEASUREMENTS = {}


def measurement(shows, setup="run", program=True, machine=None, folder=None, asked_only=False, **options):
    """Adds a function to the table of ci/measure: its name with dashes, its documentation as usage text, its options
    by name: (default, what reads it, help). It returns whether all limits were kept. Before it runs, the groups of
    ci/setup are installed and, with `program`, hcabench is built. With `machine` it runs in the SoftRoCE machine; that
    function gets the same options, prepares what the machine cannot and returns ci/vm's options. Results are in
    `folder`. With `asked_only` it takes what cannot be installed, and is not one of all.
    """

    def add(measure):
        name = measure.__name__.replace("_", "-")
        MEASUREMENTS[name] = Measurement(measure, shows, setup.split(), program, machine, folder, asked_only, options)
        return measure

    return add


def add_all():
    """Fills the table, in the order in which all are run: those on this machine first."""
    for module in (
        "cargo", "scale", "clock", "estimates", "big", "memory", "cores", "queues", "ranks", "latency", "nodes", "equals",
        "health", "history",
    ):
        importlib.import_module(module)


def options_of(name, words):
    """What the options of a measurement are set to."""
    one = MEASUREMENTS[name]
    parser = argparse.ArgumentParser(prog=f"ci/measure {name}", description=inspect.getdoc(one.measure),
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    for option, (default, read, says) in one.options.items():
        says += f" [default: {default}]" * bool(default)
        parser.add_argument("--" + option.replace("_", "-"), default=default, type=read, help=says)
    return vars(parser.parse_args(words))


def whole(least, most):
    """Reads a whole number."""

    def number(text):
        if not re.fullmatch("0|[1-9][0-9]{0,8}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not allowed, must be a whole number from {least} to {most}")
        return int(text)

    return number


def parts(*allowed):
    """The option of those that have parts."""

    def words(text):
        for word in text.split(","):
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"'{word}' is not allowed, must be of: {', '.join(allowed)}")
        return text.split(",")

    return ",".join(allowed), words, "what is measured, with commas"


def rounds(default, least=1):
    """The option that most have."""
    return default, whole(least, 100), "how many times each is measured, in turn"


# Of what runs in the SoftRoCE machine.
KERNEL = (None, str, "ci/vm's (by itself the distribution's own)")


def on(kernel):
    """The option of ci/vm."""
    return ["--kernel", kernel] if kernel else []


def attempt(*command, seconds=120, stderr=subprocess.PIPE, **variables):
    """Runs a command to its end, whatever that is."""
    words = [str(word) for word in command]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr}
    try:
        return subprocess.run(words, **pipes, text=True, timeout=seconds, env={**os.environ, **variables})
    except subprocess.TimeoutExpired:
        sys.exit(f"{shlex.join(words)}: it did not end within {seconds} s")


def checked(done):
    """The output of a command; where it failed, the end of the comparison."""
    if done.returncode:
        said = done.stdout + (done.stderr or "")
        sys.exit(f"{said}{shlex.join(done.args)}: failed with exit code {done.returncode}")
    return done.stdout


def run(*command, seconds=120):
    """The output of a command that has to succeed."""
    return checked(attempt(*command, seconds=seconds))


def build(*command, **variables):
    """The output of what builds something, however long it takes; what it complains of is shown."""
    return checked(attempt(*command, seconds=None, stderr=None, **variables))


def listings():
    """Builds the listings that need no device; their folder."""
    folder = TARGET / "listings"
    build("make", "--quiet", "-C", REPOSITORY / "listings", f"OUT={folder}", "machine")
    return folder


def hcabench(*arguments, seconds=120):
    """The command line of a run with its results in OUT, and how it ended."""
    return attempt(PROGRAM, *arguments, "--quiet", "--force", "--out", OUT, seconds=seconds)


def summary(*arguments, seconds=120):
    """The first row of the summary of a run that has to succeed."""
    checked(hcabench(*arguments, seconds=seconds))
    return results.first(OUT / "summary.csv")


def alternate(rounds, sides, turn=0):
    """Calls functions by name, in turn, every second round the other way round: neither is always the first.
    Their figures by name, after each round. `turn` is the number of the first round.
    """
    figures = {name: [] for name in sides}
    for number in range(turn, turn + rounds):
        for name in reversed(sides) if number % 2 else sides:
            figures[name].append(sides[name]())
        yield figures


def turns(rounds, ours, theirs, name, unit="us"):
    """Measures both in turn, and shows each round, the medians, and how far the least and the greatest lie apart, in
    percent of these; the figures of both.
    """

    def line(label, pair):
        print(f"{label!s:8} {pair[0]:14.2f} {pair[1]:14.2f}", flush=True)

    print(f"{'round':8} {f'hcabench [{unit}]':>14} {f'{name} [{unit}]':>14}")
    for figures in alternate(rounds, {"ours": ours, "theirs": theirs}):
        line(len(figures["ours"]), [of[-1] for of in figures.values()])
    line("median", [results.median(of) for of in figures.values()])
    line("spread %", [100 * ratio(max(of) - min(of), results.median(of)) for of in figures.values()])
    return list(figures.values())


def ratio(one, other):
    """Of two figures; nothing is as much as nothing."""
    if other:
        return one / other
    return float("inf") if one else 1.0


def of_medians(ours, theirs):
    """The ratio of two medians."""
    return ratio(results.median(ours), results.median(theirs))


def bounds(figures):
    """The median of figures, and the order statistics that hold it with 95 %, or all of them where they are too few."""
    figures = sorted(figures)
    count = len(figures)
    outside, below = 0, 0.0
    while (below := below + math.comb(count, outside) / 2**count) <= 0.025:
        outside += 1
    outside = max(outside - 1, 0)
    return results.median(figures), figures[outside], figures[count - 1 - outside]


def ratios(ours, theirs):
    """The ratio of each round: what changes both sides of a round changes none of them."""
    return [ratio(*pair) for pair in zip(ours, theirs, strict=True)]


def of_rounds(ours, theirs):
    """The median of the ratios of the rounds."""
    return results.median(ratios(ours, theirs))


# From this number of rounds on the least and the greatest hold the median with 95 %.
FOR_BOUNDS = 6


def judge(found, least=None, most=None, expected=None, rounds=None):
    """Prints whether a ratio is within its limits, and returns it. One below what is expected is remarked only. With the
    figures of both sides in each of `rounds` it prints as well between what the median of their ratios lies, which may be
    another figure than the ratio that is judged.
    """
    met = (least is None or found >= least) and (most is None or found <= most)
    limits = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (most is not None)
    word = "" if met else "  NOT MET"
    if expected is not None and found < expected:
        word += f"  below {expected:.2f}, which is expected"
    print(f"{'ratio':8} {found:14.3f}   {', '.join(limits)}{word}", flush=True)
    if rounds:
        of_each = ratios(*rounds)
        _, low, high = bounds(of_each)
        what = "95 % bounds of the rounds' median ratio" if len(of_each) >= FOR_BOUNDS else f"range of {len(of_each)} rounds"
        print(f"{'':8} {low:14.3f} {high:14.3f}   {what}", flush=True)
    return met
