"""One-way latency against perftest, the peer over the crate ibverbs, and the same method in C."""

import collections
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

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
# From the folder of the repository, in which each measurement runs: make knows no path with white space.
ONEWAY = "target/listings/compare/oneway"
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


def with_peer(rounds, pair):
    """Builds the peer where it is measured; the options of ci/vm."""
    if "peer" in pair:
        target = compare.REPOSITORY / "target/peer"
        compare.build("cargo", "build", "--quiet", "--locked", "--release", "--manifest-path", "tests/peer/Cargo.toml",
                      "--target-dir", target)
        os.environ["HCABENCH_PEER"] = f"{target}/release/hcabench-peer"
    return ["--kernel", "6.1"]


@compare.measurement("medians against those of perftest and of the peer over the crate ibverbs", setup="run vm test",
                     machine=with_peer, rounds=compare.rounds(7),
                     pair=compare.parts(*PAIRS))
def compare_perftest(rounds, pair):
    """Compares hcabench with perftest in one boot of the SoftRoCE machine (kernel 6.1), on the same two devices, in
    turn: RC, 8 bytes, 20000 messages, one at a time, inline on both or off on both. Prints each median, and for each
    pair the ratio of the medians of these.

    hcabench's one-way median is compared with half of a round trip, and the time of a read or an atomic with the same.
    Half of a round trip holds half of what two programs do between a message and its answer, so 0.85 to 1.00 is
    expected one way. Below 0.85 is remarked, above 1.05 ends with exit code 1.

    half is half a round trip of both: that of the probes of hcabench --peer, between two processes, against that of
    ib_send_lat. At most 1.05 is allowed, as above.

    peer is no pair of perftest: tests/peer measures the same as hcabench, over the crate ibverbs. 2000 messages; they
    may differ by a tenth.

    hcabench: busy polling, 50 us between messages; what is under way when one is posted is in in_flight_max.
    """
    all_met = True
    for name in pair:
        one = PAIRS[name]
        print(f"\n{name}: hcabench {one.ours} against {one.theirs}")
        messages, bursts, other, limits = MESSAGES, BURSTS, lambda: perftest_us(one.theirs), (None, 1.05, 0.85)
        if name == "peer":
            messages, bursts, other, limits = 2000, 1, lambda: peer_us(2000), (0.909, 1.1)
        # Where it is not needed it is not there: it would lock memory.
        with serving() if name == "half" else contextlib.nullcontext():
            figures = compare.turns(
                rounds, lambda: hcabench_us(one.ours.split(), messages, bursts, one.columns), other,
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

    def __init__(self, service, size, messages):
        self.messages = messages
        self.options = ["--service", service, "--size", size, "--sender-cpu", 1, "--receiver-cpu", 0]
        self.options += ["--inline"] * (size <= 8)
        self.figures, self.pages = {"hcabench": [], "C": []}, {"hcabench": set(), "C": set()}

    def hcabench(self):
        # What the last one left to do is done by then.
        time.sleep(0.7)
        median = hcabench_us(["--pause", "50us", *self.options], self.messages)
        (settings,) = compare.OUT.glob("*/settings.json")
        self.pages["hcabench"].add(",".join(results.document(settings)["obtained"]["pages"]))
        return median

    def in_c(self):
        time.sleep(0.7)
        said = results.values(compare.run(
            ONEWAY, "--from", "10.77.0.1", "--to", "10.77.0.2", "--burst", self.messages, "--pause", 50_000,
            *self.options,
        ))
        self.pages["C"].add(said["pages"])
        return results.time_us(said, "latency_p50_ns", "received", self.messages)

    def measure(self, rounds, turn):
        """Who comes second finds the machine as the first left it, so they take turns, from `turn` on."""
        *_, new = compare.alternate(rounds, {"hcabench": self.hcabench, "C": self.in_c}, turn)
        for name, figures in new.items():
            self.figures[name] += figures
        return side(*self.figures.values())


def with_listing(runs, messages, kernel):
    """Builds the listing anew, by what is said here and not by what somebody tried before; the options of ci/vm."""
    program = Path("..") / ONEWAY
    compare.build("make", "--silent", "--always-make", "-C", "listings", "CC=gcc", f"OUT={program.parent}", program,
                  "CFLAGS=-std=gnu11 -O2 -g -Wall -Wextra -Werror", MAKEFLAGS="")
    # Six points, each at most three times, both programs. A run takes some seconds, more than 30 only where the
    # machine does something else.
    return [*compare.on(kernel), "--hugepages", 64, "--timeout", 600 + 6 * 3 * runs * 2 * 30]


@compare.measurement("medians against the same method in C", setup="run vm test", machine=with_listing,
                     runs=(5, compare.whole(1, 100), "runs of each program at each point"),
                     messages=(4000, compare.whole(100, 8192), "messages in a run"), kernel=compare.KERNEL)
def compare_listings(runs, messages, kernel):
    """Compares hcabench with listings/oneway, the same method in plain C, in one boot of the SoftRoCE machine: RC, UC
    and UD at 8 and 4096 bytes (UD at what the MTU allows), both programs in turn on the same CPUs, busy polling, 50 us
    between messages. Prints for each the median over all runs of the median one-way latency, how far the runs lie
    apart, and the ratio.

    A ratio above 1.03 or below 1/1.03 is not believed at once: that point gets twice as many runs again, and all of
    them together are judged. Exit code 1 if hcabench's median is then anywhere more than 1.03 times that of C. Where
    it is below 1/1.03 a line says so: the two should be equal, so one of them was disturbed, or does less than the
    other. A point is called noisy when the runs of a program lie more than 25 % of their median apart. Beside the
    ratio stands that of the smallest of each: other work only adds, so where the two differ much the machine was not
    idle.
    """
    devices = json.loads(compare.run(compare.PROGRAM, "devices", "--json"))["devices"]
    mtu = min(port["mtu"] for one in devices for port in one["device"]["ports"])
    # Not counted: what runs first finds nothing in any cache, and an emulator that has translated none of it.
    Point("rc", 8, messages).measure(1, 0)
    columns = "{:7} {:>6} {:>5} {:>12} {:>8} {:>12} {:>8} {:>8} {:>10}"
    print(columns.format("", "size", "runs", "hcabench", "spread", "C", "spread", "ratio", "smallest"))
    print(columns.format("service", "B", "each", "p50 us", "%", "p50 us", "%", "", "ratio"), flush=True)
    remarks, over = [], False
    for number, (service, size) in enumerate(itertools.product(("rc", "uc", "ud"), (8, 4096))):
        size = min(size, mtu) if service == "ud" else size
        point = Point(service, size, messages)
        if point.measure(runs, number) != "within":
            # All of them, whatever they give: to stop at a good moment would be to choose the result.
            point.measure(2 * runs, number + runs)
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
