//! One point on real verbs: its endpoints, its threads, and its bursts one after the other.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::analysis::{Burst, PayloadDelivery, judge};
use super::completion::CompletionOutcome;
use super::config::{Operation, Poll, Service};
use super::control::Control;
use super::endpoints::{EndpointSettings, Endpoints};
use super::plan::Point;
use super::port::Failure;
use super::receiver::ReceiveOutcome;
use super::result::{Circumstances, Counts, InstrumentCosts, LoopFaults, Message, PointResult};
use super::run::{RunError, Runner};
use super::sender::SendOutcome;
use super::stamper::StampOutcome;
use super::threads::{
    self, Frame, ReceiverSettings, Report, SenderSettings, Task, ThreadError, Worker,
};
use super::watch::{Over, PREPARATION, Watch};
use crate::buffer::{Arrival, PageKind};
use crate::host::{CompletionBy, Placement, Role, Wakeable, interrupt};
use crate::rdma::cm::UcRoute;
use crate::stats::{LatencyHistogram, MedianInterval, Summary};
use crate::time::{Clock, Ticks};

/// How long a thread may take to leave its loop after it was told to.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// What the bursts of a point add up to.
#[derive(Default)]
pub(super) struct Tally {
    messages: Vec<Message>,
    counts: Counts,
    faults: LoopFaults,
    posting_ns: u64,
    posted: u64,
    rewritten: u64,
    rewriting_ns: u64,
    pub(super) failure: Option<String>,
}

/// What the threads brought back from one burst.
#[derive(Default)]
pub(super) struct BurstRecord {
    number: u32,
    submitted: Vec<Ticks>,
    completed: Vec<Ticks>,
    arrivals: Vec<Arrival>,
    send: Option<SendOutcome>,
    receive: Option<ReceiveOutcome>,
    completion: Option<CompletionOutcome>,
    stamp: Option<StampOutcome>,
    faults: LoopFaults,
    pub(super) failure: Option<String>,
}

/// The connected endpoints and the threads of one point.
pub(super) struct Session<'a> {
    point: &'a Point,
    placement: Placement,
    timeout: Duration,
    priority: Option<u8>,
    wakeable: Wakeable,
    reports: Receiver<Report>,
    workers: Vec<Worker>,
    stamp_pages: PageKind,
    bursts: u32,
    signal_every: u32,
    uc_route: UcRoute,
    endpoints: Arc<Endpoints>,
}

impl<'a> Session<'a> {
    pub(super) fn start<C: Clock>(
        runner: &Runner,
        point: &'a Point,
        placement: Placement,
        clock: C,
    ) -> Result<Self, RunError> {
        let config = &runner.config;
        let depth = point.burst.max(config.warmup);
        // Those of the other service types have no use for it.
        let uc_route = runner.uc_route.unwrap_or(UcRoute::Endpoint);
        let settings = EndpointSettings {
            service: point.service,
            uc_route,
            operation: point.operation,
            size: point.size as usize,
            depth,
            inline: point.inline.is_on(),
            receive_events: point.poll_recv == Poll::Event,
            completion_events: point.poll_comp == Poll::Event,
            huge_pages: config.huge_pages,
            sender_cpu: placement.sender,
            receiver_cpu: placement.receiver,
        };
        let (from, to) = (runner.pair.sender.end(), runner.pair.receiver.end());
        let endpoints = Arc::new(Endpoints::connect(&runner.channel, &from, &to, &settings)?);
        let (sender, reports) = channel();
        let frame = Frame {
            capacity: depth as usize,
            huge_pages: config.huge_pages,
            priority: config.priority,
            wakeable: runner.wakeable.clone(),
            reports: sender,
        };
        let signal_every = if point.unsignaled.is_on() { depth } else { 1 };
        let sending = SenderSettings {
            pause: point.pause_ns,
            timestamp: point.timestamp,
            signal_every,
            collects: placement.completion_by == CompletionBy::Sender,
        };
        let failed = |role| move |error| RunError::Spawn(role, error);
        let mut workers = vec![
            threads::start_receiver(
                clock,
                placement.receiver,
                &frame,
                &endpoints,
                ReceiverSettings {
                    mode: point.poll_recv,
                    operation: point.operation,
                    pause: config.receiver_pause,
                },
            )
            .map_err(failed(Role::Receiver))?,
            threads::start_sender(clock, placement.sender, &frame, &endpoints, sending)
                .map_err(failed(Role::Sender))?,
        ];
        if let Some(cpu) = placement.completion {
            workers.push(
                threads::start_completion(
                    clock,
                    cpu,
                    &frame,
                    &endpoints,
                    point.poll_comp,
                    signal_every,
                )
                .map_err(failed(Role::Completion))?,
            );
        }
        if let Some(cpu) = placement.stamp {
            workers.push(
                threads::start_stamper(clock, cpu, &frame, &endpoints)
                    .map_err(failed(Role::Stamp))?,
            );
        }
        let mut session = Session {
            point,
            placement,
            timeout: config.timeout,
            priority: config.priority,
            wakeable: runner.wakeable.clone(),
            reports,
            workers,
            stamp_pages: PageKind::Huge,
            bursts: 0,
            signal_every,
            uc_route,
            endpoints,
        };
        for _ in 0..session.workers.len() {
            match session.reports.recv_timeout(Duration::from_secs(30)) {
                Ok(Report::Placed(pages)) => {
                    session.stamp_pages =
                        pages.map_or(session.stamp_pages, |pages| pages.min(session.stamp_pages));
                }
                Ok(Report::Unfit(role, error)) => return Err(RunError::Thread(role, error)),
                Ok(_) | Err(_) => return Err(RunError::Stuck),
            }
        }
        Ok(session)
    }

    /// Runs one burst and watches over it.
    pub(super) fn run_burst(
        &mut self,
        count: usize,
        progress: &mut dyn FnMut(u32),
    ) -> Result<BurstRecord, RunError> {
        let control = Arc::new(Control::default());
        let task = Task {
            number: self.bursts,
            count,
            others: self.workers.len() as u32 - 1,
            control: Arc::clone(&control),
        };
        let mut record = BurstRecord {
            number: self.bursts,
            ..BurstRecord::default()
        };
        self.bursts += 1;
        for worker in &self.workers {
            // A thread that has gone shows by its missing report.
            let _ = worker.tasks.send(task.clone());
        }
        let mut watch = Watch::new(self.timeout, self.point.pause_ns);
        let mut missing = self.workers.len();
        let mut stopped_at: Option<Instant> = None;
        while missing > 0 {
            match self.reports.recv_timeout(watch.look) {
                Ok(report) => {
                    missing -= 1;
                    if let Some((role, error)) = record.take(report) {
                        control.stop();
                        self.wakeable.wake();
                        record.failure.get_or_insert(format!("{role}: {error}"));
                        stopped_at.get_or_insert_with(Instant::now);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(RunError::Stuck),
                Err(RecvTimeoutError::Timeout) => {}
            }
            progress(control.received());
            if let Some(since) = stopped_at {
                self.wakeable.wake();
                if since.elapsed() > GRACE {
                    return Err(RunError::Stuck);
                }
                continue;
            }
            let ending = if let Some(signal) = interrupt::requested() {
                Some(Some(format!("interrupted by {signal}")))
            } else if let Some(trouble) = watch.due().then(|| self.endpoints.trouble()).flatten() {
                Some(Some(trouble))
            } else {
                watch.is_over(&control).map(|over| match over {
                    Over::Quiet => None,
                    Over::NeverBegun => Some(format!(
                        "the threads were not ready within {} s: is the machine out of memory or too busy?",
                        PREPARATION.as_secs()
                    )),
                })
            };
            if let Some(failure) = ending {
                record.failure = failure.or(record.failure);
                control.stop();
                self.wakeable.wake();
                stopped_at = Some(Instant::now());
            }
        }
        record.find_failure();
        record.find_shortage(count, self.point.service, self.signal_every);
        // Whatever was noticed first, this is the reason for it.
        if record.failure.is_some()
            && interrupt::requested().is_none()
            && let Some(removal) = self.endpoints.removal()
        {
            record.failure = Some(removal);
        }
        Ok(record)
    }

    /// Judges the messages of a burst.
    pub(super) fn judge<C: Clock>(
        &self,
        clock: &C,
        repeat: u32,
        record: BurstRecord,
        tally: &mut Tally,
    ) {
        let delivery = PayloadDelivery {
            payload: self.endpoints.target(),
            burst: record.number,
            by_sequence: self.point.operation == Operation::Write,
        };
        let burst = Burst {
            repeat,
            submitted: &record.submitted,
            completed: &record.completed,
            arrivals: &record.arrivals,
            timestamp: self.point.timestamp,
        };
        let (messages, mut counts) = judge(clock, burst, &delivery);
        counts.late = record
            .receive
            .as_ref()
            .map_or(0, |outcome| u64::from(outcome.late));
        counts.failed_completions = record
            .completion
            .as_ref()
            .map_or(0, |outcome| u64::from(outcome.failed));
        tally.counts += counts;
        tally.faults.sender += record.faults.sender;
        tally.faults.receiver += record.faults.receiver;
        tally.faults.completion += record.faults.completion;
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

    /// Ends the threads and sums up.
    pub(super) fn finish(mut self, tally: Tally, costs: InstrumentCosts) -> PointResult {
        self.end_threads();
        let latencies: Vec<i64> = tally
            .messages
            .iter()
            .filter_map(Message::latency_ns)
            .collect();
        let completions: Vec<i64> = tally
            .messages
            .iter()
            .filter_map(Message::completion_latency_ns)
            .collect();
        let [from_pages, to_pages] = self.endpoints.page_kinds();
        PointResult {
            point: self.point.clone(),
            counts: tally.counts,
            latency: Summary::of(&latencies),
            median_interval: MedianInterval::of(&latencies),
            histogram: LatencyHistogram::of(&latencies),
            completion_latency: Summary::of(&completions),
            post_rate: (tally.posting_ns > 0)
                .then(|| tally.posted as f64 * 1e9 / tally.posting_ns as f64),
            circumstances: Circumstances {
                completion_by: self.placement.completion_by,
                placement: self.placement.clone(),
                pages: [self.stamp_pages, from_pages, to_pages],
                priority: self.priority,
                granted_inline: self.endpoints.sending().granted().inline_bytes,
                loop_faults: tally.faults,
                // Stamps of lost messages were rewritten as well, for a time that nobody knows.
                stamp_refresh_ns: (tally.rewritten > 0 && tally.counts.lost == 0)
                    .then(|| tally.rewriting_ns as f64 / tally.rewritten as f64),
                connection: match self.point.service {
                    Service::Rc => "rdma_create_id, RDMA_PS_TCP".to_owned(),
                    Service::Uc => format!("{}, RDMA_PS_IB", self.uc_route.function()),
                    Service::Ud => "rdma_create_id, RDMA_PS_UDP".to_owned(),
                },
                uc_route: (self.point.service == Service::Uc).then(|| self.uc_route.name()),
            },
            messages: tally.messages,
            costs,
            failure: tally.failure,
        }
    }

    fn end_threads(&mut self) {
        for worker in self.workers.drain(..) {
            drop(worker.tasks);
            // All threads have reported or were told to stop, so they are about to end.
            let deadline = Instant::now() + GRACE;
            while !worker.handle.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(100));
            }
            if worker.handle.is_finished() {
                let _ = worker.handle.join();
            }
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.end_threads();
    }
}

impl BurstRecord {
    /// Keeps what a thread reports; gives back the error if it has none but that.
    fn take(&mut self, report: Report) -> Option<(Role, ThreadError)> {
        match report {
            Report::Placed(..) => {}
            Report::Unfit(role, error) => return Some((role, error)),
            Report::Sent {
                submitted,
                completed,
                outcome,
                faults,
            } => {
                self.submitted = submitted;
                if let Some((completed, completion)) = completed {
                    self.completed = completed;
                    self.completion = Some(completion);
                }
                self.send = Some(outcome);
                self.faults.sender = faults;
            }
            Report::Received {
                arrivals,
                outcome,
                faults,
            } => {
                self.arrivals = arrivals;
                self.receive = Some(outcome);
                self.faults.receiver = faults;
            }
            Report::Completed {
                completed,
                outcome,
                faults,
            } => {
                self.completed = completed;
                self.completion = Some(outcome);
                self.faults.completion = faults;
            }
            Report::Restamped(outcome) => self.stamp = Some(outcome),
        }
        None
    }

    /// Calls it a failure when less was done than asked for and nothing else says why. Messages that UC and UD lose are
    /// none, those of a reliable connection are.
    fn find_shortage(&mut self, count: usize, service: Service, signal_every: u32) {
        let posted = self
            .send
            .as_ref()
            .map_or(0, |outcome| outcome.posted as usize);
        let completed = self
            .completion
            .as_ref()
            .map_or(0, |outcome| outcome.succeeded + outcome.failed);
        let expected = threads::completions_expected(count, signal_every);
        let shortage = if posted < count {
            Some(format!("only {posted} of {count} messages were posted"))
        } else if service == Service::Rc && self.arrivals.len() < count {
            Some(format!(
                "{} messages of a reliable connection did not arrive within --timeout: raise it, or mend the link",
                count - self.arrivals.len()
            ))
        } else if completed < expected {
            Some(format!(
                "{} send requests did not complete within --timeout: raise it, or mend the link",
                expected - completed
            ))
        } else {
            None
        };
        if self.failure.is_none() {
            self.failure = shortage;
        }
    }

    /// Puts a failure of the loops in words, unless a graver one is known. What failed first says more than what follows.
    fn find_failure(&mut self) {
        let failed_sends = self.completion.as_ref().and_then(|outcome| {
            outcome.failure.as_ref().map(|failure| {
                format!(
                    "{} send requests completed with an error, the first: {failure}",
                    outcome.failed
                )
            })
        });
        let of = |failure: &Option<Failure>, what: &str| {
            failure.as_ref().map(|failure| format!("{what}: {failure}"))
        };
        let posting = self
            .send
            .as_ref()
            .and_then(|outcome| of(&outcome.failure, "posting"));
        let receiving = self
            .receive
            .as_ref()
            .and_then(|outcome| of(&outcome.failure, "receiving"));
        if self.failure.is_none() {
            self.failure = failed_sends.or(receiving).or(posting);
        }
    }
}
