//! How often counters may be read: it takes as long as many iterations of the loop, so it is bounded.
//!
//! Reading may use a tenth of the time that was watched ([`SAMPLING_SHARE`]), saved up for at most [`MOST_CREDIT`],
//! half of which is there from the start. What is left of that half is kept for jumps from [`LONG`] on, so that the
//! many shorter ones do not use up what the rare ones need. Jumps below [`SHORT`], too short for most interrupts, have
//! credit of their own out of the tenth, a hundredth of the time ([`SHORT_SHARE`]).

use crate::time::{AnyClock, Clock, Nanos};

/// Of so many ticks one may be spent on reading counters.
pub(super) const SAMPLING_SHARE: u64 = 10;
/// The part of it for short jumps.
pub(super) const SHORT_SHARE: u64 = 100;
/// Credit that can be saved up.
pub(super) const MOST_CREDIT: Nanos = Nanos(20_000_000);
/// Jumps from this length on may use all of the credit, shorter ones what is beyond the half.
pub(super) const LONG: Nanos = Nanos(100_000);
/// Jumps shorter than this have credit of their own.
pub(super) const SHORT: Nanos = Nanos(1_000);

/// What may be spent on reading counters, in ticks.
#[derive(Debug)]
pub(super) struct Credit {
    short: u64,
    long: u64,
    most: i64,
    left: i64,
    left_for_short: i64,
    /// What a reading of counters costs as a rule.
    pub(super) cost: u64,
    /// Time up to this moment has been credited.
    credited: u64,
}

impl Credit {
    /// Half of what can be saved up.
    pub(super) fn new(scale: AnyClock) -> Self {
        let most = scale.ticks_in(MOST_CREDIT).0 as i64;
        Credit {
            short: scale.ticks_in(SHORT).0,
            long: scale.ticks_in(LONG).0,
            most,
            left: most / 2,
            left_for_short: 0,
            cost: 0,
            credited: 0,
        }
    }

    /// From `start` on, where a reading takes `cost`: there is credit for one at once.
    pub(super) fn begin(&mut self, cost: u64, start: u64) {
        self.cost = cost.clamp(1, self.most.max(1) as u64);
        self.left = (self.left + self.cost as i64).min(self.most);
        self.credited = start;
    }

    /// For the time watched up to `now`.
    pub(super) fn earn(&mut self, now: u64) {
        let passed = now - self.credited;
        let short = (passed / SHORT_SHARE) as i64;
        let rest = (passed / SAMPLING_SHARE) as i64 - short;
        self.left = (self.left + rest).min(self.most);
        self.left_for_short = (self.left_for_short + short).min(self.most);
    }

    /// Time up to `now` earns nothing: it was not watched.
    pub(super) fn skip_to(&mut self, now: u64) {
        self.credited = now;
    }

    /// Whether counters may be read behind a jump, or a lesser difference, of this length.
    pub(super) fn affords(&self, length: u64, is_jump: bool) -> bool {
        let left = if length < self.short {
            self.left_for_short
        } else if is_jump && length >= self.long {
            self.left
        } else {
            self.left - self.most / 2
        };
        left >= (self.cost as i64).min(self.most / 2)
    }

    /// Takes what a reading behind a difference of this length cost, without a stop that fell into it.
    pub(super) fn charge(&mut self, length: u64, charged: u64) {
        let left = if length < self.short {
            &mut self.left_for_short
        } else {
            &mut self.left
        };
        *left -= charged as i64;
    }

    /// Learns what a reading takes. Once in a while it is the reading that is interrupted: that must not stand for what
    /// it costs. Nor must the quickest one.
    pub(super) fn learn(&mut self, took: u64) {
        let least = self.cost - self.cost / 16;
        self.cost = took.min(self.cost * 2).max(least).max(1);
    }
}
