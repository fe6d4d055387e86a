//! What publishers and subscribers of Redis share: a client, and its connection.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo as _, RedisError, RedisResult, cmd,
};

use crate::node::broker_client::{
    ConnectDeadline, broker, lost, not_admitted, not_connected, of_client,
};
use crate::node::runtime::NodeRuntime;
use crate::node::settings::BrokerAddress;
use crate::node::{NodeError, Settings};

/// The field of an entry of a stream.
pub(super) const FIELD: &str = "sample";

/// The client of an end.
#[derive(Debug)]
pub(super) struct RedisClient {
    pub(super) runtime: NodeRuntime,
    pub(super) broker: BrokerAddress,
    timeout: Duration,
    client: Client,
    requests: usize,
}

impl RedisClient {
    /// A client with this many requests under way at most.
    pub(super) fn new(settings: &Settings, requests: usize) -> Result<Self, NodeError> {
        let broker = broker(settings)?.clone();
        let open = || {
            let server = format!("redis://{broker}").into_connection_info()?;
            Client::open(server.set_tcp_settings(TcpSettings::default().set_nodelay(true)))
        };
        let client = open().map_err(|error: RedisError| {
            NodeError::Setting(format!("--broker {broker}: {error}: use HOST:PORT"))
        })?;
        Ok(RedisClient {
            runtime: NodeRuntime::new()?,
            broker,
            timeout: settings.timeout,
            client,
            requests,
        })
    }

    /// Connects, for commands.
    pub(super) async fn commands(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(of_client(self.timeout)))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(self.requests);
        let connecting = (self.client).get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await?;
        // A server that requires a password takes connections, and refuses commands.
        cmd("PING").query_async::<()>(&mut connection).await?;
        Ok(connection)
    }

    /// Connects, and asks for what is sent to a channel.
    pub(super) async fn subscription(
        &self,
        channel: &str,
    ) -> RedisResult<redis::aio::PubSubStream> {
        let mut connection = self.client.get_async_pubsub().await?;
        connection.subscribe(channel).await?;
        Ok(connection.into_on_message())
    }

    /// Runs what connects, with the time and the stop flag in view.
    pub(super) fn connect<T>(
        &self,
        step: impl Future<Output = RedisResult<T>>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<T, NodeError> {
        let deadline = ConnectDeadline::new(self.timeout);
        let connected = (self.runtime).connect(step, &deadline, &self.broker, go_on)?;
        connected.map_err(|error| self.not_connected(error))
    }

    /// There is no connection, or the first command on it has failed.
    fn not_connected(&self, error: RedisError) -> NodeError {
        match (error.kind(), error.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, Some("NOAUTH" | "NOPERM" | "DENIED")) => {
                not_admitted(&self.broker, error)
            }
            _ => not_connected(&self.broker, error),
        }
    }

    /// A command has failed.
    pub(super) fn failed(&self, error: &RedisError) -> NodeError {
        let at = &self.broker;
        let refused = || format!("the broker at {at} refuses a command: {error}");
        match error.code() {
            // A publisher that has failed has removed the stream.
            Some("UNBLOCKED" | "NOGROUP") => NodeError::PeerEnded(refused()),
            _ if error.is_unrecoverable_error() => NodeError::Gone(lost(at, error)),
            _ => NodeError::Gone(refused()),
        }
    }
}
