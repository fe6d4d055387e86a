//! Which queues there are. A new one is a file in this folder and a line here.
//!
//! A name is turned into a type by [`visit`], as `AnyClock::visit` does it for clocks: what the visitor
//! does is compiled for each queue on its own. `baton` is one of two types, by what is known before it is made.

use super::baton::{Baton, Choice, QueueSpec};
use super::element::Words;
use super::interface::{Ends, Queue, QueueError};
use super::parameters::{Parameter, Parameters};

#[cfg(feature = "cpp")]
use super::cpp;
#[cfg(feature = "competitors")]
use super::crates;

/// A queue for each size of payload: 8, 64 and 256 bytes.
pub trait EachPayloadSize: Queue<Words<1>> + Queue<Words<8>> + Queue<Words<32>> {}

impl<Q> EachPayloadSize for Q where Q: Queue<Words<1>> + Queue<Words<8>> + Queue<Words<32>> {}

/// Something to be done with a queue that was chosen by name; the way from a name to a type.
pub trait QueueUser {
    type Output;
    fn with<Q: EachPayloadSize>(self) -> Self::Output;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This project, after the source named or its own idea.
    Here,
    /// Others: the queue is used as it is.
    Crate,
    /// Others, in C++: the queue is used as it is, through a bridge.
    #[serde(rename = "c++")]
    Cpp,
}

impl Origin {
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Here => "here",
            Origin::Crate => "crate",
            Origin::Cpp => "c++",
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
    /// In what it differs from its source; nothing if it is empty.
    pub differs: &'static str,
    /// What can be chosen behind the name.
    pub parameters: &'static [Parameter],
    pub ends: Ends,
    pub origin: Origin,
}

macro_rules! registry {
    ($($(#[$condition:meta])? $origin:ident $queue:ty: $name:literal, $ends:ident, $source:literal
        $(, differs $differs:literal)? $(, parameters $parameters:expr)? $(, tuned $tuned:ty)?
        $(, sized $($size:literal => $sized:ty)+)? $(, where $suits:path => $chosen:ty)?;)+) => {
        /// All queues, in the order of a listing: our own, those of papers, those of crates.
        pub const ENTRIES: &[Entry] = &[$($(#[$condition])? Entry {
            name: $name,
            source: $source,
            differs: concat!($($differs)?),
            parameters: either(&[$(&$parameters)?]),
            ends: Ends::$ends,
            origin: Origin::$origin,
        },)+];

        /// Hands the queue of this name, with parameters behind it or without, to `user` as a type, which some queues
        /// have for this capacity or with parameters alone, and `baton` by all that is known of the queue; `None` when
        /// there is none of this name.
        pub fn visit<U: QueueUser>(
            name: &str,
            spec: impl Into<QueueSpec>,
            user: U,
        ) -> Option<U::Output> {
            let spec = spec.into();
            match parts(name).0 {
                $($(#[$condition])?
                $name => Some(match spec.capacity {
                    $(_ if parts(name).1.is_some() => user.with::<$tuned>(),)?
                    $(_ if $suits(&spec) => user.with::<$chosen>(),)?
                    $($($size => user.with::<$sized>(),)+)?
                    _ => user.with::<$queue>(),
                }),)+
                _ => None,
            }
        }
    };
}

registry! {
    Here super::BatchingBaton: "baton", Spsc, "hcabench",
        differs "baton-demoting or baton-batching, by the size of elements, the capacity, the caches of the processor \
                 and the cores of the two ends",
        where Baton::demotes => super::DemotingBaton;
    Here super::BatchingBaton: "baton-batching", Spsc, "hcabench",
        differs "its sender looks at the last place of a batch", parameters super::batching::PARAMETERS;
    Here super::DemotingBaton: "baton-demoting", Spsc, "hcabench",
        differs "for processors with cldemote: its ends demote the cache lines that they are done with",
        parameters super::demoting::PARAMETERS;
    Here super::Lamport: "lamport", Spsc, "Lamport: Specifying Concurrent Program Modules. TOPLAS 5 (2), 1983",
        differs "the indices have separate cache lines";
    Here super::FastForward: "fastforward", Spsc,
        "Giacomoni, Moseley, Vachharajani: FastForward for Efficient Pipeline Parallelism. PPoPP 2008",
        differs "keeps no temporal slip unless slip is given; demote is not of the paper",
        parameters super::fastforward::PARAMETERS, tuned super::TunedFastForward;
    Here super::McRingBuffer: "mcringbuffer", Spsc,
        "Lee, Bu, Chandranmenon: A Lock-Free, Cache-Efficient Multi-Core Synchronization Mechanism for Line-Rate \
         Network Traffic Monitoring. IPDPS 2010",
        differs "an end that finds the queue full or empty publishes the rest of its batch, so that none waits forever",
        parameters super::mcringbuffer::PARAMETERS;
    Here super::BQueue: "b-queue", Spsc,
        "Wang, Zhang, Tang, Hua: B-Queue: Efficient and Practical Queuing for Fast Core-to-Core Communication. IJPP \
         41 (1), 2013",
        parameters super::b_queue::PARAMETERS;
    Here super::EQueue: "equeue", Spsc,
        "Wang, Tian, Fu: EQueue: Elastic Lock-Free FIFO Queue for Core-to-Core Communication on Multi-Core \
         Processors. IEEE Access 8, 2020",
        differs "the sender shrinks the ring, at the end of a lap; it begins with its largest size",
        parameters super::equeue::PARAMETERS;
    Here super::Ffq: "ffq", Spsc,
        "Arnautov, Felber, Fetzer, Trach: FFQ: A Fast Single-Producer/Multiple-Consumer Concurrent FIFO Queue. IPDPS \
         2017",
        differs "one receiver, which takes a rank when it finds the element; the sender reports a full queue instead \
                 of skipping";
    Here super::LinkedBlocks: "linked-blocks", Spsc,
        "Aldinucci, Danelutto, Kilpatrick, Meneghin, Torquati: An Efficient Unbounded Lock-Free Queue for Multi-core \
         Systems. Euro-Par 2012",
        differs "bounded, with all blocks made in advance";
    Here super::Sharded: "sharded", Mpmc, "hcabench",
        differs "a ring of baton-demoting for each pair of a sender and a receiver: in order from one to the other, \
         not beyond";
    #[cfg(feature = "competitors")] Crate crates::Rtrb: "rtrb", Spsc, "crate rtrb 0.4";
    #[cfg(feature = "competitors")] Crate crates::Ringbuf: "ringbuf", Spsc, "crate ringbuf 0.6";
    #[cfg(feature = "competitors")] Crate crates::Heapless<0>: "heapless", Spsc, "crate heapless 0.9, spsc::Queue",
        differs "the compiler knows capacities of 64, 1024 and 65536; by others the ends divide",
        sized 64 => crates::Heapless<64> 1024 => crates::Heapless<1024> 65536 => crates::Heapless<65536>;
    #[cfg(feature = "competitors")] Crate crates::CrossbeamArrayQueue: "crossbeam-array", Mpmc,
        "crate crossbeam-queue 0.3, ArrayQueue";
    #[cfg(feature = "competitors")] Crate crates::Thingbuf: "thingbuf", Mpmc, "crate thingbuf 0.1, ThingBuf";
    #[cfg(feature = "competitors")] Crate crates::SyncChannel: "sync-channel", Mpsc,
        "Rust's standard library, mpsc::sync_channel";
    #[cfg(feature = "competitors")] Crate crates::Flume: "flume", Mpmc, "crate flume 0.12, bounded";
    #[cfg(feature = "competitors")] Crate crates::Kanal: "kanal", Mpmc, "crate kanal 0.1, bounded";
    #[cfg(feature = "cpp")] Here cpp::BatonByCall<super::BatchingBaton>: "baton-by-call", Spsc, "hcabench",
        differs "baton behind calls that are not inlined, as the queues of C++ are: what the bridge to them costs",
        where Baton::demotes => cpp::BatonByCall<super::DemotingBaton>;
    #[cfg(feature = "cpp")] Cpp cpp::Cpp<cpp::BoostSpsc>: "boost-spsc", Spsc,
        "Boost.Lockfree as installed where this was built, spsc_queue of a capacity chosen at run time";
    #[cfg(feature = "cpp")] Cpp cpp::Cpp<cpp::ReaderWriterQueue>: "reader-writer-queue", Spsc,
        "moodycamel::ReaderWriterQueue as installed where this was built, with try_enqueue, which never allocates",
        differs "its blocks have room for more: the bridge keeps it to its capacity";
    #[cfg(feature = "cpp")] Cpp cpp::Cpp<cpp::ConcurrentQueue>: "concurrent-queue", Mpmc,
        "moodycamel::ConcurrentQueue as installed where this was built, with tokens and try_enqueue",
        differs "its blocks have room for more: the bridge keeps it to its capacity, and several senders to some less";
}

/// A name, and the parameters behind it.
fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once(':') {
        Some((name, parameters)) => (name, Some(parameters)),
        None => (name, None),
    }
}

/// The only one, or none.
const fn either(lists: &[&'static [Parameter]]) -> &'static [Parameter] {
    match lists {
        [list] => list,
        _ => &[],
    }
}

/// What there is to know of the queue of this name, with parameters behind it or without.
pub fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == parts(name).0)
}

/// Which queue it is where that follows from what is known of it; `None` of a name that is always the same.
pub fn chosen(name: &str, spec: &QueueSpec) -> Option<Choice> {
    ["baton", "baton-by-call"]
        .contains(&parts(name).0)
        .then(|| Baton::choice(spec))
}

/// The parameters that follow the name of a queue.
///
/// # Errors
/// What is wrong with them, and what is allowed.
pub fn given(name: &str) -> Result<Parameters, String> {
    match (entry(name), parts(name).1) {
        (Some(entry), Some(text)) => Parameters::parse(text, entry.parameters),
        _ => Ok(Parameters::default()),
    }
}

/// The names of all queues, in the same order.
pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.name)
}

/// The names of all queues but those that `baton` can be: measured beside it, they would be the same code again.
pub fn distinct_names() -> impl Iterator<Item = &'static str> {
    names().filter(|name| !Baton::ALL.iter().any(|kind| kind.name() == *name))
}

/// Makes a queue once, for several senders and receivers.
struct QueueTrial(usize, Parameters, [usize; 2]);

impl QueueUser for QueueTrial {
    type Output = Option<QueueError>;

    fn with<Q: EachPayloadSize>(self) -> Self::Output {
        let QueueTrial(capacity, given, [senders, receivers]) = self;
        <Q as Queue<Words<1>>>::shared(capacity, &given, senders, receivers).err()
    }
}

/// Why a queue does not come in a capacity; `None` if it does. It is made to find out.
pub fn refusal(name: &str, capacity: usize) -> Option<String> {
    refusal_of_shared(name, capacity, [1, 1])
}

/// The same with several senders and receivers that share it.
pub fn refusal_of_shared(name: &str, capacity: usize, ends: [usize; 2]) -> Option<String> {
    if let Some(entry) = entry(name)
        && !entry.ends.serve(ends[0], ends[1])
    {
        let [senders, receivers] = ends;
        let kind = entry.ends.name();
        return Some(format!(
            "the queue {name} is made for {kind}: {senders} senders and {receivers} receivers cannot share it"
        ));
    }
    let given = match given(name) {
        Ok(given) => given,
        Err(wrong) => return Some(format!("the queue {name}: {wrong}")),
    };
    match visit(name, capacity, QueueTrial(capacity, given, ends)) {
        None => Some(format!("there is no queue {name}")),
        Some(refused) => refused.map(|error| format!("the queue {name} {error}")),
    }
}
