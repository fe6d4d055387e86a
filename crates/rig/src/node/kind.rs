//! The node-types, by name.

use serde::{Deserialize, Serialize};

#[cfg(any(feature = "mqtt", feature = "nats", feature = "redis"))]
use super::broker;
use super::broker::BrokerProgram;
use super::connected::Connected;
use super::fallback::Fallback;
use super::tcp::{self, TcpSockets};
use super::unix::UnixSockets;
use super::{Maker, NodeError, Settings, Wiring, loopback_interface, multicast, rings, udp};
use crate::buffer::SharedMemory;
use crate::host::Needs;
#[cfg(feature = "zeromq")]
use crate::host::resources;
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
    /// Datagrams: [`udp`].
    Udp,
    /// Connections of TCP: [`tcp`].
    Tcp,
    /// Unix sockets: [`unix`](super::unix).
    Unix,
    /// Datagrams to groups: [`multicast`].
    Multicast,
    /// Calls of gRPC: [`grpc`](super::grpc).
    #[cfg(feature = "grpc")]
    Grpc,
    /// Shared memory by its library: [`iceoryx2`](super::iceoryx2).
    #[cfg(feature = "iceoryx2")]
    Iceoryx2,
    /// By way of a broker: [`mqtt`](super::mqtt).
    #[cfg(feature = "mqtt")]
    Mqtt,
    /// By way of a server of NATS: [`nats`](super::nats).
    #[cfg(feature = "nats")]
    Nats,
    /// By way of a server of Redis: [`redis`](super::redis).
    #[cfg(feature = "redis")]
    Redis,
    /// Messages of libzmq: [`zeromq`](super::zeromq).
    #[cfg(feature = "zeromq")]
    Zeromq,
}

impl Named for NodeType {
    const ALL: &'static [Self] = &[
        NodeType::InfiniBand,
        NodeType::Shmem,
        NodeType::Udp,
        NodeType::Tcp,
        NodeType::Unix,
        NodeType::Multicast,
        #[cfg(feature = "iceoryx2")]
        NodeType::Iceoryx2,
        #[cfg(feature = "grpc")]
        NodeType::Grpc,
        #[cfg(feature = "zeromq")]
        NodeType::Zeromq,
        #[cfg(feature = "mqtt")]
        NodeType::Mqtt,
        #[cfg(feature = "nats")]
        NodeType::Nats,
        #[cfg(feature = "redis")]
        NodeType::Redis,
        NodeType::Loopback,
    ];

    fn name(self) -> &'static str {
        match self {
            NodeType::Loopback => "loopback",
            NodeType::Shmem => "shmem",
            NodeType::InfiniBand => "infiniband",
            NodeType::Udp => "udp",
            NodeType::Tcp => "tcp",
            NodeType::Unix => "unix",
            NodeType::Multicast => "multicast",
            #[cfg(feature = "grpc")]
            NodeType::Grpc => "grpc",
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => "iceoryx2",
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => "mqtt",
            #[cfg(feature = "nats")]
            NodeType::Nats => "nats",
            #[cfg(feature = "redis")]
            NodeType::Redis => "redis",
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => "zeromq",
        }
    }
}

/// What the ends of a node-type are made with.
#[derive(Debug)]
pub struct MakerInputs<'a> {
    /// The subscribers of each publisher.
    pub wiring: &'a Wiring,
    /// The address of a broker among them, where there is one.
    pub settings: &'a Settings,
    /// A name that no other run has.
    pub name: &'a str,
    /// What [`NodeType::shared_memory`] has made.
    pub memory: Option<&'a SharedMemory>,
    /// The ports of `infiniband`.
    #[cfg(feature = "rdma")]
    pub fabric: Option<&'a super::infiniband::Fabric>,
}

/// Something to be done with a node-type that was chosen by name; the way from a name to a type.
pub trait MakerUser {
    /// What comes of it.
    type Output;
    /// Why nothing does.
    type Error: From<NodeError>;
    /// Called with the node-type.
    ///
    /// # Errors
    /// Those of the user.
    fn with<M: Maker>(self, maker: &M) -> Result<Self::Output, Self::Error>;
}

impl NodeType {
    /// The names of node-types that this build does not have, which are those of their cargo features.
    pub const NOT_BUILT: &'static [&'static str] = &[
        #[cfg(not(feature = "zeromq"))]
        "zeromq",
        #[cfg(not(feature = "mqtt"))]
        "mqtt",
        #[cfg(not(feature = "nats"))]
        "nats",
        #[cfg(not(feature = "redis"))]
        "redis",
        #[cfg(not(feature = "iceoryx2"))]
        "iceoryx2",
        #[cfg(not(feature = "grpc"))]
        "grpc",
    ];

    /// The way to get one of these.
    pub fn how_to_get(name: &str) -> String {
        format!(
            "this hcabench is built without {name:?}: install a package, which has all node-types, or build with cargo \
             build --release --features {name}"
        )
    }

    /// Memory that all ends share, where it takes some.
    ///
    /// # Errors
    /// When it cannot be allocated.
    pub fn shared_memory(
        self,
        wiring: &Wiring,
        settings: &Settings,
        in_processes: bool,
    ) -> Result<Option<SharedMemory>, NodeError> {
        Ok(match self {
            NodeType::Shmem => Some(rings::memory(wiring, settings)?),
            #[cfg(feature = "rdma")]
            NodeType::InfiniBand if in_processes => {
                Some(super::infiniband::Notices::shared(wiring)?)
            }
            _ => {
                #[cfg(not(feature = "rdma"))]
                let _ = in_processes;
                None
            }
        })
    }

    /// Hands the node-type to `user` as its own type.
    ///
    /// # Errors
    /// When the system has no room for it, and those of the user.
    ///
    /// # Panics
    /// Where memory or ports that it needs are not there.
    pub fn visit<U: MakerUser>(self, by: &MakerInputs<'_>, user: U) -> Result<U::Output, U::Error> {
        let (wiring, settings) = (by.wiring, by.settings);
        match self {
            NodeType::Loopback => user.with(&rings::loopback(wiring, settings)?),
            NodeType::Shmem => {
                let memory = by.memory.expect("it was made before");
                user.with(&rings::shmem(wiring, settings, memory))
            }
            #[cfg(feature = "rdma")]
            NodeType::InfiniBand => {
                let fabric = by.fabric.expect("the ports were chosen before");
                user.with(&super::infiniband::InfiniBand::new(
                    fabric, wiring, settings, by.memory,
                )?)
            }
            #[cfg(not(feature = "rdma"))]
            NodeType::InfiniBand => unreachable!("it is refused without the feature rdma"),
            NodeType::Udp => user.with(&udp::Udp { wiring, settings }),
            NodeType::Tcp => user.with(&Connected {
                sockets: TcpSockets::of(settings),
                wiring,
                settings,
                name: by.name,
            }),
            NodeType::Unix => user.with(&Connected {
                sockets: UnixSockets::of(settings),
                wiring,
                settings,
                name: by.name,
            }),
            NodeType::Multicast => user.with(&multicast::Multicast {
                wiring,
                settings,
                name: by.name,
            }),
            #[cfg(feature = "grpc")]
            NodeType::Grpc => user.with(&super::grpc::Grpc {
                wiring,
                settings,
                name: by.name,
            }),
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => user.with(&super::iceoryx2::Iceoryx2 {
                wiring,
                settings,
                name: by.name,
            }),
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => user.with(&super::mqtt::Mqtt {
                wiring,
                settings,
                prefix: by.name,
            }),
            #[cfg(feature = "nats")]
            NodeType::Nats => user.with(&super::nats::Nats {
                wiring,
                settings,
                prefix: by.name,
            }),
            #[cfg(feature = "redis")]
            NodeType::Redis => user.with(&super::redis::Redis {
                wiring,
                settings,
                prefix: by.name,
            }),
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => {
                super::zeromq::load().map_err(NodeError::Setting)?;
                user.with(&super::zeromq::Zeromq { wiring, settings })
            }
        }
    }

    /// Threads and files that ends with these connections take in one process, beside a thread for each end.
    pub fn needs(self, ends: u64, connections: u64) -> Needs {
        let (threads, files) = match self {
            NodeType::Loopback | NodeType::Shmem => (0, 0),
            NodeType::Udp | NodeType::Multicast => (0, ends),
            // A subscriber listens and has an epoll; a connection is two sockets.
            NodeType::Tcp | NodeType::Unix => (0, 2 * ends + 2 * connections),
            // Of both devices librdmacm opens the files of commands and of asynchronous events, once in a process. An
            // end has an event channel and a completion channel; an id made by rdma_create_ep has another one for a
            // moment, as has a file of /sys. Queue pairs, and so connections, have no files.
            NodeType::InfiniBand => (ends, 5 + 3 * ends),
            // A publisher has a thread; a runtime has three files, a subscriber listens, a connection is two sockets.
            #[cfg(feature = "grpc")]
            NodeType::Grpc => (ends, 4 * ends + 2 * connections),
            // A node has four, and so has each service that it opens: a publisher one for each subscriber at most. A
            // connection has three. All stay open.
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => (0, 8 * ends + 7 * connections),
            // A client has a socket, and its runtime three files; the broker is started by pipes.
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => (ends + 1, 4 * ends + 4),
            // The same; a thread looks for the address of a name.
            #[cfg(feature = "nats")]
            NodeType::Nats => (ends, 4 * ends + 4),
            #[cfg(feature = "redis")]
            NodeType::Redis => (ends, 4 * ends + 4),
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => {
                let (threads, files) = super::zeromq::needs(ends, connections);
                return Needs {
                    threads,
                    stacks: threads * resources::stack_of_libraries(),
                    files,
                };
            }
        };
        Needs {
            files,
            ..Needs::of_threads(threads)
        }
    }

    /// Whether a library that it takes ends the process where it gets no file, thread or memory.
    pub fn may_abort(self) -> bool {
        match self {
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => true,
            // So does its shared memory, where there is no room.
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => true,
            _ => false,
        }
    }

    /// Whether its ends connect to one another, one after the other: each may wait as long as [`Settings::patience`].
    pub fn connects_ends(self) -> bool {
        match self {
            NodeType::InfiniBand | NodeType::Tcp | NodeType::Unix => true,
            #[cfg(feature = "grpc")]
            NodeType::Grpc => true,
            _ => false,
        }
    }

    /// Who sends a sample of several subscribers to each of them, or chooses one: `sender`, `network`, `library` or
    /// `broker`.
    pub fn distributed_by(self) -> &'static str {
        match self {
            NodeType::InfiniBand
            | NodeType::Loopback
            | NodeType::Shmem
            | NodeType::Udp
            | NodeType::Tcp
            | NodeType::Unix => "sender",
            #[cfg(feature = "grpc")]
            NodeType::Grpc => "sender",
            NodeType::Multicast => "network",
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => "broker",
            #[cfg(feature = "nats")]
            NodeType::Nats => "broker",
            #[cfg(feature = "redis")]
            NodeType::Redis => "broker",
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => "library",
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => "library",
        }
    }

    /// The program of the broker by way of which its samples go, if they do.
    pub fn broker(self) -> Option<&'static BrokerProgram> {
        match self {
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => Some(&broker::MOSQUITTO),
            #[cfg(feature = "nats")]
            NodeType::Nats => Some(&broker::NATS_SERVER),
            #[cfg(feature = "redis")]
            NodeType::Redis => Some(&broker::REDIS_SERVER),
            _ => None,
        }
    }

    /// Why this node-type cannot be wired so, cannot wait so, or cannot be used on this machine, if it cannot.
    pub fn refusal(self, wiring: &Wiring, settings: &Settings) -> Option<String> {
        wiring.refusal().or_else(|| match self {
            NodeType::InfiniBand if !cfg!(feature = "rdma") => Some(
                "--type infiniband is impossible: this hcabench was built without the feature rdma; fix: install a package \
                 (.deb, .rpm or .whl)"
                    .to_owned(),
            ),
            NodeType::InfiniBand => {
                let verbs = &settings.verbs;
                let blind = verbs.service == Service::Ud && verbs.fallback == Fallback::Listen;
                blind.then(|| {
                    "--fallback listen is impossible with --service ud: an end that is connected to does not get the \
                     address to send datagrams to"
                        .to_owned()
                })
            }
            NodeType::Loopback | NodeType::Shmem => rings::refusal(settings.poll),
            NodeType::Tcp => tcp::refusal(settings),
            NodeType::Udp | NodeType::Unix => None,
            NodeType::Multicast => multicast::refusal(wiring, settings),
            #[cfg(feature = "grpc")]
            NodeType::Grpc => None,
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => super::iceoryx2::refusal(wiring, settings),
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => None,
            #[cfg(feature = "nats")]
            NodeType::Nats => None,
            #[cfg(feature = "redis")]
            NodeType::Redis => super::redis::refusal(wiring, settings.redis_kind),
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => self.refusal_of_library(),
        })
    }

    /// Why its ends cannot be on one host, if so.
    pub fn refusal_on_one_host(self) -> Option<String> {
        let is_over_loopback = match self {
            NodeType::Udp | NodeType::Tcp => true,
            #[cfg(feature = "grpc")]
            NodeType::Grpc => true,
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => true,
            _ => false,
        };
        let what = || format!("--type {}", self.name());
        (is_over_loopback.then(what)).and_then(|what| loopback_interface::refusal(&what))
    }

    /// Why a library that it loads is not there, if so.
    pub fn refusal_of_library(self) -> Option<String> {
        match self {
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => super::zeromq::load().err(),
            _ => None,
        }
    }

    /// Why its ends cannot be processes, if so.
    pub fn refusal_of_processes(self) -> Option<String> {
        (self == NodeType::Loopback).then(|| {
            "--ends processes is impossible with --type loopback: its rings lie in the memory of one process: use \
             --type shmem"
                .to_owned()
        })
    }

    /// Why its ends cannot be on two hosts, if so.
    pub fn refusal_between_hosts(self) -> Option<String> {
        let why = match self {
            NodeType::InfiniBand | NodeType::Udp | NodeType::Tcp => return None,
            #[cfg(feature = "grpc")]
            NodeType::Grpc => return None,
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => return None,
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => return None,
            #[cfg(feature = "nats")]
            NodeType::Nats => return None,
            #[cfg(feature = "redis")]
            NodeType::Redis => return None,
            NodeType::Loopback | NodeType::Shmem => "its rings lie in the memory of one host",
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => "its samples lie in the memory of one host",
            NodeType::Unix => "its sockets are files of one host",
            NodeType::Multicast => "its ends join groups of one host",
        };
        let name = self.name();
        Some(format!("--type {name} is impossible with --peer: {why}"))
    }

    /// Whether its ends are reached by addresses of IPv4 alone.
    pub fn is_of_ipv4(self) -> bool {
        match self {
            NodeType::Tcp => true,
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => true,
            _ => false,
        }
    }

    /// Memory that its ends take beside their pools, in bytes; not what a library allocates.
    pub fn memory(self, wiring: &Wiring, settings: &Settings) -> u64 {
        match self {
            NodeType::Loopback | NodeType::Shmem => rings::bytes(wiring, settings).0,
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => super::iceoryx2::bytes(wiring, settings),
            _ => 0,
        }
    }

    /// What it is made of that others have written, with versions.
    pub fn made_of(self) -> String {
        match self {
            NodeType::InfiniBand => "libibverbs, librdmacm and the devices".to_owned(),
            NodeType::Loopback | NodeType::Shmem => "nothing that others have written".to_owned(),
            NodeType::Udp | NodeType::Tcp | NodeType::Unix | NodeType::Multicast => {
                "the kernel".to_owned()
            }
            #[cfg(feature = "grpc")]
            NodeType::Grpc => "tonic 0.14".to_owned(),
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => "iceoryx2 0.10".to_owned(),
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => "rumqttc 0.25, and a broker".to_owned(),
            #[cfg(feature = "nats")]
            NodeType::Nats => "async-nats 0.51, and a server of NATS".to_owned(),
            #[cfg(feature = "redis")]
            NodeType::Redis => "redis 1.8, and a server of Redis".to_owned(),
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
            NodeType::Udp => "sendto, the kernel's loopback or the network, and recv",
            NodeType::Tcp => "send, TCP over the kernel's loopback or the network, and recv",
            NodeType::Unix => "send, the queue of the other socket, and recv",
            NodeType::Multicast => {
                "sendto, the kernel's way over the interface, its copies for the members of the group, and recv"
            }
            #[cfg(feature = "grpc")]
            NodeType::Grpc => {
                "a channel to the thread of the client, HTTP/2 over TCP with TCP_NODELAY over the loopback or the network, \
                 and the runtime of the server, which the subscriber's thread drives"
            }
            #[cfg(feature = "iceoryx2")]
            NodeType::Iceoryx2 => {
                "copying into a sample lent by the library, a queue of its shared memory, and copying out"
            }
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => {
                "the channel of the client and the thread that writes from it, TCP with TCP_NODELAY to the broker, the \
                 broker, TCP from there, and the event loop of the client, which the subscriber's thread drives"
            }
            #[cfg(feature = "nats")]
            NodeType::Nats => {
                "the channel of the client and its task that writes, TCP with TCP_NODELAY to the server, the server, TCP \
                 from there, and the client's task that reads; each end's thread drives its client"
            }
            #[cfg(feature = "redis")]
            NodeType::Redis => {
                "PUBLISH or XADD by the client's task, TCP with TCP_NODELAY to the server, the server, TCP from there, \
                 and the client's task that reads; each end's thread drives its client"
            }
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => {
                "zmq_send, the library's I/O threads at both ends, TCP with TCP_NODELAY over the loopback or the network, \
                 and zmq_recv"
            }
        }
    }
}
