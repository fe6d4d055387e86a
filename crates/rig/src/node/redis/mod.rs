//! Redis by way of its server, with the client `redis`.
//!
//! | scenario | name to which a publisher sends | by pub/sub | by streams |
//! | --- | --- | --- | --- |
//! | straight-run | `RUN.i` | channel | stream |
//! | fan-in | `RUN.j`, j being its subscriber | channel | stream |
//! | fan-out | `RUN.all` | channel | stream that each subscriber reads from its beginning |
//! | round-robin | `RUN.all` | impossible | stream with a consumer group |
//!
//! RUN is a prefix that no other run has. The server distributes the samples: those of a consumer group go to the
//! subscriber that has waited longest.
//!
//! Inside the latency of a sample: `PUBLISH` or `XADD`, which goes through the client's channel and the task behind it;
//! TCP to the server, the server, TCP from there; the client's task that reads. A subscriber of a stream waits in
//! `XREAD` or `XREADGROUP` (`BLOCK 0`), and takes all entries at once up to the setting of the receive queue: its next
//! command is in the latency of what comes meanwhile. Each end drives the task of its client in its own thread. `TCP_NODELAY` is
//! set. The client allocates memory for each sample.
//!
//! A publisher does not wait for replies. As many samples as the setting of the send queue may be without one; beyond
//! that, samples are refused. Each reply is an acknowledgement: the server has passed the sample on, or stored it. What
//! a subscriber has not read yet is kept by the server and by the client: of pub/sub without a limit, of a stream the
//! last samples, at least as many as the setting of the receive queue (`MAXLEN ~`). Older ones are lost.

mod connection;
mod publisher;
mod subscriber;

pub use publisher::RedisPublisher;
pub use subscriber::RedisSubscriber;

use super::broker_client::{name_of_publisher, name_of_subscriber};
use super::settings::RedisKind;
use super::{Maker, NodeError, Scenario, Settings, Wiring};

/// Why this node-type cannot be wired so, if it cannot.
pub(super) fn refusal(wiring: &Wiring, kind: RedisKind) -> Option<String> {
    let impossible = wiring.scenario == Scenario::RoundRobin && kind == RedisKind::PubSub;
    impossible.then(|| {
        "--type redis with --scenario round-robin is impossible with --redis-kind pubsub, by which each sample goes to \
         all subscribers of a channel: use --redis-kind streams"
            .to_owned()
    })
}

/// Makes clients. They connect when they are started.
#[derive(Debug)]
pub struct Redis<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A prefix of the names of channels and streams that no other run has.
    pub prefix: &'a str,
}

impl Maker for Redis<'_> {
    type Publisher = RedisPublisher;
    type Subscriber = RedisSubscriber;
    type Address = ();

    fn publisher(&self, number: u32, _: &[()]) -> Result<RedisPublisher, NodeError> {
        let name = name_of_publisher(self.prefix, self.wiring, number);
        RedisPublisher::new(name, self.settings)
    }

    fn subscriber(&self, number: u32) -> Result<(RedisSubscriber, ()), NodeError> {
        let name = name_of_subscriber(self.prefix, self.wiring, number);
        let shares = self.wiring.scenario == Scenario::RoundRobin;
        // Its name in the consumer group.
        let consumer = shares.then(|| number.to_string());
        Ok((RedisSubscriber::new(name, consumer, self.settings)?, ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn round_robin_takes_streams() {
        for &scenario in Scenario::ALL {
            let wiring = Wiring::new(scenario, 2, 2);
            assert_eq!(refusal(&wiring, RedisKind::Streams), None);
            let refused = refusal(&wiring, RedisKind::PubSub);
            match scenario {
                Scenario::RoundRobin => refused.unwrap().has(&[
                    "--scenario round-robin",
                    "--redis-kind pubsub",
                    "use --redis-kind streams",
                ]),
                _ => assert_eq!(refused, None),
            }
        }
    }
}
