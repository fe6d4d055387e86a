//! Queue pairs connected without the connection manager: each is moved from RESET through INIT and RTR to RTS by
//! `ibv_modify_qp(3)`, with the LID or GID of its peer (InfiniBand Architecture Specification, volume 1, 10.3.1).
//!
//! Both ends are in one process, so what the connection manager would exchange is handed over: an
//! [`UnconnectedQueuePair`] returns its [`QueuePairAddress`], takes its peer's, and is a [`DirectConnection`] then. There
//! is no message that ends a connection, so one end notices only by its completions that the other is closed.

use std::net::Ipv6Addr;
use std::sync::Arc;

use rdma_sys as sys;
use rdma_sys::ibv_qp_attr_mask as mask;

use super::verbs::{
    Access, AddressVector, OutstandingReads, ProtectionDomain, QueuePair, QueuePairAttributes,
    Retries, ServiceType, VerbsError, mtu_code,
};

/// The queue key of datagrams. The kernel keeps those with the highest bit set for itself.
const QUEUE_KEY: u32 = 0x1ca7_0ad5;
/// Routers that a packet may pass.
const HOP_LIMIT: u8 = 64;

/// The port that a queue pair uses, and the entries of its tables.
#[derive(Debug, Clone, Copy)]
pub struct LocalPort {
    /// Counted from 1.
    pub port: u8,
    /// Its LID; 0 on RoCE.
    pub lid: u16,
    /// The index of the GID that it has.
    pub gid_index: u8,
    /// That GID.
    pub gid: Ipv6Addr,
    /// The index of its partition key.
    pub pkey_index: u16,
    /// What it is used for, of which the peer's rights follow.
    pub access: Access,
    /// Reads and atomics on RC.
    pub reads: OutstandingReads,
}

/// What both ends of a path have in common.
#[derive(Debug, Clone, Copy)]
pub struct PathAttributes {
    /// Largest payload of a packet, in bytes: a power of two from 256 to 4096.
    pub mtu: u32,
    /// Service level: the priority on Ethernet.
    pub service_level: u8,
    /// Whether packets have a global route header: always on RoCE.
    pub global: bool,
    /// Traffic class: type of service and congestion bits of RoCE v2.
    pub traffic_class: u8,
    /// Flow label, of 20 bits.
    pub flow_label: u32,
    /// Repetitions on RC.
    pub retries: Retries,
}

/// Where a queue pair is.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub struct QueuePairAddress {
    lid: u16,
    gid: Ipv6Addr,
    queue_pair: u32,
    first_packet: u32,
}

/// A queue pair that takes receive requests and has no peer yet.
#[derive(Debug)]
pub struct UnconnectedQueuePair {
    queue_pair: QueuePair,
    local: LocalPort,
    path: PathAttributes,
    first_packet: u32,
}

impl UnconnectedQueuePair {
    /// Creates a queue pair and moves it to INIT. `first_packet` is the number of the first packet that it sends; a
    /// number that earlier connections did not use keeps their late packets out.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn create(
        domain: &Arc<ProtectionDomain>,
        attributes: QueuePairAttributes,
        local: LocalPort,
        path: PathAttributes,
        first_packet: u32,
    ) -> Result<Self, VerbsError> {
        let queue_pair = QueuePair::create(domain, attributes)?;
        let mut wanted = state(sys::ibv_qp_state::IBV_QPS_INIT);
        wanted.pkey_index = local.pkey_index;
        wanted.port_num = local.port;
        let mut set = mask::IBV_QP_STATE | mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT;
        if queue_pair.service() == ServiceType::UnreliableDatagram {
            wanted.qkey = QUEUE_KEY;
            set |= mask::IBV_QP_QKEY;
        } else {
            wanted.qp_access_flags = local.access.of_peer().0;
            set |= mask::IBV_QP_ACCESS_FLAGS;
        }
        queue_pair.modify(&mut wanted, set, "to INIT")?;
        Ok(UnconnectedQueuePair {
            queue_pair,
            local,
            path,
            first_packet: first_packet & 0xff_ffff,
        })
    }

    /// Where it is.
    pub fn address(&self) -> QueuePairAddress {
        QueuePairAddress {
            lid: self.local.lid,
            gid: self.local.gid,
            queue_pair: self.queue_pair.number(),
            first_packet: self.first_packet,
        }
    }

    /// Moves the queue pair to RTR and RTS: it reaches `peer` from here on.
    ///
    /// # Errors
    /// When the device refuses, or there is no way to the peer.
    pub fn connect(self, peer: &QueuePairAddress) -> Result<DirectConnection, VerbsError> {
        let datagrams = self.queue_pair.service() == ServiceType::UnreliableDatagram;
        let reliable = self.queue_pair.service() == ServiceType::ReliableConnection;
        let mut wanted = state(sys::ibv_qp_state::IBV_QPS_RTR);
        let mut set = mask::IBV_QP_STATE;
        if !datagrams {
            wanted.ah_attr = self.way_to(peer);
            wanted.path_mtu = mtu_code(self.path.mtu);
            wanted.dest_qp_num = peer.queue_pair;
            wanted.rq_psn = peer.first_packet;
            set |= mask::IBV_QP_AV
                | mask::IBV_QP_PATH_MTU
                | mask::IBV_QP_DEST_QPN
                | mask::IBV_QP_RQ_PSN;
        }
        if reliable {
            wanted.max_dest_rd_atomic = self.local.reads.from_peer;
            wanted.min_rnr_timer = self.path.retries.not_ready_timer;
            set |= mask::IBV_QP_MAX_DEST_RD_ATOMIC | mask::IBV_QP_MIN_RNR_TIMER;
        }
        self.queue_pair.modify(&mut wanted, set, "to RTR")?;

        let mut wanted = state(sys::ibv_qp_state::IBV_QPS_RTS);
        wanted.sq_psn = self.first_packet;
        let mut set = mask::IBV_QP_STATE | mask::IBV_QP_SQ_PSN;
        if reliable {
            let retries = self.path.retries;
            wanted.timeout = retries.timeout;
            wanted.retry_cnt = retries.count;
            wanted.rnr_retry = retries.receiver_not_ready;
            wanted.max_rd_atomic = self.local.reads.to_peer;
            set |= mask::IBV_QP_TIMEOUT
                | mask::IBV_QP_RETRY_CNT
                | mask::IBV_QP_RNR_RETRY
                | mask::IBV_QP_MAX_QP_RD_ATOMIC;
        }
        self.queue_pair.modify(&mut wanted, set, "to RTS")?;
        Ok(DirectConnection {
            address: datagrams.then(|| AddressVector {
                attributes: self.way_to(peer),
                queue_pair_number: peer.queue_pair,
                queue_key: QUEUE_KEY,
            }),
            queue_pair: Arc::new(self.queue_pair),
        })
    }

    fn way_to(&self, peer: &QueuePairAddress) -> sys::ibv_ah_attr {
        sys::ibv_ah_attr {
            grh: sys::ibv_global_route {
                dgid: sys::ibv_gid {
                    raw: peer.gid.octets(),
                },
                flow_label: self.path.flow_label,
                sgid_index: self.local.gid_index,
                hop_limit: HOP_LIMIT,
                traffic_class: self.path.traffic_class,
            },
            dlid: peer.lid,
            sl: self.path.service_level,
            src_path_bits: 0,
            static_rate: 0,
            is_global: u8::from(self.path.global),
            port_num: self.local.port,
        }
    }
}

fn state(state: sys::ibv_qp_state::Type) -> sys::ibv_qp_attr {
    // SAFETY: zero is a value of all its fields, numbers all.
    let mut attributes: sys::ibv_qp_attr = unsafe { std::mem::zeroed() };
    attributes.qp_state = state;
    attributes
}

/// A queue pair that reaches its peer.
#[derive(Debug)]
pub struct DirectConnection {
    queue_pair: Arc<QueuePair>,
    address: Option<AddressVector>,
}

impl DirectConnection {
    /// The queue pair.
    pub fn queue_pair(&self) -> &Arc<QueuePair> {
        &self.queue_pair
    }

    /// Where the peer is, on UD.
    pub fn address(&self) -> Option<&AddressVector> {
        self.address.as_ref()
    }
}
