//! The verbs (libibverbs), as thin safe types: one file an object.
//!
//! A handle owns its pointer and holds by [`std::sync::Arc`] what must outlive it. Memory that the HCA may touch
//! belongs to a [`MemoryRegion`], which takes the HCA's right to it away before the memory goes. What is left out:
//! everything a one-way latency benchmark does not need (memory windows, extended posting).

mod address_handle;
mod async_event;
mod completion_queue;
mod context;
mod counter_meaning;
mod description;
mod device;
mod end_plan;
mod gid;
mod gid_table;
mod hardware_clock;
mod interface_counters;
mod library;
mod memory_region;
mod on_demand_paging;
mod partition_keys;
mod physical_counters;
mod physical_port;
mod port_address;
mod port_codes;
mod port_counters;
mod protection_domain;
mod queue_pair;
mod queue_pair_state;
mod request_queue;
mod send_list;
mod service_type;
mod shared_receive_queue;
mod stamped_queue;
mod work_request;

pub use crate::error::VerbsError;
pub use address_handle::{AddressHandle, AddressVector};
pub use completion_queue::{
    CompletionQueue, FailedCompletion, PollResult, Poller, WorkCompletion, describe_status,
};
pub use context::Context;
pub use description::{Devices, devices};
pub use device::{Device, DeviceDriver, DeviceLimits, HardwareClock, LinkLayer, Port, Transport};
pub use end_plan::{EndPlan, EventPlan, granted_inline};
pub use gid::{Gid, UnreadFile};
pub use gid_table::{gid_files, gid_table, usual_pair};
pub use hardware_clock::NoHardwareClock;
pub use interface_counters::interface_counters;
pub use library::{Library, library_versions};
pub use memory_region::{Access, MemoryRegion, Registration};
pub use on_demand_paging::{OnDemandPaging, PagedUse};
pub use partition_keys::{PartitionKeys, common_partitions, partition_keys};
pub use physical_port::PhysicalPort;
pub use port_address::{IpNetwork, interfaces_of};
pub(crate) use port_codes::mtu_code;
pub use port_counters::{CounterReading, PortCounters};
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{Capabilities, OutstandingReads, QueuePair, QueuePairAttributes, Retries};
pub use queue_pair_state::{ConnectionNumbers, GlobalRoute, QueuePairState, Reliability, Route};
pub use request_queue::RequestQueue;
pub use send_list::SendList;
pub use service_type::ServiceType;
pub use shared_receive_queue::SharedReceiveQueue;
pub use stamped_queue::{StampedPoller, StampedQueue};
pub use work_request::{Destination, SendRequest};

/// The folder of a port in sysfs.
fn port_folder(device: &str, port: u8) -> std::path::PathBuf {
    format!("/sys/class/infiniband/{device}/ports/{port}").into()
}
