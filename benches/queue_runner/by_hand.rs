//! The loops of the runner, written out by a macro: for each queue and measurer the same, with their code in it.
//!
//! What the loops do besides is there as well: failed attempts are counted, the stop flag is looked at, and each
//! element is checked. The memory is laid out as the queues have it: slots that start on a line of their own, in an
//! allocation of their own, and a loop that holds the queue's address in a register. That nobody raises the flags, and
//! at which number to begin, is hidden from the compiler.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hcabench::bench::queue::measurer::Record;
use hcabench::bench::queue::patience::{ATTEMPTS_PER_LOOK, ELEMENTS_PER_LOOK};
use hcabench::bench::queue::retry::{Retry, pause};
use hcabench::queues::element::{Element, Words};
use hcabench::time::{Clock, Ticks};

use super::{BATCH, CAPACITY, Payload};
use crate::shared::Counter;

#[repr(align(128))]
struct Alone<T>(T);

struct Flags {
    stop: Alone<AtomicBool>,
    receiver_done: Alone<AtomicBool>,
    most_pauses: u32,
}

/// Flags of which the compiler does not know that nobody raises them.
fn flags() -> &'static Flags {
    static FLAGS: Flags = Flags {
        stop: Alone(AtomicBool::new(false)),
        receiver_done: Alone(AtomicBool::new(false)),
        most_pauses: Retry::Pause.most_pauses(),
    };
    black_box(&FLAGS)
}

#[cold]
#[inline(never)]
fn look(flags: &Flags) -> bool {
    black_box(flags).stop.0.load(Ordering::Relaxed)
}

/// Slots that start where those of the queues do.
#[repr(align(128))]
struct Slots<S>([S; CAPACITY]);

impl<S> Slots<S> {
    fn new(slot: impl Fn() -> S) -> Box<Self> {
        Box::new(Slots(std::array::from_fn(|_| slot())))
    }

    /// # Safety
    /// `index` is less than the number of slots.
    #[inline(always)]
    unsafe fn get_unchecked(&self, index: usize) -> &S {
        // SAFETY: by the caller's word.
        unsafe { self.0.get_unchecked(index) }
    }
}

struct Lamport {
    slots: Box<Slots<UnsafeCell<Payload>>>,
    mask: usize,
    capacity: usize,
    tail: Alone<AtomicUsize>,
    head: Alone<AtomicUsize>,
}

impl Lamport {
    fn new() -> Arc<Self> {
        let empty = Words::from_words([0]);
        Arc::new(Lamport {
            slots: Slots::new(|| UnsafeCell::new(empty)),
            mask: CAPACITY - 1,
            capacity: CAPACITY,
            tail: Alone(AtomicUsize::new(0)),
            head: Alone(AtomicUsize::new(0)),
        })
    }
}

struct FastForward {
    slots: Box<Slots<AtomicU64>>,
    count: usize,
}

impl FastForward {
    fn new() -> Arc<Self> {
        let slots = Slots::new(|| AtomicU64::new(0));
        let count = CAPACITY;
        Arc::new(FastForward { slots, count })
    }
}

fn records(shift: usize) -> Vec<Record> {
    vec![[Ticks(0); 3]; BATCH + shift]
}

#[inline(always)]
fn is_over(flags: &Flags) -> bool {
    flags.stop.0.load(Ordering::Relaxed) || flags.receiver_done.0.load(Ordering::Relaxed)
}

/// `$next`: where the end of the ring is; `$enqueue`: whether `$element` found room; `$dequeue`: the element, if any.
macro_rules! loops {
    (
        $module:ident, $Queue:ident,
        |$sending:ident, $tail:ident, $element:ident| $enqueue:block
        |$receiving:ident, $head:ident| $dequeue:block
    ) => {
        pub(crate) mod $module {
            use super::*;

            pub(crate) fn numbered(batches: usize, shift: usize) -> usize {
                let queue = $Queue::new();
                let mut received = vec![0_u64; BATCH + shift];
                let (mut tail, mut head, mut taken) = (0, 0, 0);
                for _ in 0..batches {
                    let first = black_box(NonZeroU64::MIN);
                    (tail, _) = send_numbers(&queue, flags(), tail, first, black_box(BATCH));
                    let notes = black_box(&mut received[shift..]);
                    (head, taken) = receive_numbers(&queue, flags(), head, notes, black_box(BATCH));
                }
                black_box(&received);
                taken
            }

            pub(crate) fn timed(batches: usize, shift: usize) -> usize {
                let queue = $Queue::new();
                let (mut sent, mut received) = (records(shift), records(shift));
                let (mut tail, mut head, mut taken) = (0, 0, 0);
                for _ in 0..batches {
                    let notes = black_box(&mut sent[shift..]);
                    (tail, _) = send_times(&queue, flags(), tail, notes, black_box(BATCH));
                    let notes = black_box(&mut received[shift..]);
                    (head, taken) = receive_times(&queue, flags(), head, notes, black_box(BATCH));
                }
                black_box((&sent, &received));
                taken
            }

            #[inline(never)]
            fn send_numbers(
                $sending: &$Queue,
                flags: &Flags,
                mut $tail: usize,
                mut number: NonZeroU64,
                count: usize,
            ) -> (usize, u64) {
                let mut failed = 0_u64;
                for done in 0..count {
                    let $element = Payload::with_stamp(number);
                    let mut pauses = 1;
                    while !$enqueue {
                        failed += 1;
                        if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                            return ($tail, failed);
                        }
                        pause(&mut pauses, flags.most_pauses);
                    }
                    number = number.saturating_add(1);
                    if done.is_multiple_of(ELEMENTS_PER_LOOK) && is_over(flags) {
                        return ($tail, failed);
                    }
                }
                ($tail, failed)
            }

            #[inline(never)]
            fn receive_numbers(
                $receiving: &$Queue,
                flags: &Flags,
                mut $head: usize,
                received: &mut [u64],
                count: usize,
            ) -> (usize, usize) {
                let (mut taken, mut failed, mut damaged) = (0_usize, 0_u64, 0_u64);
                for done in 0..count {
                    let mut pauses = 1;
                    let element = loop {
                        if let Some(element) = $dequeue {
                            break element;
                        }
                        failed += 1;
                        if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                            return ($head, taken);
                        }
                        pause(&mut pauses, flags.most_pauses);
                    };
                    if let Some(slot) = received.get_mut(taken) {
                        *slot = element.stamp();
                        taken += 1;
                    }
                    damaged += u64::from(!element.is_intact());
                    let is_look = done.is_multiple_of(ELEMENTS_PER_LOOK);
                    if is_look && flags.stop.0.load(Ordering::Relaxed) {
                        return ($head, taken);
                    }
                }
                assert!(damaged == 0);
                ($head, taken)
            }

            #[inline(never)]
            fn send_times(
                $sending: &$Queue,
                flags: &Flags,
                mut $tail: usize,
                sent: &mut [Record],
                count: usize,
            ) -> (usize, usize) {
                let (mut noted, mut failed) = (0_usize, 0_u64);
                for done in 0..count {
                    let mut before = Counter.now();
                    let stamp = NonZeroU64::new(before.0).unwrap_or(NonZeroU64::MIN);
                    let $element = Payload::with_stamp(stamp);
                    let mut pauses = 1;
                    while !$enqueue {
                        failed += 1;
                        if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                            return ($tail, noted);
                        }
                        pause(&mut pauses, flags.most_pauses);
                        before = Counter.now();
                    }
                    let after = Counter.now();
                    if let Some(record) = sent.get_mut(noted) {
                        *record = [Ticks(stamp.get()), before, after];
                        noted += 1;
                    }
                    if done.is_multiple_of(ELEMENTS_PER_LOOK) && is_over(flags) {
                        return ($tail, noted);
                    }
                }
                ($tail, noted)
            }

            #[inline(never)]
            fn receive_times(
                $receiving: &$Queue,
                flags: &Flags,
                mut $head: usize,
                received: &mut [Record],
                count: usize,
            ) -> (usize, usize) {
                let (mut noted, mut failed, mut damaged) = (0_usize, 0_u64, 0_u64);
                for done in 0..count {
                    let mut before = Counter.now();
                    let mut pauses = 1;
                    let element = loop {
                        if let Some(element) = $dequeue {
                            break element;
                        }
                        failed += 1;
                        if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                            return ($head, noted);
                        }
                        pause(&mut pauses, flags.most_pauses);
                        before = Counter.now();
                    };
                    let after = Counter.now();
                    if let Some(record) = received.get_mut(noted) {
                        *record = [Ticks(element.stamp()), before, after];
                        noted += 1;
                    }
                    damaged += u64::from(!element.is_intact());
                    let is_look = done.is_multiple_of(ELEMENTS_PER_LOOK);
                    if is_look && flags.stop.0.load(Ordering::Relaxed) {
                        return ($head, noted);
                    }
                }
                assert!(damaged == 0);
                ($head, noted)
            }
        }
    };
}

loops! {
    lamport, Lamport,
    |queue, next, element| {
        next = queue.tail.0.load(Ordering::Relaxed);
        let head = queue.head.0.load(Ordering::Acquire);
        let has_room = next.wrapping_sub(head) != queue.capacity;
        if has_room {
            // SAFETY: masked; between tail and head plus capacity the slots are the sender's.
            unsafe { *queue.slots.get_unchecked(next & queue.mask).get() = element };
            queue.tail.0.store(next.wrapping_add(1), Ordering::Release);
        }
        has_room
    }
    |queue, next| {
        next = queue.head.0.load(Ordering::Relaxed);
        let tail = queue.tail.0.load(Ordering::Acquire);
        (next != tail).then(|| {
            // SAFETY: masked; between head and tail the slots are the receiver's.
            let element = unsafe { *queue.slots.get_unchecked(next & queue.mask).get() };
            queue.head.0.store(next.wrapping_add(1), Ordering::Release);
            element
        })
    }
}

loops! {
    fast_forward, FastForward,
    |queue, next, element| {
        // SAFETY: `next` is less than the number of slots.
        let slot = unsafe { queue.slots.get_unchecked(next) };
        let is_empty = slot.load(Ordering::Acquire) == 0;
        if is_empty {
            slot.store(element.words()[0], Ordering::Release);
            next += 1;
            if next == queue.count {
                next = 0;
            }
        }
        is_empty
    }
    |queue, next| {
        // SAFETY: `next` is less than the number of slots.
        let slot = unsafe { queue.slots.get_unchecked(next) };
        let first = slot.load(Ordering::Acquire);
        (first != 0).then(|| {
            slot.store(0, Ordering::Release);
            next += 1;
            if next == queue.count {
                next = 0;
            }
            Payload::from_words([first])
        })
    }
}

// SAFETY: the benchmark has one thread.
unsafe impl Sync for Lamport {}
// SAFETY: the benchmark has one thread.
unsafe impl Send for Lamport {}
