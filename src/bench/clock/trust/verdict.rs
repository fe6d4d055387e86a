//! What the findings come to: trusted, usable with care, or not to be trusted, with the reasons.

use serde::Serialize;

use super::reads::Monotony;
use super::{CpuOffset, Finding, Report, hertz};
use crate::host::fingerprint::{Clock, Virtualisation};
use crate::time::trust::frequency::FrequencySource;

/// A proven offset beyond this spoils latencies between CPUs, in nanoseconds.
pub const SPOILING_OFFSET_NS: f64 = 100.0;
/// An uncertainty of an offset beyond this tells too little, in nanoseconds.
pub const UNCERTAIN_OFFSET_NS: f64 = 1000.0;
/// Sources of the rate that disagree by more are to be looked at, in parts per million.
pub const DISAGREEING_PPM: f64 = 500.0;
/// Sources of the rate that disagree by more do not speak of the same counter, in parts per million.
pub const CONTRADICTING_PPM: f64 = 10_000.0;
/// An uncertainty of the calibration beyond this tells too little, in parts per million.
pub const UNCERTAIN_RATE_PPM: f64 = 100.0;

/// Fewer readings that follow another CPU's compare the CPUs too seldom.
pub const LEAST_CROSSINGS: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing speaks against it.
    #[default]
    Trusted,
    /// It can be used by someone who knows the reasons against it.
    UsableWithCare,
    /// Figures taken with it would be wrong.
    NotToBeTrusted,
}

use Verdict::{NotToBeTrusted, UsableWithCare};

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Trusted => "trusted",
            UsableWithCare => "usable with care",
            NotToBeTrusted => "not to be trusted",
        }
    }
}

/// Something that speaks against the counter. The figures behind it stand in the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The verdict that it alone would lead to.
    pub weighs: Verdict,
    /// Which reason it is, for programs.
    pub reason: &'static str,
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Judgement {
    /// The heaviest of the reasons.
    pub verdict: Verdict,
    /// All of them, the heaviest first.
    pub reasons: Vec<Reason>,
}

/// Weighs what was found out; the judgement that is in the report does not count.
pub fn judge(report: &Report) -> Judgement {
    let mut found = Reasons::default();
    found.watched(report);
    found.vouched_for(&report.clock);
    found.rated(report);
    if let Some(offsets) = report.offsets.found() {
        let hertz = hertz(report.rate, &report.frequencies);
        let cpus = offsets.cpus.iter();
        cpus.for_each(|each| found.apart(each, offsets.against_cpu, hertz));
    }
    found.below(&report.virtualisation);
    let mut reasons = found.0;
    // Stable: within a weight they stay in the order of the report.
    reasons.sort_by_key(|it| std::cmp::Reverse(it.weighs));
    Judgement {
        verdict: reasons.first().map_or(Verdict::Trusted, |it| it.weighs),
        reasons,
    }
}

#[derive(Default)]
struct Reasons(Vec<Reason>);

impl Reasons {
    fn add(&mut self, weighs: Verdict, reason: &'static str, text: impl Into<String>) {
        self.0.push(Reason {
            weighs,
            reason,
            text: text.into(),
        });
    }

    fn spoils(&mut self, reason: &'static str, text: impl Into<String>) {
        self.add(NotToBeTrusted, reason, text);
    }

    fn warns(&mut self, reason: &'static str, text: impl Into<String>) {
        self.add(UsableWithCare, reason, text);
    }

    fn watched(&mut self, report: &Report) {
        let (crossed, shared) = (report.migrations.found(), report.shared.found());
        if let Some(found) = crossed {
            self.monotonous("in a thread moved from CPU to CPU", &found.monotony);
        }
        if let Some(found) = shared {
            self.monotonous("between threads on all CPUs", found);
            let (crossings, reads) = (found.crossings, found.reads);
            if crossings < LEAST_CROSSINGS {
                let text = format!(
                    "only {crossings} of {reads} reads between threads followed another CPU's: the machine is busy, or \
                     --trust-reads too few"
                );
                self.warns("few-crossings", text);
            }
        }
        if let Some(stays @ 1..) = crossed.and_then(|it| it.wrong_cpu_names) {
            let text = format!(
                "TSC_AUX named another CPU in {stays} stays: rdtscp does not tell where it was read"
            );
            self.warns("wrong-cpu-names", text);
        }
    }

    fn monotonous(&mut self, place: &str, found: &Monotony) {
        let (reads, asked, steps) = (found.reads, found.asked_reads, found.backward_steps);
        if steps > 0 {
            let largest = found.largest();
            let text = format!(
                "it went backwards {place}: {steps} times in {reads} reads, by up to {largest} counts"
            );
            self.spoils("backwards", text);
        }
        if found.stood_still() {
            let text = format!("it stands still: {reads} reads gave the same value");
            self.spoils("stands-still", text);
        }
        if reads < asked {
            let text = format!("{reads} of {asked} reads were made {place} before the time was up");
            self.warns("incomplete", text);
        }
    }

    fn vouched_for(&mut self, clock: &Clock) {
        const TSC: &str = "tsc";
        let available = clock.available.as_deref().unwrap_or_default();
        let dropped = clock.available.is_some() && !available.iter().any(|source| source == TSC);
        match clock.source.as_deref() {
            _ if dropped => {
                let left = available.join(", ");
                let text = format!(
                    "the kernel has dropped it from its clock sources ({left}); its log says why"
                );
                self.spoils("dropped", text);
            }
            None => self.warns(
                "clock-source-unknown",
                "the kernel does not tell its clock source",
            ),
            Some(TSC) => {}
            Some(other) => {
                let text = format!("the kernel keeps its time by {other}, not by the TSC");
                self.warns("other-clock-source", text);
            }
        }
        if clock.invariant_tsc == Some(true) {
            let flags = [
                ("constant", clock.constant_tsc),
                ("nonstop", clock.nonstop_tsc),
            ];
            for (flag, _) in flags.into_iter().filter(|(_, has)| *has == Some(false)) {
                let text = format!(
                    "the kernel does not find it {flag}, though the processor calls it invariant"
                );
                self.warns("flag-missing", text);
            }
        } else if clock.source.as_deref() == Some(TSC) {
            let text =
                "the processor does not call it invariant; only the kernel keeps its time by it";
            self.warns("not-invariant", text);
        } else {
            let text = "the processor does not call it invariant, and the kernel does not keep its time by it";
            self.spoils("nobody-vouches", text);
        }
    }

    fn rated(&mut self, report: &Report) {
        let measured = report.frequencies.by(FrequencySource::Calibration);
        if let Some(why) = measured.and_then(|it| it.missing.as_ref()) {
            self.spoils("rate-unsettled", format!("its rate does not settle: {why}"));
        }
        let uncertainty = measured.and_then(|it| it.uncertainty_ppm);
        if let Some(ppm) = uncertainty.filter(|ppm| *ppm > UNCERTAIN_RATE_PPM) {
            let text = format!("its rate was measured to {ppm:.0} ppm only: the machine is busy");
            self.warns("rate-uncertain", text);
        }
        let disagreement = report.frequencies.disagreement;
        if let Some(farthest) = disagreement.filter(|it| it.ppm > DISAGREEING_PPM) {
            let text = format!(
                "its rate is {:.0} ppm higher by one source ({}) than by another ({})",
                farthest.ppm,
                farthest.highest.title(),
                farthest.lowest.title()
            );
            let weighs = heavy_if(farthest.ppm > CONTRADICTING_PPM);
            self.add(weighs, "rates-differ", text);
        }
        // Where nothing settled to compare it with, that is told above.
        let compared = report.rate.filter(|rate| rate.given_off_ppm.is_some());
        if let Some(doubt) = compared.and_then(|rate| rate.doubt()) {
            self.warns("given-rate", doubt);
        }
    }

    fn apart(&mut self, each: &CpuOffset, other: usize, hertz: Option<f64>) {
        let cpu = each.cpu;
        let found = match &each.offset {
            Finding::Found(found) => found,
            Finding::Missing(why) => {
                let text = format!("the offset of CPU {cpu} is not known: {why}");
                return self.warns("offset-missing", text);
            }
        };
        if found.backward_steps > 0 {
            let text = format!(
                "on CPU {other} it went backwards in {} of {} exchanges with CPU {cpu}",
                found.backward_steps, found.exchanges
            );
            self.spoils("backwards-in-exchange", text);
        }
        let (Some(offset), Some(uncertainty), Some(hertz)) =
            (each.offset_ns, each.uncertainty_ns, hertz)
        else {
            // Without a rate; that is a reason by itself.
            return;
        };
        if found.changes() {
            let ns = found.contradiction_ticks as f64 * 1e9 / hertz;
            let text = format!(
                "the offset of CPU {cpu} changed by {ns:.0} ns or more while it was measured"
            );
            self.spoils("offset-changes", text);
        } else if found.proven_ticks() > 0.0 {
            let text = format!(
                "CPU {cpu} is {offset:+.0} ns off CPU {other}, with an uncertainty of {uncertainty:.0} ns"
            );
            let weighs = heavy_if(offset.abs() - uncertainty > SPOILING_OFFSET_NS);
            self.add(weighs, "cpus-differ", text);
        }
        if uncertainty > UNCERTAIN_OFFSET_NS {
            let text = format!(
                "the offset of CPU {cpu} is known to {uncertainty:.0} ns only: the machine is busy, or the CPUs are far apart"
            );
            self.warns("offset-uncertain", text);
        }
    }

    fn below(&mut self, found: &Virtualisation) {
        if found.emulated == Some(true) {
            let text = "the processor is emulated in software, and its counter with it: figures test the tool only";
            self.warns("emulated", text);
        } else if found.guest == Some(true) {
            let name = found.hypervisor.as_deref().unwrap_or("of unknown make");
            let text = format!(
                "a hypervisor ({name}) stands in between: it may offset or scale the counter, and a migration to another host \
                 changes both"
            );
            self.warns("guest", text);
        }
    }
}

fn heavy_if(heavy: bool) -> Verdict {
    if heavy {
        NotToBeTrusted
    } else {
        UsableWithCare
    }
}

#[cfg(test)]
mod tests {
    //! Each reason, found on a made-up machine on which everything else is well. Its counter runs at 1 GHz, so that a
    //! count is a nanosecond.

    use super::*;
    use crate::bench::clock::trust::CpuOffsets;
    use crate::bench::clock::trust::reads::{BackwardStep, Crossed};
    use crate::rig::exchange::Offset;
    use crate::time::trust::frequency::Frequencies;
    use crate::time::{Calibration, TscKilohertz, TscRate};

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
                frequencies: Frequencies::compare(Ok(Calibration::of(1e9)), []),
                rate: TscRate::decide(None, Ok(Calibration::of(1e9))).ok(),
                offsets: Finding::Missing("one CPU".to_owned()),
                migrations: Finding::Found(Crossed {
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

        fn crossed(&mut self) -> &mut Crossed {
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
            self.rate = TscRate::decide(given, Ok(Calibration::of(1e9))).ok();
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
        assert_eq!(
            (judged.verdict, found.weighs),
            (weighs, weighs),
            "{expected}"
        );
        assert!(
            found.reason == reason && found.text.contains(told),
            "{found:?}"
        );
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

    #[test]
    fn what_is_not_to_be_trusted_says_why() {
        let spoils = |expected, change| only(NotToBeTrusted, expected, change);
        spoils(
            "backwards: from CPU to CPU: 3 times in 1000 reads, by up to 77 counts",
            |it| {
                step_back(&mut it.crossed().monotony);
            },
        );
        spoils("backwards: on all CPUs: 3 times", |it| {
            step_back(it.shared())
        });
        spoils("stands-still: 1000 reads gave", |it| {
            it.shared().repeated = 999
        });
        spoils("dropped: sources (hpet)", |it| {
            it.clock.available = Some(vec!["hpet".to_owned()]);
        });
        spoils("rates-differ: 20000 ppm", |it| it.other_rate(1.02e9));
        spoils("rate-unsettled: not settle: too busy", |it| {
            it.frequencies = Frequencies::compare(Err("too busy".to_owned()), []);
            it.rate = None;
        });
        spoils("cpus-differ: 130 ns", |it| it.offset(130.5, 60, |_| ()));
        spoils("offset-changes: by 61 ns or more", |it| {
            it.offset(0.0, 60, |it| it.contradiction_ticks = 61);
        });
        spoils(
            "backwards-in-exchange: on CPU 0 it went backwards in 2 of 20000",
            |it| {
                it.offset(0.0, 60, |it| it.backward_steps = 2);
            },
        );
    }

    #[test]
    fn what_is_usable_with_care_says_why() {
        let warns = |expected, change| only(UsableWithCare, expected, change);
        warns("incomplete: 400 of 1000 reads", |it| {
            it.shared().reads = 400
        });
        warns("wrong-cpu-names: in 5 stays", |it| {
            it.crossed().wrong_cpu_names = Some(5);
        });
        warns("few-crossings: only 999 of 1000", |it| {
            it.shared().crossings = 999
        });
        warns("other-clock-source: by hpet", |it| {
            it.clock.source = Some("hpet".to_owned());
        });
        warns("clock-source-unknown: not tell", |it| {
            it.clock.source = None
        });
        warns("not-invariant: only the kernel", |it| {
            it.clock.invariant_tsc = Some(false);
        });
        warns("flag-missing: nonstop", |it| {
            it.clock.nonstop_tsc = Some(false)
        });
        warns(
            "rates-differ: by one source (hypervisor's CPUID) than by another (calibration)",
            |it| {
                it.other_rate(1.0006e9);
            },
        );
        warns("rate-uncertain: 150 ppm", |it| {
            let mut vague = Calibration::of(1e9);
            vague.uncertainty_ppm = 150.0;
            it.frequencies = Frequencies::compare(Ok(vague), []);
        });
        warns("given-rate: --tsc-khz 1002000 is +2000 ppm", |it| {
            it.given(1_002_000)
        });
        warns(
            "cpus-differ: CPU 1 is -130 ns off CPU 0, with an uncertainty of 30 ns",
            |it| {
                it.offset(-130.0, 60, |_| ());
            },
        );
        warns("offset-uncertain: 1001 ns only", |it| {
            it.offset(0.0, 2002, |_| ())
        });
        warns("offset-missing: not known: no answer", |it| {
            it.apart(Finding::Missing("no answer".to_owned()));
        });
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
        assert_eq!(json["verdict"], "not-to-be-trusted");
        let of = |at: usize, key: &str| json["reasons"][at][key].as_str().unwrap().to_owned();
        assert_eq!(
            [of(0, "weighs"), of(0, "reason")],
            ["not-to-be-trusted", "nobody-vouches"]
        );
        assert_eq!(
            [of(1, "weighs"), of(1, "reason")],
            ["usable-with-care", "other-clock-source"]
        );
    }
}
