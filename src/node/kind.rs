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
    /// Queue pairs: `infiniband` (feature `rdma`).
    InfiniBand,
    /// Datagrams: [`udp`](super::udp).
    Udp,
}

impl Named for NodeType {
    const ALL: &'static [Self] = &[
        NodeType::InfiniBand,
        NodeType::Shmem,
        NodeType::Udp,
        NodeType::Loopback,
    ];

    fn name(self) -> &'static str {
        match self {
            NodeType::Loopback => "loopback",
            NodeType::Shmem => "shmem",
            NodeType::InfiniBand => "infiniband",
            NodeType::Udp => "udp",
        }
    }
}

impl NodeType {
    /// Who sends a sample of several subscribers to each of them, or chooses one: `sender`, `library` or `broker`.
    pub fn distributed_by(self) -> &'static str {
        match self {
            NodeType::InfiniBand | NodeType::Loopback | NodeType::Shmem | NodeType::Udp => "sender",
        }
    }

    /// Why this node-type cannot be wired, or told to wait, so, or not be used on this machine, if it cannot.
    pub fn refusal(self, wiring: &Wiring, settings: &Settings) -> Option<String> {
        wiring.refusal().or_else(|| match self {
            NodeType::InfiniBand => (!cfg!(feature = "rdma")).then(|| {
                "--type infiniband is impossible: this hcabench was built without the feature rdma"
                    .to_owned()
            }),
            NodeType::Loopback | NodeType::Shmem => rings::refusal(settings.poll),
            NodeType::Udp => None,
        })
    }

    /// Memory that its ends take beside their pools, in bytes.
    pub fn memory(self, wiring: &Wiring, settings: &Settings) -> u64 {
        match self {
            NodeType::Loopback | NodeType::Shmem => rings::bytes(wiring, settings).0,
            NodeType::InfiniBand | NodeType::Udp => 0,
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
        }
    }
}
