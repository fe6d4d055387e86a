//! The floor: what the loops themselves measure when there is no fabric between them.
//!
//! The sending and the receiving loop run unchanged over memory that the two threads share, on the CPUs of the
//! measurement: what is left is a stamp, a cache line that changes hands, and a stamp. No figure of the benchmark can
//! be lower; nothing is subtracted for it.

use std::sync::mpsc::channel;
use std::time::Duration;

use serde::Serialize;

use super::completion::NoCollection;
use super::control::Control;
use super::memory_port;
use super::port::BusyPolling;
use super::receiver::receive;
use super::sender::{BurstSend, SubmitStamp, send};
use super::signalling::Signalling;
use super::tag::{Expected, Tag};
use crate::buffer::Arrival;
use crate::host::{HostError, pinning, threads};
use crate::pacing::ConstantWait;
use crate::stats::Summary;
use crate::time::{Clock, Nanos, Ticks};

/// One-way latency through shared memory, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// Messages it was measured with.
    pub messages: u64,
    /// The smallest.
    pub min_ns: i64,
    /// The median.
    pub p50_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The largest.
    pub max_ns: i64,
}

/// The floor could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    /// A thread could not be placed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The messages did not get through in time.
    #[error("the floor was not measured within {} s: the CPUs {sender} and {receiver} are too busy", LIMIT.as_secs())]
    TimedOut {
        /// The sender's CPU.
        sender: usize,
        /// The receiver's CPU.
        receiver: usize,
    },
}

const MESSAGES: usize = 2000;
const WARMUP: usize = 200;
const PAUSE: Nanos = Nanos(5_000);
const LIMIT: Duration = Duration::from_secs(5);

/// Measures the floor between two CPUs; takes some 10 ms where they are free.
pub fn measure_floor<C: Clock>(
    clock: &C,
    sender: usize,
    receiver: usize,
) -> Result<Floor, FloorError> {
    let tag = Tag::new(0);
    let (mut send_port, mut receive_port) = memory_port::connect(MESSAGES, tag.immediate_data(0));
    let control = Control::default();
    let mut submitted = vec![Ticks(0); MESSAGES];
    let mut arrivals = vec![Arrival::default(); MESSAGES];
    let (done, wait) = channel::<Result<(), HostError>>();
    std::thread::scope(|scope| {
        let (control, done_sending) = (&control, done.clone());
        let submitted = &mut submitted;
        let name = || std::thread::Builder::new().name("hcabench-floor".to_owned());
        let send = move || {
            let placed = pinning::pin_current_thread(sender);
            if placed.is_ok() && control.wait_until_ready(1) {
                let mut pacing = ConstantWait::new(clock, PAUSE);
                let burst = BurstSend {
                    signalling: Signalling::new(1, 1),
                    submitted,
                    control,
                };
                let collect = &mut NoCollection;
                send::<SubmitStamp>(clock, &mut send_port, &mut pacing, collect, burst);
            }
            let _ = done_sending.send(placed);
        };
        let arrivals = &mut arrivals;
        let receive = move || {
            let placed = pinning::pin_current_thread(receiver);
            if placed.is_ok() {
                let expected = Expected::new(0, MESSAGES, &[]);
                let port = &mut receive_port;
                receive(clock, port, BusyPolling, expected, arrivals, control);
            }
            let _ = done.send(placed);
        };
        threads::start_scoped(scope, name(), send)?;
        threads::start_scoped(scope, name(), receive).inspect_err(|_| control.stop())?;
        let mut outcome = Ok(());
        for _ in 0..2 {
            let ended = match wait.recv_timeout(LIMIT) {
                Ok(ended) => ended.map_err(FloorError::from),
                Err(_) => Err(FloorError::TimedOut { sender, receiver }),
            };
            if ended.is_err() && outcome.is_ok() {
                control.stop();
                outcome = ended;
            }
        }
        outcome
    })?;
    let nanos = |stamp: Ticks| clock.to_nanos(stamp).0 as i64;
    let latencies: Vec<i64> = submitted
        .iter()
        .zip(&arrivals)
        .skip(WARMUP)
        .map(|(sent, arrived)| nanos(arrived.stamp) - nanos(*sent))
        .collect();
    let summary = Summary::of(&latencies).ok_or(FloorError::TimedOut { sender, receiver })?;
    Ok(Floor {
        messages: summary.count,
        min_ns: summary.min_ns,
        p50_ns: summary.p50_ns,
        p99_ns: summary.p99_ns,
        max_ns: summary.max_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Posix;

    #[test]
    fn the_floor_is_positive_and_ordered() {
        let cpus: Vec<usize> = pinning::current_affinity().unwrap().iter().collect();
        let floor = measure_floor(&Posix::MONOTONIC, cpus[0], *cpus.last().unwrap()).unwrap();
        assert_eq!(floor.messages, (MESSAGES - WARMUP) as u64);
        assert!(floor.min_ns > 0, "{floor:?}");
        let figures = [floor.min_ns as f64, floor.p50_ns, floor.p99_ns];
        assert!(figures.is_sorted(), "{floor:?}");
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        assert!(measure_floor(&Posix::MONOTONIC, 0, 100_000).is_err());
    }
}
