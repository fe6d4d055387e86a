//! What publishers and subscribers of NATS share: a client, and what it has reported of its connection.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, Statistics};

use crate::node::broker_client::{
    ConnectDeadline, broker, lost, not_admitted, not_connected, of_client,
};
use crate::node::runtime::NodeRuntime;
use crate::node::settings::BrokerAddress;
use crate::node::{NodeError, Settings};

/// The connection of an end.
#[derive(Debug)]
pub(super) struct NatsConnection {
    pub(super) runtime: NodeRuntime,
    pub(super) broker: BrokerAddress,
    pub(super) timeout: Duration,
    send_queue: usize,
    receive_queue: usize,
    state: Arc<ConnectionState>,
    /// Its counts, once it is connected. It reports an event only where there is room for it.
    statistics: OnceLock<Arc<Statistics>>,
}

/// What the client has reported of it. It would connect again by itself, and lose samples meanwhile.
#[derive(Debug, Default)]
struct ConnectionState {
    ended: AtomicBool,
    /// The error that the server has sent.
    reason: Mutex<Option<String>>,
}

impl ConnectionState {
    fn record(&self, event: Event) {
        match event {
            Event::ServerError(error) => {
                let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
                *reason = Some(error.to_string());
            }
            Event::Disconnected | Event::Closed | Event::ClientError(_) => {}
            _ => return,
        }
        self.ended.store(true, Ordering::Release);
    }
}

impl NatsConnection {
    pub(super) fn new(settings: &Settings) -> Result<Self, NodeError> {
        Ok(NatsConnection {
            runtime: NodeRuntime::new()?,
            broker: broker(settings)?.clone(),
            timeout: settings.timeout,
            send_queue: settings.send_queue as usize,
            receive_queue: settings.receive_queue as usize,
            state: Arc::default(),
            statistics: OnceLock::new(),
        })
    }

    pub(super) fn connect(
        &self,
        deadline: &ConnectDeadline,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Client, NodeError> {
        let state = Arc::clone(&self.state);
        let connecting = ConnectOptions::new()
            .connection_timeout(of_client(self.timeout))
            .client_capacity(self.send_queue)
            .subscription_capacity(self.receive_queue)
            // There is no such file: TLS, for which this program has no cryptography, ends in an error that the client
            // returns, and not in a panic of it.
            .add_root_certificates(PathBuf::new())
            .event_callback(move |event| {
                state.record(event);
                async {}
            })
            .connect(self.broker.to_string());
        let connected = (self.runtime).connect(connecting, deadline, &self.broker, go_on)?;
        let client = connected.map_err(|error| self.failed(&error))?;
        let _ = self.statistics.set(client.statistics());
        Ok(client)
    }

    fn failed(&self, error: &ConnectError) -> NodeError {
        match error.kind() {
            ConnectErrorKind::Tls => not_admitted(&self.broker, "the server requires TLS"),
            ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                not_admitted(&self.broker, error)
            }
            _ => not_connected(&self.broker, error),
        }
    }

    /// The connection has ended, for a reason of the client's.
    pub(super) fn close(&self) {
        self.state.record(Event::Closed);
    }

    /// # Errors
    /// When the connection has ended.
    #[inline]
    pub(super) fn check(&self) -> Result<(), NodeError> {
        let connects = |it: &Arc<Statistics>| it.connects.load(Ordering::Relaxed);
        let is_another = self.statistics.get().map_or(0, connects) > 1;
        if !is_another && !self.state.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = self.state.reason.lock();
        let reason = reason.unwrap_or_else(PoisonError::into_inner).clone();
        let reason = reason.unwrap_or_else(|| "the server has closed it".to_owned());
        Err(NodeError::Gone(lost(&self.broker, reason)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::testing::Has as _;

    /// A server that answers that many clients with this, and closes each connection.
    fn connection_to(info: &'static str, answer: &'static str, clients: usize) -> NatsConnection {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(clients) {
                let mut stream = BufReader::new(stream.unwrap());
                let _ = write!(stream.get_mut(), "INFO {info}\r\n");
                let mut line = String::new();
                while !line.contains("PING") && stream.read_line(&mut line).is_ok_and(|it| it > 0) {
                }
                let _ = write!(stream.get_mut(), "{answer}\r\n");
            }
        });
        let host = Ipv4Addr::LOCALHOST.to_string();
        NatsConnection::new(&Settings {
            broker: Some(BrokerAddress { host, port }),
            ..Settings::of_words(1)
        })
        .unwrap()
    }

    fn connect(connection: &NatsConnection) -> Result<Client, NodeError> {
        let deadline = ConnectDeadline::new(Duration::from_secs(10));
        connection.connect(&deadline, &mut || true)
    }

    #[test]
    fn a_second_connection_is_found_without_an_event() {
        let connection = connection_to("{\"max_payload\":1024}", "PONG", 2);
        let client = connect(&connection).unwrap();
        let connects = || client.statistics().connects.load(Ordering::Relaxed);
        let begun = std::time::Instant::now();
        while connects() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(10), "{}", connects());
            let step = async { tokio::time::sleep(Duration::from_millis(1)).await };
            connection.runtime.block_on(step);
        }
        connection.state.ended.store(false, Ordering::Release);
        let error = connection.check().unwrap_err();
        assert!(matches!(error, NodeError::Gone(_)), "{error}");
    }

    #[test]
    fn a_server_that_requires_tls_or_a_password_is_refused() {
        for (info, answer) in [
            ("{\"tls_required\":true}", ""),
            ("{}", "-ERR 'Authorization Violation'"),
        ] {
            let error = connect(&connection_to(info, answer, 1)).unwrap_err();
            error
                .to_string()
                .has(&["no password and no TLS", "--broker spawn"]);
        }
    }
}
