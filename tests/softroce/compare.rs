//! `hcabench compare` on real runs: a receiver with other work is told from one without. It is away for 20 us on a machine
//! where nine of ten messages come within 250 us; on another one for so long that messages pile up, and the 20 us are not
//! tested. What it was is printed.
//!
//! How often equal runs are told apart is a matter of the simulated runs in `src/stats/bootstrap/tests.rs`: on a machine that
//! others use, two equal runs really differ. Here it is printed.
//!
//! Both kinds are measured by many short runs in turn, so that what else goes on hits them alike, and all runs of a kind are
//! compared as one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::Machine;
use crate::program::{Ended, hcabench};
use crate::results::Results;
use crate::scratch;

/// So many short runs of each kind are compared, and more if those do not show it, at most five times: with what others do to
/// the machine, a few of them need not.
const ROUNDS: [usize; 5] = [12, 18, 24, 30, 36];

/// Messages of a burst, and those that were sent before one that is in its middle.
const BURST: u32 = 50;
const MIDDLE: f64 = 25.0;
/// Between the messages.
const PAUSE_US: f64 = 100.0;

/// What the receiver of the issue is away for.
const AWAY_US: f64 = 20.0;
/// A machine on which nine of ten messages come sooner than this is quiet: there 20 us must be found.
const QUIET_P90_US: f64 = 250.0;

fn measure(folder: &Path, name: &str, options: &str) -> PathBuf {
    let out = folder.join(name);
    hcabench(&format!(
        "--burst {BURST} --repeat 4 --pause {PAUSE_US}us --quiet {options}"
    ))
    .out(&out)
    .run()
    .expect(0);
    out
}

/// The one point's folder of a run.
fn point_of(run: &Path) -> PathBuf {
    let folders = fs::read_dir(run)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    folders.into_iter().find(|path| path.is_dir()).unwrap()
}

/// All messages of several runs as those of one point, each burst with a number of its own.
fn put_together(folder: &Path, name: &str, runs: &[PathBuf]) {
    let to = folder.join(name);
    let _ = fs::remove_dir_all(&to);
    fs::create_dir(&to).unwrap();
    let (mut rows, mut bursts, mut messages) = (String::new(), 0, 0);
    for run in runs {
        let text = fs::read_to_string(point_of(run).join("messages.csv")).unwrap();
        let (header, own) = text.split_once('\n').unwrap();
        assert!(header.starts_with("repeat,"), "{header}");
        if rows.is_empty() {
            rows = format!("{header}\n");
        }
        let mut last = 0;
        for line in own.lines() {
            let (repeat, others) = line.split_once(',').unwrap();
            last = repeat.parse::<usize>().unwrap();
            rows += &format!("{},{others}\n", bursts + last);
            messages += 1;
        }
        bursts += last + 1;
    }
    fs::write(to.join("messages.csv"), rows).unwrap();
    let text = fs::read_to_string(point_of(&runs[0]).join("settings.json")).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    document["counts"]["sent"] = messages.into();
    fs::write(to.join("settings.json"), document.to_string()).unwrap();
}

fn compare(folder: &Path, arguments: &str) -> Ended {
    hcabench(&format!("compare {arguments}"))
        .in_folder(folder)
        .run()
}

/// What is said of the median latency, by words that break the limit if it is worse.
fn verdict(folder: &Path, runs: &str) -> String {
    let ended = compare(
        folder,
        &format!("{runs} --anyway --json --max-regression 5%@p50"),
    );
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let figure = &document["comparison"]["points"][0]["figures"][0];
    assert_eq!(
        (&figure["of"], &figure["kind"]),
        (&"latency".into(), &"p50".into())
    );
    let word = figure["verdict"].as_str().expect("a word");
    let change = figure["change_percent"].as_f64().expect("a number");
    assert_eq!(
        figure["limit"]["broken"],
        word == "worse" && change > 5.0,
        "{figure}"
    );
    // The limit is of completions as well, which the receiver has no part in; what is not judged does not keep it.
    let figures = document["comparison"]["points"][0]["figures"].as_array();
    let unjudged = figures
        .expect("figures")
        .iter()
        .any(|figure| figure["limit"].is_object() && figure["verdict"] == "not-judged");
    let code = match (
        document["verdict"]["broken"].as_bool().expect("told"),
        unjudged,
    ) {
        (true, _) => 3,
        (false, true) => 1,
        (false, false) => 0,
    };
    ended.expect(code);
    println!(
        "{runs}: {change:+.1} %, {word}, within {}",
        figure["difference"]["together"]
    );
    word.to_owned()
}

#[test]
fn a_receiver_that_is_away_is_told_from_one_that_is_not() {
    let _machine = Machine::take();
    let folder = scratch();
    let folder = folder.path();
    // The first run in a fresh machine is slower than those that follow.
    measure(folder, "first", "");
    let usual = Results::at(measure(folder, "usual", "")).summary();
    let p90 = usual.rows[0].decimal("latency_p90_us");
    // Where other programs take the CPUs away, messages are milliseconds late, and 20 us do not show in any number of
    // them. There the receiver is away for longer than the sender pauses: messages pile up, those in the middle of a burst
    // by five times what nine of ten are late.
    let away_us = if p90 <= QUIET_P90_US {
        AWAY_US
    } else {
        (PAUSE_US + 5.0 * p90 / MIDDLE).ceil()
    };
    println!("nine of ten messages within {p90} us: the receiver is away for {away_us} us");

    let (mut base, mut away) = (Vec::new(), Vec::new());
    for rounds in ROUNDS {
        while base.len() < rounds {
            let number = base.len();
            let run_base = || measure(folder, &format!("base{number}"), "");
            let run_away = || {
                let options = format!("--receiver-pause {away_us}us");
                measure(folder, &format!("away{number}"), &options)
            };
            // Neither kind is always the first of two.
            if number % 2 == 0 {
                base.push(run_base());
                away.push(run_away());
            } else {
                away.push(run_away());
                base.push(run_base());
            }
        }
        if rounds == ROUNDS[0] {
            // Another setting: refused, and named.
            let refused = compare(folder, "base0 away0").expect(2);
            let named = format!("run.receiver_pause_ns: 0 and {}", away_us * 1000.0);
            assert!(
                refused.stderr.contains(&named) && refused.stderr.contains("--anyway"),
                "{}",
                refused.stderr
            );
        }
        put_together(folder, "base", &base);
        put_together(folder, "away", &away);
        let every_second =
            |first| -> Vec<PathBuf> { base.iter().skip(first).step_by(2).cloned().collect() };
        put_together(folder, "even", &every_second(0));
        put_together(folder, "odd", &every_second(1));
        println!("{rounds} runs of each:");
        verdict(folder, "even odd");
        let (said, back) = (verdict(folder, "base away"), verdict(folder, "away base"));
        if (said.as_str(), back.as_str()) == ("worse", "better") {
            return;
        }
    }
    panic!("a receiver that is away for {away_us} us is not found to be worse");
}
