//! The threads of a run: each pinned to its CPU, with a role that is data, and one supervisor for all of them.
//!
//! A worker places itself, does its work, and sends reports. The [`Crew`] that started it collects them: it sleeps
//! until a report, a signal or the next look is due, and ends the run when a signal came, when the benchmark's own
//! watch has a reason, or when a worker failed or panicked. A worker that does not leave its loop then is left behind, as
//! is one that panics: the program is built without unwinding, so it reports the panic and sleeps, with all that it
//! holds. What the benchmark makes of it is its own: that of queues fails the point and goes on.

use std::any::Any;
use std::cell::RefCell;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::marker::PhantomData;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::control::Control;
use super::error::RigError;
use super::role::Role;
use crate::host::interrupt::{self, BlockedSignals};
use crate::host::{HostError, pinning, priority, threads};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerPlacement {
    pub role: Role,
    pub cpu: usize,
    /// Its SCHED_FIFO priority, if any.
    pub priority: Option<u8>,
}

/// How long the supervisor waits, and for what.
#[derive(Debug, Clone, Copy)]
pub struct SupervisorTimeouts {
    /// How often it looks around; each look costs a measuring thread a few microseconds where no CPU is left.
    pub look: Duration,
    /// How long a worker may take to leave its loop once the stop flag is raised.
    pub grace: Duration,
    /// The same after a signal, which is to end the program within a second.
    pub grace_after_signal: Duration,
}

impl Default for SupervisorTimeouts {
    fn default() -> Self {
        SupervisorTimeouts {
            look: Duration::from_millis(200),
            grace: Duration::from_secs(2),
            grace_after_signal: Duration::from_millis(300),
        }
    }
}

/// What ended a run before all reports were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause<X> {
    Signal(Signal),
    /// The benchmark's watch had a reason.
    Watch(X),
    Worker,
}

#[derive(Debug)]
pub struct CrewOutcome<R, E, X> {
    /// Their reports, with the place of each in the crew.
    pub reports: Vec<(usize, R)>,
    pub failures: Vec<(Role, E)>,
    pub cause: Option<Cause<X>>,
}

/// A report or a failure, of the type that its crew has: what supervises is compiled once for all crews.
type WorkerMessage = Box<dyn Any + Send>;

fn opened<T: 'static>(sent: WorkerMessage) -> T {
    *sent.downcast().expect("workers send what their crew has")
}

enum WorkerEvent {
    Report(usize, WorkerMessage),
    Failed(usize, WorkerMessage),
    Panicked(usize),
}

/// What a worker does on its CPU.
type WorkerFunction = Box<dyn FnOnce(&Arc<Channel>) -> Result<(), WorkerMessage> + Send>;

/// A worker's way to its supervisor.
#[derive(Debug)]
struct Channel {
    place: usize,
    events: Sender<WorkerEvent>,
    wake: PipeWriter,
    has_panicked: AtomicBool,
}

impl Channel {
    fn send(&self, event: WorkerEvent) -> bool {
        let heard = self.events.send(event).is_ok();
        // One byte wakes the supervisor. A pipe that is full has woken it already.
        let _ = (&self.wake).write(&[1]);
        heard
    }
}

/// What a worker reports by.
#[derive(Debug)]
pub struct Reporter<R> {
    channel: Arc<Channel>,
    reports: PhantomData<fn(R)>,
}

impl<R: Send + 'static> Reporter<R> {
    /// Sends a report. Returns false where no thread listens any more: the supervisor has given up.
    pub fn send(&self, report: R) -> bool {
        let place = self.channel.place;
        self.channel
            .send(WorkerEvent::Report(place, Box::new(report)))
    }
}

thread_local! {
    /// What the panic of this thread is reported by.
    static REPORT_PANIC: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// From now on a worker that panics prints its message as any thread, and reports. Where nothing unwinds it sleeps from
/// then on, or it would end the program.
fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            if let Some(report) = REPORT_PANIC.take() {
                report();
                while cfg!(panic = "abort") {
                    std::thread::park();
                }
            }
        }));
    });
}

fn on_panic(report: impl FnOnce() + 'static) {
    report_panics();
    REPORT_PANIC.set(Some(Box::new(report)));
}

/// Does this if the thread panics from now on, where nothing unwinds and so nothing is dropped. The thread sleeps then,
/// while the panic of one that has not called this ends the program.
pub fn instead_of_dropping(work: impl FnOnce() + 'static) {
    if cfg!(panic = "abort") {
        on_panic(work);
    }
}

/// Workers that report `R` and fail by `E`, and their supervisor.
pub struct Crew<R, E> {
    team: Team,
    sends: PhantomData<fn() -> (R, E)>,
}

impl<R, E> Crew<R, E>
where
    R: Send + 'static,
    E: From<HostError> + Send + 'static,
{
    /// A crew without workers, which share what holds their [`Control`]. The calling thread is its supervisor; SIGINT
    /// and SIGTERM reach it only while it waits.
    pub fn new<C>(control: &Arc<C>) -> Result<Self, RigError>
    where
        C: AsRef<Control> + Send + Sync + 'static,
    {
        let team = Team::new(Arc::<C>::clone(control))?;
        let sends = PhantomData;
        Ok(Crew { team, sends })
    }

    /// Starts a worker: it goes to its CPU, takes its priority, and does `work`. Its failure, or its panic, is reported
    /// to the supervisor and to all threads that wait for it.
    ///
    /// # Errors
    /// [`RigError::Spawn`]; the workers started before are stopped.
    pub fn start(
        &mut self,
        seat: WorkerPlacement,
        work: impl FnOnce(&Reporter<R>) -> Result<(), E> + Send + 'static,
    ) -> Result<(), RigError> {
        let work = move |channel: &Arc<Channel>| {
            let reporter = Reporter {
                channel: Arc::clone(channel),
                reports: PhantomData,
            };
            let placed = seat.take().map_err(E::from);
            let done = placed.and_then(|()| work(&reporter));
            done.map_err(|error| -> WorkerMessage { Box::new(error) })
        };
        self.team.start(seat.role, Box::new(work))
    }

    /// Waits for one report of each worker, under signals of this process. `watch` is asked at each look; a reason
    /// raises the stop flag. Where a thread sleeps in the kernel, `watch` or `told` must wake it: `told` is called when
    /// the flag was raised and at each look from then on.
    pub fn collect<X>(
        &mut self,
        patience: &SupervisorTimeouts,
        watch: impl FnMut() -> Option<X>,
        told: impl FnMut(),
    ) -> Result<CrewOutcome<R, E, X>, RigError> {
        self.collect_under(&interrupt::requested, patience, watch, told)
    }

    /// The same with signals from elsewhere.
    pub fn collect_under<X>(
        &mut self,
        requested: &dyn Fn() -> Option<Signal>,
        patience: &SupervisorTimeouts,
        mut watch: impl FnMut() -> Option<X>,
        mut told: impl FnMut(),
    ) -> Result<CrewOutcome<R, E, X>, RigError> {
        let mut reason = None;
        let mut watch = || {
            reason = watch();
            reason.is_some()
        };
        let found = (self.team).collect(requested, patience, &mut watch, &mut told)?;
        let (reports, failures) = (found.reports.into_iter(), found.failures.into_iter());
        Ok(CrewOutcome {
            reports: reports.map(|(at, sent)| (at, opened(sent))).collect(),
            failures: failures.map(|(role, sent)| (role, opened(sent))).collect(),
            cause: found.cause.and_then(|cause| match cause {
                Cause::Signal(signal) => Some(Cause::Signal(signal)),
                Cause::Watch(()) => reason.map(Cause::Watch),
                Cause::Worker => Some(Cause::Worker),
            }),
        })
    }
}

impl<R, E> Crew<R, E> {
    /// Ends the crew: raises the stop flag and joins the workers that end within `limit`. Others are left behind.
    pub fn dismiss(&mut self, limit: Duration) {
        self.team.dismiss(limit);
    }
}

/// A crew without the types of what its workers send.
struct Team {
    events: Receiver<WorkerEvent>,
    give: Sender<WorkerEvent>,
    woken: PipeReader,
    wake: PipeWriter,
    held: BlockedSignals,
    workers: Vec<Worker>,
    control: Arc<dyn AsRef<Control> + Send + Sync>,
}

struct Worker {
    role: Role,
    thread: JoinHandle<()>,
    channel: Arc<Channel>,
}

impl Worker {
    /// Whether it has nothing more to do.
    fn has_ended(&self) -> bool {
        let sleeps = cfg!(panic = "abort") && self.channel.has_panicked.load(Ordering::Acquire);
        self.thread.is_finished() || sleeps
    }
}

impl WorkerPlacement {
    fn take(&self) -> Result<(), HostError> {
        pinning::pin_current_thread(self.cpu)?;
        self.priority
            .map_or(Ok(()), |level| priority::set_fifo(i32::from(level)))
    }
}

impl Team {
    fn new(control: Arc<dyn AsRef<Control> + Send + Sync>) -> Result<Self, RigError> {
        report_panics();
        let (give, events) = channel();
        let (woken, wake) = std::io::pipe().map_err(|error| RigError::pipe(&error))?;
        nonblocking(&woken)?;
        nonblocking(&wake)?;
        Ok(Team {
            events,
            give,
            woken,
            wake,
            held: BlockedSignals::new()?,
            workers: Vec::new(),
            control,
        })
    }

    fn start(&mut self, role: Role, work: WorkerFunction) -> Result<(), RigError> {
        let channel = Arc::new(Channel {
            place: self.workers.len(),
            events: self.give.clone(),
            wake: (self.wake.try_clone()).map_err(|error| RigError::pipe(&error))?,
            has_panicked: AtomicBool::new(false),
        });
        let control = Arc::clone(&self.control);
        let kept = Arc::clone(&channel);
        let thread = std::thread::Builder::new().name(role.thread.to_owned());
        let thread = threads::start(thread, move || {
            on_panic({
                let (control, channel) = (Arc::clone(&control), Arc::clone(&channel));
                move || {
                    (*control).as_ref().set_failed();
                    channel.send(WorkerEvent::Panicked(channel.place));
                    channel.has_panicked.store(true, Ordering::Release);
                }
            });
            if let Err(error) = work(&channel) {
                (*control).as_ref().set_failed();
                channel.send(WorkerEvent::Failed(channel.place, error));
            }
            REPORT_PANIC.set(None);
        })
        .map_err(|source| {
            self.control().stop();
            RigError::Spawn { role, source }
        })?;
        self.workers.push(Worker {
            role,
            thread,
            channel: kept,
        });
        Ok(())
    }

    fn collect(
        &mut self,
        requested: &dyn Fn() -> Option<Signal>,
        patience: &SupervisorTimeouts,
        watch: &mut dyn FnMut() -> bool,
        told: &mut dyn FnMut(),
    ) -> Result<CrewOutcome<WorkerMessage, WorkerMessage, ()>, RigError> {
        let mut collected = CrewOutcome {
            reports: Vec::new(),
            failures: Vec::new(),
            cause: None,
        };
        let mut missing = vec![true; self.workers.len()];
        let mut stopped: Option<Instant> = None;
        let mut looks = 0;
        while missing.contains(&true) {
            let look = stopped.map_or(patience.look, |_| STOPPING_LOOK);
            if self.held.wait(self.woken.as_fd(), look)? {
                let _ = (&self.woken).read(&mut [0; 64]);
            }
            // Before the channel is emptied: who had ended by then has sent all it ever will.
            let ended = |place: usize| missing[place] && self.workers[place].has_ended();
            let gone: Vec<usize> = (0..missing.len()).filter(|&place| ended(place)).collect();
            loop {
                match self.events.try_recv() {
                    Ok(WorkerEvent::Report(place, report)) => {
                        missing[place] = false;
                        collected.reports.push((place, report));
                    }
                    Ok(WorkerEvent::Failed(place, error)) => {
                        missing[place] = false;
                        collected.failures.push((self.workers[place].role, error));
                        self.end(&mut collected.cause, Cause::Worker, &mut stopped);
                    }
                    Ok(WorkerEvent::Panicked(place)) => {
                        self.control().stop();
                        told();
                        return Err(RigError::Panicked {
                            role: self.workers[place].role,
                        });
                    }
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            if !missing.contains(&true) {
                break;
            }
            if let Some(&place) = gone.iter().find(|&&place| missing[place]) {
                return Err(RigError::NoReport {
                    role: self.workers[place].role,
                });
            }
            match (requested(), &collected.cause) {
                // Whatever else there was: a signal ends it sooner.
                (Some(signal), None | Some(Cause::Watch(_) | Cause::Worker)) => {
                    collected.cause = None;
                    stopped = None;
                    looks = 0;
                    self.end(&mut collected.cause, Cause::Signal(signal), &mut stopped);
                }
                (None, None) if watch() => {
                    self.end(&mut collected.cause, Cause::Watch(()), &mut stopped);
                }
                _ => {}
            }
            if let Some(since) = stopped {
                told();
                let grace = match collected.cause {
                    Some(Cause::Signal(_)) => patience.grace_after_signal,
                    _ => patience.grace,
                };
                looks += 1;
                // While the whole machine stood still, no worker could leave either.
                let has_run = STOPPING_LOOK * looks >= grace;
                if since.elapsed() >= grace && has_run {
                    return Err(self.stuck(&missing, &collected.cause, grace));
                }
            }
        }
        if let (None, Some(signal)) = (&collected.cause, requested()) {
            collected.cause = Some(Cause::Signal(signal));
        }
        Ok(collected)
    }

    fn end(&self, cause: &mut Option<Cause<()>>, new: Cause<()>, stopped: &mut Option<Instant>) {
        self.control().stop();
        cause.get_or_insert(new);
        stopped.get_or_insert_with(Instant::now);
    }

    fn stuck(&self, missing: &[bool], cause: &Option<Cause<()>>, grace: Duration) -> RigError {
        if let Some(Cause::Signal(signal)) = cause {
            return RigError::Interrupted(*signal);
        }
        let place = missing.iter().position(|missing| *missing).unwrap_or(0);
        RigError::Stuck {
            role: self.workers[place].role,
            grace,
        }
    }

    fn control(&self) -> &Control {
        (*self.control).as_ref()
    }

    fn dismiss(&mut self, limit: Duration) {
        self.control().stop();
        let deadline = Instant::now() + limit;
        for worker in self.workers.drain(..) {
            while !worker.has_ended() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(100));
            }
            if worker.thread.is_finished() {
                // Nothing to report: a worker sends what it failed by.
                let _ = worker.thread.join();
            }
        }
    }
}

/// How often the supervisor looks while it waits for workers to leave.
const STOPPING_LOOK: Duration = Duration::from_millis(20);

impl Drop for Team {
    fn drop(&mut self) {
        if !self.workers.is_empty() {
            self.dismiss(SupervisorTimeouts::default().grace_after_signal);
        }
    }
}

fn nonblocking(end: &impl std::os::fd::AsFd) -> Result<(), RigError> {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let set = fcntl(end.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    set.map(|_| ())
        .map_err(|errno| RigError::pipe(&errno.into()))
}

#[cfg(test)]
mod tests;
