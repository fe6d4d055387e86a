//! The threads of the sending end: the sender, and where they are wanted one for the completions and one for the
//! stamps.
//!
//! Each makes ready what belongs to it, runs its hot loop, and reports. Nothing but the loop runs between the two
//! readings of the page fault counter.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::burst_record::BurstRecord;
use super::worker::{BurstTask, Frame, TaskChannel, Threads, counting_faults, start};
use crate::bench::hca::ends::{BurstPort, SendingEnd};
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::completion::{
    Collect, Collector, CompletionObserver, NoCollection, SendQueueProgress,
};
use crate::bench::hca::loops::depth::WithinDepth;
use crate::bench::hca::loops::port::{BusyPolling, WaitForEvent};
use crate::bench::hca::loops::sender::{
    BurstSend, SendOutcome, SendStamp, StampMode, SubmitStamp, send,
};
use crate::bench::hca::loops::stamper::restamp;
use crate::bench::hca::loops::tag::Tag;
use crate::bench::hca::plan::placement::{COMPLETION, Placement, SENDER, STAMP};
use crate::bench::hca::result::LoopFaults;
use crate::bench::hca::settings::config::{Arrivals, Poll, Rate, Service, Timestamp};
use crate::buffer::StampBuffer;
use crate::pacing::{
    AnyPacing, ConstantRate, ConstantWait, Interval, MissPolicy, NoPause, Pacing, Poisson,
};
use crate::rig::error::RigError;
use crate::time::{Clock, Nanos, Ticks};

/// Starts the threads of the sending end; returns the ways to give them tasks. Without a thread for the completions,
/// the sender takes them.
pub(crate) fn start_sending<C: Clock, E: SendingEnd>(
    threads: &mut Threads,
    clock: C,
    frame: &Frame,
    end: &Arc<E>,
    placement: &Placement,
) -> Result<Vec<Sender<BurstTask>>, RigError> {
    let collects = placement.completion.is_none();
    // What `LinkSide::plan` promises: no other thread may work on what the sender posts to.
    assert!(
        collects || !frame.point.resources.thread_domain.is_on(),
        "{} has a completion thread",
        frame.point
    );
    let (of_sender, from) = (frame.clone(), Arc::clone(end));
    let seat = frame.seat(SENDER, placement.sender);
    let mut tasks = vec![start(threads, seat, move |post| {
        let (frame, end) = (&of_sender, &*from);
        let way = (post, &clock, frame, end, collects);
        match (frame.point.is_limited(), frame.point.queue_pairs) {
            (false, 1) => send_by_port::<WholeBurst, _, _>(way, end.port()),
            (false, _) => send_by_port::<WholeBurst, _, _>(way, end.spread_port()),
            // A port for several serves for one, too.
            (true, _) => send_by_port::<LimitedDepth, _, _>(way, end.spread_port()),
        }
    })?];
    if let Some(cpu) = placement.completion {
        let (frame, end, seat) = (frame.clone(), Arc::clone(end), frame.seat(COMPLETION, cpu));
        tasks.push(start(threads, seat, move |post| {
            if frame.point.is_limited() {
                take_completions::<LimitedDepth>(post, &clock, &frame, &*end)
            } else {
                take_completions::<WholeBurst>(post, &clock, &frame, &*end)
            }
        })?);
    }
    if let Some(cpu) = placement.stamp {
        let stamps = end.stamps();
        tasks.push(start(threads, frame.seat(STAMP, cpu), move |post| {
            post.placed(None);
            post.each(|task| {
                Ok(BurstRecord {
                    rewritten: Some(restamp(&clock, &stamps, &task.control)),
                    ..BurstRecord::default()
                })
            })
        })?);
    }
    Ok(tasks)
}

/// What the sending thread has to do with: its tasks, the clock, the frame, its end, and whether it takes the completions
/// itself.
type SendingParts<'a, C, E> = (TaskChannel<'a>, &'a C, &'a Frame, &'a E, bool);

/// How many messages may be in flight.
trait Flight {
    /// Whether they are fewer than a burst has.
    const LIMITED: bool;
    /// What completions are told to.
    type Tell: CompletionObserver;

    fn tell(frame: &Frame) -> Self::Tell;
}

/// A whole burst.
struct WholeBurst;

impl Flight for WholeBurst {
    const LIMITED: bool = false;
    type Tell = ();

    fn tell(_frame: &Frame) {}
}

/// Fewer.
struct LimitedDepth;

impl Flight for LimitedDepth {
    const LIMITED: bool = true;
    type Tell = SendQueueProgress;

    fn tell(frame: &Frame) -> SendQueueProgress {
        SendQueueProgress::new(frame.signalling())
    }
}

/// Runs the sending loop, with as many messages in flight as there may be.
fn send_within<F: Flight, S: StampMode>(
    clock: &impl Clock,
    port: &mut impl BurstPort,
    pacing: &mut impl Pacing,
    collect: &mut impl Collect,
    frame: &Frame,
    burst: BurstSend<'_>,
) -> SendOutcome {
    if !F::LIMITED {
        return send::<S>(clock, port, pacing, collect, burst);
    }
    let point = &frame.point;
    let takes_requests =
        !frame.far && point.service == Service::Rc && point.operation.has_immediate_data();
    let mut pacing = WithinDepth::new(pacing, burst.control, point.depth, takes_requests);
    send::<S>(clock, port, &mut pacing, collect, burst)
}

/// Sends over a port, by the pace of the point.
fn send_by_port<F: Flight, C: Clock, E: SendingEnd>(
    way: SendingParts<'_, C, E>,
    port: impl BurstPort,
) -> Result<(), RunError> {
    let (_, clock, frame, ..) = way;
    let point = &frame.point;
    let rate = |rate: Rate| f64::from(rate.per_second);
    match (point.rate, point.pause_ns) {
        (None, Nanos(0)) => send_paced::<F, _, _>(way, port, NoPause),
        (None, pause) => {
            send_paced::<F, _, _>(way, port, AnyPacing::Wait(ConstantWait::new(clock, pause)))
        }
        (Some(at), _) => {
            let pacing = match at.arrivals {
                Arrivals::Constant => AnyPacing::Rate(ConstantRate::new(
                    Interval::from_rate(clock, rate(at)),
                    MissPolicy::CatchUp,
                )),
                Arrivals::Poisson => AnyPacing::Poisson(Poisson::new(
                    clock,
                    rate(at),
                    point.burst as usize,
                    frame.seed,
                )),
            };
            send_paced::<F, _, _>(way, port, pacing)
        }
    }
}

/// Sends by a pace, with the stamps of the point.
fn send_paced<F: Flight, C: Clock, E: SendingEnd>(
    way: SendingParts<'_, C, E>,
    port: impl BurstPort,
    pacing: impl Pacing,
) -> Result<(), RunError> {
    let (_, _, frame, ..) = way;
    match frame.point.timestamp {
        Timestamp::Submit => send_bursts::<F, SubmitStamp, _, _>(way, port, pacing),
        Timestamp::Send => send_bursts::<F, SendStamp, _, _>(way, port, pacing),
    }
}

/// What the sending thread does.
fn send_bursts<F: Flight, S: StampMode, C: Clock, E: SendingEnd>(
    (post, clock, frame, end, collects): SendingParts<'_, C, E>,
    mut port: impl BurstPort,
    mut pacing: impl Pacing,
) -> Result<(), RunError> {
    let point = &frame.point;
    let stamps = || StampBuffer::<Ticks>::new(point.burst as usize, frame.huge_pages);
    let (mut submitted, mut completed) = (stamps()?, stamps()?);
    post.placed(Some(submitted.page_kind()));
    post.each(|task| {
        // A large burst takes its time, even longer than a user who wants to end it.
        for sequence in (0..task.count).take_while(|_| !task.control.stopped()) {
            end.fill(task.number, sequence as u32);
        }
        pacing.renew();
        let tag = Tag::new(task.number);
        port.set_tag(tag);
        let stamps = &mut completed[..task.count];
        stamps.fill(Ticks(0));
        let control = &*task.control;
        let burst = BurstSend {
            signalling: frame.signalling(),
            submitted: &mut submitted[..task.count],
            control,
        };
        let expected = frame.completions_of(task.count);
        let mut collector = collects.then(|| {
            let collector = Collector::new(end.completions(), stamps, expected, tag, control);
            collector.telling(F::tell(frame))
        });
        let (outcome, faults) = once_ready(task, || match &mut collector {
            Some(it) => send_within::<F, S>(clock, &mut port, &mut pacing, it, frame, burst),
            None => {
                let it = &mut NoCollection;
                send_within::<F, S>(clock, &mut port, &mut pacing, it, frame, burst)
            }
        });
        let completion = collector.map(Collector::into_outcome);
        let taken = if collects { task.count } else { 0 };
        Ok(BurstRecord {
            submitted: submitted[..outcome.posted as usize].to_vec(),
            intended: pacing.intended_starts(outcome.started, 0, outcome.posted as usize),
            completed: completed[..taken].to_vec(),
            completion,
            send: Some(outcome),
            faults: LoopFaults {
                sender: faults,
                ..LoopFaults::default()
            },
            ..BurstRecord::default()
        })
    })
}

/// Waits for the other threads, then runs the sending loop.
fn once_ready(task: &BurstTask, work: impl FnOnce() -> SendOutcome) -> (SendOutcome, u64) {
    let all_ready = task.control.wait_until_ready(task.others);
    task.control.set_begun();
    if !all_ready {
        task.control.set_sender_done();
        return (SendOutcome::default(), 0);
    }
    counting_faults(work)
}

/// What a thread does that takes the send completions.
fn take_completions<F: Flight>(
    post: TaskChannel<'_>,
    clock: &impl Clock,
    frame: &Frame,
    end: &impl SendingEnd,
) -> Result<(), RunError> {
    let mut completed = StampBuffer::<Ticks>::new(frame.point.burst as usize, frame.huge_pages)?;
    post.placed(Some(completed.page_kind()));
    post.each(|task| {
        let stamps = &mut completed[..task.count];
        stamps.fill(Ticks(0));
        let expected = frame.completions_of(task.count);
        let tag = Tag::new(task.number);
        let collector = Collector::new(end.completions(), stamps, expected, tag, &task.control);
        let collector = collector.telling(F::tell(frame));
        let (outcome, faults) = counting_faults(|| match frame.point.poll_comp {
            Poll::Busy => collector.run(clock, BusyPolling),
            Poll::Event => frame
                .wakeable
                .during(|| collector.run(clock, WaitForEvent::default())),
        });
        Ok(BurstRecord {
            completed: completed[..task.count].to_vec(),
            completion: Some(outcome),
            faults: LoopFaults {
                completion: faults,
                ..LoopFaults::default()
            },
            ..BurstRecord::default()
        })
    })
}
