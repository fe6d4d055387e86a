//! The end of MQTT that sends: its thread hands samples to a channel, and another one writes them to the connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumqttc::Outgoing;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, PubAckReason, PubCompReason};
use rumqttc::v5::{AsyncClient, ClientError, Event, EventLoop};
use tokio::sync::Notify;

use super::connection::{client, qos};
use crate::host::threads;
use crate::node::broker_client::{ConnectDeadline, broker, lost, not_connected};
use crate::node::runtime::NodeRuntime;
use crate::node::settings::BrokerAddress;
use crate::node::{BETWEEN_LOOKS, Node, NodeError, Pool, Settings, Slot};

/// How long is waited at the end for acknowledgements, and for the connection to be closed in order.
const LONGEST_END: Duration = Duration::from_secs(1);

/// The end that sends.
#[derive(Debug)]
pub struct MqttPublisher {
    client: AsyncClient,
    topic: String,
    qos: QoS,
    broker: BrokerAddress,
    timeout: Duration,
    link: Arc<ConnectionState>,
    thread: Option<JoinHandle<()>>,
    taken: u64,
}

/// The state of the thread behind the channel.
#[derive(Debug, Default)]
struct ConnectionState {
    connected: AtomicBool,
    acknowledged: AtomicU64,
    ended: AtomicBool,
    /// Why it has ended; set before `ended` is.
    reason: Mutex<Option<String>>,
    stop: Notify,
}

impl ConnectionState {
    fn reason(&self) -> String {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = "the thread of the client has ended";
        reason.clone().unwrap_or_else(|| unknown.to_owned())
    }
}

impl MqttPublisher {
    /// A client that publishes to a topic. Its thread is started by this one, and runs where this one may.
    pub(super) fn new(name: String, topic: String, settings: &Settings) -> Result<Self, NodeError> {
        let (client, events) = client(name, settings, settings.send_queue)?;
        let broker = broker(settings)?.clone();
        let link = Arc::new(ConnectionState::default());
        let drive = EventLoopTask {
            events,
            broker: broker.clone(),
            link: Arc::clone(&link),
        };
        let runtime = NodeRuntime::new()?;
        let thread = std::thread::Builder::new().name("hcabench-mqtt".to_owned());
        let thread = threads::start(thread, move || drive.run(&runtime))?;
        Ok(MqttPublisher {
            client,
            topic,
            qos: qos(settings.qos),
            broker,
            timeout: settings.timeout,
            link,
            thread: Some(thread),
            taken: 0,
        })
    }

    /// Waits until something is so, the connection has ended, or it has lasted too long.
    fn wait_for(&self, is_so: impl Fn(&ConnectionState) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.link)
            && !self.link.ended.load(Ordering::Acquire)
            && begun.elapsed() < LONGEST_END
        {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}

impl Node for MqttPublisher {
    fn start(
        &mut self,
        _pool: &mut Pool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), NodeError> {
        let patience = ConnectDeadline::new(self.timeout);
        while !self.link.connected.load(Ordering::Acquire) {
            if self.link.ended.load(Ordering::Acquire) {
                return Err(not_connected(&self.broker, self.link.reason()));
            }
            patience.check(&self.broker, go_on)?;
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn write(&mut self, pool: &mut Pool, samples: &mut Vec<Slot>) -> Result<usize, NodeError> {
        if self.link.ended.load(Ordering::Acquire) {
            return Err(NodeError::Gone(self.link.reason()));
        }
        let mut taken = 0;
        for slot in &*samples {
            // The client wants topic and payload as its own.
            let sent =
                (self.client).try_publish(&*self.topic, self.qos, false, pool.bytes(slot).to_vec());
            match sent {
                Ok(()) => taken += 1,
                // No room; a channel that has been closed shows at the next call.
                Err(ClientError::TryRequest(_) | ClientError::Request(_)) => break,
            }
        }
        self.taken += taken as u64;
        Ok(taken)
    }

    fn stop(&mut self, _pool: &mut Pool) -> Result<(), NodeError> {
        if self.qos != QoS::AtMostOnce {
            self.wait_for(|link| link.acknowledged.load(Ordering::Relaxed) >= self.taken);
        }
        // Without room for it the connection is cut.
        if self.client.try_disconnect().is_ok() {
            self.wait_for(|_| false);
        }
        Ok(())
    }

    fn acknowledged(&self) -> Option<u64> {
        let count = self.link.acknowledged.load(Ordering::Relaxed);
        (self.qos != QoS::AtMostOnce).then_some(count)
    }
}

impl Drop for MqttPublisher {
    fn drop(&mut self) {
        self.link.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of it must not cause another.
            let _ = thread.join();
        }
    }
}

/// The work of the thread behind the channel.
struct EventLoopTask {
    events: EventLoop,
    broker: BrokerAddress,
    link: Arc<ConnectionState>,
}

impl EventLoopTask {
    fn run(mut self, runtime: &NodeRuntime) {
        let reason = runtime.block_on(async {
            tokio::select! {
                () = self.link.stop.notified() => None,
                reason = drive(&mut self.events, &self.broker, &self.link) => reason,
            }
        });
        *(self.link.reason.lock()).unwrap_or_else(PoisonError::into_inner) = reason;
        self.link.ended.store(true, Ordering::Release);
    }
}

/// Writes what comes from the channel, until the connection ends; why, unless we have closed it.
async fn drive(
    events: &mut EventLoop,
    broker: &BrokerAddress,
    link: &ConnectionState,
) -> Option<String> {
    loop {
        let is_acknowledged = match events.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(_))) => {
                link.connected.store(true, Ordering::Release);
                false
            }
            Ok(Event::Incoming(Packet::PubAck(it))) => matches!(
                it.reason,
                PubAckReason::Success | PubAckReason::NoMatchingSubscribers
            ),
            Ok(Event::Incoming(Packet::PubComp(it))) => it.reason == PubCompReason::Success,
            Ok(Event::Outgoing(Outgoing::Disconnect)) => return None,
            Ok(_) => false,
            Err(error) if link.connected.load(Ordering::Relaxed) => {
                return Some(lost(broker, error));
            }
            Err(error) => return Some(error.to_string()),
        };
        link.acknowledged
            .fetch_add(u64::from(is_acknowledged), Ordering::Relaxed);
    }
}
