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

macro_rules! registry {
    ($($(#[$condition:meta])? $origin:ident $queue:ty: $name:literal, $ends:ident, $source:literal;)+) => {
        /// All queues, in the order of a listing: our own, those of papers, those of crates.
        pub const ENTRIES: &[Entry] = &[$($(#[$condition])? Entry {
            name: $name,
            source: $source,
            ends: Ends::$ends,
            origin: Origin::$origin,
        },)+];

        /// Hands the queue of this name to `user` as a type; `None` when there is none of this name.
        pub fn visit<U: QueueUser>(name: &str, user: U) -> Option<U::Output> {
            match name {
                $($(#[$condition])?
                $name => Some(user.with::<$queue>()),)+
                _ => None,
            }
        }
    };
}

registry! {
    Here super::Baton: "baton", Spsc, "hcabench";
    Here super::Lamport: "lamport", Spsc, "Lamport: Specifying Concurrent Program Modules. TOPLAS 5 (2), 1983";
    Here super::FastForward: "fastforward", Spsc,
        "Giacomoni, Moseley, Vachharajani: FastForward for Efficient Pipeline Parallelism. PPoPP 2008";
    Here super::McRingBuffer: "mcringbuffer", Spsc,
        "Lee, Bu, Chandranmenon: A Lock-Free, Cache-Efficient Multi-Core Synchronization Mechanism for Line-Rate \
         Network Traffic Monitoring. IPDPS 2010";
    Here super::BQueue: "b-queue", Spsc,
        "Wang, Zhang, Tang, Hua: B-Queue: Efficient and Practical Queuing for Fast Core-to-Core Communication. IJPP \
         41 (1), 2013";
    Here super::EQueue: "equeue", Spsc,
        "Wang, Tian, Fu: EQueue: Elastic Lock-Free FIFO Queue for Core-to-Core Communication on Multi-Core \
         Processors. IEEE Access 8, 2020";
    Here super::Ffq: "ffq", Spsc,
        "Arnautov, Felber, Fetzer, Trach: FFQ: A Fast Single-Producer/Multiple-Consumer Concurrent FIFO Queue. IPDPS \
         2017";
    Here super::LinkedBlocks: "linked-blocks", Spsc,
        "Aldinucci, Danelutto, Kilpatrick, Meneghin, Torquati: An Efficient Unbounded Lock-Free Queue for Multi-core \
         Systems. Euro-Par 2012";
    #[cfg(feature = "competitors")] Crate crates::Rtrb: "rtrb", Spsc, "crate rtrb 0.4";
    #[cfg(feature = "competitors")] Crate crates::Ringbuf: "ringbuf", Spsc, "crate ringbuf 0.6";
    #[cfg(feature = "competitors")] Crate crates::Heapless: "heapless", Spsc, "crate heapless 0.9, spsc::Queue";
    #[cfg(feature = "competitors")] Crate crates::CrossbeamArrayQueue: "crossbeam-array", Mpmc,
        "crate crossbeam-queue 0.3, ArrayQueue";
    #[cfg(feature = "competitors")] Crate crates::Thingbuf: "thingbuf", Mpmc, "crate thingbuf 0.1, ThingBuf";
    #[cfg(feature = "competitors")] Crate crates::SyncChannel: "sync-channel", Mpsc,
        "Rust's standard library, mpsc::sync_channel";
    #[cfg(feature = "competitors")] Crate crates::Flume: "flume", Mpmc, "crate flume 0.12, bounded";
    #[cfg(feature = "competitors")] Crate crates::Kanal: "kanal", Mpmc, "crate kanal 0.1, bounded";
}

/// What there is to know of the queue of this name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
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
        Some(refused) => refused.map(|error| format!("the queue {name} {error}")),
    }
}
