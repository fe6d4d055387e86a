//! The port of this host, and one half of a connection: what `endpoints` does for both ends in one process, step by
//! step with the other end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::config::Service;
use super::super::endpoints::{
    STEP_LIMIT, directly_here, gids_of, id_service, path_between, retries_of,
};
use super::super::error::RunError;
use super::super::receiving_end::Receiver;
use super::super::sending_end::Sender;
use super::super::verbs_link::{Connection, EndpointSettings, Made, Side, queue_pair_lengths};
use super::message::{Facts, Message, WORK, hear, hear_nothing, only, tell};
use crate::host::machine_name::machine_name;
use crate::launch::wire::Wire;
use crate::rdma::cm::{ActiveEndpoint, CmError, EventChannel, PassiveEndpoint, Requested, UcRoute};
use crate::rdma::direct::Unconnected;
use crate::rdma::verbs::{
    Capabilities, Context, Gid, VerbsError, gid_table, granted_inline, partition_keys,
    try_queue_pairs,
};
use crate::rig::benchmark::Failure;
use crate::rig::error::unless_interrupted;
use crate::rig::port_choice::ChosenPort;

/// The port of this host that takes part.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) port: ChosenPort,
    context: Arc<Context>,
    /// There if the port has an address.
    channel: Option<Arc<EventChannel>>,
}

/// A receiving half; what it was connected by must outlive it.
pub(super) type Receiving = (Receiver, Option<PassiveEndpoint>);

/// How often somebody who waits for a connection request looks whether the other end is still there.
const LOOK: Duration = Duration::from_millis(200);

/// Waits for a connection request of the other end; it comes no more once that has gone, or has told why it cannot.
fn requested_at(listener: &PassiveEndpoint, wire: &mut Wire) -> Result<Requested, RunError> {
    let begun = Instant::now();
    loop {
        match listener.request(LOOK) {
            Err(CmError::TimedOut { .. }) if begun.elapsed() < STEP_LIMIT => {
                hear_nothing(wire, Duration::ZERO)?;
            }
            Err(CmError::TimedOut {
                step,
                object,
                awaited,
                ..
            }) => {
                let limit = STEP_LIMIT;
                let error = CmError::TimedOut {
                    step,
                    object,
                    awaited,
                    limit,
                };
                return Err(error.into());
            }
            requested => return Ok(requested?),
        }
    }
}

impl Half {
    /// Opens the device of a port.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) fn open(port: ChosenPort) -> Result<Self, RunError> {
        let channel = port.address.map(|_| EventChannel::create()).transpose()?;
        Ok(Half {
            context: Arc::new(Context::open_by_name(&port.device.name)?),
            channel,
            port,
        })
    }

    /// The same device and port for another connection.
    ///
    /// # Errors
    /// When the connection manager refuses.
    pub(super) fn another(&self) -> Result<Self, RunError> {
        let channel = self.port.address.map(|_| EventChannel::create());
        Ok(Half {
            port: self.port.clone(),
            context: Arc::clone(&self.context),
            channel: channel.transpose()?,
        })
    }

    /// What the other host needs to know of this one.
    pub(super) fn facts(&self) -> Facts {
        let ChosenPort {
            device,
            port,
            address,
        } = &self.port;
        let (_, smallest) = queue_pair_lengths(1, 1, 0);
        let inline_of = |service: &Service| {
            try_queue_pairs(&self.context, (*service).into(), smallest, 1).ok()?;
            let granted = granted_inline(&self.context, (*service).into()).ok()?;
            Some((*service, granted))
        };
        let services = BTreeSet::from([Service::Rc, Service::Uc, Service::Ud]);
        let (host, boot_id) = machine_name();
        Facts {
            host,
            boot_id,
            device: device.name.clone(),
            port: port.number,
            address: *address,
            limits: device.limits.clone(),
            mtu: port.mtu,
            max_message: port.max_message,
            link_layer: port.link_layer,
            transport: device.transport,
            software: device.software,
            gids: gid_table(&device.name, port.number),
            partition_keys: partition_keys(&device.name, port.number),
            inline: services.iter().filter_map(inline_of).collect(),
            description: self.port.describe(),
            details: serde_json::json!({
                "port": port.number, "address": address, "device": device,
            }),
        }
    }

    /// Tries so many queue pairs; tells why they are refused.
    pub(super) fn refuses(
        &self,
        service: Service,
        capabilities: Capabilities,
        count: u32,
    ) -> Option<VerbsError> {
        try_queue_pairs(&self.context, service.into(), capabilities, count).err()
    }

    /// Tries a route to UC; without the connection manager there is none to try.
    pub(super) fn probe(&self, route: UcRoute) -> Result<(), CmError> {
        match (&self.channel, self.port.address) {
            (Some(channel), Some(address)) => route.probe(channel, address),
            _ => Ok(()),
        }
    }

    fn place(&self) -> (&str, u8) {
        (&self.port.device.name, self.port.port.number)
    }

    /// The event channel and the address, for a point that the connection manager connects.
    fn by_manager(
        &self,
        settings: &EndpointSettings,
    ) -> Result<Option<(&Arc<EventChannel>, std::net::IpAddr)>, RunError> {
        if settings.point.connect == super::super::config::Connect::Direct {
            return Ok(None);
        }
        let found = self.channel.as_ref().zip(self.port.address);
        found.map(Some).ok_or(RunError::NoAddress)
    }

    /// The half that messages arrive at. Its memory lies near the CPU that this runs on.
    ///
    /// # Errors
    /// When a device refuses, or the other end does not do its part in time.
    pub(super) fn receiving(
        &self,
        wire: &mut Wire,
        peer: &Facts,
        settings: &EndpointSettings,
    ) -> Result<Receiving, RunError> {
        let side = Side::Receiving;
        let (made, connections, listener) = match self.by_manager(settings)? {
            None => {
                let (made, connections) = self.directly(wire, peer, settings, side)?;
                (made, connections, None)
            }
            Some((channel, address)) => {
                let service = id_service(settings);
                let listener = PassiveEndpoint::listen(channel, service, self.place(), address, 1)?;
                tell(wire, &Message::Listening(listener.address()))?;
                let retries = retries_of(&settings.point.path);
                let (mut made, mut connections) = (None, Vec::new());
                for _ in 0..settings.point.queue_pairs {
                    unless_interrupted()?;
                    let requested = requested_at(&listener, wire)?;
                    let end = match made.take() {
                        Some(end) => end,
                        None => Made::new(&requested.context(), settings, side)?,
                    };
                    let (domain, attributes) = (end.region.domain(), end.attributes.clone());
                    let reads = side.reads(settings);
                    let accepting = requested.accept(domain, attributes, retries, reads)?;
                    connections.push(Connection::Manager(accepting.established(STEP_LIMIT)?));
                    made = Some(end);
                }
                let made = made.expect("a point has a queue pair");
                (made, connections, Some(listener))
            }
        };
        let numbers = hear(wire, WORK, only!(Message::Senders(numbers) => numbers))?;
        let link = made.connected(connections, self.port.port.number);
        let receiver = Receiver::new(link, settings, numbers);
        tell(wire, &Message::Slots(receiver.remote_slots()))?;
        Ok((receiver, listener))
    }

    /// The half that messages come from. Its memory lies near the CPU that this runs on.
    ///
    /// # Errors
    /// When a device refuses, or the other end does not do its part in time.
    pub(super) fn sending(
        &self,
        wire: &mut Wire,
        peer: &Facts,
        settings: &EndpointSettings,
    ) -> Result<Sender, RunError> {
        let side = Side::Sending;
        let (made, connections) = match self.by_manager(settings)? {
            None => self.directly(wire, peer, settings, side)?,
            Some((channel, from)) => {
                let to = hear(wire, WORK, only!(Message::Listening(address) => address))?;
                let path = &settings.point.path;
                let resolve = || {
                    let (service, limit) = (id_service(settings), STEP_LIMIT);
                    let class = path.traffic_class;
                    ActiveEndpoint::resolve(
                        channel,
                        service,
                        self.place(),
                        (from, to),
                        class,
                        limit,
                    )
                };
                let (mut made, mut connections) = (None, Vec::new());
                for _ in 0..settings.point.queue_pairs {
                    unless_interrupted()?;
                    let active = resolve()?;
                    let end = match made.take() {
                        Some(end) => end,
                        None => Made::new(&active.context(), settings, side)?,
                    };
                    let (domain, attributes) = (end.region.domain(), end.attributes.clone());
                    let reads = side.reads(settings);
                    let connecting = active.connect(domain, attributes, retries_of(path), reads)?;
                    connections.push(Connection::Manager(connecting.established(STEP_LIMIT)?));
                    made = Some(end);
                }
                (made.expect("a point has a queue pair"), connections)
            }
        };
        let numbers = connections.iter().map(|one| one.queue_pair().number());
        tell(wire, &Message::Senders(numbers.collect()))?;
        let slots = hear(wire, WORK, only!(Message::Slots(slots) => slots))?;
        let link = made.connected(connections, self.port.port.number);
        Sender::new(link, &settings.point, slots)
    }

    /// Without the connection manager: each end tells where its queue pairs are.
    fn directly(
        &self,
        wire: &mut Wire,
        peer: &Facts,
        settings: &EndpointSettings,
        side: Side,
    ) -> Result<(Made, Vec<Connection>), RunError> {
        let path = &settings.point.path;
        let port = self.context.port(self.port.port.number)?;
        let gids: [&[Gid]; 2] = [&gid_table(&self.port.device.name, port.number), &peer.gids];
        let addresses = [self.port.address, peer.address];
        let [gid, _] = gids_of(addresses, gids, path.gid_index)?;
        let common = path_between([port.mtu, peer.mtu], port.link_layer, path);
        let (made, unconnected) =
            directly_here(&self.context, (&port, gid), settings, side, common)?;
        let here = unconnected.iter().map(Unconnected::address).collect();
        tell(wire, &Message::Addresses(here))?;
        let there = hear(wire, WORK, only!(Message::Addresses(there) => there))?;
        if there.len() != unconnected.len() {
            let text = format!(
                "tells of {} queue pairs instead of {}",
                there.len(),
                unconnected.len()
            );
            return Err(RunError::Peer(wire.peer(), Failure::Run(text)));
        }
        let each = unconnected.into_iter().zip(&there);
        let connect = |(one, peer): (Unconnected, _)| Ok(Connection::Direct(one.connect(peer)?));
        let connections = each.map(connect).collect::<Result<Vec<_>, RunError>>()?;
        Ok((made, connections))
    }
}
