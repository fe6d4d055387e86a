//! Findings that several benchmarks make: of places, pages, idle states, CPU quotas and the rate of the counter.

use std::io;

use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::Compromise;
use crate::host::throttling::ThrottlingRecord;
use crate::results::finding::{Finding, kinds};
use crate::stats::resolvable;
use crate::time::{RateDoubt, TscRate};

/// What a placement has less than it should.
pub fn of_placement(compromises: &[Compromise]) -> impl Iterator<Item = Finding> {
    compromises.iter().map(|compromise| match compromise {
        Compromise::SingleCpu { cpu } => {
            Finding::of(&kinds::SINGLE_CPU).listed("cpu", cpu.to_string())
        }
        Compromise::SharedCpu { first, second, cpu } => Finding::of(&kinds::SHARED_CPU)
            .listed("threads", format!("{first} and {second} (CPU {cpu})")),
        Compromise::SmtSiblings {
            first,
            first_cpu,
            second,
            second_cpu,
        } => Finding::of(&kinds::SMT_SIBLINGS).listed(
            "threads",
            format!("{first} (CPU {first_cpu}) and {second} (CPU {second_cpu})"),
        ),
        Compromise::NumaRemote {
            role,
            option,
            cpu,
            cpu_node,
            device_node,
        } => Finding::of(&kinds::NUMA_REMOTE)
            .listed(
                "threads",
                format!("{role} (CPU {cpu} of node {cpu_node}, device on node {device_node})"),
            )
            .listed("options", *option),
        Compromise::EfficiencyCore { role, option, cpu } => Finding::of(&kinds::EFFICIENCY_CORE)
            .listed("threads", format!("{role} (CPU {cpu})"))
            .listed("options", *option),
        Compromise::NoCoreLeft { role } => {
            Finding::of(&kinds::NO_CORE_LEFT).listed("threads", *role)
        }
        Compromise::SupervisorShares => Finding::of(&kinds::SUPERVISOR_SHARES),
    })
}

/// Buffers that were to be in huge pages and are not.
pub fn of_pages(what: &str, policy: HugePagePolicy, worst: PageKind) -> Option<Finding> {
    let is_small = policy == HugePagePolicy::Try && worst != PageKind::Huge;
    is_small.then(|| {
        Finding::of(&kinds::SMALL_PAGES)
            .listed("what", what)
            .listed("pages", worst.describe())
    })
}

/// Idle states that could not be held off.
pub fn of_idle_states(error: &io::Error) -> Finding {
    Finding::of(&kinds::IDLE_STATES).listed("error", error.to_string())
}

/// From this share of the time on, stops make figures useless. What is measured at a rate, or over and over, meets a
/// stop as often as the share of the time that stops take: from 1 % on, p99 is one of them, and what passes in a second
/// is that much too low. Below, they are in p99.9 and the maximum only.
const STOPPED_TOO_LONG: f64 = 0.01;
/// From this share of the periods on as well, however short the stops are: the group uses its quota up as a rule, so
/// that a run under another load has other figures. Of a few periods a share has no meaning.
const STOPPED_TOO_OFTEN: f64 = 0.1;
const FEW_PERIODS: u64 = 5;

/// CPU quotas that stopped this process while it measured, or may have. `priority`: that of the threads that measure.
pub fn of_throttling(found: &ThrottlingRecord, priority: Option<u8>) -> Vec<Finding> {
    let group = found.group;
    let of_time = found.most_of_a_thread_ns() as f64 / found.elapsed_ns.max(1) as f64;
    let of_periods = group.throttled as f64 / group.periods.max(1) as f64;
    let is_often = of_periods >= STOPPED_TOO_OFTEN && group.throttled >= FEW_PERIODS;
    let kind = match priority {
        // The quota is one of the scheduler for ordinary threads.
        Some(_) => &kinds::THROTTLED_BESIDE,
        None if of_time >= STOPPED_TOO_LONG || is_often => &kinds::THROTTLED,
        None => &kinds::THROTTLED_BRIEFLY,
    };
    let stopped = (group.throttled > 0).then(|| {
        Finding::of(kind)
            .count("throttled", group.throttled)
            .count("periods", group.periods)
            .count("throttled_ns", group.throttled_ns)
            .measure("of_time", (of_time * 1e5).round() / 1e3)
    });
    let unknown = found.unknown.as_ref().filter(|_| priority.is_none());
    stopped.into_iter().chain(unknown.map(of_unknown)).collect()
}

/// The same where stops are what is measured. The counts are of all CPUs that are watched at once: of each they are no
/// others, and do not add up.
pub fn of_throttled_watch(found: &ThrottlingRecord, priority: Option<u8>) -> Vec<Finding> {
    let kind = match priority {
        Some(_) => &kinds::THROTTLED_BESIDE,
        None => &kinds::THROTTLED_WATCH,
    };
    let stopped = (found.group.throttled > 0).then(|| {
        Finding::of(kind)
            .measure("throttled", found.group.throttled as f64)
            .measure("periods", found.group.periods as f64)
            .measure("throttled_ns", found.group.throttled_ns as f64)
    });
    let unknown = found.unknown.as_ref().filter(|_| priority.is_none());
    stopped.into_iter().chain(unknown.map(of_unknown)).collect()
}

fn of_unknown(reason: &String) -> Finding {
    Finding::of(&kinds::THROTTLING_UNKNOWN).listed("reasons", reason)
}

/// Why a rate of the counter is in doubt.
pub fn of_rate(rate: &TscRate) -> Option<Finding> {
    let kind = match rate.doubt()? {
        RateDoubt::Given => kinds::TSC_RATE,
        RateDoubt::Firmware => kinds::FIRMWARE_RATE,
        RateDoubt::NotCompared => kinds::RATE_NOT_COMPARED,
    };
    let khz = |hertz: f64| hertz / 1e3;
    let mut found = Finding::of(&kind).listed("given", format!("{:.0}", khz(rate.hertz)));
    if let Some((measured, off)) = rate.measured.zip(rate.given_off_ppm) {
        found = found
            .measure("measured_khz", khz(measured.hertz))
            .measure("off_ppm", off);
    }
    Some(found)
}

/// A rate may be off the one asked for by so much.
const RATE_KEPT: f64 = 1e-3;

/// A rate beside the one that was asked for.
#[derive(Debug, Clone, Copy)]
pub struct ComparedRate {
    /// What was done at it, in words.
    pub what: &'static str,
    /// What was asked for, in a second.
    pub asked: f64,
    /// What was done, in a second.
    pub found: f64,
    /// Intervals that it is over.
    pub intervals: u64,
    /// By how much it may be off as the time that it is over begins and ends anywhere in an interval, as a share of it.
    pub uncertainty: f64,
    /// By how much an interval is off the mean, as a share of it, where intervals are random.
    pub deviation: f64,
    /// A step of the clock, as a share of the time that it is over.
    pub clock_step: f64,
    /// The share that did not go through, or not in time, as another finding states.
    pub stated: f64,
}

impl ComparedRate {
    /// Without random intervals, by a clock that is fine enough.
    pub fn new(what: &'static str, asked: f64, found: f64, intervals: u64) -> Self {
        ComparedRate {
            what,
            asked,
            found,
            intervals,
            uncertainty: 0.0,
            deviation: 0.0,
            clock_step: 0.0,
            stated: 0.0,
        }
    }

    /// Whether what another finding states is at least half of the reason for being off by this share.
    pub fn is_stated(&self, off: f64) -> bool {
        off < 0.0 && self.stated >= -off / 2.0
    }

    /// By how much it is off, as a share of what was asked for.
    pub fn off(&self) -> f64 {
        self.found / self.asked - 1.0
    }

    /// Whether it is off by more than it may be.
    pub fn is_off(&self) -> bool {
        self.off().abs() > RATE_KEPT + self.uncertainty
    }

    /// Where it is off, with the reason: chance, the clock, or the one that `why` gives of a rate that is off by so much.
    pub fn finding(self, why: impl FnOnce(f64) -> String) -> Option<Finding> {
        if !self.is_off() {
            return None;
        }
        let off = self.off();
        // Four standard deviations of a mean.
        let of_chance = 4.0 * self.deviation / (self.intervals.max(1) as f64).sqrt();
        let why = if off.abs() <= of_chance {
            "random intervals have the rate only on average of many".to_owned()
        } else if off.abs() <= self.clock_step {
            "the clock is too coarse for so short a round".to_owned()
        } else {
            why(off)
        };
        let rounded = (1e5 * off).round() / 1e3;
        let found = Finding::of(&kinds::RATE_MISSED).measure("off", rounded);
        Some(found.listed("what", self.what).listed("why", why))
    }
}

/// Where what went in, or came out, was at another rate than was asked for. Of what came out only where it was at another
/// rate than what went in; `why` has the reason of one that is off by so much, by whether it is what went in. Of one
/// that another finding explains there is none.
pub fn of_rates(
    sent: Option<ComparedRate>,
    received: Option<ComparedRate>,
    why: impl Fn(bool, f64) -> String,
) -> Vec<Finding> {
    let is_off = sent.is_some_and(|sent| sent.is_off());
    let of_sent = sent.filter(|sent| !sent.is_stated(sent.off()));
    let of_sent = of_sent.and_then(|sent| sent.finding(|off| why(true, off)));
    let went_in = sent.map_or(1.0, |sent| 1.0 + sent.off());
    let of_received = received.and_then(|received| {
        let beyond = (1.0 + received.off()) / went_in - 1.0;
        let is_explained = is_off && beyond.abs() <= RATE_KEPT || received.is_stated(beyond);
        let found = received.finding(|_| why(false, beyond));
        found.filter(|_| !is_explained)
    });
    of_sent.into_iter().chain(of_received).collect()
}

/// Where so few samples cannot distinguish percentiles, of which the lowest is first, from the maximum; `options` give
/// more samples.
pub fn of_percentiles(
    percentiles: impl IntoIterator<Item = f64>,
    samples: u64,
    options: &str,
) -> Option<Finding> {
    let mut percentiles = percentiles.into_iter();
    let lowest = percentiles.find(|percent| !resolvable(*percent, samples))?;
    (samples > 0).then(|| {
        Finding::of(&kinds::PERCENTILES_UNRESOLVED)
            .listed("lowest", format!("p{lowest}"))
            .measure("samples", samples as f64)
            .listed("options", options)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::throttling::Throttling;
    use crate::results::finding::{Findings, Severity};
    use crate::testing::Has as _;
    use crate::time::RateSource;

    #[test]
    fn a_rate_that_is_off_has_its_reason() {
        let told = |found, change: fn(&mut ComparedRate)| {
            let mut rate = ComparedRate::new("messages were posted", 1e6, found, 10_000);
            change(&mut rate);
            let found = rate.finding(|off| format!("it is {off:.3} off"));
            assert_eq!(found.is_some(), rate.is_off());
            found.map(|found| found.line(1))
        };
        assert_eq!(told(1.0009e6, |_| {}), None);
        assert_eq!(told(0.9991e6, |_| {}), None);
        let words = ["messages were posted", " 1 %", "it is 0.010 off"];
        told(1.01e6, |_| {}).unwrap().has(&words);
        told(0.9e6, |_| {})
            .unwrap()
            .has(&["-10 %", "it is -0.100 off"]);
        assert_eq!(told(1.01e6, |rate| rate.uncertainty = 0.01), None);
        // Four hundredths, of as many intervals that have a deviation of their own length.
        let random: fn(&mut ComparedRate) = |rate| rate.deviation = 1.0;
        told(1.03e6, random).unwrap().has(&["random"]);
        told(1.05e6, random).unwrap().has(&["it is 0.050 off"]);
        told(1.05e6, |rate| rate.clock_step = 0.06)
            .unwrap()
            .has(&["too coarse"]);
    }

    #[test]
    fn what_comes_out_is_compared_with_what_went_in_as_well() {
        let found = |sent, received| {
            let [sent, received] = [("went in", sent), ("came out", received)]
                .map(|(what, found)| Some(ComparedRate::new(what, 1e3, found, 9)));
            let found = of_rates(sent, received, |is_sent, off| format!("{is_sent} {off:.2}"));
            let lines = found.iter().map(|found| found.line(1));
            lines.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(found(1e3, 1e3), "");
        found(9e2, 9e2).has(&["went in", "true -0.10"]);
        assert!(!found(9e2, 9e2).contains("came out"));
        found(1e3, 9e2).has(&["came out", "false -0.10"]);
        // Both too low, and what comes out even more; too low and too high.
        found(9e2, 8.1e2).has(&["true -0.10", "false -0.10"]);
        found(9e2, 1.1e3).has(&["true -0.10", " 10 %", "false 0.22"]);
    }

    #[test]
    fn what_another_finding_states_explains_a_rate_if_it_is_half_of_it() {
        let found = |sent, of_sent, received, of_received| {
            let rates = [
                ("went in", sent, of_sent),
                ("came out", received, of_received),
            ];
            let [sent, received] = rates.map(|(what, found, stated)| {
                let rate = ComparedRate::new(what, 1e3, found, 9);
                Some(ComparedRate { stated, ..rate })
            });
            let found = of_rates(sent, received, |is_sent, off| format!("{is_sent} {off:.2}"));
            let lines = found.iter().map(|found| found.line(1));
            lines.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(found(9e2, 0.06, 9e2, 0.0), "");
        assert_eq!(found(1e3, 0.0, 9e2, 0.06), "");
        assert_eq!(found(9e2, 0.06, 8.1e2, 0.06), "");
        found(9e2, 0.04, 9e2, 0.0).has(&["went in"]);
        found(1e3, 0.0, 9e2, 0.04).has(&["came out"]);
        // Of what came out only what is beyond; what is missing makes no rate higher.
        found(9e2, 0.06, 8.1e2, 0.04).has(&["false -0.10"]);
        found(1.1e3, 0.5, 1.1e3, 0.5).has(&["true 0.10"]);
        found(1e3, 0.0, 1.1e3, 0.5).has(&["false 0.10"]);
    }

    #[test]
    fn each_compromise_is_a_finding_with_its_threads() {
        let (first, second) = ("sender", "receiver");
        let (option, role) = ("--sender-cpu", "sender");
        let device_node = 1;
        for (compromise, kind, text) in [
            (
                Compromise::SingleCpu { cpu: 0 },
                kinds::SINGLE_CPU,
                "only CPU (0)",
            ),
            (
                Compromise::SharedCpu {
                    first,
                    second,
                    cpu: 3,
                },
                kinds::SHARED_CPU,
                "sender and receiver (CPU 3)",
            ),
            (
                Compromise::SmtSiblings {
                    first,
                    first_cpu: 1,
                    second,
                    second_cpu: 5,
                },
                kinds::SMT_SIBLINGS,
                "sender (CPU 1) and receiver (CPU 5)",
            ),
            (
                Compromise::NumaRemote {
                    role,
                    option,
                    cpu: 2,
                    cpu_node: 0,
                    device_node,
                },
                kinds::NUMA_REMOTE,
                "name CPUs of the device's node with --sender-cpu",
            ),
            (
                Compromise::EfficiencyCore {
                    role,
                    option,
                    cpu: 9,
                },
                kinds::EFFICIENCY_CORE,
                "sender (CPU 9)",
            ),
            (
                Compromise::NoCoreLeft { role },
                kinds::NO_CORE_LEFT,
                "left for the sender",
            ),
            (
                Compromise::SupervisorShares,
                kinds::SUPERVISOR_SHARES,
                "rest of the process",
            ),
        ] {
            let found = of_placement(&[compromise]).next().unwrap();
            assert_eq!(found.kind, kind.id);
            found.line(1).has(&[text]);
            assert!(!found.line(1).contains('{'), "{}", found.line(1));
        }
    }

    #[test]
    fn throttling_is_graded_by_its_share() {
        let of = |throttled, periods, ms: u64| ThrottlingRecord {
            group: Throttling {
                periods,
                throttled,
                throttled_ns: ms * 1_000_000,
            },
            period_ns: 100_000_000,
            elapsed_ns: periods * 100_000_000,
            unknown: None,
        };
        let kinds_of = |found: &ThrottlingRecord, priority| {
            let all = of_throttling(found, priority);
            all.into_iter().map(|found| found.kind).collect::<Vec<_>>()
        };
        for (throttled, periods, ms, kind) in [
            (0, 29, 0, None),
            (28, 29, 1980, Some(&kinds::THROTTLED)),
            // One of 3000 periods, the whole of it, on both CPUs.
            (1, 3000, 140, Some(&kinds::THROTTLED_BRIEFLY)),
            (29, 3000, 2999, Some(&kinds::THROTTLED_BRIEFLY)),
            (30, 3000, 3000, Some(&kinds::THROTTLED)),
            // Short, and often.
            (300, 3000, 30, Some(&kinds::THROTTLED)),
            (299, 3000, 30, Some(&kinds::THROTTLED_BRIEFLY)),
            (1, 2, 1, Some(&kinds::THROTTLED_BRIEFLY)),
            (1, 2, 3, Some(&kinds::THROTTLED)),
        ] {
            let found = kinds_of(&of(throttled, periods, ms), None);
            let expected = Vec::from_iter(kind.map(|kind| kind.id.to_owned()));
            assert_eq!(found, expected, "{throttled} of {periods}, {ms} ms");
        }
        let often = of(28, 29, 1980);
        let text =
            "in 28 of 29 periods: 1.98 s over all CPUs, at most 68.28 % of the time of a thread";
        of_throttling(&often, None)[0].problem.ends(text);
        // Its threads with a priority have no quota.
        assert_eq!(kinds_of(&often, Some(50)), [kinds::THROTTLED_BESIDE.id]);
        let watched = of_throttled_watch(&often, None);
        assert_eq!(watched[0].severity, Severity::Reservation);
        let mut unread = of(0, 0, 0);
        unread.unknown = Some("/x/cpu.stat: EACCES".to_owned());
        assert_eq!(kinds_of(&unread, None), [kinds::THROTTLING_UNKNOWN.id]);
        of_throttling(&unread, None)[0]
            .problem
            .has(&["unknown: /x/cpu.stat"]);
        assert!(kinds_of(&unread, Some(50)).is_empty());
    }

    #[test]
    fn rows_of_one_watch_do_not_add_its_periods_up() {
        let mut found = ThrottlingRecord::default();
        (found.group.throttled, found.group.periods) = (28, 29);
        (found.group.throttled_ns, found.unknown) = (1_980_000_000, Some("EACCES".to_owned()));
        for (priority, kinds) in [
            (None, &["throttled-watch", "throttling-unknown"][..]),
            (Some(50), &["throttled-beside"]),
        ] {
            let mut all = Findings::default();
            for cpu in ["cpu0", "cpu1"] {
                for found in of_throttled_watch(&found, priority) {
                    all.add(found, Some(cpu), Some(0));
                }
            }
            let all = all.all();
            let found: Vec<&str> = all.iter().map(|found| &*found.kind).collect();
            assert_eq!(found, kinds);
            all[0]
                .problem
                .ends("in 28 of 29 periods: 1.98 s over all CPUs");
        }
    }

    #[test]
    fn a_rate_in_doubt_is_named_with_how_far_it_is_off() {
        let rate = TscRate {
            hertz: 1.002e9,
            source: RateSource::TscKhz,
            measured: None,
            given_off_ppm: None,
        };
        let found = of_rate(&rate).unwrap();
        assert_eq!(found.kind, kinds::RATE_NOT_COMPARED.id);
        found.problem.has(&["--tsc-khz 1002000"]);
    }

    #[test]
    fn the_lowest_percentile_that_few_samples_do_not_reach_is_named() {
        let found = of_percentiles([50.0, 99.0, 99.9], 50, "--count").unwrap();
        found
            .line(1)
            .has(&["p99 and higher percentiles", "50 samples"]);
        assert_eq!(of_percentiles([50.0, 99.0], 100_000, "--count"), None);
        assert_eq!(of_percentiles([99.0], 0, "--count"), None);
    }
}
