"""What figures of many messages take."""

import math
import os
import random
import shutil
import subprocess
import sys
import time

import compare

MOST_MIB, MOST_SECONDS, BLOCK = 1024, 10, 1_000_000
SETTINGS = """{"hcabench": {"version": "0", "commit": null, "format": 2}, "benchmark": "hca", "status": "complete",
"machine": {}, "point": {"service": "rc", "size_bytes": 8, "burst": 8192}}
"""
HEAD = ("round,repeat,seq,t_intended_ns,t_subm_ns,t_send_ns,t_recv_ns,t_comp_ns,in_flight,latency_ns,"
        "completion_latency_ns\n")


def point(blocks):
    """Writes a point of as many messages as the blocks have, one block again and again."""
    folder, block = compare.FOLDER / "point", compare.FOLDER / "block"
    folder.mkdir()
    (folder / "settings.json").write_text(SETTINGS, encoding="utf-8")
    draw = random.Random(1)
    with open(block, "w", encoding="utf-8") as file:
        for row in range(BLOCK):
            sent = 24011862987869 + 5000 * row
            latency = 900 + math.floor(draw.expovariate(1 / 400))
            received, complete = sent + latency, sent + latency + 700
            file.write(f"0,0,{row},,{sent},,{received},{complete},0,{latency},{latency + 700}\n")
    path = folder / "messages.csv"
    path.write_text(HEAD, encoding="utf-8")
    with open(path, "ab") as file:
        for _ in range(blocks):
            with open(block, "rb") as source:
                shutil.copyfileobj(source, file)
    return folder


def verdict(mib, busy, most_seconds):
    """What is said behind the figures: nothing where all limits are kept."""
    return "  TOO MUCH MEMORY" * (mib > MOST_MIB) + "  TOO SLOW" * (busy > most_seconds)


def taken(title, most_seconds, *words):
    """Runs hcabench, and prints what memory and time it took; whether that is no more than it may take."""
    began = time.monotonic()
    run = subprocess.Popen([compare.PROGRAM, *words, "--quiet"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        sys.exit(f"{title}: hcabench failed")
    seconds, mib, busy = time.monotonic() - began, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
    said = verdict(mib, busy, most_seconds)
    print(f"{title:58} {mib:5.0f} MiB  {seconds:5.1f} s, {busy:5.1f} s of processor{said}", flush=True)
    return not said


@compare.measurement("memory and processor time of plots of 10 million messages",
                     blocks=(10, compare.whole(1, 1000), "how many million messages"))
def big_results(blocks):
    """Draws a point with 10 million messages, a file of 0.7 GB, which is removed again. Fails when a figure takes more
    than 1 GiB of memory, or more than 10 s of the processor for each 10 million samples. The time that passes is
    shown, not judged.
    """
    many = point(blocks)
    print(f"{blocks * BLOCK} rows, {(many / 'messages.csv').stat().st_size} bytes")
    seconds, kept = MOST_SECONDS * max(blocks, 10) / 10, True
    for figure, metrics in (("histogram", []), ("histogram", ["--range", "auto", "--metric", "latency,completion"]),
                            ("ecdf", []), ("percentiles", []), ("time", [])):
        most = seconds * 2 if metrics else seconds
        title = " ".join(["plot", figure, "DIR", *metrics])
        kept &= taken(title, most, "plot", figure, many, *metrics, "--out", compare.FOLDER / "figure.png")
    return kept
