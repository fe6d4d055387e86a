//! The end that receives.

use std::sync::Arc;
use std::time::Instant;

use nix::poll::PollTimeout;

use super::connector::ConnectedEnd;
use super::fabric::failed;
use super::manager::Manager;
use super::publisher::{FLUSH, QUEUE_SHIFT, give_back_of_removed, has_failed};
use super::rules::ReadAction;
use crate::node::settings::Poll;
use crate::node::{LONGEST_SLEEP_MS, Node, NodeError, Pool, Settings, Slot};
use crate::rdma::cm::Connection;
use crate::rdma::verbs::{Access, CompletionQueue, MemoryRegion, PollResult, Poller, RequestQueue};
use crate::rig::ports::Service;

/// The global route header that precedes a UD message in the receive buffer (InfiniBand Architecture Specification,
/// volume 1, 11.4.1.2).
const GLOBAL_ROUTE_HEADER: usize = 40;

/// The end that receives.
#[derive(Debug)]
pub struct InfiniBandSubscriber {
    manager: Manager,
    settings: Settings,
    /// Receive requests that are posted before it looks for samples.
    threshold: usize,
    receiving: Option<SubscriberState>,
}

/// What it has once it is connected.
#[derive(Debug)]
struct SubscriberState {
    connections: Arc<Vec<Connection>>,
    /// Of the queue pairs of the connections: one of each, on UD one of all.
    queues: Vec<RequestQueue>,
    region: Arc<MemoryRegion>,
    poller: Poller,
    events: Arc<CompletionQueue>,
    /// Requests in all receive queues.
    posted: usize,
    /// The queue pair that gets the next one while they are filled.
    next: usize,
    /// The numbers of the requests that have completed in this call.
    arrived: Vec<u64>,
    header: usize,
    sample_bytes: usize,
}

impl InfiniBandSubscriber {
    pub(super) fn new(manager: Manager, settings: &Settings) -> Self {
        InfiniBandSubscriber {
            manager,
            settings: settings.clone(),
            threshold: settings.receive_threshold() as usize,
            receiving: None,
        }
    }
}

impl SubscriberState {
    fn new(connected: ConnectedEnd, pool: &Pool, settings: &Settings) -> Result<Self, NodeError> {
        let memory = pool.memory();
        let is_datagram = settings.verbs.service == Service::Ud;
        let connections = connected.connections.iter();
        let receiving = connections.take(if is_datagram { 1 } else { usize::MAX });
        let queues = receiving.map(|it| RequestQueue::of(it.queue_pair()));
        Ok(SubscriberState {
            queues: queues.collect(),
            region: MemoryRegion::register(&connected.domain, memory, Access::Receive)
                .map_err(failed)?,
            poller: connected.receive_queue.poller(),
            events: connected.receive_queue,
            connections: connected.connections,
            posted: 0,
            next: 0,
            arrived: Vec::with_capacity(settings.vectorize),
            header: if is_datagram { GLOBAL_ROUTE_HEADER } else { 0 },
            sample_bytes: pool.sample_bytes(),
        })
    }

    /// Posts a request for a slot to a queue pair.
    #[inline(always)]
    fn post(&mut self, pool: &Pool, slot: u32, queue: usize) -> Result<(), NodeError> {
        let number = u64::from(slot) | (queue as u64) << QUEUE_SHIFT;
        let address = pool.address(slot).wrapping_sub(self.header) as u64;
        let length = (self.header + self.sample_bytes) as u32;
        let posted = self.queues[queue].post(&self.region, number, address, length);
        posted.map_err(failed)?;
        self.posted += 1;
        Ok(())
    }

    /// Posts requests for all of the slots, to the queue pairs in turn.
    fn fill(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<(), NodeError> {
        while let Some(slot) = samples.pop() {
            self.post(pool, slot.number(), self.next)?;
            pool.put_down(slot);
            self.next = (self.next + 1) % self.queues.len();
        }
        Ok(())
    }

    /// Takes completions until there are this many, or none is left.
    #[inline(always)]
    fn poll(&mut self, pool: &Pool, most: usize) -> Result<(), NodeError> {
        while self.arrived.len() < most {
            let completion = match self.poller.poll() {
                PollResult::Empty => break,
                PollResult::Done(completion) => completion,
                PollResult::Failed(failure) => {
                    self.posted -= 1;
                    return Err(has_failed(failure));
                }
                PollResult::Broken(code) => {
                    return Err(failed(format!("ibv_poll_cq failed: {code}")));
                }
            };
            self.posted -= 1;
            let number = completion.work_request_id;
            if completion.byte_count as usize == self.header + self.sample_bytes {
                self.arrived.push(number);
            } else {
                // What has another size was not sent by us.
                self.post(pool, slot_of(number), queue_of(number))?;
            }
        }
        Ok(())
    }
}

#[inline(always)]
fn slot_of(number: u64) -> u32 {
    number as u32
}

#[inline(always)]
fn queue_of(number: u64) -> usize {
    (number >> QUEUE_SHIFT) as usize
}

impl Node for InfiniBandSubscriber {
    fn start(&mut self, pool: &mut Pool, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError> {
        let connected = self.manager.connect(go_on)?;
        let mut receiving = SubscriberState::new(connected, pool, &self.settings)?;
        // Datagrams that find no request are lost.
        let mut samples = Vec::with_capacity(self.threshold);
        pool.fill(&mut samples, self.threshold);
        receiving.fill(pool, &mut samples)?;
        self.receiving = Some(receiving);
        Ok(())
    }

    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let receiving = self.receiving.as_mut().expect("a node is started first");
        let threshold = self.threshold;
        let most = match ReadAction::of(receiving.posted, threshold, samples.len()) {
            ReadAction::Fill => {
                receiving.fill(pool, samples)?;
                return Ok(0);
            }
            ReadAction::Poll(most) => most,
        };
        receiving.arrived.clear();
        loop {
            if let Err(error) = receiving.poll(pool, most) {
                return Err(self.manager.state().or(error));
            }
            if !receiving.arrived.is_empty() {
                break;
            }
            if !go_on() {
                return Ok(0);
            }
            self.manager.state().check()?;
            if self.settings.poll == Poll::Event {
                receiving.events.request_notification().map_err(failed)?;
                // What came before the request brings no event.
                receiving.poll(pool, most)?;
                if receiving.arrived.is_empty() {
                    let limit = PollTimeout::from(LONGEST_SLEEP_MS);
                    let woken = receiving.events.wait_for_event_within(limit);
                    woken.map_err(failed)?;
                }
            }
        }
        // First the queues get what they have given, then the slots are swapped.
        let received = receiving.arrived.len();
        for (at, slot) in samples[..received].iter().enumerate() {
            let queue = queue_of(receiving.arrived[at]);
            receiving.post(pool, slot.number(), queue)?;
        }
        for (number, slot) in receiving.arrived.iter().zip(&mut *samples) {
            if let Some(full) = pool.pick_up(slot_of(*number)) {
                pool.put_down(std::mem::replace(slot, full));
            }
        }
        Ok(received)
    }

    fn stop(&mut self, pool: &mut Pool) -> Result<(), NodeError> {
        if let Some(mut receiving) = self.receiving.take() {
            self.manager.end();
            let connections = Arc::clone(&receiving.connections);
            connections.iter().for_each(Connection::disconnect);
            let deadline = Instant::now() + FLUSH;
            while receiving.posted > 0 && Instant::now() < deadline {
                let number = match receiving.poller.poll() {
                    PollResult::Empty | PollResult::Broken(_) => continue,
                    PollResult::Done(completion) => completion.work_request_id,
                    PollResult::Failed(failure) => failure.work_request_id,
                };
                receiving.posted -= 1;
                let slot = pool.pick_up(slot_of(number));
                slot.into_iter().for_each(|slot| pool.release(slot));
            }
            drop(receiving);
            give_back_of_removed(connections, pool);
        }
        Ok(())
    }
}
