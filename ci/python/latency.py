#!/usr/bin/env python3
"""Usage: ci/python/latency.py perftest ROUNDS PAIR... | listings ROUNDS MESSAGES ONEWAY | pairs

Measures and judges one-way latency, in the SoftRoCE machine, as ci/compare-perftest and ci/compare-listings describe,
with the programs that HCABENCH_PROGRAM and HCABENCH_PEER name. Exit code 1 if a limit is broken.
"""

import collections
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time

import compare
import results

ARRIVED = ("messages_received", "latency_p50_ns")
COMPLETED = ("completions", "completion_latency_p50_ns")
PROBED = ("probes", "half_round_trip_p50_ns")
RC = "--service rc --size 8 --pause 50us"
BETWEEN = ("--peer 127.0.0.1 --sender rxe0 --receiver rxe1 --sender-cpu 0 --completion-cpu 0 --receiver-cpu 1 "
           "--service rc --size 8 --burst 1 --repeat 1 --warmup 0 --probes {half}")
# Of perftest, how many messages, and in how many bursts: a queue of rxe has no room for all.
MESSAGES, BURSTS = 20_000, 10
Pair = collections.namedtuple("Pair", "ours columns theirs")
PAIRS = {
    "send": Pair(RC, ARRIVED, "ib_send_lat -I 0 -s 8"),
    "send-inline": Pair(f"{RC} --inline", ARRIVED, "ib_send_lat -I 64 -s 8"),
    "write": Pair(f"{RC} --operation write-polled", ARRIVED, "ib_write_lat -I 0 -s 8"),
    "write-inline": Pair(f"{RC} --inline --operation write-polled", ARRIVED, "ib_write_lat -I 64 -s 8"),
    "read": Pair(f"{RC} --operation read", COMPLETED, "ib_read_lat -s 8"),
    "fetch-add": Pair(f"{RC} --operation fetch-add", COMPLETED, "ib_atomic_lat -A FETCH_AND_ADD"),
    "compare-swap": Pair(f"{RC} --operation compare-swap", COMPLETED, "ib_atomic_lat -A CMP_AND_SWAP"),
    # As many probes before the burst as after it.
    "half": Pair(BETWEEN.format(half=MESSAGES // 2), PROBED, "ib_send_lat -I 0 -s 8"),
    "peer": Pair(f"{RC} --operation send --sender-cpu 1 --receiver-cpu 0", ARRIVED, "hcabench-peer"),
}
ALLOWED, NOISY_PERCENT = 1.03, 25


def hcabench_us(arguments, messages, bursts=1, columns=ARRIVED):
    """The median latency, if all messages arrived."""
    row = compare.summary("--burst", messages // bursts, "--repeat", bursts, "--poll", "busy", *arguments)
    return results.time_us(row, columns[1], columns[0], messages)


def of_perftest(text, messages):
    """The median, of a table of: bytes, iterations, least, most, median and so on."""
    rows = [line.split() for line in text.splitlines()]
    return next(float(row[4]) for row in rows if row[:2] == ["8", str(messages)])


def perftest_us(command):
    """Half of a round trip, or the time of a read or an atomic."""
    program, *options = command.split()
    options += ["-n", MESSAGES, "-F"]
    server = list(map(str, ["timeout", 60, program, "-d", "rxe1", *options]))
    with subprocess.Popen(server, stdout=subprocess.DEVNULL) as serving:
        for _ in range(100):
            # It listens on TCP for the exchange of addresses.
            if compare.run("ss", "-Htln", "sport = :18515"):
                break
            time.sleep(0.1)
        text = compare.run(program, "-d", "rxe0", *options, "localhost", seconds=60)
    if serving.returncode:
        sys.exit(f"the server of {command} failed")
    return of_perftest(text, MESSAGES)


def peer_us(messages):
    """The same by the crate ibverbs."""
    said = results.values(compare.run(os.environ["HCABENCH_PEER"], "rxe0", "rxe1", 8, messages, 50_000, 1, 0))
    return results.time_us(said, "latency_p50_ns", "received", messages)


@contextlib.contextmanager
def serving():
    """While it serves on this machine, as the other host."""
    command = [compare.PROGRAM, "serve", "--bind", "127.0.0.1", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as one:
        time.sleep(2)
        try:
            yield
        finally:
            one.terminate()


def perftest(rounds, *names):
    """Compares pairs: of ours and of another program."""
    all_met = True
    for name in names:
        pair = PAIRS[name]
        print(f"\n{name}: hcabench {pair.ours} against {pair.theirs}")
        messages, bursts, other, limits = MESSAGES, BURSTS, lambda: perftest_us(pair.theirs), (None, 1.05, 0.85)
        if name == "peer":
            messages, bursts, other, limits = 2000, 1, lambda: peer_us(2000), (0.909, 1.1)
        # Where it is not needed it is not there: it would lock memory.
        with serving() if name == "half" else contextlib.nullcontext():
            figures = compare.turns(
                int(rounds), lambda: hcabench_us(pair.ours.split(), messages, bursts, pair.columns), other,
                "peer" if name == "peer" else "perftest",
            )
        all_met &= compare.judge(compare.of_medians(*figures), *limits)
    return all_met


def side(ours, theirs):
    """Whether the ratio of medians is above, below or within what is allowed."""
    found = compare.of_medians(ours, theirs)
    return "above" if found > ALLOWED else "below" if found < 1 / ALLOWED else "within"


def words_of(ours, theirs):
    """What is remarked behind the figures of a point."""
    is_noisy = any(results.spread_percent(figures) > NOISY_PERCENT for figures in (ours, theirs))
    word = {"above": "  too much", "below": "  lower", "within": ""}[side(ours, theirs)]
    return word + ("  noisy" if is_noisy else "")


def other_pages(ours, theirs):
    """A warning, unless all runs of both programs had the same pages."""
    if len(ours | theirs) == 1 and all(ours):
        return None
    ours, theirs = (" ".join(sorted(pages)) or "unknown" for pages in (ours, theirs))
    return f"not the same pages: hcabench {ours}, C {theirs}"


class Point:
    """A service and a size, measured by both programs."""

    def __init__(self, oneway, service, size, messages):
        self.oneway, self.messages = oneway, messages
        self.options = ["--service", service, "--size", size, "--sender-cpu", 1, "--receiver-cpu", 0]
        self.options += ["--inline"] * (size <= 8)
        self.figures, self.pages = {"hcabench": [], "C": []}, {"hcabench": set(), "C": set()}

    def hcabench(self):
        median = hcabench_us(["--pause", "50us", *self.options], self.messages)
        (settings,) = compare.OUT.glob("*/settings.json")
        self.pages["hcabench"].add(",".join(results.document(settings)["obtained"]["pages"]))
        return median

    def in_c(self):
        said = results.values(compare.run(
            self.oneway, "--from", "10.77.0.1", "--to", "10.77.0.2", "--burst", self.messages, "--pause", 50_000,
            *self.options,
        ))
        self.pages["C"].add(said["pages"])
        return results.time_us(said, "latency_p50_ns", "received", self.messages)

    def measure(self, rounds, turn):
        """Who comes second finds the machine as the first left it, so they take turns, from `turn` on."""
        for number in range(turn, turn + rounds):
            for name in ("C", "hcabench") if number % 2 else ("hcabench", "C"):
                # What the last one left to do is done by then.
                time.sleep(0.7)
                self.figures[name].append(self.in_c() if name == "C" else self.hcabench())
        return side(*self.figures.values())


def listings(rounds, messages, oneway):
    """Compares with listings/oneway."""
    rounds, messages = int(rounds), int(messages)
    devices = json.loads(compare.run(compare.PROGRAM, "devices", "--json"))["devices"]
    mtu = min(port["mtu"] for one in devices for port in one["device"]["ports"])
    # Not counted: what runs first finds nothing in any cache, and an emulator that has translated none of it.
    Point(oneway, "rc", 8, messages).measure(1, 0)
    columns = "{:7} {:>6} {:>5} {:>12} {:>8} {:>12} {:>8} {:>8} {:>10}"
    print(columns.format("", "size", "runs", "hcabench", "spread", "C", "spread", "ratio", "smallest"))
    print(columns.format("service", "B", "each", "p50 us", "%", "p50 us", "%", "", "ratio"), flush=True)
    remarks, over = [], False
    for number, (service, size) in enumerate(itertools.product(("rc", "uc", "ud"), (8, 4096))):
        size = min(size, mtu) if service == "ud" else size
        point = Point(oneway, service, size, messages)
        if point.measure(rounds, number) != "within":
            # All of them, whatever they give: to stop at a good moment would be to choose the result.
            point.measure(2 * rounds, number + rounds)
        ours, theirs = point.figures.values()
        cells = [f"{results.median(of):12.2f} {results.spread_percent(of):8.1f}" for of in (ours, theirs)]
        ratios = f"{compare.of_medians(ours, theirs):8.3f} {min(ours) / min(theirs):10.3f}"
        print(f"{service:7} {size:6} {len(ours):5}", *cells, ratios + words_of(ours, theirs), flush=True)
        over |= side(ours, theirs) == "above"
        if side(ours, theirs) == "below":
            remarks.append(f"{service} {size}: hcabench lower than C: look why")
        warning = other_pages(*point.pages.values())
        remarks += [f"warning: {service} {size}: {warning}"] * bool(warning)
    print("\n".join([*remarks, f"at most {ALLOWED} is allowed as a ratio"]))
    return not over


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "pairs":
        print(*PAIRS)
    else:
        sys.exit(not {"perftest": perftest, "listings": listings}[what](*arguments))
