#!/usr/bin/env python3
"""Usage: ci/measure --list | [NAME]... | NAME OPTION...

Runs measurements whose limits a busy machine can break, all or those that are named, one after another, with the time
at which each began; needs an idle machine with two CPUs. Ends at the first that fails, with exit code 1. All of them
take hours: most boot the SoftRoCE machine. --list prints the names, with what each shows; ci/measure NAME --help says
what it does and takes. What is missing is installed by ci/setup. The program is the one that the variable
HCABENCH_PROGRAM names, else a release build made now.
"""

import argparse
import importlib
import inspect
import os
import signal
import subprocess
import sys
import time

import compare

# What they add to the table is in the order in which all are run: those on this machine first.
for module in ("cargo", "clock", "big", "memory", "queues", "ranks", "latency", "nodes", "equals"):
    importlib.import_module(module)
# Scripts of their own.
SCRIPTS = {
    "fabric": "two kernels, of which one clock is turned; a real Slurm and Open MPI; 20 delayed ports among eight",
}


def options_of(name, words):
    """What the options of a measurement are set to."""
    one = compare.MEASUREMENTS[name]
    parser = argparse.ArgumentParser(prog=f"ci/measure {name}", description=inspect.getdoc(one.measure),
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    for option, (default, read, says) in one.options.items():
        says += f" [default: {default}]" * bool(default)
        parser.add_argument("--" + option.replace("_", "-"), default=default, type=read, help=says)
    return vars(parser.parse_args(words))


def call(*command):
    """The exit code of a command, which gets the signals that end this; that of a terminal it gets anyway."""
    with subprocess.Popen(command) as child:
        signal.signal(signal.SIGINT, lambda *_: None)
        for one in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(one, lambda number, _: child.send_signal(number))
        code = child.wait()
    return code if code >= 0 else 128 - code


def run(name, words):
    """Prepares a measurement and runs it, in the SoftRoCE machine where it says so; the exit code."""
    if name in SCRIPTS:
        return call(compare.REPOSITORY / "ci" / name, *words)
    one, asked = compare.MEASUREMENTS[name], options_of(name, words)
    compare.build(compare.REPOSITORY / "ci/setup", *one.setup)
    # Before the folder changes: a relative HCABENCH_PROGRAM is found from here.
    prepare = f"source {compare.REPOSITORY}/ci/lib.sh; find_cargo" + "; find_program" * one.program
    prepare += '; printf "%s\\n" "$PATH" "${program-}"'
    found = compare.attempt("bash", "-euc", prepare, "ci/measure", seconds=None, stderr=None)
    if found.returncode:
        return found.returncode
    os.environ["PATH"], os.environ["HCABENCH_PROGRAM"] = found.stdout.splitlines()
    os.environ["TMPDIR"] = one.folder or os.environ.get("TMPDIR", "/tmp")
    os.chdir(compare.REPOSITORY)
    command = ["ci/python/measure.py", "--here", name, *words]
    if one.machine:
        command = ["ci/vm", *map(str, one.machine(**asked)), "--", *command]
    return call(*command)


def main(words):
    names = [*compare.MEASUREMENTS, *SCRIPTS]
    if words[:1] == ["--here"]:
        return not compare.MEASUREMENTS[words[1]].measure(**options_of(words[1], words[2:]))
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    if words == ["--list"]:
        shows = {name: one.shows for name, one in compare.MEASUREMENTS.items()} | SCRIPTS
        print("\n".join(f"{name:18} {shows[name]}" for name in names))
        return 0
    asked = words or names
    if asked[0] in names and (len(asked) == 1 or any(word not in names for word in asked[1:])):
        return run(asked[0], asked[1:])
    for name in asked:
        if name not in names:
            print(f"ci/measure: '{name}' is not allowed, must be of: {' '.join(names)}", file=sys.stderr)
            return 2
    began = time.monotonic()
    for name in asked:
        passed = int(time.monotonic() - began)
        print(f"\n== {name}   [{passed // 60}:{passed % 60:02}]", flush=True)
        if code := call(__file__, name):
            print(f"ci/measure: {name}: failed, with exit code {code}", file=sys.stderr)
            return 1
    print(f"\n== all passed: {' '.join(asked)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
