//! A limit on a length of time: of the longest, or of a percentile.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;

/// Nothing, or no more than a share of all, may be above a length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
