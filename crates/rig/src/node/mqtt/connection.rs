//! What publishers and subscribers of MQTT share: a client, its event loop, and the runtime that drives it.

use std::time::{Duration, Instant};

use rumqttc::NetworkOptions;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::{AsyncClient, ConnectionError, EventLoop, MqttOptions};
use tokio::runtime::Runtime;

use crate::node::settings::{BrokerAddress, Qos};
use crate::node::{NodeError, Settings};

/// Bytes of a packet beside its sample: the topic, and what MQTT adds.
const BESIDE_THE_SAMPLE: usize = 1024;

/// The broker of a run.
///
/// # Errors
/// When none was given: it is the caller's to start one.
pub(super) fn broker(settings: &Settings) -> Result<&BrokerAddress, NodeError> {
    let none = || NodeError::Setting("the node-type mqtt takes a broker: --broker".to_owned());
    settings.broker.as_ref().ok_or_else(none)
}

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

/// A runtime that is dropped without waiting for what it has not finished: a name lookup may take long.
#[derive(Debug)]
pub(super) struct MqttRuntime(Option<Runtime>);

impl MqttRuntime {
    /// Runs to its end in this thread.
    #[inline]
    pub(super) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let runtime = self.0.as_ref();
        runtime
            .expect("it is there until it is dropped")
            .block_on(future)
    }
}

impl Drop for MqttRuntime {
    fn drop(&mut self) {
        self.0
            .take()
            .into_iter()
            .for_each(Runtime::shutdown_background);
    }
}

/// A runtime for one event loop, in the thread that asks it.
///
/// # Errors
/// When there is no file left.
pub(super) fn runtime() -> Result<MqttRuntime, NodeError> {
    let made = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    made.map(|runtime| MqttRuntime(Some(runtime)))
        .map_err(NodeError::io("epoll_create", "a node", "see man 7 epoll"))
}

/// The same in the client's words.
pub(super) fn qos(qos: Qos) -> QoS {
    match qos {
        Qos::AtMostOnce => QoS::AtMostOnce,
        Qos::AtLeastOnce => QoS::AtLeastOnce,
        Qos::ExactlyOnce => QoS::ExactlyOnce,
    }
}

/// There is no connection.
pub(super) fn not_connected(broker: &BrokerAddress, reason: impl ToString) -> NodeError {
    let reason = reason.to_string();
    NodeError::NoBroker(format!(
        "--broker {broker}: cannot connect: {reason}: check that a broker runs there and can be reached"
    ))
}

/// There is none any more.
pub(super) fn lost(broker: &BrokerAddress, error: &ConnectionError) -> String {
    format!("the connection to the broker at {broker} has ended: {error}: check that it still runs")
}

/// How long connecting may still take.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectDeadline {
    begun: Instant,
    limit: Duration,
}

impl ConnectDeadline {
    /// From now on.
    pub(super) fn new(limit: Duration) -> Self {
        ConnectDeadline {
            begun: Instant::now(),
            limit,
        }
    }

    /// That the stop flag is not raised, and time is left.
    ///
    /// # Errors
    /// Else.
    pub(super) fn check(
        &self,
        broker: &BrokerAddress,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        if !go_on() {
            return Err(NodeError::GivenUp);
        }
        if self.begun.elapsed() < self.limit {
            return Ok(());
        }
        let limit = self.limit.as_secs_f64();
        Err(not_connected(
            broker,
            format!("no answer within {limit} s (--timeout)"),
        ))
    }
}
