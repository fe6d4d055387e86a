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
ALLOWED = 1.03


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
        all_met &= compare.judge(compare.of_medians(*figures), *limits, rounds=figures)
    return all_met


def with_listing(rounds, messages, kernel):
    """Builds the listing anew, by what is said here and not by what somebody tried before; the options of ci/vm."""
    program = Path("..") / ONEWAY
    compare.build("make", "--silent", "--always-make", "-C", "listings", "CC=gcc", f"OUT={program.parent}", program,
                  "CFLAGS=-std=gnu11 -O2 -g -Wall -Wextra -Werror", MAKEFLAGS="")
    # Six points, both programs. A run takes some seconds, more than 30 only where the machine does something else.
    return [*compare.on(kernel), "--hugepages", 64, "--timeout", 600 + 6 * (rounds + 1) * 2 * 30]


def other_pages(ours, theirs):
    """A warning, unless all runs of both programs had the same pages."""
    if len(ours | theirs) == 1 and all(ours):
        return None
    ours, theirs = (" ".join(sorted(pages)) or "unknown" for pages in (ours, theirs))
    return f"not the same pages: hcabench {ours}, C {theirs}"


@compare.measurement("medians against the same method in C", setup="run vm test", machine=with_listing,
                     rounds=compare.rounds(15), messages=(4000, compare.whole(100, 8192), "messages in a run"),
                     kernel=compare.KERNEL)
def compare_listings(rounds, messages, kernel):
    """Compares hcabench with listings/oneway, the same method in plain C, in one boot of the SoftRoCE machine: RC, UC
    and UD at 8 and 4096 bytes (UD at what the MTU allows), both programs in turn on the same CPUs, busy polling, 50 us
    between messages. Prints for each the median of each run, the median of these, how far they lie apart, and the
    ratio. Exit code 1 if hcabench's median is anywhere more than 1.03 times that of C. Where it is below 1/1.03 a line
    says so: the two should be equal, so one of them was disturbed, or does less than the other.
    """
    devices = json.loads(compare.run(compare.PROGRAM, "devices", "--json"))["devices"]
    mtu = min(port["mtu"] for one in devices for port in one["device"]["ports"])
    kinds = [("--service", service, "--size", min(size, mtu) if service == "ud" else size)
             for service, size in itertools.product(("rc", "uc", "ud"), (8, 4096))]
    return all([against_listing(rounds, messages, kind) for kind in kinds])


def against_listing(rounds, messages, kind, *of_listing):
    """Whether the median of hcabench is near that of the listing, for messages of a kind. `of_listing` are options that
    hcabench needs not.
    """
    options = [*kind, "--sender-cpu", 1, "--receiver-cpu", 0]
    options += ["--inline"] * (kind[-1] <= 8)
    pages = set(), set()

    def ours():
        # What the last one left to do is done by then.
        time.sleep(0.7)
        median = hcabench_us(["--pause", "50us", *options], messages)
        (settings,) = compare.OUT.glob("*/settings.json")
        pages[0].add(",".join(results.document(settings)["obtained"]["pages"]))
        return median

    def theirs():
        time.sleep(0.7)
        said = results.values(compare.run(ONEWAY, "--from", "10.77.0.1", "--to", "10.77.0.2", "--burst", messages,
                                          "--pause", 50_000, *options, *of_listing))
        pages[1].add(said["pages"])
        return results.time_us(said, "latency_p50_ns", "received", messages)

    print(f"\n{kind[1]}, {kind[-1]} B")
    # Not counted: what runs first finds nothing in any cache, and an emulator that has translated none of it.
    ours()
    theirs()
    figures = compare.turns(rounds, ours, theirs, "C")
    met = compare.judge(compare.of_medians(*figures), None, ALLOWED, 1 / ALLOWED, rounds=figures)
    if warning := other_pages(*pages):
        print(f"warning: {warning}")
    return met


def with_listing_on_siw(rounds, messages):
    """The same in the machine of the other provider."""
    return [*with_listing(rounds, messages, None), "--provider", "siw"]


@compare.measurement("medians on iWARP against the same method in C", setup="run vm test", machine=with_listing_on_siw,
                     rounds=compare.rounds(15), messages=(4000, compare.whole(100, 8192), "messages in a run"))
def compare_iwarp(rounds, messages):
    """Compares hcabench with listings/oneway over the connection manager on the ports of siw, the kernel's iWARP in
    software, in one boot of the machine: RC at 8 and 4096 bytes, `send`, both programs in turn on the same CPUs, busy
    polling, 50 us between messages. iWARP has no immediate data, so both know a message by its place in the order. The
    same limits as compare-listings.
    """
    kinds = [("--service", "rc", "--size", size) for size in (8, 4096)]
    return all([against_listing(rounds, messages, kind, "--no-immediate") for kind in kinds])
