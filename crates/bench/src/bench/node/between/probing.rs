//! Probes over the node-type: a sample to the other host and one back, with a stamp right before each is handed to its
//! node and right after it was read. They have the size of the samples that are measured.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::node::ends::{Common, addresses, misunderstood};
use crate::bench::node::error::RunError;
use crate::bench::node::sample::{Header, fill};
use crate::buffer::HugePagePolicy;
use crate::host::interrupt;
use crate::node::kind::MakerUser;
use crate::node::{Maker, Node, NodeError, NodeType, Pool, Scenario, Slot, Wiring};
use crate::time::{Clock, Nanos};

/// How long a phase takes at most.
const PHASE: Duration = Duration::from_secs(5);
/// How long an answer is waited for: node-types may lose it.
const UNANSWERED: Duration = Duration::from_millis(200);
/// How often ends are kept connected: brokers ask every minute or two.
const KEEP: Duration = Duration::from_secs(1);
/// Slots of an end.
const SLOTS: usize = 16;

/// What one end of a probe stamped, in nanoseconds of its clock.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Stamped {
    pub(super) number: u32,
    /// Right before its sample was handed to the node.
    pub(super) sent: Nanos,
    /// Right after that of the other end was read.
    pub(super) received: Nanos,
}

/// Stamps by the number of their probe. Of a probe that came several times those of the first are kept: the end that
/// asks keeps the answer that came first, and that one was sent no earlier.
pub(super) fn by_number(all: Vec<Stamped>) -> HashMap<u32, Stamped> {
    let mut found = HashMap::new();
    for stamped in all {
        found.entry(stamped.number).or_insert(stamped);
    }
    found
}

/// Where probes are sent.
pub(super) trait ProbeSender {
    /// Connects while `go_on` returns true.
    fn connect(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError>;

    /// Does what its library does only while it is called, as to answer a broker that asks whether it is there.
    fn keep(&mut self) -> Result<(), NodeError>;

    /// Sends a probe, and returns its stamp; none if the node did not take it.
    fn send(&mut self, number: u32) -> Result<Option<Nanos>, NodeError>;
}

/// Where those of the other end arrive.
pub(super) trait ProbeReceiver {
    /// Connects while `go_on` returns true.
    fn connect(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError>;

    /// Waits for a probe while `go_on` returns true.
    fn receive(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<(u32, Nanos)>, NodeError>;
}

/// Both of one host.
pub(super) struct ProbeEnds {
    pub(super) sends: Box<dyn ProbeSender>,
    pub(super) receives: Box<dyn ProbeReceiver>,
    pub(super) are_connected: bool,
    /// When they were kept connected last.
    kept: Instant,
}

/// What the ends of the probes have in common, which go this `way`.
pub(super) fn of_probes(common: &Common, way: &str) -> Common {
    let mut probes = common.clone();
    probes.point.wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    probes.config.vectorize = 1;
    // Those of the samples have it.
    probes.config.zeromq_port = None;
    if probes.point.node_type == NodeType::InfiniBand {
        // A probe is alone, and its pool is small: what is posted to receive into lies in it.
        let places = SLOTS as u32 - 2;
        let config = &mut probes.config;
        (config.send_queue, config.receive_queue) = (places, places);
        config.verbs.signal_every = config.verbs.signal_every.clamp(1, places / 2);
        config.verbs.receive_threshold = None;
    }
    probes.name = format!("{}-{way}", common.name);
    probes
}

/// Makes the end that sends.
pub(super) struct MakeSender<'a, C> {
    pub(super) clock: C,
    pub(super) probes: &'a Common,
    /// The address of the end that receives.
    pub(super) to: Value,
}

impl<C: Clock> MakerUser for MakeSender<'_, C> {
    type Output = Box<dyn ProbeSender>;
    type Error = RunError;

    fn with<M: Maker>(self, maker: &M) -> Result<Self::Output, RunError> {
        let node = maker.publisher(0, &addresses::<M>(&[self.to])?)?;
        Ok(Box::new(ProbeEnd::new(self.clock, self.probes, node)?))
    }
}

/// Makes the end that receives, and returns its address.
pub(super) struct MakeReceiver<'a, C> {
    pub(super) clock: C,
    pub(super) probes: &'a Common,
}

impl<C: Clock> MakerUser for MakeReceiver<'_, C> {
    type Output = (Box<dyn ProbeReceiver>, Value);
    type Error = RunError;

    fn with<M: Maker>(self, maker: &M) -> Result<Self::Output, RunError> {
        let (node, address) = maker.subscriber(0)?;
        let address = serde_json::to_value(address).map_err(misunderstood)?;
        let end = ProbeEnd::new(self.clock, self.probes, node)?;
        Ok((Box::new(end), address))
    }
}

struct ProbeEnd<C, N> {
    clock: C,
    node: N,
    pool: Pool,
    samples: Vec<Slot>,
    seed: u64,
}

impl<C: Clock, N: Node> ProbeEnd<C, N> {
    fn new(clock: C, probes: &Common, node: N) -> Result<Self, NodeError> {
        Ok(ProbeEnd {
            clock,
            node,
            pool: Pool::new(SLOTS, probes.point.words(), HugePagePolicy::Off)?,
            samples: Vec::with_capacity(SLOTS),
            seed: probes.config.seed,
        })
    }
}

impl<C: Clock, N: Node> ProbeSender for ProbeEnd<C, N> {
    fn connect(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError> {
        self.node.start(&mut self.pool, go_on)
    }

    fn keep(&mut self) -> Result<(), NodeError> {
        self.node.flush()
    }

    fn send(&mut self, number: u32) -> Result<Option<Nanos>, NodeError> {
        let Some(slot) = self.pool.take() else {
            return Ok(None);
        };
        fill(
            &mut self.pool,
            &slot,
            Header::new(0, number.into()),
            self.seed,
        );
        self.samples.push(slot);
        let stamp = self.clock.now();
        let taken = self.node.write(&mut self.pool, &mut self.samples)?;
        self.pool.release_all(&mut self.samples);
        Ok((taken == 1).then(|| self.clock.to_nanos(stamp)))
    }
}

impl<C: Clock, N: Node> ProbeReceiver for ProbeEnd<C, N> {
    fn connect(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError> {
        self.node.start(&mut self.pool, go_on)
    }

    fn receive(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<(u32, Nanos)>, NodeError> {
        self.pool.fill(&mut self.samples, 1);
        let received = self.node.read(&mut self.pool, &mut self.samples, go_on)?;
        let stamp = self.clock.now();
        let found = self.samples.first().filter(|_| received > 0).map(|slot| {
            let number = Header(self.pool.word(slot, 1)).number() as u32;
            (number, self.clock.to_nanos(stamp))
        });
        self.pool.release_all(&mut self.samples);
        Ok(found)
    }
}

impl ProbeEnds {
    pub(super) fn new(sends: Box<dyn ProbeSender>, receives: Box<dyn ProbeReceiver>) -> Self {
        ProbeEnds {
            sends,
            receives,
            are_connected: false,
            kept: Instant::now(),
        }
    }

    /// Keeps both connected between two phases, in which their samples are measured: called again and again.
    pub(super) fn keep(&mut self) -> Result<(), NodeError> {
        if self.are_connected && self.kept.elapsed() >= KEEP {
            self.kept = Instant::now();
            self.sends.keep()?;
            self.receives.receive(&mut || false)?;
        }
        Ok(())
    }

    /// Connects both, if they are not: that which sends at the host that asks, that which receives at the one that
    /// answers are first, as these wait for each other.
    fn connect(&mut self, asks: bool, go_on: &mut dyn FnMut() -> bool) -> Result<(), NodeError> {
        if !self.are_connected {
            if asks {
                self.sends.connect(go_on)?;
                self.receives.connect(go_on)?;
            } else {
                self.receives.connect(go_on)?;
                self.sends.connect(go_on)?;
            }
            self.are_connected = true;
        }
        Ok(())
    }

    /// Sends these probes and waits for the answers. Returns those that were answered, and how many were sent.
    pub(super) fn ask(
        &mut self,
        (first, count): (u32, u32),
    ) -> Result<(Vec<Stamped>, u32), NodeError> {
        let interrupted = || interrupt::requested().is_some();
        self.connect(true, &mut || !interrupted())?;
        let begun = Instant::now();
        let mut stamped = Vec::with_capacity(count as usize);
        let mut asked = 0;
        for number in first..first + count {
            if begun.elapsed() > PHASE || interrupted() {
                break;
            }
            asked += 1;
            let Some(sent) = self.sends.send(number)? else {
                continue;
            };
            let since = Instant::now();
            let mut go_on = || since.elapsed() < UNANSWERED && !interrupted();
            // One that comes later than it was waited for is passed over.
            while let Some((answered, received)) = self.receives.receive(&mut go_on)? {
                if answered == number {
                    stamped.push(Stamped {
                        number,
                        sent,
                        received,
                    });
                    break;
                }
            }
        }
        Ok((stamped, asked))
    }

    /// Answers probes while `go_on` returns true.
    pub(super) fn answer(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Stamped>, NodeError> {
        self.connect(false, go_on)?;
        let mut stamped = Vec::new();
        while let Some((number, received)) = self.receives.receive(go_on)? {
            if let Some(sent) = self.sends.send(number)? {
                stamped.push(Stamped {
                    number,
                    sent,
                    received,
                });
            }
        }
        Ok(stamped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_probe_that_came_twice_the_first_answer_counts() {
        let stamped = |number, received| Stamped {
            number,
            sent: Nanos(received + 1),
            received: Nanos(received),
        };
        let found = by_number(vec![stamped(3, 10), stamped(4, 20), stamped(3, 90)]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[&3].received, found[&3].sent), (Nanos(10), Nanos(11)));
        assert_eq!(found[&4].received, Nanos(20));
    }
}
