//! Queue pairs of RC, UC and UD, connected by the RDMA connection manager.
//!
//! Inside the latency of a sample: `ibv_post_send`, both HCAs, the fabric between them, and `ibv_poll_cq`; with
//! `--poll event` the interrupt and the scheduler too. A publisher distributes its samples itself.
//!
//! - Write posts all samples of a call by one list of work requests, each put together of header and values. A sample
//!   that fits is copied into its request and released at once; each k-th of these is not, and is signalled instead, as
//!   only completions free a send queue. The others are signalled, and held until their completion.
//! - Start posts a threshold of receive requests, and read keeps as many posted: it takes completions, posts as many
//!   empty slots first, and gives out the full ones.
//! - At the end the queue pairs are made to fail, which flushes what is still posted: all of it completes, and the pool
//!   is whole again. What does not complete is missing in the pool, unless its device is gone.
//!
//! A sample goes to all of its targets or to none: there is room in all of their send queues before it is posted.
//!
//! A subscriber has a queue pair for each of its publishers, and one completion queue for all. On UD one queue pair
//! serves all peers: publishers send to the number that the subscriber accepts them with, and a publisher has an address
//! handle for each of its subscribers.
//!
//! An end is active if it is given addresses to connect to: publishers are. One that cannot connect fails, or falls
//! back to listening on its own address: then its subscriber connects, as soon as it has the address (`Notices`).
//!
//! | file | what is in it |
//! | --- | --- |
//! | `fabric` | the two ports, and what they can do |
//! | `rules` | what is decided without a device |
//! | `manager` | the thread that connects an end and watches its connections |
//! | `connector` | how the connections come about, and falling back |
//! | `fallback` | the five errors before a connection; where those listen that fell back |
//! | `publisher`, `subscriber` | write and read |

mod connector;
mod fabric;
mod fallback;
mod manager;
mod publisher;
pub mod rules;
mod subscriber;

pub use connector::SubscriberAddress;
pub use fabric::{Fabric, FabricRequest};
pub use fallback::Notices;
pub use publisher::InfiniBandPublisher;
pub use subscriber::InfiniBandSubscriber;

use std::net::SocketAddr;

use self::connector::{Active, ConnectRole, ConnectorSettings, Passive};
use self::fabric::{FabricPort, failed, queue_pair_lengths};
use self::manager::Manager;
use super::settings::Poll;
use super::wiring::Distribution;
use super::{Maker, NodeError, Settings, Wiring};
use crate::buffer::SharedMemory;
use crate::rdma::cm::{EventChannel, PassiveEndpoint};
use crate::rdma::verbs::Capabilities;

/// Makes ends: subscribers listen from then on. They are connected when they are started.
#[derive(Debug)]
pub struct InfiniBand<'a> {
    fabric: &'a Fabric,
    wiring: &'a Wiring,
    settings: &'a Settings,
    notices: Notices,
}

impl<'a> InfiniBand<'a> {
    /// Between these ports. `memory`: of all processes, where ends are processes (see [`Notices::shared`]).
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(
        fabric: &'a Fabric,
        wiring: &'a Wiring,
        settings: &'a Settings,
        memory: Option<&SharedMemory>,
    ) -> Result<Self, NodeError> {
        let notices = match memory {
            Some(memory) => Notices::in_shared(memory, wiring)?,
            None => Notices::new(wiring)?,
        };
        Ok(InfiniBand {
            fabric,
            wiring,
            settings,
            notices,
        })
    }
}

impl Maker for InfiniBand<'_> {
    type Publisher = InfiniBandPublisher;
    type Subscriber = InfiniBandSubscriber;
    type Address = SocketAddr;

    fn publisher(
        &self,
        number: u32,
        addresses: &[SocketAddr],
    ) -> Result<InfiniBandPublisher, NodeError> {
        let (fabric, wiring, settings) = (self.fabric, self.wiring, self.settings);
        let of_target = |subscriber: u32| SubscriberAddress {
            subscriber,
            address: addresses[subscriber as usize],
        };
        let targets = wiring.subscribers_of(number).map(of_target).collect();
        publisher(fabric, wiring, settings, number, targets, &self.notices)
    }

    fn subscriber(&self, number: u32) -> Result<(InfiniBandSubscriber, SocketAddr), NodeError> {
        let (fabric, wiring, settings) = (self.fabric, self.wiring, self.settings);
        subscriber(fabric, wiring, settings, number, &self.notices)
    }
}

/// One subscriber, and the address at which it listens from here on. It connects, too: to the publishers that report
/// that they cannot.
///
/// # Errors
/// When the address cannot be listened on.
pub fn subscriber(
    fabric: &Fabric,
    wiring: &Wiring,
    settings: &Settings,
    number: u32,
    notices: &Notices,
) -> Result<(InfiniBandSubscriber, SocketAddr), NodeError> {
    let end = &fabric.receiver;
    let (_, receiving) = queue_pair_lengths(wiring, settings);
    let mut way = way(fabric, wiring, settings, end, receiving)?;
    way.receive_events = settings.poll == Poll::Event;
    let channel = EventChannel::create().map_err(failed)?;
    let place = (end.device.as_str(), end.port);
    let publishers: Vec<u32> = wiring.publishers_of(number).collect();
    let waiting = publishers.len();
    let listener = PassiveEndpoint::listen(&channel, way.id_service, place, end.address, waiting);
    let listener = listener.map_err(failed)?;
    let address = listener.address();
    let role = ConnectRole::Passive(Passive {
        subscriber: number,
        listener,
        publishers,
        peers: fabric.sender.address,
        notices: notices.clone(),
    });
    let manager = Manager::new(channel, way, role)?;
    Ok((InfiniBandSubscriber::new(manager, settings), address))
}

/// One publisher, which connects to these subscribers when it is started. If it falls back to listening, it reports
/// that by the notices.
///
/// # Errors
/// When the connection manager is not available.
pub fn publisher(
    fabric: &Fabric,
    wiring: &Wiring,
    settings: &Settings,
    number: u32,
    targets: Vec<SubscriberAddress>,
    notices: &Notices,
) -> Result<InfiniBandPublisher, NodeError> {
    let (sending, _) = queue_pair_lengths(wiring, settings);
    let way = way(fabric, wiring, settings, &fabric.sender, sending)?;
    let role = ConnectRole::Active(Active {
        publisher: number,
        targets,
        notices: notices.clone(),
    });
    let manager = Manager::new(EventChannel::create().map_err(failed)?, way, role)?;
    let distribution = Distribution::new(wiring, number);
    Ok(InfiniBandPublisher::new(
        manager,
        settings,
        distribution,
        wiring.takes_turns(),
    ))
}

fn way(
    fabric: &Fabric,
    wiring: &Wiring,
    settings: &Settings,
    end: &FabricPort,
    capabilities: Capabilities,
) -> Result<ConnectorSettings, NodeError> {
    Ok(ConnectorSettings {
        service: settings.verbs.service,
        fallback: settings.verbs.fallback,
        id_service: fabric.id_service(settings.verbs.service)?,
        end: end.clone(),
        capabilities,
        receive_events: false,
        limit: settings.timeout,
        patience: settings.patience(wiring),
    })
}
