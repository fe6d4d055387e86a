//! Whether the threads of an end had alike.

use crate::results::Record;
use crate::results::schema::queue as columns;
use crate::stats::{fairness, least_percent};

/// Elements that each thread of an end put in, or took out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Shares {
    pub producers: Vec<u64>,
    pub consumers: Vec<u64>,
}

impl Shares {
    /// Their columns.
    pub(super) fn set(&self, row: &mut Record) {
        row.set(&columns::FAIRNESS_PRODUCERS, fairness(&self.producers))
            .set(&columns::FAIRNESS_CONSUMERS, fairness(&self.consumers))
            .set(&columns::LEAST_PRODUCER, least_percent(&self.producers))
            .set(&columns::LEAST_CONSUMER, least_percent(&self.consumers));
    }

    /// The threads that were starved, by what they are.
    pub(super) fn starved(&self) -> Vec<&'static str> {
        let of = |end: &'static str, counts: &[u64]| {
            let equal = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
            let least = equal * columns::STARVED_PERCENT / 100.0;
            let starved = counts
                .iter()
                .filter(|count| (**count as f64) < least)
                .count();
            vec![end; starved]
        };
        [
            of("producer", &self.producers),
            of("consumer", &self.consumers),
        ]
        .concat()
    }
}
