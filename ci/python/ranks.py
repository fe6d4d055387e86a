"""Whether two runs of `hcabench queue --queue all` rank queues alike, or say what they cannot tell apart."""

import contextlib
import os
import re
import subprocess
import sys
import time

import compare

FIRST = 3


def places(text):
    """The places in a cell such as 2, 4..6."""
    spans = [part.split("..") for part in text.split(", ") if part != "-"]
    return {place for span in spans for place in range(int(span[0]), int(span[-1]) + 1)}


def rankings(lines):
    """By what was ranked: queues in order, and for each the set of those that are not told apart from it. And of
    which rankings it says that no two queues kept the load.
    """
    found, missed, title = {}, set(), None
    for line in lines:
        row = re.fullmatch(r" *(\d+)  (\S+) +[\d.]+ +(?:-|>?\d+)  (.+?)\s*", line)
        if line.startswith("ranks by "):
            title = line.removeprefix("ranks by ").strip()
            found[title] = []
        elif line.startswith("rank:"):
            if re.match("rank: (none|only one) of these ", line):
                missed.add(title)
            title = None
        elif title and row:
            assert int(row[1]) == len(found[title]) + 1, line
            found[title].append((row[2], places(row[3])))
    return found, missed


def told(ranking):
    """Which queue is told to be better than which."""
    return {
        (better, worse)
        for at, (better, alike) in enumerate(ranking)
        for behind, (worse, _) in enumerate(ranking[at + 1:], at + 1)
        if behind + 1 not in alike
    }


def judge(texts, fifth, expected):
    """Whether what two runs have printed holds against each other; prints why. With `fifth` the machine was idle: the
    first has to be told apart from the fifth, and the load to be kept. What is ranked by has to be each of `expected`.
    """
    (one, missed), (other, missed_there) = (rankings(text.splitlines()) for text in texts)
    if not one or one.keys() != other.keys() or not one.keys() >= set(expected):
        wanted = expected or "the same"
        print(f"NOT COMPARED: the two rank by {sorted(one)} and {sorted(other)}, and have to by {wanted}")
        return False
    failed, compared = False, 0
    for title, ranking in one.items():
        runs = [ranking, other[title]]
        if not all(runs):
            in_neither = not any(runs)
            says_so = [run or title in said for run, said in zip(runs, (missed, missed_there))]
            if all(says_so) and not fifth:
                who = "both runs" if in_neither else "one run"
                print(f"cannot be told: {title}: no two queues kept the load, as {who} said")
                continue
            failed = True
            print(f"NOT RANKED: {title}: no queue in {'either run' if in_neither else 'one run'}")
            continue
        compared += 1
        firsts = {queue for run in runs for queue, _ in run[:FIRST]}
        tolds = [told(run) for run in runs]
        against = [pair for pair in tolds[0] if firsts & set(pair) and pair[::-1] in tolds[1]]
        names = [[queue for queue, _ in run] for run in runs]
        heads = [", ".join(run[:FIRST]) for run in names]
        # What a run does not rank it does not tell apart: too few elements went through in time, and it says so.
        unranked = sorted(firsts - (set(names[0]) & set(names[1])))
        beside = f"; ranked in one run only: {', '.join(unranked)}" if unranked else ""
        if against:
            failed = True
            what = [f"{better} and {worse} change places" for better, worse in against]
            print(f"CONTRADICTION: {title}: {'; '.join(what)}")
        elif heads[0] == heads[1]:
            print(f"alike: {title}: {heads[0]}")
        else:
            print(f"not told apart: {title}: {heads[0]} in one run, {heads[1]} in the other{beside}")
        for run, of in zip(runs, tolds):
            if len(run) < 5:
                print(f"  there is no fifth, as {len(run)} are ranked")
                failed |= fifth
                continue
            is_told = (run[0][0], run[4][0]) in of
            print(f"  {run[0][0]} is {'' if is_told else 'not '}told apart from the fifth, {run[4][0]}")
            failed |= fifth and not is_told
    if not compared:
        print("NOT COMPARED: no ranking has queues in both runs")
    return bool(compared) and not failed


# What each run ranks queues with, and in the titles of its ranks.
KINDS = {
    "with time stamps": ("throughput", []),
    "--measure throughput": ("throughput", ["--measure", "throughput"]),
    "--load constant-rate --rate 1M": ("median latency", ["--load", "constant-rate", "--rate", "1M"]),
}


def run(rounds):
    """What one run of each kind prints, with the kind in the titles."""
    text = ""
    # Of one run: 100 rounds take seven minutes on an idle machine.
    seconds, options = (600 + 20 * rounds, ["--rounds", rounds]) if rounds else (600, [])
    for kind, (_, how) in KINDS.items():
        command = [compare.PROGRAM, "queue", "--queue", "all", *options, "--force", "--out", compare.OUT, *how]
        done = compare.attempt(*command, seconds=seconds, stderr=None)
        if done.returncode:
            print(f"not everything of 'hcabench queue --queue all {kind}' was measured", file=sys.stderr)
        text += re.sub("(?m)^ranks by .*", rf"\g<0>, {kind}", done.stdout)
    return text


def used_percent():
    """The processors' time that was used in two seconds."""
    looks = []
    for seconds in (2, 0):
        with open("/proc/stat", encoding="utf-8") as file:
            looks.append([int(of) for of in file.readline().split()[1:9]])
        time.sleep(seconds)
    took = [after - before for before, after in zip(*looks)]
    return 100 * (sum(took) - took[3] - took[4]) // sum(took)


@contextlib.contextmanager
def busy_loops():
    """While one is on each CPU."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()


@compare.measurement(
    "two runs of all queues rank them alike, or say what they cannot tell apart",
    rounds=(None, compare.whole(9, 1000), "rounds of each run, by itself those of hcabench queue, which seldom tell "
            "the first from the fifth where five queues lie within a tenth; with 100, idle would take 40 minutes"),
    only=compare.parts("beside", "idle"),
)
def check_ranks(rounds, only):
    """Checks that `hcabench queue --queue all` ranks queues alike each time, or says what it cannot tell apart:

      beside  two runs with a busy loop on each CPU beside them; takes six minutes
      idle    two runs on a machine that is idle, where the first has to be told apart from the fifth as well; fails at
              once where others use more than a tenth of it; takes four minutes

    Each run ranks by throughput, as it is and without time stamps, and by latency. Two runs contradict each other if
    one tells a queue of the first three apart from another one, and the other run tells them apart the other way
    round; what is told apart in one of them only has to stand in the same order or be said not to be told apart. It
    fails as well where a run does not rank by each of the three, or ranks no queue. Beside busy loops a run may say
    that no two queues kept the load that was asked for, but not of each of the three.
    """
    all_met = True
    for part in only:
        print(f"\n== {part}", flush=True)
        idle = part == "idle"
        if idle and (used := used_percent()) > 10:
            sys.exit(f"others use {used} % of this machine: what has to hold on an idle one cannot be checked")
        with contextlib.nullcontext() if idle else busy_loops():
            texts = [run(rounds), run(rounds)]
        all_met &= judge(texts, idle, [f"{ranked}, {kind}" for kind, (ranked, _) in KINDS.items()])
    return all_met
