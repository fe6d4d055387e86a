//! The loop of a subscriber: read, stamp, note.

use std::time::{Duration, Instant};

use super::config::Config;
use super::error::NodeThreadError;
use super::log::LogWriter;
use super::result::{ReceivedSample, SubscriberReport};
use super::sample::{Header, is_intact};
use super::shared::SharedState;
use super::task::NodeTask;
use crate::node::{Node, Pool, Slot, Wiring};
use crate::time::Clock;

/// Room for samples that come again, beside one for each that may come.
const ROOM_FOR_DUPLICATES: usize = 1024;

/// Slots of a subscriber's pool: those that a receive queue holds, and those of two calls.
pub(super) fn slots(config: &Config) -> usize {
    config.receive_queue as usize + 2 * config.vectorize
}

/// Entries of a subscriber's log.
pub(super) fn entries(wiring: &Wiring, steps: u64, number: u32) -> usize {
    (wiring.most_at(number, steps) as usize).saturating_add(ROOM_FOR_DUPLICATES)
}

impl<C: Clock> NodeTask<C> {
    /// Connects, receives until there is no more to come, and disconnects.
    pub(super) fn run_subscriber<N: Node>(
        self,
        mut node: N,
    ) -> Result<SubscriberReport, NodeThreadError> {
        let steps = self.config.steps(self.rate_per_s);
        let mut log = self.log(entries(&self.shared.wiring, steps, self.number))?;
        let (config, shared) = (&self.config, &*self.shared);
        shared.show_log(self.number, log.log());
        let mut pool = Pool::new(slots(config), self.words, config.huge_pages)?;
        let mut samples = Vec::with_capacity(pool.count());
        node.start(&mut pool, &mut || self.go_on())?;
        shared.run.announce_ready();
        let overflown = self.receive(&mut node, &mut pool, &mut samples, &mut log)?;
        shared.leave();
        node.stop(&mut pool)?;
        Ok(SubscriberReport {
            log: log.end()?,
            overflown,
            pool_is_whole: pool.is_whole(),
        })
    }

    /// The hot loop. Returns how many samples there was no room for in the log.
    fn receive<N: Node>(
        &self,
        node: &mut N,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        log: &mut LogWriter<{ ReceivedSample::WORDS }>,
    ) -> Result<u64, NodeThreadError> {
        let (clock, shared, seed) = (self.clock, &*self.shared, self.config.seed);
        let mut overflown = 0;
        let mut drain = Drain::new(self.config.drain);
        loop {
            pool.fill(samples, self.config.vectorize);
            let received = node.read(pool, samples, || {
                self.go_on() && (!shared.publishers_ended() || drain.go_on(shared, self.number))
            })?;
            let stamp = clock.now();
            for slot in &samples[..received] {
                let header = Header(pool.word(slot, 1));
                if header.is_greeting() {
                    shared.record_greeting(self.number, header.publisher());
                    continue;
                }
                if !shared.counts(header) {
                    continue;
                }
                let sample = ReceivedSample {
                    header,
                    sent_ns: pool.word(slot, 0),
                    stamp,
                    intact: is_intact(pool, slot, header, seed),
                };
                overflown += u64::from(!log.push(sample.to_words())?);
            }
            pool.release_all(samples);
            if received > 0 {
                shared.set_received(self.number, log.count() as u64);
            }
            if shared.run.stopped() {
                return Err(NodeThreadError::Stopped);
            }
            if shared.publishers_ended() && !drain.go_on(shared, self.number) {
                return Ok(overflown);
            }
        }
    }
}

/// How long is waited for what is under way, once all publishers have ended.
#[derive(Debug)]
struct Drain {
    limit: Duration,
    since: Option<Instant>,
}

impl Drain {
    fn new(limit: Duration) -> Self {
        Drain { limit, since: None }
    }

    /// Whether there is something to wait for.
    fn go_on(&mut self, shared: &SharedState, subscriber: u32) -> bool {
        let since = self.since.get_or_insert_with(Instant::now);
        !shared.has_all(subscriber) && since.elapsed() < self.limit
    }
}
