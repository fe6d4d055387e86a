//! The end that sends.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connector::ConnectedEnd;
use super::fabric::failed;
use super::manager::Manager;
use super::rules::{Signals, to_poll};
use crate::node::pool::WORD;
use crate::node::wiring::Distribution;
use crate::node::{Node, NodeError, Pool, Settings, Slot, WorkRequestCounts};
use crate::rdma::cm::Connection;
use crate::rdma::verbs::{
    AddressHandle, FailedCompletion, MemoryRegion, PollResult, Poller, QueuePair, SendList,
    describe_status,
};
use crate::rig::ports::Service;

/// Bytes of the element that comes before the values: stamp and number.
const HEADER: u32 = 2 * WORD as u32;
/// How long is waited at the end for completions of what is on its way.
const DRAIN: Duration = Duration::from_millis(200);
/// And then for those of requests that are flushed, which always come, unless the device was removed.
pub(super) const FLUSH: Duration = Duration::from_secs(2);
/// The bits of a request's number above those of the slot: which queue pair has it, and whether it is signalled.
pub(super) const QUEUE_SHIFT: u32 = 32;
const SIGNALED: u64 = 1 << 63;

/// The end that sends.
#[derive(Debug)]
pub struct InfiniBandPublisher {
    manager: Manager,
    settings: Settings,
    distribution: Distribution,
    /// Whether each sample goes to one target.
    in_turn: bool,
    sending: Option<PublisherState>,
    work: WorkRequestCounts,
}

/// What it has once it is connected.
#[derive(Debug)]
struct PublisherState {
    queues: Vec<Queue>,
    targets: Vec<SendTarget>,
    /// By slot: signalled requests that are under way.
    copies: Vec<u32>,
    /// Their sum.
    under_way: u64,
    /// Requests that one completion reports as done: those before it in their queue, too.
    per_completion: usize,
    poller: Poller,
    inline: bool,
    connections: Arc<Vec<Connection>>,
}

#[derive(Debug)]
struct Queue {
    pair: Arc<QueuePair>,
    signals: Signals,
    /// Requests that it has room for, by the completions so far.
    room: usize,
    /// Copies of a sample that it carries.
    copies: usize,
}

/// A subscriber.
#[derive(Debug)]
struct SendTarget {
    /// Which queue pair leads to it.
    queue: usize,
    list: SendList,
}

impl InfiniBandPublisher {
    pub(super) fn new(
        manager: Manager,
        settings: &Settings,
        distribution: Distribution,
        in_turn: bool,
    ) -> Self {
        InfiniBandPublisher {
            manager,
            settings: settings.clone(),
            distribution,
            in_turn,
            sending: None,
            work: WorkRequestCounts::default(),
        }
    }
}

impl PublisherState {
    /// `copies`: of a sample.
    fn new(
        connected: ConnectedEnd,
        pool: &Pool,
        settings: &Settings,
        copies: usize,
    ) -> Result<Self, NodeError> {
        let ConnectedEnd {
            domain,
            send_queue,
            connections,
            ..
        } = connected;
        let access = crate::rdma::verbs::Access::Send;
        let region = MemoryRegion::register(&domain, pool.memory(), access).map_err(failed)?;
        let bytes = pool.sample_bytes() as u32;
        let inline = bytes <= settings.verbs.max_inline;
        let signals = Signals::new(settings.verbs.signal_every, inline);
        let is_datagram = settings.verbs.service == Service::Ud;
        let every = settings.verbs.signal_every as usize;
        let mut targets = Vec::new();
        for (number, connection) in connections.iter().enumerate() {
            let handle = connection.address().filter(|_| is_datagram);
            let handle = handle.map(|vector| AddressHandle::create(&domain, vector));
            let handle = handle.transpose().map_err(failed)?;
            targets.push(SendTarget {
                queue: if is_datagram { 0 } else { number },
                list: SendList::new(&region, (HEADER, bytes), settings.vectorize, handle),
            });
        }
        // Datagrams all go by one, each with the handle of its target.
        let pairs = if is_datagram { 1 } else { connections.len() };
        let copies = if is_datagram { copies } else { 1 };
        let queue = |connection: &Connection| Queue {
            pair: Arc::clone(connection.queue_pair()),
            signals,
            room: settings.send_queue as usize * copies,
            copies,
        };
        Ok(PublisherState {
            queues: connections.iter().take(pairs).map(queue).collect(),
            targets,
            copies: vec![0; pool.count()],
            under_way: 0,
            per_completion: if inline { every } else { 1 },
            poller: send_queue.poller(),
            inline,
            connections,
        })
    }

    /// Whether all of the targets have room for this many samples.
    #[inline(always)]
    fn has_room(&self, mut targets: Range<usize>, samples: usize) -> bool {
        targets.all(|target| {
            let queue = &self.queues[self.targets[target].queue];
            queue.room >= samples * queue.copies
        })
    }

    /// How many samples, at most `wanted`, all of the targets have room for. If they seem to lack it, completions are
    /// taken first: some adapters free their queues by these alone.
    #[inline(always)]
    fn make_room(
        &mut self,
        pool: &mut Pool,
        targets: Range<usize>,
        wanted: usize,
        work: &mut WorkRequestCounts,
    ) -> Result<usize, FailedCompletion> {
        while !self.has_room(targets.clone(), wanted) {
            match self.complete(pool) {
                None => {
                    let fits = |&samples: &usize| self.has_room(targets.clone(), samples);
                    return Ok((0..wanted).rev().find(fits).unwrap_or(0));
                }
                Some(completed) => release(completed?, pool, work),
            }
        }
        Ok(wanted)
    }

    /// Posts the samples, for which there is room, to a target by one call.
    #[inline(always)]
    fn post(&mut self, pool: &Pool, samples: &[Slot], target: usize) -> Result<(), NodeError> {
        let SendTarget { queue, list } = &mut self.targets[target];
        let place = (*queue as u64) << QUEUE_SHIFT;
        let queue = &mut self.queues[*queue];
        for (at, slot) in samples.iter().enumerate() {
            let signaled = queue.signals.is_signaled(at);
            let address = pool.address(slot.number()) as u64;
            let inline = self.inline && !signaled;
            let number = u64::from(slot.number()) | place | if signaled { SIGNALED } else { 0 };
            list.push(number, address, signaled, inline);
        }
        let (posted, error) = queue.pair.post_list(list);
        for (at, slot) in samples[..posted].iter().enumerate() {
            let signaled = queue.signals.is_signaled(at);
            self.copies[slot.number() as usize] += u32::from(signaled);
            self.under_way += u64::from(signaled);
        }
        queue.signals.advance(posted);
        queue.room -= posted;
        match error {
            None => Ok(()),
            Some(errno) => Err(not_posted(&queue.pair, errno)),
        }
    }

    /// Takes a completion, and the slot whose last one it is. `None`: there was none.
    #[inline(always)]
    fn complete(&mut self, pool: &mut Pool) -> Option<Result<Option<Slot>, FailedCompletion>> {
        let (number, failure) = match self.poller.poll() {
            PollResult::Empty => return None,
            PollResult::Done(completion) => (completion.work_request_id, None),
            PollResult::Failed(failure) => (failure.work_request_id, Some(failure)),
            PollResult::Broken(code) => return Some(Err(broken(code))),
        };
        // Unsignalled requests report failures only, and their slots belong to others by now.
        let mut slot = None;
        if number & SIGNALED > 0 {
            self.queues[((number & !SIGNALED) >> QUEUE_SHIFT) as usize].room += self.per_completion;
            let copies = &mut self.copies[number as u32 as usize];
            *copies -= 1;
            self.under_way -= 1;
            if *copies == 0 {
                slot = pool.pick_up(number as u32);
            }
        }
        match failure {
            None => Some(Ok(slot)),
            Some(failure) => {
                slot.into_iter().for_each(|slot| pool.release(slot));
                Some(Err(failure))
            }
        }
    }

    /// Waits for what is under way; the completions that came well are counted.
    fn drain(&mut self, pool: &mut Pool, work: &mut WorkRequestCounts, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.under_way > 0 && Instant::now() < deadline {
            match self.complete(pool) {
                None => std::hint::spin_loop(),
                Some(Ok(slot)) => release(slot, pool, work),
                Some(Err(_)) => {}
            }
        }
    }
}

/// Counts a completion, and releases the slot whose last one it is.
#[inline(always)]
fn release(slot: Option<Slot>, pool: &mut Pool, work: &mut WorkRequestCounts) {
    work.completions += 1;
    slot.into_iter().for_each(|slot| pool.release(slot));
}

#[cold]
fn not_posted(pair: &QueuePair, errno: i32) -> NodeError {
    let reason = std::io::Error::from_raw_os_error(errno.abs());
    NodeError::Gone(format!("ibv_post_send on {pair:?} failed: {reason}"))
}

/// A completion queue that cannot be polled, as a failure of all that is in it.
#[cold]
fn broken(code: i32) -> FailedCompletion {
    FailedCompletion {
        work_request_id: u64::MAX,
        status: u32::MAX,
        vendor_error: code.unsigned_abs(),
    }
}

#[cold]
pub(super) fn has_failed(failure: FailedCompletion) -> NodeError {
    let why = describe_status(failure.status, failure.vendor_error);
    NodeError::Gone(format!("a work request of a sample failed: {why}"))
}

impl Node for InfiniBandPublisher {
    fn start(&mut self, pool: &mut Pool, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError> {
        let connected = self.manager.connect(go_on)?;
        self.work.fell_back = connected.fell_back;
        let copies = if self.in_turn {
            1
        } else {
            connected.connections.len()
        };
        self.sending = Some(PublisherState::new(
            connected,
            pool,
            &self.settings,
            copies,
        )?);
        Ok(())
    }

    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        let sending = self.sending.as_mut().expect("a node is started first");
        let count = samples.len();
        let longest = if self.in_turn {
            1
        } else {
            self.settings.vectorize
        };
        let mut taken = 0;
        while taken < count {
            let length = longest.min(count - taken);
            let targets = self.distribution.next_targets();
            let fitting = sending.make_room(pool, targets.clone(), length, &mut self.work);
            let fitting =
                fitting.map_err(|failure| self.manager.state().or(has_failed(failure)))?;
            for target in targets {
                sending.post(pool, &samples[taken..taken + fitting], target)?;
                self.work.requests += fitting as u64;
            }
            taken += fitting;
            if fitting < length {
                break;
            }
        }
        // From the end: what comes to the place of one that is held is released.
        for at in (0..taken).rev() {
            if sending.copies[samples[at].number() as usize] > 0 {
                pool.put_down(samples.swap_remove(at));
            }
        }
        let full = samples.len() + to_poll(count, taken, samples.len());
        while samples.len() < full {
            match sending.complete(pool) {
                None => break,
                Some(Ok(slot)) => {
                    self.work.completions += 1;
                    // None: other copies of the sample are still under way.
                    samples.extend(slot);
                }
                Some(Err(failure)) => return Err(self.manager.state().or(has_failed(failure))),
            }
        }
        Ok(taken)
    }

    fn work(&self) -> Option<WorkRequestCounts> {
        Some(self.work)
    }

    fn stop(&mut self, pool: &mut Pool) -> Result<(), NodeError> {
        if let Some(mut sending) = self.sending.take() {
            sending.drain(pool, &mut self.work, DRAIN);
            self.manager.end();
            let connections = Arc::clone(&sending.connections);
            connections.iter().for_each(Connection::disconnect);
            sending.drain(pool, &mut self.work, FLUSH);
            drop(sending);
            give_back_of_removed(connections, pool);
        }
        Ok(())
    }
}

/// Requests on a device that was removed complete no more: once the queue pairs are destroyed too, nothing
/// works on it.
pub(super) fn give_back_of_removed(connections: Arc<Vec<Connection>>, pool: &mut Pool) {
    let was_removed = connections.iter().any(Connection::was_removed);
    drop(connections);
    if was_removed {
        pool.release_held();
    }
}
