//! A watch over a clock that a test has written: each report is exact.

use std::collections::VecDeque;

use super::*;
use crate::bench::clock::cause::Sampler;
use crate::bench::clock::distribution::Distribution;
use crate::bench::clock::jump::{Jump, Sample};
use crate::bench::clock::recorder::{Counted, Nothing};
use crate::bench::clock::scripted::{self, Script, Scripted};
use crate::host::counters::{Deltas, Risen};
use crate::time::Posix;

/// Hands out deltas, one a reading, and takes its time; nothing when they are used up.
#[derive(Default)]
struct Told {
    deltas: VecDeque<Deltas>,
    costs: VecDeque<u64>,
}

impl Sampler for Told {
    fn read(&mut self) -> Deltas {
        scripted::pass(self.costs.pop_front().unwrap_or(0));
        self.deltas.pop_front().unwrap_or_default()
    }
}

const STEP: u64 = 20;
const BASELINE: u64 = 40;

fn task(readings: u64) -> Task {
    Task {
        readings: Some(readings),
        block: 7,
        baseline: BASELINE,
        threshold: BASELINE,
        window: Some(1000),
        highest: false,
        keep: 100,
    }
}

/// Watches `differences`. The reading before the first, and one behind each way out of the loop, are the watch's own and
/// take `blind` ticks. Counters take the time of `costs` to read, from the reading before the first difference on.
struct Watch {
    task: Task,
    told: Vec<Deltas>,
    blind: u64,
    costs: Vec<u64>,
}

impl Watch {
    /// Without counters and blind time.
    fn of(task: Task) -> Self {
        Watch {
            task,
            told: Vec::new(),
            blind: 0,
            costs: Vec::new(),
        }
    }

    fn over<K: Recorder>(self, recorder: K, differences: &[u64]) -> Played<K> {
        // Two readings around the first look at the counters, which takes as long as any; then the ten and what follows.
        let script =
            Script::of_differences(10_000, &[self.blind]).with(differences, self.task, self.blind);
        let first_cost = self.costs.first().copied().unwrap_or(0);
        let mut told = Told {
            deltas: self.told.into(),
            costs: self.costs.into(),
        };
        // The first reading of counters is for nothing.
        told.deltas.push_front(Deltas::default());
        let epoch = 10_000 + self.blind + first_cost;
        played(script, recorder, &mut told, self.task, epoch)
    }
}

/// What came of a watch, and what it recorded.
struct Played<K> {
    watched: Watched,
    recorder: K,
    readings_seen: u64,
    largest_seen: u64,
}

impl<K> std::ops::Deref for Played<K> {
    type Target = Watched;
    fn deref(&self) -> &Watched {
        &self.watched
    }
}

impl<K> Played<K> {
    fn each<T>(&self, of: impl Fn(&Jump) -> T) -> Vec<T> {
        self.watched.jumps.jumps().iter().map(of).collect()
    }

    fn causes(&self) -> Vec<Cause> {
        self.each(|jump| jump.cause)
    }

    fn lengths(&self) -> Vec<u64> {
        self.each(|jump| jump.length)
    }

    /// The sample of a jump that has one.
    fn sample(&self, at: usize) -> Sample {
        let jumps = &self.watched.jumps;
        *jumps.sample(&jumps.jumps()[at]).unwrap()
    }
}

fn played<K: Recorder>(
    script: Script,
    recorder: K,
    told: &mut Told,
    task: Task,
    epoch: u64,
) -> Played<K> {
    let (stop, seen) = (StopFlag::default(), Seen::default());
    let clock = (Scripted, AnyClock::Monotonic(Posix));
    let watcher = Watcher::new(clock, recorder, told, task, (&stop, &seen)).unwrap();
    let (watched, recorder) = script.play(|| watcher.run(Ticks(epoch)));
    Played {
        watched,
        recorder,
        readings_seen: seen.readings.load(Ordering::Relaxed),
        largest_seen: seen.largest.load(Ordering::Relaxed),
    }
}

impl Script {
    /// Adds differences, and behind each way out of the loop the blind time: after the first ten, and one reading behind
    /// each difference above the limit.
    fn with(mut self, differences: &[u64], task: Task, blind: u64) -> Self {
        let mut out_at = None;
        let mut passed = 0_u64;
        let mut first_ten = true;
        for (at, &difference) in differences.iter().enumerate() {
            self.add(difference);
            passed += 1;
            let backward = (difference as i64) < 0;
            let at_end = at + 1 == differences.len();
            let ends_first_ten = first_ten && at + 1 == differences.len().min(10);
            let above = difference > task.threshold.min(task.baseline) && (!first_ten || backward);
            if out_at == Some(at) || ends_first_ten {
                self.add(blind);
                passed = 0;
                out_at = None;
                first_ten = false;
            } else if above && (at_end || passed == task.block && !first_ten) {
                // The pass ends with it: no reading behind.
                self.add(blind);
                passed = 0;
            } else if above {
                out_at = Some(at + 1);
            } else if passed == task.block && !first_ten {
                passed = 0;
            }
        }
        self
    }
}

fn differences(length: usize, jumps: &[(usize, u64)]) -> Vec<u64> {
    let mut differences = vec![STEP; length];
    for &(at, length) in jumps {
        differences[at] = length;
    }
    differences
}

fn watch(readings: u64, jumps: &[(usize, u64)], blind: u64) -> Played<Counted> {
    let watch = Watch {
        blind,
        ..Watch::of(task(readings))
    };
    watch.over(Counted::default(), &differences(readings as usize, jumps))
}

#[test]
fn jumps_are_found_where_they_are_with_their_length() {
    let watched = watch(60, &[(30, 5000), (45, 300)], 0);
    let found = watched.each(|jump| (jump.begin, jump.length));
    let second = 30 * STEP + 5000 + 14 * STEP;
    assert_eq!(found, [(30 * STEP, 5000), (second, 300)]);
    assert_eq!((watched.readings, watched.blind), (60, 0));
    assert_eq!(watched.end - watched.start, 58 * STEP + 5300);
    assert_eq!(watched.largest, 5000);
    let distribution = Distribution::of_counted(&watched.recorder);
    assert_eq!(distribution.count(), 60);
    assert_eq!(distribution.percentile(50.0), Some(STEP));
    assert_eq!(distribution.max(), Some(5000));
    assert_eq!(watched.first, [STEP; 10]);
}

#[test]
fn a_jump_at_either_end_or_at_a_seam_of_two_passes_is_not_lost() {
    for at in 0..40 {
        let watched = watch(40, &[(at, 700)], 0);
        let jumps = watched.jumps.jumps();
        assert_eq!(jumps.len(), 1, "jump at {at}");
        assert_eq!((jumps[0].begin, jumps[0].length), (at as u64 * STEP, 700));
        assert_eq!(watched.readings, 40);
        assert_eq!(watched.windows[0].extra, 700 - BASELINE);
        assert_eq!(Distribution::of_counted(&watched.recorder).count(), 40);
    }
}

#[test]
fn two_jumps_in_a_row_are_two() {
    for at in [0, 9, 10, 16, 17, 25] {
        let watched = watch(60, &[(at, 700), (at + 1, 800)], 0);
        assert_eq!(watched.lengths(), [700, 800], "from {at}");
    }
}

#[test]
fn short_runs_work() {
    for readings in 1..12 {
        let watched = watch(readings, &[], 0);
        assert_eq!(watched.readings, readings);
        assert_eq!(watched.first.len() as u64, readings.min(10));
        assert_eq!(watched.end - watched.start, readings * STEP);
        let watched = watch(readings, &[(readings as usize - 1, 99)], 0);
        assert_eq!(watched.jumps.jumps().len(), 1, "{readings} readings");
    }
}

#[test]
fn time_between_two_passes_is_blind_and_no_jump() {
    let watched = watch(60, &[(30, 5000), (45, 300)], 900);
    assert_eq!(watched.jumps.jumps().len(), 2);
    assert_eq!(watched.blind, 3 * 900);
    // The jump begins behind the blind time after the first ten.
    assert_eq!(watched.jumps.jumps()[0].begin, 30 * STEP + 900);
}

#[test]
fn steps_backwards_are_counted_and_taken_out_of_the_time() {
    let back = 5_000_u64.wrapping_neg();
    for at in [0, 5, 9, 10, 20, 39] {
        let jump = if at == 30 { 31 } else { 30 };
        let watched = watch(40, &[(at, back), (jump, 700)], 0);
        let backward = watched.backward;
        assert_eq!(
            (backward.steps, backward.total, backward.largest),
            (1, 5000, 5000)
        );
        assert_eq!(watched.largest, 700, "no wrap to a huge jump");
        let mut jumps =
            watched.each(|jump| (jump.cause == Cause::Backward, jump.begin, jump.length));
        jumps.retain(|(back, ..)| !back);
        let steps_before = jump as u64 - u64::from(at < jump);
        assert_eq!(jumps[0], (false, steps_before * STEP, 700), "step at {at}");
        assert_eq!(watched.end - watched.start, 38 * STEP + 700);
        assert_eq!(Distribution::of_counted(&watched.recorder).count(), 39);
        assert_eq!(watched.windows[0].extra, 700 - BASELINE);
    }
}

#[test]
fn windows_sum_the_parts_of_jumps_above_the_baseline() {
    let watched = watch(200, &[(20, 100), (22, 150), (58, 90), (150, 200)], 0);
    let extras: Vec<(u64, u64)> = watched
        .windows
        .iter()
        .map(|sum| (sum.jumps, sum.extra))
        .collect();
    assert_eq!(extras, [(3, 60 + 110 + 50), (1, 160)]);
}

#[test]
fn the_ten_largest_have_their_times() {
    let mut task = task(100);
    (task.highest, task.window) = (true, None);
    let jumps: Vec<(usize, u64)> = (0..12).map(|n| (20 + 5 * n, 100 + n as u64)).collect();
    // With the ten largest wanted, many differences leave the loop at first: the readings behind them go on in steps.
    let script = Script::of_differences(10_000, &[0]).with_all(&differences(100, &jumps));
    let watched = played(script, Nothing, &mut Told::default(), task, 10_000);
    let lengths: Vec<u64> = watched.highest.iter().map(|peak| peak.length).collect();
    assert_eq!(lengths, (102..112).rev().collect::<Vec<u64>>());
    assert!(
        watched
            .highest
            .is_sorted_by(|first, second| first.begin > second.begin)
    );
    assert_eq!(watched.largest_seen, 111);
    assert_eq!(watched.readings_seen, 100);
}

impl Script {
    /// Adds differences; what is not used up is read as blind time of steps, and what is missing goes on in steps.
    fn with_all(mut self, differences: &[u64]) -> Self {
        differences
            .iter()
            .for_each(|&difference| self.add(difference));
        self.then_steps_of(STEP)
    }
}

fn timers(count: u32) -> Deltas {
    let mut interrupts = Risen::default();
    interrupts.push(3, count);
    Deltas {
        interrupts,
        ..Deltas::default()
    }
}

#[test]
fn a_long_jump_is_sampled_with_its_window_and_cause() {
    let switched = Deltas {
        involuntary_switches: 1,
        ..timers(1)
    };
    let watch = Watch {
        told: vec![timers(1), switched, Deltas::default()],
        blind: 500,
        ..Watch::of(task(60))
    };
    let found = differences(60, &[(20, 20_000), (30, 30_000), (40, 40_000)]);
    let watched = watch.over(Nothing, &found);
    assert_eq!(
        watched.causes(),
        [
            Cause::Interrupts([Some(3), None, None, None]),
            Cause::InvoluntarySwitch,
            Cause::Unexplained
        ]
    );
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
    let mut task = task(3000);
    task.keep = 1000;
    let watch = Watch {
        costs: vec![10_000; 1000],
        ..Watch::of(task)
    };
    let watched = watch.over(Nothing, &differences(3000, &jumps));
    assert_eq!(watched.jumps.jumps().len(), jumps.len());
    assert_eq!(watched.samples + watched.not_sampled, jumps.len() as u64);
    assert!(watched.samples > 5, "{}", watched.samples);
    // Blind time earns nothing; that of one reading is there at the start.
    let seen = watched.end - watched.start - watched.blind;
    assert!(
        watched.sampling <= seen / 10 + 10_000,
        "{}",
        watched.sampling
    );
    let samples = watched.each(|jump| watched.jumps.sample(jump).copied());
    let mut sampled = samples.into_iter().flatten().skip(1);
    assert!(sampled.all(|sample| sample.others > 0));
}

#[test]
fn counters_that_rose_for_a_longer_jump_are_not_given_to_a_shorter_one() {
    let mut jumps = vec![(12, 100_000)];
    // The first is sampled and takes the credit, so the second, longer than the third, is not.
    jumps.extend([(20, 50_000), (30, 900_000)]);
    for (interrupts, told_apart) in [(1, false), (2, true)] {
        let watch = Watch {
            told: vec![timers(1), timers(interrupts)],
            costs: vec![20_000; 10],
            ..Watch::of(task(60))
        };
        let watched = watch.over(Nothing, &differences(60, &jumps));
        let causes = watched.causes();
        assert_eq!(causes[1], Cause::NotSampled);
        assert_eq!(matches!(causes[2], Cause::Interrupts(_)), told_apart);
        assert_eq!(causes[2] == Cause::NotToldApart, !told_apart);
        assert_eq!(watched.sample(2).others, 1);
    }
}

#[test]
fn differences_below_the_threshold_take_their_interrupts_from_the_next_jump() {
    let task = Task {
        threshold: 10_000,
        ..task(60)
    };
    let watch = Watch {
        told: vec![timers(1), Deltas::default()],
        costs: vec![500; 3],
        ..Watch::of(task)
    };
    let watched = watch.over(Nothing, &differences(60, &[(20, 5_000), (40, 50_000)]));
    assert_eq!(watched.causes(), [Cause::Unexplained]);
    let sample = watched.sample(0);
    // From the reading behind the lesser difference and the one after it.
    assert_eq!(
        (sample.window, sample.others),
        (500 + 19 * STEP + 50_000, 0)
    );
    assert_eq!((watched.samples, watched.not_sampled), (2, 0));
}

#[test]
fn differences_below_the_threshold_are_rivals_where_there_is_no_credit_to_read_counters() {
    let task = Task {
        threshold: 10_000,
        ..task(60)
    };
    // The first reading takes the credit: the timer's interrupt of the second lesser difference is found with the jump.
    for (interrupts, cause) in [
        (1, Cause::NotToldApart),
        (2, Cause::Interrupts([Some(3), None, None, None])),
    ] {
        let watch = Watch {
            told: vec![timers(1), timers(interrupts)],
            costs: vec![20_000; 3],
            ..Watch::of(task)
        };
        let lesser = [(20, 5_000), (30, 5_000), (40, 500_000)];
        let watched = watch.over(Nothing, &differences(60, &lesser));
        assert_eq!(watched.causes(), [cause]);
        assert_eq!(watched.sample(0).others, 1);
        assert_eq!(watched.jumps.causes()[0].1.alone, 0);
    }
}

#[test]
fn an_interrupt_that_need_not_show_explains_no_jump_at_the_end_of_a_long_window() {
    let of = |length| {
        let task = Task {
            baseline: 5_000,
            threshold: 5_000,
            ..task(1000)
        };
        let watch = Watch {
            told: vec![timers(1)],
            ..Watch::of(task)
        };
        let mut differences = vec![2_000; 1000];
        differences[990] = length;
        watch.over(Nothing, &differences).jumps.jumps()[0].cause
    };
    assert_eq!(of(6_000), Cause::NotToldApart);
    assert!(matches!(of(60_000), Cause::Interrupts(_)));
}

#[test]
fn a_stop_while_counters_are_read_is_a_jump_of_its_own() {
    const STOPPED: u64 = 3_000_000;
    let mut task = task(200);
    task.highest = true;
    let jumps = [(100, 20_000), (150, 30_000)];
    let script = Script::of_differences(10_000, &[0]).with_all(&differences(200, &jumps));
    let mut told = Told {
        deltas: vec![Deltas::default(), timers(1), timers(1)].into(),
        costs: vec![500, 500 + STOPPED, 500].into(),
    };
    let watched = played(script, Nothing, &mut told, task, 10_000);
    let found = watched.jumps.jumps();
    // One step of the clock, that of the reading itself, lies in it as well.
    let length = STOPPED + STEP;
    assert_eq!(watched.lengths(), [20_000, length, 30_000]);
    assert!(matches!(found[0].cause, Cause::Interrupts(_)));
    assert_eq!(found[1].cause, Cause::NotWatched);
    assert_eq!(found[1].begin, found[0].begin + 20_000 + STEP);
    // Its interrupts are found behind the next jump, and are not told from that one's.
    assert_eq!(found[2].cause, Cause::NotToldApart);
    assert_eq!(watched.sample(2).others, 1);
    assert_eq!(watched.largest, length);
    assert_eq!(watched.highest[0].length, length);
    assert_eq!(watched.windows[0].extra, length - BASELINE);
    assert_eq!(watched.longest_blind, length + 500);
    assert!(watched.sampling < 2000, "{}", watched.sampling);
}

#[test]
fn slow_readings_of_the_clock_stay_in_the_loop() {
    const SLOW: u64 = 20_000;
    let task = Task {
        baseline: 2 * SLOW,
        threshold: 2 * SLOW,
        window: Some(1_000_000),
        block: 100,
        ..task(1000)
    };
    let watch = Watch {
        blind: SLOW,
        ..Watch::of(task)
    };
    let watched = watch.over(Counted::for_baseline(2 * SLOW), &vec![SLOW; 1000]);
    // Behind the first ten, and never again.
    assert_eq!(watched.blind, SLOW);
    let distribution = Distribution::of_counted(&watched.recorder);
    let median = distribution.percentile(50.0).unwrap();
    assert_eq!((distribution.count(), distribution.exact), (1000, false));
    assert!(median.abs_diff(SLOW) <= SLOW / 1000, "{median}");
}

#[test]
fn a_reading_of_counters_that_is_itself_interrupted_does_not_end_all_sampling() {
    // The reading behind the first jump takes 80 ms, four times the most credit there can be.
    let mut script = Script::of_differences(10_000, &[50]);
    differences(10, &[])
        .into_iter()
        .for_each(|it| script.add(it));
    for blind in [0, 80_000_000, 900, 900] {
        script.add(blind);
        if blind > 1_000_000 {
            // The reading behind the stop that is filed.
            script.add(0);
        }
        for difference in [STEP, 30_000_000, STEP] {
            script.add(difference);
        }
    }
    script.add(0);
    let task = Task {
        block: 100,
        ..task(22)
    };
    let watched = played(script, Nothing, &mut Told::default(), task, 10_000);
    let causes = watched.causes();
    assert_eq!((causes.len(), watched.samples), (5, 4));
    assert_eq!(causes[1], Cause::NotWatched);
}
