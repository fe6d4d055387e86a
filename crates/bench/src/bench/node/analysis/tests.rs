use super::*;
use crate::bench::node::config::LogPlace;
use crate::bench::node::log::{Entries, LogWriter};
use crate::bench::node::result::{PublisherReport, SentSample, SubscriberReport};
use crate::bench::node::sample::Header;
use crate::bench::node::timer::Schedule;
use crate::node::Scenario;
use crate::time::{Posix, Ticks};

/// A sample is on its way for so long, in nanoseconds.
const WAY: u64 = 700;
/// A sample is stamped so long after its step was due.
const LATE: u64 = 40;
const PERIOD: u64 = 1000;
/// Of all publishers.
const START: u64 = 1_000_000;
/// The first sample that counts has this number: what came before was warm-up.
const FIRST: u64 = 5;

fn log<const N: usize>(rows: &[[u64; N]]) -> Entries<N> {
    let mut log = LogWriter::of_test(LogPlace::Memory, rows.len());
    rows.iter().for_each(|&row| assert!(log.push(row).unwrap()));
    log.end().unwrap()
}

/// A publisher of 10 steps that made samples at those steps, and whose node took all but those `refused`.
fn publisher(steps: &[u64], refused: &[u64]) -> PublisherReport {
    let mut schedule = Schedule::of_rate(&Posix::MONOTONIC, 1e9 / PERIOD as f64);
    schedule.begin(Ticks(START));
    let mut number = FIRST;
    let rows = steps.iter().map(|&step| {
        let is_refused = refused.contains(&step);
        let sent = SentSample {
            step,
            stamp: Ticks(START + (2 + step) * PERIOD + LATE),
            number: if is_refused { REFUSED } else { number },
        };
        number += u64::from(!is_refused);
        sent.to_words()
    });
    let rows: Vec<_> = rows.collect();
    PublisherReport {
        log: log(&rows),
        taken: number - FIRST,
        acknowledged: None,
        first: FIRST,
        late: 1,
        schedule,
        warmup_steps: 2,
        steps: 10,
        work: None,
        pool_is_whole: true,
    }
}

/// A subscriber to which those samples came: publisher, number of those that count, step.
fn subscriber(judge: &Judge<Posix>, samples: &[(u32, u64, u64)]) -> SubscriberReport {
    let rows = samples.iter().map(|&(publisher, number, step)| {
        let stamp = Ticks(START + (2 + step) * PERIOD + LATE);
        let received = ReceivedSample {
            header: Header::new(publisher, FIRST + number),
            sent_ns: judge.epoch.at(&judge.clock, stamp),
            stamp: Ticks(stamp.0 + WAY),
            intact: true,
        };
        received.to_words()
    });
    let rows: Vec<_> = rows.collect();
    SubscriberReport {
        log: log(&rows),
        overflown: 0,
        pool_is_whole: true,
    }
}

fn judge(scenario: Scenario, publishers: u32, subscribers: u32) -> Judge<Posix> {
    let clock = Posix::MONOTONIC;
    Judge {
        clock,
        epoch: Epoch::of(&clock),
        wiring: Wiring {
            scenario,
            publishers,
            subscribers,
        },
        is_far: false,
        is_timed: true,
    }
}

fn lost(publisher: u32, subscriber: Option<u32>, step: u64, cause: LossCause) -> LostSample {
    LostSample {
        publisher,
        subscriber,
        step,
        cause,
    }
}

#[test]
fn missed_refused_and_lost_samples_are_told_apart() {
    let judge = judge(Scenario::StraightRun, 1, 1);
    // Steps 3, 8 and 9 were missed, the sample of 5 was refused, that of 4 never came.
    let reports = Reports {
        publishers: vec![publisher(&[0, 1, 2, 4, 5, 6, 7], &[5])],
        subscribers: vec![subscriber(
            &judge,
            &[(0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 4, 6), (0, 5, 7)],
        )],
    };
    let outcome = judge.outcome(&reports).unwrap();
    let (missed, refused) = (LossCause::Missed, LossCause::Refused);
    assert_eq!(
        outcome.lost,
        [
            lost(0, None, 3, missed),
            lost(0, Some(0), 4, LossCause::Lost),
            lost(0, None, 5, refused),
            lost(0, None, 8, missed),
            lost(0, None, 9, missed),
        ]
    );
    assert_eq!((outcome.missed, outcome.refused, outcome.late), (3, 1, 1));
    assert_eq!((outcome.nominal, outcome.sent), (10, 6));
    let tally = &outcome.tally;
    assert_eq!((tally.sent, tally.received, tally.lost), (6, 5, 1));
    let latency = outcome.latency.summary.unwrap();
    assert_eq!(latency.count, 5);
    assert_eq!(latency.min_ns, WAY as i64);
    assert_eq!(latency.max_ns, WAY as i64);
    let intended = outcome.intended.summary.unwrap();
    assert_eq!(intended.min_ns, (WAY + LATE) as i64);
    assert_eq!(intended.max_ns, (WAY + LATE) as i64);
    // By when they were sent, and by when they were to be: within the time of all steps.
    for mut samples in outcome.by_time {
        let divided = samples.divided(std::time::Duration::from_secs(1)).unwrap();
        assert_eq!((divided.count(), divided.samples()), (1, 5));
    }
    // From step 0, when it was due, to step 7 there are five intervals for what was sent, four for what came.
    assert_eq!(
        outcome.send_rate_per_s.map(f64::round),
        Some((5e9_f64 / (7e3 + LATE as f64)).round())
    );
    assert_eq!(
        outcome.receive_rate_per_s.map(f64::round),
        Some((4e9_f64 / 7e3).round())
    );
}

#[test]
fn a_dropped_a_doubled_a_swapped_and_a_damaged_sample_are_named_as_such() {
    let judge = judge(Scenario::StraightRun, 1, 1);
    let all: Vec<u64> = (0..10).collect();
    let outcome_of = |samples: &[(u32, u64, u64)]| {
        judge
            .outcome(&Reports {
                publishers: vec![publisher(&all, &[])],
                subscribers: vec![subscriber(&judge, samples)],
            })
            .unwrap()
    };
    let whole: Vec<(u32, u64, u64)> = all.iter().map(|&step| (0, step, step)).collect();
    let clean = outcome_of(&whole);
    assert_eq!(clean.tally.received, 10);
    assert_eq!(clean.tally.lost, 0);
    assert_eq!(clean.lost.len(), 0);

    let mut dropped = whole.clone();
    dropped.remove(6);
    let outcome = outcome_of(&dropped);
    assert_eq!(outcome.lost, [lost(0, Some(0), 6, LossCause::Lost)]);
    assert_eq!((outcome.tally.duplicated, outcome.tally.reordered), (0, 0));

    let mut doubled = whole.clone();
    doubled.insert(4, whole[3]);
    let outcome = outcome_of(&doubled);
    assert_eq!((outcome.tally.duplicated, outcome.tally.lost), (1, 0));
    assert_eq!(outcome.latency.summary.unwrap().count, 10);

    let mut swapped = whole.clone();
    swapped.swap(2, 3);
    let outcome = outcome_of(&swapped);
    assert_eq!(outcome.tally.reordered, 1);
    assert_eq!(outcome.tally.lost, 0);
    assert_eq!(outcome.lost.len(), 0);

    let mut strange = whole.clone();
    strange.push((3, 0, 0));
    strange.push((0, 10, 10));
    assert_eq!(outcome_of(&strange).tally.never_sent, 2);

    let mut damaged = subscriber(&judge, &whole);
    let mut rows: Vec<_> = damaged.log.iter().map(Result::unwrap).collect();
    rows[5][3] = 0;
    damaged.log = log(&rows);
    let outcome = judge
        .outcome(&Reports {
            publishers: vec![publisher(&all, &[])],
            subscribers: vec![damaged],
        })
        .unwrap();
    assert_eq!((outcome.tally.damaged, outcome.tally.lost), (1, 0));
    assert_eq!(outcome.latency.summary.unwrap().count, 9);
}

#[test]
fn each_scenario_expects_its_copies_of_each_subscriber() {
    let all: Vec<u64> = (0..10).collect();
    let of = |publisher: u32, numbers: &[u64]| -> Vec<(u32, u64, u64)> {
        numbers
            .iter()
            .map(|&number| (publisher, number, number))
            .collect()
    };
    let outcome_of = |scenario, subscribers: &[Vec<(u32, u64, u64)>]| {
        let judge = judge(scenario, 2, 2);
        judge
            .outcome(&Reports {
                publishers: vec![publisher(&all, &[]), publisher(&all, &[])],
                subscribers: subscribers
                    .iter()
                    .map(|it| subscriber(&judge, it))
                    .collect(),
            })
            .unwrap()
    };
    let both = [of(0, &all), of(1, &all)];
    for scenario in [Scenario::StraightRun, Scenario::FanIn] {
        let outcome = outcome_of(scenario, &both);
        assert_eq!((outcome.nominal, outcome.tally.lost), (20, 0));
        // What is another's was never sent to it.
        let crossed = outcome_of(scenario, &[both[1].clone(), both[0].clone()]);
        assert_eq!((crossed.tally.never_sent, crossed.tally.lost), (20, 20));
    }
    let outcome = outcome_of(Scenario::FanOut, &[both.concat(), both[0].clone()]);
    assert_eq!((outcome.nominal, outcome.tally.lost), (40, 10));
    assert_eq!(outcome.lost[0], lost(1, Some(1), 0, LossCause::Lost));
    assert_eq!(outcome.by_subscriber, [20, 10]);

    let turns = [
        of(0, &[0, 2, 4, 6, 8]),
        [of(0, &[1, 3, 5, 7, 9]), of(1, &all[1..])].concat(),
    ];
    let outcome = outcome_of(Scenario::RoundRobin, &turns);
    assert_eq!((outcome.nominal, outcome.tally.lost), (20, 1));
    assert_eq!(outcome.lost, [lost(1, None, 0, LossCause::Lost)]);
    // What came to the other one meanwhile is in no order with it.
    assert_eq!(outcome.tally.reordered, 0);
    let mut swapped = turns;
    swapped[1].swap(0, 1);
    let outcome = outcome_of(Scenario::RoundRobin, &swapped);
    assert_eq!((outcome.tally.reordered, outcome.tally.lost), (1, 1));
}

#[test]
fn a_rate_is_that_of_the_intervals_whatever_the_number_of_samples() {
    for rate in [1, 2, 10, 200, 1000, 10_000, 1_000_000, 5_000_000] {
        let period = 1_000_000_000 / rate;
        for count in [2, 3, 100] {
            let of = |copies: u64, late: u64, factor: u64| {
                let mut span = Span::default();
                for step in 0..count {
                    // The first of them come together.
                    let at = (step * period * factor / 10).max(late);
                    (0..copies).for_each(|_| span.add(START + at));
                }
                span
            };
            let found = |copies| of(copies, 0, 10).rate_per_s(copies, START);
            let expected = [1, 4].map(|copies| Some((rate * copies) as f64));
            assert_eq!([found(1), found(4)], expected, "{count} at {rate}");
            // By a stall before the first one, which is no higher rate of those that were due from the start on.
            let stalled = of(1, (count - 2) * period, 10);
            assert_eq!(stalled.rate_per_s(1, START), Some(rate as f64));
            if count > 2 {
                let of_those_that_came = stalled.rate_per_s(1, stalled.first());
                assert!(of_those_that_came > Some(rate as f64));
            }
            // Too slow, and too fast.
            for (factor, is_faster) in [(9, true), (11, false)] {
                let off = of(1, 0, factor).rate_per_s(1, START).unwrap();
                assert!((off / rate as f64 - 10.0 / factor as f64).abs() < 1e-6);
                assert_eq!(off > rate as f64, is_faster);
            }
        }
    }
    let mut one = Span::default();
    one.add(5);
    assert_eq!(one.rate_per_s(1, START), None);
}
