#!/usr/bin/env python3
"""Usage: ci/python/truth.py answer OVER | ask OVER FILE | judge FILE FOLDER | noticed FILE FOLDER NS

How far the monotonic clock of the second of two guests of ci/vm --hosts 2 is ahead of the first's, known without the
wire: by memory that both have in common, where a question and its answer take microseconds.

  answer   in the second, once a boot: writes its clock next to each question, until a file OVER exists
  ask      in the first: ten times a second asks a few times in a row, and writes a row to FILE of the question that was
           answered soonest: at a_ns of the first clock, and day_ns of its time of day, the second clock was between low_ns
           and high_ns ahead
  judge    whether the true latency of each sample of FOLDER (node --samples, or messages of the HCA benchmark) lies within
           its bounds. Exit code 1 if a sample is outside, an arrived one has no bounds or is missing, or more than one in a
           hundred of a point lie too close to an edge to be decided
  noticed  whether at least nine in ten of each point are outside where NS is added to each latency

As in hcabench, a latency is counted by the second clock from the moment of sending. That clock may run at another rate;
between two rows of FILE the rate is the same, or changes where no sample is.
"""

import bisect
import collections
import mmap
import platform
import sys
import time
from pathlib import Path

import results

IVSHMEM = ("0x1af4", "0x1110")
# Words of 8 bytes, each on a cache line of its own: whether questions are about to come, the number of the last
# question, that of the last answer, and the clock when it was given.
ASKING, QUESTION, ANSWER, CLOCK = 0, 8, 16, 24
IN_A_ROW = 30
# A side that the host does not run for so long has no answer: asked again the next time.
PATIENCE_NS = 50_000_000
# Much more than the rates of two clocks differ by.
RATE = 1000e-6


def shared_memory():
    """The memory of the device that both guests have, as words of 8 bytes. An x86-64 stores and loads them in order."""
    if platform.machine() != "x86_64":
        sys.exit(f"truth: not on {platform.machine()}, which may change the order of two stores")
    for device in Path("/sys/bus/pci/devices").iterdir():
        if tuple((device / name).read_text().strip() for name in ("vendor", "device")) == IVSHMEM:
            (device / "enable").write_text("1")
            with open(device / "resource2", "r+b", buffering=0) as file:
                return memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
    sys.exit("truth: this machine shares no memory with another: it must be one of ci/vm --hosts 2")


def answer(over):
    """Looks all the time only while questions come: the benchmark needs the processor."""
    words, over = shared_memory(), Path(over)
    while not over.exists():
        until = time.monotonic_ns() + PATIENCE_NS
        while words[ASKING] and time.monotonic_ns() < until:
            asked = words[QUESTION]
            if asked != words[ANSWER]:
                words[CLOCK] = time.monotonic_ns()
                words[ANSWER] = asked
        time.sleep(0.002)


def soonest(words, number):
    """The best of a few questions: when it was asked, and the bounds; none if nothing was answered in time."""
    best = None
    words[ASKING] = 1
    until = time.monotonic_ns() + PATIENCE_NS
    for number in range(number, number + IN_A_ROW):
        sent = time.monotonic_ns()
        words[QUESTION] = number
        while words[ANSWER] != number and time.monotonic_ns() < until:
            pass
        if words[ANSWER] != number:
            break
        clock, received = words[CLOCK], time.monotonic_ns()
        if not best or received - sent < best[2] - best[1]:
            # The answer is from any moment between, and the row of the one in the middle.
            apart = int((received - sent) * RATE / 2) + 1
            best = (sent + (received - sent) // 2, clock - received - apart, clock - sent + apart)
    words[ASKING] = 0
    return best


def epoch_ns():
    """How far the time of day is ahead of the monotonic clock, which nobody changes: by the closest of some readings."""
    readings = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(1000)]
    before, day, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return day - (before + after) // 2


def ask(over, path):
    """A number is used once, also where this was run before in the same machines."""
    words, over = shared_memory(), Path(over)
    number, epoch = words[QUESTION] + 1, epoch_ns()
    with open(path, "w", encoding="utf-8", buffering=1) as file:
        print("a_ns,day_ns,low_ns,high_ns", file=file)
        while not over.exists():
            if found := soonest(words, number):
                at, *bounds = found
                print(at, at + epoch, *bounds, sep=",", file=file)
            number += IN_A_ROW
            time.sleep(0.1)


def truth_at(known, time_ns):
    """Between which values the second clock was ahead at a time of the first; none before the first row and after the last."""
    after = bisect.bisect_left(known, (time_ns,))
    if after in (0, len(known)):
        return None
    before, after = known[after - 1], known[after]
    share = (time_ns - before[0]) / (after[0] - before[0])
    return tuple(before[end] + share * (after[end] - before[end]) for end in (1, 2))


def samples(path):
    """Of each sample that arrived whether its stamps are times of day, its stamps, and its bounds, if it has any.

    ci/check-bounds reads the same columns in its own way, as it must use nothing of others.
    """
    of_node = path.name == "out.csv"
    for row in results.rows(path):
        sent = row["t_sent_ns"] if of_node else row.get("t_send_ns") or row["t_subm_ns"]
        received = row["t_received_ns" if of_node else "t_recv_ns"]
        bounds = [row["latency_low_ns"], row["latency_high_ns"]]
        if received:
            yield of_node, int(sent), int(received), [int(bound) for bound in bounds if bound]


class Point:
    """What the samples of a point came to."""

    def __init__(self, known, path, later):
        self.within = self.outside = self.undecided = self.unbounded = 0
        self.narrow, self.wide = [], []
        for is_of_day, sent, received, bounds in samples(path):
            ahead = truth_at(known[is_of_day], sent)
            if len(bounds) != 2:
                self.unbounded += 1
            elif ahead is None:
                self.undecided += 1
            else:
                apparent = received - sent + later
                self.compare(apparent - ahead[1], apparent - ahead[0], *bounds)

    def compare(self, least, most, low, high):
        """A sample is proved to be within its bounds if all that its latency may be is."""
        self.narrow.append(most - least)
        self.wide.append(high - low)
        if low <= least and most <= high:
            self.within += 1
        elif least <= high and low <= most:
            self.undecided += 1
        else:
            self.outside += 1

    def arrived(self):
        return self.within + self.outside + self.undecided + self.unbounded

    def describe(self, name):
        print(f"{name}: of {self.arrived()} samples {self.within} are within their bounds, {self.outside} outside, "
              f"{self.undecided} not decided, {self.unbounded} without bounds", flush=True)
        if self.narrow:
            print(f"{'':8} the truth is known within {results.median(self.narrow) / 1e3:.1f} us, and the bounds are "
                  f"{results.median(self.wide) / 1e3:.1f} us apart (medians)", flush=True)


def points(path, folder, later):
    """Each point of a run by its name, with the number of samples that arrived by runs.csv."""
    known = results.rows(Path(path))
    # Where one of both machines stood still a question took milliseconds: the line between the rows beside it is closer.
    width = [int(row["high_ns"]) - int(row["low_ns"]) for row in known]
    known = [row for row, apart in zip(known, width) if apart <= 3 * results.median(width)]
    known = [sorted(tuple(int(row[name]) for name in (at, "low_ns", "high_ns")) for row in known) for at in ("a_ns", "day_ns")]
    arrived = collections.Counter()
    for row in results.rows(Path(folder) / "runs.csv"):
        arrived[row["point"]] += int(row["messages_received"] or 0)
    for name, count in arrived.items():
        (path,) = (path for path in (Path(folder) / name).iterdir() if path.name in ("messages.csv", "out.csv"))
        yield name, Point(known, path, later), count


def judge(path, folder):
    holds = []
    for name, point, count in points(path, folder, 0):
        point.describe(name)
        is_whole = 0 < count == point.arrived() and not point.unbounded
        if not is_whole:
            print(f"{'':8} {count} arrived by runs.csv")
        holds.append(is_whole and not point.outside and 100 * point.undecided <= count)
    return bool(holds) and all(holds)


def noticed(path, folder, later):
    found = [(name, point.outside, count) for name, point, count in points(path, folder, int(later))]
    for name, outside, count in found:
        print(f"{name}: {later} ns more are noticed in {outside} of {count}", flush=True)
    return bool(found) and all(0 < 9 * count <= 10 * outside for _, outside, count in found)


if __name__ == "__main__":
    command = {"answer": answer, "ask": ask, "judge": judge, "noticed": noticed}[sys.argv[1]]
    sys.exit(command(*sys.argv[2:]) is False)
