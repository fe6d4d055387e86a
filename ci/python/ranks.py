#!/usr/bin/env python3
"""Usage: ci/python/ranks.py OUTPUT OUTPUT FIFTH [TITLE]...

Judges what two runs of `hcabench queue` have printed of their ranks, as ci/check-ranks --judge describes. FIFTH is 1
where the first has to be told apart from the fifth and the load to be kept.
"""

import re
import sys

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
    """Whether two runs hold against each other; prints why."""
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


if __name__ == "__main__":
    outputs = []
    for path in sys.argv[1:3]:
        with open(path, encoding="utf-8") as file:
            outputs.append(file.read())
    sys.exit(not judge(outputs, sys.argv[3] == "1", sys.argv[4:]))
