//! Each reason, found on a made-up machine on which everything else is well.

use super::super::CpuOffset;
use super::*;
use crate::time::trust::frequency::Frequency;
use crate::time::trust::monotony::BackwardStep;
use crate::time::trust::offset::Offset;
use crate::time::{Calibration, CalibrationError, TscKilohertz};

/// A machine, made of what is judged; the counter runs at 1 GHz, so that a count is a nanosecond.
struct Machine {
    clock: Clock,
    virtualisation: Virtualisation,
    frequencies: Frequencies,
    rate: Option<TscRate>,
    offsets: Finding<CpuOffsets>,
    migrations: Finding<Crossed>,
    shared: Finding<Shared>,
}

fn calibration() -> Calibration {
    Calibration {
        hertz: 1e9,
        uncertainty_ppm: 1.0,
        disagreement_ppm: 1.0,
        seconds: 0.06,
    }
}

fn offset(ticks: f64, round_trip: u64) -> Offset {
    Offset {
        ticks,
        uncertainty_ticks: round_trip as f64 / 2.0,
        round_trip_ticks: round_trip,
        exchanges: 20_000,
        contradiction_ticks: 0,
        backward_steps: 0,
    }
}

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

impl Machine {
    fn good() -> Self {
        Machine {
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
                Ok(calibration()),
                vec![Frequency::of(
                    FrequencySource::CpuidCrystal,
                    Ok(1_000_100_000.0),
                )],
            ),
            rate: TscRate::decide(None, Ok(calibration())).ok(),
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
        .apart(Finding::Found(offset(20.0, 60)))
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
        judge(Findings {
            clock: &self.clock,
            virtualisation: &self.virtualisation,
            frequencies: &self.frequencies,
            rate: self.rate.as_ref(),
            hertz: Some(1e9),
            offsets: &self.offsets,
            migrations: &self.migrations,
            shared: &self.shared,
        })
    }

    /// Asserts that `reason` is all there is against the machine, and what it weighs.
    #[track_caller]
    fn only(&self, reason: Reason, weighs: Verdict) {
        let judged = self.judged();
        let found: Vec<&Reason> = judged.reasons.iter().map(|it| &it.reason).collect();
        assert_eq!(found, [&reason]);
        assert_eq!(judged.verdict, weighs);
        assert_eq!(judged.reasons[0].weighs, weighs);
        assert_eq!(judged.reasons[0].text, reason.to_string());
    }
}

use Verdict::{NotToBeTrusted, UsableWithCare};

#[test]
fn nothing_against_it_is_trust() {
    let judged = Machine::good().judged();
    assert_eq!((judged.verdict, judged.reasons), (Verdict::Trusted, vec![]));
}

#[test]
fn a_step_back_is_not_to_be_trusted() {
    let steps = |watch| Reason::Backwards {
        watch,
        steps: 3,
        reads: 1000,
        largest_ticks: 77,
    };
    Machine::good()
        .crossed(|found| found.monotony = stepping(1000, 77))
        .only(steps(Watch::Migrations), NotToBeTrusted);
    Machine::good()
        .with(|it| {
            it.shared = Finding::Found(Shared {
                asked_reads: 1000,
                cpus: 2,
                monotony: stepping(1000, 77),
            });
        })
        .only(steps(Watch::Shared), NotToBeTrusted);
}

#[test]
fn a_counter_that_stands_still_is_not_to_be_trusted() {
    Machine::good()
        .crossed(|found| found.monotony.repeated = 999)
        .only(Reason::StandsStill { reads: 1000 }, NotToBeTrusted);
}

#[test]
fn what_was_not_read_and_what_was_named_wrongly_is_told() {
    Machine::good()
        .crossed(|found| found.monotony.reads = 400)
        .only(
            Reason::Incomplete {
                watch: Watch::Migrations,
                done: 400,
                asked: 1000,
            },
            UsableWithCare,
        );
    Machine::good()
        .crossed(|found| found.wrong_cpu_names = Some(5))
        .only(Reason::WrongCpuNames { stays: 5 }, UsableWithCare);
    let without = Machine::good().crossed(|found| found.wrong_cpu_names = None);
    assert_eq!(without.judged().verdict, Verdict::Trusted);
}

#[test]
fn cpus_that_were_hardly_compared_are_told() {
    let compared = |crossings| {
        let mut machine = Machine::good();
        if let Finding::Found(shared) = &mut machine.shared {
            shared.monotony.crossings = crossings;
        }
        machine.judged()
    };
    assert_eq!(compared(LEAST_CROSSINGS).verdict, Verdict::Trusted);
    let few = compared(LEAST_CROSSINGS - 1);
    assert_eq!(few.verdict, Verdict::UsableWithCare);
    let text = "only 999 of 1000 reads between threads followed another CPU's";
    assert!(few.reasons[0].text.starts_with(text), "{:?}", few.reasons);
}

#[test]
fn who_vouches_for_it_matters() {
    Machine::good()
        .with(|it| it.clock.available = Some(vec!["hpet".to_owned(), "acpi_pm".to_owned()]))
        .only(
            Reason::Dropped {
                available: "hpet, acpi_pm".to_owned(),
            },
            NotToBeTrusted,
        );
    Machine::good()
        .with(|it| it.clock.source = Some("hpet".to_owned()))
        .only(
            Reason::OtherClockSource {
                clock_source: "hpet".to_owned(),
            },
            UsableWithCare,
        );
    Machine::good()
        .with(|it| it.clock.source = None)
        .only(Reason::ClockSourceUnknown, UsableWithCare);
    Machine::good()
        .with(|it| it.clock.invariant_tsc = Some(false))
        .only(Reason::NotInvariant, UsableWithCare);
    Machine::good()
        .with(|it| it.clock.nonstop_tsc = Some(false))
        .only(Reason::FlagMissing { flag: "nonstop" }, UsableWithCare);
    let nobody = Machine::good().with(|it| {
        it.clock.invariant_tsc = Some(false);
        it.clock.source = Some("hpet".to_owned());
    });
    let judged = nobody.judged();
    assert_eq!(judged.verdict, NotToBeTrusted);
    // The heaviest stands first.
    assert_eq!(judged.reasons[0].reason, Reason::NobodyVouches);
    assert_eq!(judged.reasons.len(), 2);
}

#[test]
fn rates_that_differ_weigh_by_how_much() {
    let differing = |hertz: f64| {
        Machine::good().with(|it| {
            it.frequencies = Frequencies::compare(
                Ok(calibration()),
                vec![Frequency::of(FrequencySource::Hypervisor, Ok(hertz))],
            );
        })
    };
    let reason = |ppm| Reason::RatesDiffer {
        lowest: FrequencySource::Calibration,
        highest: FrequencySource::Hypervisor,
        ppm,
    };
    assert_eq!(
        differing(1_000_500_000.0).judged().verdict,
        Verdict::Trusted
    );
    differing(1_000_600_000.0).only(reason(600.0), UsableWithCare);
    differing(1_020_000_000.0).only(reason(20_000.0), NotToBeTrusted);
}

#[test]
fn a_rate_that_does_not_settle_or_is_inexact_is_told() {
    let error = || CalibrationError {
        seconds: 1.0,
        disagreement_ppm: 4000.0,
    };
    let unsettled = Machine::good().with(|it| {
        it.frequencies = Frequencies::compare(Err(error().to_string()), vec![]);
        it.rate = None;
    });
    unsettled.only(
        Reason::RateUnsettled {
            why: error().to_string(),
        },
        NotToBeTrusted,
    );
    Machine::good()
        .with(|it| {
            let vague = Calibration {
                uncertainty_ppm: 150.0,
                ..calibration()
            };
            it.frequencies = Frequencies::compare(Ok(vague), vec![]);
        })
        .only(Reason::RateUncertain { ppm: 150.0 }, UsableWithCare);
}

#[test]
fn a_given_rate_that_is_off_is_told() {
    let given = |kilohertz| {
        Machine::good().with(|it| {
            it.rate = TscRate::decide(TscKilohertz::new(kilohertz), Ok(calibration())).ok();
        })
    };
    assert_eq!(given(1_000_900).judged().verdict, Verdict::Trusted);
    let judged = given(1_002_000).judged();
    assert_eq!(judged.verdict, UsableWithCare);
    assert!(
        judged.reasons[0]
            .text
            .contains("--tsc-khz 1002000 is +2000 ppm")
    );
}

#[test]
fn offsets_weigh_by_what_is_proven() {
    // Within the uncertainty there may be none.
    let none = Machine::good().apart(Finding::Found(offset(-30.0, 60)));
    assert_eq!(none.judged().verdict, Verdict::Trusted);
    let differ = |offset_ns, uncertainty_ns| Reason::CpusDiffer {
        cpu: 1,
        against_cpu: 0,
        offset_ns,
        uncertainty_ns,
    };
    Machine::good()
        .apart(Finding::Found(offset(-130.0, 60)))
        .only(differ(-130.0, 30.0), UsableWithCare);
    Machine::good()
        .apart(Finding::Found(offset(130.5, 60)))
        .only(differ(130.5, 30.0), NotToBeTrusted);
    Machine::good()
        .apart(Finding::Found(Offset {
            contradiction_ticks: 61,
            ..offset(0.0, 60)
        }))
        .only(Reason::OffsetChanges { cpu: 1, ns: 61.0 }, NotToBeTrusted);
    Machine::good()
        .apart(Finding::Found(Offset {
            backward_steps: 2,
            ..offset(0.0, 60)
        }))
        .only(
            Reason::BackwardsInExchange {
                cpu: 0,
                other_cpu: 1,
                steps: 2,
                exchanges: 20_000,
            },
            NotToBeTrusted,
        );
    Machine::good()
        .apart(Finding::Found(offset(0.0, 2002)))
        .only(
            Reason::OffsetUncertain {
                cpu: 1,
                uncertainty_ns: 1001.0,
            },
            UsableWithCare,
        );
    Machine::good()
        .apart(Finding::Missing("it did not answer".to_owned()))
        .only(
            Reason::OffsetMissing {
                cpu: 1,
                why: "it did not answer".to_owned(),
            },
            UsableWithCare,
        );
    let one_cpu = Machine::good().with(|it| it.offsets = Finding::Missing("one CPU".to_owned()));
    assert_eq!(one_cpu.judged().verdict, Verdict::Trusted);
}

#[test]
fn what_stands_below_the_kernel_is_told() {
    let guest = |emulated| {
        Machine::good().with(|it| {
            it.virtualisation = Virtualisation {
                guest: Some(true),
                hypervisor: Some("KVM".to_owned()),
                emulated: Some(emulated),
                ..Virtualisation::default()
            };
        })
    };
    guest(false).only(
        Reason::Guest {
            name: "KVM".to_owned(),
        },
        UsableWithCare,
    );
    guest(true).only(Reason::Emulated, UsableWithCare);
}

#[test]
fn reasons_are_tagged_in_json() {
    let judged = Machine::good()
        .crossed(|found| found.monotony = stepping(1000, 77))
        .judged();
    let json = serde_json::to_value(&judged).unwrap();
    assert_eq!(json["verdict"], "not-to-be-trusted");
    let reason = &json["reasons"][0];
    assert_eq!(reason["weighs"], "not-to-be-trusted");
    assert_eq!(reason["reason"], "backwards");
    assert_eq!(
        (&reason["watch"], &reason["largest_ticks"]),
        (&"migrations".into(), &77.into())
    );
}
