//! A watch over a clock that a test has written: each report is exact.

use std::collections::VecDeque;

use super::*;
use crate::bench::clock::distribution::Distribution;
use crate::bench::clock::jump::{Jump, Sample};
use crate::bench::clock::recorder::{CountingRecorder, KeepingRecorder};
use crate::bench::clock::scripted::{self, Scripted, ScriptedReadings};
use crate::buffer::{HugePagePolicy, StampBuffer};
use crate::host::counters::RisenCounters;
use crate::time::Posix;

const STEP: u64 = 20;
const BASELINE: u64 = 40;
const START: u64 = 10_000;

impl WatchTask {
    /// Of so many readings, whose baseline is 40 ticks.
    pub(in crate::bench::clock) fn made_up(readings: u64) -> Self {
        WatchTask {
            readings: Some(readings),
            block: 7,
            baseline: BASELINE,
            threshold: BASELINE,
            window: Some(1000),
            highest: false,
            keep: 1000,
            causes: true,
            until: None,
        }
    }
}

/// A watch of so many steps, some of which are jumps. The reading before the first, and one behind each way out of the
/// loop, are the watch's own and take `blind` ticks. Counters tell `told`, and take the time of `costs` to read, from
/// the reading before the first difference on, which is for nothing; both have nothing when they are used up.
#[derive(Default)]
struct ScriptedWatch {
    task: Option<WatchTask>,
    blind: u64,
    told: Vec<Deltas>,
    costs: Vec<u64>,
}

impl ScriptedWatch {
    fn over(self, readings: usize, jumps: &[(usize, u64)]) -> (WatchResult, Distribution) {
        let mut differences = vec![STEP; readings];
        jumps.iter().for_each(|&(at, jump)| differences[at] = jump);
        self.over_differences(&differences)
    }

    fn over_differences(self, differences: &[u64]) -> (WatchResult, Distribution) {
        let task = self
            .task
            .unwrap_or(WatchTask::made_up(differences.len() as u64));
        let script = self.script(&task, differences);
        self.play(script, &task)
    }

    /// The differences, with the blind time behind each way out of the loop: after the first ten, and one reading
    /// behind each difference above the limit.
    fn script(&self, task: &WatchTask, differences: &[u64]) -> ScriptedReadings {
        let mut script = vec![self.blind];
        let (mut first_ten, mut passed, mut found) = (true, 0, false);
        for (at, &difference) in differences.iter().enumerate() {
            script.push(difference);
            passed += 1;
            let above = difference > task.edge() && (!first_ten || difference > u64::MAX / 2);
            let ends = if first_ten {
                at + 1 == differences.len().min(10)
            } else {
                at + 1 == differences.len() || passed == task.block
            };
            // The pass goes on to one reading behind a difference above the limit, unless it ends with it.
            if found || (ends && (first_ten || above)) {
                script.push(self.blind);
                first_ten = false;
                (passed, found) = (0, false);
            } else if ends {
                passed = 0;
            } else {
                found = above;
            }
        }
        ScriptedReadings::of_differences(START, &script)
    }

    fn play(self, script: ScriptedReadings, task: &WatchTask) -> (WatchResult, Distribution) {
        let (watched, counted) =
            self.play_into(script, task, CountingRecorder::for_baseline(task.baseline));
        (watched, Distribution::of_counted(&counted))
    }

    fn play_into<K: Recorder>(
        self,
        script: ScriptedReadings,
        task: &WatchTask,
        recorder: K,
    ) -> (WatchResult, K) {
        let cost = self.costs.first().copied().unwrap_or(0);
        let epoch = START + 2 * (self.blind + cost);
        let mut told = VecDeque::from(self.told);
        (0..2).for_each(|_| told.push_front(Deltas::default()));
        let mut costs = VecDeque::from(self.costs);
        costs.push_front(cost);
        let script = script.behind(&[self.blind, 0]);
        let counters = || {
            scripted::pass(costs.pop_front().unwrap_or(0));
            told.pop_front().unwrap_or_default()
        };
        let (stop, seen) = (StopFlag::default(), WatchProgress::default());
        let clock = (Scripted, AnyClock::Posix(Posix::MONOTONIC));
        let watcher = Watcher::new(clock, recorder, counters, *task, (&stop, &seen)).unwrap();
        let (watched, recorder) = script.play(|| watcher.run(Ticks(epoch)));
        // Those who look on are not told of the first ten.
        if watched.readings > 10 {
            assert_eq!(seen.readings.into_inner(), watched.readings);
            assert_eq!(seen.largest.into_inner(), watched.ranking.largest);
        }
        (watched, recorder)
    }
}

impl WatchResult {
    fn each<T>(&self, of: impl Fn(&Jump) -> T) -> Vec<T> {
        self.jumps.iter().map(of).collect()
    }

    fn causes(&self) -> Vec<Cause> {
        self.each(|jump| jump.cause)
    }

    /// The sample of a jump that has one.
    fn sample(&self, at: usize) -> Sample {
        let jump = self.jumps.iter().nth(at).unwrap();
        *self.jumps.sample(jump).unwrap()
    }
}

#[test]
fn jumps_are_found_where_they_are_with_their_length() {
    for blind in [0, 900] {
        let watch = ScriptedWatch {
            blind,
            ..ScriptedWatch::default()
        };
        let (watched, distribution) = watch.over(60, &[(30, 5000), (45, 300)]);
        let found = watched.each(|jump| (jump.begin, jump.length));
        // Time between passes is blind and no jump: after the first ten, and behind each jump.
        let first = 30 * STEP + blind;
        let second = first + 5000 + 14 * STEP + blind;
        assert_eq!(found, [(first, 5000), (second, 300)]);
        assert_eq!((watched.readings, watched.time.blind), (60, 3 * blind));
        assert_eq!(watched.elapsed(), 58 * STEP + 5300 + 3 * blind);
        assert_eq!(watched.ranking.largest, 5000);
        assert_eq!(watched.first, [STEP; 10]);
        assert_eq!(distribution.count(), 60);
        assert_eq!(distribution.percentile(50.0), Some(STEP));
        assert_eq!(distribution.max(), Some(5000));
    }
}

#[test]
fn no_jump_is_lost_at_either_end_or_at_a_seam_of_two_passes() {
    for at in 0..40 {
        let (watched, distribution) = ScriptedWatch::default().over(40, &[(at, 700)]);
        let found = watched.each(|jump| (jump.begin, jump.length));
        assert_eq!(found, [(at as u64 * STEP, 700)]);
        assert_eq!((watched.readings, distribution.count()), (40, 40));
        assert_eq!(watched.ranking.windows()[0].extra, 700 - BASELINE);
        // Two in a row are two.
        let (watched, _) = ScriptedWatch::default().over(41, &[(at, 700), (at + 1, 800)]);
        assert_eq!(watched.each(|jump| jump.length), [700, 800], "from {at}");
    }
}

#[test]
fn short_runs_work() {
    for readings in 1..12 {
        let (watched, _) = ScriptedWatch::default().over(readings, &[(readings - 1, 99)]);
        assert_eq!(watched.readings, readings as u64);
        assert_eq!(watched.first.len(), readings.min(10));
        assert_eq!(watched.elapsed(), (readings as u64 - 1) * STEP + 99);
        assert_eq!(watched.jumps.iter().len(), 1, "{readings} readings");
    }
}

#[test]
fn steps_backwards_are_counted_and_taken_out_of_the_time() {
    let back = 5_000_u64.wrapping_neg();
    for at in [0, 5, 9, 10, 20, 39] {
        let (watched, distribution) = ScriptedWatch::default().over(40, &[(at, back), (30, 700)]);
        let time = &watched.time;
        assert_eq!(
            (time.steps_back, time.set_back, time.largest_step_back),
            (1, 5000, 5000)
        );
        assert_eq!(watched.ranking.largest, 700, "no wrap to a huge jump");
        let mut jumps = watched.each(|jump| (jump.cause, jump.begin));
        jumps.retain(|(cause, _)| *cause != Cause::Backward);
        let begin = (30 - u64::from(at < 30)) * STEP;
        assert_eq!(jumps.iter().map(|jump| jump.1).collect::<Vec<_>>(), [begin]);
        assert_eq!(watched.elapsed(), 38 * STEP + 700);
        assert_eq!(distribution.count(), 39);
    }
}

#[test]
fn the_ten_largest_have_their_times() {
    let task = WatchTask {
        highest: true,
        ..WatchTask::made_up(100)
    };
    let mut differences = [STEP; 100];
    (0..12).for_each(|n| differences[20 + 5 * n] = 100 + n as u64);
    // With the ten largest wanted, many differences leave the loop at first: the readings behind them go on in steps.
    let script = ScriptedReadings::of_differences(START, &[&[0][..], &differences].concat());
    let (watched, _) = ScriptedWatch::default().play(script.then_steps_of(STEP), &task);
    let highest = &watched.ranking.highest;
    assert!(highest.iter().map(|peak| peak.length).eq((102..112).rev()));
    assert!(highest.is_sorted_by(|one, next| one.begin > next.begin));
    assert_eq!(watched.readings, 100);
}

fn timers(count: u32) -> Deltas {
    let mut interrupts = RisenCounters::default();
    interrupts.push(3, count);
    Deltas {
        interrupts,
        ..Deltas::default()
    }
}

const TIMER: Cause = Cause::Interrupts([Some(3), None, None, None]);

#[test]
fn a_long_jump_is_sampled_with_its_window_and_cause() {
    let switched = Deltas {
        involuntary_switches: 1,
        ..timers(1)
    };
    let watch = ScriptedWatch {
        told: vec![timers(1), switched, Deltas::default()],
        blind: 500,
        ..ScriptedWatch::default()
    };
    let (watched, _) = watch.over(60, &[(20, 20_000), (30, 30_000), (40, 40_000)]);
    let causes = [TIMER, Cause::InvoluntarySwitch, Cause::Unexplained];
    assert_eq!(watched.causes(), causes);
    assert_eq!(
        (watched.samples, watched.not_sampled, watched.sampling),
        (3, 0, 1500)
    );
    let samples = [0, 1, 2].map(|at| watched.sample(at));
    // From the first reading to the one behind the jump; from there to the next.
    assert_eq!(samples[0].window, 22 * STEP + 20_000 - STEP + 500);
    assert_eq!(samples[1].window, 10 * STEP - STEP + 30_000 + 500);
    assert!(samples.iter().all(|sample| sample.others == 0));
}

#[test]
fn sampling_takes_a_tenth_of_the_time_at_the_most_and_the_rest_is_called_not_sampled() {
    // A jump of 2 us at every fifth reading, and a reading of counters that takes 10 us.
    let jumps: Vec<(usize, u64)> = (12..3000).step_by(5).map(|at| (at, 2000)).collect();
    let watch = ScriptedWatch {
        costs: vec![10_000; 1000],
        ..ScriptedWatch::default()
    };
    let (watched, _) = watch.over(3000, &jumps);
    assert_eq!(watched.jumps.iter().len(), jumps.len());
    assert_eq!(watched.samples + watched.not_sampled, jumps.len() as u64);
    assert!(watched.samples > 5, "{}", watched.samples);
    // Blind time earns nothing; that of one reading is there at the start.
    let most = (watched.elapsed() - watched.time.blind) / 10 + 10_000;
    assert!(watched.sampling <= most, "{}", watched.sampling);
    let samples = watched.each(|jump| watched.jumps.sample(jump).copied());
    let mut sampled = samples.into_iter().flatten().skip(1);
    assert!(sampled.all(|sample| sample.others > 0));
}

#[test]
fn interrupts_explain_a_jump_only_if_there_are_more_than_others_in_its_window() {
    // The first is sampled and takes the credit, so the second is not: it may be why the counters rose for the third.
    // It need not be above the threshold for that.
    for (threshold, jumps) in [
        (BASELINE, [(12, 100_000), (20, 50_000), (30, 900_000)]),
        (10_000, [(20, 5_000), (30, 5_000), (40, 500_000)]),
    ] {
        for (interrupts, cause) in [(1, Cause::NotToldApart), (2, TIMER)] {
            let watch = ScriptedWatch {
                task: Some(WatchTask {
                    threshold,
                    ..WatchTask::made_up(60)
                }),
                told: vec![timers(1), timers(interrupts)],
                costs: vec![20_000; 10],
                ..ScriptedWatch::default()
            };
            let (watched, _) = watch.over(60, &jumps);
            let last = watched.jumps.iter().len() - 1;
            assert_eq!(watched.causes()[last], cause);
            assert_eq!(watched.sample(last).others, 1);
            let unsampled = watched
                .causes()
                .iter()
                .filter(|it| **it == Cause::NotSampled)
                .count();
            assert_eq!(unsampled as u64, watched.not_sampled);
            assert_eq!(watched.not_sampled, u64::from(threshold == BASELINE));
        }
    }
}

#[test]
fn differences_below_the_threshold_take_their_interrupts_from_the_next_jump() {
    let watch = ScriptedWatch {
        task: Some(WatchTask {
            threshold: 10_000,
            ..WatchTask::made_up(60)
        }),
        told: vec![timers(1), Deltas::default()],
        costs: vec![500; 3],
        ..ScriptedWatch::default()
    };
    let (watched, _) = watch.over(60, &[(20, 5_000), (40, 50_000)]);
    assert_eq!(watched.causes(), [Cause::Unexplained]);
    let sample = watched.sample(0);
    // From the reading behind the lesser difference and the one after it.
    let window = 500 + 19 * STEP + 50_000;
    assert_eq!((sample.window, sample.others), (window, 0));
    assert_eq!((watched.samples, watched.not_sampled), (2, 0));
}

#[test]
fn an_interrupt_that_need_not_show_explains_no_jump_at_the_end_of_a_long_window() {
    for (length, cause) in [(6_000, Cause::NotToldApart), (60_000, TIMER)] {
        let watch = ScriptedWatch {
            task: Some(WatchTask {
                baseline: 5_000,
                threshold: 5_000,
                ..WatchTask::made_up(1000)
            }),
            told: vec![timers(1)],
            ..ScriptedWatch::default()
        };
        let mut differences = vec![2_000; 1000];
        differences[990] = length;
        let (watched, _) = watch.over_differences(&differences);
        assert_eq!(watched.causes(), [cause]);
    }
}

#[test]
fn a_stop_while_counters_are_read_is_a_jump_of_its_own() {
    const STOPPED: u64 = 3_000_000;
    let task = WatchTask {
        highest: true,
        ..WatchTask::made_up(200)
    };
    let mut differences = [STEP; 200];
    (differences[100], differences[150]) = (20_000, 30_000);
    let script = ScriptedReadings::of_differences(START, &[&[0][..], &differences].concat());
    let watch = ScriptedWatch {
        told: vec![timers(1), timers(1)],
        costs: vec![500, 500 + STOPPED, 500],
        ..ScriptedWatch::default()
    };
    let (watched, distribution) = watch.play(script.then_steps_of(STEP), &task);
    // One step of the clock, that of the reading itself, lies in it as well.
    let length = STOPPED + STEP;
    let lengths = watched.each(|jump| jump.length);
    assert_eq!(lengths, [20_000, length, 30_000]);
    // Its interrupts are found behind the next jump, and are not told from that one's.
    let causes = [TIMER, Cause::NotWatched, Cause::NotToldApart];
    assert_eq!(watched.causes(), causes);
    let begins = watched.each(|jump| jump.begin);
    assert_eq!(begins[1], begins[0] + 20_000 + STEP);
    assert_eq!(watched.sample(2).others, 1);
    let ranking = &watched.ranking;
    assert_eq!(
        (ranking.largest, ranking.highest[0].length),
        (length, length)
    );
    assert_eq!(ranking.windows()[0].extra, length - BASELINE);
    assert_eq!(watched.time.longest_blind, length + 500);
    assert!(watched.sampling < 2000 && watched.time.blind < 3000);
    assert_eq!((watched.readings, distribution.count()), (200, 200));
    assert_eq!(distribution.max(), Some(length));
}

#[test]
fn a_stop_of_20_ms_is_in_each_report_within_the_first_second() {
    const STOPPED: u64 = 20_000_000;
    const SLOW: u64 = 10_000;
    let task = |readings| WatchTask {
        highest: true,
        baseline: 2 * SLOW,
        threshold: 2 * SLOW,
        ..WatchTask::made_up(readings)
    };
    // While it watches, and behind a jump, where the counters are read: soon, later, and at the end of the second.
    for at in [3, 15, 40_000, 95_000] {
        for while_blind in [false, true] {
            let jump = if while_blind { 3 * SLOW } else { STOPPED };
            let mut differences = vec![SLOW; at + 1];
            differences[at] = jump;
            differences.extend([SLOW, if while_blind { STOPPED } else { 0 }]);
            let script =
                ScriptedReadings::of_differences(START, &[&[0][..], &differences].concat());
            let kept =
                KeepingRecorder::new(StampBuffer::new(100_000, HugePagePolicy::Off).unwrap());
            let recorder = (CountingRecorder::for_baseline(2 * SLOW), kept);
            let watch = ScriptedWatch::default();
            let (watched, (counted, kept)) =
                watch.play_into(script.then_steps_of(SLOW), &task(97_000), recorder);
            assert!(watched.elapsed() <= 1_000_000_000);
            let told = watched.each(|jump| jump.length).into_iter().max();
            let (ranking, counted) = (&watched.ranking, Distribution::of_counted(&counted));
            let kept = Distribution::of(kept.iter());
            let found = [
                Some(ranking.highest[0].length),
                Some(ranking.windows()[0].extra + 2 * SLOW),
                counted.max(),
                kept.max(),
                told,
            ];
            let right =
                |it: &Option<u64>| it.is_some_and(|it| it.abs_diff(STOPPED) <= STOPPED / 500);
            assert!(
                found.iter().all(right),
                "at {at}, blind {while_blind}: {found:?}"
            );
            assert_eq!((counted.count(), kept.count()), (97_000, 97_000));
        }
    }
}

#[test]
fn slow_readings_of_the_clock_stay_in_the_loop() {
    const SLOW: u64 = 20_000;
    let watch = ScriptedWatch {
        task: Some(WatchTask {
            baseline: 2 * SLOW,
            threshold: 2 * SLOW,
            block: 100,
            ..WatchTask::made_up(1000)
        }),
        blind: SLOW,
        ..ScriptedWatch::default()
    };
    let (watched, distribution) = watch.over_differences(&[SLOW; 1000]);
    // Behind the first ten, and never again.
    assert_eq!(watched.time.blind, SLOW);
    let median = distribution.percentile(50.0).unwrap();
    assert_eq!((distribution.count(), distribution.exact), (1000, false));
    assert!(median.abs_diff(SLOW) <= SLOW / 1000, "{median}");
}

#[test]
fn a_reading_of_counters_that_is_itself_interrupted_does_not_end_all_sampling() {
    // The reading behind the first jump takes 80 ms, four times the most credit there can be, and the stop is filed
    // by a reading of its own.
    let mut differences = vec![50];
    differences.extend([STEP; 10]);
    for blind in [&[0][..], &[80_000_000, 0], &[900], &[900]] {
        differences.extend(blind);
        differences.extend([STEP, 30_000_000, STEP]);
    }
    differences.push(0);
    let script = ScriptedReadings::of_differences(START, &differences);
    let task = WatchTask {
        block: 100,
        ..WatchTask::made_up(23)
    };
    let (watched, _) = ScriptedWatch::default().play(script, &task);
    let causes = watched.causes();
    assert_eq!((causes.len(), watched.samples), (5, 4));
    assert_eq!(causes[1], Cause::NotWatched);
}

/// The stops that are found where the parts of tidying a full store, and the reading behind it, take so long.
fn stops_while_tidied(keep: usize, readings: &[u64]) -> Vec<Jump> {
    let script = ScriptedReadings::of_differences(START, readings);
    let task = WatchTask {
        keep,
        causes: false,
        ..WatchTask::made_up(1000)
    };
    let (stop, seen) = (StopFlag::default(), WatchProgress::default());
    let clock = (Scripted, AnyClock::Posix(Posix::MONOTONIC));
    let watcher = Watcher::new(clock, |_: u64| (), Deltas::default, task, (&stop, &seen));
    let mut watcher = watcher.unwrap();
    for at in 0..keep as u64 {
        let jump = Jump::new(at, 50 + at, Cause::NotSampled);
        assert!(!watcher.watched.jumps.push(jump, None));
    }
    script.play(|| {
        let seen = watcher.clock.read();
        watcher
            .pending
            .push(Jump::new(START, 900, Cause::NotSampled));
        watcher.store(seen);
    });
    let jumps = watcher.watched.jumps.iter();
    let stops: Vec<Jump> = jumps
        .filter(|jump| jump.cause == Cause::NotWatched)
        .copied()
        .collect();
    let found: u64 = stops.iter().map(|jump| jump.length).sum();
    let passed = (readings.iter()).fold(0_u64, |sum, &each| sum.wrapping_add(each));
    assert_eq!(watcher.watched.time.blind, passed - found);
    stops
}

#[test]
fn a_stop_while_jumps_are_tidied_is_found_by_the_part_that_it_falls_into() {
    const STOPPED: u64 = 20_000_000;
    let usual = PART as u64 * 1000;
    // Choosing the length, two parts of keeping, and what is done behind them.
    let mut parts = [usual, usual, usual, 30];
    assert_eq!(stops_while_tidied(2 * PART, &parts), []);
    for at in 0..parts.len() {
        let whole = std::mem::replace(&mut parts[at], STOPPED);
        let begin = START + parts[..at].iter().sum::<u64>();
        let stop = Jump::new(begin, STOPPED - usual, Cause::NotWatched);
        let readings: Vec<u64> = parts.into_iter().chain([usual]).collect();
        assert_eq!(stops_while_tidied(2 * PART, &readings), [stop], "{at}");
        // One more, while this one is filed.
        let readings: Vec<u64> = parts.into_iter().chain([STOPPED, 30]).collect();
        let begin = START + parts.iter().sum::<u64>();
        let second = Jump::new(begin, STOPPED - usual, Cause::NotWatched);
        assert_eq!(stops_while_tidied(2 * PART, &readings), [stop, second]);
        parts[at] = whole;
    }
}

#[test]
fn a_stop_while_jumps_are_tidied_is_no_longer_than_the_time_of_a_clock_that_is_set_back_in_it() {
    const STOPPED: u64 = 20_000_000;
    const STEP_BACK: u64 = 15_000_000;
    let parts = [STOPPED, STEP_BACK.wrapping_neg(), 30, 30, 30];
    let passed = STOPPED - STEP_BACK + 60;
    let stop = Jump::new(START, passed, Cause::NotWatched);
    assert_eq!(stops_while_tidied(2 * PART, &parts), [stop]);
}
