//! Zenoh between peers, without a router.
//!
//! | scenario | what a publisher puts to | what subscribers ask for |
//! | --- | --- | --- |
//! | straight-run, fan-in | `RUN/j`, j being its subscriber | `RUN/j` |
//! | fan-out | `RUN/all` | `RUN/all` |
//! | round-robin | `RUN/j`, of each subscriber in turn | `RUN/j` |
//!
//! RUN is a prefix that no other run has. Each end is a session. That of a subscriber listens on the loopback, and a
//! publisher connects to those of its subscribers, and to no other: there is no scouting.
//!
//! Inside the latency of a sample: the queue of the link and the task that writes to it; TCP over the loopback; the task
//! that reads there, and the channel behind it. The tasks run on threads of the library, which all sessions of a process
//! share, and which have no separate CPU. Samples are express: they do not wait for others to fill a batch. Memory is
//! allocated for each sample at both ends.
//!
//! What finds no room in the queue of a link for a millisecond is dropped, which is the library's default: it is lost.
//! The setting of the send queue has no effect on it. A subscriber's channel holds as many samples as the setting of the
//! receive queue; beyond that, the library stops reading from its links.

mod publisher;
mod subscriber;

use std::time::Duration;

use serde_json::{Value, json};
use zenoh::{Config, Session, Wait as _};

pub use publisher::ZenohPublisher;
pub use subscriber::ZenohSubscriber;

use super::wiring::Distribution;
use super::{Maker, NodeError, Scenario, Settings, Wiring};

const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Makes sessions: those of subscribers listen at once, those of publishers connect when they are started.
#[derive(Debug)]
pub struct Zenoh<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
    /// A name that no other run has.
    pub name: &'a str,
}

impl Zenoh<'_> {
    /// What the subscriber of that number asks for.
    fn key(&self, subscriber: u32) -> String {
        match self.wiring.scenario {
            Scenario::FanOut => format!("{}/all", self.name),
            _ => format!("{}/{subscriber}", self.name),
        }
    }

    /// What it asks for once it has asked for the samples: publishers see both in this order.
    fn ready_key(&self, subscriber: u32) -> String {
        format!("{}/ready/{subscriber}", self.name)
    }
}

impl Maker for Zenoh<'_> {
    type Publisher = ZenohPublisher;
    type Subscriber = ZenohSubscriber;
    type Told = Option<String>;

    fn publisher(
        &self,
        number: u32,
        told: &[Self::Told],
    ) -> Result<(ZenohPublisher, Self::Told), NodeError> {
        let locator = |of: u32| told[of as usize].clone().expect("a subscriber listens");
        let subscribers = || self.wiring.subscribers_of(number);
        let mut keys: Vec<String> = subscribers().map(|it| self.key(it)).collect();
        keys.dedup();
        let publisher = ZenohPublisher::new(publisher::Targets {
            locators: subscribers().map(locator).collect(),
            ready: subscribers().map(|it| self.ready_key(it)).collect(),
            distribution: match keys.len() {
                1 => Distribution::to_one(),
                _ => Distribution::new(self.wiring, number),
            },
            keys,
            patience: self.settings.patience(self.wiring),
        });
        Ok((publisher, None))
    }

    fn subscriber(
        &self,
        number: u32,
        _told: &[Self::Told],
    ) -> Result<(ZenohSubscriber, Self::Told), NodeError> {
        let keys = [self.key(number), self.ready_key(number)];
        let (subscriber, locator) = ZenohSubscriber::new(keys, self.settings)?;
        Ok((subscriber, Some(locator)))
    }
}

/// Opens a session that listens at the first locators and connects to the others, in the background.
fn open(listen: &[&str], connect: &[String]) -> Result<Session, NodeError> {
    let document = configuration(listen, connect).to_string();
    Config::from_json5(&document)
        .and_then(|config| zenoh::open(config).wait())
        .map_err(|error| failed("open a session", error))
}

fn configuration(listen: &[&str], connect: &[String]) -> Value {
    json!({
        "mode": "peer",
        "connect": {
            "endpoints": connect,
            "exit_on_failure": false,
            "retry": { "period_init_ms": 10, "period_max_ms": 100, "period_increase_factor": 2 },
        },
        "listen": { "endpoints": listen },
        "open": { "return_conditions": { "connect_scouted": false, "declares": false } },
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": false } },
    })
}

fn failed(operation: &str, error: impl ToString) -> NodeError {
    NodeError::Gone(format!("zenoh cannot {operation}: {}", error.to_string()))
}

#[cfg(test)]
mod tests;
