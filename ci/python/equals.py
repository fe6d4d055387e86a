#!/usr/bin/env python3
"""Usage: ci/python/equals.py SETS ROUNDS AWAY AWAY_ROUNDS AWAY_FOR

Measures and judges what ci/compare-equals describes, in the SoftRoCE machine, with the program that HCABENCH_PROGRAM
names. Exit code 1 if equal runs are said to differ too often, or others too seldom.
"""

import datetime
import json
import os
import re
import shutil
import sys

import compare
import results

OPTIONS = "--warmup 10 --sender-cpu 1 --receiver-cpu 0"
EQUAL = f"--service rc,uc --poll busy,event --size 8,16,32,64,128 {OPTIONS} --burst 50 --pause 100us"
# A thread that sleeps is late by more than it is away, and by as much more or less from round to round: busy only.
NOT_AWAY = f"--service rc,uc --poll busy --inline off,on --size 8,16,32,64,128 {OPTIONS} --burst 200 --pause "
POINTS = 20
# A round of all points takes ten seconds under emulation; so many only where the machine does something else.
ROUND_SECONDS = 60


def shown(comparison):
    """The figures that are said to differ. A comparison that judges nothing finds no difference either."""
    figures = [figure for point in comparison["comparison"]["points"] for figure in point["figures"]]
    verdicts = {figure["verdict"] for figure in figures}
    if not verdicts or "not-judged" in verdicts:
        sys.exit(f"not all figures were judged: {sorted(verdicts)}")
    return [f"{it['figure']}={it['verdict']}" for it in figures if it["verdict"] != "no-difference-shown"]


def pairs(rounds, one, other):
    """Measures two sweeps in turn; each pair of points, with the figures that are said to differ."""
    seconds = 60 + 2 * rounds * ROUND_SECONDS
    shutil.rmtree(compare.OUT, ignore_errors=True)
    compare.run(compare.PROGRAM, "compare", "--json", "--quiet", "--rounds", rounds, "--out", compare.OUT,
                "--run", one, "--run", other, seconds=seconds)
    names = [[row["point"] for row in results.rows(compare.OUT / name / "summary.csv")] for name in "AB"]
    found = []
    for pair in zip(*names, strict=True):
        paths = [compare.OUT / side / name for side, name in zip("AB", pair)]
        text = compare.run(compare.PROGRAM, "compare", *paths, "--allow", "receiver_pause", "--json")
        found.append((pair[0], shown(json.loads(text))))
    if len(found) != POINTS:
        sys.exit(f"{len(found)} pairs, not {POINTS}")
    return found


def limits(equal_pairs, away_pairs):
    """How many equal pairs may be said to differ, and how many of the others have to."""
    return equal_pairs // 20, away_pairs * 9 // 10


def main(sets, rounds, aways, away_rounds, away):
    # Messages five times as far apart as the receiver is away: one that is always behind never sleeps, and events then
    # cost less than without.
    amount, unit = re.fullmatch(r"(\d+)(us|ms)", away).groups()
    not_away = NOT_AWAY + f"{5 * int(amount)}{unit}"
    sets, rounds, aways, away_rounds = map(int, (sets, rounds, aways, away_rounds))
    differ = found = 0
    for number in range(1, sets + 1):
        for point, figures in pairs(rounds, EQUAL, EQUAL):
            differ += bool(figures)
            if figures:
                print(f"set {number}: {point} {' '.join(figures)}", file=sys.stderr)
        print(f"{number * POINTS} of {sets * POINTS} equal pairs, {differ} were told apart", file=sys.stderr)
    for number in range(1, aways + 1):
        for point, figures in pairs(away_rounds, not_away, f"{not_away} --receiver-pause {away}"):
            found += "latency.p50=worse" in figures
            print(f"away, set {number}: {point} {' '.join(figures)}", file=sys.stderr)
        print(f"{number * POINTS} of {aways * POINTS} pairs with a receiver that is away, {found} were found",
              file=sys.stderr)
    most, least = limits(sets * POINTS, aways * POINTS)
    print(f"{datetime.date.today()}, kernel {os.uname().release}\nequal: {EQUAL}\naway:  {not_away}\n")
    print("| pairs | rounds | of | said to differ | required |\n| --- | ---: | ---: | ---: | ---: |")
    print(f"| equal, pause 100us | {rounds} | {sets * POINTS} | {differ} | at most {most} |")
    print(f"| receiver away for {away}, pause {5 * int(amount)}{unit} | {away_rounds} | {aways * POINTS} | {found} "
          f"| at least {least} |")
    return differ <= most and found >= least


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
