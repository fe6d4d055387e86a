//! The interleavings of two threads, and all values the memory model allows, on queues that are small enough for it.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --no-default-features --lib loom`; see `ci/check-queues`.

use super::element::Words;
use super::equeue::{Batching, Elasticity};
use super::interface::{Queue, Receiver, Sender};
use super::parameters::Given;
use super::ring::{self, Memory, RingReceiver, RingSender, Shape};
use super::{
    BQueue, Baton, EQueue, FastForward, Ffq, Lamport, LinkedBlocks, McRingBuffer, Sharded,
};

/// With a second word, that may only be read when the first one is there.
type Element = Words<2>;

fn element(number: u64) -> Element {
    Words::from_words([number, number ^ 1])
}

/// All interleavings in which no thread is interrupted more than three times; an end that finds the queue full or empty
/// lets the other go on.
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

/// The ring of run-time size behind the interface of the others.
impl<M: Memory + Send> Sender<Element> for RingSender<M> {
    fn enqueue(&mut self, element: Element) -> bool {
        RingSender::enqueue(self, |at| element.words()[at])
    }
}

impl<M: Memory + Send> Receiver<Element> for RingReceiver<M> {
    fn dequeue(&mut self) -> Option<Element> {
        let mut words = [0; 2];
        RingReceiver::dequeue(self, |at, word| words[at] = word).then(|| Element::from_words(words))
    }
}

#[test]
fn ring() {
    for capacity in [1, 2] {
        check(3, move || {
            ring::tests::ends(1, Shape { capacity, words: 2 })
        });
    }
}

/// A queue just before its indices wrap around, if it has any.
fn made<Q: Queue<Element>>(capacity: usize) -> (Q::Sender, Q::Receiver) {
    Q::starting_at(capacity, usize::MAX - 1).unwrap()
}

/// A queue with these parameters.
fn with<Q: Queue<Element>, const N: usize>(
    capacity: usize,
    given: [usize; N],
) -> (Q::Sender, Q::Receiver) {
    Q::with_parameters(capacity, &Given::of(given)).unwrap()
}

macro_rules! check_all {
    ($($name:ident: $queue:ty;)+) => {$(
        #[test]
        fn $name() {
            check(3, || made::<$queue>(1));
            check(3, || made::<$queue>(2));
        }
    )+};
}

check_all! {
    lamport: Lamport;
    fastforward: FastForward;
    mcringbuffer: McRingBuffer;
    b_queue: BQueue;
    equeue: EQueue;
    ffq: Ffq;
    linked_blocks: LinkedBlocks;
    baton: Baton;
    sharded: Sharded;
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
        for batch in [1, 2] {
            let batching = Batching {
                batch,
                slice: 1,
                penalty: 0,
            };
            check(6, move || {
                EQueue::with_elasticity(capacity, elasticity, batching).unwrap()
            });
        }
    }
}

/// Where a batch is more than one element.
#[test]
fn batches() {
    check(5, || with::<McRingBuffer, 1>(8, [2]));
    check(4, || with::<BQueue, 2>(4, [2, 0]));
    check(4, || with::<BQueue, 2>(3, [2, 0]));
    check(4, || with::<EQueue, 3>(4, [2, 1, 0]));
    check(4, || made::<LinkedBlocks>(4));
    check(4, || with::<FastForward, 3>(16, [1, 1, 0]));
}
