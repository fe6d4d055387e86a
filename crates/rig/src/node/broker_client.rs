//! What clients of brokers share: the runtime that drives one, how it connects, how it waits, and the names to which
//! samples are sent.
//!
//! The clients are written for `tokio`. Each end drives its own in its thread: there is no other that it waits for,
//! except where its module names one.

use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::settings::{BrokerAddress, Poll};
use super::{NodeError, Settings};
#[cfg(any(feature = "nats", feature = "redis"))]
use super::{Scenario, Wiring};

/// How long an end that sleeps does not look at the stop flag.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// The broker of a run.
///
/// # Errors
/// When none was given: it is the caller's to start one.
pub(super) fn broker(settings: &Settings) -> Result<&BrokerAddress, NodeError> {
    let none = || NodeError::Setting("this node-type takes a broker: --broker".to_owned());
    settings.broker.as_ref().ok_or_else(none)
}

/// A runtime for one client, in the thread that asks it. It is dropped without waiting for what it has not finished: a
/// name lookup may take long.
#[derive(Debug)]
pub(super) struct ClientRuntime(Option<Runtime>);

impl ClientRuntime {
    /// # Errors
    /// When there is no file left.
    pub(super) fn new() -> Result<Self, NodeError> {
        let made = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        made.map(|runtime| ClientRuntime(Some(runtime)))
            .map_err(NodeError::io("epoll_create", "a node", "see man 7 epoll"))
    }

    /// Runs to its end in this thread.
    #[inline]
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let runtime = self.0.as_ref();
        runtime
            .expect("it is there until it is dropped")
            .block_on(future)
    }

    /// The same while a connection is made.
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

    /// Looks whether it is done, and sleeps until it is or has looked long enough, if it may. What is given up is begun
    /// again by the next call.
    #[inline]
    pub(super) fn look<F: Future>(&self, poll: Poll, future: F) -> Option<F::Output> {
        match poll {
            Poll::Busy => self.block_on(async {
                tokio::select! {
                    biased;
                    found = future => Some(found),
                    // The runtime has looked at its sockets when this comes back.
                    () = tokio::task::yield_now() => None,
                }
            }),
            Poll::Event => self.block_on(async { timeout(LONGEST_SLEEP, future).await.ok() }),
        }
    }
}

impl Drop for ClientRuntime {
    fn drop(&mut self) {
        self.0
            .take()
            .into_iter()
            .for_each(Runtime::shutdown_background);
    }
}

/// There is no connection.
pub(super) fn not_connected(broker: &BrokerAddress, reason: impl ToString) -> NodeError {
    let reason = reason.to_string();
    NodeError::NoBroker(format!(
        "--broker {broker}: cannot connect: {reason}: check that a broker runs there and can be reached"
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
#[cfg(any(feature = "nats", feature = "redis"))]
pub(super) fn name_of_publisher(prefix: &str, wiring: &Wiring, publisher: u32) -> String {
    match wiring.scenario {
        Scenario::StraightRun => format!("{prefix}.{publisher}"),
        Scenario::FanIn => format!("{prefix}.{}", publisher % wiring.subscribers),
        Scenario::FanOut | Scenario::RoundRobin => format!("{prefix}.all"),
    }
}

/// The name that a subscriber asks for.
#[cfg(any(feature = "nats", feature = "redis"))]
pub(super) fn name_of_subscriber(prefix: &str, wiring: &Wiring, subscriber: u32) -> String {
    match wiring.scenario {
        Scenario::StraightRun | Scenario::FanIn => format!("{prefix}.{subscriber}"),
        Scenario::FanOut | Scenario::RoundRobin => format!("{prefix}.all"),
    }
}

#[cfg(all(test, any(feature = "nats", feature = "redis")))]
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
