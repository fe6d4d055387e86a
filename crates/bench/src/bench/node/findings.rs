//! What a run gives reason to state.

use super::point::Point;
use super::result::RunOutcome;
use crate::results::finding::{Finding, kinds};
use crate::rig::findings::{ComparedRate, of_rates};

/// More than this share of the steps being missed means that the rate was not had.
const MISSED_SHARE: f64 = 0.01;

pub(super) fn of(point: &Point, found: &RunOutcome) -> Vec<Finding> {
    let steps = found.missed + found.sent + found.refused;
    let missed = found.missed as f64 > MISSED_SHARE * steps as f64;
    let missed = if missed { found.missed } else { 0 };
    let (lost, sent) = (found.tally.lost, found.tally.sent);
    let fell_back = found.work.map(|work| work.fell_back);
    let fell_back = fell_back.filter(|it| it.count() > 0);
    let rates = of_rate(point, found, steps, missed + found.refused);
    let stated = [
        Finding::counted(&kinds::NODE_STEPS_MISSED, missed, Some(steps)),
        Finding::counted(&kinds::COPIES_LOST, lost, Some(sent)),
        Finding::counted(&kinds::SAMPLES_REFUSED, found.refused, None),
        fell_back.map(|it| Finding::of(&kinds::FELL_BACK).listed("which", it.to_string())),
    ];
    rates
        .into_iter()
        .chain(stated.into_iter().flatten())
        .collect()
}

/// Where samples went out or arrived at another rate than was asked for, and steps without a sample or lost copies,
/// which other findings state, are not the reason.
fn of_rate(point: &Point, found: &RunOutcome, steps: u64, without: u64) -> Vec<Finding> {
    let asked = point.rate_per_s * f64::from(point.wiring.publishers);
    let copies = point.wiring.copies();
    let sent = found.send_rate_per_s.map(|rate| {
        let intervals = found.sent.saturating_sub(1);
        ComparedRate {
            stated: without as f64 / steps.max(1) as f64,
            ..ComparedRate::new("samples were sent", asked, rate, intervals)
        }
    });
    let received = found.receive_rate_per_s.map(|rate| {
        let intervals = found.arrivals.saturating_sub(copies);
        ComparedRate {
            stated: found.tally.lost as f64 / (found.sent * copies).max(1) as f64,
            ..ComparedRate::new("samples arrived", asked * copies as f64, rate, intervals)
        }
    });
    let share_missed = found.missed as f64 / steps as f64;
    let doubled = found.tally.duplicated + found.tally.never_sent;
    of_rates(sent, received, |is_sent, off| match (is_sent, off < 0.0) {
        // More than half of what is missing.
        (true, true) if share_missed > -off / 2.0 => {
            format!("{} of {steps} steps were missed", found.missed)
        }
        (true, true) => "the last sample was sent late".to_owned(),
        // None is sent before its step.
        (true, false) => "the clock or the schedule is wrong".to_owned(),
        (false, true) => "the last sample arrived late".to_owned(),
        (false, false) if doubled > 0 => format!("{doubled} copies arrived that were not sent"),
        (false, false) => "the first sample arrived late".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::node::config::RunsAs;
    use crate::bench::node::microseconds::Microseconds;
    use crate::bench::node::result::LatencyDistribution;
    use crate::node::{NodeType, Scenario, Wiring};
    use crate::rig::ledger::Tally;
    use crate::stats::LatencyHistogram;
    use crate::testing::Has as _;

    /// What is told of 10000 steps of two publishers, at a thousand samples a second each.
    fn told(rates: [f64; 2], change: impl FnOnce(&mut RunOutcome)) -> Vec<String> {
        let point = Point {
            node_type: NodeType::Loopback,
            service: None,
            rate_per_s: 1e3,
            values: 1,
            wiring: Wiring::new(Scenario::FanOut, 2, 3),
            ends: RunsAs::Threads,
        };
        let times = || LatencyDistribution {
            summary: None,
            histogram: LatencyHistogram::of(&[]),
        };
        let mut outcome = RunOutcome {
            tally: Tally::default(),
            nominal: 30_000,
            sent: 10_000,
            refused: 0,
            acknowledged: None,
            missed: 0,
            late: 0,
            arrivals: 30_000,
            by_subscriber: vec![10_000; 3],
            latency: times(),
            microseconds: Microseconds::of(&[]),
            intended: times(),
            send_rate_per_s: Some(rates[0]),
            receive_rate_per_s: Some(rates[1]),
            work: None,
            lost: Vec::new(),
            crossed: Vec::new(),
            by_time: Default::default(),
        };
        change(&mut outcome);
        let found = of(&point, &outcome);
        found.iter().map(|found| found.line(1)).collect()
    }

    #[test]
    fn a_rate_that_is_not_kept_is_told_with_what_is_known_to_be_the_reason() {
        let kept = [2e3, 6e3];
        assert!(told(kept, |_| {}).is_empty());
        assert!(told([1.999e3, 5.995e3], |_| {}).is_empty());
        let (sent, arrived) = ("samples were sent", "samples arrived");
        let missed = |run: &mut RunOutcome| (run.missed, run.sent) = (50, 9950);
        let doubled = |run: &mut RunOutcome| run.tally.duplicated = 4;
        for (rates, change, words) in [
            (
                [1.99e3, 6e3],
                None,
                [sent, "-0.500 %", "last sample was sent late"],
            ),
            (
                [1.99e3, 5.97e3],
                Some(missed as fn(&mut _)),
                [sent, "-0.500 %", "50 of 10000 steps were missed"],
            ),
            // Fifty missed steps are not a tenth of the rate.
            (
                [1.8e3, 5.4e3],
                Some(missed as fn(&mut _)),
                [sent, "-10 %", "last sample was sent late"],
            ),
            ([2.1e3, 6.3e3], None, [sent, " 5 %", "schedule is wrong"]),
            (
                [2e3, 5.9e3],
                None,
                [arrived, "-1.667 %", "last sample arrived late"],
            ),
            (
                [2e3, 6.1e3],
                None,
                [arrived, "1.667 %", "first sample arrived late"],
            ),
            (
                [2e3, 6.1e3],
                Some(doubled as fn(&mut _)),
                [arrived, "1.667 %", "4 copies"],
            ),
        ] {
            let all = told(rates, |run| {
                change.into_iter().for_each(|change| change(run))
            });
            assert_eq!(all.len(), 1, "{all:?}");
            all[0].has(&words);
        }
    }

    #[test]
    fn what_is_stated_anyway_is_not_told_twice() {
        let low = [1.8e3, 5.4e3];
        let refused = told(low, |run| run.refused = 1000);
        let missed = told(low, |run| (run.missed, run.sent) = (1000, 9000));
        let lost = told([2e3, 5.4e3], |run| run.tally.lost = 3000);
        for all in [refused, missed, lost] {
            assert_eq!(all.len(), 1, "{all:?}");
            assert!(!all[0].contains("at a rate"), "{all:?}");
        }
    }

    #[test]
    fn a_few_that_are_missing_do_not_explain_a_rate() {
        let low = [1.6e3, 4.8e3];
        let lost: fn(&mut RunOutcome) = |run| run.tally.lost = 1;
        let many_lost: fn(&mut RunOutcome) = |run| run.tally.lost = 6000;
        let refused: fn(&mut RunOutcome) = |run| (run.refused, run.sent) = (1, 9999);
        let missed: fn(&mut RunOutcome) = |run| (run.missed, run.sent) = (200, 9800);
        for (rates, change, what) in [
            (low, lost, "samples were sent"),
            (low, refused, "samples were sent"),
            (low, missed, "samples were sent"),
            ([2e3, 4.8e3], lost, "samples arrived"),
            // Copies that are lost were sent.
            (low, many_lost, "samples were sent"),
        ] {
            let all = told(rates, change);
            assert_eq!(all.len(), 2, "{all:?}");
            all[0].has(&[what, "at a rate -20 % off"]);
        }
    }
}
