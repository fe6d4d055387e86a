//! Limits on jumps, for the acceptance of machines.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;

/// No difference, or no more than a share of them, may be above a length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limit {
    /// The length.
    pub length: Nanos,
    /// The percentile that it is for; the maximum if `None`.
    pub percent: Option<f64>,
}

impl Limit {
    /// The limit in the words of the command line: `50us@p99.99`.
    pub fn describe(&self) -> String {
        let length = humantime::format_duration(std::time::Duration::from_nanos(self.length.0))
            .to_string()
            .replace(' ', "");
        match self.percent {
            None => length,
            Some(percent) => format!("{length}@p{percent}"),
        }
    }
}

/// A limit, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The CPU.
    pub cpu: usize,
    /// The limit.
    pub limit: String,
    /// What was measured, in nanoseconds.
    pub found_ns: f64,
    /// Whether it is above the limit.
    pub broken: bool,
}
