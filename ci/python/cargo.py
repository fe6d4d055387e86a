"""What is measured by cargo's benchmarks and tests, and builds with the code at other places."""

import json
import os
import re
import shutil
import subprocess
import sys

import compare

# How the code of a program can be aligned. How long a loop of a nanosecond or two takes depends on where the linker
# puts it, and each way puts loops at other places.
ALIGNMENTS = ("align-loops=16", "align-loops=32", "align-loops=64", "align-all-functions=6",
              "align-all-nofallthru-blocks=4", "align-all-nofallthru-blocks=5")
JSON = "--message-format=json-render-diagnostics"


def built(messages, kind, name):
    """The path of the program of a kind and name that cargo has built, of its messages in JSON."""
    for message in map(json.loads, messages.splitlines()):
        target = message.get("target", {})
        if message.get("executable") and target["name"] == name and kind in target["kind"]:
            return message["executable"]
    sys.exit(f"cargo named no program {name}")


def all_passed(said):
    """Whether there are results of tests, all of them good. Silence is none, and an ignored test did not pass."""
    found = re.findall("(?m)^test result: .*", said)
    good = [re.match(r"test result: ok\. [1-9]\d* passed; 0 failed; 0 ignored", one) for one in found]
    return bool(found) and all(good)


def tested(*command, seconds=1200, **variables):
    """Runs tests, which have to pass, and shows what they said."""
    said = compare.checked(compare.attempt(*command, seconds=seconds, **variables))
    print(said, end="", flush=True)
    if not all_passed(said):
        sys.exit("no test was run, or one was ignored")


@compare.measurement("what a time stamp and the floor over shared memory cost, as ratios to bare ones",
                     setup="bench", program=False)
def instrument():
    """Runs the benchmark `instrument` of cargo."""
    return not subprocess.call(["cargo", "bench", "--quiet", "--bench", "instrument"])


@compare.measurement("what the runner of the queue benchmark costs against loops written by hand",
                     setup="bench", program=False)
def compare_runner():
    """What the runner of `hcabench queue` costs against the same loops written by hand, in instructions and in time.
    How long a loop of two nanoseconds takes depends on where the linker puts it, and on where its memory is. So the
    benchmark is built six times with its code aligned in other ways, and each of these runs in five processes. Exit
    code 1 when the runner takes more than 1.02 times the instructions, or more than 1.03 times the time in at least
    five of the six places. Takes three minutes beside the builds, on the last CPU it may use: choose it with taskset.
    """
    programs = []
    for alignment in ALIGNMENTS:
        messages = compare.build("cargo", "rustc", "--quiet", "--locked", "--profile", "bench", "--bench",
                                 "queue_runner", JSON, "--", "-C", f"llvm-args=-{alignment}")
        # Each build takes the place of the one before.
        programs.append(shutil.copy(built(messages, "bench", "queue_runner"), compare.FOLDER / alignment))
    return not subprocess.call([programs[0], *programs])


@compare.measurement("a signal ends queue and clock within a second; the clock begins within one")
def check_signals():
    """Checks that a signal ends hcabench queue and hcabench clock within a second, wherever they are, and that
    hcabench clock begins to watch within a second, by tests that otherwise allow a minute. Other work makes it longer.
    """
    # Started in the background of a script, all would inherit that SIGINT is ignored.
    tested("env", "--default-signal=INT,TERM", "--", "cargo", "test", "--locked", "--test", "anywhere", "--",
           "--test-threads=1", "queue_command::a_signal_ends", "clock::a_signal_ends", "clock::by_default_it",
           seconds=None, HCABENCH_WITHIN_A_SECOND="1")
    return True


@compare.measurement("10,000 hostile connections disturb no run of serve, get no answer and take no memory",
                     cases=(10_000, compare.whole(100, 1_000_000), "how many connections"))
def strangers(cases):
    """Has a hostile client connect CASES times to `hcabench serve` while `node --type udp --peer` measures with it over
    the loopback, 300 connections at a time: garbage, half-open and slow connections, oversized and truncated frames,
    wrong secrets, none, and a genuine connection replayed, as it was and changed; then a twentieth as many with the
    right secret and lies in the lines of a genuine run. Prints for each kind how many got an answer and how many hung,
    the memory of serve, and what arrived in each round. Exit code 1 unless none did, all rounds are whole, and serve
    took at most 64 MiB more (256 MiB with the right secret). Takes about three minutes.
    """
    tested("cargo", "test", "--locked", "--test", "anywhere", "--", "--test-threads=1", "--nocapture", "strangers::",
           seconds=None, HCABENCH_STRANGERS=str(cases))
    return True


def test_program(count):
    """Builds the tests of the SoftRoCE machine, one of which takes the count of what it does; the options of ci/vm."""
    messages = compare.build("cargo", "test", "--locked", "--test", "softroce", "--no-run", JSON)
    tests = os.environ["HCABENCH_TESTS"] = built(messages, "test", "softroce")
    os.environ["HCABENCH_COUNT"] = str(count)
    return ["--timeout", 86_400, "--in-memory", tests, "--in-memory", os.environ["HCABENCH_PROGRAM"]]


def in_machine(test):
    """Runs one of these tests; whether it passed."""
    return not subprocess.call([os.environ["HCABENCH_TESTS"], "--test-threads=1", "--nocapture", "--exact", test])


@compare.measurement("200 hidden offsets of a clock lie within the bounds", setup="run vm", machine=test_program,
                     count=(200, compare.whole(1, 100_000), "how many clocks are shifted"))
def hidden_offsets(count):
    """Measures COUNT times between two processes in the SoftRoCE machine, of which one has its clock shifted by a
    random number of nanoseconds. The shift must lie within the bounds of theta that the other proves, each message's
    true latency within its bounds, all of them, and the width must be at most the shortest round trip. ci/check-bounds
    computes the bounds again from probes.csv and messages.csv. Takes about 10 s each; ci/test does three.
    """
    return in_machine("between::a_hidden_offset_of_the_clocks_is_within_its_bounds")


@compare.measurement("a million samples through a pool of 512, each comes back", setup="run vm", machine=test_program,
                     count=(1_000_000, compare.whole(1000, 100_000_000), "samples"))
def node_million(count):
    """Passes COUNT samples, 4000 a second, through the node-type infiniband with a pool of 512, over RC, UC and UD, in
    one boot of the SoftRoCE machine: twenty minutes for a million. Samples that are inline must have a completion
    each 100, others one each, none may be lost, and all must have come back to their pools at the end, which hcabench
    checks. ci/test passes 8000 samples, of which UC and UD may lose some.
    """
    return in_machine("node::one_in_k_inline_samples_has_a_completion_and_each_other_one")


def with_nightly(component):
    """Fails without a nightly Rust that has this component."""
    if component not in compare.attempt("rustup", "+nightly", "component", "list", "--installed").stdout:
        sys.exit("this check needs a nightly Rust with a component: rustup toolchain install nightly --profile minimal "
                 f"--component {component}")


@compare.measurement("the queues under loom, Miri and ThreadSanitizer; needs a nightly Rust", program=False,
                     only=compare.parts("loom", "miri", "thread"))
def check_queues(only):
    """Checks the queues with tools that see more than a test run does:

      loom    the interleavings of two threads on small queues in which none is interrupted more than three times, of
              three threads twice, and all values the memory model allows; needs stable Rust only
      miri    undefined behaviour, data races and leaks, in an interpreter; needs a nightly Rust with the component
              miri; takes ten minutes. Not of the arenas, which map and lock memory as no interpreter can
      thread  data races, by ThreadSanitizer in real threads, in the queues and their benchmark; needs a nightly Rust
              with the component rust-src

    The last two see the queues of others as well: what connects them is ours. No Rust is installed: what is missing
    fails, and is named with the command that installs it. ci/test runs loom.
    """

    def tests(package, filters, *command, skip="no-such-test", **variables):
        # Each in a folder of its own: their flags differ, and would have everything compiled anew.
        tested("cargo", *command, "-p", package, "--locked", "--no-default-features", "--lib", filters, "--", "--skip",
               skip, CARGO_TARGET_DIR=str(compare.TARGET / check), **variables)

    for check in only:
        print(f"\n== {check}", flush=True)
        if check == "loom":
            tests("hcabench-queues", "loom", "test", RUSTFLAGS="--cfg loom")
        elif check == "miri":
            with_nightly("miri")
            tests("hcabench-queues", "", "+nightly", "miri", "test", "--features", "competitors", skip="arena",
                  MIRIFLAGS="-Zmiri-disable-isolation")
        else:
            with_nightly("rust-src")
            triple = re.search("host: (.*)", compare.run("rustc", "-vV"))[1]
            for package, filters in (("hcabench-queues", ""), ("hcabench-bench", "queue")):
                tests(package, filters, "+nightly", "test", "-Zbuild-std", "--target", triple, "--features",
                      "competitors", RUSTFLAGS="-Zsanitizer=thread")
    return True
