//! One point on connected ends: its threads, and its bursts one after the other.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::analysis::{Burst, judge};
use super::burst_record::BurstRecord;
use super::completion::CompletionOutcome;
use super::config::{Operation, Poll, Service, Timestamp};
use super::control::Control;
use super::ends::{ReceivingEnd, SendingEnd};
use super::placement::Placement;
use super::port::{CompletionPort, Polled};
use super::receiving_half::{ReceivingSettings, start_receiving};
use super::result::{Counts, LoopFaults, Message};
use super::sending_half::{SendingSettings, start_sending};
use super::watch::{Over, PREPARATION, Watch};
use super::worker::{Frame, Report, Task, Threads, WorkerError};
use crate::buffer::{HugePagePolicy, PageKind};
use crate::host::Wakeable;
use crate::rig::control::Control as RunControl;
use crate::rig::error::RigError;
use crate::rig::workers::{Cause, Crew, Patience, Role};
use crate::time::{Clock, Nanos};

/// How long a thread may take to leave its loop after it was told to.
const GRACE: Duration = Duration::from_secs(2);
/// How long placing the threads and touching their memory may take.
const PLACING: Duration = Duration::from_secs(30);
/// How long the retries of a reliable connection take at the most: seven times the acknowledgement timeout of 134 ms, of
/// which an HCA may make four times as much (InfiniBand Architecture Specification, volume 1, 9.7.6.1.3).
const RETRIES: Duration = Duration::from_secs(4);

/// What a session is made for.
#[derive(Debug, Clone)]
pub(super) struct SessionSettings {
    pub(super) service: Service,
    pub(super) operation: Operation,
    pub(super) timestamp: Timestamp,
    pub(super) poll_recv: Poll,
    pub(super) poll_comp: Poll,
    pub(super) pause: Nanos,
    pub(super) receiver_pause: Nanos,
    /// The most messages of a burst.
    pub(super) depth: u32,
    /// Every so many messages one is signalled.
    pub(super) signal_every: u32,
    pub(super) timeout: Duration,
    pub(super) priority: Option<u8>,
    pub(super) huge_pages: HugePagePolicy,
}

/// A session cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// For a reason that every benchmark knows.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// A thread could not do its work.
    #[error("{0}: {1}")]
    Worker(Role, WorkerError),
}

/// What the bursts of a point add up to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) messages: Vec<Message>,
    pub(super) counts: Counts,
    pub(super) faults: LoopFaults,
    posting_ns: u64,
    posted: u64,
    rewritten: u64,
    rewriting_ns: u64,
    /// What ended the point early, if anything did.
    pub(super) failure: Option<String>,
}

impl Tally {
    /// Messages posted in a second.
    pub(super) fn post_rate(&self) -> Option<f64> {
        (self.posting_ns > 0).then(|| self.posted as f64 * 1e9 / self.posting_ns as f64)
    }

    /// The mean time between two rewritings of a stamp, in nanoseconds. Stamps of lost messages were rewritten as well, for a
    /// time that nobody knows.
    pub(super) fn stamp_refresh_ns(&self) -> Option<f64> {
        (self.rewritten > 0 && self.counts.lost == 0)
            .then(|| self.rewriting_ns as f64 / self.rewritten as f64)
    }
}

/// What ends a burst before all threads have reported.
enum Ending {
    NotReady,
    Trouble(String),
    /// Told to leave their loops, some did not.
    Held,
}

/// The ends and the threads of one point.
pub(super) struct Session<S: SendingEnd, R: ReceivingEnd> {
    settings: SessionSettings,
    sending: Arc<S>,
    receiving: Arc<R>,
    wakeable: Wakeable,
    requested: fn() -> Option<Signal>,
    threads: Threads,
    roles: Vec<Role>,
    tasks: Vec<Sender<Task>>,
    stamp_pages: PageKind,
    bursts: u32,
}

impl<S: SendingEnd, R: ReceivingEnd> Session<S, R> {
    /// Starts the threads of both ends. `requested` tells of signals.
    pub(super) fn start<C: Clock>(
        clock: C,
        sending: &Arc<S>,
        receiving: &Arc<R>,
        settings: SessionSettings,
        placement: &Placement,
        wakeable: &Wakeable,
        requested: fn() -> Option<Signal>,
    ) -> Result<Self, SessionError> {
        let mut threads = Crew::new(&Arc::new(RunControl::default()))?;
        let frame = Frame {
            capacity: settings.depth as usize,
            huge_pages: settings.huge_pages,
            wakeable: wakeable.clone(),
        };
        let priority = settings.priority;
        let mut tasks = vec![start_receiving(
            &mut threads,
            clock,
            &frame,
            receiving,
            placement.receiving(priority),
            ReceivingSettings {
                mode: settings.poll_recv,
                operation: settings.operation,
                pause: settings.receiver_pause,
            },
        )?];
        let seats = placement.sending(priority);
        tasks.extend(start_sending(
            &mut threads,
            clock,
            &frame,
            sending,
            seats,
            SendingSettings {
                pause: settings.pause,
                timestamp: settings.timestamp,
                signal_every: settings.signal_every,
                poll: settings.poll_comp,
            },
        )?);
        let mut session = Session {
            roles: std::iter::once(placement.receiving(priority))
                .chain([seats.sender])
                .chain(seats.completion)
                .chain(seats.stamp)
                .map(|seat| seat.role)
                .collect(),
            settings,
            sending: Arc::clone(sending),
            receiving: Arc::clone(receiving),
            wakeable: wakeable.clone(),
            requested,
            threads,
            tasks,
            stamp_pages: PageKind::Huge,
            bursts: 0,
        };
        session.wait_until_placed()?;
        Ok(session)
    }

    fn wait_until_placed(&mut self) -> Result<(), SessionError> {
        let since = Instant::now();
        let late = || (since.elapsed() > PLACING).then_some(());
        let placed =
            self.threads
                .collect_under(&self.requested, &Patience::default(), late, || ())?;
        if let Some((role, error)) = placed.failures.into_iter().next() {
            return Err(SessionError::Worker(role, error));
        }
        match placed.cause {
            Some(Cause::Signal(signal)) => return Err(RigError::Interrupted(signal).into()),
            Some(_) => {
                let role = self.roles[0];
                let limit = PLACING;
                return Err(RigError::NotReady { role, limit }.into());
            }
            None => {}
        }
        for (_, report) in placed.reports {
            if let Report::Placed(Some(pages)) = report {
                self.stamp_pages = pages.min(self.stamp_pages);
            }
        }
        Ok(())
    }

    /// The pages of the stamps, and of the payload of sender and receiver.
    pub(super) fn pages(&self) -> [PageKind; 3] {
        [
            self.stamp_pages,
            self.sending.page_kind(),
            self.receiving.page_kind(),
        ]
    }

    /// Runs one burst and watches over it; `progress` is told how far receiving is.
    pub(super) fn run_burst(
        &mut self,
        count: usize,
        progress: &mut dyn FnMut(u32),
    ) -> Result<BurstRecord, SessionError> {
        let control = Arc::new(Control::default());
        let task = Task {
            number: self.bursts,
            count,
            others: self.tasks.len() as u32 - 1,
            control: Arc::clone(&control),
        };
        let mut record = BurstRecord {
            number: self.bursts,
            ..BurstRecord::default()
        };
        self.bursts += 1;
        for tasks in &self.tasks {
            // A thread that has gone shows by its missing report.
            let _ = tasks.send(task.clone());
        }
        let reliable = self.settings.service == Service::Rc;
        let mut watch = Watch::new(self.settings.timeout, self.settings.pause, reliable);
        let patience = Patience {
            look: watch.look,
            grace: GRACE,
            ..Patience::default()
        };
        let (sending, receiving, wakeable) = (&self.sending, &self.receiving, &self.wakeable);
        let over: Cell<Option<Instant>> = Cell::new(None);
        let leave = || {
            control.stop();
            wakeable.wake();
        };
        let look = || {
            progress(control.received());
            if let Some(since) = over.get() {
                leave();
                return (since.elapsed() > GRACE).then_some(Ending::Held);
            }
            if watch.due()
                && let Some(trouble) = trouble(&**sending, &**receiving)
            {
                return Some(Ending::Trouble(trouble));
            }
            match watch.is_over(&control)? {
                Over::NeverBegun => Some(Ending::NotReady),
                Over::Quiet => {
                    // No failure by itself: what is missing is lost.
                    over.set(Some(Instant::now()));
                    leave();
                    None
                }
            }
        };
        let collected = self
            .threads
            .collect_under(&self.requested, &patience, look, leave)?;
        for (place, report) in collected.reports {
            record.take(self.roles[place], report);
        }
        match collected.cause {
            Some(Cause::Signal(signal)) => {
                record.interrupted = true;
                record.failure = Some(RigError::Interrupted(signal).to_string());
            }
            Some(Cause::Watch(Ending::Trouble(trouble))) => record.failure = Some(trouble),
            Some(Cause::Watch(Ending::NotReady)) => {
                record.failure = Some(format!(
                    "the threads were not ready within {} s: is the machine out of memory or too busy?",
                    PREPARATION.as_secs()
                ));
            }
            Some(Cause::Watch(Ending::Held) | Cause::Worker) | None => {}
        }
        if let Some((role, error)) = collected.failures.first() {
            record
                .failure
                .get_or_insert_with(|| format!("{role}: {error}"));
        }
        if reliable && over.get().is_some() && record.posted() < count {
            self.wait_for_retries(&mut record);
        }
        let lowered_mtu = || {
            let lowered = self.sending.lowered_mtu();
            lowered.or_else(|| self.receiving.lowered_mtu())
        };
        record.find_failure(lowered_mtu);
        let settings = &self.settings;
        record.find_shortage(count, settings.service, settings.signal_every, lowered_mtu);
        // Whatever was noticed first, this is the reason for it.
        if record.failure.is_some()
            && !record.interrupted
            && let Some(removal) = self.sending.removal().or_else(|| self.receiving.removal())
        {
            record.failure = Some(removal);
        }
        record.forget_what_was_under_way();
        Ok(record)
    }

    /// Waits for the error of a reliable connection that went on posting while nothing arrived: some HCAs begin their
    /// retries anew with each post, and give up only now.
    fn wait_for_retries(&self, record: &mut BurstRecord) {
        let mut port = self.sending.completions();
        let deadline = Instant::now() + RETRIES;
        let outcome = record
            .completion
            .get_or_insert_with(CompletionOutcome::default);
        while (self.requested)().is_none() {
            match port.poll() {
                Polled::Failed(failure) => {
                    outcome.failed += 1;
                    outcome.failure.get_or_insert(failure);
                }
                Polled::Done(_) => outcome.succeeded += 1,
                Polled::Empty if outcome.failed > 0 || Instant::now() > deadline => return,
                Polled::Empty => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Judges the messages of a burst.
    pub(super) fn judge<C: Clock>(
        &self,
        clock: &C,
        repeat: u32,
        record: BurstRecord,
        tally: &mut Tally,
    ) {
        let burst = Burst {
            repeat,
            submitted: &record.submitted,
            completed: &record.completed,
            arrivals: &record.arrivals,
            timestamp: self.settings.timestamp,
        };
        let (messages, mut counts) = judge(clock, burst, &self.receiving.delivered(record.number));
        if let Some(outcome) = &record.receive {
            counts.late = u64::from(outcome.strays.late);
            counts.foreign += u64::from(outcome.strays.foreign);
        }
        counts.failed_completions = record
            .completion
            .as_ref()
            .map_or(0, |outcome| u64::from(outcome.failed));
        tally.counts += counts;
        tally.faults += record.faults;
        if let (Some(first), Some(outcome)) = (record.submitted.first(), &record.send) {
            let posting = clock.to_nanos(outcome.last_post).0 - clock.to_nanos(*first).0;
            tally.posting_ns += posting;
            tally.posted += u64::from(outcome.posted);
            if let Some(stamp) = &record.stamp {
                tally.rewritten += stamp.rewritten;
                // The stamp thread is at work while a message is under way.
                tally.rewriting_ns += messages
                    .iter()
                    .filter_map(|message| {
                        Some(message.received_ns?.saturating_sub(message.submitted_ns))
                    })
                    .sum::<u64>();
            }
        }
        tally.messages.extend(messages);
    }
}

/// What makes it impossible that any more messages arrive.
fn trouble(sending: &impl SendingEnd, receiving: &impl ReceivingEnd) -> Option<String> {
    let removal = sending.removal().or_else(|| receiving.removal());
    let trouble = removal.or_else(|| sending.trouble());
    trouble.or_else(|| receiving.trouble())
}

impl<S: SendingEnd, R: ReceivingEnd> Drop for Session<S, R> {
    fn drop(&mut self) {
        // Without tasks to come, threads end; all have reported or were told to leave.
        self.tasks.clear();
        self.threads.dismiss(GRACE);
    }
}

#[cfg(test)]
mod tests;
