//! What exchanges probes with the other host while no burst runs.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::far::{FarReceiver, SharedWire, lock};
use super::message::WireMessage;
use super::ping_pong::{ProbeProgress, Stamped};
use super::probe_end::ProbeEnd;
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::port::Failure as PortFailure;
use crate::bench::hca::session::BetweenBursts;
use crate::between::message::{ANSWER, only, receive_message, send_message};
use crate::between::probe::NumberedProbe;
use crate::host::interrupt;
use crate::rig::benchmark::Failure;
use crate::rig::error::unless_interrupted;
use crate::time::between::{Phase, Probe};
use crate::time::{Clock, Nanos};

/// How long a phase of probes takes at the most.
const PHASE: Duration = Duration::from_secs(5);
/// The longest phase: the other end answers for a little longer.
const ANSWERED: Duration = Duration::from_secs(120);
/// How often a running phase is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long the answer to a probe may take on UC and UD, which lose messages.
const UNANSWERED: Duration = Duration::from_millis(200);
/// Between bursts there are probes only if the last ones are so long ago.
const SINCE_LAST: Duration = Duration::from_millis(250);

/// What exchanges probes while no burst runs.
pub(super) struct Prober<C> {
    clock: C,
    wire: SharedWire,
    end: ProbeEnd<C>,
    /// Probes of a phase.
    count: u32,
    /// How long an answer may take.
    patience: Duration,
    /// The number of the next probe on this connection.
    next: u32,
    /// Phases so far.
    phases: u32,
    last: Option<Instant>,
    pub(super) probes: Vec<NumberedProbe>,
    pub(super) unanswered: u64,
    far: Arc<FarReceiver>,
}

impl<C: Clock> BetweenBursts for Prober<C> {
    fn before_burst(&mut self, burst: u32) -> Result<(), RunError> {
        match burst {
            0 => self.phase(Phase::Before),
            _ if self.last.is_some_and(|last| last.elapsed() < SINCE_LAST) => Ok(()),
            _ => self.phase(Phase::Between),
        }
    }

    fn after_bursts(&mut self) -> Result<(), RunError> {
        self.phase(Phase::After)
    }
}

impl<C: Clock> Prober<C> {
    /// Exchanges so many probes each time, by an end that asks. On UC and UD an answer may be lost, else it comes within
    /// `timeout`.
    pub(super) fn new(
        clock: C,
        (wire, far): (SharedWire, Arc<FarReceiver>),
        end: ProbeEnd<C>,
        count: u32,
        (reliable, timeout): (bool, Duration),
    ) -> Self {
        Prober {
            clock,
            wire,
            end,
            count,
            patience: match reliable {
                true => timeout,
                false => UNANSWERED.min(timeout),
            },
            next: 0,
            phases: 0,
            last: None,
            probes: Vec::new(),
            unanswered: 0,
            far,
        }
    }

    /// Exchanges the probes of a phase. Whoever fails to answer then is not asked again.
    fn phase(&mut self, phase: Phase) -> Result<(), RunError> {
        let done = self.exchange(phase);
        if let Err(error @ RunError::Wire(_)) = &done {
            self.far.set_gone(error);
        }
        done
    }

    fn exchange(&mut self, phase: Phase) -> Result<(), RunError> {
        let (first, count) = (self.next, self.count);
        let place = self.phases;
        self.next += count;
        self.phases += 1;
        let mut wire = lock(&self.wire);
        send_message(&mut wire, &WireMessage::Probe { first, count })?;
        receive_message(&mut wire, ANSWER, only!(WireMessage::Receiving => ()))?;
        let watched = ProbeProgress::default();
        let stamped = self.stamp((first, count), &watched);
        send_message(&mut wire, &WireMessage::ProbesOver)?;
        let (there, failure) = receive_message(
            &mut wire,
            ANSWER,
            only!(WireMessage::Probed { stamped, failure } => (stamped, failure)),
        )?;
        drop(wire);
        let here = stamped?.map_err(|failure| probes_failed(&failure.to_string()))?;
        if let Some(failure) = failure {
            let failure = Failure::Run(format!("probes: {failure}"));
            return Err(RunError::Peer(self.peer(), failure));
        }
        self.last = Some(Instant::now());
        let there: HashMap<u32, Stamped> = there.into_iter().map(|one| (one.number, one)).collect();
        let nanos = |ticks| self.clock.to_nanos(ticks);
        let before = self.probes.len();
        self.probes.extend(here.iter().filter_map(|one| {
            let other = there.get(&one.number)?;
            Some(NumberedProbe {
                number: one.number,
                phase,
                place,
                stamps: Probe {
                    a_sent: nanos(one.sent),
                    b_received: Nanos(other.received.0),
                    b_sent: Nanos(other.sent.0),
                    a_received: nanos(one.received),
                },
            })
        }));
        let answered = self.probes.len() - before;
        if answered == 0 {
            return Err(probes_failed("none of them was answered"));
        }
        // Where the time of a phase was over, not all were sent.
        self.unanswered += u64::from(watched.at()).saturating_sub(answered as u64);
        unless_interrupted().map_err(RunError::from)
    }

    fn peer(&self) -> SocketAddr {
        lock(&self.wire).peer()
    }

    /// Sends probes, and gives up those that are not answered.
    fn stamp(
        &self,
        numbers: (u32, u32),
        watched: &ProbeProgress,
    ) -> Result<Result<Vec<Stamped>, PortFailure>, RunError> {
        let longest = PHASE.max(self.patience * 2).min(ANSWERED);
        let ((), stamped) = self.end.exchange(numbers, watched, |is_finished| {
            let begun = Instant::now();
            let (mut at, mut since) = (0, begun);
            while !is_finished() {
                std::thread::sleep(LOOK);
                if watched.at() != at {
                    (at, since) = (watched.at(), Instant::now());
                }
                if begun.elapsed() > longest || interrupt::requested().is_some() {
                    watched.stop();
                    self.end.wakeable.wake();
                } else if since.elapsed() > self.patience {
                    watched.give_up(at);
                    self.end.wakeable.wake();
                }
            }
        })?;
        Ok(stamped)
    }
}

fn probes_failed(reason: &str) -> RunError {
    RunError::Post(format!(
        "probes: {reason}: are both ports up, and did an address or a route change in the middle?"
    ))
}
