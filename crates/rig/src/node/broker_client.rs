//! What clients of brokers share: how one connects, and the names to which samples are sent.

use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::runtime::{LONGEST_SLEEP, NodeRuntime};
use super::settings::BrokerAddress;
use super::{NodeError, Scenario, Settings, Wiring};

/// The broker of a run.
///
/// # Errors
/// When none was given: it is the caller's to start one.
pub(super) fn broker(settings: &Settings) -> Result<&BrokerAddress, NodeError> {
    let none = || NodeError::Setting("this node-type takes a broker: --broker".to_owned());
    settings.broker.as_ref().ok_or_else(none)
}

impl NodeRuntime {
    /// Runs a step to its end while a connection is made.
    ///
    /// # Errors
    /// When the stop flag is raised, or no time is left.
    pub(super) fn connect<F: Future>(
        &self,
        step: F,
        deadline: &ConnectDeadline,
        broker: &BrokerAddress,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<F::Output, NodeError> {
        let mut step = pin!(step);
        loop {
            let wait = async { timeout(LONGEST_SLEEP, step.as_mut()).await };
            match self.block_on(wait) {
                Ok(done) => return Ok(done),
                Err(_) => deadline.check(broker, go_on)?,
            }
        }
    }
}

/// How long the client itself waits for a connection: longer than `--timeout`, so that the thread that waits for it gives
/// up first, and reports it.
#[cfg(any(feature = "nats", feature = "redis"))]
pub(super) fn of_client(timeout: Duration) -> Duration {
    timeout.saturating_add(Duration::from_secs(2))
}

/// There is no connection.
pub(super) fn not_connected(broker: &BrokerAddress, reason: impl ToString) -> NodeError {
    let reason = reason.to_string();
    NodeError::NoBroker(format!(
        "--broker {broker}: cannot connect: {reason}: check that a broker runs there and can be reached"
    ))
}

/// There is none with a broker that requires a password or TLS.
#[cfg(any(feature = "nats", feature = "redis"))]
pub(super) fn not_admitted(broker: &BrokerAddress, reason: impl ToString) -> NodeError {
    let reason = reason.to_string();
    NodeError::NoBroker(format!(
        "--broker {broker}: cannot connect: {reason}: hcabench uses no password and no TLS: use a broker that accepts \
         this, or --broker spawn"
    ))
}

/// There is none any more.
pub(super) fn lost(broker: &BrokerAddress, error: impl ToString) -> String {
    let error = error.to_string();
    format!("the connection to the broker at {broker} has ended: {error}: check that it still runs")
}

/// How long connecting may still take.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectDeadline {
    begun: Instant,
    limit: Duration,
}

impl ConnectDeadline {
    /// From now on.
    pub(super) fn new(limit: Duration) -> Self {
        ConnectDeadline {
            begun: Instant::now(),
            limit,
        }
    }

    /// That the stop flag is not raised, and time is left.
    ///
    /// # Errors
    /// Else.
    pub(super) fn check(
        &self,
        broker: &BrokerAddress,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        if !go_on() {
            return Err(NodeError::GivenUp);
        }
        if self.begun.elapsed() < self.limit {
            return Ok(());
        }
        let limit = self.limit.as_secs_f64();
        Err(not_connected(
            broker,
            format!("no answer within {limit} s (--timeout)"),
        ))
    }
}

/// The name to which a publisher sends, below a prefix that no other run has: that of its one subscriber, or that of
/// all.
pub(super) fn name_of_publisher(prefix: &str, wiring: &Wiring, publisher: u32) -> String {
    match wiring.scenario {
        Scenario::StraightRun => format!("{prefix}.{publisher}"),
        Scenario::FanIn => format!("{prefix}.{}", publisher % wiring.subscribers),
        Scenario::FanOut | Scenario::RoundRobin => format!("{prefix}.all"),
    }
}

/// The name that a subscriber asks for.
pub(super) fn name_of_subscriber(prefix: &str, wiring: &Wiring, subscriber: u32) -> String {
    match wiring.scenario {
        Scenario::StraightRun | Scenario::FanIn => format!("{prefix}.{subscriber}"),
        Scenario::FanOut | Scenario::RoundRobin => format!("{prefix}.all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subscriber_asks_for_those_that_it_is_to_receive() {
        for &scenario in Scenario::ALL {
            let subscribers = match scenario {
                Scenario::StraightRun => 12,
                _ => 5,
            };
            let wiring = Wiring::new(scenario, 12, subscribers);
            for publisher in 0..wiring.publishers {
                let sent_to = name_of_publisher("run", &wiring, publisher);
                for subscriber in 0..wiring.subscribers {
                    let asked_for = name_of_subscriber("run", &wiring, subscriber);
                    let receives = wiring.receives_from(subscriber, publisher);
                    assert_eq!(sent_to == asked_for, receives, "{wiring:?}");
                }
            }
        }
    }
}
