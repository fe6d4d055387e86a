//! Ports over memory that two threads share: no fabric at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::port::{Completion, CompletionPort, Failure, Polled, SendPort};
use crate::time::Ticks;

/// A message and the flag that says it is there, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    stamp: AtomicU64,
    /// Immediate data and, in the highest bit, whether the message is there.
    label: AtomicU64,
}

const PRESENT: u64 = 1 << 63;

/// One slot a message, each used once.
#[derive(Debug)]
struct Shared {
    slots: Vec<Slot>,
}

/// The sending end.
#[derive(Debug)]
pub struct MemorySendPort {
    shared: Arc<Shared>,
    label: u64,
    next: usize,
}

/// The receiving end.
#[derive(Debug)]
pub struct MemoryReceivePort {
    shared: Arc<Shared>,
    next: usize,
}

/// Send completions of a port that has none; always empty.
#[derive(Debug)]
pub struct NoCompletions;

/// Both ends of a connection for `messages` messages, whose immediate data are `first_label` and what follows.
pub fn connect(messages: usize, first_label: u32) -> (MemorySendPort, MemoryReceivePort) {
    let shared = Arc::new(Shared {
        slots: (0..messages).map(|_| Slot::default()).collect(),
    });
    let send = MemorySendPort {
        shared: Arc::clone(&shared),
        label: u64::from(first_label),
        next: 0,
    };
    (send, MemoryReceivePort { shared, next: 0 })
}

impl MemoryReceivePort {
    /// The stamp that message `index` brought.
    pub fn stamp_of(&self, index: usize) -> Ticks {
        Ticks(self.shared.slots[index].stamp.load(Ordering::Relaxed))
    }
}

impl SendPort for MemorySendPort {
    #[inline(always)]
    fn prepare(&mut self, sequence: u32, _signaled: bool) {
        self.next = sequence as usize;
    }

    #[inline(always)]
    fn stamp(&mut self, stamp: Ticks) {
        self.shared.slots[self.next]
            .stamp
            .store(stamp.0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn post(&mut self) -> Result<(), Failure> {
        // Release: who sees the flag sees the stamp.
        let label = PRESENT | (self.label + self.next as u64);
        self.shared.slots[self.next]
            .label
            .store(label, Ordering::Release);
        Ok(())
    }
}

impl CompletionPort for MemoryReceivePort {
    #[inline(always)]
    fn poll(&mut self) -> Polled {
        let Some(slot) = self.shared.slots.get(self.next) else {
            return Polled::Empty;
        };
        let label = slot.label.load(Ordering::Acquire);
        if label & PRESENT == 0 {
            return Polled::Empty;
        }
        let request = self.next as u64;
        self.next += 1;
        Polled::Done(Completion {
            request,
            immediate_data: label as u32,
            bytes: 8,
        })
    }
}

impl CompletionPort for NoCompletions {
    fn poll(&mut self) -> Polled {
        Polled::Empty
    }
}
