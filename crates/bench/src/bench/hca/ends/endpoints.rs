//! The connected queue pairs of a point with their memory: where the sending and the receiving end meet.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::receiving_end::Receiver;
use super::sending_end::Sender;
use super::verbs_link::{Connection, EndResources, LinkSide};
pub use super::verbs_link::{EndpointSettings, Receives, StepLimit};
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::config::Service;
use crate::bench::hca::settings::path::PathSettings;
use crate::host::pinning::on_cpu;
use crate::rdma::cm::{
    ActiveEndpoint, CmError, ConnectionRequest, EventChannel, IdService, PassiveEndpoint,
    PendingConnection,
};
use crate::rdma::direct::{self, LocalPort, UnconnectedQueuePair};
use crate::rdma::verbs::{Context, Gid, LinkLayer, Port, Retries, gid_table, usual_pair};
use crate::rig::error::unless_interrupted;

/// Receive requests beside those of a burst's messages, for UD, where anybody can send and each message takes one.
const SPARE_RECEIVES: u32 = 64;

/// How long each step of connecting may take: the connection manager repeats a lost message after 5 to 10 s.
pub const STEP_LIMIT: Duration = Duration::from_secs(30);

/// A port that was chosen for one of the two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndPort {
    /// The device.
    pub device: String,
    /// Its port.
    pub port: u8,
    /// The address that leads to it, which the connection manager needs.
    pub address: Option<IpAddr>,
}

/// Receive requests of each queue of a point, which hold at most `most`: each queue pair has one, or all have one
/// together.
///
/// On RC as many are posted as messages may be in flight: with a `--depth` below the burst the sender waits until what
/// a message took is posted anew, so none finds the receiver not ready. On UC and UD nothing holds the sender back but
/// its own completions, which come whether a message arrived or not. So there as many are posted as a burst takes, for
/// UD some more, as far as the devices hold so many.
pub fn receive_requests(point: &Point, most: u32) -> Receives {
    let queues = point.receive_queues();
    let share = point.burst.div_ceil(queues);
    let requests = match point.service {
        // All messages in flight may be of one queue.
        Service::Rc => point.depth.min(share),
        Service::Uc => share.min(most),
        Service::Ud => (share + SPARE_RECEIVES.div_ceil(queues)).min(most),
    };
    Receives {
        requests,
        slots: requests.max(share),
    }
}

/// Both ends, connected.
#[derive(Debug)]
pub struct Endpoints {
    /// Where messages come from.
    pub sender: Arc<Sender>,
    /// Where they arrive.
    pub receiver: Arc<Receiver>,
    _listener: Option<PassiveEndpoint>,
}

/// An end, and the connections of its queue pairs.
type Connected = (EndResources, Vec<Connection>);

impl Endpoints {
    /// Connects `sender` to `receiver`: over `channel` by the connection manager, without one directly.
    ///
    /// # Errors
    /// When a device refuses, or an end is not reached in time.
    pub fn connect(
        channel: Option<&Arc<EventChannel>>,
        sender: &EndPort,
        receiver: &EndPort,
        settings: &EndpointSettings,
    ) -> Result<Self, RunError> {
        let (ends, listener) = match channel {
            Some(channel) => {
                let (ends, listener) = by_manager(channel, sender, receiver, settings)?;
                (ends, Some(listener))
            }
            None => (directly([sender, receiver], settings)?, None),
        };
        let [(source, active), (target, passive)] = ends;
        let numbers = active.iter().map(|one| one.queue_pair().number()).collect();
        let target = target.connected(passive, receiver.port);
        let receiver = Receiver::new(target, settings, numbers);
        let source = source.connected(active, sender.port);
        let sender = Sender::new(source, &settings.point, receiver.remote_slots())?;
        Ok(Endpoints {
            sender: Arc::new(sender),
            receiver: Arc::new(receiver),
            _listener: listener,
        })
    }
}

/// The ids of a point that the connection manager connects.
pub(crate) fn id_service(settings: &EndpointSettings) -> IdService {
    match settings.point.service {
        Service::Uc => IdService::UnreliableConnection(settings.uc_route),
        Service::Rc => IdService::ReliableConnection,
        Service::Ud => IdService::UnreliableDatagram,
    }
}

fn by_manager(
    channel: &Arc<EventChannel>,
    sender: &EndPort,
    receiver: &EndPort,
    settings: &EndpointSettings,
) -> Result<([Connected; 2], PassiveEndpoint), RunError> {
    let to = (receiver.device.as_str(), receiver.port);
    let from = (sender.device.as_str(), sender.port);
    // Points without addresses are not connected by the manager.
    let addresses = sender.address.zip(receiver.address);
    let (sender_address, receiver_address) = addresses.ok_or(RunError::NoAddress)?;
    let service = id_service(settings);
    let listener = PassiveEndpoint::listen(channel, service, to, receiver_address, 1)?;
    let (mut source, mut target) = (None, None);
    let mut connections = [Vec::new(), Vec::new()];
    // One after the other: each queue pair has an id of its own, all on the memory of the first.
    for _ in 0..settings.point.queue_pairs {
        unless_interrupted()?;
        let addresses = (sender_address, listener.address());
        let active = resolve(channel, from, addresses, settings)?;
        // The device's library allocates and clears the queues on the CPU that makes the queue pair.
        let connect = || connect_one(active, source.take(), settings);
        let (made, connecting) = on_cpu(settings.sender_cpu, connect)??;
        source = Some(made);
        let requested = listener.request(settings.limit.left())?;
        let accept = || accept_one(requested, target.take(), settings);
        let (made, accepting) = on_cpu(settings.receiver_cpu, accept)??;
        target = Some(made);
        for (connections, one) in connections.iter_mut().zip([connecting, accepting]) {
            let established = one.established(settings.limit.left())?;
            connections.push(Connection::Manager(established));
        }
    }
    let [active, passive] = connections;
    let (source, target) = source.zip(target).expect("a point has a queue pair");
    Ok(([(source, active), (target, passive)], listener))
}

/// An id of the sending end that knows the way to the receiving one.
pub(crate) fn resolve(
    channel: &Arc<EventChannel>,
    from: (&str, u8),
    addresses: (IpAddr, SocketAddr),
    settings: &EndpointSettings,
) -> Result<ActiveEndpoint, CmError> {
    let (service, class) = (id_service(settings), settings.point.path.traffic_class);
    let limit = settings.limit.left();
    ActiveEndpoint::resolve(channel, service, from, addresses, class, limit)
}

/// Makes a queue pair of the sending end and begins to connect it; with the first one, the end is made.
pub(crate) fn connect_one(
    active: ActiveEndpoint,
    made: Option<EndResources>,
    settings: &EndpointSettings,
) -> Result<(EndResources, PendingConnection), RunError> {
    let side = LinkSide::Sending;
    let made = made.map_or_else(|| EndResources::new(&active.context(), settings, side), Ok)?;
    let (domain, attributes) = (made.region.domain(), made.attributes.clone());
    let (retries, reads) = (retries_of(&settings.point.path), side.reads(settings));
    let connecting = active.connect(domain, attributes, retries, reads)?;
    Ok((made, connecting))
}

/// Makes a queue pair of the receiving end and accepts a request with it; with the first one, the end is made.
pub(crate) fn accept_one(
    requested: ConnectionRequest,
    made: Option<EndResources>,
    settings: &EndpointSettings,
) -> Result<(EndResources, PendingConnection), RunError> {
    let side = LinkSide::Receiving;
    let made = made.map_or_else(
        || EndResources::new(&requested.context(), settings, side),
        Ok,
    )?;
    let (domain, attributes) = (made.region.domain(), made.attributes.clone());
    let (retries, reads) = (retries_of(&settings.point.path), side.reads(settings));
    let accepting = requested.accept(domain, attributes, retries, reads)?;
    Ok((made, accepting))
}

fn directly(ends: [&EndPort; 2], settings: &EndpointSettings) -> Result<[Connected; 2], RunError> {
    let path = &settings.point.path;
    let open = |end: &EndPort| Context::open_by_name(&end.device).map(Arc::new);
    let contexts = [open(ends[0])?, open(ends[1])?];
    let ports = [
        contexts[0].port(ends[0].port)?,
        contexts[1].port(ends[1].port)?,
    ];
    let tables = [0, 1].map(|end| gid_table(&contexts[end], ends[end].port));
    let addresses = ends.map(|end| end.address);
    let gids = gids_of(addresses, [&tables[0], &tables[1]], path.gid_index)?;
    let common = path_between([ports[0].mtu, ports[1].mtu], ports[0].link_layer, path);
    let made = |end: usize,
                side: LinkSide|
     -> Result<(EndResources, Vec<UnconnectedQueuePair>), RunError> {
        directly_here(
            &contexts[end],
            (&ports[end], gids[end]),
            settings,
            side,
            common,
        )
    };
    let (source, sending) = on_cpu(settings.sender_cpu, || made(0, LinkSide::Sending))??;
    let (target, receiving) = on_cpu(settings.receiver_cpu, || made(1, LinkSide::Receiving))??;
    let mut connections = [Vec::new(), Vec::new()];
    for (sending, receiving) in sending.into_iter().zip(receiving) {
        unless_interrupted()?;
        let [here, there] = [sending.address(), receiving.address()];
        connections[1].push(Connection::Direct(receiving.connect(&here)?));
        connections[0].push(Connection::Direct(sending.connect(&there)?));
    }
    let [active, passive] = connections;
    Ok([(source, active), (target, passive)])
}

/// One end with its queue pairs, which have no peers yet.
pub(crate) fn directly_here(
    context: &Arc<Context>,
    (port, gid): (&Port, &Gid),
    settings: &EndpointSettings,
    side: LinkSide,
    common: direct::PathAttributes,
) -> Result<(EndResources, Vec<UnconnectedQueuePair>), RunError> {
    let made = EndResources::new(context, settings, side)?;
    let local = LocalPort {
        port: port.number,
        lid: port.lid,
        gid_index: gid.index,
        gid: gid.address(),
        pkey_index: settings.point.path.pkey_index.unwrap_or(0),
        access: side.access(settings.point.operation),
        reads: side.reads(settings),
    };
    let (domain, attributes) = (made.region.domain(), &made.attributes);
    let create = |_| -> Result<UnconnectedQueuePair, RunError> {
        unless_interrupted()?;
        let attributes = attributes.clone();
        Ok(UnconnectedQueuePair::create(
            domain,
            attributes,
            local,
            common,
            first_packet(),
        )?)
    };
    let queue_pairs = (0..settings.point.queue_pairs).map(create);
    let queue_pairs = queue_pairs.collect::<Result<_, _>>()?;
    Ok((made, queue_pairs))
}

/// The GIDs of both ends: those asked for, or the usual ones.
pub(crate) fn gids_of(
    addresses: [Option<IpAddr>; 2],
    tables: [&[Gid]; 2],
    index: Option<u8>,
) -> Result<[&Gid; 2], RunError> {
    let found = match index {
        None => usual_pair(tables, addresses),
        Some(index) => {
            let [here, there] = tables.map(|gids| gids.iter().find(|gid| gid.index == index));
            here.zip(there).map(|(here, there)| [here, there])
        }
    };
    found.ok_or(RunError::NoGid)
}

/// What is asked of the path between ports of these MTUs, and the usual where nothing is.
pub(crate) fn path_between(
    [one, other]: [u32; 2],
    link_layer: LinkLayer,
    asked: &PathSettings,
) -> direct::PathAttributes {
    let routed = asked.traffic_class.is_some() || asked.flow_label.is_some();
    direct::PathAttributes {
        mtu: asked.path_mtu.unwrap_or(one.min(other)),
        service_level: asked.service_level.unwrap_or(0),
        // EFA, which is neither, is reached by GIDs only.
        global: link_layer != LinkLayer::InfiniBand || routed || asked.gid_index.is_some(),
        traffic_class: asked.traffic_class.unwrap_or(0),
        flow_label: asked.flow_label.unwrap_or(0),
        retries: retries_of(asked),
    }
}

/// What is asked of repetitions, and the usual where nothing is.
pub fn retries_of(asked: &PathSettings) -> Retries {
    let usual = Retries::default();
    Retries {
        timeout: asked.qp_timeout.unwrap_or(usual.timeout),
        count: asked.retry_count.unwrap_or(usual.count),
        receiver_not_ready: asked.rnr_retry.unwrap_or(usual.receiver_not_ready),
        ..usual
    }
}

/// A number that an earlier connection has hardly used.
fn first_packet() -> u32 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.subsec_nanos())
}

#[cfg(test)]
mod tests;
