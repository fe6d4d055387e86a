//! The process that is asked: it receives the bursts of another host and answers its probes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender as Tasks;
use std::time::{Duration, Instant};

use super::super::burst_record::BurstRecord;
use super::super::comp_vector::CompletionVectors;
use super::super::config::{
    LARGEST_BURST, LARGEST_SIZE, MOST_QUEUE_PAIRS, Operation, SMALLEST_SIZE,
};
use super::super::control::Control;
use super::super::endpoints::{EndpointSettings, Receives, receive_requests};
use super::super::ends::{Link, ReceivingEnd};
use super::super::error::RunError;
use super::super::placement::{RECEIVER, of_receiving_side};
use super::super::plan::{Point, longest_queue};
use super::super::polled_end::PolledReceiver;
use super::super::receiver::ReceiveOutcome;
use super::super::receiving_half::ReceivingSide;
use super::super::requesting_end::{Here, Target as _};
use super::super::watch::PREPARATION;
use super::super::worker::{Frame, Report, Task, Threads};
use super::half::Half;
use super::message::{Facts, Made, Message, Order, Part, only, take, tell};
use super::pair::PairEnd;
use super::ping_pong::{MOST_PROBES, Stamped, Watched};
use super::probe_end::{Part as ProbePart, ProbeEnd, of_probes};
use super::time_of_day::Ahead;
use crate::buffer::PageKind;
use crate::host::idle_hold::IdleHold;
use crate::host::{Topology, Wakeable, interrupt, memory_lock, pinning};
use crate::launch::message::DirectionReport;
use crate::launch::wire::{Wire, WireError};
use crate::rig::benchmark::Failure;
use crate::rig::control::Control as RunControl;
use crate::rig::error::RigError;
use crate::rig::workers::{Cause, Crew, Patience};
use crate::time::{AnyClock, Clock, ClockKind, ClockUser};

/// How often a wait for the next message ends, to look for signals.
const IDLE: Duration = Duration::from_millis(500);
/// How often a running burst is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often the other end is told how far a burst is.
const TELL: Duration = Duration::from_millis(50);
/// How often a link is looked at, which costs a system call.
const LINK_LOOK: Duration = Duration::from_millis(200);
/// How long the other end may be silent while something runs here for it.
const SILENCE: Duration = Duration::from_secs(15);
/// How long probes may take.
const PROBING: Duration = Duration::from_secs(150);
/// How long threads may take to be placed, and to leave their loop.
const PLACING: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(2);

/// What ends a burst here.
enum Ending {
    /// The other end has gone, or said what it must not.
    Gone(RunError),
    /// Told to leave their loops, threads did not.
    Held,
}

/// A connection that is served.
pub(super) struct Serving {
    half: Half,
    facts: Facts,
    peer: Facts,
    topology: Topology,
    clocks: HashMap<ClockKind, AnyClock>,
    wakeable: Wakeable,
    /// Held as long as it is served.
    idle_hold: Option<IdleHold>,
    /// What measures the other way round, of a rank.
    pair: Option<Arc<PairEnd>>,
}

/// RDMA reads and atomics that the asking end may have outstanding and the other one serves.
pub(super) fn reads_of(asking: &Facts, asked: &Facts) -> u8 {
    let (one, other) = (&asking.limits, &asked.limits);
    one.max_outstanding_reads.min(other.max_served_reads)
}

/// Receive requests of a point whose sender cannot see how far the receiver is: enough for a burst, on RC as well.
pub(super) fn receives_of(point: &Point, here: &Facts, there: &Facts) -> Receives {
    let least = |of: fn(&Facts) -> u32| of(here).min(of(there));
    let most = longest_queue(
        least(|facts| facts.limits.max_queue_pair_work_requests),
        least(|facts| facts.limits.max_completion_queue_entries),
        point.queue_pairs,
    );
    let whole = Point {
        depth: point.burst,
        ..*point
    };
    receive_requests(&whole, most)
}

impl Serving {
    /// Serves a half to the other end, of which these facts are known.
    ///
    /// # Errors
    /// When this machine cannot.
    pub(super) fn new(
        half: Half,
        facts: Facts,
        peer: Facts,
        pair: Option<Arc<PairEnd>>,
    ) -> Result<Self, RunError> {
        if let Some(pair) = &pair {
            pair.take_place()?;
        }
        Ok(Serving {
            half,
            facts,
            peer,
            topology: Topology::read()?,
            clocks: HashMap::new(),
            wakeable: Wakeable::new()?,
            idle_hold: None,
            pair,
        })
    }

    /// Does what the other end asks, until it closes the connection.
    ///
    /// # Errors
    /// When something fails here, which the other end was told, or a signal comes.
    pub(super) fn run(mut self, wire: &mut Wire) -> Result<(), RunError> {
        loop {
            let done = match next(wire) {
                Ok(message) => self.respond(wire, message),
                Err(RunError::Wire(WireError::Closed(_))) => return Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                let gone = matches!(error, RunError::Wire(WireError::Closed(_)));
                if gone {
                    return Ok(());
                }
                // Who has gone cannot be told.
                let text = error.to_string();
                let _ = tell(wire, &Message::Failed(error.into()));
                return Err(RunError::Post(text));
            }
        }
    }

    fn respond(&mut self, wire: &mut Wire, message: Message) -> Result<(), RunError> {
        match message {
            Message::Try {
                service,
                capabilities,
                count,
            } => {
                let refusal = self.half.refuses(service, capabilities, count);
                let refusal = refusal.map(|error| error.to_string());
                Ok(tell(wire, &Message::Tried(refusal))?)
            }
            Message::Route(route) => {
                let refusal = self.half.probe(route).err().map(|error| error.to_string());
                Ok(tell(wire, &Message::Tried(refusal))?)
            }
            Message::Prepare {
                clocks,
                bytes,
                cpu,
                allow_idle_states,
                point,
            } => {
                let numa_node = self.half.port.device.numa_node;
                let (_, _, mut warnings) =
                    of_receiving_side(&self.topology, &point, self.cpu(cpu), numa_node)?;
                if !allow_idle_states {
                    match IdleHold::take() {
                        Ok(hold) => self.idle_hold = Some(hold),
                        Err(warning) => warnings.push(warning),
                    }
                }
                for kind in clocks {
                    self.clocks.insert(kind, self.clock(kind)?);
                }
                memory_lock::lock_with(bytes)?;
                Ok(tell(wire, &Message::Prepared(warnings))?)
            }
            Message::Point(order) => {
                let kind = order.point.clock;
                let clock = self.clocks.get(&kind).copied();
                let clock = clock.map_or_else(|| self.clock(kind), Ok)?;
                clock.visit(ServedPoint {
                    serving: self,
                    wire,
                    order: &order,
                })
            }
            Message::Back {
                port,
                round,
                samples,
                limit_ms,
            } => {
                let Some(pair) = &self.pair else {
                    let text = "this is no rank of a fabric";
                    return Err(RunError::Peer(wire.peer(), Failure::Run(text.to_owned())));
                };
                let to = SocketAddr::new(wire.peer().ip(), port);
                let report = pair
                    .back(to, (round, samples), Duration::from_millis(limit_ms))
                    .unwrap_or_else(|failure| DirectionReport {
                        failure: Some(failure.to_string()),
                        ..DirectionReport::default()
                    });
                Ok(tell(wire, &Message::BackOver(Box::new(report)))?)
            }
            other => take(wire, other, only!(Message::PointOver => ())),
        }
    }

    fn clock(&self, kind: ClockKind) -> Result<AnyClock, RunError> {
        match &self.pair {
            Some(pair) => pair.clock(kind),
            None => Ok(AnyClock::prepare_with(kind, None)?),
        }
    }

    /// The CPU of the receiving thread, if it is named, or this is a rank that shares its host.
    fn cpu(&self, named: Option<usize>) -> Option<usize> {
        named.or_else(|| self.pair.as_ref()?.receiver_cpu())
    }

    fn settings(&self, order: &Order, cpu: usize) -> EndpointSettings {
        EndpointSettings {
            point: order.point,
            uc_route: order.uc_route,
            receives: receives_of(&order.point, &self.facts, &self.peer),
            reads: match order.point.operation.is_one_way() {
                true => 0,
                false => reads_of(&self.peer, &self.facts),
            },
            comp_vectors: CompletionVectors {
                // The probes' answers are sent by this end.
                sender: order.comp_vectors.receiver,
                receiver: order.comp_vectors.receiver,
            },
            huge_pages: order.huge_pages,
            sender_cpu: cpu,
            receiver_cpu: cpu,
        }
    }
}

/// Refuses a point that no command line has: what is asked comes over the network.
fn check(point: &Point) -> Result<(), RunError> {
    let possible = (1..=LARGEST_BURST).contains(&point.burst)
        && (1..=point.burst).contains(&point.depth)
        && (1..=MOST_QUEUE_PAIRS).contains(&point.queue_pairs)
        && (SMALLEST_SIZE..=LARGEST_SIZE).contains(&point.size);
    match possible {
        true => Ok(()),
        false => Err(RunError::Usage(format!("{point} is no point of any run"))),
    }
}

/// The next message, however long it takes.
fn next(wire: &mut Wire) -> Result<Message, RunError> {
    loop {
        if let Some(message) = wire.poll(IDLE)? {
            return Ok(message);
        }
    }
}

/// A point that is served, on a clock.
struct ServedPoint<'a> {
    serving: &'a Serving,
    wire: &'a mut Wire,
    order: &'a Order,
}

impl ClockUser for ServedPoint<'_> {
    type Output = Result<(), RunError>;

    fn with<C: Clock>(self, clock: C) -> Self::Output {
        let ServedPoint {
            serving,
            wire,
            order,
        } = self;
        let Half { port, .. } = &serving.half;
        let numa_node = port.device.numa_node;
        let point = &order.point;
        check(point)?;
        let (cpu, others, warnings) =
            of_receiving_side(&serving.topology, point, serving.cpu(order.cpu), numa_node)?;
        let settings = serving.settings(order, cpu);
        let probes = of_probes(&settings);
        pinning::pin_current_thread(cpu)?;
        // In the order of the other end.
        let (half, peer) = (&serving.half, &serving.peer);
        let (receiver, _listener) = half.receiving(wire, peer, &settings)?;
        let asked = half.receiving(wire, peer, &probes)?;
        let answering = half.sending(wire, peer, &probes)?;
        pinning::pin_current_thread_to(&others)?;
        let path = receiver.path_end();
        let receiver = Arc::new(receiver);
        let frame = Frame {
            point: Point {
                // The sender keeps to its depth; here is room for a whole burst.
                depth: point.burst,
                ..*point
            },
            priority: order.priority,
            seed: 0,
            huge_pages: order.huge_pages,
            wakeable: serving.wakeable.clone(),
            far: true,
        };
        let probes = ProbeEnd::new(
            clock,
            ProbePart::Answers,
            (answering, asked),
            point,
            (cpu, order.priority),
            serving.wakeable.clone(),
        )?;
        let made = Made {
            cpu,
            // Of the stamps where there is no thread: none are there.
            pages: [PageKind::Huge, ReceivingEnd::link(&*receiver).page_kind()],
            path: serde_json::to_value(path).unwrap_or_default(),
            time_of_day: Ahead::of(&clock),
            warnings,
        };
        match point.operation {
            operation if !operation.is_one_way() => {
                // No thread: the HCA answers alone.
                let target = Here::new(&receiver, operation);
                tell(wire, &Message::Made(Box::new(made)))?;
                let link = ReceivingEnd::link(&*receiver);
                serve_point(
                    wire,
                    link,
                    (&clock, &probes),
                    |wire, message| match message {
                        Message::Fill { burst } => {
                            (0..point.burst)
                                .for_each(|sequence| target.make_ready(burst, sequence));
                            Ok(tell(wire, &Message::Filled)?)
                        }
                        Message::Word => Ok(tell(wire, &Message::Told(target.word(0)))?),
                        other => take(wire, other, only!(Message::PointOver => ())),
                    },
                )
            }
            Operation::WritePolled => {
                let receiver = Arc::new(PolledReceiver(receiver));
                Served::start(clock, &frame, receiver, cpu)?.serve(wire, made, &probes)
            }
            _ => Served::start(clock, &frame, receiver, cpu)?.serve(wire, made, &probes),
        }
    }
}

/// Does what the other end asks of a point, until it is over. `respond` does what not all points have.
fn serve_point<C: Clock>(
    wire: &mut Wire,
    link: &dyn Link,
    (clock, probes): (&C, &ProbeEnd<C>),
    mut respond: impl FnMut(&mut Wire, Message) -> Result<(), RunError>,
) -> Result<(), RunError> {
    loop {
        match next(wire)? {
            Message::PointOver => return Ok(()),
            Message::Probe { first, count } => answer_probes(wire, probes, clock, (first, count))?,
            Message::Counters { fresh } => {
                let counters = match fresh {
                    true => link.fresh_counters(),
                    false => link.counters(),
                };
                tell(wire, &Message::Counted(counters))?;
            }
            Message::Changes => tell(wire, &Message::Changed(link.changes()))?,
            other => respond(wire, other)?,
        }
    }
}

/// The receiving thread of a point, and who gives it bursts.
struct Served<R: ReceivingEnd, C> {
    clock: C,
    frame: Frame,
    receiver: Arc<R>,
    threads: Threads,
    tasks: Tasks<Task>,
    stamp_pages: PageKind,
}

impl<R: ReceivingEnd, C: Clock> Served<R, C> {
    fn start(clock: C, frame: &Frame, receiver: Arc<R>, cpu: usize) -> Result<Self, RunError> {
        let mut threads = Crew::new(&Arc::new(RunControl::default()))?;
        let tasks = receiver.start(&mut threads, clock, frame, cpu)?;
        let since = Instant::now();
        let late = || (since.elapsed() > PLACING).then_some(());
        let placed = threads.collect(&Patience::default(), late, || ())?;
        if let Some((role, error)) = placed.failures.into_iter().next() {
            return Err(RunError::Worker(role, Box::new(error)));
        }
        match placed.cause {
            Some(Cause::Signal(signal)) => return Err(RigError::Interrupted(signal).into()),
            Some(_) => {
                let (role, limit) = (RECEIVER, PLACING);
                return Err(RigError::NotReady { role, limit }.into());
            }
            None => {}
        }
        let mut stamp_pages = PageKind::Huge;
        for (_, report) in placed.reports {
            if let Report::Placed(Some(pages)) = report {
                stamp_pages = pages.min(stamp_pages);
            }
        }
        Ok(Served {
            clock,
            frame: frame.clone(),
            receiver,
            threads,
            tasks,
            stamp_pages,
        })
    }

    /// Does what the other end asks of a point, until it is over.
    fn serve(
        mut self,
        wire: &mut Wire,
        mut made: Made,
        probes: &ProbeEnd<C>,
    ) -> Result<(), RunError> {
        let receiver = Arc::clone(&self.receiver);
        let link = ReceivingEnd::link(&*receiver);
        made.pages[0] = self.stamp_pages;
        tell(wire, &Message::Made(Box::new(made)))?;
        let clock = self.clock;
        serve_point(
            wire,
            link,
            (&clock, probes),
            |wire, message| match message {
                Message::Burst { number, count } => {
                    let part = self.burst(wire, number, count)?;
                    Ok(tell(wire, &Message::BurstOver(Box::new(part)))?)
                }
                // Of a burst that is over.
                Message::Stop | Message::Waiting => Ok(()),
                other => take(wire, other, only!(Message::PointOver => ())),
            },
        )
    }

    fn burst(&mut self, wire: &mut Wire, number: u32, count: usize) -> Result<Part, RunError> {
        if count > self.frame.point.burst as usize {
            let text = format!(
                "a burst of {count} messages was announced as one of at most {}",
                self.frame.point.burst
            );
            return Err(RunError::Peer(wire.peer(), Failure::Run(text)));
        }
        let control = Arc::new(Control::default());
        let task = Task {
            number,
            count,
            others: 0,
            control: Arc::clone(&control),
        };
        // A thread that has gone shows by its missing report.
        let _ = self.tasks.send(task);
        let begun = Instant::now();
        while control.ready() == 0 && !control.failed() && begun.elapsed() < PREPARATION {
            if interrupt::requested().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        if control.ready() > 0 {
            tell(wire, &Message::Receiving)?;
        }
        let wakeable = &self.frame.wakeable;
        let over: Cell<Option<Instant>> = Cell::new(None);
        let trouble = RefCell::new(None);
        let leave = || {
            control.stop();
            wakeable.wake();
        };
        let link = ReceivingEnd::link(&*self.receiver);
        let (mut told, mut looked, mut heard) = (Instant::now(), Instant::now(), Instant::now());
        let look = || {
            if let Some(since) = over.get() {
                leave();
                return (since.elapsed() > GRACE).then_some(Ending::Held);
            }
            match wire.poll::<Message>(Duration::ZERO) {
                Ok(None) if heard.elapsed() > SILENCE => {
                    return Some(Ending::Gone(wire.unanswered(SILENCE).into()));
                }
                Ok(None) => {}
                Ok(Some(Message::Waiting)) => heard = Instant::now(),
                Ok(Some(Message::Stop)) => {
                    over.set(Some(Instant::now()));
                    leave();
                    return None;
                }
                Ok(Some(other)) => {
                    let error = take(wire, other, only!(Message::Stop => ()));
                    return error.err().map(Ending::Gone);
                }
                Err(error) => return Some(Ending::Gone(error.into())),
            }
            if looked.elapsed() >= LINK_LOOK {
                looked = Instant::now();
                let found = link.removal().or_else(|| link.trouble());
                *trouble.borrow_mut() = found;
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                let (received, trouble) = (control.received(), trouble.borrow().clone());
                let far = Message::Far { received, trouble };
                if let Err(error) = tell(wire, &far) {
                    return Some(Ending::Gone(error.into()));
                }
            }
            None
        };
        let patience = Patience {
            look: LOOK,
            grace: GRACE,
            ..Patience::default()
        };
        let collected = self.threads.collect(&patience, look, leave)?;
        match collected.cause {
            Some(Cause::Signal(signal)) => return Err(RigError::Interrupted(signal).into()),
            Some(Cause::Watch(Ending::Gone(error))) => return Err(error),
            Some(Cause::Watch(Ending::Held) | Cause::Worker) | None => {}
        }
        let mut record = BurstRecord::default();
        for (_, report) in collected.reports {
            if let Report::Done(part) = report {
                record.add(part);
            }
        }
        if let Some((role, error)) = collected.failures.first() {
            record
                .failure
                .get_or_insert_with(|| format!("{role}: {error}"));
        }
        Ok(self.part(number, record, trouble.into_inner()))
    }

    /// What is told of a burst.
    fn part(&self, number: u32, record: BurstRecord, trouble: Option<String>) -> Part {
        let delivered = record.arrivals.iter().map(|arrival| {
            let sequence = super::super::tag::Tag::sequence(arrival.label);
            let stamp = ReceivingEnd::delivered(&*self.receiver, number, arrival, sequence);
            stamp.map(|stamp| stamp.0)
        });
        let nanos = |stamp| self.clock.to_nanos(stamp).0;
        let (strays, failure) = match record.receive {
            Some(ReceiveOutcome {
                strays, failure, ..
            }) => (
                strays,
                failure.map(|failure| format!("receiving: {failure}")),
            ),
            None => Default::default(),
        };
        Part {
            delivered: delivered.collect(),
            stamps: record.arrivals.iter().map(|it| nanos(it.stamp)).collect(),
            labels: record.arrivals.iter().map(|it| it.label).collect(),
            strays,
            faults: record.faults.receiver,
            failure: record.failure.or(failure).or(trouble),
        }
    }
}

impl<R: ReceivingEnd, C> Drop for Served<R, C> {
    fn drop(&mut self) {
        // Without tasks to come, the thread ends.
        let (gone, _) = std::sync::mpsc::channel();
        self.tasks = gone;
        self.threads.dismiss(GRACE);
    }
}

/// Answers probes until the other end says that they are over.
fn answer_probes<C: Clock>(
    wire: &mut Wire,
    end: &ProbeEnd<C>,
    clock: &C,
    numbers: (u32, u32),
) -> Result<(), RunError> {
    let (first, count) = numbers;
    if count > MOST_PROBES || first.checked_add(count).is_none() {
        let text = format!(
            "asks for {count} probes from number {first}, at most {MOST_PROBES} are allowed"
        );
        return Err(RunError::Peer(wire.peer(), Failure::Run(text)));
    }
    tell(wire, &Message::Receiving)?;
    let watched = Watched::default();
    let (over, stamped) = end.exchange(numbers, &watched, |is_finished| {
        let begun = Instant::now();
        let over = loop {
            match wire.poll::<Message>(Duration::from_millis(100)) {
                Ok(None) if begun.elapsed() > PROBING => {
                    break Err(wire.unanswered(PROBING).into());
                }
                Ok(None) => {}
                Ok(Some(message)) => {
                    break take(wire, message, only!(Message::ProbesOver => ()));
                }
                Err(error) => break Err(RunError::from(error)),
            }
        };
        watched.stop();
        while !is_finished() {
            end.wakeable.wake();
            std::thread::sleep(Duration::from_millis(1));
        }
        over
    })?;
    over?;
    let (stamped, failure) = match stamped {
        Ok(stamped) => (stamped, None),
        Err(failure) => (Vec::new(), Some(failure.to_string())),
    };
    let nanos = |mut one: Stamped| {
        one.sent.0 = clock.to_nanos(one.sent).0;
        one.received.0 = clock.to_nanos(one.received).0;
        one
    };
    let stamped = stamped.into_iter().map(nanos).collect();
    Ok(tell(wire, &Message::Probed { stamped, failure })?)
}
