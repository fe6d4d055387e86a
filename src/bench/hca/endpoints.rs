//! Two connected queue pairs with their memory, for one point: where the sending and the receiving end meet.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::config::Service;
use super::error::RunError;
use super::path::PathSettings;
use super::receiving_end::Receiver;
use super::sending_end::Sender;
pub use super::verbs_link::EndpointSettings;
use super::verbs_link::{Connection, Made, Side, on_cpu};
use crate::rdma::cm::{ActiveEndpoint, EventChannel, IdService, PassiveEndpoint};
use crate::rdma::direct::{self, Local, Unconnected};
use crate::rdma::verbs::{Context, Gid, LinkLayer, Port, Retries, gid_table, usual_pair};

/// Receive requests beside those of a burst's messages, for UD, where anybody can send and each message takes one.
const SPARE_RECEIVES: u32 = 64;

/// How long each step of connecting may take: the connection manager repeats a lost message after 5 to 10 s.
const STEP_LIMIT: Duration = Duration::from_secs(30);

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

/// Receive requests for `depth` messages: as many, and for UD some more, as far as the devices hold so many.
pub fn receive_requests(service: Service, depth: u32, most: u32) -> u32 {
    match service {
        Service::Rc | Service::Uc => depth,
        Service::Ud => (depth + SPARE_RECEIVES).min(most).max(depth),
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

/// What the connection manager brought about, and its listener.
type ByManager = ([(Made, Connection); 2], PassiveEndpoint);

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
        let source_number = active.queue_pair().number();
        let target = target.connected(passive, receiver.port);
        let receiver = Receiver::new(target, &settings.point, source_number);
        let source = source.connected(active, sender.port);
        let sender = Sender::new(source, &settings.point, receiver.remote_slots())?;
        Ok(Endpoints {
            sender: Arc::new(sender),
            receiver: Arc::new(receiver),
            _listener: listener,
        })
    }
}

fn by_manager(
    channel: &Arc<EventChannel>,
    sender: &EndPort,
    receiver: &EndPort,
    settings: &EndpointSettings,
) -> Result<ByManager, RunError> {
    let service = match settings.point.service {
        Service::Uc => IdService::UnreliableConnection(settings.uc_route),
        Service::Rc => IdService::ReliableConnection,
        Service::Ud => IdService::UnreliableDatagram,
    };
    let path = &settings.point.path;
    let retries = retries_of(path);
    let to = (receiver.device.as_str(), receiver.port);
    // Points without addresses are not connected by the manager.
    let addresses = sender.address.zip(receiver.address);
    let (sender_address, receiver_address) = addresses.ok_or(RunError::NoAddress)?;
    let listener = PassiveEndpoint::listen(channel, service, to, receiver_address)?;
    let from = (sender.device.as_str(), sender.port);
    let active = ActiveEndpoint::resolve(
        channel,
        service,
        from,
        (sender_address, listener.address()),
        path.traffic_class,
        STEP_LIMIT,
    )?;
    let context = active.context();
    let source = || Made::new(&context, settings, Side::Sending);
    let source = on_cpu(settings.sender_cpu, source)??;
    let (domain, attributes) = (source.region.domain(), source.attributes.clone());
    // The device's library allocates and clears the queues on the CPU that makes the queue pair.
    let reads = Side::Sending.reads(settings);
    let connect = || active.connect(domain, attributes, retries, reads);
    let active = on_cpu(settings.sender_cpu, connect)??;

    let requested = listener.request(STEP_LIMIT)?;
    let context = requested.context();
    let target = || Made::new(&context, settings, Side::Receiving);
    let target = on_cpu(settings.receiver_cpu, target)??;
    let (domain, attributes) = (target.region.domain(), target.attributes.clone());
    let reads = Side::Receiving.reads(settings);
    let accept = || requested.accept(domain, attributes, retries, reads);
    let passive = on_cpu(settings.receiver_cpu, accept)??;
    let active = Connection::Manager(active.established(STEP_LIMIT)?);
    let passive = Connection::Manager(passive.established(STEP_LIMIT)?);
    Ok(([(source, active), (target, passive)], listener))
}

fn directly(
    ends: [&EndPort; 2],
    settings: &EndpointSettings,
) -> Result<[(Made, Connection); 2], RunError> {
    let path = &settings.point.path;
    let open = |end: &EndPort| Context::open_by_name(&end.device).map(Arc::new);
    let contexts = [open(ends[0])?, open(ends[1])?];
    let ports = [
        contexts[0].port(ends[0].port)?,
        contexts[1].port(ends[1].port)?,
    ];
    let tables = ends.map(|end| gid_table(&end.device, end.port));
    let gids = gids_of(ends, [&tables[0], &tables[1]], path.gid_index)?;
    let common = path_between([&ports[0], &ports[1]], path);
    let made = |end: usize, side: Side| -> Result<(Made, Unconnected), RunError> {
        let made = Made::new(&contexts[end], settings, side)?;
        let local = Local {
            port: ends[end].port,
            lid: ports[end].lid,
            gid_index: gids[end].index,
            gid: gids[end].address(),
            pkey_index: path.pkey_index.unwrap_or(0),
            access: side.access(settings.point.operation),
            reads: side.reads(settings),
        };
        let (domain, attributes) = (made.region.domain(), made.attributes.clone());
        let queue_pair = Unconnected::create(domain, attributes, local, common, first_packet())?;
        Ok((made, queue_pair))
    };
    let (source, sending) = on_cpu(settings.sender_cpu, || made(0, Side::Sending))??;
    let (target, receiving) = on_cpu(settings.receiver_cpu, || made(1, Side::Receiving))??;
    let [here, there] = [sending.address(), receiving.address()];
    let passive = Connection::Direct(receiving.connect(&here)?);
    let active = Connection::Direct(sending.connect(&there)?);
    Ok([(source, active), (target, passive)])
}

/// The GIDs of both ends: those asked for, or the usual ones.
fn gids_of<'a>(
    ends: [&EndPort; 2],
    tables: [&'a [Gid]; 2],
    index: Option<u8>,
) -> Result<[&'a Gid; 2], RunError> {
    let found = match index {
        None => usual_pair(tables, ends.map(|end| end.address)),
        Some(index) => {
            let [here, there] = tables.map(|gids| gids.iter().find(|gid| gid.index == index));
            here.zip(there).map(|(here, there)| [here, there])
        }
    };
    found.ok_or(RunError::NoGid)
}

/// What is asked of the path, and the usual where nothing is.
fn path_between([one, other]: [&Port; 2], asked: &PathSettings) -> direct::Path {
    let routed = asked.traffic_class.is_some() || asked.flow_label.is_some();
    direct::Path {
        mtu: asked.path_mtu.unwrap_or(one.mtu.min(other.mtu)),
        service_level: asked.service_level.unwrap_or(0),
        global: one.link_layer == LinkLayer::Ethernet || routed || asked.gid_index.is_some(),
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
    }
}

/// A number that an earlier connection has hardly used.
fn first_packet() -> u32 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.subsec_nanos())
}

#[cfg(test)]
mod tests;
