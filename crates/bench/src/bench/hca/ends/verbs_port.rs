//! The ports over verbs.

use std::sync::Arc;

use super::BurstPort;
use crate::bench::hca::loops::port::{
    Completion, CompletionPort, EventPort, Failure, PollResult, QueuePairPort, SendPort,
};
use crate::bench::hca::loops::stamper::StampSlots;
use crate::bench::hca::loops::tag::Tag;
use crate::buffer::{Payload, StampCursor};
use crate::rdma::verbs::{
    self, CompletionQueue, Poller, QueuePair, SendRequest, StampedPoller, VerbsError,
};
use crate::time::Ticks;

/// The slots of the peer's memory, for RDMA writes and reads.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub struct RemoteSlots {
    /// The key of its region.
    pub key: u32,
    /// The address of the first.
    pub first: u64,
    /// Bytes from one to the next.
    pub stride: u64,
}

/// Sends over a queue pair.
#[derive(Debug)]
pub struct VerbsSendPort {
    queue_pair: Arc<QueuePair>,
    request: SendRequest,
    stamp: StampCursor,
    remote: RemoteSlots,
    tag: Tag,
}

impl VerbsSendPort {
    /// Sends the slots of `payload` by `request`, which names its region, over `queue_pair`.
    pub fn new(
        queue_pair: &Arc<QueuePair>,
        request: SendRequest,
        payload: &Payload,
        remote: RemoteSlots,
    ) -> Self {
        VerbsSendPort {
            queue_pair: Arc::clone(queue_pair),
            stamp: StampCursor::new(payload),
            request,
            remote,
            tag: Tag::new(0),
        }
    }
}

impl BurstPort for VerbsSendPort {
    fn set_tag(&mut self, tag: Tag) {
        self.tag = tag;
    }
}

impl SendPort for VerbsSendPort {
    #[inline(always)]
    fn prepare(&mut self, sequence: u32, signaled: bool) {
        let address = self.stamp.move_to(sequence as usize);
        self.request
            .aim(address, self.tag.immediate_data(sequence), signaled);
        let RemoteSlots { first, stride, .. } = self.remote;
        self.request
            .aim_remote(first + u64::from(sequence) * stride);
    }

    #[inline(always)]
    fn stamp(&mut self, stamp: Ticks) {
        self.stamp.store_stamp(stamp);
    }

    #[inline(always)]
    fn post(&mut self) -> Result<(), Failure> {
        post(&self.queue_pair, &mut self.request)
    }
}

/// Posts a request that is ready.
#[inline(always)]
pub(crate) fn post(queue_pair: &QueuePair, request: &mut SendRequest) -> Result<(), Failure> {
    queue_pair
        .post_send(request)
        .map_err(|errno| call_failed(errno, |errno, _| in_words("ibv_post_send", errno)))
}

/// Sends over several queue pairs in turn: message `i` over that of number `i`, counted round and round.
#[derive(Debug)]
pub struct SpreadSendPort {
    ports: Box<[VerbsSendPort]>,
    /// That of the prepared message.
    at: usize,
}

impl SpreadSendPort {
    /// Sends over one of these after the other.
    pub fn new(ports: Box<[VerbsSendPort]>) -> Self {
        SpreadSendPort { ports, at: 0 }
    }
}

impl BurstPort for SpreadSendPort {
    fn set_tag(&mut self, tag: Tag) {
        self.ports.iter_mut().for_each(|port| port.set_tag(tag));
    }
}

impl SendPort for SpreadSendPort {
    #[inline(always)]
    fn prepare(&mut self, sequence: u32, signaled: bool) {
        self.at = sequence as usize % self.ports.len();
        self.ports[self.at].prepare(sequence, signaled);
    }

    #[inline(always)]
    fn stamp(&mut self, stamp: Ticks) {
        self.ports[self.at].stamp(stamp);
    }

    #[inline(always)]
    fn post(&mut self) -> Result<(), Failure> {
        self.ports[self.at].post()
    }
}

/// The stamps of a payload that is being sent.
#[derive(Debug)]
pub struct PayloadStamps(pub Payload);

impl StampSlots for PayloadStamps {
    #[inline(always)]
    fn restamp(&self, sequence: u32, stamp: Ticks) {
        self.0.slot(sequence as usize).store_stamp(stamp);
    }
}

/// What takes completions out of a queue of a kind.
pub trait QueuePoller: Send {
    /// The verb that looks.
    const VERB: &'static str;

    /// Takes one completion if there is one.
    fn poll(&mut self) -> verbs::PollResult;

    /// The queue.
    fn queue(&self) -> &CompletionQueue;
}

impl QueuePoller for Poller {
    const VERB: &'static str = "ibv_poll_cq";

    #[inline(always)]
    fn poll(&mut self) -> verbs::PollResult {
        Poller::poll(self)
    }

    #[inline(always)]
    fn queue(&self) -> &CompletionQueue {
        Poller::queue(self)
    }
}

impl QueuePoller for StampedPoller {
    const VERB: &'static str = "ibv_start_poll";

    #[inline(always)]
    fn poll(&mut self) -> verbs::PollResult {
        StampedPoller::poll(self)
    }

    #[inline(always)]
    fn queue(&self) -> &CompletionQueue {
        StampedPoller::queue(self)
    }
}

/// Takes completions from a completion queue.
pub struct VerbsCompletionPort<P = Poller> {
    pub(super) poller: P,
    /// Bytes that precede a message and are counted with it.
    header: u32,
    /// Whether anybody can send here, so that a message may not fit.
    open: bool,
}

impl<P> VerbsCompletionPort<P> {
    /// Takes completions by `poller`.
    pub fn new(poller: P) -> Self {
        VerbsCompletionPort {
            poller,
            header: 0,
            open: false,
        }
    }

    /// Takes completions of UD messages, which anybody can send, and which are preceded by `header` bytes.
    pub fn of_datagrams(poller: P, header: usize) -> Self {
        VerbsCompletionPort {
            header: header as u32,
            open: true,
            ..Self::new(poller)
        }
    }
}

impl<P: QueuePoller> CompletionPort for VerbsCompletionPort<P> {
    #[inline(always)]
    fn poll(&mut self) -> PollResult {
        match self.poller.poll() {
            verbs::PollResult::Empty => PollResult::Empty,
            verbs::PollResult::Done(completion) => PollResult::Done(Completion {
                request: completion.work_request_id,
                immediate_data: completion.immediate_data,
                bytes: completion.byte_count.wrapping_sub(self.header),
                source_queue_pair: completion.source_queue_pair,
            }),
            verbs::PollResult::Failed(completion) => PollResult::Failed(Failure {
                request: Some(completion.work_request_id),
                code: i64::from(completion.status),
                vendor_error: completion.vendor_error,
                consequence: completion.is_flush(),
                foreign: self.open && completion.is_misfit(),
                describe: if self.open {
                    describe_status_of_datagrams
                } else {
                    describe_status
                },
            }),
            verbs::PollResult::Broken(code) => PollResult::Failed(call_failed(code, |code, _| {
                format!("{} failed with {code}", P::VERB)
            })),
        }
    }
}

impl QueuePairPort for VerbsCompletionPort {
    #[inline(always)]
    fn queue_pair(&self) -> u32 {
        self.poller.queue_pair()
    }
}

impl<P: QueuePoller> EventPort for VerbsCompletionPort<P> {
    #[inline(always)]
    fn arm(&mut self) -> Result<(), Failure> {
        self.poller
            .queue()
            .request_notification()
            .map_err(|error| verb_failed(&error, |errno, _| in_words("ibv_req_notify_cq", errno)))
    }

    #[inline(always)]
    fn sleep(&mut self) -> Result<(), Failure> {
        match self.poller.queue().wait_for_event() {
            Ok(_) => Ok(()),
            Err(error) => Err(verb_failed(&error, |errno, _| {
                in_words("ibv_get_cq_event", errno)
            })),
        }
    }
}

/// A receive request that could not be posted.
#[cold]
pub fn not_posted(error: &VerbsError) -> Failure {
    verb_failed(error, |errno, _| in_words("ibv_post_recv", errno))
}

fn in_words(verb: &str, errno: i64) -> String {
    let error = std::io::Error::from_raw_os_error(errno as i32);
    format!("{verb} failed: {error}")
}

#[cold]
fn call_failed(code: i32, describe: fn(i64, u32) -> String) -> Failure {
    Failure {
        request: None,
        code: i64::from(code),
        vendor_error: 0,
        consequence: false,
        foreign: false,
        describe,
    }
}

#[cold]
fn verb_failed(error: &VerbsError, describe: fn(i64, u32) -> String) -> Failure {
    call_failed(error.errno().unwrap_or(0), describe)
}

/// Some devices stop a queue pair that gets a datagram for which its receive request has no room.
fn describe_status_of_datagrams(status: i64, vendor_error: u32) -> String {
    format!(
        "{}: did something else send a message larger than --size to its queue pair?",
        describe_status(status, vendor_error)
    )
}

fn describe_status(status: i64, vendor_error: u32) -> String {
    verbs::describe_status(status as u32, vendor_error)
}
