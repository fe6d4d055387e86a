//! A message, and what became of it.

use serde::Serialize;

/// What became of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Arrived, whole.
    Received,
    /// Did not arrive in time.
    #[default]
    Lost,
    /// Arrived with other bytes, another length or another stamp than was sent.
    Corrupted,
}

/// A message: its stamps on the point's clock, in nanoseconds; what was not measured is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Message {
    /// The burst, counted from 0.
    pub repeat: u32,
    /// Its number in the burst, counted from 0.
    pub sequence: u32,
    pub fate: Fate,
    /// Before it was posted.
    pub submitted_ns: u64,
    /// When the HCA read it, as far as the stamp thread can tell.
    pub sent_ns: Option<u64>,
    /// It was received before the stamp thread came to it: there is no t_send to count a latency from.
    pub never_restamped: bool,
    /// When its completion was found in the receive queue's completion queue.
    pub received_ns: Option<u64>,
    /// When its completion was found in the send queue's completion queue.
    pub completed_ns: Option<u64>,
    /// When it was meant to be posted.
    pub intended_ns: Option<u64>,
    /// Messages of its burst that were in flight when it was posted.
    pub in_flight: u32,
}

impl Message {
    /// One-way latency in nanoseconds: from t_subm, or from t_send where that was asked for. Negative when the clock ran
    /// backwards between the two CPUs.
    pub fn latency_ns(&self) -> Option<i64> {
        let from = self.sent_ns.unwrap_or(self.submitted_ns);
        let counts = self.fate == Fate::Received && !self.never_restamped;
        let to = self.received_ns.filter(|_| counts)?;
        Some(to as i64 - from as i64)
    }

    /// Completion latency in nanoseconds, from t_subm.
    pub fn completion_latency_ns(&self) -> Option<i64> {
        let to = self.completed_ns?;
        Some(to as i64 - self.submitted_ns as i64)
    }
}

/// How many messages ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub sent: u64,
    /// Arrived, whole.
    pub received: u64,
    /// Did not arrive in time.
    pub lost: u64,
    /// Arrived, but not as they were sent.
    pub corrupted: u64,
    /// Arrived a second time.
    pub duplicated: u64,
    /// Of an earlier burst, and arrived when that was over.
    pub late: u64,
    /// Not of this run: of another queue pair, with a number that was never posted, or larger than any message.
    pub foreign: u64,
    /// Send requests that completed with an error.
    pub failed_completions: u64,
    /// Received, and their stamp was never rewritten, though it should have been.
    pub not_restamped: u64,
}

impl Counts {
    /// The share of sent messages that arrived whole.
    pub fn delivery_rate(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.received as f64 / self.sent as f64)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.late += other.late;
        self.foreign += other.foreign;
        self.failed_completions += other.failed_completions;
        self.not_restamped += other.not_restamped;
    }
}
