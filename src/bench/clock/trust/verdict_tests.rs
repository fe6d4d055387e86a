//! Each reason, found on a made-up machine on which everything else is well.

use super::*;
use crate::bench::clock::trust::CpuOffsets;
use crate::bench::clock::trust::reads::{Crossed, Shared};
use crate::time::trust::frequency::{Frequencies, Frequency};
use crate::time::trust::monotony::BackwardStep;
use crate::time::trust::offset::Offset;
use crate::time::{Calibration, CalibrationError, TscKilohertz};

fn steady(reads: u64) -> Monotony {
    Monotony {
        reads,
        crossings: LEAST_CROSSINGS,
        ..Monotony::default()
    }
}

fn stepping(reads: u64, ticks: u64) -> Monotony {
    Monotony {
        backward_steps: 3,
        largest_steps: vec![BackwardStep {
            ticks,
            from_cpu: Some(1),
            to_cpu: Some(0),
        }],
        ..steady(reads)
    }
}

/// Made-up machines; the counter runs at 1 GHz, so that a count is a nanosecond.
impl Report {
    fn good() -> Self {
        Report {
            judgement: Judgement::default(),
            rdtscp: true,
            cpus: "0-1".parse().unwrap(),
            seconds: 1.0,
            clock: Clock {
                source: Some("tsc".to_owned()),
                available: Some(vec!["tsc".to_owned(), "hpet".to_owned()]),
                constant_tsc: Some(true),
                nonstop_tsc: Some(true),
                invariant_tsc: Some(true),
                tsc_known_freq: Some(true),
                tsc_reliable: Some(false),
            },
            virtualisation: Virtualisation {
                guest: Some(false),
                emulated: Some(false),
                ..Virtualisation::default()
            },
            frequencies: Frequencies::compare(
                Ok(Calibration::of(1e9)),
                vec![Frequency::of(
                    FrequencySource::CpuidCrystal,
                    Ok(1_000_100_000.0),
                )],
            ),
            rate: TscRate::decide(None, Ok(Calibration::of(1e9))).ok(),
            offsets: Finding::Missing(String::new()),
            migrations: Finding::Found(Crossed {
                asked_reads: 1000,
                migrations: 199,
                cpus: 2,
                wrong_cpu_names: Some(0),
                monotony: steady(1000),
            }),
            shared: Finding::Found(Shared {
                asked_reads: 1000,
                cpus: 2,
                monotony: steady(1000),
            }),
        }
        .apart(Finding::Found(Offset::of(20.0, 60)))
    }

    fn apart(mut self, found: Finding<Offset>) -> Self {
        let known = found.found().copied();
        self.offsets = Finding::Found(CpuOffsets {
            against_cpu: 0,
            cpus: vec![CpuOffset {
                cpu: 1,
                offset: found,
                offset_ns: known.map(|it| it.ticks),
                uncertainty_ns: known.map(|it| it.uncertainty_ticks),
            }],
        });
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn crossed(self, change: impl FnOnce(&mut Crossed)) -> Self {
        self.with(|it| match &mut it.migrations {
            Finding::Found(found) => change(found),
            Finding::Missing(_) => unreachable!(),
        })
    }

    fn judged(&self) -> Judgement {
        judge(self)
    }

    /// Asserts that `reason` is all there is against the machine, what it weighs, and that its text holds `told`.
    #[track_caller]
    fn only(&self, reason: &str, told: &str, weighs: Verdict) {
        let judged = self.judged();
        let found: Vec<&str> = judged.reasons.iter().map(|it| it.reason).collect();
        assert_eq!(found, [reason]);
        assert_eq!((judged.verdict, judged.reasons[0].weighs), (weighs, weighs));
        let text = &judged.reasons[0].text;
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn nothing_against_it_is_trust() {
    let judged = Report::good().judged();
    assert_eq!((judged.verdict, judged.reasons), (Verdict::Trusted, vec![]));
}

#[test]
fn a_step_back_or_a_stand_is_not_to_be_trusted() {
    let told = |place| format!("{place}: 3 times in 1000 reads, by up to 77 counts");
    let crossed = Report::good().crossed(|found| found.monotony = stepping(1000, 77));
    crossed.only("backwards", &told("from CPU to CPU"), NotToBeTrusted);
    let shared = Report::good().with(|it| {
        it.shared = Finding::Found(Shared {
            asked_reads: 1000,
            cpus: 2,
            monotony: stepping(1000, 77),
        });
    });
    shared.only("backwards", &told("on all CPUs"), NotToBeTrusted);
    Report::good()
        .crossed(|found| found.monotony.repeated = 999)
        .only("stands-still", "1000 reads gave", NotToBeTrusted);
}

#[test]
fn what_was_not_read_and_what_was_named_wrongly_is_told() {
    Report::good()
        .crossed(|found| found.monotony.reads = 400)
        .only("incomplete", "400 of 1000 reads", UsableWithCare);
    Report::good()
        .crossed(|found| found.wrong_cpu_names = Some(5))
        .only("wrong-cpu-names", "in 5 stays", UsableWithCare);
    let without = Report::good().crossed(|found| found.wrong_cpu_names = None);
    assert_eq!(without.judged().verdict, Verdict::Trusted);
}

#[test]
fn cpus_that_were_hardly_compared_are_told() {
    let compared = |crossings| {
        Report::good().with(|it| {
            if let Finding::Found(shared) = &mut it.shared {
                shared.monotony.crossings = crossings;
            }
        })
    };
    let enough = compared(LEAST_CROSSINGS).judged();
    assert_eq!(enough.verdict, Verdict::Trusted);
    let few = compared(LEAST_CROSSINGS - 1);
    few.only("few-crossings", "only 999 of 1000 reads", UsableWithCare);
}

#[test]
fn who_vouches_for_it_matters() {
    let clock = |change: fn(&mut Clock)| Report::good().with(|it| change(&mut it.clock));
    clock(|it| it.available = Some(vec!["hpet".to_owned(), "acpi_pm".to_owned()])).only(
        "dropped",
        "(hpet, acpi_pm)",
        NotToBeTrusted,
    );
    clock(|it| it.source = Some("hpet".to_owned())).only(
        "other-clock-source",
        "by hpet",
        UsableWithCare,
    );
    clock(|it| it.source = None).only("clock-source-unknown", "not tell", UsableWithCare);
    clock(|it| it.invariant_tsc = Some(false)).only(
        "not-invariant",
        "only the kernel",
        UsableWithCare,
    );
    clock(|it| it.nonstop_tsc = Some(false)).only("flag-missing", "nonstop", UsableWithCare);
    let nobody = clock(|it| {
        it.invariant_tsc = Some(false);
        it.source = Some("hpet".to_owned());
    });
    let judged = nobody.judged();
    // The heaviest stands first.
    let reasons: Vec<&str> = judged.reasons.iter().map(|it| it.reason).collect();
    assert_eq!(judged.verdict, NotToBeTrusted);
    assert_eq!(reasons, ["nobody-vouches", "other-clock-source"]);
}

#[test]
fn rates_weigh_by_how_far_they_are_off() {
    let differing = |hertz: f64| {
        Report::good().with(|it| {
            let other = Frequency::of(FrequencySource::Hypervisor, Ok(hertz));
            it.frequencies = Frequencies::compare(Ok(Calibration::of(1e9)), vec![other]);
        })
    };
    let slightly = differing(1_000_500_000.0).judged();
    assert_eq!(slightly.verdict, Verdict::Trusted);
    let told = "ppm higher by one source (hypervisor's CPUID) than by another (calibration)";
    differing(1_000_600_000.0).only("rates-differ", told, UsableWithCare);
    differing(1_020_000_000.0).only("rates-differ", "20000 ppm", NotToBeTrusted);

    let unsettled = CalibrationError {
        seconds: 1.0,
        disagreement_ppm: 4000.0,
    };
    let unsettled = Report::good().with(|it| {
        it.frequencies = Frequencies::compare(Err(unsettled.to_string()), vec![]);
        it.rate = None;
    });
    unsettled.only("rate-unsettled", "4000.0 ppm", NotToBeTrusted);
    let vague = Report::good().with(|it| {
        let vague = Calibration {
            uncertainty_ppm: 150.0,
            ..Calibration::of(1e9)
        };
        it.frequencies = Frequencies::compare(Ok(vague), vec![]);
    });
    vague.only("rate-uncertain", "150 ppm", UsableWithCare);

    let given = |kilohertz| {
        Report::good().with(|it| {
            it.rate = TscRate::decide(TscKilohertz::new(kilohertz), Ok(Calibration::of(1e9))).ok();
        })
    };
    assert_eq!(given(1_000_900).judged().verdict, Verdict::Trusted);
    let told = "--tsc-khz 1002000 is +2000 ppm";
    given(1_002_000).only("given-rate", told, UsableWithCare);
}

#[test]
fn offsets_weigh_by_what_is_proven() {
    let found = |offset| Report::good().apart(Finding::Found(offset));
    // Within the uncertainty there may be none.
    assert_eq!(
        found(Offset::of(-30.0, 60)).judged().verdict,
        Verdict::Trusted
    );
    let told = "CPU 1 is -130 ns off CPU 0, with an uncertainty of 30 ns";
    found(Offset::of(-130.0, 60)).only("cpus-differ", told, UsableWithCare);
    found(Offset::of(130.5, 60)).only("cpus-differ", "130 ns", NotToBeTrusted);
    let changed = Offset {
        contradiction_ticks: 61,
        ..Offset::of(0.0, 60)
    };
    found(changed).only("offset-changes", "by 61 ns or more", NotToBeTrusted);
    let backwards = Offset {
        backward_steps: 2,
        ..Offset::of(0.0, 60)
    };
    let told = "on CPU 0 it went backwards in 2 of 20000 exchanges with CPU 1";
    found(backwards).only("backwards-in-exchange", told, NotToBeTrusted);
    found(Offset::of(0.0, 2002)).only("offset-uncertain", "1001 ns only", UsableWithCare);
    Report::good()
        .apart(Finding::Missing("it did not answer".to_owned()))
        .only("offset-missing", "it did not answer", UsableWithCare);
    let one_cpu = Report::good().with(|it| it.offsets = Finding::Missing("one CPU".to_owned()));
    assert_eq!(one_cpu.judged().verdict, Verdict::Trusted);
}

#[test]
fn what_stands_below_the_kernel_is_told() {
    let guest = |emulated| {
        Report::good().with(|it| {
            it.virtualisation = Virtualisation {
                guest: Some(true),
                hypervisor: Some("KVM".to_owned()),
                emulated: Some(emulated),
                ..Virtualisation::default()
            };
        })
    };
    guest(false).only("guest", "a hypervisor (KVM)", UsableWithCare);
    guest(true).only("emulated", "in software", UsableWithCare);
}

#[test]
fn reasons_have_their_names_in_json() {
    let judged = Report::good().crossed(|found| found.monotony.repeated = 999);
    let json = serde_json::to_value(judged.judged()).unwrap();
    assert_eq!(json["verdict"], "not-to-be-trusted");
    let reason = &json["reasons"][0];
    assert_eq!(reason["weighs"], "not-to-be-trusted");
    assert_eq!(reason["reason"], "stands-still");
}
