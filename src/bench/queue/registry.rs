//! Stand-in for the list of queues.

use super::element::{Element, Words};
use super::interface::{Ends, Queue, QueueError, Receiver, Sender};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A queue for each size of payload: 8, 64 and 256 bytes.
pub trait AllPayloads: Queue<Words<1>> + Queue<Words<8>> + Queue<Words<32>> {}
impl<Q> AllPayloads for Q where Q: Queue<Words<1>> + Queue<Words<8>> + Queue<Words<32>> {}

/// Something to be done with a queue.
pub trait QueueUser {
    /// What comes of it.
    type Output;
    /// Called with the queue.
    fn with<Q: AllPayloads>(self) -> Self::Output;
}

/// Who wrote a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This project, after the source named or its own idea.
    Here,
    /// Others: the queue is used as it is.
    Crate,
}

/// What there is to know of a queue without making one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// Where the idea is from: a paper, or the crate with its version.
    pub source: &'static str,
    /// How many threads each end could have.
    pub ends: Ends,
    /// Who wrote it.
    pub origin: Origin,
}

const ENTRIES: &[Entry] = &[Entry {
    name: "mutex",
    source: "a stand-in",
    ends: Ends::Mpmc,
    origin: Origin::Here,
}];

/// Visits.
pub fn visit<U: QueueUser>(name: &str, user: U) -> Option<U::Output> {
    (name == "mutex").then(|| user.with::<Locked>())
}

/// All queues.
pub const fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The names of all queues, in the same order.
pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.name)
}

struct Locked;
/// An end.
pub struct LockedEnd<T>(Arc<Mutex<VecDeque<T>>>, usize);
impl<T: Element> Sender<T> for LockedEnd<T> {
    fn enqueue(&mut self, element: T) -> bool {
        let mut queue = self.0.lock().unwrap();
        let fits = queue.len() < self.1;
        if fits {
            queue.push_back(element);
        }
        fits
    }
}
impl<T: Element> Receiver<T> for LockedEnd<T> {
    fn dequeue(&mut self) -> Option<T> {
        self.0.lock().unwrap().pop_front()
    }
}
impl<T: Element> Queue<T> for Locked {
    type Sender = LockedEnd<T>;
    type Receiver = LockedEnd<T>;
    const NAME: &'static str = "mutex";
    const SOURCE: &'static str = "a stand-in";
    const ENDS: Ends = Ends::Mpmc;
    fn with_capacity(capacity: usize) -> Result<(Self::Sender, Self::Receiver), QueueError> {
        if capacity == 0 {
            return Err(QueueError::Capacity {
                queue: "mutex",
                asked: 0,
                allowed: "at least 1",
            });
        }
        let queue = Arc::new(Mutex::new(VecDeque::with_capacity(capacity)));
        Ok((
            LockedEnd(queue.clone(), capacity),
            LockedEnd(queue, capacity),
        ))
    }
}
