//! The node-types, by name.

use serde::{Deserialize, Serialize};

use super::fallback::Fallback;
use super::{Settings, Wiring, rings};
use crate::rig::named::Named;
use crate::rig::ports::Service;

/// A way to pass samples on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeType {
    /// Rings between threads: [`rings`].
    Loopback,
    /// Rings in shared memory: [`rings`].
    Shmem,
    /// Queue pairs: `infiniband` (feature `rdma`).
    InfiniBand,
    /// Datagrams: [`udp`](super::udp).
    Udp,
    /// By way of a broker: [`mqtt`](super::mqtt).
    #[cfg(feature = "mqtt")]
    Mqtt,
    /// Messages of libzmq: [`zeromq`](super::zeromq).
    #[cfg(feature = "zeromq")]
    Zeromq,
}

impl Named for NodeType {
    const ALL: &'static [Self] = &[
        NodeType::InfiniBand,
        NodeType::Shmem,
        NodeType::Udp,
        #[cfg(feature = "zeromq")]
        NodeType::Zeromq,
        #[cfg(feature = "mqtt")]
        NodeType::Mqtt,
        NodeType::Loopback,
    ];

    fn name(self) -> &'static str {
        match self {
            NodeType::Loopback => "loopback",
            NodeType::Shmem => "shmem",
            NodeType::InfiniBand => "infiniband",
            NodeType::Udp => "udp",
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => "mqtt",
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => "zeromq",
        }
    }
}

impl NodeType {
    /// Who sends a sample of several subscribers to each of them, or chooses one: `sender`, `library` or `broker`.
    pub fn distributed_by(self) -> &'static str {
        match self {
            NodeType::InfiniBand | NodeType::Loopback | NodeType::Shmem | NodeType::Udp => "sender",
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => "broker",
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => "library",
        }
    }

    /// Whether its samples go by way of a broker.
    pub fn takes_broker(self) -> bool {
        match self {
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => true,
            _ => false,
        }
    }

    /// Why this node-type cannot be wired, or told to wait, so, or not be used on this machine, if it cannot.
    pub fn refusal(self, wiring: &Wiring, settings: &Settings) -> Option<String> {
        wiring.refusal().or_else(|| match self {
            NodeType::InfiniBand if !cfg!(feature = "rdma") => Some(
                "--type infiniband is impossible: this hcabench was built without the feature rdma"
                    .to_owned(),
            ),
            NodeType::InfiniBand => {
                let verbs = &settings.verbs;
                let blind = verbs.service == Service::Ud && verbs.fallback == Fallback::Listen;
                blind.then(|| {
                    "--fallback listen is impossible with --service ud: an end that is connected to is not told where \
                    to send datagrams to"
                        .to_owned()
                })
            }
            NodeType::Loopback | NodeType::Shmem => rings::refusal(settings.poll),
            NodeType::Udp => None,
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => None,
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => super::zeromq::load().err(),
        })
    }

    /// Why its ends cannot be processes, if so.
    pub fn refusal_of_processes(self, settings: &Settings) -> Option<String> {
        let listens = settings.verbs.fallback == Fallback::Listen;
        let why = match self {
            NodeType::Loopback => {
                "with --type loopback: its rings lie in the memory of one process: use --type shmem"
            }
            NodeType::InfiniBand if listens => {
                "with --fallback listen: ends tell each other where they listen in the memory of one process"
            }
            _ => return None,
        };
        Some(format!("--ends processes is impossible {why}"))
    }

    /// Memory that its ends take beside their pools, in bytes; not what a library allocates.
    pub fn memory(self, wiring: &Wiring, settings: &Settings) -> u64 {
        match self {
            NodeType::Loopback | NodeType::Shmem => rings::bytes(wiring, settings).0,
            _ => 0,
        }
    }

    /// What it is made of that others have written, with versions.
    pub fn made_of(self) -> String {
        match self {
            NodeType::InfiniBand => "libibverbs, librdmacm and the devices".to_owned(),
            NodeType::Loopback | NodeType::Shmem => "nothing that others have written".to_owned(),
            NodeType::Udp => "the kernel".to_owned(),
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => "rumqttc 0.25, and a broker".to_owned(),
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => format!("libzmq {}", super::zeromq::version()),
        }
    }

    /// What lies between the two stamps of a sample, in a sentence.
    pub fn within(self) -> &'static str {
        match self {
            NodeType::Loopback => "copying in and out of a ring of the process's own memory",
            NodeType::Shmem => "copying in and out of a ring of shared memory",
            NodeType::InfiniBand => {
                "ibv_post_send, both HCAs, the fabric between them and ibv_poll_cq"
            }
            NodeType::Udp => "sendto, the kernel's loopback and recv",
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => {
                "the channel of the client and the thread that writes from it, TCP with TCP_NODELAY to the broker, the \
                 broker, TCP from there, and the event loop of the client, which the subscriber's thread drives"
            }
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => {
                "zmq_send, the library's I/O threads at both ends, TCP over the loopback with TCP_NODELAY, and zmq_recv"
            }
        }
    }
}
