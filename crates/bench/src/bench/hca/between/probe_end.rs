//! One end of the probes: where they are sent, and where those of the other end arrive. Each host has one.

use super::half::ReceivingHalf;
use super::ping_pong::{Ports, ProbeProgress, SLOTS, Stamped, answer, ask};
use crate::bench::hca::ends::endpoints::{EndpointSettings, Receives};
use crate::bench::hca::ends::sending_end::Sender;
use crate::bench::hca::ends::verbs_port::not_posted;
use crate::bench::hca::ends::{ReceivingEnd, SendingEnd};
use crate::bench::hca::error::RunError;
use crate::bench::hca::loops::port::{BusyPolling, Failure, WaitForEvent};
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::config::{Operation, Poll, Switch};
use crate::bench::hca::settings::resources::ResourceSettings;
use crate::host::{Wakeable, pinning, priority, threads};
use crate::time::Clock;

/// The settings of the endpoints that carry probes: as the point's, with messages of their own.
pub(super) fn of_probes(settings: &EndpointSettings) -> EndpointSettings {
    let point = &settings.point;
    EndpointSettings {
        point: Point {
            operation: match point.operation {
                Operation::Write => Operation::Write,
                _ => Operation::Send,
            },
            burst: SLOTS,
            depth: SLOTS,
            queue_pairs: 1,
            unsignaled: Switch::Off,
            rate: None,
            background: None,
            resources: ResourceSettings::default(),
            ..*point
        },
        receives: Receives {
            requests: SLOTS,
            slots: SLOTS,
        },
        reads: 0,
        ..settings.clone()
    }
}

/// What an end does with probes.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProbeRole {
    /// Sends them and waits for the answers.
    Asks,
    /// Answers them.
    Answers,
}

/// One end of the probes.
pub(super) struct ProbeEnd<C> {
    clock: C,
    sender: Sender,
    receiver: ReceivingHalf,
    part: ProbeRole,
    cpu: usize,
    priority: Option<u8>,
    /// Whether it sleeps until a probe comes.
    events: bool,
    pub(super) wakeable: Wakeable,
}

impl<C: Clock> ProbeEnd<C> {
    /// An end on a CPU, with all its receive requests posted; the point says how it waits.
    ///
    /// # Errors
    /// When a request is refused.
    pub(super) fn new(
        clock: C,
        part: ProbeRole,
        (sender, receiver): (Sender, ReceivingHalf),
        point: &Point,
        (cpu, priority): (usize, Option<u8>),
        wakeable: Wakeable,
    ) -> Result<Self, RunError> {
        (0..SLOTS).try_for_each(|slot| receiver.0.post(slot as usize))?;
        Ok(ProbeEnd {
            clock,
            sender,
            receiver,
            part,
            cpu,
            priority,
            events: point.poll_recv == Poll::Event,
            wakeable,
        })
    }

    /// Does its part of probes `numbers` (the first, and how many) in a thread on its CPU, and meanwhile what `watch` does
    /// here: it is asked again and again whether the thread is over, and returns when that is so, or has to be.
    ///
    /// # Errors
    /// When the thread cannot be placed.
    pub(super) fn exchange<T>(
        &self,
        numbers: (u32, u32),
        watched: &ProbeProgress,
        watch: impl FnOnce(&dyn Fn() -> bool) -> T,
    ) -> Result<(T, Result<Vec<Stamped>, Failure>), RunError> {
        let work = || -> Result<_, RunError> {
            pinning::pin_current_thread(self.cpu)?;
            if let Some(level) = self.priority {
                priority::set_fifo(i32::from(level))?;
            }
            Ok(self.run(numbers, watched))
        };
        let (watched, stamped) = std::thread::scope(|scope| {
            let thread = threads::start_scoped(scope, std::thread::Builder::new(), work)?;
            let found = watch(&|| thread.is_finished());
            let stamped = thread.join();
            let stamped = stamped.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, RunError>((found, stamped))
        })?;
        Ok((watched, stamped?))
    }

    fn run(&self, numbers: (u32, u32), watched: &ProbeProgress) -> Result<Vec<Stamped>, Failure> {
        let receiver = &self.receiver.0;
        let ports = Ports {
            send: &mut self.sender.port(),
            receive: &mut ReceivingEnd::port(receiver, 0, SLOTS as usize),
            sent: &mut self.sender.completions(),
            post: &mut |slot| {
                receiver
                    .post(slot as usize)
                    .map_err(|error| not_posted(&error))
            },
            unsignalled: 0,
        };
        let clock = &self.clock;
        match (self.part, self.events) {
            (ProbeRole::Asks, false) => ask(clock, ports, BusyPolling, numbers, watched),
            (ProbeRole::Answers, false) => answer(clock, ports, BusyPolling, numbers, watched),
            (part, true) => self.wakeable.during(|| {
                let mode = WaitForEvent::default();
                match part {
                    ProbeRole::Asks => ask(clock, ports, mode, numbers, watched),
                    ProbeRole::Answers => answer(clock, ports, mode, numbers, watched),
                }
            }),
        }
    }
}
