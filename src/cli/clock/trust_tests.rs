//! What is printed of made-up reports.

use super::*;
use crate::bench::clock::trust::reads::{Crossed, Shared};
use crate::bench::clock::trust::{CpuOffsets, Judgement, Reason};
use crate::host::fingerprint::{Clock, Virtualisation};
use crate::time::trust::frequency::{Frequencies, Frequency, FrequencySource};
use crate::time::trust::monotony::BackwardStep;
use crate::time::trust::offset::Offset;

const WHY: &str = "there is none";

/// A report in which everything is missing that can be.
fn empty() -> Report {
    Report {
        judgement: Judgement {
            verdict: Verdict::Trusted,
            reasons: vec![],
        },
        clock: Clock::default(),
        rdtscp: false,
        virtualisation: Virtualisation::default(),
        frequencies: Frequencies::compare(
            Err(WHY.to_owned()),
            vec![Frequency::of(
                FrequencySource::Hypervisor,
                Err(WHY.to_owned()),
            )],
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
    let cpus = (1..=count).map(|cpu| CpuOffset {
        cpu,
        offset: Finding::Found(Offset::of(cpu as f64, 100)),
        offset_ns: Some(cpu as f64 / 2.0),
        uncertainty_ns: Some(25.0),
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
    assert!(text.starts_with("The TSC of this machine: trusted; nothing speaks against it\n"));
    for label in ["clock source", "rate in use", "largest distance"] {
        let line = format!("\n{label:20}  missing: ");
        assert!(text.contains(&line), "{label} in\n{text}");
    }
}

#[test]
fn lines_fit_and_reasons_stand_first() {
    let report = Report {
        judgement: Judgement {
            verdict: Verdict::NotToBeTrusted,
            reasons: vec![Reason {
                weighs: Verdict::NotToBeTrusted,
                reason: "dropped",
                text: "the kernel has dropped it from its clock sources (hpet, acpi_pm); its log says why, and it is a long one"
                    .to_owned(),
            }],
        },
        ..with_cpus(2)
    };
    let text = in_words(&report);
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("The TSC of this machine: not to be trusted, because")
    );
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("  - the kernel has dropped it")
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= TEXT_WIDTH),
        "{text}"
    );
}

#[test]
fn many_cpus_are_cut_to_those_farthest_apart() {
    let few = offsets(&with_cpus(16));
    assert_eq!(few.matches("CPU ").count(), 17, "{few}");
    let many = offsets(&with_cpus(200));
    assert!(
        many.contains("CPU 200 ") && many.contains("CPU 185 "),
        "{many}"
    );
    assert!(!many.contains("CPU 184 "), "{many}");
    assert!(many.ends_with("the 16 largest of 200; --json has them all\n"));
}

#[test]
fn steps_back_and_missing_reads_are_told() {
    let monotony = Monotony {
        reads: 900,
        backward_steps: 1,
        largest_steps: vec![BackwardStep {
            ticks: 77,
            from_cpu: Some(1),
            to_cpu: Some(0),
        }],
        ..Monotony::default()
    };
    let report = Report {
        migrations: Finding::Found(Crossed {
            asked_reads: 1000,
            migrations: 199,
            cpus: 2,
            wrong_cpu_names: Some(4),
            monotony: monotony.clone(),
        }),
        shared: Finding::Found(Shared {
            asked_reads: 900,
            cpus: 2,
            monotony: Monotony {
                crossings: 37,
                ..monotony
            },
        }),
        ..empty()
    };
    let text = in_words(&report);
    // Wherever its lines break.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("1 step back, the largest by 77 counts in 900 of 1000 reads, 199 migrations")
    );
    assert!(text.contains("TSC_AUX named wrong CPUs"));
    assert!(text.contains("1 step back, the largest by 77 counts in 900 reads, 37 of them against another CPU's; 2 threads"));
}
