//! The end of MQTT that receives: its own thread drives the client's event loop.

use std::fmt;
use std::time::Duration;

use rumqttc::Outgoing;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, SubscribeReasonCode};
use rumqttc::v5::{AsyncClient, ConnectionError, Event, EventLoop};

use super::connection::{client, qos};
use crate::node::broker_client::{ConnectDeadline, broker, lost, not_connected};
use crate::node::runtime::NodeRuntime;
use crate::node::settings::{BrokerAddress, Poll};
use crate::node::{Node, NodeError, Pool, Settings, Slot, fill};

/// Requests that it has at once: to subscribe, to disconnect.
const REQUESTS: u32 = 2;
/// Events that are awaited at the end, for the connection to be closed in order.
const LAST_EVENTS: u32 = 100;

/// The end that receives.
pub struct MqttSubscriber {
    client: AsyncClient,
    events: EventLoop,
    runtime: NodeRuntime,
    filter: String,
    qos: QoS,
    broker: BrokerAddress,
    timeout: Duration,
    poll: Poll,
    connected: bool,
}

impl fmt::Debug for MqttSubscriber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Subscriber");
        shown.field("filter", &self.filter).finish_non_exhaustive()
    }
}

impl MqttSubscriber {
    /// A client that is to subscribe to a filter.
    pub(super) fn new(
        name: String,
        filter: String,
        settings: &Settings,
    ) -> Result<Self, NodeError> {
        let (client, events) = client(name, settings, REQUESTS)?;
        Ok(MqttSubscriber {
            client,
            events,
            runtime: NodeRuntime::new()?,
            filter,
            qos: qos(settings.qos),
            broker: broker(settings)?.clone(),
            timeout: settings.timeout,
            poll: settings.poll,
            connected: false,
        })
    }

    /// The next event, however long it takes; connecting goes on where it was.
    fn next(
        &mut self,
        patience: &ConnectDeadline,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Event, NodeError> {
        let event = self.events.poll();
        match (self.runtime).connect(event, patience, &self.broker, go_on)? {
            Ok(event) => Ok(event),
            Err(error) if self.connected => Err(NodeError::Gone(lost(&self.broker, error))),
            Err(error) => Err(not_connected(&self.broker, error)),
        }
    }

    /// Looks for an event, and sleeps until there is one or it has looked long enough, if it may.
    #[inline]
    fn look(&mut self) -> Result<Option<Event>, ConnectionError> {
        // The client keeps in itself what it has begun: to give a poll up loses nothing.
        let found = self.runtime.look(self.poll, self.events.poll());
        found.transpose()
    }
}

impl Node for MqttSubscriber {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let patience = ConnectDeadline::new(self.timeout);
        while !matches!(
            self.next(&patience, go_on)?,
            Event::Incoming(Packet::ConnAck(_))
        ) {}
        self.connected = true;
        let asked = self.client.try_subscribe(&*self.filter, self.qos);
        asked.map_err(|error| not_connected(&self.broker, error))?;
        loop {
            let Event::Incoming(Packet::SubAck(answer)) = self.next(&patience, go_on)? else {
                continue;
            };
            let granted = [SubscribeReasonCode::Success(self.qos)];
            if answer.return_codes == granted {
                return Ok(());
            }
            return Err(NodeError::Setting(format!(
                "--broker {}: it does not grant a subscription to {} with --qos {}: {:?}",
                self.broker, self.filter, self.qos as u8, answer.return_codes
            )));
        }
    }

    fn read(
        &mut self,
        pool: &mut Pool,
        samples: &mut Vec<Slot>,
        go_on: impl FnMut() -> bool,
    ) -> Result<usize, NodeError> {
        let look = |end: &mut Self, free: &[Slot], is_first: bool| {
            let event = match is_first {
                true => end.look(),
                false => Ok(end.events.state.events.pop_front()),
            };
            match event {
                Ok(Some(Event::Incoming(Packet::Publish(publish)))) => {
                    Ok(Some(pool.copy_in(&free[0], &publish.payload).into()))
                }
                Ok(event) => Ok(event.map(|_| 0)),
                Err(error) => Err(NodeError::Gone(lost(&end.broker, error))),
            }
        };
        fill(self, samples, go_on, look, |_| {})
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        // Without room for it, or where the broker does not answer, the connection is cut.
        if self.client.try_disconnect().is_ok() {
            self.poll = Poll::Event;
            for _ in 0..LAST_EVENTS {
                match self.look() {
                    Ok(Some(Event::Outgoing(Outgoing::Disconnect)) | None) | Err(_) => break,
                    Ok(Some(_)) => {}
                }
            }
        }
        Ok(())
    }
}
