//! MQTT 5 by way of a broker, with the client `rumqttc`.
//!
//! | scenario | a publisher's topic | what subscribers ask for |
//! | --- | --- | --- |
//! | straight-run | `RUN/i` | `RUN/i`, of its publisher |
//! | fan-in | `RUN/group-j/i`, j being its subscriber | `RUN/group-j/+` |
//! | fan-out | `RUN/i` | `RUN/#` |
//! | round-robin | `RUN/i` | `$share/subscribers/RUN/#` |
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

use super::{Maker, NodeError, Scenario, Settings, Wiring};

/// What its subscribers share in the scenario round-robin.
const SHARED: &str = "$share/subscribers";

fn topic(prefix: &str, wiring: &Wiring, publisher: u32) -> String {
    match wiring.scenario {
        Scenario::FanIn => {
            let group = publisher % wiring.subscribers;
            format!("{prefix}/group-{group}/{publisher}")
        }
        Scenario::StraightRun | Scenario::FanOut | Scenario::RoundRobin => {
            format!("{prefix}/{publisher}")
        }
    }
}

fn filter(prefix: &str, wiring: &Wiring, subscriber: u32) -> String {
    match wiring.scenario {
        Scenario::StraightRun => format!("{prefix}/{subscriber}"),
        Scenario::FanIn => format!("{prefix}/group-{subscriber}/+"),
        Scenario::FanOut => format!("{prefix}/#"),
        Scenario::RoundRobin => format!("{SHARED}/{prefix}/#"),
    }
}

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
        let topic = topic(self.prefix, self.wiring, number);
        MqttPublisher::new(name, topic, self.settings)
    }

    fn subscriber(&self, number: u32) -> Result<(MqttSubscriber, ()), NodeError> {
        let name = format!("{}-subscriber-{number}", self.prefix);
        let filter = filter(self.prefix, self.wiring, number);
        Ok((MqttSubscriber::new(name, filter, self.settings)?, ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(filter: &str, topic: &str) -> bool {
        let filter = filter.strip_prefix(SHARED).map_or(filter, |it| &it[1..]);
        let mut levels = topic.split('/');
        for wanted in filter.split('/') {
            match (wanted, levels.next()) {
                ("#", _) => return true,
                (wanted, Some(level)) if wanted == "+" || wanted == level => {}
                _ => return false,
            }
        }
        levels.next().is_none()
    }

    #[test]
    fn each_subscriber_asks_for_those_that_it_is_to_hear() {
        for scenario in [
            Scenario::StraightRun,
            Scenario::FanIn,
            Scenario::FanOut,
            Scenario::RoundRobin,
        ] {
            let wiring = Wiring {
                scenario,
                publishers: 12,
                subscribers: if scenario == Scenario::StraightRun {
                    12
                } else {
                    2
                },
            };
            for publisher in 0..wiring.publishers {
                let topic = topic("run", &wiring, publisher);
                for subscriber in 0..wiring.subscribers {
                    let taken = takes(&filter("run", &wiring, subscriber), &topic);
                    assert_eq!(
                        taken,
                        wiring.receives_from(subscriber, publisher),
                        "{wiring:?} {topic}"
                    );
                }
            }
        }
    }
}
