//! One point on connected ends: its threads, and its bursts one after the other.

pub(crate) mod background;
pub(crate) mod burst_record;
pub(crate) mod bursts;
mod hardware_clocks;
pub(crate) mod receiving_half;
mod sending_half;
pub(crate) mod watch;
pub(crate) mod worker;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::bench::hca::ends::endpoints::retries_of;
use crate::bench::hca::ends::hardware_stamps::HardwareStamps;
use crate::bench::hca::ends::path_proof::PortRecord;
use crate::bench::hca::ends::{Link, SendingEnd};
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::control::Control;
use crate::bench::hca::loops::port::{CompletionPort, PollResult};
use crate::bench::hca::message::Message;
use crate::bench::hca::plan::Point;
use crate::bench::hca::plan::placement::Placement;
use crate::bench::hca::result::Tally;
use crate::bench::hca::result::analysis::{Burst, judge, judge_requests};
use crate::bench::hca::result::hardware::HardwareStampTally;
use crate::bench::hca::session::background::RunningBackground;
use crate::bench::hca::session::burst_record::BurstRecord;
use crate::bench::hca::session::receiving_half::ReceivingSide;
use crate::bench::hca::session::sending_half::start_sending;
use crate::bench::hca::session::watch::{BurstTimeout, BurstWatch, PREPARATION};
use crate::bench::hca::session::worker::{BurstTask, Frame, Threads, gather, wait_until_placed};
use crate::bench::hca::settings::config::{Poll, Service};
use crate::bench::hca::settings::warmup::Warmup;
use crate::buffer::PageKind;
use crate::host::throttling::ThrottleCounters;
use crate::rdma::verbs::{CounterReading, PortCounters, Retries};
use crate::rig::benchmark::Progress;
use crate::rig::control::Control as RunControl;
use crate::rig::error::RigError;
use crate::rig::workers::{Cause, Crew, SupervisorTimeouts};
use crate::time::{Clock, CounterPair};

/// How long a thread may take to leave its loop after it was told to.
const GRACE: Duration = Duration::from_secs(2);
/// How long after a failure the other host may show that it is the reason.
const AFTER_EFFECT: Duration = Duration::from_millis(500);
/// How long the retries of a reliable connection are waited for at the most.
const LONGEST_RETRIES: Duration = Duration::from_secs(30);

/// What ends a burst before all threads have reported.
enum BurstEnding {
    NotReady,
    Trouble(String),
    /// Told to leave their loops, some did not.
    Held,
}

/// What is done while no burst runs.
pub(crate) trait BetweenBursts {
    /// Before each measured burst.
    ///
    /// # Errors
    /// When the point cannot go on.
    fn before_burst(&mut self, _burst: u32) -> Result<(), RunError> {
        Ok(())
    }

    /// After the last one.
    ///
    /// # Errors
    /// When it cannot be done.
    fn after_bursts(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

/// Nothing.
impl BetweenBursts for () {}

/// The ends and the threads of one point.
pub(super) struct Session<S: SendingEnd, R: ReceivingSide> {
    frame: Frame,
    timeout: Duration,
    sending: Arc<S>,
    receiving: Arc<R>,
    requested: fn() -> Option<Signal>,
    threads: Threads,
    tasks: Vec<Sender<BurstTask>>,
    stamp_pages: PageKind,
    bursts: u32,
    background: Option<RunningBackground>,
    /// The readings of the adapters' clocks, of sender and receiver, where they stamp completions.
    clock_pairs: [Vec<CounterPair>; 2],
}

impl<S: SendingEnd, R: ReceivingSide> Session<S, R> {
    /// Starts the threads of both ends. `requested` tells of signals.
    pub(super) fn start<C: Clock>(
        clock: C,
        sending: &Arc<S>,
        receiving: &Arc<R>,
        frame: Frame,
        timeout: Duration,
        placement: &Placement,
        requested: fn() -> Option<Signal>,
    ) -> Result<Self, RunError> {
        let mut threads = Crew::new(&Arc::new(RunControl::default()))?;
        let mut tasks = Vec::new();
        // Reads and atomics are answered by the HCA alone.
        if frame.point.operation.is_one_way() {
            let cpu = placement.receiver;
            tasks.push(receiving.start(&mut threads, clock, &frame, cpu)?);
        }
        tasks.extend(start_sending(
            &mut threads,
            clock,
            &frame,
            sending,
            placement,
        )?);
        let mut session = Session {
            frame,
            timeout,
            sending: Arc::clone(sending),
            receiving: Arc::clone(receiving),
            requested,
            threads,
            tasks,
            stamp_pages: PageKind::Huge,
            bursts: 0,
            background: None,
            clock_pairs: Default::default(),
        };
        let placed = wait_until_placed(&mut session.threads, &session.requested)?;
        let of_hardware = session.hardware().into_iter().flatten();
        session.stamp_pages = of_hardware
            .map(HardwareStamps::page_kind)
            .fold(placed, PageKind::min);
        Ok(session)
    }

    /// What to ask both ends.
    fn links(&self) -> [&dyn Link; 2] {
        [self.sending.link(), self.receiving.link()]
    }

    /// The pages of the stamps, and of the payload of sender and receiver.
    pub(super) fn pages(&self) -> [PageKind; 3] {
        let [sending, receiving] = self.links().map(|link| link.page_kind());
        [self.stamp_pages, sending, receiving]
    }

    /// Has what runs in the background end after the last burst. What it does while bursts are measured counts.
    pub(super) fn beside(&mut self, background: RunningBackground) {
        self.background = Some(background);
    }

    /// Runs the bursts of a point, after those of the warm-up, which do not count. A failure after the first message is
    /// told in the tally, beside what was measured until then.
    ///
    /// # Errors
    /// When there is nothing to show.
    pub(super) fn measure<C: Clock>(
        &mut self,
        clock: &C,
        warmup: Warmup,
        repeat: u32,
        progress: &mut dyn FnMut(Progress),
        between: &mut dyn BetweenBursts,
    ) -> Result<Tally, RunError> {
        let burst = self.frame.point.burst;
        let messages = repeat as usize * burst as usize;
        let mut tally = Tally::with_room_for(messages);
        let has_stamps = self.hardware().iter().any(Option::is_some);
        tally.hardware = has_stamps.then(|| HardwareStampTally::with_room_for(messages));
        let to_warm_up = u64::from(warmup.messages(burst).unwrap_or(0));
        let of = to_warm_up + u64::from(repeat) * u64::from(burst);
        let since = Instant::now();
        let mut number = 0;
        let mut counters = None;
        let mut throttling = ThrottleCounters::open();
        while number < repeat {
            let warming = number == 0 && warmup.goes_on(tally.warmed_up, since.elapsed());
            // How much a warm-up by time will be nobody knows.
            let before = tally.warmed_up.min(to_warm_up) + u64::from(number) * u64::from(burst);
            let mut report = |received: u32| {
                let received = u64::from(received);
                let done = if warming && to_warm_up == 0 {
                    0
                } else {
                    before + received
                };
                let text = None;
                progress(Progress { done, of, text });
            };
            if !warming && counters.is_none() {
                let all = self.links().map(|link| link.counters(CounterReading::All));
                counters = Some((all, Instant::now()));
                throttling.begin();
                self.background
                    .iter_mut()
                    .for_each(RunningBackground::begin);
            }
            let allowed = match warming {
                true => Ok(()),
                false => between.before_burst(number),
            };
            let ran = allowed
                .and_then(|()| self.run_between_readings(clock, burst as usize, &mut report));
            let record = match ran {
                Ok(record) => record,
                Err(error) if tally.counts.sent == 0 => return Err(error),
                Err(error) => {
                    // The bursts before it are whole.
                    tally.failure = Some(self.reason(&error));
                    break;
                }
            };
            tally.failure.clone_from(&record.failure);
            if warming {
                tally.warmed_up += u64::from(burst);
            } else {
                self.judge(clock, number, record, &mut tally);
                number += 1;
            }
            if tally.failure.is_some() {
                break;
            }
        }
        tally.throttled = throttling.record();
        if tally.failure.is_none() {
            tally.failure = between.after_bursts().err().map(|it| self.reason(&it));
        }
        if let Some((delivered, trouble)) = self.background.take().map(RunningBackground::end) {
            tally.background = Some(delivered);
            tally.failure = tally.failure.or(trouble);
        }
        tally.ports = self.port_record(counters);
        if let Some(stamps) = &mut tally.hardware {
            let point = &self.frame.point;
            stamps.finish(
                self.hardware().map(|it| it.map(HardwareStamps::kind)),
                &self.clock_pairs,
                clock.rate_change(),
                // It may be away as it was asked to.
                point.poll_recv == Poll::Busy && point.receiver_pause_ns.0 == 0,
            );
        }
        Ok(tally)
    }

    /// Why what is done between bursts failed.
    fn reason(&self, error: &RunError) -> String {
        match (self.requested)() {
            Some(_) => error.to_string(),
            None => root_cause(self.links()).unwrap_or_else(|| error.to_string()),
        }
    }

    /// What the ports tell since their counters were those before the first measured burst, if there was one.
    fn port_record(&self, before: Option<([PortCounters; 2], Instant)>) -> PortRecord {
        let links = self.links();
        let mut changes: Vec<String> = links.iter().flat_map(|link| link.changes()).collect();
        // Both ends may be on one port.
        changes.sort();
        changes.dedup();
        let Some(([of_sender, of_receiver], begun)) = before else {
            return PortRecord {
                changes,
                ..PortRecord::default()
            };
        };
        let time = begun.elapsed();
        // Those of both interfaces before any wait for the others: pauses in that time are none of the measurement.
        let [sender, receiver] = links.map(|link| link.counters(CounterReading::Interfaces));
        let fresh = |link: &dyn Link| link.counters(CounterReading::FreshOfDevice);
        PortRecord {
            sender: sender.and(fresh(links[0])).since(&of_sender),
            receiver: receiver.and(fresh(links[1])).since(&of_receiver),
            changes,
            time,
        }
    }

    /// Runs one burst and watches over it; `progress` is told how far receiving is.
    fn run_burst(
        &mut self,
        count: usize,
        progress: &mut dyn FnMut(u32),
    ) -> Result<BurstRecord, RunError> {
        let control = Arc::new(Control::default());
        let task = BurstTask {
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
        let Point {
            service, operation, ..
        } = self.frame.point;
        let reliable = service == Service::Rc;
        let arrived = match operation.is_one_way() {
            true => Control::received,
            false => Control::completed,
        };
        let pause = self.frame.point.longest_pause();
        let mut watch = BurstWatch::new(self.timeout, pause, reliable, arrived);
        let patience = SupervisorTimeouts {
            look: watch.look,
            // A far receiver takes longer than one here.
            grace: 2 * GRACE,
            ..SupervisorTimeouts::default()
        };
        let links = [self.sending.link(), self.receiving.link()];
        let background = self.background.as_ref();
        let wakeable = &self.frame.wakeable;
        let over: Cell<Option<Instant>> = Cell::new(None);
        let leave = || {
            control.stop();
            wakeable.wake();
        };
        let look = || {
            progress(arrived(&control));
            if let Some(since) = over.get() {
                leave();
                return (since.elapsed() > GRACE).then_some(BurstEnding::Held);
            }
            if watch.due()
                && let Some(trouble) = trouble(links, background)
            {
                return Some(BurstEnding::Trouble(trouble));
            }
            match watch.is_over(&control)? {
                BurstTimeout::NeverBegun => Some(BurstEnding::NotReady),
                BurstTimeout::Quiet => {
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
        gather(&mut record, collected.reports, &collected.failures);
        // What ended the burst says more than what a thread failed by then.
        match collected.cause {
            Some(Cause::Signal(signal)) => {
                record.interrupted = true;
                record.failure = Some(RigError::Interrupted(signal).to_string());
            }
            Some(Cause::Watch(BurstEnding::Trouble(trouble))) => record.failure = Some(trouble),
            Some(Cause::Watch(BurstEnding::NotReady)) => {
                record.failure = Some(format!(
                    "the threads were not ready within {} s: is the machine out of memory or too busy?",
                    PREPARATION.as_secs()
                ));
            }
            Some(Cause::Watch(BurstEnding::Held) | Cause::Worker) | None => {}
        }
        if reliable && over.get().is_some() && record.posted() < count {
            self.wait_for_retries(&mut record);
        }
        let expected = self.frame.completions_of(count);
        let links = self.links();
        record.find_failure(count, (service, operation), expected, || {
            links.iter().find_map(|link| link.lowered_mtu())
        });
        let of_background = self
            .background
            .as_ref()
            .and_then(RunningBackground::trouble);
        record.failure = record.failure.or(of_background);
        // Whatever was noticed first, this is the reason for it.
        if record.failure.is_some()
            && !record.interrupted
            && let Some(cause) = root_cause(links)
        {
            record.failure = Some(cause);
        }
        record.hardware = self.hardware_stamps(&record);
        record.forget_what_was_under_way(operation, self.frame.point.queue_pairs);
        Ok(record)
    }

    /// Waits for the error of a reliable connection that went on posting while nothing arrived: some HCAs begin their
    /// retries anew with each post, and give up only now.
    fn wait_for_retries(&self, record: &mut BurstRecord) {
        let mut port = self.sending.completions();
        let deadline = Instant::now() + retry_time(retries_of(&self.frame.point.path));
        let outcome = record.completion.get_or_insert_default();
        while (self.requested)().is_none() {
            match port.poll() {
                PollResult::Failed(failure) => {
                    outcome.failed += 1;
                    outcome.failure.get_or_insert(failure);
                }
                PollResult::Done(_) => outcome.succeeded += 1,
                PollResult::Empty if outcome.failed > 0 || Instant::now() > deadline => return,
                PollResult::Empty => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Judges the messages of a burst.
    fn judge<C: Clock>(&self, clock: &C, repeat: u32, record: BurstRecord, tally: &mut Tally) {
        let burst = Burst {
            repeat,
            submitted: &record.submitted,
            completed: &record.completed,
            arrivals: &record.arrivals,
            intended: record.intended.as_deref(),
            timestamp: self.frame.point.timestamp,
        };
        let number = record.number;
        let (messages, mut counts) = if self.frame.point.operation.is_one_way() {
            judge(clock, burst, R::OTHER_CLOCK, |arrival, sequence| {
                self.receiving.delivered(number, arrival, sequence)
            })
        } else {
            judge_requests(clock, burst, |sequence| {
                self.sending.fetched(number, sequence)
            })
        };
        if let Some(outcome) = &record.receive {
            counts.late = u64::from(outcome.strays.late);
            counts.foreign += u64::from(outcome.strays.foreign);
        }
        let completion = record.completion.as_ref();
        counts.failed_completions = completion.map_or(0, |outcome| u64::from(outcome.failed));
        tally.counts += counts;
        tally.faults += record.faults;
        if let [first, .., last] | [first @ last] = record.submitted[..] {
            // A schedule begins right before the first post.
            let began = record.intended.as_ref().and_then(|all| all.first());
            let [first, last] = [*began.unwrap_or(&first), last].map(|stamp| clock.to_nanos(stamp));
            tally.add_posting(record.submitted.len(), first, last);
            // Of another clock than the sender's no stamp tells how long a message was under way.
            if let Some(rewritten) = record.rewritten.filter(|_| !R::OTHER_CLOCK) {
                tally.rewritten += rewritten;
                // The stamp thread is at work while a message is under way.
                let under_way = |message: &Message| {
                    Some(message.received_ns?.saturating_sub(message.submitted_ns))
                };
                tally.rewriting_ns += messages.iter().filter_map(under_way).sum::<u64>();
            }
        }
        if let Some(stamps) = &mut tally.hardware {
            stamps.add(&messages, &record.hardware);
        }
        tally.messages.extend(messages);
    }
}

/// How long the first try and all repetitions of a packet take at the most: an HCA may make four times as much of the
/// acknowledgement timeout (InfiniBand Architecture Specification, volume 1, 9.7.6.1.3).
fn retry_time(retries: Retries) -> Duration {
    let timeout = Duration::from_nanos(4096 << retries.timeout);
    (timeout * 4 * (u32::from(retries.count) + 1)).min(LONGEST_RETRIES)
}

/// Why something has failed, whichever end noticed what first.
fn root_cause(links: [&dyn Link; 2]) -> Option<String> {
    let of_any = |limit| links.iter().find_map(|link| link.root_cause(limit));
    // While the one is waited for, the other one may have found it.
    of_any(AFTER_EFFECT).or_else(|| of_any(Duration::ZERO))
}

/// What makes it impossible that any more messages arrive, or that they are measured as they should be.
fn trouble(links: [&dyn Link; 2], background: Option<&RunningBackground>) -> Option<String> {
    let cause = (links.iter()).find_map(|link| link.root_cause(Duration::ZERO));
    let of_links = cause.or_else(|| links.iter().find_map(|link| link.trouble()));
    of_links.or_else(|| background?.trouble())
}

impl<S: SendingEnd, R: ReceivingSide> Drop for Session<S, R> {
    fn drop(&mut self) {
        // Without tasks to come, threads end; all have reported or were told to leave.
        self.tasks.clear();
        self.threads.dismiss(GRACE);
    }
}

#[cfg(test)]
mod tests;
