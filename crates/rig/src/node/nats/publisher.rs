//! The end of NATS that sends: its own thread drives the client's task that writes.

use std::time::Duration;

use async_nats::{Client, Subject};
use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::connection::NatsConnection;
use crate::node::broker_client::ConnectDeadline;
use crate::node::{Node, NodeError, Pool, Settings, Slot};

/// How long is waited at the end for what was not sent yet.
const LONGEST_END: Duration = Duration::from_secs(1);

/// The end that sends.
#[derive(Debug)]
pub struct NatsPublisher {
    connection: NatsConnection,
    /// There once it is connected.
    client: Option<Client>,
    subject: Subject,
}

impl NatsPublisher {
    /// A client that is to send to a subject.
    pub(super) fn new(subject: String, settings: &Settings) -> Result<Self, NodeError> {
        Ok(NatsPublisher {
            connection: NatsConnection::new(settings)?,
            client: None,
            subject: Subject::from(subject),
        })
    }
}

impl Node for NatsPublisher {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let deadline = ConnectDeadline::new(self.connection.timeout);
        self.client = Some(self.connection.connect(&deadline, go_on)?);
        Ok(())
    }

    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        self.connection.check()?;
        let client = self.client.as_ref().expect("it was started");
        let mut taken = 0;
        self.connection.runtime.block_on(async {
            for slot in &*samples {
                // The client takes subject and payload over.
                let sample = pool.bytes(slot).to_vec().into();
                let sent = client.publish(self.subject.clone(), sample).now_or_never();
                // No room; a channel that has been closed shows at the next call.
                if !matches!(sent, Some(Ok(()))) {
                    break;
                }
                taken += 1;
            }
            // The task that writes runs.
            tokio::task::yield_now().await;
        });
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), NodeError> {
        self.connection.check()?;
        (self.connection.runtime).block_on(tokio::task::yield_now());
        Ok(())
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        if let Some(client) = self.client.take() {
            let flushed = async { timeout(LONGEST_END, client.flush()).await };
            // What is not sent by then is lost.
            let _ = self.connection.runtime.block_on(flushed);
        }
        Ok(())
    }
}
