//! The end of Zenoh that sends.

use std::fmt;
use std::time::{Duration, Instant};

use zenoh::Session;
use zenoh::Wait as _;
use zenoh::pubsub::Publisher;

use super::{BETWEEN_LOOKS, failed, open};
use crate::node::wiring::Distribution;
use crate::node::{Node, NodeError, Pool, Slot};

/// Where a publisher sends.
#[derive(Debug)]
pub(super) struct Targets {
    /// Of the sessions of its subscribers.
    pub(super) locators: Vec<String>,
    /// What these ask for once they are ready.
    pub(super) ready: Vec<String>,
    /// What it puts samples to.
    pub(super) keys: Vec<String>,
    /// Which of these is next.
    pub(super) distribution: Distribution,
    /// How long it waits for subscribers.
    pub(super) patience: Duration,
}

/// The end that sends.
pub struct ZenohPublisher {
    targets: Targets,
    /// There once it is started: of each key. The session ends without the first.
    pub(super) open: Option<(Session, Vec<Publisher<'static>>)>,
}

impl fmt::Debug for ZenohPublisher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("ZenohPublisher");
        shown
            .field("targets", &self.targets)
            .finish_non_exhaustive()
    }
}

impl ZenohPublisher {
    pub(super) fn new(targets: Targets) -> Self {
        ZenohPublisher {
            targets,
            open: None,
        }
    }

    /// Waits until all subscribers have asked for their samples.
    fn wait_for_subscribers(
        &self,
        session: &Session,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let begun = Instant::now();
        for (place, key) in self.targets.ready.iter().enumerate() {
            let probe = session.declare_publisher(key.clone()).wait();
            let probe = probe.map_err(|error| failed("declare a publisher", error))?;
            let is_ready = || {
                let status = probe.matching_status().wait();
                let status = status.map_err(|error| failed("look for subscribers", error));
                status.map(|it| it.matching())
            };
            while !is_ready()? {
                if !go_on() {
                    return Err(NodeError::GivenUp);
                }
                if begun.elapsed() >= self.targets.patience {
                    return Err(NodeError::Gone(format!(
                        "{place} of {} subscribers have subscribed within {} s: a higher --timeout waits longer",
                        self.targets.ready.len(),
                        self.targets.patience.as_secs_f64()
                    )));
                }
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
        Ok(())
    }
}

impl Node for ZenohPublisher {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let session = open(&[], &self.targets.locators)?;
        self.wait_for_subscribers(&session, go_on)?;
        let declared = self.targets.keys.iter().map(|key| {
            let declared = session.declare_publisher(key.clone()).express(true);
            let declared = declared.wait();
            declared.map_err(|error| failed("declare a publisher", error))
        });
        let publishers = declared.collect::<Result<_, _>>()?;
        self.open = Some((session, publishers));
        Ok(())
    }

    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        let (_, publishers) = self.open.as_ref().expect("it was started");
        for slot in &*samples {
            for publisher in &publishers[self.targets.distribution.next_targets()] {
                let put = publisher.put(pool.bytes(slot)).wait();
                put.map_err(|error| failed("put a sample", error))?;
            }
        }
        Ok(samples.len())
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        self.open = None;
        Ok(())
    }
}
