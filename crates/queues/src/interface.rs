//! What a queue is to this benchmark: two ends, each used by one thread, that never block.

use super::element::Element;
use super::parameters::Parameters;

/// The end that puts elements in.
pub trait Sender<T>: Send {
    /// Puts an element in; `false` when the queue is full, and the element was not taken.
    fn enqueue(&mut self, element: T) -> bool;

    /// Whether the queue hands over in batches, so that [`flush`](Self::flush) has something to do.
    const HOLDS_BACK: bool = false;

    /// Makes visible what was enqueued and is held back, in queues that [hand over in batches](Self::HOLDS_BACK). The
    /// runner calls it when it pauses and after the last element. Before a pause its time belongs to the enqueue: it is
    /// what other queues do in each.
    #[inline(always)]
    fn flush(&mut self) {}
}

/// The end that takes elements out.
pub trait Receiver<T>: Send {
    /// Takes the oldest element; `None` when there is none to be seen.
    fn dequeue(&mut self) -> Option<T>;
}

/// What only puts elements in.
#[derive(Debug)]
pub struct SendOnly<E>(pub(super) E);

/// What only takes elements out.
#[derive(Debug)]
pub struct ReceiveOnly<E>(pub(super) E);

/// How many threads each end of a queue can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// One sender, one receiver.
    Spsc,
    /// Many of both, at a price.
    Mpmc,
    /// Many senders, one receiver.
    Mpsc,
}

impl Ends {
    /// The word in results and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Ends::Spsc => "spsc",
            Ends::Mpsc => "mpsc",
            Ends::Mpmc => "mpmc",
        }
    }

    /// Whether these numbers of senders and receivers can share the queue.
    pub const fn serve(self, senders: usize, receivers: usize) -> bool {
        match self {
            Ends::Spsc => senders == 1 && receivers == 1,
            Ends::Mpsc => receivers == 1,
            Ends::Mpmc => true,
        }
    }
}

/// The queue does not come in this capacity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot hold {asked} elements: {allowed}")]
pub struct QueueError {
    /// What was asked for.
    pub asked: usize,
    /// What is possible.
    pub allowed: &'static str,
}

/// The two ends of a new queue, or why there is none.
pub type NewEnds<Q, T> = Result<(<Q as Queue<T>>::Sender, <Q as Queue<T>>::Receiver), QueueError>;

/// The ends of a new queue that several threads share, one for each of them, or why there is none.
pub type SharedEnds<Q, T> =
    Result<(Vec<<Q as Queue<T>>::Sender>, Vec<<Q as Queue<T>>::Receiver>), QueueError>;

/// The only sender and the only receiver of those that could be shared.
pub fn alone<S, R>(ends: (Vec<S>, Vec<R>)) -> (S, R) {
    let (mut senders, mut receivers) = ends;
    assert!(senders.len() == 1 && receivers.len() == 1);
    (senders.remove(0), receivers.remove(0))
}

/// A kind of queue.
pub trait Queue<T: Element>: 'static {
    /// The sending end.
    type Sender: Sender<T> + 'static;
    /// The receiving end.
    type Receiver: Receiver<T> + 'static;

    /// Makes a queue for `capacity` elements, with all its memory touched; some are "full" before they hold as many.
    /// Indices that count elements begin at `start`, so that tests can begin just before they wrap around; most queues
    /// have none.
    fn starting_at(capacity: usize, start: usize) -> NewEnds<Self, T>;

    /// The same for use.
    fn with_capacity(capacity: usize) -> NewEnds<Self, T> {
        Self::starting_at(capacity, 0)
    }

    /// The same with parameters, by a queue that has any.
    fn with_parameters(capacity: usize, _given: &Parameters) -> NewEnds<Self, T> {
        Self::with_capacity(capacity)
    }

    /// The same for several senders and receivers that share it, by a queue that is made for them.
    ///
    /// # Panics
    /// If it is not: see [`Ends::serve`].
    fn shared(
        capacity: usize,
        given: &Parameters,
        senders: usize,
        receivers: usize,
    ) -> SharedEnds<Self, T> {
        assert!(Ends::Spsc.serve(senders, receivers));
        let (sender, receiver) = Self::with_parameters(capacity, given)?;
        Ok((vec![sender], vec![receiver]))
    }
}
