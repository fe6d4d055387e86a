//! What the loops measure where there is nothing to measure: the floor of each figure, taken in every run.
//!
//! - Of an operation: the loop's own measurer around nothing, on the CPU of the end. What the queue adds lies between
//!   this and the time of the operation.
//! - Of a latency: an element handed over by a bare store, between the same two CPUs, by the same two loops: a line for
//!   each element, written once by the sender and looked at by the receiver until it is there. What the loops add,
//!   such as the time between two looks, is in both. Always 8 bytes at `RATE_PER_S`, so that nothing piles up, whatever
//!   the load and the payload of the run: what they change is in the queue's figure only.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::measurer::{Measurer, Record, TimedMeasurer};
use crate::queues::element::{Element, Words};
use crate::queues::interface::{Queue, QueueError, Receiver, Sender};
use crate::stats::Summary;
use crate::time::{Clock, Ticks};

/// Elements that are handed over. The first of them are slow, and neither the least nor the median minds.
pub(super) const HANDOFFS: u64 = 2000;
/// Elements a second.
pub(super) const RATE_PER_S: f64 = 1e6;
/// Operations without a queue.
const OPERATIONS: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QueueFloor {
    pub min_ns: i64,
    pub p50_ns: f64,
}

impl QueueFloor {
    pub(super) fn of(summary: &Summary) -> Self {
        QueueFloor {
            min_ns: summary.min_ns,
            p50_ns: summary.p50_ns,
        }
    }
}

/// The floors of the operations at one end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperationFloors {
    /// Of an operation.
    pub plain: QueueFloor,
    /// Of one with a hand-over, which is timed by itself and added.
    pub with_flush: QueueFloor,
}

/// Measures both on the CPU that runs this, in well under a millisecond.
pub(super) fn of_operations<C: Clock>(clock: &C) -> OperationFloors {
    OperationFloors {
        plain: of_nothing(clock, false),
        with_flush: of_nothing(clock, true),
    }
}

#[inline(never)]
fn of_nothing<C: Clock>(clock: &C, with_flush: bool) -> QueueFloor {
    let mut records: Vec<Record> = vec![[Ticks(0); 3]; OPERATIONS];
    let mut measurer = TimedMeasurer::new(&mut records, false);
    for _ in 0..OPERATIONS {
        measurer.pre(clock);
        let stamp = measurer.stamp();
        std::hint::black_box(Words::<1>::with_stamp(stamp));
        measurer.post(clock, stamp.get());
        if with_flush {
            measurer.beside(clock, || ());
        }
    }
    let lengths: Vec<i64> = records
        .iter()
        .map(|[_, before, after]| {
            let length = Ticks(after.0.saturating_sub(before.0));
            i64::try_from(clock.to_nanos(length).0).unwrap_or(i64::MAX)
        })
        .collect();
    let summary = Summary::of(&lengths).expect("there are operations");
    QueueFloor::of(&summary)
}

/// Memory through which each element goes by a line of its own: no queue, as it serves once.
pub(super) struct Handoff;

#[repr(align(128))]
struct HandoffLine(AtomicU64);

/// Either end.
pub(super) struct FloorEnd {
    lines: Arc<[HandoffLine]>,
    next: usize,
}

impl Sender<Words<1>> for FloorEnd {
    #[inline(always)]
    fn enqueue(&mut self, element: Words<1>) -> bool {
        let Some(line) = self.lines.get(self.next) else {
            return false;
        };
        // Release and Acquire, as any queue needs them.
        line.0.store(element.stamp(), Ordering::Release);
        self.next += 1;
        true
    }
}

impl Receiver<Words<1>> for FloorEnd {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<1>> {
        let line = self.lines.get(self.next)?;
        let stamp = NonZeroU64::new(line.0.load(Ordering::Acquire))?;
        self.next += 1;
        Some(Words::with_stamp(stamp))
    }
}

impl Queue<Words<1>> for Handoff {
    type Sender = FloorEnd;
    type Receiver = FloorEnd;

    fn starting_at(capacity: usize, _start: usize) -> Result<(FloorEnd, FloorEnd), QueueError> {
        let lines: Arc<[HandoffLine]> = (0..capacity)
            .map(|_| HandoffLine(AtomicU64::new(0)))
            .collect();
        let end = || FloorEnd {
            lines: Arc::clone(&lines),
            next: 0,
        };
        Ok((end(), end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::scripted;

    #[test]
    fn the_floor_is_what_lies_between_two_stamps() {
        // A clock that moves by 7 at each reading.
        let floors = of_operations(&scripted::set(1, 7));
        let of = |ns: i64| QueueFloor {
            min_ns: ns,
            p50_ns: ns as f64,
        };
        assert_eq!(floors.plain, of(7));
        assert_eq!(floors.with_flush, of(14));
    }

    #[test]
    fn each_element_has_a_line_of_its_own() {
        let (mut sender, mut receiver) = Handoff::with_capacity(2).unwrap();
        assert_eq!(receiver.dequeue(), None);
        for number in 1..=2 {
            let element = Words::from_words([number]);
            assert!(sender.enqueue(element));
            assert_eq!(receiver.dequeue(), Some(element));
        }
        assert!(!sender.enqueue(Words::from_words([3])));
        assert_eq!(receiver.dequeue(), None);
    }
}
