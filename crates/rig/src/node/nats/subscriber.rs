//! The end of NATS that receives: its own thread drives the client's task that reads.

use std::fmt;

use async_nats::{Client, Subject, Subscriber};
use futures_util::{FutureExt as _, StreamExt as _};

use super::connection::NatsConnection;
use crate::node::broker_client::{ConnectDeadline, not_connected};
use crate::node::settings::Poll;
use crate::node::{Node, NodeError, Pool, Settings, Slot};

/// The end that receives.
pub struct NatsSubscriber {
    connection: NatsConnection,
    /// There once it is connected; the client ends without the first.
    subscription: Option<(Client, Subscriber)>,
    subject: Subject,
    queue_group: Option<String>,
    poll: Poll,
}

impl fmt::Debug for NatsSubscriber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("NatsSubscriber");
        shown
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

impl NatsSubscriber {
    /// A client that is to ask for a subject, in a queue group if that has a name.
    pub(super) fn new(
        subject: String,
        queue_group: Option<String>,
        settings: &Settings,
    ) -> Result<Self, NodeError> {
        Ok(NatsSubscriber {
            connection: NatsConnection::new(settings)?,
            subscription: None,
            subject: Subject::from(subject),
            queue_group,
            poll: settings.poll,
        })
    }
}

impl Node for NatsSubscriber {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let connection = &self.connection;
        let deadline = ConnectDeadline::new(connection.timeout);
        let client = connection.connect(&deadline, go_on)?;
        let subject = self.subject.clone();
        let subscribing = async {
            match self.queue_group.clone() {
                Some(group) => client.queue_subscribe(subject, group).await,
                None => client.subscribe(subject).await,
            }
        };
        let broker = &connection.broker;
        let subscribed = (connection.runtime).connect(subscribing, &deadline, broker, go_on)?;
        let subscription = subscribed.map_err(|error| not_connected(broker, error))?;
        self.subscription = Some((client, subscription));
        Ok(())
    }

    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let (_, subscription) = self.subscription.as_mut().expect("it was started");
        let mut received = 0;
        while received < samples.len() {
            // What has come along with the first is there already.
            let message = match received {
                0 => (self.connection.runtime).look(self.poll, subscription.next()),
                _ => subscription.next().now_or_never(),
            };
            match message {
                // What has another size was not sent by us.
                Some(Some(message)) => {
                    received += usize::from(pool.copy_in(&samples[received], &message.payload));
                }
                Some(None) => {
                    self.connection.close();
                    return self.connection.check().map(|()| received);
                }
                None => {
                    self.connection.check()?;
                    if received > 0 || !go_on() {
                        break;
                    }
                }
            }
        }
        Ok(received)
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        self.subscription = None;
        Ok(())
    }
}
