//! MQTT 5 by way of a broker, with the client `rumqttc`.
//!
//! | scenario | a publisher's topic | what subscribers ask for |
//! | --- | --- | --- |
//! | straight-run | `RUN.i` | `RUN.i`, of its publisher |
//! | fan-in | `RUN.j`, j being its subscriber | `RUN.j` |
//! | fan-out | `RUN.all` | `RUN.all` |
//! | round-robin | `RUN.all` | `$share/subscribers/RUN.all` |
//!
//! RUN is a prefix that no other run has. The broker distributes the samples.
//!
//! Inside the latency of a sample: the client's channel and the thread behind it, which writes to the connection; TCP
//! to the broker, the broker, TCP from there; the client's event loop, which the subscriber's thread drives itself.
//! `TCP_NODELAY` is set on both connections. The thread behind the channel has no separate CPU: it runs where the rest
//! of the process does. The client allocates memory for the topic and for each sample.
//!
//! The channel holds as many samples as the setting of the send queue; beyond that, samples are refused. With a quality
//! of service above 0 as many again may be on their way to be acknowledged.

mod connection;
mod publisher;
mod subscriber;

pub use publisher::MqttPublisher;
pub use subscriber::MqttSubscriber;

use super::broker_client::{name_of_publisher, name_of_subscriber};
use super::{Maker, NodeError, Scenario, Settings, Wiring};

/// The prefix of a topic that subscribers share in the scenario round-robin.
const SHARED: &str = "$share/subscribers/";

/// Makes clients. They connect when they are started.
#[derive(Debug)]
pub struct Mqtt<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A prefix of topics, and of the names of clients, that no other run has.
    pub prefix: &'a str,
}

impl Maker for Mqtt<'_> {
    type Publisher = MqttPublisher;
    type Subscriber = MqttSubscriber;
    type Address = ();

    fn publisher(&self, number: u32, _: &[()]) -> Result<MqttPublisher, NodeError> {
        let name = format!("{}-publisher-{number}", self.prefix);
        let topic = name_of_publisher(self.prefix, self.wiring, number);
        MqttPublisher::new(name, topic, self.settings)
    }

    fn subscriber(&self, number: u32) -> Result<(MqttSubscriber, ()), NodeError> {
        let name = format!("{}-subscriber-{number}", self.prefix);
        let mut filter = name_of_subscriber(self.prefix, self.wiring, number);
        if self.wiring.scenario == Scenario::RoundRobin {
            filter.insert_str(0, SHARED);
        }
        Ok((MqttSubscriber::new(name, filter, self.settings)?, ()))
    }
}
