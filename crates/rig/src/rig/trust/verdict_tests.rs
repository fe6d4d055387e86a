//! Each reason, found on a made-up machine on which everything else is well. Its counter runs at 1 GHz, so that a
//! count is a nanosecond.

use super::*;
use crate::rig::exchange::Offset;
use crate::rig::trust::CpuOffsets;
use crate::rig::trust::frequency::Frequencies;
use crate::rig::trust::reads::{BackwardStep, MigrationReadings};
use crate::time::{Calibration, GenericTimer, TscKilohertz, TscRate};

impl Report {
    fn good() -> Self {
        let steady = Monotony {
            asked_reads: 1000,
            cpus: 2,
            reads: 1000,
            crossings: LEAST_CROSSINGS,
            ..Monotony::default()
        };
        let mut good = Report {
            judgement: Judgement::default(),
            rdtscp: true,
            cpus: "0-1".parse().unwrap(),
            seconds: 1.0,
            clock: ClockFacts {
                source: Some("tsc".to_owned()),
                available: Some(vec!["tsc".to_owned(), "hpet".to_owned()]),
                constant_tsc: Some(true),
                nonstop_tsc: Some(true),
                invariant_tsc: Some(true),
                tsc_known_freq: Some(true),
                tsc_reliable: Some(false),
                generic_timer: None,
            },
            virtualisation: Virtualisation {
                guest: Some(false),
                emulated: Some(false),
                ..Virtualisation::default()
            },
            frequencies: Frequencies::compare(Ok(Calibration::of(1e9)), []),
            rate: TscRate::decide(None, None, Ok(Calibration::of(1e9))).ok(),
            offsets: Finding::Missing("one CPU".to_owned()),
            migrations: Finding::Found(MigrationReadings {
                migrations: 199,
                wrong_cpu_names: Some(0),
                monotony: steady.clone(),
            }),
            shared: Finding::Found(steady),
        };
        good.apart(Finding::Found(Offset::made_up(20.0, 60)));
        good
    }

    fn apart(&mut self, found: Finding<Offset>) {
        self.offsets = Finding::Found(CpuOffsets {
            against_cpu: 0,
            cpus: vec![CpuOffset::new(1, found, Some(1e9))],
        });
    }

    fn offset(&mut self, ticks: f64, round_trip: u64, change: fn(&mut Offset)) {
        let mut offset = Offset::made_up(ticks, round_trip);
        change(&mut offset);
        self.apart(Finding::Found(offset));
    }

    fn crossed(&mut self) -> &mut MigrationReadings {
        self.migrations.found_mut()
    }

    fn shared(&mut self) -> &mut Monotony {
        self.shared.found_mut()
    }

    fn other_rate(&mut self, hertz: f64) {
        let other = (FrequencySource::Hypervisor, Ok(hertz));
        self.frequencies = Frequencies::compare(Ok(Calibration::of(1e9)), [other]);
    }

    fn given(&mut self, kilohertz: u32) {
        let given = TscKilohertz::new(kilohertz);
        self.rate = TscRate::decide(given, None, Ok(Calibration::of(1e9))).ok();
    }

    fn sources(&mut self, available: &str) {
        self.clock.available = Some(vec![available.to_owned()]);
    }

    fn unsettle(&mut self) {
        self.frequencies = Frequencies::compare(Err("too busy".to_owned()), []);
        self.rate = None;
    }

    fn vague(&mut self) {
        let mut vague = Calibration::of(1e9);
        vague.uncertainty_ppm = 150.0;
        self.frequencies = Frequencies::compare(Ok(vague), []);
    }

    fn guest(&mut self, emulated: bool) {
        self.virtualisation.guest = Some(true);
        self.virtualisation.emulated = Some(emulated);
        self.virtualisation.hypervisor = Some("KVM".to_owned());
    }
}

impl<T> Finding<T> {
    fn found_mut(&mut self) -> &mut T {
        match self {
            Finding::Found(found) => found,
            Finding::Missing(why) => panic!("{why}"),
        }
    }
}

fn step_back(found: &mut Monotony) {
    found.backward_steps = 3;
    found.largest_steps = vec![BackwardStep {
        ticks: 77,
        from_cpu: Some(1),
        to_cpu: Some(0),
    }];
}

fn judged(change: fn(&mut Report)) -> Judgement {
    let mut report = Report::good();
    change(&mut report);
    judge(&report)
}

/// What a change to the good machine leads to: one reason, given with a part of its text.
#[track_caller]
fn only(weighs: Verdict, expected: &str, change: fn(&mut Report)) {
    let judged = judged(change);
    let [found] = &judged.reasons[..] else {
        panic!("{expected}: {judged:?}");
    };
    let (reason, told) = expected.split_once(": ").unwrap();
    assert_eq!([judged.verdict, found.weighs], [weighs; 2], "{expected}");
    let right = found.reason == reason && found.text.contains(told);
    assert!(right, "{expected}: {found:?}");
}

#[test]
fn what_does_not_speak_against_it_is_trust() {
    let changes: [fn(&mut Report); 7] = [
        |_| (),
        |it| it.crossed().wrong_cpu_names = None,
        |it| it.other_rate(1_000_500_000.0),
        |it| it.given(1_000_900),
        // Within the uncertainty there may be none.
        |it| it.offset(-30.0, 60, |_| ()),
        |it| it.offsets = Finding::Missing("one CPU".to_owned()),
        |it| it.shared = Finding::Missing("one CPU".to_owned()),
    ];
    for change in changes {
        assert_eq!(judged(change), Judgement::default());
    }
}

/// An Arm: its kernel keeps time by the generic timer, and there are no flags.
fn on_arm(it: &mut Report) {
    it.clock = ClockFacts {
        source: Some("arch_sys_counter".to_owned()),
        available: Some(vec!["arch_sys_counter".to_owned()]),
        generic_timer: Some(GenericTimer {
            hertz: Some(1_000_000_000),
            event_stream: true,
            self_synchronised: false,
        }),
        ..ClockFacts::default()
    };
    it.rdtscp = false;
    it.crossed().wrong_cpu_names = None;
}

#[test]
fn a_generic_timer_is_judged_by_its_own_clock_source_and_rate() {
    assert_eq!(judged(on_arm), Judgement::default());
    only(NotToBeTrusted, "dropped: sources (jiffies)", |it| {
        on_arm(it);
        it.sources("jiffies");
    });
    only(
        UsableWithCare,
        "other-clock-source: not by arch_sys",
        |it| {
            on_arm(it);
            it.clock.source = Some("hpet".to_owned());
        },
    );
    only(UsableWithCare, "given-rate: CNTFRQ_EL0", |it| {
        on_arm(it);
        it.rate = TscRate::decide(None, Some(1.01e9), Ok(Calibration::of(1e9))).ok();
    });
}

#[test]
fn what_is_not_to_be_trusted_says_why() {
    let spoils = |expected, change| only(NotToBeTrusted, expected, change);
    let moved = "backwards: from CPU to CPU: 3 times in 1000 reads, by up to 77 counts";
    spoils(moved, |it| step_back(&mut it.crossed().monotony));
    let at_once = "backwards: on all CPUs: 3 times";
    spoils(at_once, |it| step_back(it.shared()));
    let still = "stands-still: 1000 reads gave";
    spoils(still, |it| it.shared().repeated = 999);
    spoils("dropped: sources (hpet)", |it| it.sources("hpet"));
    spoils("rates-differ: 20000 ppm", |it| it.other_rate(1.02e9));
    spoils("rate-unsettled: not settle: too busy", Report::unsettle);
    spoils("cpus-differ: 130 ns", |it| it.offset(130.5, 60, |_| ()));
    let changes = "offset-changes: by 61 ns or more";
    spoils(changes, |it| {
        it.offset(0.0, 60, |it| it.contradiction_ticks = 61)
    });
    let exchanged = "backwards-in-exchange: on CPU 0 it went backwards in 2 of 20000";
    spoils(exchanged, |it| {
        it.offset(0.0, 60, |it| it.backward_steps = 2)
    });
}

#[test]
fn what_is_usable_with_care_says_why() {
    let warns = |expected, change| only(UsableWithCare, expected, change);
    warns("incomplete: 400 of 1000", |it| it.shared().reads = 400);
    let names = "wrong-cpu-names: in 5 stays";
    warns(names, |it| it.crossed().wrong_cpu_names = Some(5));
    let few = "few-crossings: only 999 of 1000";
    warns(few, |it| it.shared().crossings = 999);
    let other = "other-clock-source: by hpet";
    warns(other, |it| it.clock.source = Some("hpet".to_owned()));
    let unknown = "clock-source-unknown: not report";
    warns(unknown, |it| it.clock.source = None);
    let not_invariant = "not-invariant: only the kernel";
    warns(not_invariant, |it| it.clock.invariant_tsc = Some(false));
    let nonstop = "flag-missing: nonstop";
    warns(nonstop, |it| it.clock.nonstop_tsc = Some(false));
    let apart = "rates-differ: by one source (hypervisor's CPUID) than by another (calibration)";
    warns(apart, |it| it.other_rate(1.0006e9));
    warns("rate-uncertain: 150 ppm", Report::vague);
    let given = "given-rate: --tsc-khz 1002000 is +2000 ppm";
    warns(given, |it| it.given(1_002_000));
    let off = "cpus-differ: CPU 1 is -130 ns off CPU 0, with an uncertainty of 30 ns";
    warns(off, |it| it.offset(-130.0, 60, |_| ()));
    let uncertain = "offset-uncertain: 1001 ns only";
    warns(uncertain, |it| it.offset(0.0, 2002, |_| ()));
    let missing = "offset-missing: not known: no answer";
    warns(missing, |it| it.apart(Finding::Missing("no answer".into())));
    warns("guest: a hypervisor (KVM)", |it| it.guest(false));
    warns("emulated: in software", |it| it.guest(true));
}

#[test]
fn the_heaviest_reason_stands_first_and_has_its_name_in_json() {
    let judged = judged(|it| {
        it.clock.invariant_tsc = Some(false);
        it.clock.source = Some("hpet".to_owned());
    });
    let json = serde_json::to_value(judged).unwrap();
    let reasons = json["reasons"].as_array().unwrap().iter();
    let found = reasons.map(|it| [&it["weighs"], &it["reason"]]);
    let expected = [
        ["not-to-be-trusted", "nobody-vouches"],
        ["usable-with-care", "other-clock-source"],
    ];
    assert_eq!(json["verdict"], "not-to-be-trusted");
    assert!(found.eq(expected), "{json}");
}
