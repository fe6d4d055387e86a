//! The two ports that the ends use, and what they can do.

use std::net::IpAddr;
use std::sync::Arc;

use crate::node::{NodeError, Settings, Side, Wiring};
use crate::rdma::cm::{EventChannel, IdService, UcRoute};
use crate::rdma::verbs::{Capabilities, Context, EndPlan, ServiceType, devices};
use crate::rig::port_choice::{ChosenPort, PortPair, choose, choose_one, choose_route};
use crate::rig::ports::{PortRequest, Service, UcRouteRequest};

/// Which ports are asked for.
#[derive(Debug, Clone)]
pub struct FabricRequest {
    /// That of the publishers.
    pub sender: Option<PortRequest>,
    /// That of the subscribers.
    pub receiver: Option<PortRequest>,
    /// How queue pairs for UC are made.
    pub uc_route: UcRouteRequest,
}

/// A port and the address that leads to it.
#[derive(Debug, Clone)]
pub(super) struct FabricPort {
    pub(super) device: String,
    pub(super) port: u8,
    pub(super) address: IpAddr,
}

/// The ports of a run. Of a run between two hosts each has its own port, at which both publishers and subscribers are.
#[derive(Debug)]
pub struct Fabric {
    pair: PortPair,
    pub(super) sender: FabricPort,
    pub(super) receiver: FabricPort,
    /// Or why there is none.
    uc_route: Result<UcRoute, String>,
}

impl Fabric {
    /// Chooses the ports, and the route to UC.
    ///
    /// # Errors
    /// When there are not two that can be connected.
    pub fn open(request: &FabricRequest) -> Result<Self, NodeError> {
        let found = devices().map_err(failed)?;
        let pair = choose(&found, request.sender.as_ref(), request.receiver.as_ref());
        let pair = pair.map_err(|error| NodeError::Setting(error.to_string()))?;
        Self::of_pair(pair, request.uc_route)
    }

    /// The port of this host in a run between two, which `option` names, and the route to UC.
    ///
    /// # Errors
    /// When there is none with an address.
    pub fn of_host(
        option: &'static str,
        port: Option<&PortRequest>,
        uc_route: UcRouteRequest,
    ) -> Result<Self, NodeError> {
        let found = devices().map_err(failed)?;
        let chosen = choose_one(&found, option, port);
        let chosen = chosen.map_err(|error| NodeError::Setting(error.to_string()))?;
        let pair = PortPair {
            sender: chosen.clone(),
            receiver: chosen,
        };
        Self::of_pair(pair, uc_route)
    }

    fn of_pair(pair: PortPair, asked: UcRouteRequest) -> Result<Self, NodeError> {
        let (sender, receiver) = (end_of(&pair.sender)?, end_of(&pair.receiver)?);
        let channel = EventChannel::create().map_err(failed)?;
        let works = |route: UcRoute| {
            let mut ends = [&sender, &receiver].into_iter();
            ends.try_for_each(|end| route.probe(&channel, end.address))
        };
        let uc_route = choose_route(asked, works).map_err(|refusals| {
            let told: Vec<String> = (refusals.iter())
                .map(|(route, error)| format!("{}: {error}", route.name()))
                .collect();
            format!(
                "--service uc is impossible with --uc-route {}: {}",
                asked.name(),
                told.join("; ")
            )
        });
        Ok(Fabric {
            pair,
            sender,
            receiver,
            uc_route,
        })
    }

    /// The ports.
    pub fn pair(&self) -> &PortPair {
        &self.pair
    }

    /// How queue pairs for UC are made, if they can be.
    pub fn uc_route(&self) -> Option<UcRoute> {
        self.uc_route.as_ref().ok().copied()
    }

    pub(super) fn id_service(&self, service: Service) -> Result<IdService, NodeError> {
        Ok(match service {
            Service::Rc => IdService::ReliableConnection,
            Service::Ud => IdService::UnreliableDatagram,
            Service::Uc => {
                let route = self.uc_route.clone().map_err(NodeError::Setting)?;
                IdService::UnreliableConnection(route)
            }
        })
    }

    /// Why these ports cannot carry samples of this many bytes by a service, with queues of any length.
    pub fn refusal(&self, service: Service, sample_bytes: u64) -> Option<String> {
        if service == Service::Uc {
            return self.uc_route.clone().err();
        }
        let mtu = self.pair.sender.port.mtu.min(self.pair.receiver.port.mtu);
        let too_long = service == Service::Ud && sample_bytes > u64::from(mtu);
        too_long.then(|| {
            format!(
                "--service ud takes no samples of {sample_bytes} bytes: a datagram has at most those of \
                the port's MTU, {mtu}"
            )
        })
    }

    /// Tries queue pairs as the settings have them, on the devices of these sides.
    ///
    /// # Errors
    /// What the devices cannot have, with the options.
    pub fn check(
        &self,
        wiring: &Wiring,
        settings: &Settings,
        sides: &[Side],
    ) -> Result<(), NodeError> {
        let service = settings.verbs.service;
        let targets = (0..wiring.publishers).map(|one| wiring.subscribers_of(one).count());
        let sources = (0..wiring.subscribers).map(|one| wiring.publishers_of(one).count());
        let most = |counts: Option<usize>| match service {
            // One queue pair reaches all peers.
            Service::Ud => 1,
            Service::Rc | Service::Uc => counts.unwrap_or(1) as u32,
        };
        let (targets, sources) = (most(targets.max()), most(sources.max()));
        let (sends, receives) = queue_pair_lengths(wiring, settings);
        let inline = settings.verbs.max_inline;
        let all = [
            (
                Side::Publishers,
                &self.pair.sender,
                sends,
                targets,
                format!(
                    "--send-queue {} with --max-inline {inline}",
                    settings.send_queue
                ),
            ),
            (
                Side::Subscribers,
                &self.pair.receiver,
                receives,
                sources,
                format!("--receive-queue {}", settings.receive_queue),
            ),
        ];
        let threshold = settings.receive_threshold();
        if threshold < sources {
            let option = match settings.verbs.receive_threshold {
                Some(_) => format!("--receive-threshold {threshold}: must"),
                None => format!(
                    "--receive-queue {}: less 2 * --vectorize, it must",
                    settings.receive_queue
                ),
            };
            return Err(NodeError::Setting(format!(
                "{option} be at least the number of publishers of a subscriber, which is {sources}: each has a \
                 separate receive queue"
            )));
        }
        for (_, end, capabilities, count, options) in
            all.into_iter().filter(|(side, ..)| sides.contains(side))
        {
            let limits = &end.device.limits;
            let requests = capabilities
                .send_requests
                .max(capabilities.receive_requests);
            let entries = u64::from(requests) * u64::from(count);
            let refused = |rule: String| {
                let (service, device) = (service.name(), &end.device.name);
                Err(NodeError::Setting(format!(
                    "{options} is impossible with --service {service} on {device}: {rule}"
                )))
            };
            if requests > limits.max_queue_pair_work_requests {
                let most = limits.max_queue_pair_work_requests;
                return refused(format!("its queues hold at most {most} work requests"));
            }
            if entries > u64::from(limits.max_completion_queue_entries) {
                let most = limits.max_completion_queue_entries;
                return refused(format!(
                    "the completion queue of {count} queue pairs takes {entries} entries, and its \
                    completion queues hold at most {most}"
                ));
            }
            let context = Context::open_by_name(&end.device.name).map_err(failed)?;
            let plan = EndPlan::usual(ServiceType::from(service), capabilities, count);
            if let Err(error) = plan.attempt(&Arc::new(context)) {
                return refused(error.to_string());
            }
        }
        Ok(())
    }
}

fn end_of(chosen: &ChosenPort) -> Result<FabricPort, NodeError> {
    let (device, port) = (chosen.device.name.clone(), chosen.port.number);
    match chosen.address {
        Some(address) => Ok(FabricPort {
            device,
            port,
            address,
        }),
        None => Err(NodeError::Setting(format!(
            "--type infiniband is impossible: {device} port {port} has no IP address, which the connection \
            manager needs: give its network interface one (ip address add)"
        ))),
    }
}

/// The queue pairs of publishers and of subscribers: each uses one of its two queues. That of a publisher of datagrams
/// holds all copies of a sample.
pub(super) fn queue_pair_lengths(
    wiring: &Wiring,
    settings: &Settings,
) -> (Capabilities, Capabilities) {
    let copies = match settings.verbs.service {
        Service::Ud => wiring.copies() as u32,
        Service::Rc | Service::Uc => 1,
    };
    let sending = Capabilities {
        send_requests: settings.send_queue.saturating_mul(copies),
        receive_requests: 1,
        inline_bytes: settings.verbs.max_inline,
    };
    let receiving = Capabilities {
        send_requests: 1,
        receive_requests: settings.receive_queue,
        inline_bytes: 0,
    };
    (sending, receiving)
}

pub(super) fn failed(error: impl std::fmt::Display) -> NodeError {
    NodeError::Verbs(error.to_string())
}
