//! How the elements of a run go through an end of several: for a time, by one clock of the wall.
//!
//! A run ends for all when it has lasted for its time, or when one thread has noted as many elements as it has room
//! for: who is measured alone has no one to share with. Not measured: how a sleeping thread is woken, and the floor of
//! a latency.

use std::time::{Duration, Instant};

use super::control::Ending;
use super::error::ThreadError;
use super::loops::Loop;
use super::plan::Point;
use super::result::PassageResult;
use super::runner::EndTally;
use super::stage::{Stage, ThreadPosition};
use super::task::{PART, Task};
use super::warm_up::part_of;
use crate::host::counters::ThreadUsage;
use crate::pacing::Load;
use crate::time::{Clock, Ticks};

/// How long a receiver goes on when all senders are done: what they put in is there at once or never.
pub(super) const AFTER_SENDERS: Duration = Duration::from_millis(10);

/// Waits for all threads and lets elements through until the time is over; beside that, what was counted without the
/// warm-up.
pub(super) fn let_through_by_time(
    end: &mut dyn Loop,
    place: ThreadPosition,
    task: &Task,
    stage: &Stage,
) -> Result<(PassageResult, EndTally), ThreadError> {
    if !stage.control(place).start_together() {
        return Err(ThreadError::Alone);
    }
    let began = stage.began();
    Ok(match place {
        ThreadPosition::Sender(_) => produce(end, place, task, stage, began),
        ThreadPosition::Receiver(_) => consume(end, task, stage, began, place.room(task)),
    })
}

/// How long a part lasts, pauses included, between two looks at the time.
pub(super) fn longest_part(point: &Point) -> Duration {
    let part = part_of(point).min(PART) as u32;
    point.sender.longest_pause().saturating_mul(part)
}

fn is_going(end: &dyn Loop) -> bool {
    end.tally().ending == Ending::Complete
}

/// A producer: it warms up and is measured until the time is over, or until a thread has no more room for notes.
fn produce(
    end: &mut dyn Loop,
    place: ThreadPosition,
    task: &Task,
    stage: &Stage,
    began: Instant,
) -> (PassageResult, EndTally) {
    let (group, control) = (task.point.sender.group() as usize, stage.control(place));
    let has_pauses = task.point.sender.load != Load::None;
    let part = part_of(&task.point).min(PART);
    end.start();
    let measured_from = began + task.config.warmup;
    let over = measured_from + task.config.duration();
    while is_going(end) && Instant::now() < measured_from {
        end.run(part);
    }
    let warmed_up = end.forget();
    let before = end.tally();
    let usage = ThreadUsage::now();
    let started = end.start();
    let (mut left, mut passed) = (task.count as usize, (started, 0));
    // A part, or a whole group, in any case: who had no CPU for all of the time has little, but a run without an element
    // says nothing.
    while is_going(end) && left > 0 {
        let noted = task.count as usize - left;
        let has_any = if has_pauses { passed.1 } else { noted } > 0;
        if has_any && Instant::now() >= over {
            break;
        }
        end.run(next_part(part, group, noted).min(left));
        let noted = end.tally().noted;
        left = task.count as usize - noted;
        // Only whole groups, behind which the pause is not cut short, take a time that the load sets.
        if has_pauses && noted.is_multiple_of(group) && !control.sender_is_over() {
            passed = (task.clock.now(), noted);
        }
    }
    if !has_pauses {
        passed = (task.clock.now(), end.tally().noted);
    }
    let faults = ThreadUsage::now().since(usage).faults();
    end.flush();
    stage.sender_is_done();
    // The pauses of others end a part later at the most.
    if left > 0 {
        stage.wait_for_senders(longest_part(&task.point), place.pulse(control));
    }
    stage.end_sending();
    let tally = end.tally().since(&before);
    let passed = PassageResult {
        started,
        warmed_up,
        span: [started, passed.0],
        // As many as elements: the pause behind the last one is in it.
        intervals: passed.1 as u64,
        faults,
        counts: None,
    };
    (passed, tally)
}

/// Elements up to the next look at the time: whole groups, or what is left of one.
fn next_part(part: usize, group: usize, noted: usize) -> usize {
    match part / group * group {
        0 => part.min(group - noted % group),
        whole => whole,
    }
}

/// When the last of `noted` elements came out, if the end was seen only at `seen`: behind the last whole part others
/// came at the pace of that part. `parts` is when the last two whole parts ended, and the elements up to there.
fn last_out(parts: [(Ticks, usize); 2], noted: usize, seen: Ticks) -> Ticks {
    let [(before, earlier), (at, until)] = parts;
    let (time, elements) = (at.0.saturating_sub(before.0), until - earlier);
    if elements == 0 {
        return seen;
    }
    let behind = u128::from(time) * (noted - until) as u128 / elements as u128;
    Ticks(seen.0.min(at.0.saturating_add(behind as u64)))
}

/// A consumer: it takes elements until the producers are done and nothing more comes.
fn consume(
    end: &mut dyn Loop,
    task: &Task,
    stage: &Stage,
    began: Instant,
    room: usize,
) -> (PassageResult, EndTally) {
    let part = part_of(&task.point).min(PART);
    let started = end.start();
    // Later than this nothing comes any more, unless the queue makes it up.
    let drained = task
        .point
        .receiver
        .longest_pause()
        .saturating_mul(task.point.capacity as u32);
    let latest = (task.config.warmup + task.config.duration()).saturating_add(task.patience);
    let latest = latest.saturating_add(drained);
    let (mut usage, mut before) = (ThreadUsage::now(), end.tally());
    let mut first = Ticks(0);
    let mut parts = [(first, 0); 2];
    let mut tally = before;
    while is_going(end) && tally.noted < room && began.elapsed() < latest {
        let is_warming_up = tally.noted == 0;
        if is_warming_up {
            (usage, before) = (ThreadUsage::now(), tally);
            first = task.clock.now();
            parts = [(first, 0); 2];
        }
        end.run(part.min(room - tally.noted));
        tally = end.tally();
        // What comes behind the last whole part is mostly a wait.
        if tally.ending == Ending::Complete && tally.noted > 0 {
            parts = [parts[1], (task.clock.now(), tally.noted)];
        }
        if tally.noted >= task.count as usize {
            stage.end_sending();
        }
    }
    let faults = ThreadUsage::now().since(usage).faults();
    let waited = AFTER_SENDERS.saturating_add(task.point.receiver.longest_pause());
    let waited = task.clock.ticks_in(waited.into());
    let seen = Ticks(task.clock.now().0.saturating_sub(waited.0));
    let last = last_out(parts, tally.noted, seen);
    tally = tally.since(&before);
    if tally.ending == Ending::Complete {
        // Neither the end of the producers nor that of the patience was seen.
        tally.ending = Ending::GaveUp;
        stage.end_sending();
    }
    stage.receiver_is_done();
    let passed = PassageResult {
        started,
        warmed_up: end.forget(),
        span: [first, last],
        intervals: tally.noted as u64,
        faults,
        counts: None,
    };
    (passed, tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_with_groups() {
        assert_eq!(next_part(256, 1, 77), 256);
        assert_eq!(next_part(256, 20, 40), 240);
        // Of slow groups some elements each time, but none of the next group.
        let mut noted = 0;
        let parts: Vec<usize> = std::iter::from_fn(|| {
            let next = next_part(10, 25, noted);
            noted += next;
            Some(next)
        })
        .take(6)
        .collect();
        assert_eq!(parts, [10, 10, 5, 10, 10, 5]);
    }

    #[test]
    fn what_comes_behind_a_whole_part_comes_at_its_pace_and_not_later_than_seen() {
        let parts = [(Ticks(1000), 10), (Ticks(2000), 20)];
        let last = |noted, seen| last_out(parts, noted, Ticks(seen)).0;
        assert_eq!(last(20, 9000), 2000);
        assert_eq!(last(25, 9000), 2500);
        assert_eq!(last(25, 2300), 2300);
        // There was no whole part.
        assert_eq!(last_out([(Ticks(5), 0); 2], 3, Ticks(40)).0, 40);
    }
}
