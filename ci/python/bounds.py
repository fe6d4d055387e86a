#!/usr/bin/env python3
"""Usage: ci/check-bounds [--limit-ppm N] DIR...

Computes the bounds of the clocks of two hosts again, from the exchanges in results of two hosts or of a fabric: for
each row of DIR/runs.csv from the rows of its round in POINT/probes.csv and POINT/messages.csv. Nothing of hcabench is
used, and the way is another: no hull, but a line of each message over the rates, which are cut until nothing lies
below.

Compared are theta_low_ns and theta_high_ns at theta_at_ns, clock_rate_low_ppm and clock_rate_high_ppm, and the bounds
of messages (latency_low_ns, latency_high_ns), where there are such columns. The bounds of theta must be no further
apart than the shortest round trip of a probe; if the rates may differ, this is asked when that probe was sent, and
the rate's part of it is allowed for. How far rates may differ stands in clock_rate_limit_ppm, or in fabric.json, or is
N (default 0). In a fabric the columns are offset_low_ns and so on, and pairs without both files are not checked.

Prints a line for each round. Exit code 1 if anything differs, a width is above the shortest round trip, or there is
nothing to check.
"""

import argparse
import math
import sys
from fractions import Fraction
from pathlib import Path

import results

# Of messages of clocks with different rates so many are looked at: each takes a look at all others.
MESSAGES_LOOKED_AT = 20

# What columns of a fabric are called between two hosts.
OF_FABRIC = {
    "offset_at_ns": "theta_at_ns",
    "offset_low_ns": "theta_low_ns",
    "offset_high_ns": "theta_high_ns",
    "rate_low_ppm": "clock_rate_low_ppm",
    "rate_high_ppm": "clock_rate_high_ppm",
}


class Contradiction(Exception):
    """No line lies above the lower points and below the upper ones."""


def lowest(points, rate):
    """Of points (time, value) the one through which the lowest line of a rate goes."""
    rise, run = rate.numerator, rate.denominator
    return min(points, key=lambda point: point[1] * run - rise * point[0])


def highest_line(points, least, most, time):
    """How high a line below all points can be at a time, if its rate lies between two."""

    def value(point, rate):
        return point[1] + rate * (time - point[0])

    left, right = lowest(points, least), lowest(points, most)
    if left[0] >= time:
        return value(left, least)
    if right[0] <= time:
        return value(right, most)
    while True:
        # Both are above what is asked for: where they cross is the highest that may be left.
        rate = Fraction(right[1] - left[1], right[0] - left[0])
        between = lowest(points, rate)
        if value(between, rate) == value(left, rate) or between[0] == time:
            return value(between, rate)
        if between[0] < time:
            left = between
        else:
            right = between


class Bounds:
    """What the messages of a round prove: upper and lower points of theta over clock A."""

    def __init__(self, upper, lower, limit):
        self.upper, self.lower = upper, [(time, -value) for time, value in lower]
        self.least = self.first_rate(-limit, limit, 1)
        self.most = self.first_rate(limit, -limit, -1)

    def first_rate(self, rate, end, sign):
        while True:
            upper, lower = lowest(self.upper, rate), lowest(self.lower, -rate)
            room, gain = upper[1] + lower[1], lower[0] - upper[0]
            if room + rate * gain >= 0:
                return rate
            if gain * sign <= 0:
                raise Contradiction
            rate = Fraction(-room, gain)
            if (rate - end) * sign > 0:
                raise Contradiction

    def theta(self, time):
        low = -highest_line(self.lower, -self.most, -self.least, time)
        high = highest_line(self.upper, self.least, self.most, time)
        return math.floor(low), math.ceil(high)

    def rates(self):
        return math.floor(self.least * 10**10), math.ceil(self.most * 10**10)

    def latency(self, forward, posted, received):
        low, high = self.theta(posted if forward else received)
        apparent = received - posted
        low, high = (apparent - high, apparent - low) if forward else (apparent + low, apparent + high)
        return max(low, 0), high


def rows_of(path):
    """The rows of a file by round; none where there is no file."""
    rounds = {}
    for row in results.rows(path) if path.exists() else []:
        rounds.setdefault(row["round"], []).append(row)
    return rounds


def number(row, column):
    """A whole number; None where the cell is empty or missing."""
    text = row.get(column) or ""
    return int(text) if text else None


def exchanges(probes, messages, forward, is_told):
    """The stamps of a round: (whether it went forward, posted, received) of each message."""
    for row in probes:
        yield True, number(row, "a_sent_ns"), number(row, "b_received_ns")
        yield False, number(row, "b_sent_ns"), number(row, "a_received_ns")
    # Where a row has bounds, messages without any prove nothing: they arrived with other bytes, or before their stamp
    # was rewritten. That may be all of them.
    for row in messages:
        posted, received = posted_at(row), number(row, "t_recv_ns")
        proves = not is_told or row.get("latency_low_ns", "no such column")
        if posted is not None and received is not None and proves:
            yield forward, posted, received


def posted_at(message):
    """What a message carries: t_send where it was measured, else t_subm."""
    sent = number(message, "t_send_ns")
    return number(message, "t_subm_ns") if sent is None else sent


def differences(row, bounds, probes, messages, forward, middle):
    """What is wrong with a row, in words."""
    low, high = bounds.theta(middle)
    for column, own in [("theta_at_ns", middle), ("theta_low_ns", low), ("theta_high_ns", high)]:
        if column in row and number(row, column) != own:
            yield f"{column} is {row[column] or 'empty'}, not {own}"
    for column, own in zip(("clock_rate_low_ppm", "clock_rate_high_ppm"), bounds.rates()):
        if row.get(column) and Fraction(row[column]) * 10**4 != own:
            yield f"{column} is {row[column]}, not {own / 10**4:.4f}"

    def round_trip(probe):
        a_sent, b_received, b_sent, a_received = (
            number(probe, name) for name in ("a_sent_ns", "b_received_ns", "b_sent_ns", "a_received_ns")
        )
        return a_received - a_sent - (b_sent - b_received), a_sent, a_received - a_sent

    shortest, sent, whole = min(map(round_trip, probes))
    drift = max(abs(bounds.least), abs(bounds.most))
    if drift:
        low, high = bounds.theta(sent)
    if high - low > shortest + (drift * whole + 2 if drift else 0):
        yield f"theta is known to {high - low} ns, and the shortest round trip is {shortest} ns"

    if number(row, "clock_uncertainty_ns") is None and row.get("one_way_status") != "declared":
        bounded = [message for message in messages if message.get("latency_low_ns")]
        step = max(1, len(bounded) // MESSAGES_LOOKED_AT) if drift else 1
        constant = None if drift else bounds.theta(middle)
        if constant:
            bounds.theta = lambda _: constant
        for message in bounded[::step]:
            own = bounds.latency(forward, posted_at(message), number(message, "t_recv_ns"))
            told = number(message, "latency_low_ns"), number(message, "latency_high_ns")
            if own != told:
                yield f"the message posted at {message['t_subm_ns']} took {told} ns, not {own}"
                break


def check(row, probes, messages, limit):
    """Whether a row is right, and what there is to say of it."""
    forward = row.get("direction", "") != "backward"
    limit = Fraction(number(row, "clock_rate_limit_ppm") or limit, 10**6)
    is_told = number(row, "theta_low_ns") is not None and number(row, "theta_high_ns") is not None
    all_of_it = list(exchanges(probes, messages, forward, is_told))
    upper = [(posted, received - posted) for forward, posted, received in all_of_it if forward]
    lower = [(received, posted - received) for forward, posted, received in all_of_it if not forward]
    if not upper or not lower:
        is_whole = row.get("status") == "complete"
        return not is_told and not is_whole, "no messages in both directions" + (", but bounds" if is_told else "")
    times = [time for time, _ in upper + lower]
    middle = min(times) + (max(times) - min(times)) // 2
    try:
        bounds = Bounds(upper, lower, limit)
    except Contradiction:
        return not is_told, "a contradiction" + (", but bounds" if is_told else ", and no bounds")
    low, high = bounds.theta(middle)
    text = f"{len(all_of_it)} messages prove {low} to {high} ns ({high - low})"
    if not is_told:
        return False, text + ", and the row has no bounds"
    wrong = list(differences(row, bounds, probes, messages, forward, middle)) if probes else ["no probes"]
    return not wrong, text + "".join(f"; {what}" for what in wrong)


def main():
    arguments = argparse.ArgumentParser(usage=__doc__.removeprefix("Usage: "))
    arguments.add_argument("--limit-ppm", type=int, default=0)
    arguments.add_argument("folders", nargs="+", type=Path)
    asked = arguments.parse_args()
    try:
        return check_all(asked.folders, asked.limit_ppm)
    except (OSError, KeyError, ValueError, TypeError) as error:
        print(f"FAIL these are no results of two hosts: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def check_all(folders, limit):
    """Checks all rounds of some folders; the exit code."""
    checked = failed = 0
    for folder in folders:
        rows = results.rows(folder / "runs.csv")
        fabric, of_folder = folder / "fabric.json", limit
        if fabric.exists():
            of_folder = results.document(fabric)["settings"]["clock_drift"]
            rows = [
                {OF_FABRIC.get(name, name): cell for name, cell in row.items()}
                for row in rows
                if (folder / row["point"]).is_dir()
            ]
        files, without = {}, 0
        for row in rows:
            point = row["point"]
            if point not in files:
                # One point after the other may be large.
                files = {point: [rows_of(folder / point / name) for name in ("probes.csv", "messages.csv")]}
            probes, messages = (rounds.get(row["round"], []) for rounds in files[point])
            if fabric.exists() and not (probes and messages):
                # Files that are too large are not sent to rank 0.
                without += 1
                continue
            is_right, text = check(row, probes, messages, of_folder)
            print(f"{'ok  ' if is_right else 'FAIL'} {point} round {row['round']}: {text}")
            checked += 1
            failed += not is_right
        if without:
            print(f"{folder}: {without} rounds without probes.csv or messages.csv")
    print(f"{checked} rounds, {failed} failed")
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
