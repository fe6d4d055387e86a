//! The end of NATS that receives: its own thread drives the client's task that reads.

use std::fmt;

use async_nats::{Client, Subject, Subscriber};
use futures_util::{FutureExt as _, StreamExt as _};

use super::connection::NatsConnection;
use crate::node::broker_client::{ConnectDeadline, not_connected};
use crate::node::settings::Poll;
use crate::node::{Node, NodeError, Pool, Settings, Slot, fill};

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
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |end: &mut Self, free: &[Slot], is_first| {
            let connection = &mut end.connection;
            let (_, subscription) = end.subscription.as_mut().expect("it was started");
            let message = match is_first {
                true => (connection.runtime).look(end.poll, subscription.next()),
                false => subscription.next().now_or_never(),
            };
            if let Some(Some(message)) = &message {
                return Ok(Some(pool.copy_in(&free[0], &message.payload).into()));
            }
            if message.is_some() {
                connection.close();
            }
            connection.check().map(|()| None)
        };
        fill(self, samples, go_on, look, |_| {})
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        self.subscription = None;
        Ok(())
    }
}
