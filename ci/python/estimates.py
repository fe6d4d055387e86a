"""What --dry-run says that a run takes, against what it takes."""

import json
import time

import compare
import results

LAMPORT = ["queue", "--queue", "lamport", "--capacity", 1024, "--rounds", 1]
NODE = ["node", "--rounds", 1, "--rate", 1000, "--duration", "1s"]
RUNS = [
    [*LAMPORT, "--load", "none", "--count", "1k"],
    [*LAMPORT, "--load", "none", "--count", "10M"],
    [*LAMPORT, "--load", "none", "--count", "40M", "--measure", "throughput"],
    [*LAMPORT, "--load", "none", "--count", "1M", "--measure", "round-trip"],
    [*LAMPORT, "--load", "none", "--duration", "20ms"],
    [*LAMPORT, "--load", "none", "--duration", "500ms"],
    [*LAMPORT, "--load", "none", "--duration", "500ms", "--measure", "throughput"],
    [*LAMPORT, "--load", "constant-wait", "--wait", "2us", "--duration", "1s"],
    [*LAMPORT, "--load", "constant-rate", "--rate", "1", "--duration", "3s"],
    [*LAMPORT, "--load", "constant-rate", "--rate", "1M", "--duration", "1s"],
    [*LAMPORT, "--load", "constant-rate", "--rate", "5M", "--duration", "1s"],
    [*LAMPORT, "--load", "constant-rate", "--rate", "200,1k,10k", "--duration", "20ms"],
    [*LAMPORT, "--load", "constant-rate", "--rate", "200,1k,10k", "--duration", "1s", "--warmup", "500ms"],
    [*LAMPORT, "--load", "bursty", "--group", 1000, "--wait", "5us", "--count", "100k"],
    [*LAMPORT, "--load-curve"],
    ["queue", "--queue", "baton", "--load", "none", "--count", "10M", "--rounds", 1],
    ["clock", "--duration", "1s"],
    ["clock", "--duration", "5s"],
    ["memory", "--size", "128M", "--read-share", 100, "--rounds", 1],
    ["memory", "--size", "128M", "--read-share", "0,50,100", "--pause", "0,8,64,512", "--rounds", 1],
    [*NODE, "--type", "loopback"],
    [*NODE, "--type", "loopback,udp,shmem"],
]


@compare.measurement("the time that --dry-run states against that of the run", rounds=compare.rounds(3))
def estimates(rounds):
    """Compares the time that `--dry-run --json` states with the median time of runs, of one round each: queue under each
    load, by time and by number, warm-up included; clock, memory and node. The time of a run by number depends on the
    queue. Exit code 1 if a ratio is off one by more than a fifth.
    """

    def run_s(words):
        began = time.monotonic()
        compare.checked(compare.hcabench(*words, seconds=300))
        return time.monotonic() - began

    met = True
    for words in RUNS:
        stated_s = json.loads(compare.run(compare.PROGRAM, *words, "--dry-run", "--json"))["time_s"]
        measured_s = results.median([run_s(words) for _ in range(rounds)])
        print(f"\n{' '.join(map(str, words))}: stated {stated_s:.2f} s, measured {measured_s:.2f} s")
        met &= compare.judge(compare.ratio(stated_s, measured_s), 0.8, 1.2)
    return met
