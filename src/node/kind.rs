//! The node-types, by name.

use super::Wiring;
use crate::rig::named::Named;

/// A way to pass samples on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeType {
    /// Datagrams: [`udp`](super::udp).
    Udp,
}

impl Named for NodeType {
    const ALL: &'static [Self] = &[NodeType::Udp];

    fn name(self) -> &'static str {
        match self {
            NodeType::Udp => "udp",
        }
    }
}

impl NodeType {
    /// Who sends a sample of several subscribers to each of them, or chooses one: `sender`, `library` or `broker`.
    pub fn distributed_by(self) -> &'static str {
        match self {
            NodeType::Udp => "sender",
        }
    }

    /// Why this node-type cannot be wired so, if it cannot.
    pub fn refusal(self, wiring: &Wiring) -> Option<String> {
        wiring.refusal()
    }

    /// What lies between the two stamps of a sample, in a sentence.
    pub fn within(self) -> &'static str {
        match self {
            NodeType::Udp => "sendto, the kernel's loopback and recv",
        }
    }
}
