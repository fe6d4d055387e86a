#!/usr/bin/env python3
"""Usage: ci/python/faults.py [--program FILE] [--only LIMIT|COMMAND]... [--list] [--keep FOLDER]

Runs every command of the program where a resource ends: descriptors, threads, memory, locked memory, disk. Judges each
case: the exit code is a documented one, nothing panicked or was killed, it ended in its time, and where it failed
stderr names the limit, and no other one, or an option. Prints a line for each case that is bad, and a table; exit code
1 if any case is bad. Needs root: it makes control groups and mounts, which end with it.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = REPOSITORY / "notebooks/sample"
# How long a case may take, in seconds.
TIME = 30
# A user without processes: limits on processes are those of a user, and root has none.
USER = 65432
CODES = (0, 1, 2, 3)
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
MIB = 1 << 20

NODE = "node --rate 1k --duration 50ms --warmup 0s --drain 50ms"
COMMANDS = {
    "help": "--help",
    "host": "host",
    "devices": "devices",
    "hca": "--dry-run",
    "clock": "clock --duration 50ms --out out",
    "clock all": "clock --all-cpus --duration 50ms --causes trace --out out",
    "clock trust": "clock --trust --out out",
    "queue": "queue --queue baton --capacity 64 --load none --payload 8 --duration 10ms --out out",
    "queue many": "queue --scenario fan-in --producers 6 --queue kanal --capacity 64 --duration 10ms --out out",
    "memory": "memory --windows 2 --size 4M --pause 0,off --read-share 100 --out out",
    "node loopback": f"{NODE} --type loopback --out out",
    "node shmem": f"{NODE} --type shmem --out out",
    "node udp": f"{NODE} --type udp --out out",
    "node zeromq": f"{NODE} --type zeromq --out out",
    "node mqtt": f"{NODE} --type mqtt --out out",
    "node infiniband": f"{NODE} --type infiniband --out out",
    "node sweep": f"{NODE} --type loopback,zeromq,udp --out out",
    "node fan": f"{NODE} --type zeromq,udp --scenario fan-in --publishers 4 --out out",
    "node processes": f"{NODE} --type shmem,udp,zeromq --ends processes --out out",
    "node rounds": f"{NODE} --type udp,zeromq --rounds 2 --out out",
    "compare": f"compare {SAMPLE}/node {SAMPLE}/node",
    "plot": f"plot time {SAMPLE}/clock --out plot.svg",
    "plot png": f"plot cdf {SAMPLE}/queue --only payload=8 --out plot.png",
    "report": f"report {SAMPLE}/hca --out report.html",
    "show": f"show {SAMPLE}/hca",
    "list": f"list {SAMPLE}",
}


@dataclasses.dataclass(frozen=True)
class Limit:
    """A resource that ends, and what a message about it may say."""
    kind: str
    value: int
    names: str
    # Runs in the child, before the program.
    apply: object = None
    # Words before the command line.
    prefix: tuple = ()
    user: int = 0


def rlimit(which, value, scale=1):
    """Sets a limit of the calling process, the hard one as well."""
    return lambda: resource.setrlimit(which, (value * scale, value * scale))


def in_group(controller, file, value):
    """Moves the calling process into a control group with that limit; version 1 or 2."""
    def apply():
        folder = group(controller)
        (folder / file[controller_version(controller)]).write_text(str(value))
        (folder / "cgroup.procs").write_text(str(os.getpid()))
    return apply


def controller_version(controller):
    return 1 if pathlib.Path("/sys/fs/cgroup", controller).is_dir() else 2


def group(controller):
    root = pathlib.Path("/sys/fs/cgroup")
    if controller_version(controller) == 1:
        root /= controller
    folder = root / "hcabench-faults"
    folder.mkdir(exist_ok=True)
    return folder


def limits():
    """All of them, the tightest first."""
    for value in (8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 48, 56, 64):
        yield Limit("ulimit -n", value, r"ulimit -n", rlimit(resource.RLIMIT_NOFILE, value))
    for value in range(1, 9):
        file = {1: "pids.max", 2: "pids.max"}
        yield Limit("pids.max", value, r"pids\.max", in_group("pids", file, value))
    for value in range(1, 9):
        yield Limit("ulimit -u", value, r"ulimit -u", rlimit(resource.RLIMIT_NPROC, value), user=USER)
    for value in (24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 512):
        yield Limit("ulimit -v", value, r"ulimit -v", rlimit(resource.RLIMIT_AS, value, MIB))
    for value in (4, 8, 12, 16, 24, 32, 64):
        file = {1: "memory.limit_in_bytes", 2: "memory.max"}
        yield Limit("memory.max", value, r"memory\.(max|limit)|control group", in_group("memory", file, value * MIB))
    for value in (0, 64, 1024):
        yield Limit("ulimit -l", value, r"ulimit -l", rlimit(resource.RLIMIT_MEMLOCK, value, 1024), user=USER)
    for value in (0, 4, 16, 64, 256):
        # A tmpfs of 0 bytes would have no limit.
        mount = f"mount -t tmpfs -o size={max(value, 4)}k,nr_inodes={value + 2} none . && cd . && exec \"$@\""
        yield Limit("disk", value, r"No space left|disk", prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
    full = "mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero >/dev/shm/full && exec \"$@\""
    yield Limit("/dev/shm", 0, r"/dev/shm", prefix=("unshare", "-m", "sh", "-c", full, "sh"))


def run(program, limit, command, folder):
    """The exit code, or why there is none, with stderr and the time it took."""
    def before():
        os.setsid()
        if limit.user and limit.kind != "ulimit -l":
            # Else that limit is what a user meets first.
            rlimit(resource.RLIMIT_MEMLOCK, resource.RLIM_INFINITY)()
        if limit.apply:
            limit.apply()
        if limit.user:
            os.setgroups([])
            os.setgid(limit.user)
            os.setuid(limit.user)
    began = time.monotonic()
    with open(folder.parent / "stderr", "w+b") as errors:
        words = [*limit.prefix, program, *command.split()]
        try:
            child = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                     env=ENVIRONMENT, preexec_fn=before)
        except (OSError, subprocess.SubprocessError):
            return None, "", 0
        try:
            code = child.wait(TIME)
        except subprocess.TimeoutExpired:
            code = "no end"
        finally:
            try:
                os.killpg(child.pid, 9)
            except ProcessLookupError:
                pass
            child.wait()
        errors.seek(0)
        return code, errors.read().decode(errors="replace"), time.monotonic() - began


def judged(limit, code, errors):
    """What is wrong with it; empty if nothing is."""
    if code is None:
        return ""
    if code not in CODES:
        return f"exit code {code}"
    if "panicked" in errors or "RUST_BACKTRACE" in errors:
        return "panicked"
    if code in (0, 3):
        return ""
    text = re.sub(r"\s+", " ", errors)
    others = {"ulimit -n", "ulimit -u", "ulimit -v", "pids.max"} - {limit.kind}
    wrong = [other for other in others if other in text and not re.search(limit.names, text)]
    if wrong:
        return f"names {wrong[0]}"
    if not re.search(limit.names + r"|--[a-z]|no RDMA device|libibverbs", text) and text.strip():
        return "names no limit"
    if not text.strip() and limit.kind != "disk":
        return "says nothing"
    return ""


def main(words):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[0].removeprefix("Usage: "))
    parser.add_argument("--program", default=REPOSITORY / "target/release/hcabench")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args(words)
    chosen = [limit for limit in limits()
              if not {limit.kind for limit in limits()} & set(asked.only) or limit.kind in asked.only]
    commands = {name: command for name, command in COMMANDS.items()
                if not set(COMMANDS) & set(asked.only) or name in asked.only}
    if asked.list:
        print("\n".join([*commands, *dict.fromkeys(limit.kind for limit in chosen)]))
        return 0
    table = {}
    top = pathlib.Path(tempfile.mkdtemp(prefix="hcabench-faults-"))
    top.chmod(0o755)
    program = shutil.copy(asked.program, top / "hcabench")
    try:
        for limit in chosen:
            for name, command in commands.items():
                # What it does without a limit is in its usual tests.
                folder = top / "case"
                folder.mkdir()
                os.chown(folder, limit.user, limit.user)
                code, errors, seconds = run(str(program), limit, command, folder)
                shutil.rmtree(folder, ignore_errors=True)
                bad = judged(limit, code, errors)
                cell = table.setdefault(limit.kind, [0, 0, 0])
                cell[0] += 1
                cell[1] += code == 0
                cell[2] += bool(bad)
                if bad or asked.verbose:
                    last = re.sub(r"\s+", " ", errors)[-300:]
                    print(f"{limit.kind} {limit.value}: {name}: {bad or code} [{seconds:.1f} s]: {last}", flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
        for controller in ("pids", "memory"):
            try:
                group(controller).rmdir()
            except OSError:
                pass
    print(f"{'limit':12} {'cases':>6} {'done':>6} {'bad':>6}")
    for kind, (cases, done, bad) in table.items():
        print(f"{kind:12} {cases:6} {done:6} {bad:6}")
    return int(any(bad for _, _, bad in table.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
