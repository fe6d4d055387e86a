//! The end that sends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fabric::failed;
use super::manager::{Connected, Manager};
use super::rules::{Signals, to_poll};
use crate::node::pool::WORD;
use crate::node::wiring::Distribution;
use crate::node::{Node, NodeError, Pool, Settings, Slot, Work};
use crate::rdma::cm::Connection;
use crate::rdma::verbs::{
    AddressHandle, FailedCompletion, MemoryRegion, Polled, Poller, QueuePair, SendList,
    describe_status,
};
use crate::rig::ports::Service;

/// Bytes of the element that comes before the values: stamp and number.
const HEADER: u32 = 2 * WORD as u32;
/// How long is waited at the end for completions that were asked for, and then for those that are flushed.
const DRAIN: Duration = Duration::from_millis(200);

/// The end that sends.
#[derive(Debug)]
pub struct Publisher {
    manager: Manager,
    settings: Settings,
    distribution: Distribution,
    /// Whether each sample goes to one target.
    in_turn: bool,
    sending: Option<Sending>,
    work: Work,
}

/// What it has once it is connected.
#[derive(Debug)]
struct Sending {
    queues: Vec<Queue>,
    targets: Vec<Target>,
    /// By slot: signalled requests that are under way.
    copies: Vec<u32>,
    /// Their sum.
    under_way: u64,
    poller: Poller,
    inline: bool,
    connections: Arc<Vec<Connection>>,
}

#[derive(Debug)]
struct Queue {
    pair: Arc<QueuePair>,
    signals: Signals,
}

/// A subscriber.
#[derive(Debug)]
struct Target {
    /// Which queue pair leads to it.
    queue: usize,
    list: SendList,
}

impl Publisher {
    pub(super) fn new(
        manager: Manager,
        settings: &Settings,
        distribution: Distribution,
        in_turn: bool,
    ) -> Self {
        Publisher {
            manager,
            settings: settings.clone(),
            distribution,
            in_turn,
            sending: None,
            work: Work::default(),
        }
    }
}

impl Sending {
    fn new(connected: Connected, pool: &Pool, settings: &Settings) -> Result<Self, NodeError> {
        let Connected {
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
        let mut targets = Vec::new();
        for (number, connection) in connections.iter().enumerate() {
            let handle = connection.address().filter(|_| is_datagram);
            let handle = handle.map(|vector| AddressHandle::create(&domain, vector));
            let handle = handle.transpose().map_err(failed)?;
            targets.push(Target {
                // Datagrams all go by the first one, each with the handle of its target.
                queue: if is_datagram { 0 } else { number },
                list: SendList::new(&region, (HEADER, bytes), settings.vectorize, handle),
            });
        }
        let queue = |connection: &Connection| Queue {
            pair: Arc::clone(connection.queue_pair()),
            signals,
        };
        Ok(Sending {
            queues: connections.iter().map(queue).collect(),
            targets,
            copies: vec![0; pool.count()],
            under_way: 0,
            poller: send_queue.poller(),
            inline,
            connections,
        })
    }

    /// Posts the samples to a target by one call; returns how many of them, the first ones, were posted.
    #[inline(always)]
    fn post(&mut self, pool: &Pool, samples: &[Slot], target: usize) -> Result<usize, NodeError> {
        let Target { queue, list } = &mut self.targets[target];
        let Queue { pair, signals } = &mut self.queues[*queue];
        for (at, slot) in samples.iter().enumerate() {
            let signaled = signals.is_signaled(at);
            let address = pool.address(slot.number()) as u64;
            let inline = self.inline && !signaled;
            list.push(u64::from(slot.number()), address, signaled, inline);
        }
        let (posted, error) = pair.post_list(list);
        for (at, slot) in samples[..posted].iter().enumerate() {
            let signaled = signals.is_signaled(at);
            self.copies[slot.number() as usize] += u32::from(signaled);
            self.under_way += u64::from(signaled);
        }
        signals.advance(posted);
        match error {
            // The queue is full: what is left is refused.
            None | Some(libc::ENOMEM) => Ok(posted),
            Some(errno) => Err(not_posted(pair, errno)),
        }
    }

    /// Takes a completion, and the slot whose last one it is. `None`: there was none.
    #[inline(always)]
    fn complete(&mut self, pool: &mut Pool) -> Option<Result<Option<Slot>, FailedCompletion>> {
        let (number, failure) = match self.poller.poll() {
            Polled::Empty => return None,
            Polled::Done(completion) => (completion.work_request_id, None),
            Polled::Failed(failure) => (failure.work_request_id, Some(failure)),
            Polled::Broken(code) => return Some(Err(broken(code))),
        };
        let copies = &mut self.copies[number as usize];
        *copies = copies.saturating_sub(1);
        self.under_way = self.under_way.saturating_sub(1);
        let slot = (*copies == 0)
            .then(|| pool.pick_up(number as u32))
            .flatten();
        match failure {
            None => Some(Ok(slot)),
            Some(failure) => {
                slot.into_iter().for_each(|slot| pool.release(slot));
                Some(Err(failure))
            }
        }
    }

    /// Waits for what is under way; the completions that came well are counted.
    fn drain(&mut self, pool: &mut Pool, work: &mut Work) {
        let deadline = Instant::now() + DRAIN;
        while self.under_way > 0 && Instant::now() < deadline {
            match self.complete(pool) {
                None => std::hint::spin_loop(),
                Some(Ok(slot)) => {
                    work.completions += 1;
                    slot.into_iter().for_each(|slot| pool.release(slot));
                }
                Some(Err(_)) => {}
            }
        }
    }
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

impl Node for Publisher {
    fn start(&mut self, pool: &mut Pool, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError> {
        let connected = self.manager.connect(go_on)?;
        self.sending = Some(Sending::new(connected, pool, &self.settings)?);
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
            let mut most = 0;
            for target in self.distribution.next_targets() {
                let posted = sending.post(pool, &samples[taken..taken + length], target)?;
                self.work.requests += posted as u64;
                most = most.max(posted);
            }
            taken += most;
            if most < length {
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
                Some(Err(failure)) => {
                    self.manager.state().check()?;
                    return Err(has_failed(failure));
                }
            }
        }
        Ok(taken)
    }

    fn work(&self) -> Option<Work> {
        Some(self.work)
    }

    fn stop(&mut self, pool: &mut Pool) -> Result<(), NodeError> {
        if let Some(mut sending) = self.sending.take() {
            sending.drain(pool, &mut self.work);
            self.manager.end();
            sending.connections.iter().for_each(Connection::disconnect);
            sending.drain(pool, &mut self.work);
        }
        // The queue pairs are gone, so nothing works on what did not complete.
        pool.release_held();
        Ok(())
    }
}
