//! What is printed of made-up reports.

use super::*;
use crate::host::fingerprint::{ClockFacts, Virtualisation};
use crate::rig::exchange::Offset;
use crate::rig::trust::frequency::{Frequencies, FrequencySource};
use crate::rig::trust::reads::{BackwardStep, MigrationReadings};
use crate::rig::trust::{CpuOffset, CpuOffsets, Reason};
use crate::time::GenericTimer;

const WHY: &str = "there is none";

/// A report in which everything is missing that can be.
fn empty() -> Report {
    Report {
        judgement: Judgement::default(),
        clock: ClockFacts::default(),
        rdtscp: false,
        virtualisation: Virtualisation::default(),
        frequencies: Frequencies::compare(
            Err(WHY.to_owned()),
            [(FrequencySource::Hypervisor, Err(WHY.to_owned()))],
        ),
        rate: None,
        cpus: "3".parse().unwrap(),
        offsets: Finding::Missing(WHY.to_owned()),
        migrations: Finding::Missing(WHY.to_owned()),
        shared: Finding::Missing(WHY.to_owned()),
        seconds: 1.0,
    }
}

fn with_cpus(count: usize) -> Report {
    let cpus = (1..=count).map(|cpu| {
        let offset = Finding::Found(Offset::made_up(cpu as f64, 100));
        CpuOffset::new(cpu, offset, Some(2e9))
    });
    Report {
        offsets: Finding::Found(CpuOffsets {
            against_cpu: 0,
            cpus: cpus.collect(),
        }),
        ..empty()
    }
}

#[test]
fn what_is_missing_says_so_with_its_reason() {
    let text = in_words(&empty());
    for label in [
        "calibration",
        "hypervisor's CPUID",
        "offset of CPUs",
        "moved over CPUs",
        "on all at once",
    ] {
        let line = format!("{label:20}  missing: {WHY}\n");
        assert!(text.contains(&line), "{label} in\n{text}");
    }
    assert!(text.starts_with(&format!(
        "The {COUNTER_IN_WORDS} of this machine: trusted; no finding contradicts it\n"
    )));
    for label in ["clock source", "rate in use", "largest distance"] {
        let line = format!("\n{label:20}  missing: ");
        assert!(text.contains(&line), "{label} in\n{text}");
    }
}

#[test]
fn a_generic_timer_is_told_with_its_rate_and_what_the_processor_has() {
    let mut report = empty();
    report.clock.generic_timer = Some(GenericTimer {
        hertz: Some(25_000_000),
        event_stream: true,
        self_synchronised: false,
    });
    let text = in_words(&report);
    for line in [
        "counter               generic timer (CNTVCT_EL0), constant by architecture\n",
        "a count               40.000 ns: no stamp is finer\n",
        "CNTVCTSS_EL0          no\n",
        "WFE event stream      yes\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(!text.contains("invariant"), "{text}");
}

#[test]
fn lines_fit_and_reasons_stand_first() {
    let mut report = with_cpus(2);
    report.judgement = Judgement {
        verdict: Verdict::NotToBeTrusted,
        reasons: vec![Reason {
            weighs: Verdict::NotToBeTrusted,
            reason: "dropped",
            text: "the kernel has dropped it; ".repeat(9),
        }],
    };
    let text = in_words(&report);
    let first = format!(
        "The {COUNTER_IN_WORDS} of this machine: not to be trusted, because\n  - the kernel has dropped it"
    );
    assert!(text.starts_with(&first), "{text}");
    let fits = |line: &str| line.chars().count() <= crate::terminal::TEXT_WIDTH;
    assert!(text.lines().all(fits), "{text}");
}

#[test]
fn many_cpus_are_cut_to_those_farthest_apart() {
    let few = offsets(&with_cpus(16));
    assert_eq!(few.matches(" against 0 ").count(), 16, "{few}");
    let many = offsets(&with_cpus(200));
    for (cpu, shown) in [(200, true), (185, true), (184, false)] {
        let row = format!("\n{cpu} against 0 ");
        assert_eq!(many.contains(&row), shown, "{many}");
    }
    assert!(many.ends_with("the 16 largest of 200; --json has them all\n"));
}

#[test]
fn steps_back_and_missing_reads_are_told() {
    let mut monotony = Monotony {
        asked_reads: 1000,
        cpus: 2,
        reads: 900,
        crossings: 37,
        backward_steps: 1,
        largest_steps: vec![BackwardStep {
            ticks: 77,
            from_cpu: Some(1),
            to_cpu: Some(0),
        }],
        repeated: 0,
    };
    let mut report = empty();
    report.migrations = Finding::Found(MigrationReadings {
        migrations: 199,
        wrong_cpu_names: Some(4),
        monotony: monotony.clone(),
    });
    monotony.asked_reads = 900;
    report.shared = Finding::Found(monotony);
    let text = in_words(&report);
    // Wherever its lines break.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "1 step back, the largest by 77 counts in 900 of 1000 reads, 199 migrations over 2 CPUs; TSC_AUX named wrong CPUs",
        "1 step back, the largest by 77 counts in 900 reads, 37 of them against another CPU's; 2 threads",
    ] {
        assert!(text.contains(told), "{told} in {text}");
    }
}
