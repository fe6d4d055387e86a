//! How the elements of a run go through an end of several: for a time, by one clock of the wall.
//!
//! A run ends for all when it has lasted for its time, or when one thread has noted as many elements as it has room
//! for: who is measured alone has no one to share with. Not measured: how a sleeping thread is woken, and the floor of
//! a latency.

use std::time::{Duration, Instant};

use super::control::Ending;
use super::error::ThreadError;
use super::loops::Loop;
use super::result::PassageResult;
use super::runner::EndTally;
use super::stage::{Stage, ThreadPosition};
use super::task::{PART, Task};
use super::warm_up::part_of;
use crate::host::counters::ThreadUsage;
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
        ThreadPosition::Sender(_) => produce(end, task, stage, began),
        ThreadPosition::Receiver(_) => consume(end, task, stage, began, place.room(task)),
    })
}

fn is_going(end: &dyn Loop) -> bool {
    end.tally().ending == Ending::Complete
}

/// A producer: it warms up and is measured until the time is over, or until a thread has no more room for notes.
fn produce(
    end: &mut dyn Loop,
    task: &Task,
    stage: &Stage,
    began: Instant,
) -> (PassageResult, EndTally) {
    let part = part_of(&task.point).min(PART);
    let started = end.start();
    let measured_from = began + task.config.warmup;
    let over = measured_from + task.config.duration();
    while is_going(end) && Instant::now() < measured_from {
        end.run(part);
    }
    let warmed_up = end.forget();
    let before = end.tally();
    let usage = ThreadUsage::now();
    let first = task.clock.now();
    let mut left = task.count as usize;
    // A part in any case: who had no CPU for all of the time has little, but a run without an element says nothing.
    while is_going(end) && left > 0 && (left == task.count as usize || Instant::now() < over) {
        end.run(part.min(left));
        left = task.count as usize - end.tally().noted;
    }
    let last = task.clock.now();
    let faults = ThreadUsage::now().since(usage).faults();
    stage.end_sending();
    end.flush();
    stage.sender_is_done();
    let tally = end.tally().since(&before);
    let passed = PassageResult {
        started,
        warmed_up,
        span: [first, last],
        // As many as elements: the pause behind the last one is in it.
        intervals: tally.noted as u64,
        faults,
        counts: None,
    };
    (passed, tally)
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
    let (mut span, mut in_span) = ([Ticks(0); 2], 0);
    let mut tally = before;
    while is_going(end) && tally.noted < room && began.elapsed() < latest {
        let is_warming_up = tally.noted == 0;
        if is_warming_up {
            (usage, before) = (ThreadUsage::now(), tally);
            span[0] = task.clock.now();
        }
        end.run(part.min(room - tally.noted));
        tally = end.tally();
        // What comes behind the last whole part is mostly a wait.
        if tally.ending == Ending::Complete && tally.noted > 0 {
            (span[1], in_span) = (task.clock.now(), tally.noted);
        }
        if tally.noted >= task.count as usize {
            stage.end_sending();
        }
    }
    let faults = ThreadUsage::now().since(usage).faults();
    if in_span == 0 {
        (span[1], in_span) = (task.clock.now(), tally.noted);
    }
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
        span,
        intervals: in_span as u64,
        faults,
        counts: None,
    };
    (passed, tally)
}
