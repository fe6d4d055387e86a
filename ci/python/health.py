"""How often healthy runs of a fabric name a node, and how soon a slow one is named: by simulation."""

import cargo
import compare


@compare.measurement("false alarms and power of hcabench health, by simulation", program=False)
def health():
    """Runs 1,000 made-up healthy runs, and 200 nodes that become slower, for each kind of noise in docs/health.md, and
    prints its tables. Exit code 1 if a healthy run names a node in more than 1 % with the usual noise, or a node that is
    20 % slower is named within three runs in less than 95 %. Takes one CPU for some half an hour.
    """
    cargo.tested("cargo", "test", "--release", "--locked", "-p", "hcabench-bench", "--lib", "health_trial", "--",
                 "--nocapture", seconds=None, HCABENCH_TRIAL="whole")
    return True
