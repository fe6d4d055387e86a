//! On-demand paging: for which operations a device finds the pages of memory when it uses them.

use rdma_sys as sys;
use rdma_sys::ibv_odp_transport_cap_bits as transport;
use serde::{Deserialize, Serialize};

use super::ServiceType;

/// The service types for which a device has on-demand paging, and the operations of each (`ibv_odp_caps`), of those
/// that are known here; nothing where it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnDemandPaging {
    rc: Vec<PagedUse>,
    uc: Vec<PagedUse>,
    ud: Vec<PagedUse>,
}

/// What memory that is paged on demand is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PagedUse {
    /// To send from it.
    Send,
    /// By receive requests.
    Receive,
    /// By receive requests of a shared receive queue.
    SharedReceive,
    /// By RDMA writes.
    Write,
    /// By RDMA reads.
    Read,
    /// By atomic operations.
    Atomic,
}

impl PagedUse {
    const ALL: [Self; 6] = [
        PagedUse::Send,
        PagedUse::Receive,
        PagedUse::SharedReceive,
        PagedUse::Write,
        PagedUse::Read,
        PagedUse::Atomic,
    ];

    /// The name of its bit.
    pub const fn flag(self) -> &'static str {
        match self {
            PagedUse::Send => "IBV_ODP_SUPPORT_SEND",
            PagedUse::Receive => "IBV_ODP_SUPPORT_RECV",
            PagedUse::SharedReceive => "IBV_ODP_SUPPORT_SRQ_RECV",
            PagedUse::Write => "IBV_ODP_SUPPORT_WRITE",
            PagedUse::Read => "IBV_ODP_SUPPORT_READ",
            PagedUse::Atomic => "IBV_ODP_SUPPORT_ATOMIC",
        }
    }

    const fn bit(self) -> u32 {
        let bit = match self {
            PagedUse::Send => transport::IBV_ODP_SUPPORT_SEND,
            PagedUse::Receive => transport::IBV_ODP_SUPPORT_RECV,
            PagedUse::SharedReceive => transport::IBV_ODP_SUPPORT_SRQ_RECV,
            PagedUse::Write => transport::IBV_ODP_SUPPORT_WRITE,
            PagedUse::Read => transport::IBV_ODP_SUPPORT_READ,
            PagedUse::Atomic => transport::IBV_ODP_SUPPORT_ATOMIC,
        };
        bit.0
    }
}

impl OnDemandPaging {
    /// What `ibv_query_device_ex` reports.
    pub(super) fn new(caps: &sys::ibv_odp_caps) -> Self {
        let general = sys::ibv_odp_general_caps::IBV_ODP_SUPPORT.0;
        if caps.general_caps & u64::from(general) == 0 {
            return OnDemandPaging::default();
        }
        let of = |bits: u32| {
            let all = PagedUse::ALL.into_iter();
            all.filter(|one| bits & one.bit() != 0).collect()
        };
        let bits = caps.per_transport_caps;
        OnDemandPaging {
            rc: of(bits.rc_odp_caps),
            uc: of(bits.uc_odp_caps),
            ud: of(bits.ud_odp_caps),
        }
    }

    /// Whether the device has it at all.
    pub fn is_there(&self) -> bool {
        *self != OnDemandPaging::default()
    }

    /// The operations of a service type for which it has it.
    pub fn uses(&self, service: ServiceType) -> &[PagedUse] {
        match service {
            ServiceType::ReliableConnection => &self.rc,
            ServiceType::UnreliableConnection => &self.uc,
            ServiceType::UnreliableDatagram => &self.ud,
        }
    }

    /// Whether it has it for this.
    pub fn has(&self, service: ServiceType, wanted: PagedUse) -> bool {
        self.uses(service).contains(&wanted)
    }
}

#[cfg(feature = "testing")]
impl OnDemandPaging {
    /// One that has these uses for RC, for tests.
    pub fn of_rc(uses: &[PagedUse]) -> Self {
        OnDemandPaging {
            rc: uses.to_vec(),
            ..OnDemandPaging::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_it_for_service_types_and_operations_of_them() {
        let mut caps = sys::ibv_odp_caps {
            general_caps: 1,
            per_transport_caps: sys::ibv_odp_caps__bindgen_ty_1 {
                rc_odp_caps: transport::IBV_ODP_SUPPORT_SEND.0 | transport::IBV_ODP_SUPPORT_READ.0,
                uc_odp_caps: 0,
                ud_odp_caps: transport::IBV_ODP_SUPPORT_SEND.0,
            },
        };
        let found = OnDemandPaging::new(&caps);
        let (rc, ud) = (
            ServiceType::ReliableConnection,
            ServiceType::UnreliableDatagram,
        );
        assert!(found.has(rc, PagedUse::Read) && found.has(ud, PagedUse::Send));
        assert!(!found.has(ud, PagedUse::Read) && !found.has(rc, PagedUse::Receive));
        assert!(!found.has(ServiceType::UnreliableConnection, PagedUse::Send));
        assert_eq!(found.uses(rc), [PagedUse::Send, PagedUse::Read]);
        caps.general_caps = 0;
        assert!(found.is_there() && !OnDemandPaging::new(&caps).is_there());
    }
}
