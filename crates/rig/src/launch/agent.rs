//! What every rank does, also rank 0 beside its conductor: it measures on command, and sleeps in between.

use std::time::Duration;

use serde_json::Value;

use super::error::LaunchError;
use super::identity::Rendezvous;
use super::message::{FromRank, Hello, MeasurementOrder, PairReport, Start, ToRank};
use super::rendezvous;
use super::secret::Secret;
use super::wire::Wire;
use crate::host::interrupt;

/// How long rank 0 may take to take a message in, and beyond `limit` to report that all have come.
const GRACE: Duration = Duration::from_secs(30);

/// What is done in a pair.
///
/// A rank serves the measurements of others in another thread than the one that calls this: rank 0 takes a rank for
/// hung that does not answer while it has nothing to measure.
pub trait RankWork {
    /// Prepares, once all ranks are there. Returns what rank 0 is to know of it.
    ///
    /// # Errors
    /// Why this rank cannot measure: all its pairs are left out.
    fn prepare(&mut self, start: &Start) -> Result<Value, String> {
        let _ = start;
        Ok(Value::Null)
    }

    /// Measures a pair in both directions, within the order's limit.
    ///
    /// # Errors
    /// Why nothing was measured. The report names a direction that failed.
    fn measure(&mut self, order: &MeasurementOrder) -> Result<PairReport, String>;
}

/// A rank that has been let in.
#[derive(Debug)]
pub struct Agent {
    wire: Wire,
    start: Start,
}

impl Agent {
    /// Finds rank 0 and waits until all ranks are there, each of the two for `limit` at the most.
    ///
    /// # Errors
    /// When rank 0 is not met, refuses this rank, or ends the run.
    pub fn meet(
        rendezvous: &Rendezvous,
        hello: &Hello,
        limit: Duration,
    ) -> Result<Self, LaunchError> {
        Self::meet_with(None, rendezvous, hello, limit)
    }

    /// The same, with a secret if there is one.
    ///
    /// # Errors
    /// Also when rank 0 has another secret.
    pub fn meet_with(
        secret: Option<&Secret>,
        rendezvous: &Rendezvous,
        hello: &Hello,
        limit: Duration,
    ) -> Result<Self, LaunchError> {
        let mut wire = rendezvous::meet(rendezvous, hello, secret, limit)?;
        match wire.receive(limit + GRACE).map_err(LaunchError::of_wire)? {
            ToRank::Start(start) => Ok(Agent { wire, start }),
            ToRank::End(reason) => Err(LaunchError::Ended(reason.unwrap_or_default())),
            other => Err(unasked(&other)),
        }
    }

    /// The first message of rank 0.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Measures on command, until rank 0 ends the run.
    ///
    /// # Errors
    /// When rank 0 is lost or ends the run, a signal comes, or the work could not be prepared.
    pub fn attend(mut self, work: &mut impl RankWork) -> Result<(), LaunchError> {
        let ready = work.prepare(&self.start);
        let unprepared = ready.clone().err();
        self.send(&FromRank::Ready(ready))?;
        if let Some(reason) = unprepared {
            return Err(LaunchError::Unprepared(reason));
        }
        let silence = Duration::from_millis(self.start.silence_ms);
        loop {
            match self.wire.receive(silence).map_err(LaunchError::of_wire)? {
                ToRank::Ping => self.send(&FromRank::Pong)?,
                ToRank::Measure(order) => {
                    let report = work.measure(&order);
                    if let Some(signal) = interrupt::requested() {
                        return Err(LaunchError::Interrupted(signal));
                    }
                    let MeasurementOrder { round, pair, .. } = order;
                    self.send(&FromRank::Report {
                        round,
                        pair,
                        report: Box::new(report),
                    })?;
                }
                ToRank::End(None) => return Ok(()),
                ToRank::End(Some(reason)) => return Err(LaunchError::Ended(reason)),
                other => return Err(unasked(&other)),
            }
        }
    }

    fn send(&mut self, message: &FromRank) -> Result<(), LaunchError> {
        self.wire.send(message, GRACE).map_err(LaunchError::of_wire)
    }
}

fn unasked(message: &ToRank) -> LaunchError {
    LaunchError::Ended(format!("it sent {message:?} at the wrong time"))
}
