//! What is told of a run while it goes on: the rate at which samples come, and the 99th percentile of their latency.
//!
//! The supervising thread looks into the logs of the subscribers; these do nothing for it. Of what came between two
//! looks it takes the latest, a bounded number: the percentile is exact at low rates and an estimate at high ones.

use std::time::Instant;

use hdrhistogram::Histogram;

use super::result::ReceivedSample;
use super::sample::Epoch;
use super::shared::SharedState;
use crate::results::units;
use crate::time::Clock;

/// Entries of all logs that one look takes at most: some ten microseconds of the supervising thread.
const ENTRIES_A_LOOK: usize = 1024;

/// Digits of the percentile.
const DIGITS: u8 = 3;

#[derive(Debug)]
pub(super) struct RunningLatency<C> {
    clock: C,
    epoch: Epoch,
    /// By subscriber: entries of its log that were there at the last look.
    seen: Vec<usize>,
    latency: Histogram<u64>,
    /// The first look at which something had come, and how much that was.
    begun: Option<(Instant, u64)>,
    entries: Vec<[u64; ReceivedSample::WORDS]>,
}

impl<C: Clock> RunningLatency<C> {
    pub(super) fn new(clock: C, epoch: Epoch, subscribers: u32) -> Self {
        RunningLatency {
            clock,
            epoch,
            seen: vec![0; subscribers as usize],
            latency: Histogram::new(DIGITS).expect("the digits are within what is allowed"),
            begun: None,
            entries: Vec::new(),
        }
    }

    /// Rate and percentile by now, in words; none before the second look at which something has come.
    pub(super) fn look(&mut self, shared: &SharedState) -> Option<String> {
        let most = (ENTRIES_A_LOOK / self.seen.len()).max(1);
        for (subscriber, seen) in (0..).zip(&mut self.seen) {
            let Some(log) = shared.log_of(subscriber) else {
                continue;
            };
            let there = log.readable(shared.received_by(subscriber) as usize);
            let first = (*seen).max(there.saturating_sub(most));
            *seen = there;
            // What cannot be read is told at the end.
            if log.read(first, there, &mut self.entries).is_ok() {
                for &entry in &self.entries {
                    let sample = ReceivedSample::of_words(entry);
                    let at = self.epoch.at(&self.clock, sample.stamp);
                    let latency = at.wrapping_sub(sample.sent_ns) as i64;
                    // It grows to any value.
                    let _ = self.latency.record(latency.max(0) as u64);
                }
            }
        }
        let (now, received) = (Instant::now(), shared.received());
        if received == 0 {
            return None;
        }
        let (begun, before) = *self.begun.get_or_insert((now, received));
        // Between two looks, which are at no sample: as many as intervals.
        let seconds = now.duration_since(begun).as_secs_f64();
        (seconds > 0.0 && !self.latency.is_empty()).then(|| {
            let rate = units::rate((received - before) as f64 / seconds);
            let p99 = units::duration(self.latency.value_at_quantile(0.99) as f64);
            format!("{rate}, p99 {p99}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::node::config::LogPlace;
    use crate::bench::node::log::LogWriter;
    use crate::bench::node::sample::Header;
    use crate::buffer::Bytes;
    use crate::node::{Scenario, Wiring};
    use crate::pacing::scripted;
    use crate::time::Ticks;

    fn told(place: LogPlace, latencies: &[u64]) -> Option<String> {
        let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
        let clock = scripted::set(0, 0);
        let epoch = Epoch::of(&clock);
        let shared = SharedState::new(wiring, &SharedState::memory(&wiring).unwrap()).unwrap();
        let mut running = RunningLatency::new(clock, epoch, 1);
        assert_eq!(running.look(&shared), None);
        let mut log = LogWriter::of_test(place, latencies.len());
        shared.show_log(0, log.log());
        let mut last = None;
        for half in latencies.chunks(latencies.len().div_ceil(2)) {
            for &latency in half {
                let sample = ReceivedSample {
                    header: Header::new(0, 0),
                    sent_ns: epoch.at(&clock, Ticks(5)),
                    stamp: Ticks(5 + latency),
                    intact: true,
                };
                log.push(sample.to_words()).unwrap();
            }
            shared.set_received(0, log.count() as u64);
            last = running.look(&shared);
        }
        last
    }

    #[test]
    fn the_percentile_is_that_of_what_came_by_now() {
        let latencies: Vec<u64> = (1..=1000).map(|at| at * 100).collect();
        let file = LogPlace::File { buffer: Bytes(1) };
        for place in [LogPlace::Memory, file] {
            let told = told(place, &latencies).unwrap();
            // In the file the last one is still in the buffer.
            assert!(told.ends_with("/s, p99 99.0 us"), "{told}");
        }
        // Of more than a look takes only the latest are seen.
        let many = [vec![1_000_000; 5000], vec![1000; 5000], vec![10; 100]].concat();
        let told = told(LogPlace::Memory, &many).unwrap();
        assert!(told.ends_with("p99 1.00 ms"), "{told}");
    }
}
