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
use super::{Ends, NodeError, Settings, Wiring};
use crate::rdma::cm::{EventChannel, PassiveEndpoint};
use crate::rdma::verbs::Capabilities;

/// Makes all ends: subscribers listen from here on. They are connected when they are started.
///
/// # Errors
/// When an address cannot be listened on.
pub fn ends(
    fabric: &Fabric,
    wiring: &Wiring,
    settings: &Settings,
) -> Result<Ends<Publisher, Subscriber>, NodeError> {
    let verbs = &settings.verbs;
    let id_service = fabric.id_service(verbs.service)?;
    let way = |end: &End, capabilities: Capabilities, receive_events: bool| Way {
        service: verbs.service,
        id_service,
        end: end.clone(),
        capabilities,
        receive_events,
        limit: settings.timeout,
    };
    let (sending, receiving) = queue_pair_lengths(settings);
    let mut ends = Ends {
        publishers: Vec::new(),
        subscribers: Vec::new(),
    };
    let mut addresses = Vec::new();
    for number in 0..wiring.subscribers {
        let channel = EventChannel::create().map_err(failed)?;
        let end = &fabric.receiver;
        let place = (end.device.as_str(), end.port);
        let peers = wiring.publishers_of(number).count();
        let listener = PassiveEndpoint::listen(&channel, id_service, place, end.address, peers);
        let listener = listener.map_err(failed)?;
        addresses.push(listener.address());
        let role = Role::Passive(listener, peers);
        let way = way(end, receiving, settings.poll == Poll::Event);
        let manager = Manager::new(channel, way, role)?;
        ends.subscribers.push(Subscriber::new(manager, settings));
    }
    for number in 0..wiring.publishers {
        let channel = EventChannel::create().map_err(failed)?;
        let targets = wiring.subscribers_of(number);
        let role = Role::Active(targets.map(|target| addresses[target as usize]).collect());
        let manager = Manager::new(channel, way(&fabric.sender, sending, false), role)?;
        let distribution = Distribution::new(wiring, number);
        let publisher = Publisher::new(manager, settings, distribution, wiring.takes_turns());
        ends.publishers.push(publisher);
    }
    Ok(ends)
}
