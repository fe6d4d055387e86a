//! Queue pairs of RC, UC and UD, connected by the RDMA connection manager.
//!
//! Inside the latency of a sample: `ibv_post_send`, both HCAs, the fabric between them, and `ibv_poll_cq`; with
//! `--poll event` the interrupt and the scheduler too. A publisher distributes its samples itself.
//!
//! - Write posts all samples of a call by one list of work requests, each put together of header and values. A sample
//!   that fits is copied into its request and released at once; each k-th of these is not, and is signalled instead, as
//!   only completions free a send queue. The others are signalled, and held until their completion.
//! - Read keeps a threshold of receive requests posted. It takes completions, posts as many empty slots first, and
//!   gives out the full ones.
//! - At the end the queue pairs are made to fail, which flushes what is still posted: the pool is whole again.
//!
//! A subscriber has a queue pair for each of its publishers, and one completion queue for all. On UD a publisher sends
//! by one queue pair, with an address handle for each of its subscribers.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `fabric` | the two ports, and what they can do |
//! | `rules` | what is decided without a device |
//! | `manager` | the thread that connects an end and watches its connections |
//! | `publisher`, `subscriber` | write and read |

use std::net::SocketAddr;
use std::sync::Arc;

mod fabric;
mod manager;
mod publisher;
pub mod rules;
mod subscriber;

pub use fabric::{Fabric, FabricRequest};
pub use publisher::Publisher;
pub use subscriber::Subscriber;

use self::fabric::{End, failed, queue_pair_lengths};
use self::manager::{Manager, Role, Way};
use super::settings::Poll;
use super::wiring::Distribution;
use super::{Maker, NodeError, Settings, Wiring};
use crate::rdma::cm::{EventChannel, PassiveEndpoint};
use crate::rdma::verbs::Capabilities;

/// Makes ends: subscribers listen from then on. They are connected when they are started.
#[derive(Debug)]
pub struct InfiniBand<'a> {
    /// The two ports.
    pub fabric: &'a Fabric,
    /// Who hears whom.
    pub wiring: &'a Wiring,
    /// What concerns it of these.
    pub settings: &'a Settings,
}

impl InfiniBand<'_> {
    fn manager(
        &self,
        channel: Arc<EventChannel>,
        end: &End,
        capabilities: Capabilities,
        receive_events: bool,
        role: Role,
    ) -> Result<Manager, NodeError> {
        let service = self.settings.verbs.service;
        let way = Way {
            service,
            id_service: self.fabric.id_service(service)?,
            end: end.clone(),
            capabilities,
            receive_events,
            limit: self.settings.timeout,
        };
        Manager::new(channel, way, role)
    }
}

impl Maker for InfiniBand<'_> {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    /// Where it is; a subscriber listens there.
    type Told = SocketAddr;

    fn publisher(
        &self,
        number: u32,
        told: &[SocketAddr],
    ) -> Result<(Publisher, SocketAddr), NodeError> {
        let (wiring, settings) = (self.wiring, self.settings);
        let targets = wiring.subscribers_of(number);
        let role = Role::Active(targets.map(|it| told[it as usize]).collect());
        let (sending, _) = queue_pair_lengths(settings);
        let channel = EventChannel::create().map_err(failed)?;
        let manager = self.manager(channel, &self.fabric.sender, sending, false, role)?;
        let distribution = Distribution::new(wiring, number);
        let publisher = Publisher::new(manager, settings, distribution, wiring.takes_turns());
        Ok((publisher, SocketAddr::new(self.fabric.sender.address, 0)))
    }

    fn subscriber(
        &self,
        number: u32,
        _told: &[SocketAddr],
    ) -> Result<(Subscriber, SocketAddr), NodeError> {
        let (end, settings) = (&self.fabric.receiver, self.settings);
        let id_service = self.fabric.id_service(settings.verbs.service)?;
        let channel = EventChannel::create().map_err(failed)?;
        let place = (end.device.as_str(), end.port);
        let peers = self.wiring.publishers_of(number).count();
        let listener = PassiveEndpoint::listen(&channel, id_service, place, end.address, peers);
        let listener = listener.map_err(failed)?;
        let address = listener.address();
        let role = Role::Passive(listener, peers);
        let (_, receiving) = queue_pair_lengths(settings);
        let events = settings.poll == Poll::Event;
        let manager = self.manager(channel, end, receiving, events, role)?;
        Ok((Subscriber::new(manager, settings), address))
    }
}
