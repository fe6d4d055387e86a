//! Taking the send queue's completions: by a thread of its own, or by the sender in its pauses.

use super::control::Control;
use super::port::{CompletionPort, Failure, PollMode, Polled};
use crate::time::{Clock, Ticks};

/// What the sending loop does about completions.
pub trait Collect {
    /// Takes what is there.
    fn collect<C: Clock>(&mut self, clock: &C);
    /// Takes all that still come, until told to stop.
    fn finish<C: Clock>(&mut self, clock: &C, control: &Control);
}

/// A thread of its own takes them.
#[derive(Debug)]
pub struct Elsewhere;

impl Collect for Elsewhere {
    #[inline(always)]
    fn collect<C: Clock>(&mut self, _clock: &C) {}
    #[inline(always)]
    fn finish<C: Clock>(&mut self, _clock: &C, _control: &Control) {}
}

/// How taking completions ended.
#[derive(Debug, Default)]
pub struct CompletionOutcome {
    /// Requests that completed well.
    pub succeeded: u32,
    /// Requests that completed with an error.
    pub failed: u32,
    /// The first error that was no consequence of another, or the first at all.
    pub failure: Option<Failure>,
}

/// Takes completions and stores t_comp of each at its sequence number.
pub struct Collector<'a, P> {
    port: P,
    stamps: &'a mut [Ticks],
    expected: u32,
    control: &'a Control,
    outcome: CompletionOutcome,
}

impl<'a, P: CompletionPort> Collector<'a, P> {
    /// Takes `expected` completions from `port` and stores their stamps in `stamps`.
    pub fn new(port: P, stamps: &'a mut [Ticks], expected: u32, control: &'a Control) -> Self {
        Collector {
            port,
            stamps,
            expected,
            control,
            outcome: CompletionOutcome::default(),
        }
    }

    /// Takes one completion; false if there was none.
    #[inline(always)]
    fn take<C: Clock>(&mut self, clock: &C) -> bool {
        match self.port.poll() {
            Polled::Empty => false,
            Polled::Done(completion) => {
                let stamp = clock.now();
                if let Some(slot) = self.stamps.get_mut(completion.request as usize) {
                    *slot = stamp;
                }
                self.outcome.succeeded += 1;
                self.control.set_completed(self.outcome.succeeded);
                true
            }
            Polled::Failed(failure) => {
                self.fail(failure);
                true
            }
        }
    }

    #[cold]
    fn fail(&mut self, failure: Failure) {
        self.outcome.failed += 1;
        self.control.set_failed();
        match &self.outcome.failure {
            Some(first) if !first.consequence || failure.consequence => {}
            _ => self.outcome.failure = Some(failure),
        }
    }

    #[inline(always)]
    fn is_done(&self) -> bool {
        self.outcome.succeeded + self.outcome.failed >= self.expected
    }

    /// Takes completions until all are there or it is told to stop.
    pub fn run<C: Clock, M: PollMode<P>>(mut self, clock: &C, _mode: M) -> CompletionOutcome {
        if let Err(failure) = M::start(&mut self.port) {
            self.fail(failure);
            return self.outcome;
        }
        self.control.announce_ready();
        let mut stopping = false;
        while !self.is_done() {
            if !self.take(clock) {
                // One more look after the word to stop: what came before it counts.
                if stopping {
                    break;
                }
                stopping = self.control.stopped();
                if !stopping && let Err(failure) = M::idle(&mut self.port) {
                    self.fail(failure);
                    break;
                }
            }
        }
        self.outcome
    }

    /// How it went so far.
    pub fn into_outcome(self) -> CompletionOutcome {
        self.outcome
    }
}

impl<P: CompletionPort> Collect for Collector<'_, P> {
    #[inline(always)]
    fn collect<C: Clock>(&mut self, clock: &C) {
        // A broken queue fails at each look, and would never be empty.
        while !self.is_done() && self.take(clock) {}
    }

    fn finish<C: Clock>(&mut self, clock: &C, control: &Control) {
        let mut stopping = false;
        while !self.is_done() {
            if !self.take(clock) {
                // As in `run`.
                if stopping {
                    break;
                }
                stopping = control.stopped();
            }
        }
    }
}
