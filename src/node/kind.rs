//! The node-types, by name.

use super::{Settings, Wiring, rings};
use crate::rig::named::Named;

/// A way to pass samples on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeType {
    /// Rings between threads: [`rings`].
    Loopback,
    /// Rings in shared memory: [`rings`].
    Shmem,
    /// Datagrams: [`udp`](super::udp).
    Udp,
}

impl Named for NodeType {
    const ALL: &'static [Self] = &[NodeType::Loopback, NodeType::Shmem, NodeType::Udp];

    fn name(self) -> &'static str {
        match self {
            NodeType::Loopback => "loopback",
            NodeType::Shmem => "shmem",
            NodeType::Udp => "udp",
        }
    }
}

impl NodeType {
    /// Who sends a sample of several subscribers to each of them, or chooses one: `sender`, `library` or `broker`.
    pub fn distributed_by(self) -> &'static str {
        match self {
            NodeType::Loopback | NodeType::Shmem | NodeType::Udp => "sender",
        }
    }

    /// Why this node-type cannot be wired, or told to wait, so, if it cannot.
    pub fn refusal(self, wiring: &Wiring, settings: &Settings) -> Option<String> {
        wiring.refusal().or_else(|| match self {
            NodeType::Loopback | NodeType::Shmem => rings::refusal(settings.poll),
            NodeType::Udp => None,
        })
    }

    /// Memory that its ends take beside their pools, in bytes.
    pub fn memory(self, wiring: &Wiring, settings: &Settings) -> u64 {
        match self {
            NodeType::Loopback | NodeType::Shmem => rings::bytes(wiring, settings).0,
            NodeType::Udp => 0,
        }
    }

    /// What lies between the two stamps of a sample, in a sentence.
    pub fn within(self) -> &'static str {
        match self {
            NodeType::Loopback => "copying in and out of a ring of the process's own memory",
            NodeType::Shmem => "copying in and out of a ring of shared memory",
            NodeType::Udp => "sendto, the kernel's loopback and recv",
        }
    }
}
