//! A real CPU quota, in a control group of version 2 that the tests make: `clock`, `host` and the findings of a run
//! name it, and without it none does.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::machine::{Machine, sh, try_sh};
use crate::program::{self, Ended, LIMIT, Program};
use crate::testing::Has as _;

/// The hierarchy of version 2, mounted here where it is not mounted yet.
struct Hierarchy {
    top: PathBuf,
    is_ours: bool,
}

impl Hierarchy {
    fn find(machine: &Machine) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut parts = mounts.lines().filter_map(|line| line.split_once(" - "));
        let found = parts.find(|(_, kind)| kind.starts_with("cgroup2 "));
        let place = found.map(|(place, _)| PathBuf::from(place.split(' ').nth(4).unwrap()));
        let is_ours = place.is_none();
        let top = place.unwrap_or_else(|| machine.out("cgroup"));
        if is_ours {
            fs::create_dir(&top).unwrap();
            sh(&format!("mount -t cgroup2 none {}", top.display()));
        }
        let found = Hierarchy { top, is_ours };
        let controllers = fs::read_to_string(found.top.join("cgroup.controllers")).unwrap();
        assert!(
            controllers.split_whitespace().any(|it| it == "cpu"),
            "version 2 of control groups does not control the CPU here, but {controllers:?}: is it in version 1?"
        );
        fs::write(found.top.join("cgroup.subtree_control"), "+cpu").unwrap();
        found
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = try_sh(&format!("umount {}", self.top.display()));
        }
    }
}

/// A group with a quota, and one in it without, in which programs run. Both are removed at the end.
struct Group {
    folder: PathBuf,
    _hierarchy: Hierarchy,
}

impl Group {
    /// With so many percent of a CPU; `None`: without a quota.
    fn new(machine: &Machine, percent: Option<u32>) -> Self {
        let hierarchy = Hierarchy::find(machine);
        let group = Group {
            folder: hierarchy.top.join("hcabench-throttling"),
            _hierarchy: hierarchy,
        };
        fs::create_dir_all(group.inner()).unwrap();
        let quota = percent.map_or("max".to_owned(), |percent| (percent * 1000).to_string());
        fs::write(group.folder.join("cpu.max"), format!("{quota} 100000")).unwrap();
        group
    }

    fn inner(&self) -> PathBuf {
        self.folder.join("inner")
    }

    fn run(&self, words: &str, out: Option<&Path>) -> Ended {
        let enter = format!(
            "echo $$ > {}/cgroup.procs && exec \"$@\"",
            self.inner().display()
        );
        let program = Program::under(&["sh", "-c", &enter, "sh"], program::path(), words);
        let program = match out {
            Some(out) => program.out(out),
            None => program,
        };
        program.env("COLUMNS", "100").start().wait(3 * LIMIT)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in [self.inner(), self.folder.clone()] {
            // What ran in it may be ending still.
            let is_removed = || fs::remove_dir(&folder).is_ok();
            let has_gone = (0..100).any(|_| {
                is_removed() || {
                    sleep(Duration::from_millis(20));
                    false
                }
            });
            if !has_gone {
                eprintln!("{} could not be removed", folder.display());
            }
        }
    }
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The findings about throttling.
fn throttled(out: &Path) -> Vec<Value> {
    let findings = json(&out.join("findings.json"));
    let all = findings["findings"].as_array().unwrap().iter();
    let is_it = |it: &&Value| it["kind"].as_str().unwrap().starts_with("throttl");
    all.filter(is_it).cloned().collect()
}

#[test]
fn clock_names_throttling_as_the_main_cause_and_host_shows_the_quota() {
    let machine = Machine::take();
    let group = Group::new(&machine, Some(30));
    let out = machine.out("clock");
    let ended = group.run("clock --duration 1s", Some(&out)).expect(0);
    let text = joined(&ended.stdout);
    text.has(&[
        "The main cause is throttling by a CPU quota, ",
        " periods of the group: lift the quota",
        "throttled on CPU ",
    ]);
    text.lacks(&["main cause is other threads", "not usable: throttled"]);
    let found = &throttled(&out)[0];
    // It is what was asked for.
    assert_eq!(
        (&found["kind"], &found["severity"]),
        (&"throttled-watch".into(), &"reservation".into())
    );
    let figure = |name: &str| found["figures"][name][0].as_f64().unwrap();
    // The group has 30 ms of each period of 100 ms, and one thread that would run all the time.
    let (stopped, periods) = (figure("throttled"), figure("periods"));
    assert!(
        stopped >= 5.0 && stopped * 2.0 > periods && periods >= stopped,
        "{found}"
    );
    assert!(figure("throttled_ns") > 3e8, "{found}");
    // How many of the jumps are logged is the machine's: an emulated processor has hundreds of thousands.
    let limits = &json(&out.join("settings.json"))["machine"]["limits"];
    assert_eq!(limits["cpus_by_quota"], 0.3);
    // It is that of the group above.
    let file = Path::new(limits["cpu_quotas"][0]["file"].as_str().unwrap());
    assert_eq!(file, group.folder.join("cpu.max"));
    let host = group.run("host --for clock", None).expect(1);
    joined(&host.stdout).has(&[
        "SPOILS CPU quota 0.3 CPUs (30 of each 100 ms), ",
        &file.display().to_string(),
        "CPU quota",
    ]);
}

#[test]
fn a_thread_with_a_priority_is_not_stopped_by_a_quota() {
    let machine = Machine::take();
    let group = Group::new(&machine, Some(30));
    let out = machine.out("clock");
    // The kernel keeps 5 % of each second for others.
    let ended = group
        .run("clock --duration 900ms --priority 10", Some(&out))
        .expect(0);
    joined(&ended.stdout).lacks(&["main cause is throttling", "throttled on CPU"]);
    let severe = |it: &&Value| it["severity"] != "advice";
    assert_eq!(throttled(&out).iter().find(severe), None);
}

#[test]
fn without_a_quota_neither_names_one() {
    let machine = Machine::take();
    let group = Group::new(&machine, None);
    let out = machine.out("clock");
    let ended = group.run("clock --duration 500ms", Some(&out)).expect(0);
    ended.stdout.lacks(&["quota", "throttl"]);
    assert!(throttled(&out).is_empty());
    let limits = &json(&out.join("settings.json"))["machine"]["limits"];
    assert_eq!(limits["cpus_by_quota"], "none");
    let host = joined(&group.run("host --for clock", None).stdout);
    host.has(&["ok CPU quota none"]);
}

#[test]
fn other_benchmarks_have_what_was_throttled_as_a_finding() {
    let machine = Machine::take();
    let group = Group::new(&machine, Some(30));
    for (name, words) in [
        ("hca", "--burst 64 --repeat 40 --timeout 60s --rounds 2"),
        (
            "queue",
            "queue --queue lamport --capacity 64 --duration 300ms --timeout 60s --rounds 2",
        ),
        (
            "node",
            "node --type loopback --rate 1k --duration 500ms --warmup 0 --rounds 2",
        ),
        (
            "memory",
            "memory --size 1M --pause off --read-share 100 --windows 20 --rounds 2",
        ),
    ] {
        let out = machine.out(name);
        group.run(words, Some(&out)).expect(0);
        let all = throttled(&out);
        let found = all.iter().find(|it| it["kind"] == "throttled");
        let found = found.unwrap_or_else(|| panic!("{words}: {all:?}"));
        assert_eq!(found["severity"], "invalid", "{words}");
        // How much of a round it was is the machine's.
        assert!(!found["rounds"].as_array().unwrap().is_empty(), "{found}");
    }
}
