//! The loop of a publisher: wait for the next step, stamp a sample, write it.

use std::time::{Duration, Instant};

use super::config::Config;
use super::error::NodeThreadError;
use super::log::LogWriter;
use super::result::{PublisherReport, REFUSED, SentSample};
use super::sample::{Header, fill};
use super::task::NodeTask;
use super::timer::Timer;
use crate::node::{Node, Pool, Slot};
use crate::time::{Clock, Nanos, Ticks};

/// From the moment when all are ready to the first step: each publisher has set its timer by then.
const BEFORE_START: Nanos = Nanos(5_000_000);
/// Between two greetings.
const BETWEEN_GREETINGS: Duration = Duration::from_millis(1);
/// Slots beside those that a send queue holds: the sample that is being made, and what comes back late.
const SPARE_SLOTS: usize = 2;

/// Slots of a publisher's pool.
pub(super) fn slots(config: &Config) -> usize {
    config.send_queue as usize + SPARE_SLOTS
}

impl<C: Clock> NodeTask<C> {
    /// Connects, publishes, waits until all has been received, and disconnects.
    pub(super) fn run_publisher<N: Node>(
        self,
        mut node: N,
        mut timer: impl Timer<C>,
    ) -> Result<PublisherReport, NodeThreadError> {
        let steps = self.config.steps(self.rate_per_s);
        let mut log = self.log(steps as usize)?;
        let config = &self.config;
        let mut pool = Pool::new(slots(config), self.words, config.huge_pages)?;
        let mut samples = Vec::with_capacity(pool.count());
        node.start(&mut pool, &mut || self.go_on())?;
        let wiring = &self.shared.wiring;
        let all = wiring.publishers + wiring.subscribers;
        if !self.shared.run.start_together(all) {
            return Err(NodeThreadError::Stopped);
        }
        let greetings = self.greet(&mut node, &mut pool, &mut samples)?;
        let start = self.wait_for_start()?;
        // Several publishers do not send at the same moment, but evenly spread over a period.
        let apart = 1e9 / self.rate_per_s * f64::from(self.number) / f64::from(wiring.publishers);
        let start = Ticks(start.0 + self.clock.ticks_in(Nanos(apart as u64)).0);
        timer.begin(start)?;
        let logged = self.publish(&mut node, &mut pool, &mut samples, &mut timer, &mut log)?;
        self.shared.end_publishing(self.number, logged.sent);
        while !self.shared.subscribers_left() {
            if self.shared.run.stopped() {
                return Err(NodeThreadError::Stopped);
            }
            node.flush()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        node.stop(&mut pool)?;
        Ok(PublisherReport {
            log: log.end()?,
            taken: logged.sent,
            first: logged.first,
            // Greetings and warm-up came before.
            acknowledged: (node.acknowledged()).map(|all| {
                all.saturating_sub(greetings + logged.first)
                    .min(logged.sent)
            }),
            late: logged.late,
            schedule: *timer.schedule(),
            warmup_steps: config.warmup_steps(self.rate_per_s),
            steps,
            work: node.work(),
            pool_is_whole: pool.is_whole(),
        })
    }

    /// Sends greetings until all subscribers that it is to reach have heard one. Returns how many the node took.
    fn greet(
        &self,
        node: &mut impl Node,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
    ) -> Result<u64, NodeThreadError> {
        let begun = Instant::now();
        let mut greetings = 0;
        while let Some(subscriber) = self.shared.not_reached_by(self.number) {
            if !self.go_on() {
                return Err(NodeThreadError::Stopped);
            }
            if begun.elapsed() >= self.config.timeout {
                return Err(NodeThreadError::NotReached {
                    publisher: self.number,
                    subscriber,
                    within: self.config.timeout,
                });
            }
            if let Some(slot) = pool.take() {
                fill(pool, &slot, Header::greeting(self.number), self.config.seed);
                samples.push(slot);
            }
            greetings += node.write(pool, samples)? as u64;
            pool.release_all(samples);
            std::thread::sleep(BETWEEN_GREETINGS);
        }
        self.shared.has_greeted();
        Ok(greetings)
    }

    fn wait_for_start(&self) -> Result<Ticks, NodeThreadError> {
        loop {
            let soon = Ticks(self.clock.now().0 + self.clock.ticks_in(BEFORE_START).0);
            if let Some(start) = self.shared.start(soon) {
                return Ok(start);
            }
            if !self.go_on() {
                return Err(NodeThreadError::Stopped);
            }
            std::hint::spin_loop();
        }
    }

    /// The hot loop. Header and values of a sample are written while there is time; its stamp is the last thing before
    /// it is handed to the node.
    fn publish<N: Node>(
        &self,
        node: &mut N,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        timer: &mut impl Timer<C>,
        log: &mut LogWriter<{ SentSample::WORDS }>,
    ) -> Result<LoggedSamples, NodeThreadError> {
        let (clock, epoch, seed) = (self.clock, self.epoch, self.config.seed);
        let first = self.config.warmup_steps(self.rate_per_s);
        let end = first + self.config.steps(self.rate_per_s);
        let mut logged = LoggedSamples::default();
        let mut number = 0;
        let mut next: Option<Slot> = None;
        let mut late_before = 0;
        loop {
            if next.is_none() {
                next = pool.take();
                if let Some(slot) = &next {
                    fill(pool, slot, Header::new(self.number, number), seed);
                }
            }
            let late = timer.late();
            let Some(step) = timer.wait(&clock, || self.go_on())? else {
                return Err(NodeThreadError::Stopped);
            };
            if step >= end {
                // Those up to the last step that counts: this one was waited for to know the end.
                if log.count() > 0 {
                    logged.late = late - late_before;
                } else {
                    // No sample of it counts: all were of the warm-up.
                    logged.first = number;
                    self.shared.begin_to_count(self.number, number);
                }
                break;
            }
            if step >= first && log.count() == 0 {
                logged.first = number;
                late_before = late;
                self.shared.begin_to_count(self.number, number);
            }
            let is_ready = next.is_some();
            samples.extend(next.take());
            let stamp = clock.now();
            if let Some(slot) = samples.first() {
                pool.set_word(slot, 0, epoch.at(&clock, stamp));
            }
            // Without a sample of its own the call brings slots back.
            let taken = node.write(pool, samples)?;
            pool.release_all(samples);
            let is_sent = is_ready && taken == 1;
            if step >= first {
                let sent = SentSample {
                    step: step - first,
                    stamp,
                    number: if is_sent { number } else { REFUSED },
                };
                // There is room for each step.
                log.push(sent.to_words())?;
                logged.sent += u64::from(is_sent);
            }
            number += u64::from(is_sent);
        }
        next.into_iter().for_each(|slot| pool.release(slot));
        Ok(logged)
    }
}

#[derive(Debug, Default)]
struct LoggedSamples {
    /// Samples that count and that the node took.
    sent: u64,
    /// The number of the first sample that counts, or that it would have.
    first: u64,
    /// Steps that count and were due before they were waited for.
    late: u64,
}

#[cfg(test)]
mod tests;
