#!/usr/bin/env python3
"""Usage: ci/python/taken.py TITLE MOST_MIB MOST_SECONDS COMMAND...

Runs a command, and prints what memory and time it took. Exit code 3 if that is more memory, or more of the processor,
than it may take; 1 if the command failed.
"""

import resource
import subprocess
import sys
import time


def verdict(mib, busy, most_mib, most_seconds):
    """What is said behind the figures: nothing where all limits are kept."""
    return "  TOO MUCH MEMORY" * (mib > most_mib) + "  TOO SLOW" * (busy > most_seconds)


def main(title, most_mib, most_seconds, *command):
    begin = time.monotonic()
    if subprocess.call(command, stdout=subprocess.DEVNULL):
        return 1
    seconds = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    mib, busy = used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
    said = verdict(mib, busy, float(most_mib), float(most_seconds))
    print(f"{title:58} {mib:5.0f} MiB  {seconds:5.1f} s, {busy:5.1f} s of processor{said}", flush=True)
    return 3 if said else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
