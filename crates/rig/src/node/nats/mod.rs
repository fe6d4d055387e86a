//! NATS by way of its server, with the client `async-nats`.
//!
//! | scenario | a publisher's subject | what subscribers ask for |
//! | --- | --- | --- |
//! | straight-run | `RUN.i` | `RUN.i`, of its publisher |
//! | fan-in | `RUN.j`, j being its subscriber | `RUN.j` |
//! | fan-out | `RUN.all` | `RUN.all` |
//! | round-robin | `RUN.all` | `RUN.all`, in one queue group |
//!
//! RUN is a prefix that no other run has. The server distributes the samples, in a queue group by chance.
//!
//! Inside the latency of a sample: the client's channel and the task behind it, which writes to the connection; TCP to
//! the server, the server, TCP from there; the client's task that reads, and its channel. Each end drives the tasks of
//! its client in its own thread. The client sets `TCP_NODELAY`, and allocates memory for each sample.
//!
//! The channel of a publisher holds as many samples as the setting of the send queue; beyond that, samples are refused.
//! That of a subscriber holds as many as the setting of the receive queue; beyond that, the client drops them: they are
//! lost. NATS acknowledges nothing here: its streams (JetStream) are not used.

mod connection;
mod publisher;
mod subscriber;

pub use publisher::NatsPublisher;
pub use subscriber::NatsSubscriber;

use super::broker_client::{name_of_publisher, name_of_subscriber};
use super::{Maker, NodeError, Scenario, Settings, Wiring};

/// What subscribers share in the scenario round-robin.
const QUEUE_GROUP: &str = "subscribers";

/// Makes clients. They connect when they are started.
#[derive(Debug)]
pub struct Nats<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A prefix of subjects that no other run has.
    pub prefix: &'a str,
}

impl Maker for Nats<'_> {
    type Publisher = NatsPublisher;
    type Subscriber = NatsSubscriber;
    type Address = ();

    fn publisher(&self, number: u32, _: &[()]) -> Result<NatsPublisher, NodeError> {
        let subject = name_of_publisher(self.prefix, self.wiring, number);
        NatsPublisher::new(subject, self.settings)
    }

    fn subscriber(&self, number: u32) -> Result<(NatsSubscriber, ()), NodeError> {
        let subject = name_of_subscriber(self.prefix, self.wiring, number);
        let shares = self.wiring.scenario == Scenario::RoundRobin;
        let group = shares.then(|| QUEUE_GROUP.to_owned());
        Ok((NatsSubscriber::new(subject, group, self.settings)?, ()))
    }
}
