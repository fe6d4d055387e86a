//! A CPU quota of a control group that the tests make: `clock`, `host` and the findings of a run name it. That takes
//! root, so that they are ignored unless asked for, as `ci/test` does, and then fail where no group can be made.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{alone, json, rows};
use crate::program::{self, Ended, Program};
use crate::testing::Has as _;

/// A control group, and one in it without a quota of its own, in which programs run. Both are removed at the end.
struct Group {
    folder: PathBuf,
    is_version_1: bool,
}

impl Group {
    #[track_caller]
    fn new(name: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = || mounts.lines().filter_map(|line| line.split_once(" - "));
        let place = |line: &str| PathBuf::from(line.split(' ').nth(4).unwrap());
        let has_cpu = |kind: &str| {
            let options = kind.split(' ').nth(2).unwrap_or_default();
            kind.starts_with("cgroup ") && options.split(',').any(|it| it == "cpu")
        };
        let version_1 = mounts().find(|(_, kind)| has_cpu(kind));
        let version_2 = || mounts().find(|(_, kind)| kind.starts_with("cgroup2 "));
        let found = version_1.or_else(version_2);
        let top = place(found.expect("no control groups are mounted").0);
        let group = Group {
            folder: top.join(format!("hcabench-test-{name}-{}", std::process::id())),
            is_version_1: version_1.is_some(),
        };
        if !group.is_version_1 {
            group.put(&top.join("cgroup.subtree_control"), "+cpu");
        }
        fs::create_dir_all(group.inner())
            .unwrap_or_else(|error| panic!("{}: {error}: run it as root", group.inner().display()));
        group
    }

    fn inner(&self) -> PathBuf {
        self.folder.join("inner")
    }

    #[track_caller]
    fn put(&self, file: &Path, text: &str) {
        fs::write(file, text)
            .unwrap_or_else(|error| panic!("{}: {error}: run it as root", file.display()));
    }

    /// Allows so many percent of a CPU.
    #[track_caller]
    fn quota(&self, percent: u32) {
        let quota = percent * 1000;
        match self.is_version_1 {
            true => {
                let period = self.folder.join("cpu.cfs_period_us");
                self.put(&period, "100000");
                let file = self.folder.join("cpu.cfs_quota_us");
                self.put(&file, &quota.to_string());
            }
            false => self.put(&self.folder.join("cpu.max"), &format!("{quota} 100000")),
        }
    }

    /// Runs it to its end; whether the rest of the machine is ready does not matter.
    #[track_caller]
    fn run(&self, words: &str, out: Option<&Path>) -> Ended {
        let inner = self.inner();
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", inner.display());
        let program = Program::under(&["sh", "-c", &enter, "sh"], program::path(), words);
        let program = match out {
            Some(out) => program.out(out),
            None => program,
        };
        program.env("COLUMNS", "100").run()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in [self.inner(), self.folder.clone()] {
            // What ran in it may be ending still.
            let removed = (0..100).any(|_| {
                let removed = fs::remove_dir(&folder).is_ok();
                std::thread::sleep(Duration::from_millis(if removed { 0 } else { 20 }));
                removed
            });
            if !removed {
                eprintln!("{} could not be removed", folder.display());
            }
        }
    }
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn throttled(out: &Path) -> Option<Value> {
    let findings = json(&out.join("findings.json"));
    let mut all = findings.as_array().unwrap().iter();
    all.find(|it| it["kind"] == "throttled").cloned()
}

#[test]
#[ignore = "makes a control group, which takes root"]
fn clock_names_throttling_as_the_main_cause_and_host_shows_the_quota() {
    let _alone = alone();
    let group = Group::new("clock");
    group.quota(30);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let ended = group.run("clock --duration 1s", Some(&out)).expect(0);
    let text = joined(&ended.stdout);
    text.has(&[
        "The main cause is throttling by a CPU quota, ",
        " periods: lift the quota",
        "throttled on CPU ",
        "verdict: not usable: machine not ready (CPU quota)",
    ]);
    assert!(!text.contains("main cause is other threads"), "{text}");
    let found = throttled(&out).expect("a finding");
    assert_eq!(found["severity"], "invalid");
    let count = |name: &str| found["figures"][name].as_u64().unwrap();
    // The group has 30 ms of each period of 100 ms, and one thread that would run all the time.
    let (stopped, periods) = (count("throttled"), count("periods"));
    assert!(
        stopped >= 5 && stopped * 2 > periods && periods >= stopped,
        "{found}"
    );
    assert!(count("throttled_ns") > 300_000_000, "{found}");
    let point = out.join(&rows(&out.join("summary.csv"))[0]["point"]);
    let jumps = rows(&point.join("jumps.csv"));
    let by_quota = jumps
        .iter()
        .filter(|row| row["cause"] == "throttled by a CPU quota");
    assert!(by_quota.count() >= 3, "{}", ended.stdout);
    let limits = &json(&out.join("settings.json"))["machine"]["limits"];
    assert_eq!(limits["cpus_by_quota"], 0.3);
    let file = limits["cpu_quotas"][0]["file"].as_str().unwrap();
    // It is that of the group above.
    assert_eq!(
        Path::new(file).parent().unwrap(),
        group.folder.as_path(),
        "{limits}"
    );
    let host = group.run("host --for clock", None).expect(1);
    joined(&host.stdout).has(&[
        "SPOILS CPU quota 0.3 CPUs (30 of each 100 ms), ",
        file,
        "Not ready to measure (--for clock): CPU quota",
    ]);
}

#[test]
#[ignore = "makes a control group, which takes root"]
fn without_a_quota_neither_names_one() {
    let _alone = alone();
    let group = Group::new("free");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let ended = group.run("clock --duration 500ms", Some(&out)).expect(0);
    ended.stdout.lacks(&["quota", "throttl"]);
    assert_eq!(throttled(&out), None);
    assert!(json(&out.join("settings.json"))["machine"]["limits"]["cpus_by_quota"].is_null());
    let host = joined(&group.run("host --for clock", None).stdout);
    host.has(&["ok CPU quota none"]);
}

#[test]
#[ignore = "makes a control group, which takes root"]
fn each_round_of_other_benchmarks_adds_what_was_throttled() {
    let _alone = alone();
    let group = Group::new("others");
    group.quota(30);
    let folder = tempfile::tempdir().unwrap();
    for words in [
        "queue --queue lamport --capacity 64 --duration 300ms --rounds 2",
        "node --type loopback --rate 1k --duration 500ms --warmup 0 --rounds 2",
        "memory --size 1M --pause off --read-share 100 --windows 20 --rounds 2",
    ] {
        let out = folder.path().join(&words[..3]);
        group.run(words, Some(&out)).expect(0);
        let found = throttled(&out).unwrap_or_else(|| panic!("{words}: no finding"));
        assert_eq!(found["severity"], "invalid", "{words}");
        assert_eq!(found["rounds"].as_array().unwrap().len(), 2, "{found}");
    }
}
