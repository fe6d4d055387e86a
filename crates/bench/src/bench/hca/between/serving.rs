//! The process that is asked: it prepares what another host asks for, and connects its half of each point.

use std::sync::Arc;
use std::time::Duration;

use super::half::receives_of;
use super::message::{Order, PreparedPoint, WireMessage};
use super::pair::PairEnd;
use super::probe_end::{ProbeEnd, ProbeRole, of_probes};
use super::served::{ServedReceiver, serve_point};
use crate::bench::hca::ends::ReceivingEnd;
use crate::bench::hca::ends::endpoints::{EndpointSettings, STEP_LIMIT, StepLimit};
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::open_port::OpenPort;
use crate::bench::hca::ends::polled_end::PolledReceiver;
use crate::bench::hca::ends::requesting_end::{LocalMemory, Target as _};
use crate::bench::hca::ends::two_ports::TwoPorts;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::Point;
use crate::bench::hca::plan::placement::of_receiving_side;
use crate::bench::hca::run::clocks::Clocks;
use crate::bench::hca::session::worker::Frame;
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::bench::hca::settings::config::{Operation, Service};
use crate::bench::hca::settings::limits::{
    LARGEST_BURST, LARGEST_SIZE, MOST_QUEUE_PAIRS, SMALLEST_SIZE,
};
use crate::between::error::PeerError;
use crate::between::message::{next, only, send_message, take};
use crate::between::time_of_day::TimeOfDayOffset;
use crate::buffer::PageKind;
use crate::host::idle_hold::IdleHold;
use crate::host::{Topology, Wakeable, memory_lock, pinning};
use crate::launch::message::DirectionReport;
use crate::launch::wire::{Wire, WireError};
use crate::rig::benchmark::Failure;
use crate::rig::findings::{of_idle_states, of_placement};
use crate::time::{Clock, ClockUser};

/// A connection that is served.
pub(super) struct Serving {
    port: OpenPort,
    facts: Facts,
    peer: Facts,
    topology: Topology,
    clocks: Arc<Clocks>,
    wakeable: Wakeable,
    /// Held as long as it is served.
    idle_hold: Option<IdleHold>,
    /// What measures the other way round, of a rank.
    pair: Option<Arc<PairEnd>>,
}

impl Serving {
    /// Serves a port to the other end, of which these facts are known.
    ///
    /// # Errors
    /// When this machine cannot.
    pub(super) fn new(
        port: OpenPort,
        facts: Facts,
        peer: Facts,
        pair: Option<Arc<PairEnd>>,
    ) -> Result<Self, RunError> {
        if let Some(pair) = &pair {
            pair.take_place()?;
        }
        Ok(Serving {
            port,
            facts,
            peer,
            topology: Topology::read()?,
            clocks: pair
                .as_ref()
                .map_or_else(|| Arc::new(Clocks::new(None)), |pair| pair.clocks()),
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
                Err(PeerError::Wire(WireError::Closed(_))) => return Ok(()),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = done {
                let gone = matches!(error, RunError::Wire(WireError::Closed(_)));
                if gone {
                    return Ok(());
                }
                // Who has gone cannot be told.
                let text = error.to_string();
                let _ = send_message(wire, &WireMessage::Failed(error.into()));
                return Err(RunError::Post(text));
            }
        }
    }

    fn respond(&mut self, wire: &mut Wire, message: WireMessage) -> Result<(), RunError> {
        match message {
            WireMessage::Try(plan) => {
                let refusal = self.port.refuses(&plan);
                Ok(send_message(wire, &WireMessage::Tried(refusal))?)
            }
            WireMessage::Route(route) => {
                let refusal = self.port.probe(route).err().map(|error| error.to_string());
                Ok(send_message(wire, &WireMessage::Tried(refusal))?)
            }
            WireMessage::Prepare {
                clocks,
                bytes,
                cpu,
                allow_idle_states,
                point,
            } => {
                let numa_node = self.port.port.device.numa_node;
                // Refused before anything is connected; what it gives up is found at each point.
                of_receiving_side(&self.topology, &point, self.cpu(cpu), numa_node)?;
                let (hold, _, idle) = IdleHold::unless(allow_idle_states);
                self.idle_hold = hold.or(self.idle_hold.take());
                let idle = idle.map(|error| of_idle_states(&error));
                for kind in clocks {
                    self.clocks.get(kind)?;
                }
                memory_lock::lock_with(bytes)?;
                Ok(send_message(
                    wire,
                    &WireMessage::Prepared(Vec::from_iter(idle)),
                )?)
            }
            WireMessage::Point(order) => {
                let clock = self.clocks.get(order.point.clock)?;
                clock.visit(ServedPoint {
                    serving: self,
                    wire,
                    order: &order,
                })
            }
            WireMessage::Back {
                serves,
                round,
                samples,
                limit_ms,
            } => {
                let Some(pair) = &self.pair else {
                    let text = "this process is not a rank of a fabric";
                    return Err(RunError::Peer(wire.peer(), Failure::Run(text.to_owned())));
                };
                let mut to = serves;
                if to.ip().is_unspecified() {
                    to.set_ip(wire.peer().ip().to_canonical());
                }
                let report = pair
                    .back(to, (round, samples), Duration::from_millis(limit_ms))
                    .unwrap_or_else(|failure| DirectionReport {
                        failure: Some(failure.to_string()),
                        ..DirectionReport::default()
                    });
                Ok(send_message(
                    wire,
                    &WireMessage::BackOver(Box::new(report)),
                )?)
            }
            other => Ok(take(wire, other, only!(WireMessage::PointOver => ()))?),
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
            receives: receives_of(&order.point, [&self.peer, &self.facts]),
            reads: TwoPorts([&self.peer, &self.facts]).reads_of(&order.point),
            limit: StepLimit::Each(STEP_LIMIT),
            comp_vectors: CompletionVectors {
                // The probes' answers are sent by this end.
                sender: order.comp_vectors.receiver,
                receiver: order.comp_vectors.receiver,
            },
            huge_pages: order.huge_pages,
            hw_timestamps: false,
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
        false => Err(RunError::Usage(format!(
            "{point} is not a point of any run"
        ))),
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
        let (port, peer) = (&serving.port, &serving.peer);
        let numa_node = port.port.device.numa_node;
        let point = &order.point;
        check(point)?;
        let (cpu, others, given_up) =
            of_receiving_side(&serving.topology, point, serving.cpu(order.cpu), numa_node)?;
        let settings = serving.settings(order, cpu);
        let probes = of_probes(&settings);
        pinning::pin_current_thread(cpu)?;
        // In the order of the other end.
        let (receiver, _listener) = port.receiving(wire, peer, &settings)?;
        let asked = port.receiving(wire, peer, &probes)?;
        let answering = port.sending(wire, peer, &probes)?;
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
            ProbeRole::Answers,
            (answering, asked),
            point,
            (cpu, order.priority),
            serving.wakeable.clone(),
        )?;
        let made = PreparedPoint {
            cpu,
            // Of the stamps where there is no thread: none are there.
            pages: [PageKind::Huge, ReceivingEnd::link(&*receiver).page_kind()],
            path: serde_json::to_value(path).unwrap_or_default(),
            time_of_day: TimeOfDayOffset::of(&clock),
            findings: of_placement(&given_up)
                .map(|found| found.on("receiver"))
                .collect(),
        };
        match point.operation {
            operation if !operation.is_one_way() => {
                // No thread: the HCA answers alone.
                let target = LocalMemory::new(&receiver, operation);
                send_message(wire, &WireMessage::Made(Box::new(made)))?;
                let link = ReceivingEnd::link(&*receiver);
                serve_point(
                    wire,
                    link,
                    (&clock, &probes),
                    |wire, message| match message {
                        WireMessage::Fill { burst } => {
                            (0..point.burst)
                                .for_each(|sequence| target.make_ready(burst, sequence));
                            Ok(send_message(wire, &WireMessage::Filled)?)
                        }
                        WireMessage::Word => {
                            Ok(send_message(wire, &WireMessage::Told(target.word(0)))?)
                        }
                        other => Ok(take(wire, other, only!(WireMessage::PointOver => ()))?),
                    },
                )
            }
            Operation::WritePolled if point.service == Service::Uc => {
                let receiver = Arc::new(PolledReceiver::<true>(receiver));
                ServedReceiver::start(clock, &frame, receiver, cpu)?.serve(wire, made, &probes)
            }
            Operation::WritePolled => {
                let receiver = Arc::new(PolledReceiver::<false>(receiver));
                ServedReceiver::start(clock, &frame, receiver, cpu)?.serve(wire, made, &probes)
            }
            _ => ServedReceiver::start(clock, &frame, receiver, cpu)?.serve(wire, made, &probes),
        }
    }
}
