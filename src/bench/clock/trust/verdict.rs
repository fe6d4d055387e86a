//! What the findings come to: trusted, usable with care, or not to be trusted, with the reasons.

use serde::Serialize;

use super::{CpuOffset, Finding, Report, hertz};
use crate::host::fingerprint::{Clock, Virtualisation};
use crate::time::trust::frequency::FrequencySource;
use crate::time::trust::monotony::Monotony;
use crate::time::{RateDoubt, TscRate};

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

/// Whether to trust the counter.
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
    /// The verdict in words.
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
    /// In words.
    pub text: String,
}

/// The verdict, with what speaks against the counter.
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

    fn watched(&mut self, report: &Report) {
        if let Some(found) = report.migrations.found() {
            let place = "in a thread moved from CPU to CPU";
            self.monotonous(place, found.asked_reads, &found.monotony);
        }
        if let Some(found) = report.shared.found() {
            let place = "between threads on all CPUs";
            self.monotonous(place, found.asked_reads, &found.monotony);
            let (crossings, reads) = (found.monotony.crossings, found.monotony.reads);
            if crossings < LEAST_CROSSINGS {
                let text = format!(
                    "only {crossings} of {reads} reads between threads followed another CPU's: the machine is busy, or \
                     --trust-reads too few"
                );
                self.add(UsableWithCare, "few-crossings", text);
            }
        }
        let named = report.migrations.found();
        if let Some(stays @ 1..) = named.and_then(|it| it.wrong_cpu_names) {
            let text = format!(
                "TSC_AUX named another CPU in {stays} stays: rdtscp does not tell where it was read"
            );
            self.add(UsableWithCare, "wrong-cpu-names", text);
        }
    }

    fn monotonous(&mut self, place: &str, asked: u64, found: &Monotony) {
        let (reads, steps) = (found.reads, found.backward_steps);
        if steps > 0 {
            let largest = found.largest();
            let text = format!(
                "it went backwards {place}: {steps} times in {reads} reads, by up to {largest} counts"
            );
            self.add(NotToBeTrusted, "backwards", text);
        }
        if found.stood_still() {
            let text = format!("it stands still: {reads} reads gave the same value");
            self.add(NotToBeTrusted, "stands-still", text);
        }
        if reads < asked {
            let text = format!("{reads} of {asked} reads were made {place} before the time was up");
            self.add(UsableWithCare, "incomplete", text);
        }
    }

    fn vouched_for(&mut self, clock: &Clock) {
        const TSC: &str = "tsc";
        let sources = clock.available.as_ref();
        if let Some(left) = sources.filter(|all| !all.iter().any(|source| source == TSC)) {
            let text = format!(
                "the kernel has dropped it from its clock sources ({}); its log says why",
                left.join(", ")
            );
            self.add(NotToBeTrusted, "dropped", text);
        } else {
            match clock.source.as_deref() {
                None => {
                    let text = "the kernel does not tell its clock source";
                    self.add(UsableWithCare, "clock-source-unknown", text);
                }
                Some(TSC) => {}
                Some(other) => {
                    let text = format!("the kernel keeps its time by {other}, not by the TSC");
                    self.add(UsableWithCare, "other-clock-source", text);
                }
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
                self.add(UsableWithCare, "flag-missing", text);
            }
        } else if clock.source.as_deref() == Some(TSC) {
            let text =
                "the processor does not call it invariant; only the kernel keeps its time by it";
            self.add(UsableWithCare, "not-invariant", text);
        } else {
            let text = "the processor does not call it invariant, and the kernel does not keep its time by it";
            self.add(NotToBeTrusted, "nobody-vouches", text);
        }
    }

    fn rated(&mut self, report: &Report) {
        let measured = report.frequencies.by(FrequencySource::Calibration);
        if let Some(why) = measured.and_then(|it| it.missing.as_ref()) {
            let text = format!("its rate does not settle: {why}");
            self.add(NotToBeTrusted, "rate-unsettled", text);
        }
        let uncertainty = measured.and_then(|it| it.uncertainty_ppm);
        if let Some(ppm) = uncertainty.filter(|ppm| *ppm > UNCERTAIN_RATE_PPM) {
            let text = format!("its rate was measured to {ppm:.0} ppm only: the machine is busy");
            self.add(UsableWithCare, "rate-uncertain", text);
        }
        let disagreement = report.frequencies.disagreement;
        if let Some(farthest) = disagreement.filter(|it| it.ppm > DISAGREEING_PPM) {
            let weighs = if farthest.ppm > CONTRADICTING_PPM {
                NotToBeTrusted
            } else {
                UsableWithCare
            };
            let text = format!(
                "its rate is {:.0} ppm higher by one source ({}) than by another ({})",
                farthest.ppm,
                farthest.highest.title(),
                farthest.lowest.title()
            );
            self.add(weighs, "rates-differ", text);
        }
        // That nothing settled is told above.
        if let Some(doubt @ RateDoubt::Off { .. }) = report.rate.as_ref().and_then(TscRate::doubt) {
            self.add(UsableWithCare, "given-rate", doubt.to_string());
        }
    }

    fn apart(&mut self, each: &CpuOffset, other: usize, hertz: Option<f64>) {
        let cpu = each.cpu;
        let found = match &each.offset {
            Finding::Found(found) => found,
            Finding::Missing(why) => {
                let text = format!("the offset of CPU {cpu} is not known: {why}");
                return self.add(UsableWithCare, "offset-missing", text);
            }
        };
        if found.backward_steps > 0 {
            let text = format!(
                "on CPU {other} it went backwards in {} of {} exchanges with CPU {cpu}",
                found.backward_steps, found.exchanges
            );
            self.add(NotToBeTrusted, "backwards-in-exchange", text);
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
            self.add(NotToBeTrusted, "offset-changes", text);
        } else if found.proven_ticks() > 0.0 {
            let weighs = if offset.abs() - uncertainty > SPOILING_OFFSET_NS {
                NotToBeTrusted
            } else {
                UsableWithCare
            };
            let text = format!(
                "CPU {cpu} is {offset:+.0} ns off CPU {other}, with an uncertainty of {uncertainty:.0} ns"
            );
            self.add(weighs, "cpus-differ", text);
        }
        if uncertainty > UNCERTAIN_OFFSET_NS {
            let text = format!(
                "the offset of CPU {cpu} is known to {uncertainty:.0} ns only: the machine is busy, or the CPUs are far apart"
            );
            self.add(UsableWithCare, "offset-uncertain", text);
        }
    }

    fn below(&mut self, found: &Virtualisation) {
        if found.emulated == Some(true) {
            let text = "the processor is emulated in software, and its counter with it: figures test the tool only";
            self.add(UsableWithCare, "emulated", text);
        } else if found.guest == Some(true) {
            let name = found.hypervisor.as_deref().unwrap_or("of unknown make");
            let text = format!(
                "a hypervisor ({name}) stands in between: it may offset or scale the counter, and a migration to another host \
                 changes both"
            );
            self.add(UsableWithCare, "guest", text);
        }
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
