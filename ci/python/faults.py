#!/usr/bin/env python3
"""Usage: faults.py --program FILE [--small] [--verbose] [NAME]... | --list

Runs every command of the program where a resource ends, and judges each case: see ci/faults, which starts it as root in
a mount namespace, so that mounts end with it.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLE = Path(__file__).resolve().parents[2] / "notebooks/sample"
# How long a case may take, in seconds: an emulated processor takes ten times as long as it would.
TIME = 60
# A user without processes: limits on processes are those of a user, and root has none.
USER = 65432
# How long a process may be left behind that sees its parent gone, in seconds.
ORPHAN = 3
KIB, MIB = 1 << 10, 1 << 20
# What is refused for another reason than the limit has to name an option or what is missing.
OTHER_REASONS = r"--[a-z]|no RDMA device|libibverbs|librdmacm|no active port|mosquitto|nats-server|redis-server"


@dataclasses.dataclass(frozen=True)
class Command:
    """What is run, and what it writes: a results folder, or a file that ends with that."""

    words: str
    folder: bool = False
    file: str = ""
    end: bytes = b""
    # Why it may end with exit code 1 or 2 without a limit.
    refused: str = ""


NODE = "node --hugepages off --rate 1k --duration 50ms --warmup 0s --drain 50ms --out out --type"
QUEUE = "queue --capacity 64 --load none --payload 8 --duration 10ms --rounds 1 --out out --queue"


NO_DEVICE = "no RDMA device"
# A large machine takes no longer.
CPUS = ",".join(map(str, sorted(os.sched_getaffinity(0))[:4]))


def measures(words, refused=""):
    return Command(words, folder=True, refused=refused)


COMMANDS = {
    "help": Command("--help"),
    # It prints why a machine is not ready.
    "host": Command("host", refused="^$"),
    "devices": Command("devices", refused=f"^$|{NO_DEVICE}"),
    "dry run": Command("queue --dry-run"),
    "hca": measures("--burst 20 --size 8 --service rc --out out", refused=NO_DEVICE),
    "clock": measures("clock --duration 50ms --out out"),
    "clock limit": measures("clock --duration 50ms --fail-above 1ns --out out"),
    "clock all": measures("clock --all-cpus --duration 50ms --out out"),
    "queue": measures(f"{QUEUE} baton"),
    "queue many": measures(
        "queue --scenario fan-in --producers 6 --queue kanal --capacity 64 --duration 10ms --rounds 2 --out out"
    ),
    "memory": measures("memory --windows 2 --size 4M --pause 0,off --read-share 100 --rounds 1 --out out"),
    "cores": measures(f"cores --cpus {CPUS} --rounds 1 --out out", refused="two CPUs|did not run at the same time"),
    "node loopback": measures(f"{NODE} loopback"),
    "node shmem": measures(f"{NODE} shmem"),
    "node udp": measures(f"{NODE} udp"),
    "node sockets": measures(f"{NODE} tcp,unix,multicast --scenario fan-in --publishers 4"),
    # Of a program that has them, as packages do.
    "node libraries": measures(f"{NODE} iceoryx2,grpc"),
    "node zeromq": measures(f"{NODE} zeromq"),
    "node mqtt": measures(f"{NODE} mqtt"),
    "node nats": measures(f"{NODE} nats"),
    "node redis": measures(f"{NODE} redis --redis-kind streams"),
    "node infiniband": measures(f"{NODE} infiniband", refused=NO_DEVICE),
    "node sweep": measures(f"{NODE} loopback,zeromq,udp"),
    "node fan": measures(f"{NODE} zeromq,udp --scenario fan-in --publishers 4"),
    "node processes": measures(f"{NODE} shmem,udp,zeromq --ends processes"),
    "node rounds": measures(f"{NODE} udp,zeromq --rounds 2"),
    "compare": Command("compare ../sample/node ../sample/node"),
    "plot": Command("plot time ../sample/clock --out plot.svg", file="plot.svg", end=b"</svg>"),
    "plot png": Command("plot ecdf ../sample/queue --only payload=8 --out a.png", file="a.png", end=b"\xaeB`\x82"),
    "report": Command("report ../sample/hca --out report.html", file="report.html", end=b"</html>"),
    "show": Command("show ../sample/hca"),
    "list": Command("list ../sample"),
}
# Of a small campaign: all ways in which a resource is taken, and no two that take it alike.
FEW = ("help", "host", "clock", "queue", "memory", "node udp", "node zeromq", "node processes", "node sweep", "plot",
       "report", "hca")


class NotTried(Exception):
    """A limit could not be set."""


@dataclasses.dataclass(frozen=True)
class Limit:
    """A resource that ends, and what a message about it may say."""

    kind: str
    value: str
    names: str
    # In the child, before the program.
    apply: object = None
    # Around a case, as a function of its folder that returns what undoes it.
    around: object = None
    # A redirection of the shell.
    redirection: str = ""
    user: int = 0


def of_process(which, value):
    """Sets a limit of the calling process, the hard one as well."""

    def apply():
        resource.setrlimit(which, (value, value))
        if resource.getrlimit(which) != (value, value):
            raise NotTried

    return apply


class Group:
    """A control group, of version 1 or 2, which is made for the campaign."""

    made = []
    enabled = []

    @classmethod
    @functools.cache
    def of(cls, controller):
        """That of a controller.

        Raises NotTried where there is no such controller, or no group can be made.
        """
        return cls(controller)

    def __init__(self, controller):
        root, self.version = self.root_of(controller)
        # In version 2 all controllers have one hierarchy, and limits of one are not to be in force for another.
        self.folder = root / f"hcabench-faults-{controller}"
        try:
            if self.version == 2:
                switch = root / "cgroup.subtree_control"
                if controller not in switch.read_text().split():
                    switch.write_text(f"+{controller}")
                    self.enabled.append((switch, controller))
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise NotTried(f"no control group for {controller}: {error}") from error
        self.made.append(self.folder)

    @staticmethod
    def root_of(controller):
        """The root of the hierarchy that has a controller, and its version."""
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            place, kind = line.split(" - ")
            folder = Path(place.split()[4])
            kind, _, options = kind.split(" ", 2)
            if kind == "cgroup" and controller in options.split(","):
                return folder, 1
            if kind == "cgroup2":
                controllers = folder / "cgroup.controllers"
                if controllers.exists() and controller in controllers.read_text().split():
                    return folder, 2
        raise NotTried(f"no control group has {controller}")

    def set(self, name, value):
        """Sets a file of the group; the kernel may round a number."""
        try:
            (self.folder / name).write_text(value)
        except OSError as error:
            raise NotTried(f"{name}: {error}") from error

    def enter(self):
        """Moves the calling process into it."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def killed(self):
        """How many of its processes the kernel has ended for want of memory."""
        name = {1: "memory.oom_control", 2: "memory.events"}[self.version]
        counts = dict(line.split() for line in (self.folder / name).read_text().splitlines())
        return int(counts.get("oom_kill", 0))

    @classmethod
    def remove_all(cls):
        for folder in cls.made:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.1)
        for switch, controller in cls.enabled:
            try:
                switch.write_text(f"-{controller}")
            except OSError:
                pass


def in_group(controller, names, value):
    """A limit of a control group. `names`: of its file in version 1 and 2, with the text of the value in each."""

    def around(_):
        group = Group.of(controller)
        for name, text in names(value)[group.version]:
            group.set(name, text)
        return lambda: None

    return {"around": around, "apply": lambda: Group.of(controller).enter()}


def pids(value):
    return {version: [("pids.max", str(value))] for version in (1, 2)}


def memory(value):
    return {1: [("memory.limit_in_bytes", str(value * MIB))], 2: [("memory.max", str(value * MIB)),
                                                                ("memory.swap.max", "0")]}


def quota(percent):
    return {1: [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", str(percent * 1000))],
            2: [("cpu.max", f"{percent * 1000} 100000")]}


def mounted(options, full=False):
    """A file system in memory around a case, in place of its folder, or full in place of /dev/shm."""

    def around(folder):
        place = Path("/dev/shm") if full else folder
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], stderr=subprocess.PIPE,
                              check=False)
        if done.returncode:
            raise NotTried(f"mount: {done.stderr.decode().strip()}")
        if full:
            (place / "full").write_bytes(bytes(4 * KIB))
        return lambda: subprocess.run(["umount", "-l", place], check=True)

    return around


def limits():
    """All of them, the tightest of each kind first."""
    for value in (8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 64):
        yield Limit("ulimit -n", str(value), r"ulimit -n", of_process(resource.RLIMIT_NOFILE, value))
    for value in range(1, 7):
        yield Limit("pids.max", str(value), r"pids\.max", **in_group("pids", pids, value))
    for value in range(1, 7):
        yield Limit("ulimit -u", str(value), r"ulimit -u", of_process(resource.RLIMIT_NPROC, value), user=USER)
    # The packaged program and its libraries take 29 MiB before its first instruction.
    for value in (32, 36, 48, 64, 96, 128, 256, 512):
        yield Limit("ulimit -v", f"{value} MiB", r"ulimit -v", of_process(resource.RLIMIT_AS, value * MIB))
    for value in (8, 16, 24, 32, 64):
        yield Limit("memory.max", f"{value} MiB", r"memory\.(max|limit_in_bytes)", **in_group("memory", memory, value))
    for value in (0, 64, 1024):
        yield Limit("ulimit -l", f"{value} KiB", r"ulimit -l|memlock",
                    of_process(resource.RLIMIT_MEMLOCK, value * KIB), user=USER)
    # Of 0 bytes it would have no limit.
    for value, files in ((4, 2), (4, 6), (16, 18), (64, 66), (256, 258)):
        yield Limit("disk", f"{value} KiB", r"No space left|disk",
                    around=mounted(f"size={value}k,nr_inodes={files}"))
    for value in (0, 4, 64):
        yield Limit("file size", f"{value} KiB", r"File too large|ulimit -f",
                    of_process(resource.RLIMIT_FSIZE, value * KIB))
    yield Limit("/dev/shm", "full", r"/dev/shm", around=mounted("size=4k", full=True))
    for value in (20, 50):
        yield Limit("CPU quota", f"{value} %", r"quota|throttl|too busy", **in_group("cpu", quota, value))
    for stream, number in (("standard output", ""), ("standard error", 2)):
        for value, redirection in (("full", f"{number}>/dev/full"), ("closed", f"{number}>&-")):
            yield Limit(stream, value, "standard output|No space left", redirection=redirection)


@dataclasses.dataclass
class Ended:
    """How a case ended."""

    code: object
    errors: str
    seconds: float
    left: int
    killed: bool


def session(number):
    """The processes of a session, but those that have ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == number and fields[0] not in "ZX":
            found.append(int(process.name))
    return found


def run(program, limit, user, command, folder):
    """Runs a case.

    Raises NotTried where the limit could not be set.
    """

    def before():
        os.setsid()
        if user:
            # Else that may be the limit which a user meets first.
            with contextlib.suppress(ValueError):
                of_process(resource.RLIMIT_MEMLOCK, resource.RLIM_INFINITY)()
        if limit and limit.apply:
            limit.apply()
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    words = [program, *command.words.split()]
    if limit and limit.redirection:
        words = ["sh", "-c", f'exec "$@" {limit.redirection}', "sh", *words]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder.parent / "home")}
    killed = Group.of("memory").killed() if limit and limit.kind == "memory.max" else 0
    began = time.monotonic()
    # No files: what is written to them would be limited as well.
    try:
        child = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=environment, preexec_fn=before)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotTried(str(error)) from error
    try:
        _, errors = child.communicate(timeout=TIME)
        code = child.returncode
    except subprocess.TimeoutExpired:
        code, errors = "no end", b""
    seconds = time.monotonic() - began
    left = session(child.pid)
    while left and code != "no end" and time.monotonic() - began < seconds + ORPHAN:
        time.sleep(0.05)
        left = session(child.pid)
    for process in left:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if code == "no end":
        _, errors = child.communicate()
    is_killed = bool(limit) and limit.kind == "memory.max" and Group.of("memory").killed() > killed
    return Ended(code, errors.decode(errors="replace"), seconds, len(left), is_killed)


def results_in(folder):
    """What a results folder contains that does not differ from run to run: rows and their states, names of folders."""

    def rows(name):
        with open(folder / name, newline="", encoding="utf-8") as file:
            return sorted(row.get("status", "") for row in csv.DictReader(file))

    status = json.loads((folder / "settings.json").read_text(encoding="utf-8"))["status"]
    names = sorted(path.name for path in folder.iterdir())
    return status, rows("runs.csv"), rows("summary.csv"), names


def fault_of_output(command, baseline, code, folder):
    """What is wrong with what a case has written; empty if nothing is."""
    expected = {"out"} if command.folder else {command.file}
    strange = {path.name for path in folder.iterdir()} - expected
    if strange:
        return f"left {sorted(strange)[0]}"
    is_done = code == baseline.code and code in (0, 3)
    if command.file:
        path = folder / command.file
        if not path.exists():
            return "no file" if is_done else ""
        is_whole = path.is_file() and path.read_bytes().rstrip().endswith(command.end)
        return "" if is_whole else "the file is cut"
    if not command.folder:
        return ""
    out = folder / "out"
    if not out.exists():
        return "no results" if is_done and baseline.results else ""
    marks = list(out.rglob("INCOMPLETE"))
    if out / "INCOMPLETE" in marks:
        return "marked incomplete" if is_done else ""
    if marks:
        return "a point is marked incomplete, and the run is not"
    try:
        found = results_in(out)
    except (OSError, ValueError, KeyError) as error:
        return f"not marked, and not whole: {error}"
    if baseline.results and found != baseline.results:
        differs = next(pair for pair in zip(found, baseline.results) if pair[0] != pair[1])
        return f"not marked, and not whole: {str(differs)[:200]}"
    return ""


def fault_of_message(limit, text, baseline):
    """What is wrong with what a case that failed has said."""
    text = re.sub(r"\s+", " ", text)
    if not text.strip():
        return "says nothing"
    said_anyway = any(line and line in text for line in baseline.errors)
    others = {"ulimit -n", "ulimit -u", "ulimit -v", "ulimit -l", "pids.max", "No space left"}
    wrong = [other for other in sorted(others) if other in text and not re.search(limit.names, other)]
    if wrong and not said_anyway:
        return f"names {wrong[0]}"
    if not re.search(f"{limit.names}|{OTHER_REASONS}", text) and not said_anyway:
        return "names no limit"
    return ""


@dataclasses.dataclass
class Baseline:
    """How a command ends without a limit."""

    code: int
    # What it reports where it fails anyway, as without a device.
    errors: tuple
    results: object


def judged(limit, command, baseline, ended, folder):
    """What is wrong with a case; empty if nothing is."""
    if ended.code == "no end":
        return f"no end within {TIME} s"
    if ended.left:
        return f"left {ended.left} processes"
    if ended.code < 0:
        name = signal.Signals(-ended.code).name
        return f"{name}{', of the kernel for want of memory' if ended.killed else ''}"
    if ended.code not in {baseline.code, 1, 2}:
        return f"exit code {ended.code}, without the limit {baseline.code}"
    if "panicked" in ended.errors:
        return "panicked"
    fault = fault_of_output(command, baseline, ended.code, folder)
    if fault:
        return fault
    if ended.code in (0, 3) or ended.code == baseline.code or limit.kind == "standard error":
        return ""
    return fault_of_message(limit, ended.errors, baseline)


def state_of(top):
    """What no case may change: names, sizes and times beside its folder, and the names in /dev/shm."""
    found = {}
    for path in top.rglob("*"):
        if path != top / "case" and top / "case" not in path.parents:
            status = path.stat()
            found[path] = (status.st_size, status.st_mtime_ns) if path.is_file() else None
    return found, sorted(os.listdir("/dev/shm"))


class Campaign:
    """Cases one after another, in folders of its own."""

    def __init__(self, program, verbose):
        self.top = Path(tempfile.mkdtemp(prefix="hcabench-faults-"))
        self.top.chmod(0o755)
        self.program = str(shutil.copy(program, self.top / "hcabench"))
        shutil.copytree(SAMPLE, self.top / "sample")
        (self.top / "home").mkdir()
        self.verbose = verbose
        self.baselines = {}
        self.table = {}

    def in_folder(self, limit, user, use):
        """What a function of a fresh folder returns, which is within the limit."""
        folder = self.top / "case"
        folder.mkdir()
        undo = None
        try:
            undo = limit.around(folder) if limit and limit.around else None
            os.chown(folder, user, user)
            return use(folder)
        finally:
            if undo:
                undo()
            shutil.rmtree(folder)

    def baseline(self, name, command, user):
        """How a command of a user ends without a limit; what it says is empty where all is well."""
        if (name, user) in self.baselines:
            return self.baselines[name, user]

        def measure(folder):
            ended = run(self.program, None, user, command, folder)
            is_done = ended.code in (0, 3)
            fault = fault_of_output(command, Baseline(ended.code, (), None), ended.code, folder) if is_done else ""
            lines = [re.sub(r"\s+", " ", line).strip() for line in ended.errors.splitlines()]
            errors = tuple(line for line in lines if line.startswith("hcabench: "))
            # The limit on locked memory of a user may be low, and raised by nobody.
            allowed = "|".join(filter(None, [command.refused, "memlock" if user else ""])) or "(?!)"
            is_refused = ended.code in (1, 2) and re.search(allowed, " ".join(errors))
            if fault or not (is_done or is_refused):
                raise SystemExit(f"{name}, without a limit: {fault or ended.code}: {ended.errors[-500:]}")
            results = results_in(folder / "out") if command.folder and is_done else None
            if not is_done:
                who = f", user {user}" if user else ""
                print(f"{name}, without a limit{who}: exit code {ended.code}: {' '.join(lines)[-200:]}", flush=True)
            return Baseline(ended.code, () if is_done else errors, results)

        self.baselines[name, user] = self.in_folder(None, user, measure)
        return self.baselines[name, user]

    def case(self, limit, name):
        """Runs a case and counts it."""
        command = COMMANDS[name]
        row = self.table.setdefault(limit.kind, {"cases": 0, "done": 0, "refused": 0, "bad": 0, "not tried": 0})
        row["cases"] += 1
        baseline = self.baseline(name, command, limit.user)
        before = state_of(self.top)

        def try_it(folder):
            ended = run(self.program, limit, limit.user, command, folder)
            return ended, judged(limit, command, baseline, ended, folder)

        try:
            ended, bad = self.in_folder(limit, limit.user, try_it)
        except NotTried as error:
            row["not tried"] += 1
            print(f"{limit.kind} {limit.value}: {name}: not tried: {error}", flush=True)
            return
        if not bad and state_of(self.top) != before:
            bad = "changed something outside its folder"
        is_done = ended.code == baseline.code
        row["bad" if bad else "done" if is_done else "refused"] += 1
        if bad or self.verbose:
            last = re.sub(r"\s+", " ", ended.errors)[-300:]
            how = f"{bad or ended.code} [{ended.seconds:.1f} s]"
            print(f"{limit.kind} {limit.value}: {name}: {how}: {last}", flush=True)

    def print_table(self):
        """Returns the exit code."""
        total = {column: sum(row[column] for row in self.table.values()) for column in next(iter(self.table.values()))}
        rows = [*self.table.items(), ("all", total)]
        print("| " + " | ".join(["limit", *total]) + " |")
        print("| --- " + "| ---: " * len(total) + "|")
        for kind, row in rows:
            print("| " + " | ".join([kind, *map(str, row.values())]) + " |")
        return int(not total["cases"] or total["bad"] + total["not tried"] > 0)


def cases(small, names):
    """Of each limit and command; of a small campaign one or two limits of each kind, with another command each time."""
    all_limits = list(limits())
    kinds = dict.fromkeys(limit.kind for limit in all_limits)
    unknown = [name for name in names if name not in kinds and name not in COMMANDS]
    if unknown:
        raise SystemExit(f"'{unknown[0]}' is no limit and no command; see --list")
    chosen = [limit for limit in all_limits if not set(names) & set(kinds) or limit.kind in names]
    commands = [name for name in COMMANDS if not set(names) & set(COMMANDS) or name in names]
    if not small:
        return [(limit, name) for limit in chosen for name in commands]
    few = [name for name in FEW if name in commands] or commands
    by_kind = {kind: [limit for limit in chosen if limit.kind == kind] for kind in kinds}
    # The tightest, and one in the middle.
    chosen = [limit for of_kind in by_kind.values() for limit in dict.fromkeys(of_kind[::max(1, len(of_kind) // 2)][:2])]
    # No multiple of the step is one of the number of commands, so that no limit meets the same ones again.
    return [(limit, few[(5 * number) % len(few)]) for number, limit in enumerate(chosen)]


def main(words):
    parser = argparse.ArgumentParser(usage=__doc__.split("\n", maxsplit=1)[0].removeprefix("Usage: "))
    parser.add_argument("--program", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args(words)
    if asked.list:
        print("\n".join([*dict.fromkeys(limit.kind for limit in limits()), *COMMANDS]))
        return 0
    # What it has made ends with it; in the background of a script SIGINT would be ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    chosen = cases(asked.small, asked.names)
    campaign = Campaign(asked.program, asked.verbose)
    try:
        for number, (limit, name) in enumerate(chosen):
            if sys.stderr.isatty():
                print(f"\r\x1b[K{number + 1} of {len(chosen)}: {limit.kind} {limit.value}: {name}", end="",
                      file=sys.stderr, flush=True)
            campaign.case(limit, name)
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)
        shutil.rmtree(campaign.top, ignore_errors=True)
        Group.remove_all()
    return campaign.print_table()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
