//! The sending end of RDMA reads and atomics: it asks, and the other end's HCA answers without its CPU.
//!
//! A read brings a slot of the other end's memory into the slot of the same number here. What is there is a pattern
//! that no other request of the run has. The slot here is cleared before. So after the burst it shows whether the read
//! brought all bytes.
//!
//! Atomics all go to one word at the other end, which is 0 when the burst begins. A fetch and add adds 1, so it brings
//! back its number in the burst. A compare and swap expects its number and leaves the next one, so it does as well. The
//! word at the end tells whether the last one was done.

use std::sync::Arc;

use super::receiving_end::Receiver;
use super::sending_end::Sender;
use super::verbs_port::{PayloadStamps, RemoteSlots, VerbsCompletionPort, post};
use super::{BurstPort, Link, SendingEnd};
use crate::bench::hca::loops::port::{Failure, SendPort};
use crate::bench::hca::loops::tag::Tag;
use crate::bench::hca::settings::config::Operation;
use crate::buffer::Payload;
use crate::rdma::verbs::{QueuePair, SendRequest};
use crate::time::Ticks;

/// The memory of the other end, wherever that is.
pub(crate) trait Target: Send + Sync {
    /// Makes it ready for a request of a burst: for a read its slot has its pattern, for atomics the word is 0.
    fn make_ready(&self, burst: u32, sequence: u32);
    /// The word that atomics change, after a burst.
    fn word(&self, burst: u32) -> u64;
}

/// The memory of the other end in this process.
#[derive(Debug)]
pub(crate) struct LocalMemory {
    payload: Payload,
    operation: Operation,
}

impl LocalMemory {
    /// Of a receiver, for an operation.
    pub(crate) fn new(receiver: &Receiver, operation: Operation) -> Self {
        LocalMemory {
            payload: Payload::clone(receiver.payload()),
            operation,
        }
    }
}

impl Target for LocalMemory {
    fn make_ready(&self, burst: u32, sequence: u32) {
        if !self.operation.is_atomic() {
            self.payload.fill_whole(sequence as usize, burst, sequence);
        } else if sequence == 0 {
            self.payload.store_word(0, 0);
        }
    }

    fn word(&self, _burst: u32) -> u64 {
        self.payload.load_word(0)
    }
}

/// A sender that asks for what lies at the other end.
pub(crate) struct Requester {
    sender: Arc<Sender>,
    target: Box<dyn Target>,
    operation: Operation,
}

impl Requester {
    /// Asks by `operation` for what lies at the other end.
    pub(crate) fn new(
        sender: &Arc<Sender>,
        target: impl Target + 'static,
        operation: Operation,
    ) -> Self {
        Requester {
            sender: Arc::clone(sender),
            target: Box::new(target),
            operation,
        }
    }
}

impl SendingEnd for Requester {
    type Port = RequestPort;
    type SpreadPort = RequestPort;
    type Completions = VerbsCompletionPort;
    type Stamps = PayloadStamps;

    /// Makes memory ready at both ends.
    fn fill(&self, burst: u32, sequence: u32) {
        let (own, slot) = (self.sender.payload(), sequence as usize);
        self.target.make_ready(burst, sequence);
        if !self.operation.is_atomic() {
            return own.clear(slot);
        }
        // What it must not bring back.
        own.store_word(slot, !u64::from(sequence));
    }

    fn port(&self) -> RequestPort {
        let own = self.sender.payload();
        RequestPort {
            queue_pair: Arc::clone(self.sender.queue_pair()),
            request: self.sender.request(),
            first: own.slot(0).address(),
            stride: own.stride() as u64,
            remote: self.sender.remote(),
            operation: self.operation,
            tag: Tag::new(0),
        }
    }

    /// There is one queue pair: [`plan`](crate::bench::hca::plan) leaves out points with more.
    fn spread_port(&self) -> RequestPort {
        self.port()
    }

    fn completions(&self) -> VerbsCompletionPort {
        self.sender.completions()
    }

    /// There are none to rewrite: [`plan`](crate::bench::hca::plan) leaves such points out.
    fn stamps(&self) -> PayloadStamps {
        self.sender.stamps()
    }

    fn fetched(&self, burst: u32, sequence: u32) -> bool {
        let (own, slot) = (self.sender.payload(), sequence as usize);
        if self.operation.is_atomic() {
            let number = u64::from(sequence);
            own.load_word(slot) == number && self.target.word(burst) > number
        } else {
            own.holds_whole(slot, burst, sequence)
        }
    }

    fn link(&self) -> &dyn Link {
        self.sender.link()
    }
}

/// Posts reads or atomics. No stamp goes with them.
#[derive(Debug)]
pub(crate) struct RequestPort {
    queue_pair: Arc<QueuePair>,
    request: SendRequest,
    /// The slots of this end, as those of the other are told.
    first: u64,
    stride: u64,
    remote: RemoteSlots,
    operation: Operation,
    tag: Tag,
}

impl BurstPort for RequestPort {
    fn set_tag(&mut self, tag: Tag) {
        self.tag = tag;
    }
}

impl SendPort for RequestPort {
    #[inline(always)]
    fn prepare(&mut self, sequence: u32, signaled: bool) {
        let number = u64::from(sequence);
        let address = self.first + number * self.stride;
        self.request
            .aim(address, self.tag.immediate_data(sequence), signaled);
        let RemoteSlots { first, stride, .. } = self.remote;
        // All of this stands before the stamp.
        match self.operation {
            Operation::CompareSwap => {
                self.request.aim_remote(first);
                self.request.compare_and_swap(number, number + 1);
            }
            Operation::FetchAdd => self.request.aim_remote(first),
            _ => self.request.aim_remote(first + number * stride),
        }
    }

    #[inline(always)]
    fn stamp(&mut self, _stamp: Ticks) {}

    #[inline(always)]
    fn post(&mut self) -> Result<(), Failure> {
        post(&self.queue_pair, &mut self.request)
    }
}
