//! The node-types, by name.

use super::Wiring;
use crate::rig::named::Named;

/// A way to pass samples on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeType {
    /// Queue pairs: `infiniband` (feature `rdma`).
    InfiniBand,
    /// Datagrams: [`udp`](super::udp).
    Udp,
}

impl Named for NodeType {
    const ALL: &'static [Self] = &[NodeType::InfiniBand, NodeType::Udp];

    fn name(self) -> &'static str {
        match self {
            NodeType::InfiniBand => "infiniband",
            NodeType::Udp => "udp",
        }
    }
}

impl NodeType {
    /// Who sends a sample of several subscribers to each of them, or chooses one: `sender`, `library` or `broker`.
    pub fn distributed_by(self) -> &'static str {
        match self {
            NodeType::InfiniBand | NodeType::Udp => "sender",
        }
    }

    /// Why this node-type cannot be wired so, if it cannot.
    pub fn refusal(self, wiring: &Wiring) -> Option<String> {
        let missing = self == NodeType::InfiniBand && !cfg!(feature = "rdma");
        let missing = missing.then(|| {
            "--type infiniband is impossible: this hcabench was built without the feature rdma"
                .to_owned()
        });
        missing.or_else(|| wiring.refusal())
    }

    /// What lies between the two stamps of a sample, in a sentence.
    pub fn within(self) -> &'static str {
        match self {
            NodeType::InfiniBand => {
                "ibv_post_send, both HCAs, the fabric between them and ibv_poll_cq"
            }
            NodeType::Udp => "sendto, the kernel's loopback and recv",
        }
    }
}
