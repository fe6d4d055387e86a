"""How often hcabench history finds a change that is not there, and how near to its run a step: by simulation."""

import cargo
import compare


@compare.measurement("false alarms and power of hcabench history, by simulation", program=False)
def history():
    """Judges 5,000 made-up series without a change and 1,000 with a step of 5 %, for each kind of noise in
    docs/history.md and for 15, 30 and 60 runs, and prints its table. Exit code 1 if more than 5 % of those without a
    change have one, but for runs that follow each other, or if a step in 30 or 60 runs is not within one run of its
    place in 95 %, with noise of 2 % between rounds. Takes one CPU for about half a minute, after the build.
    """
    cargo.tested("cargo", "test", "--release", "--locked", "-p", "hcabench-results", "--lib", "history::trial", "--",
                 "--nocapture", seconds=None, HCABENCH_TRIAL="whole")
    return True
