//! The loops of the runner, written out: four times the same, each with the code of one queue and one measurer in it.
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

use super::{BATCH, CAPACITY, Counter, Payload};

#[repr(align(128))]
struct Alone<T>(T);

/// What the two loops look at while they run.
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

fn lamport() -> Arc<Lamport> {
    let empty = Words::from_words([0]);
    Arc::new(Lamport {
        slots: Slots::new(|| UnsafeCell::new(empty)),
        mask: CAPACITY - 1,
        capacity: CAPACITY,
        tail: Alone(AtomicUsize::new(0)),
        head: Alone(AtomicUsize::new(0)),
    })
}

struct FastForward {
    slots: Box<Slots<AtomicU64>>,
    count: usize,
}

fn fast_forward() -> Arc<FastForward> {
    Arc::new(FastForward {
        slots: Slots::new(|| AtomicU64::new(0)),
        count: CAPACITY,
    })
}

pub fn lamport_numbered(batches: usize, shift: usize) -> usize {
    let queue = lamport();
    let mut received = vec![0_u64; BATCH + shift];
    let mut taken = 0;
    for _ in 0..batches {
        lamport_send_numbers(
            &queue,
            flags(),
            black_box(NonZeroU64::MIN),
            black_box(BATCH),
        );
        taken = lamport_receive_numbers(
            &queue,
            flags(),
            black_box(&mut received[shift..]),
            black_box(BATCH),
        );
    }
    black_box(&received);
    taken
}

#[inline(never)]
fn lamport_send_numbers(
    queue: &Lamport,
    flags: &Flags,
    mut number: NonZeroU64,
    count: usize,
) -> (NonZeroU64, u64) {
    let mut failed = 0_u64;
    for done in 0..count {
        let element = Payload::with_stamp(number);
        let mut pauses = 1;
        loop {
            let tail = queue.tail.0.load(Ordering::Relaxed);
            let head = queue.head.0.load(Ordering::Acquire);
            if tail.wrapping_sub(head) != queue.capacity {
                // SAFETY: masked; between tail and head plus capacity the slots are the sender's.
                unsafe { *queue.slots.get_unchecked(tail & queue.mask).get() = element };
                queue.tail.0.store(tail.wrapping_add(1), Ordering::Release);
                break;
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return (number, failed);
            }
            pause(&mut pauses, flags.most_pauses);
        }
        number = number.saturating_add(1);
        if done.is_multiple_of(ELEMENTS_PER_LOOK) && is_over(flags) {
            return (number, failed);
        }
    }
    (number, failed)
}

#[inline(never)]
fn lamport_receive_numbers(
    queue: &Lamport,
    flags: &Flags,
    received: &mut [u64],
    count: usize,
) -> usize {
    let (mut taken, mut failed, mut damaged) = (0_usize, 0_u64, 0_u64);
    for done in 0..count {
        let mut pauses = 1;
        let element = loop {
            let head = queue.head.0.load(Ordering::Relaxed);
            let tail = queue.tail.0.load(Ordering::Acquire);
            if head != tail {
                // SAFETY: masked; between head and tail the slots are the receiver's.
                let element = unsafe { *queue.slots.get_unchecked(head & queue.mask).get() };
                queue.head.0.store(head.wrapping_add(1), Ordering::Release);
                break element;
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return taken;
            }
            pause(&mut pauses, flags.most_pauses);
        };
        if let Some(slot) = received.get_mut(taken) {
            *slot = element.stamp();
            taken += 1;
        }
        damaged += u64::from(!element.is_intact());
        if done.is_multiple_of(ELEMENTS_PER_LOOK) && flags.stop.0.load(Ordering::Relaxed) {
            return taken;
        }
    }
    assert!(damaged == 0);
    taken
}

#[inline(always)]
fn is_over(flags: &Flags) -> bool {
    flags.stop.0.load(Ordering::Relaxed) || flags.receiver_done.0.load(Ordering::Relaxed)
}

pub fn lamport_timed(batches: usize, shift: usize) -> usize {
    let queue = lamport();
    let (mut sent, mut received) = (records(shift), records(shift));
    let mut taken = 0;
    for _ in 0..batches {
        lamport_send_times(
            &queue,
            flags(),
            black_box(&mut sent[shift..]),
            black_box(BATCH),
        );
        taken = lamport_receive_times(
            &queue,
            flags(),
            black_box(&mut received[shift..]),
            black_box(BATCH),
        );
    }
    black_box((&sent, &received));
    taken
}

fn records(shift: usize) -> Vec<Record> {
    vec![[Ticks(0); 3]; BATCH + shift]
}

#[inline(never)]
fn lamport_send_times(
    queue: &Lamport,
    flags: &Flags,
    sent: &mut [Record],
    count: usize,
) -> (usize, u64) {
    let (mut noted, mut failed) = (0_usize, 0_u64);
    for done in 0..count {
        let mut before = Counter.now();
        let stamp = NonZeroU64::new(before.0).unwrap_or(NonZeroU64::MIN);
        let element = Payload::with_stamp(stamp);
        let mut pauses = 1;
        loop {
            let tail = queue.tail.0.load(Ordering::Relaxed);
            let head = queue.head.0.load(Ordering::Acquire);
            if tail.wrapping_sub(head) != queue.capacity {
                // SAFETY: masked; between tail and head plus capacity the slots are the sender's.
                unsafe { *queue.slots.get_unchecked(tail & queue.mask).get() = element };
                queue.tail.0.store(tail.wrapping_add(1), Ordering::Release);
                break;
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return (noted, failed);
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
            return (noted, failed);
        }
    }
    (noted, failed)
}

#[inline(never)]
fn lamport_receive_times(
    queue: &Lamport,
    flags: &Flags,
    received: &mut [Record],
    count: usize,
) -> usize {
    let (mut noted, mut failed, mut damaged) = (0_usize, 0_u64, 0_u64);
    for done in 0..count {
        let mut before = Counter.now();
        let mut pauses = 1;
        let element = loop {
            let head = queue.head.0.load(Ordering::Relaxed);
            let tail = queue.tail.0.load(Ordering::Acquire);
            if head != tail {
                // SAFETY: masked; between head and tail the slots are the receiver's.
                let element = unsafe { *queue.slots.get_unchecked(head & queue.mask).get() };
                queue.head.0.store(head.wrapping_add(1), Ordering::Release);
                break element;
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return noted;
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
        if done.is_multiple_of(ELEMENTS_PER_LOOK) && flags.stop.0.load(Ordering::Relaxed) {
            return noted;
        }
    }
    assert!(damaged == 0);
    noted
}

pub fn fast_forward_numbered(batches: usize, shift: usize) -> usize {
    let queue = fast_forward();
    let mut received = vec![0_u64; BATCH + shift];
    let (mut tail, mut head) = (0, 0);
    let mut taken = 0;
    for _ in 0..batches {
        tail = fast_forward_send_numbers(
            &queue,
            flags(),
            tail,
            black_box(NonZeroU64::MIN),
            black_box(BATCH),
        )
        .0;
        (head, taken) = fast_forward_receive_numbers(
            &queue,
            flags(),
            head,
            black_box(&mut received[shift..]),
            black_box(BATCH),
        );
    }
    black_box(&received);
    taken
}

#[inline(never)]
fn fast_forward_send_numbers(
    queue: &FastForward,
    flags: &Flags,
    mut next: usize,
    mut number: NonZeroU64,
    count: usize,
) -> (usize, u64) {
    let mut failed = 0_u64;
    for done in 0..count {
        let element = Payload::with_stamp(number);
        let mut pauses = 1;
        loop {
            // SAFETY: `next` is less than the number of slots.
            let slot = unsafe { queue.slots.get_unchecked(next) };
            if slot.load(Ordering::Acquire) == 0 {
                slot.store(element.words()[0], Ordering::Release);
                next += 1;
                if next == queue.count {
                    next = 0;
                }
                break;
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return (next, failed);
            }
            pause(&mut pauses, flags.most_pauses);
        }
        number = number.saturating_add(1);
        if done.is_multiple_of(ELEMENTS_PER_LOOK) && is_over(flags) {
            return (next, failed);
        }
    }
    (next, failed)
}

#[inline(never)]
fn fast_forward_receive_numbers(
    queue: &FastForward,
    flags: &Flags,
    mut next: usize,
    received: &mut [u64],
    count: usize,
) -> (usize, usize) {
    let (mut taken, mut failed, mut damaged) = (0_usize, 0_u64, 0_u64);
    for done in 0..count {
        let mut pauses = 1;
        let element = loop {
            // SAFETY: `next` is less than the number of slots.
            let slot = unsafe { queue.slots.get_unchecked(next) };
            let first = slot.load(Ordering::Acquire);
            if first != 0 {
                slot.store(0, Ordering::Release);
                next += 1;
                if next == queue.count {
                    next = 0;
                }
                break Payload::from_words([first]);
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return (next, taken);
            }
            pause(&mut pauses, flags.most_pauses);
        };
        if let Some(slot) = received.get_mut(taken) {
            *slot = element.stamp();
            taken += 1;
        }
        damaged += u64::from(!element.is_intact());
        if done.is_multiple_of(ELEMENTS_PER_LOOK) && flags.stop.0.load(Ordering::Relaxed) {
            return (next, taken);
        }
    }
    assert!(damaged == 0);
    (next, taken)
}

pub fn fast_forward_timed(batches: usize, shift: usize) -> usize {
    let queue = fast_forward();
    let (mut sent, mut received) = (records(shift), records(shift));
    let (mut tail, mut head) = (0, 0);
    let mut taken = 0;
    for _ in 0..batches {
        tail = fast_forward_send_times(
            &queue,
            flags(),
            tail,
            black_box(&mut sent[shift..]),
            black_box(BATCH),
        )
        .0;
        (head, taken) = fast_forward_receive_times(
            &queue,
            flags(),
            head,
            black_box(&mut received[shift..]),
            black_box(BATCH),
        );
    }
    black_box((&sent, &received));
    taken
}

#[inline(never)]
fn fast_forward_send_times(
    queue: &FastForward,
    flags: &Flags,
    mut next: usize,
    sent: &mut [Record],
    count: usize,
) -> (usize, u64) {
    let (mut noted, mut failed) = (0_usize, 0_u64);
    for done in 0..count {
        let mut before = Counter.now();
        let stamp = NonZeroU64::new(before.0).unwrap_or(NonZeroU64::MIN);
        let element = Payload::with_stamp(stamp);
        let mut pauses = 1;
        loop {
            // SAFETY: `next` is less than the number of slots.
            let slot = unsafe { queue.slots.get_unchecked(next) };
            if slot.load(Ordering::Acquire) == 0 {
                slot.store(element.words()[0], Ordering::Release);
                next += 1;
                if next == queue.count {
                    next = 0;
                }
                break;
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return (next, failed);
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
            return (next, failed);
        }
    }
    (next, failed)
}

#[inline(never)]
fn fast_forward_receive_times(
    queue: &FastForward,
    flags: &Flags,
    mut next: usize,
    received: &mut [Record],
    count: usize,
) -> (usize, usize) {
    let (mut noted, mut failed, mut damaged) = (0_usize, 0_u64, 0_u64);
    for done in 0..count {
        let mut before = Counter.now();
        let mut pauses = 1;
        let element = loop {
            // SAFETY: `next` is less than the number of slots.
            let slot = unsafe { queue.slots.get_unchecked(next) };
            let first = slot.load(Ordering::Acquire);
            if first != 0 {
                slot.store(0, Ordering::Release);
                next += 1;
                if next == queue.count {
                    next = 0;
                }
                break Payload::from_words([first]);
            }
            failed += 1;
            if failed.is_multiple_of(ATTEMPTS_PER_LOOK) && look(flags) {
                return (next, noted);
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
        if done.is_multiple_of(ELEMENTS_PER_LOOK) && flags.stop.0.load(Ordering::Relaxed) {
            return (next, noted);
        }
    }
    assert!(damaged == 0);
    (next, noted)
}

// SAFETY: the benchmark has one thread.
unsafe impl Sync for Lamport {}
// SAFETY: the benchmark has one thread.
unsafe impl Send for Lamport {}
