//! The two ends of a point, as its threads and its session see them.
//!
//! A fabric is two types, which meet only where they are connected: the verbs are one implementation (`sending_end`,
//! `receiving_end`), a scripted one lets sessions be tested without a device.

pub mod endpoints;
pub(crate) mod facts;
pub(crate) mod hardware_stamps;
mod interrupts;
pub(crate) mod numbered_end;
pub(crate) mod open_port;
pub mod path_proof;
pub(crate) mod polled_end;
pub(crate) mod receiving_end;
pub(crate) mod requesting_end;
pub(crate) mod sending_end;
pub(crate) mod stamped_ends;
pub(crate) mod two_ports;
pub mod uc_route;
pub(crate) mod verbs_link;
pub mod verbs_port;

use std::time::Duration;

use self::hardware_stamps::HardwareStamps;
use crate::bench::hca::loops::port::{EventPort, SendPort};
use crate::bench::hca::loops::stamper::StampSlots;
use crate::bench::hca::loops::tag::Tag;
use crate::buffer::{Arrival, PageKind};
use crate::rdma::verbs::{CounterReading, PortCounters, VerbsError};
use crate::time::Ticks;

/// A port of the sending loop that is turned to another burst in between.
pub trait BurstPort: SendPort {
    /// Sets the tag of the next burst.
    fn set_tag(&mut self, tag: Tag);
}

/// What can be asked of either end.
pub trait Link {
    /// The pages of the messages.
    fn page_kind(&self) -> PageKind;
    /// What makes it impossible that any more messages pass: the end of the connection or of a device. Never blocks.
    fn trouble(&self) -> Option<String>;
    /// What ends the other end's connection as well, whichever is noticed first: its device was removed, or the process
    /// of another host has gone. It is waited so long at the most until that host shows it.
    fn root_cause(&self, limit: Duration) -> Option<String>;
    /// That its port takes no longer packets as large as the connection sends.
    fn lowered_mtu(&self) -> Option<String>;
    /// The counters of its port.
    fn counters(&self, reading: CounterReading) -> PortCounters;
    /// What has changed of its port since it was connected, in words. Never blocks.
    fn changes(&self) -> Vec<String>;
}

/// Where messages come from.
pub trait SendingEnd: Send + Sync + 'static {
    /// The sending loop's port over a single queue pair.
    type Port: BurstPort;
    /// The same over several in turn.
    type SpreadPort: BurstPort;
    /// Where send completions are found.
    type Completions: EventPort;
    /// The stamps of the messages, for rewriting.
    type Stamps: StampSlots;

    /// Writes message `sequence` of burst `burst` into its place, all but its stamp.
    fn fill(&self, burst: u32, sequence: u32);
    /// A port of its own.
    fn port(&self) -> Self::Port;
    /// A port of its own, over all queue pairs.
    fn spread_port(&self) -> Self::SpreadPort;
    /// A port of its own for send completions.
    fn completions(&self) -> Self::Completions;
    /// Access to the stamps.
    fn stamps(&self) -> Self::Stamps;
    /// The stamps of its send completions, if its adapter stamps them.
    fn hardware(&self) -> Option<&HardwareStamps> {
        None
    }
    /// Whether what request `sequence` of a burst brought back is what it should be. Messages bring nothing back.
    fn fetched(&self, _burst: u32, _sequence: u32) -> bool {
        true
    }
    /// What it has in common with the other end.
    fn link(&self) -> &dyn Link;
}

/// Where messages arrive.
pub trait ReceivingEnd: Send + Sync + 'static {
    /// The receiving loop's port.
    type Port: EventPort;

    /// How many messages it has room for: each queue of receive requests for as many, the first for those of the first
    /// slots.
    fn slots(&self) -> usize;
    /// Receive requests that each queue holds at a time.
    fn requests(&self) -> usize;
    /// Sets a slot to zero.
    fn clear(&self, slot: usize);
    /// Posts a receive request for a slot to the queue that has room there; its number is the slot's.
    ///
    /// # Errors
    /// When the queue refuses.
    fn post(&self, slot: usize) -> Result<(), VerbsError>;
    /// A port of its own for the first `messages` messages of a burst, whose slots are clear.
    fn port(&self, burst: u32, messages: usize) -> Self::Port;
    /// The stamps of its receive completions, if its adapter stamps them.
    fn hardware(&self) -> Option<&HardwareStamps> {
        None
    }
    /// The queue pairs that messages come from, in turn, where completions tell it (UD), else none.
    fn sources(&self) -> &[u32];
    /// The time stamp that message `sequence` of a burst brought, if length and pattern are those that were sent.
    fn delivered(&self, burst: u32, arrival: &Arrival, sequence: u32) -> Option<Ticks>;
    /// What it has in common with the other end.
    fn link(&self) -> &dyn Link;
}
