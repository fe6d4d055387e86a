//! `hcabench clock --trust` on the machine that runs the test, as a user would call it.
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hcabench::host::pinning;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Far more than it takes; a bound on a run that hangs.
const LIMIT: Duration = Duration::from_secs(120);

fn start(words: &str) -> Child {
    Command::new(crate::common::program())
        .arg("clock")
        .args(words.split_ascii_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end, and kills what does not come to one.
fn finish(mut child: Child, limit: Duration) -> Output {
    // What is printed fits into a pipe, so that nobody need read before the end.
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("no end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.unwrap().read_to_end(&mut stderr).unwrap();
    Output {
        status,
        stdout,
        stderr,
    }
}

fn run(words: &str) -> Output {
    finish(start(words), LIMIT)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn it_comes_to_a_verdict_and_leaves_nothing_out() {
    let _alone = crate::common::alone();
    let output = run("--trust --trust-reads 200000 --json");
    let report = json(&output);
    let verdict = report["verdict"].as_str().unwrap();
    let expected = match verdict {
        "trusted" | "usable-with-care" => 0,
        "not-to-be-trusted" => 1,
        other => panic!("{other}"),
    };
    assert_eq!(output.status.code(), Some(expected));
    assert_eq!(
        verdict == "trusted",
        report["reasons"].as_array().unwrap().is_empty()
    );
    let sources = report["frequencies"]["sources"].as_array().unwrap();
    let names: Vec<_> = sources
        .iter()
        .map(|it| it["source"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "calibration",
            "cpuid-crystal",
            "cpuid-nominal",
            "hypervisor",
            "kernel-file",
            "kernel-perf",
            "kernel-log",
            "ntp"
        ]
    );
    for source in sources {
        assert_ne!(
            source["hertz"].is_number(),
            source["missing"].is_string(),
            "{source}"
        );
    }
    let migrations = &report["migrations"]["found"];
    assert_eq!(migrations["reads"], 200_000);
    let cpus = pinning::current_affinity().unwrap();
    assert_eq!(migrations["cpus"], cpus.len());
    assert_eq!(report["cpus"], cpus.to_string());
    if cpus.len() > 1 {
        let offsets = report["offsets"]["found"]["cpus"].as_array().unwrap();
        assert_eq!(offsets.len(), cpus.len() - 1);
        assert!(migrations["crossings"].as_u64().unwrap() > 0);
        let shared = &report["shared"]["found"];
        assert!(shared["reads"].as_u64().unwrap() >= 200_000, "{shared}");
        let compared = shared["crossings"].as_u64().unwrap();
        assert!(compared > 0, "{shared}");
        assert_eq!(has_reason(&report, "few-crossings"), compared < 1000);
    }
}

#[test]
fn on_one_cpu_the_comparison_of_cpus_is_missing_and_says_why() {
    let _alone = crate::common::alone();
    let report = std::thread::spawn(|| {
        let first = pinning::current_affinity().unwrap().first().unwrap();
        // What this thread starts inherits its CPU.
        pinning::pin_current_thread(first).unwrap();
        json(&run("--trust --trust-reads 10000 --json"))
    });
    let report = report.join().unwrap();
    for what in ["offsets", "shared"] {
        let why = report[what]["missing"].as_str().unwrap();
        assert!(why.contains("one CPU"), "{why}");
    }
    assert_eq!(report["migrations"]["found"]["migrations"], 0);
}

#[test]
fn the_text_names_the_verdict_and_quiet_prints_nothing() {
    let _alone = crate::common::alone();
    let output = run("--trust --trust-reads 10000");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("The TSC of this machine: "), "{text}");
    for label in ["invariant", "clock source", "CPUID 15H", "moved over CPUs"] {
        assert!(text.contains(label), "{label} in\n{text}");
    }
    let quiet = run("--trust --trust-reads 10000 --quiet");
    assert!(
        quiet.stdout.is_empty() && quiet.stderr.is_empty(),
        "{quiet:?}"
    );
    assert!(matches!(quiet.status.code(), Some(0 | 1)), "{quiet:?}");
}

fn has_reason(report: &Value, name: &str) -> bool {
    let reasons = report["reasons"].as_array().unwrap();
    reasons.iter().any(|it| it["reason"] == name)
}

#[test]
fn a_given_rate_is_used_recorded_and_doubted() {
    let _alone = crate::common::alone();
    let measured = json(&run("--trust --trust-reads 10000 --json"));
    let Some(hertz) = measured["rate"]["hertz"].as_f64() else {
        // A busy machine: the verdict must say so, and a given rate is used all the same.
        assert!(has_reason(&measured, "rate-unsettled"), "{measured}");
        let report = json(&run("--trust --trust-reads 10000 --json --tsc-khz 2000000"));
        assert_eq!(report["rate"]["hertz"].as_f64(), Some(2e9));
        return;
    };
    let off = (hertz / 1e3 * 1.01).round();
    let output = run(&format!(
        "--trust --trust-reads 10000 --json --tsc-khz {off}"
    ));
    let report = json(&output);
    assert_eq!(report["rate"]["hertz"].as_f64(), Some(off * 1e3));
    assert_eq!(report["rate"]["source"], "tsc-khz");
    let Some(ppm) = report["rate"]["given_off_ppm"].as_f64() else {
        assert!(has_reason(&report, "rate-unsettled"), "{report}");
        return;
    };
    assert!((9_900.0..10_100.0).contains(&ppm), "{ppm}");
    assert!(has_reason(&report, "given-rate"), "{report}");
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        warning.contains(&format!("warning: --tsc-khz {off} is +")),
        "{warning}"
    );
}

#[test]
fn bad_values_name_option_value_and_what_is_allowed() {
    let _alone = crate::common::alone();
    for (words, named) in [
        (
            "--trust --tsc-khz 99999",
            ["--tsc-khz", "99999", "100000 to 10000000"],
        ),
        (
            "--trust --tsc-khz fast",
            ["--tsc-khz", "fast", "100000 to 10000000"],
        ),
        (
            "--trust --trust-reads 9999",
            ["--trust-reads", "9999", "10000..=10000000000"],
        ),
        (
            "--trust-reads 20000",
            ["--trust", "required", "--trust-reads"],
        ),
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        for word in named {
            assert!(text.contains(word), "{word:?} in {text}");
        }
    }
}

#[test]
fn a_signal_ends_it() {
    let _alone = crate::common::alone();
    let child = start("--trust --trust-reads 10000000000");
    std::thread::sleep(Duration::from_secs(2));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = finish(child, Duration::from_secs(20));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("interrupted"), "{text}");
    assert!(output.stdout.is_empty());
}
