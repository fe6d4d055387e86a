//! The node-types, by name.

use super::Wiring;
use crate::rig::named::Named;

/// A way to pass samples on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeType {
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
        NodeType::Udp,
        #[cfg(feature = "mqtt")]
        NodeType::Mqtt,
        #[cfg(feature = "zeromq")]
        NodeType::Zeromq,
    ];

    fn name(self) -> &'static str {
        match self {
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
            NodeType::Udp => "sender",
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => "broker",
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => "library",
        }
    }

    /// Why this node-type cannot be wired so, or used on this machine, if it cannot.
    pub fn refusal(self, wiring: &Wiring) -> Option<String> {
        wiring.refusal().or_else(|| self.missing())
    }

    /// What it needs and is not installed.
    fn missing(self) -> Option<String> {
        match self {
            NodeType::Udp => None,
            #[cfg(feature = "mqtt")]
            NodeType::Mqtt => None,
            #[cfg(feature = "zeromq")]
            NodeType::Zeromq => super::zeromq::load().err(),
        }
    }

    /// What it is made of that others have written, with versions.
    pub fn made_of(self) -> String {
        match self {
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
