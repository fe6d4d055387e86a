//! What publishers and subscribers of MQTT share: a client, and its event loop.

use rumqttc::NetworkOptions;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{AsyncClient, EventLoop, MqttOptions};

use crate::node::broker_client::broker;
use crate::node::settings::Qos;
use crate::node::{NodeError, Settings};

/// Bytes of a packet beside its sample: the topic, and what MQTT adds.
const BESIDE_THE_SAMPLE: usize = 1024;

/// A client of that name, which holds this many requests and waits for as many acknowledgements.
///
/// # Errors
/// When there is no broker.
pub(super) fn client(
    name: String,
    settings: &Settings,
    requests: u32,
) -> Result<(AsyncClient, EventLoop), NodeError> {
    let broker = broker(settings)?;
    let mut options = MqttOptions::new(name, &broker.host, broker.port);
    let mut network = NetworkOptions::new();
    network.set_tcp_nodelay(true);
    let packet = settings.words * crate::node::pool::WORD + BESIDE_THE_SAMPLE;
    options
        .set_network_options(network)
        // The thread that waits for the connection gives up first, and reports it.
        .set_connection_timeout(settings.timeout.as_secs() + 2)
        .set_max_packet_size(u32::try_from(packet).ok())
        .set_outgoing_inflight_upper_limit(u16::try_from(requests).unwrap_or(u16::MAX));
    Ok(AsyncClient::new(options, requests as usize))
}

/// What the broker promises, for the client.
pub(super) fn qos(qos: Qos) -> QoS {
    match qos {
        Qos::AtMostOnce => QoS::AtMostOnce,
        Qos::AtLeastOnce => QoS::AtLeastOnce,
        Qos::ExactlyOnce => QoS::ExactlyOnce,
    }
}
