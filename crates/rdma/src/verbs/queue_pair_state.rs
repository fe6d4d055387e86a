//! All attributes of a queue pair, as the kernel has them.

use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

use rdma_sys as sys;
use serde::Serialize;

use super::device::is_software;
use super::port_codes::mtu_bytes;
use super::{AddressVector, Capabilities, QueuePair, ServiceType, VerbsError};
use crate::loaded;

/// The attributes of a queue pair. Those that its service type does not have are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueuePairState {
    /// Its state, such as `RTS`.
    pub state: &'static str,
    /// Its port.
    pub port: u8,
    /// The place of its partition key in the port's table.
    pub pkey_index: u16,
    /// What the other end may do: a sum of `enum ibv_access_flags`.
    pub access_flags: u32,
    /// What its queues take, as the kernel has it.
    pub capabilities: Capabilities,
    /// Largest payload of a packet, in bytes.
    pub path_mtu: Option<u32>,
    /// The way to the other end.
    pub route: Option<Route>,
    /// What only a reliable connection has.
    pub reliability: Option<Reliability>,
    /// The key that a datagram must bring.
    pub queue_key: Option<u32>,
    /// What is another with each connection.
    pub connection: ConnectionNumbers,
}

/// The way to the other end: an address vector without what is another with each connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The LID that packets go to; 0 on Ethernet.
    pub destination_lid: u16,
    /// The service level; on Ethernet it becomes the priority.
    pub service_level: u8,
    /// What is added to the port's own LID.
    pub source_path_bits: u8,
    /// The code of the rate limit, `enum ibv_rate`; 0 is none.
    pub static_rate: u8,
    /// The global route; RoCE always has one.
    pub global: Option<GlobalRoute>,
}

/// A global route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GlobalRoute {
    /// The GID that packets go to.
    pub destination_gid: Ipv6Addr,
    /// The place of the own GID in the port's table.
    pub source_gid_index: u8,
    /// How many routers a packet may pass.
    pub hop_limit: u8,
    /// The traffic class: on RoCE v2 its six upper bits are the DSCP.
    pub traffic_class: u8,
}

/// What a reliable connection does about losses, and how many reads and atomics may be under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reliability {
    /// An acknowledgement is waited for 4.096 us times two to this power; 0 is without end.
    pub timeout: u8,
    /// How often a packet is sent again.
    pub retry_count: u8,
    /// How often it is sent again when the receiver was not ready; 7 is without end.
    pub rnr_retry: u8,
    /// The code of the time that the other end is to wait before it does so.
    pub min_rnr_timer: u8,
    /// RDMA reads and atomics that may be outstanding to the other end.
    pub max_rd_atomic: u8,
    /// The same from the other end.
    pub max_dest_rd_atomic: u8,
}

/// What is another with each connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionNumbers {
    /// The number of the queue pair.
    pub queue_pair: u32,
    /// That of the other end's.
    pub destination: Option<u32>,
    /// The first packet sequence numbers, of what is sent and of what is received. Some devices report the current
    /// ones.
    pub send_psn: u32,
    /// See `send_psn`.
    pub receive_psn: Option<u32>,
    /// The flow label; RoCE v2 makes the UDP source port of it.
    pub flow_label: Option<u32>,
}

#[cfg(any(test, feature = "testing"))]
impl QueuePairState {
    /// A made-up one, whose messages go to this GID.
    pub fn to(destination: Ipv6Addr) -> Self {
        // SAFETY: zero is a value of all its fields, numbers all and unions of these.
        let mut raw: sys::ibv_qp_attr = unsafe { std::mem::zeroed() };
        raw.ah_attr.is_global = 1;
        raw.ah_attr.grh.dgid.raw = destination.octets();
        describe(ServiceType::UnreliableConnection, 1, &raw)
    }
}

impl Route {
    fn of(address: &sys::ibv_ah_attr) -> Self {
        let global = &address.grh;
        Route {
            destination_lid: address.dlid,
            service_level: address.sl,
            source_path_bits: address.src_path_bits,
            static_rate: address.static_rate,
            global: (address.is_global != 0).then(|| GlobalRoute {
                // SAFETY: all bytes of the union are a value of `raw`.
                destination_gid: Ipv6Addr::from(unsafe { global.dgid.raw }),
                source_gid_index: global.sgid_index,
                hop_limit: global.hop_limit,
                traffic_class: global.traffic_class,
            }),
        }
    }
}

impl AddressVector {
    /// The way that it describes.
    pub fn route(&self) -> Route {
        Route::of(&self.attributes)
    }
}

/// The attributes that a queue pair for datagrams has.
const OF_DATAGRAMS: u32 = sys::ibv_qp_attr_mask::IBV_QP_STATE.0
    | sys::ibv_qp_attr_mask::IBV_QP_PKEY_INDEX.0
    | sys::ibv_qp_attr_mask::IBV_QP_PORT.0
    | sys::ibv_qp_attr_mask::IBV_QP_QKEY.0
    | sys::ibv_qp_attr_mask::IBV_QP_SQ_PSN.0
    | sys::ibv_qp_attr_mask::IBV_QP_CAP.0;

impl QueuePair {
    /// Asks the kernel for all attributes.
    ///
    /// # Errors
    /// When the query fails.
    pub fn state(&self) -> Result<QueuePairState, VerbsError> {
        // Bits 0 to 20 of `enum ibv_qp_attr_mask`: all but the rate limit, which is of raw packets only.
        let all = self.query((1 << 21) - 1);
        let is_datagram = self.service() == ServiceType::UnreliableDatagram;
        // A device that has datagrams only may refuse to be asked for what they do not have (EFA:
        // `EFA_QUERY_QP_SUPP_MASK` in the kernel's `hw/efa/efa_verbs.c`).
        let attributes = match all {
            Err(_) if is_datagram => self.query(OF_DATAGRAMS as i32)?,
            all => all?,
        };
        Ok(describe(self.service(), self.number(), &attributes))
    }

    /// Asks the device for the path MTU of a connected queue pair, in bytes.
    ///
    /// # Errors
    /// When the query fails.
    pub fn path_mtu(&self) -> Result<u32, VerbsError> {
        let attributes = self.query(sys::ibv_qp_attr_mask::IBV_QP_PATH_MTU.0 as i32)?;
        Ok(mtu_bytes(attributes.path_mtu))
    }

    /// Whether the driver promises that RDMA writes of the peer appear in memory in the order of their addresses, as what
    /// polls for the last byte of a message needs it (`ibv_query_qp_data_in_order(3)`). `None` where the library is too
    /// old to be asked, the queue pair takes no RDMA writes, or the answer is none: libibverbs knows of x86 only and
    /// answers "no" elsewhere, as it does for the drivers in software, which are not asked.
    pub fn writes_in_order(&self) -> Option<bool> {
        let is_x86 = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
        let writes = self.service() != ServiceType::UnreliableDatagram;
        if !(is_x86 && writes) || is_software(self.device_name()) {
            return None;
        }
        type Query =
            unsafe extern "C" fn(*mut sys::ibv_qp, sys::ibv_wr_opcode::Type, u32) -> libc::c_int;
        // SAFETY: infiniband/verbs.h declares it with this type.
        let query = unsafe { loaded::optional::<Query>(c"ibv_query_qp_data_in_order") }?;
        // SAFETY: the queue pair exists.
        let answer = unsafe { query(self.as_ptr(), sys::ibv_wr_opcode::IBV_WR_RDMA_WRITE, 0) };
        Some(answer == 1)
    }

    fn query(&self, mask: i32) -> Result<sys::ibv_qp_attr, VerbsError> {
        let mut attributes = MaybeUninit::<sys::ibv_qp_attr>::zeroed();
        let mut initial = MaybeUninit::<sys::ibv_qp_init_attr>::zeroed();
        // SAFETY: the queue pair exists, both structures are writable and zero is a value of them.
        let (code, attributes) = unsafe {
            let (attributes_of, initial_of) = (attributes.as_mut_ptr(), initial.as_mut_ptr());
            let code = loaded::ibv_query_qp(self.as_ptr(), attributes_of, mask, initial_of);
            (code, attributes.assume_init())
        };
        VerbsError::check(code, "ibv_query_qp", || self.device_name())?;
        Ok(attributes)
    }
}

fn describe(service: ServiceType, number: u32, raw: &sys::ibv_qp_attr) -> QueuePairState {
    let is_connected = service != ServiceType::UnreliableDatagram;
    let is_reliable = service == ServiceType::ReliableConnection;
    let route = is_connected.then(|| Route::of(&raw.ah_attr));
    let is_global = route.as_ref().is_some_and(|route| route.global.is_some());
    QueuePairState {
        state: state_name(raw.qp_state),
        port: raw.port_num,
        pkey_index: raw.pkey_index,
        access_flags: raw.qp_access_flags,
        capabilities: Capabilities::granted(&raw.cap),
        path_mtu: is_connected.then(|| mtu_bytes(raw.path_mtu)),
        route,
        reliability: is_reliable.then_some(Reliability {
            timeout: raw.timeout,
            retry_count: raw.retry_cnt,
            rnr_retry: raw.rnr_retry,
            min_rnr_timer: raw.min_rnr_timer,
            max_rd_atomic: raw.max_rd_atomic,
            max_dest_rd_atomic: raw.max_dest_rd_atomic,
        }),
        queue_key: (!is_connected).then_some(raw.qkey),
        connection: ConnectionNumbers {
            queue_pair: number,
            destination: is_connected.then_some(raw.dest_qp_num),
            send_psn: raw.sq_psn,
            receive_psn: is_connected.then_some(raw.rq_psn),
            flow_label: is_global.then_some(raw.ah_attr.grh.flow_label),
        },
    }
}

fn state_name(state: sys::ibv_qp_state::Type) -> &'static str {
    match state {
        sys::ibv_qp_state::IBV_QPS_RESET => "RESET",
        sys::ibv_qp_state::IBV_QPS_INIT => "INIT",
        sys::ibv_qp_state::IBV_QPS_RTR => "RTR",
        sys::ibv_qp_state::IBV_QPS_RTS => "RTS",
        sys::ibv_qp_state::IBV_QPS_SQD => "SQD",
        sys::ibv_qp_state::IBV_QPS_SQE => "SQE",
        sys::ibv_qp_state::IBV_QPS_ERR => "ERR",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(is_global: bool) -> sys::ibv_qp_attr {
        // SAFETY: zero is a value of this structure.
        let mut raw = unsafe { MaybeUninit::<sys::ibv_qp_attr>::zeroed().assume_init() };
        raw.qp_state = sys::ibv_qp_state::IBV_QPS_RTS;
        raw.path_mtu = sys::ibv_mtu::IBV_MTU_4096;
        raw.timeout = 15;
        raw.dest_qp_num = 18;
        raw.qkey = 0x1234;
        raw.ah_attr.dlid = 7;
        raw.ah_attr.sl = 3;
        raw.ah_attr.is_global = is_global.into();
        raw.ah_attr.grh.dgid = sys::ibv_gid {
            raw: Ipv6Addr::LOCALHOST.octets(),
        };
        raw.ah_attr.grh.traffic_class = 104;
        raw.ah_attr.grh.flow_label = 99;
        raw
    }

    #[test]
    fn a_service_type_has_only_its_own_attributes() {
        let of = |service| describe(service, 17, &raw(true));
        let rc = of(ServiceType::ReliableConnection);
        assert_eq!((rc.state, rc.path_mtu), ("RTS", Some(4096)));
        assert_eq!(rc.reliability.unwrap().timeout, 15);
        assert_eq!(rc.connection.destination, Some(18));
        assert_eq!(rc.queue_key, None);
        let uc = of(ServiceType::UnreliableConnection);
        assert_eq!((uc.reliability, uc.path_mtu), (None, Some(4096)));
        let ud = of(ServiceType::UnreliableDatagram);
        assert_eq!(ud.route, None);
        assert_eq!(ud.path_mtu, None);
        assert_eq!(ud.queue_key, Some(0x1234));
        assert_eq!(ud.connection.destination, None);
    }

    #[test]
    fn a_route_is_global_where_the_kernel_says_so() {
        let of = |is_global| describe(ServiceType::UnreliableConnection, 17, &raw(is_global));
        let local = of(false);
        let route = local.route.unwrap();
        assert_eq!((route.destination_lid, route.service_level), (7, 3));
        assert_eq!((route.global, local.connection.flow_label), (None, None));
        let global = of(true);
        assert_eq!(global.connection.flow_label, Some(99));
        let route = global.route.unwrap().global.unwrap();
        assert_eq!(route.destination_gid, Ipv6Addr::LOCALHOST);
        assert_eq!(route.traffic_class, 104);
    }
}
