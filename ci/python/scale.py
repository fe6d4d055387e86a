"""What a fabric of many ranks takes of rank 0, simulated."""

import json
import sys

import cargo
import compare

SIZES = (16, 64, 256, 1024)
# All pairs of 4096 ranks are 16.8 million rows of each table.
SAMPLED = (4096, "64")


def rows_of(program, ranks, *options):
    """The figures of a run of the benchmark `conductor`, and whether it kept its limits."""
    done = compare.attempt(program, ranks, *options, seconds=3600, stderr=None)
    lines = done.stdout.splitlines()
    if done.returncode not in (0, 1) or not lines or not lines[-1].startswith("{"):
        sys.exit(f"{done.stdout}{program} {ranks}: failed with exit code {done.returncode}")
    return json.loads(lines[-1]), done.returncode == 0


@compare.measurement("what a fabric takes of rank 0, from 16 to 4096 simulated ranks", setup="bench", program=False,
                     most=(4096, compare.whole(16, 4096), "the largest number of ranks"))
def fabric_scale(most):
    """Runs the benchmark `conductor` of cargo, without RDMA, with all pairs of 16, 64, 256 and 1024 scripted ranks, and
    with 64 partners for each of 1024 and 4096. Prints a row each: processor time, memory and bytes of rank 0 for an
    ordered pair. Exit code 1 when rank 0 takes more processor time for a pair of 1024 ranks than three times that for a
    pair of 256. Takes minutes, and 8 GiB.
    """
    messages = compare.build("cargo", "bench", "--quiet", "--locked", "--bench", "conductor", "--no-run", cargo.JSON)
    program = cargo.built(messages, "bench", "conductor")
    sampled, partners = SAMPLED
    runs = [(ranks,) for ranks in SIZES]
    runs += [(ranks, "--partners", partners) for ranks in (SIZES[-1], sampled)]
    print("| ranks | partners | rounds | pairs | rank 0: CPU s | us a pair | memory MiB | B a pair | tables MiB | B a pair "
          "| schedule of all pairs s |\n" + "| ---: " * 11 + "|", flush=True)
    per_pair, kept = {}, True
    for ranks, *options in runs:
        if ranks > most:
            continue
        row, is_kept = rows_of(program, ranks, *options)
        kept = kept and is_kept
        ordered = 2 * row["pairs"]
        per_pair[ranks, *options] = 1e6 * row["cpu_s"] / ordered
        cells = [ranks, options[1] if options else "all", row["rounds"], row["pairs"], f"{row['cpu_s']:.2f}",
                 f"{per_pair[ranks, *options]:.0f}", row["memory_mib"], f"{row['memory_mib'] * 2**20 / ordered:.0f}",
                 f"{row['bytes'] / 2**20:.1f}", f"{row['bytes'] / ordered:.0f}", f"{row['schedule_of_all_s']:.4f}"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    if (256,) in per_pair and (1024,) in per_pair:
        kept = kept and per_pair[1024,] <= 3 * per_pair[256,]
    return kept
