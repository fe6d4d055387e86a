//! One half of a connection: what `endpoints` does for both ends in one process, step by step with the other end.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::message::WireMessage;
use crate::bench::hca::ends::endpoints::{
    EndpointSettings, Receives, STEP_LIMIT, accept_one, connect_one, directly_here, gids_of,
    id_service, path_between, receive_requests, resolve,
};
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::open_port::OpenPort;
use crate::bench::hca::ends::receiving_end::Receiver;
use crate::bench::hca::ends::sending_end::Sender;
use crate::bench::hca::ends::two_ports::TwoPorts;
use crate::bench::hca::ends::verbs_link::{Connection, EndResources, LinkSide};
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::path::Connect;
use crate::between::message::{WORK, expect_nothing, only, receive_message, send_message};
use crate::launch::wire::Wire;
use crate::rdma::cm::{CmError, ConnectionRequest, EventChannel, PassiveEndpoint};
use crate::rdma::direct::UnconnectedQueuePair;
use crate::rdma::verbs::{Gid, gid_table};
use crate::rig::benchmark::Failure;
use crate::rig::error::unless_interrupted;

/// A receiving half; what it was connected by must outlive it.
pub(super) type ReceivingHalf = (Receiver, Option<PassiveEndpoint>);

/// How often somebody who waits for a connection request looks whether the other end is still there.
const LOOK: Duration = Duration::from_millis(200);

/// Receive requests of a point whose sender cannot see how far the receiver is: enough for a burst, on RC as well.
pub(super) fn receives_of(point: &Point, ends: [&Facts; 2]) -> Receives {
    let most = TwoPorts(ends).longest_receive_queue(point);
    let whole = Point {
        depth: point.burst,
        ..*point
    };
    receive_requests(&whole, most)
}

/// Waits for a connection request of the other end; it comes no more once that has gone, or has told why it cannot.
fn requested_at(
    listener: &PassiveEndpoint,
    wire: &mut Wire,
) -> Result<ConnectionRequest, RunError> {
    let begun = Instant::now();
    loop {
        match listener.request(LOOK) {
            Err(CmError::TimedOut { .. }) if begun.elapsed() < STEP_LIMIT => {
                expect_nothing::<WireMessage>(wire, Duration::ZERO)?;
            }
            Err(mut error) => {
                if let CmError::TimedOut { limit, .. } = &mut error {
                    *limit = STEP_LIMIT;
                }
                return Err(error.into());
            }
            Ok(requested) => return Ok(requested),
        }
    }
}

impl OpenPort {
    fn place(&self) -> (&str, u8) {
        (&self.port.device.name, self.port.port.number)
    }

    /// The event channel and the address, for a point that the connection manager connects.
    fn by_manager(
        &self,
        settings: &EndpointSettings,
    ) -> Result<Option<(&Arc<EventChannel>, IpAddr)>, RunError> {
        if settings.point.connect == Connect::Direct {
            return Ok(None);
        }
        let address = self.port.address.ok_or(RunError::NoAddress)?;
        Ok(Some((self.channel()?, address)))
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
    ) -> Result<ReceivingHalf, RunError> {
        let side = LinkSide::Receiving;
        let (made, connections, listener) = match self.by_manager(settings)? {
            None => {
                let (made, connections) = self.directly(wire, peer, settings, side)?;
                (made, connections, None)
            }
            Some((channel, address)) => {
                let service = id_service(settings);
                let listener = PassiveEndpoint::listen(channel, service, self.place(), address, 1)?;
                send_message(wire, &WireMessage::Listening(listener.address()))?;
                let (mut made, mut connections) = (None, Vec::new());
                for _ in 0..settings.point.queue_pairs {
                    unless_interrupted()?;
                    let requested = requested_at(&listener, wire)?;
                    let (end, accepting) = accept_one(requested, made.take(), settings)?;
                    connections.push(Connection::Manager(accepting.established(STEP_LIMIT)?));
                    made = Some(end);
                }
                let made = made.expect("a point has a queue pair");
                (made, connections, Some(listener))
            }
        };
        let numbers = receive_message(wire, WORK, only!(WireMessage::Senders(numbers) => numbers))?;
        let link = made.connected(connections, self.port.port.number);
        let receiver = Receiver::new(link, settings, numbers);
        send_message(wire, &WireMessage::Slots(receiver.remote_slots()))?;
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
        let side = LinkSide::Sending;
        let (made, connections) = match self.by_manager(settings)? {
            None => self.directly(wire, peer, settings, side)?,
            Some((channel, from)) => {
                let to = receive_message(
                    wire,
                    WORK,
                    only!(WireMessage::Listening(address) => address),
                )?;
                let (mut made, mut connections) = (None, Vec::new());
                for _ in 0..settings.point.queue_pairs {
                    unless_interrupted()?;
                    let active = resolve(channel, self.place(), (from, to), settings)?;
                    let (end, connecting) = connect_one(active, made.take(), settings)?;
                    connections.push(Connection::Manager(connecting.established(STEP_LIMIT)?));
                    made = Some(end);
                }
                (made.expect("a point has a queue pair"), connections)
            }
        };
        let numbers = connections.iter().map(|one| one.queue_pair().number());
        send_message(wire, &WireMessage::Senders(numbers.collect()))?;
        let slots = receive_message(wire, WORK, only!(WireMessage::Slots(slots) => slots))?;
        let link = made.connected(connections, self.port.port.number);
        Sender::new(link, &settings.point, slots)
    }

    /// Without the connection manager: each end tells where its queue pairs are.
    fn directly(
        &self,
        wire: &mut Wire,
        peer: &Facts,
        settings: &EndpointSettings,
        side: LinkSide,
    ) -> Result<(EndResources, Vec<Connection>), RunError> {
        let path = &settings.point.path;
        let port = self.context().port(self.port.port.number)?;
        let gids: [&[Gid]; 2] = [&gid_table(self.context(), port.number), &peer.gids];
        let addresses = [self.port.address, peer.address];
        let [gid, _] = gids_of(addresses, gids, path.gid_index)?;
        let common = path_between([port.mtu, peer.mtu], port.link_layer, path);
        let (made, unconnected) =
            directly_here(self.context(), (&port, gid), settings, side, common)?;
        let here = unconnected
            .iter()
            .map(UnconnectedQueuePair::address)
            .collect();
        send_message(wire, &WireMessage::Addresses(here))?;
        let there = receive_message(wire, WORK, only!(WireMessage::Addresses(there) => there))?;
        if there.len() != unconnected.len() {
            let text = format!(
                "sent {} queue pairs instead of {}",
                there.len(),
                unconnected.len()
            );
            return Err(RunError::Peer(wire.peer(), Failure::Run(text)));
        }
        let each = unconnected.into_iter().zip(&there);
        let connect =
            |(one, peer): (UnconnectedQueuePair, _)| Ok(Connection::Direct(one.connect(peer)?));
        let connections = each.map(connect).collect::<Result<Vec<_>, RunError>>()?;
        Ok((made, connections))
    }
}
