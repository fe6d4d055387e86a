//! What publishers and subscribers of NATS share: a client, and what it has reported of its connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};

use crate::node::broker_client::{ClientRuntime, ConnectDeadline, broker, lost, not_connected};
use crate::node::settings::BrokerAddress;
use crate::node::{NodeError, Settings};

/// How much longer than `--timeout` the client itself waits: the thread that waits for it gives up first, and reports
/// it.
const LONGER: Duration = Duration::from_secs(2);

/// The connection of an end.
#[derive(Debug)]
pub(super) struct NatsConnection {
    pub(super) runtime: ClientRuntime,
    pub(super) broker: BrokerAddress,
    pub(super) timeout: Duration,
    send_queue: usize,
    receive_queue: usize,
    state: Arc<ConnectionState>,
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
            runtime: ClientRuntime::new()?,
            broker: broker(settings)?.clone(),
            timeout: settings.timeout,
            send_queue: settings.send_queue as usize,
            receive_queue: settings.receive_queue as usize,
            state: Arc::default(),
        })
    }

    pub(super) fn connect(
        &self,
        deadline: &ConnectDeadline,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Client, NodeError> {
        let state = Arc::clone(&self.state);
        let connecting = ConnectOptions::new()
            .connection_timeout(self.timeout.saturating_add(LONGER))
            .client_capacity(self.send_queue)
            .subscription_capacity(self.receive_queue)
            .event_callback(move |event| {
                state.record(event);
                async {}
            })
            .connect(self.broker.to_string());
        let connected = (self.runtime).connect(connecting, deadline, &self.broker, go_on)?;
        connected.map_err(|error| not_connected(&self.broker, error))
    }

    /// The connection has ended, for a reason of the client's.
    pub(super) fn close(&self) {
        self.state.record(Event::Closed);
    }

    /// # Errors
    /// When the connection has ended.
    #[inline]
    pub(super) fn check(&self) -> Result<(), NodeError> {
        if !self.state.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = self.state.reason.lock();
        let reason = reason.unwrap_or_else(PoisonError::into_inner).clone();
        let reason = reason.unwrap_or_else(|| "the server has closed it".to_owned());
        Err(NodeError::Gone(lost(&self.broker, reason)))
    }
}
