"""What a node-type adds to what it is made of."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time

import compare
import results

MESSAGES, RATE, BYTES = 2000, 1000, 64
# Of the queue, and of the ring of the node-type.
CAPACITY = "512"
# Stamp and number take two words of a sample.
VALUES = BYTES // 8 - 2


def node_type(name, their_options, rounds, most, *options):
    """What a node-type adds to what it is made of."""
    node = ["node", "--type", name, *options, "--rate", RATE, "--values", VALUES, "--count", MESSAGES]

    def median_us(*arguments):
        return float(compare.summary(*arguments)["latency_p50_ns"]) / 1000

    print(f"\n{name} {' '.join(options)} against hcabench {' '.join(map(str, their_options))}")
    figures = compare.turns(
        rounds, lambda: median_us(*node, "--warmup", "500ms"), lambda: median_us(*their_options), "without"
    )
    return compare.judge(compare.of_rounds(*figures), most=most, rounds=figures)


@compare.measurement("what the node-type infiniband adds to the HCA benchmark", setup="run vm",
                     machine=lambda rounds: ["--kernel", "6.1"], rounds=compare.rounds(5))
def compare_infiniband(rounds):
    """The node-type infiniband against the HCA benchmark, one way, with the same size, rate and service, inline on
    both, for RC, UC and UD, in turn; in one boot of the SoftRoCE machine. Samples have 64 bytes and come 1000 times a
    second. Exit code 1 if the median of the rounds' ratios is above 1.10.
    """
    burst = ["--inline", "--size", BYTES, "--rate", RATE, "--burst", MESSAGES, "--poll", "busy"]
    services = [["--service", service] for service in ("rc", "uc", "ud")]
    return all([node_type("infiniband", service + burst, rounds, 1.10, *service) for service in services])


@compare.measurement("what the node-type shmem adds to a queue, and what loops with a timer miss",
                     rounds=compare.rounds(5), only=compare.parts("shmem", "timer"))
def compare_nodes(rounds, only):
    """What a node-type adds to what it is made of, in turn, as the median of the rounds' ratios:

      shmem  against the queue baton-demoting of the queue benchmark, with the same bytes, capacity, rate and threads;
             at most 1.10
      timer  steps that --timer tsc misses in 10 s at 100 kHz by loopback, against a bare loop in C
             (listings/signal_generation.c) beside which another keeps the second CPU busy, as a subscriber does; at
             most as many

    Samples have 64 bytes and come 1000 times a second. Exit code 1 if a ratio is above its limit.
    """
    return all([{"shmem": shmem, "timer": timer}[part](rounds) for part in only])


def shmem(rounds):
    queue = ["queue", "--queue", "baton-demoting", "--payload", BYTES, "--load", "constant-rate", "--rate", RATE]
    queue += ["--capacity", CAPACITY, "--count", MESSAGES, "--rounds", 1]
    return node_type("shmem", queue, rounds, 1.10, "--receive-queue", CAPACITY)


def timer(rounds):
    """The steps that a timer misses, against a loop in C beside which another one keeps the second CPU busy."""

    listings = compare.listings()

    def signal(cpu, milliseconds):
        words = ["taskset", "-c", cpu, f"{listings}/signal_generation", "--wait", "rdtscp", "--rate", 100_000]
        return list(map(str, [*words, "--duration", milliseconds]))

    def ours():
        load = ["node", "--type", "loopback", "--rate", "100k", "--values", 6, "--count", 1_000_000]
        return int(compare.summary(*load, "--timer", "tsc")["steps_missed"])

    def theirs():
        with subprocess.Popen(signal(1, 12_000), stdout=subprocess.DEVNULL) as beside:
            said = compare.run(*signal(0, 10_000))
        if beside.returncode:
            sys.exit("signal_generation failed on the second CPU")
        return int(results.values(said)["missed"])

    print("\nsteps missed of 1000000 at 100 kHz")
    figures = compare.turns(rounds, ours, theirs, "C", "steps")
    return compare.judge(compare.of_medians(*figures), most=1, rounds=figures)


@contextlib.contextmanager
def sockperf_server(*options):
    """While sockperf answers on the loopback, on the second CPU."""
    command = ["taskset", "-c", "1", "sockperf", "server", "-i", "127.0.0.1", "--nonblocked", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as one:
        time.sleep(1)
        try:
            yield
        finally:
            one.terminate()


def half_round_trip_us(*options):
    """The median of sockperf, and that it lost nothing."""
    with sockperf_server(*options):
        said = compare.run("taskset", "-c", "0", "sockperf", "ping-pong", "-i", "127.0.0.1", "--nonblocked", *options,
                           "-m", BYTES, "--mps", RATE, "-t", MESSAGES // RATE + 1)
    lost = re.search(r"dropped messages = (\d+); # duplicated messages = (\d+)", said)
    median = re.search(r"percentile 50\.000 = +([\d.]+)", said)
    if not median or not lost or any(map(int, lost.groups())):
        sys.exit(f"{said}sockperf: no median, or messages were lost")
    return float(median.group(1))


@compare.measurement("medians of the node-types udp and tcp against half of a round trip of sockperf",
                     setup="run bench", rounds=compare.rounds(7))
def compare_sockperf(rounds):
    """The node-types udp and tcp against sockperf ping-pong (Debian's package) over the loopback, in turn: 64 bytes,
    1000 times a second, both ends poll without sleep on CPUs of their own, TCP_NODELAY. Prints the medians and the
    ratio of these.

    One way lie in it: the system call that sends, the kernel's loopback up to the other socket, and the call that
    finds the datagram or the bytes. Half of a round trip holds half of what two programs do between a message and its
    answer beside that, and its second half finds the socket of the first CPU warm. A sample of hcabench carries its
    stamp and is copied to and from a pool, and its subscriber takes a stamp. Over TCP it follows its length, and is
    read in as large a piece as there is. A stream in one direction is also acknowledged by packets of its own, where
    an answer carries the acknowledgement of a ping-pong; whether that is all of the difference over TCP is not proved.
    Exit code 1 where the ratio is not from 0.8 to 1.25, and over TCP to 1.75.
    """
    all_met = True
    for name, options, most in (("udp", [], 1.25), ("tcp", ["--tcp"], 1.75)):
        node = ["node", "--type", name, "--rate", RATE, "--values", VALUES, "--count", MESSAGES, "--warmup", "500ms"]
        node += ["--after-miss", "catch-up"]

        def ours(node=node):
            row = compare.summary(*node)
            return results.time_us(row, "latency_p50_ns", "messages_received", MESSAGES)

        print(f"\n{name} against sockperf ping-pong {' '.join(options)}")
        figures = compare.turns(rounds, ours, lambda options=options: half_round_trip_us(*options), "sockperf")
        all_met &= compare.judge(compare.of_medians(*figures), least=0.8, most=most, rounds=figures)
    return all_met


# Samples of VILLASnode that do not count.
WARMUP = RATE // 2


def villas_configuration(samples):
    """The configuration of VILLASnode: a path from a generator to a UDP socket, and another one from there to a file."""
    signals = [{"name": f"value{number}", "type": "float"} for number in range(VALUES)]
    generated = [{**one, "signal": "sine", "frequency": 1.0} for one in signals]
    # The generator stamps a sample and then waits for its period: the hook stamps it when it has been read.
    generator = {"type": "signal.v2", "rate": RATE, "limit": WARMUP + MESSAGES,
                 "in": {"signals": generated, "hooks": [{"type": "ts"}]}}
    address = {"address": "127.0.0.1:12000"}
    socket = {"type": "socket", "layer": "udp", "format": "villas.binary", "in": {**address, "signals": signals},
              "out": address}
    file = {"type": "file", "uri": str(samples), "format": "villas.human"}
    return {
        "http": {"enabled": False}, "hugepages": 0, "logging": {"level": "warning"},
        "nodes": {"generator": generator, "socket": socket, "file": file},
        "paths": [{"in": "generator", "out": "socket"}, {"in": "socket", "out": "file"}],
    }


def villas_us(program):
    """The median of VILLASnode, from when one of its paths has read a sample of the generator until another path has
    received it; each sample that was not missed must be there.
    """
    samples, configuration = compare.FOLDER / "samples", compare.FOLDER / "villas.json"
    samples.unlink(missing_ok=True)
    configuration.write_text(json.dumps(villas_configuration(samples)), encoding="utf-8")
    with subprocess.Popen([program, configuration], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as one:
        # The path that receives does not end by itself.
        for seconds, end in (((WARMUP + MESSAGES) / RATE + 2, signal.SIGINT), (10, signal.SIGKILL)):
            try:
                one.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                one.send_signal(end)
        output, _ = one.communicate(timeout=10)
    missed = re.search(r"Missed a total of (\d+) steps", output)
    lines = samples.read_text(encoding="utf-8").splitlines() if samples.exists() else []
    # SECONDS.NANOSECONDS+OFFSET(SEQUENCE), then values.
    found = [re.match(r"\d+\.\d+([+-][\d.]+e[+-]\d+)\((\d+)\)\t", line) for line in lines]
    offsets = {int(one[2]): float(one[1]) for one in found if one}
    if len(offsets) + int(missed[1] if missed else 0) < WARMUP + MESSAGES:
        sys.exit(f"{output}{program}: {len(offsets)} of {WARMUP + MESSAGES} samples have come")
    return 1e6 * results.median([offset for sequence, offset in offsets.items() if sequence >= WARMUP])


@compare.measurement("medians of the node-type udp beside those of VILLASnode's socket", rounds=compare.rounds(5),
                     villas=("villas-node", str, "the program of VILLASnode"), asked_only=True)
def compare_villas(rounds, villas):
    """The node-type udp beside the node-type socket of VILLASnode (1.2.0) over the loopback, in turn: 64 bytes, 1000
    times a second; both wait in the kernel. Prints the medians and the ratio of these, which has no limit.

    VILLASnode's begins when a path has read a sample of the generator, and ends when another path has received it: what
    the first path does with a sample is in it, and that it is encoded. Ours begins when the sample is ready to be sent.

    VILLASnode's other layers cannot be compared. It refuses its node-type infiniband ("currently broken"). A sample
    that crosses shared memory keeps the stamp of its first reception, so that no latency can be computed.

    Debian has no package of VILLASnode: build its sources, and give its villas-node by --villas. Exit code 1 where it
    is not there, or loses a sample.
    """
    program = shutil.which(villas)
    if not program:
        sys.exit(f"ci/measure: --villas {villas}: there is no such program\n  fix: build VILLASnode and name it")
    node = ["node", "--type", "udp", "--rate", RATE, "--values", VALUES, "--count", MESSAGES, "--warmup", "500ms"]
    node += ["--after-miss", "catch-up", "--poll", "event"]

    def ours():
        return results.time_us(compare.summary(*node), "latency_p50_ns", "messages_received", MESSAGES)

    figures = compare.turns(rounds, ours, lambda: villas_us(program), "VILLASnode")
    return compare.judge(compare.of_medians(*figures), rounds=figures)
