//! Which queues there are. A new one is a file in this folder and a line here.
//!
//! A name is turned into a type by [`visit`], as [`crate::time::AnyClock::visit`] does it for clocks: what the visitor
//! does is compiled for each queue on its own.

use super::element::Words;
use super::interface::{Ends, Queue, QueueError};

#[cfg(feature = "competitors")]
use super::crates;

/// A queue for each size of payload: 8, 64 and 256 bytes.
pub trait AllPayloads: Queue<Words<1>> + Queue<Words<8>> + Queue<Words<32>> {}

impl<Q> AllPayloads for Q where Q: Queue<Words<1>> + Queue<Words<8>> + Queue<Words<32>> {}

/// Something to be done with a queue that was chosen by name; the way from a name to a type.
pub trait QueueUser {
    type Output;
    fn with<Q: AllPayloads>(self) -> Self::Output;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This project, after the source named or its own idea.
    Here,
    /// Others: the queue is used as it is.
    #[cfg_attr(
        not(feature = "competitors"),
        expect(dead_code, reason = "no crate is compiled in")
    )]
    Crate,
}

impl Origin {
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Here => "here",
            Origin::Crate => "crate",
        }
    }
}

/// What there is to know of a queue without making one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// Where the idea is from: a paper, or the crate with its version.
    pub source: &'static str,
    pub ends: Ends,
    pub origin: Origin,
}

impl Entry {
    const fn of<Q: AllPayloads>(origin: Origin) -> Self {
        Entry {
            name: <Q as Queue<Words<1>>>::NAME,
            source: <Q as Queue<Words<1>>>::SOURCE,
            ends: <Q as Queue<Words<1>>>::ENDS,
            origin,
        }
    }
}

macro_rules! registry {
    ($($(#[$condition:meta])? $origin:ident $queue:ty;)+) => {
        const ENTRIES: &[Entry] = &[$($(#[$condition])? Entry::of::<$queue>(Origin::$origin),)+];

        /// Hands the queue of this name to `user` as a type; `None` when there is none of this name.
        pub fn visit<U: QueueUser>(name: &str, user: U) -> Option<U::Output> {
            $($(#[$condition])?
            if name == <$queue as Queue<Words<1>>>::NAME {
                return Some(user.with::<$queue>());
            })+
            None
        }
    };
}

registry! {
    Here super::Baton;
    Here super::Lamport;
    Here super::FastForward;
    Here super::McRingBuffer;
    Here super::BQueue;
    Here super::EQueue;
    Here super::Ffq;
    Here super::LinkedBlocks;
    #[cfg(feature = "competitors")] Crate crates::Rtrb;
    #[cfg(feature = "competitors")] Crate crates::Ringbuf;
    #[cfg(feature = "competitors")] Crate crates::Heapless;
    #[cfg(feature = "competitors")] Crate crates::CrossbeamArrayQueue;
    #[cfg(feature = "competitors")] Crate crates::Thingbuf;
    #[cfg(feature = "competitors")] Crate crates::SyncChannel;
    #[cfg(feature = "competitors")] Crate crates::Flume;
    #[cfg(feature = "competitors")] Crate crates::Kanal;
}

/// All queues, in the order of a listing: our own, those of papers, those of crates.
pub const fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The names of all queues, in the same order.
pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.name)
}

/// Makes a queue once.
struct Tried(usize);

impl QueueUser for Tried {
    type Output = Option<QueueError>;

    fn with<Q: AllPayloads>(self) -> Self::Output {
        <Q as Queue<Words<1>>>::with_capacity(self.0).err()
    }
}

/// Why a queue does not come in a capacity; `None` if it does. It is made to find out.
pub fn refusal(name: &str, capacity: usize) -> Option<String> {
    match visit(name, Tried(capacity)) {
        None => Some(format!("there is no queue {name}")),
        Some(refused) => refused.map(|error| error.to_string()),
    }
}
