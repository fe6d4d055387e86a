//! Two connected queue pairs with their memory, for one point: where the sending and the receiving end meet.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::config::Service;
use super::error::RunError;
use super::receiving_end::Receiver;
use super::sending_end::Sender;
pub use super::verbs_link::EndpointSettings;
use super::verbs_link::{Made, on_cpu};
use crate::rdma::cm::{ActiveEndpoint, EventChannel, IdService, PassiveEndpoint};
use crate::rdma::verbs::Access;

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
    /// The address that leads to it.
    pub address: IpAddr,
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
    _listener: PassiveEndpoint,
}

impl Endpoints {
    /// Connects `sender` to `receiver`.
    pub fn connect(
        channel: &Arc<EventChannel>,
        sender: &EndPort,
        receiver: &EndPort,
        settings: &EndpointSettings,
    ) -> Result<Self, RunError> {
        let service = match settings.point.service {
            Service::Uc => IdService::UnreliableConnection(settings.uc_route),
            Service::Rc => IdService::ReliableConnection,
            Service::Ud => IdService::UnreliableDatagram,
        };
        let to = (receiver.device.as_str(), receiver.port);
        let listener = PassiveEndpoint::listen(channel, service, to, receiver.address)?;
        let from = (sender.device.as_str(), sender.port);
        let active = ActiveEndpoint::resolve(
            channel,
            service,
            from,
            sender.address,
            listener.address(),
            STEP_LIMIT,
        )?;
        let context = active.context();
        let source = || Made::new(&context, settings, Access::Send);
        let source = on_cpu(settings.sender_cpu, source)??;
        // The device's library allocates and clears the queues on the CPU that makes the queue pair.
        let connect = || active.connect(source.region.domain(), source.attributes.clone());
        let active = on_cpu(settings.sender_cpu, connect)??;

        let requested = listener.request(STEP_LIMIT)?;
        let context = requested.context();
        let target = || Made::new(&context, settings, Access::Receive);
        let target = on_cpu(settings.receiver_cpu, target)??;
        let accept = || requested.accept(target.region.domain(), target.attributes.clone());
        let passive = on_cpu(settings.receiver_cpu, accept)??;
        let active = active.established(STEP_LIMIT)?;
        let passive = passive.established(STEP_LIMIT)?;
        let source_number = active.queue_pair().number();
        let target = target.connected(passive, receiver.port);
        let receiver = Receiver::new(target, &settings.point, source_number);
        let source = source.connected(active, sender.port);
        let sender = Sender::new(source, &settings.point, receiver.slots_for_writing())?;
        Ok(Endpoints {
            sender: Arc::new(sender),
            receiver: Arc::new(receiver),
            _listener: listener,
        })
    }
}
