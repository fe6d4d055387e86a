//! The interleavings of two threads, and all values the memory model allows, on queues that are small enough for it.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --no-default-features --lib loom`; see `ci/check-queues`.

use super::element::Words;
use super::equeue::Elasticity;
use super::interface::{Queue, Receiver, Sender};
use super::{BQueue, Baton, EQueue, FastForward, Ffq, Lamport, LinkedBlocks, McRingBuffer};

/// With a second word, that may only be read when the first one is there.
type Element = Words<2>;

fn element(number: u64) -> Element {
    Words::from_words([number, number ^ 1])
}

/// All interleavings in which no thread is interrupted more than three times; an end that finds the queue full or empty lets the
/// other go on.
fn check<S, R>(count: u64, made: impl Fn() -> (S, R) + Sync + Send + 'static)
where
    S: Sender<Element> + 'static,
    R: Receiver<Element> + 'static,
{
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let (mut sender, mut receiver) = made();
        let thread = loom::thread::spawn(move || {
            for number in 1..=count {
                while !sender.enqueue(element(number)) {
                    loom::thread::yield_now();
                }
            }
            sender.flush();
        });
        for number in 1..=count {
            let received = loop {
                if let Some(received) = receiver.dequeue() {
                    break received;
                }
                loom::thread::yield_now();
            };
            assert_eq!(received, element(number));
        }
        assert_eq!(receiver.dequeue(), None);
        thread.join().unwrap();
    });
}

macro_rules! check_all {
    ($($name:ident: $made:expr;)+) => {$(
        #[test]
        fn $name() {
            check(3, || $made(1).unwrap());
            check(3, || $made(2).unwrap());
        }
    )+};
}

/// Just before the indices wrap around.
const START: usize = usize::MAX - 1;

check_all! {
    lamport: |capacity| Lamport::starting_at(capacity, START);
    fastforward: <FastForward as Queue<Element>>::with_capacity;
    mcringbuffer: |capacity| McRingBuffer::starting_at(capacity, START);
    b_queue: <BQueue as Queue<Element>>::with_capacity;
    equeue: <EQueue as Queue<Element>>::with_capacity;
    ffq: |capacity| Ffq::starting_at(capacity, START >> 1);
    linked_blocks: |capacity| LinkedBlocks::starting_at(capacity, START);
    baton: <Baton as Queue<Element>>::with_capacity;
}

/// Each lap has another size if either end had to wait in the one before.
#[test]
fn equeue_that_changes_its_size() {
    for (capacity, smallest) in [(2, 1), (4, 1), (4, 2)] {
        let elasticity = Elasticity {
            smallest,
            enlarge: 1,
            shrink: 1,
        };
        check(6, move || {
            EQueue::with_elasticity(capacity, elasticity).unwrap()
        });
    }
}

/// Where a batch is more than one element.
#[test]
fn batches() {
    check(5, || McRingBuffer::starting_at(8, START).unwrap());
    check(4, || <BQueue as Queue<Element>>::with_capacity(8).unwrap());
    check(4, || LinkedBlocks::starting_at(4, START).unwrap());
}
