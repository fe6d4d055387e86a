//! The host channel adapter benchmark: how long a message is in the fabric, one way, on one clock.
//!
//! | stamp | read |
//! | --- | --- |
//! | t_subm | right before `ibv_post_send` of a work request that is otherwise ready; it is the message's payload |
//! | t_send | over and over, by a thread of its own, into the payload of what was posted, until the HCA reads it |
//! | t_recv | right after `ibv_poll_cq` on the receive queue's completion queue returned a completion |
//! | t_comp | right after `ibv_poll_cq` on the send queue's completion queue returned a completion |
//!
//! An RDMA write without immediate data makes no completion where it arrives: there t_recv is read right after its last
//! byte was seen in memory ([`memory_polling`]). RDMA reads and atomics have a t_subm and a t_comp only.
//!
//! Latency is t_recv - t_subm (or - t_send), completion latency t_comp - t_subm. Both contain one reading of the clock;
//! neither contains the preparation of the work request, the pause, the check of the payload, or any page fault.
//!
//! [`config`] says what can be set, [`plan`] lists the points of a sweep, [`sender`], [`receiver`] and [`completion`]
//! are the hot loops over the [`port`]s ([`busy_receiver`] makes one of a receiver with other work), [`floor`] runs the
//! same loops over shared memory, [`background`] is traffic beside them, [`analysis`] judges each message, `result` is what comes out. `run` (feature `rdma`)
//! puts it together on real verbs, with a `peer` in this process (`local`) or on another host (`between`).

pub mod analysis;
pub mod background;
pub mod busy_receiver;
pub mod comp_vector;
pub mod completion;
pub mod config;
pub mod control;
pub mod depth;
#[cfg(feature = "rdma")]
pub mod ends;
pub mod floor;
pub mod memory_polling;
pub mod memory_port;
pub mod path;
pub mod plan;
pub mod port;
pub(super) mod presentation;
pub mod receiver;
#[allow(missing_docs)]
pub mod result;
pub mod schedule;
pub mod sender;
pub mod signalling;
pub mod stamper;
pub mod tag;
pub mod warmup;

#[cfg(feature = "rdma")]
mod burst_record;
#[allow(missing_docs)]
pub mod in_flight;
#[allow(missing_docs)]
pub mod placement;
#[cfg(feature = "rdma")]
mod receive_requests;
#[cfg(feature = "rdma")]
mod receiving_half;
#[cfg(feature = "rdma")]
mod sending_half;
#[cfg(feature = "rdma")]
mod session;
#[cfg(feature = "rdma")]
mod watch;
#[cfg(feature = "rdma")]
mod worker;

#[cfg(feature = "rdma")]
#[allow(missing_docs)]
pub mod rows;
#[cfg(feature = "rdma")]
#[allow(missing_docs)]
pub mod warnings;

#[cfg(feature = "rdma")]
#[allow(missing_docs)]
pub mod benchmark;
#[cfg(feature = "rdma")]
pub mod between;
// Results between two hosts are shown without RDMA, too.
#[path = "between/presentation.rs"]
pub(super) mod between_presentation;
#[cfg(feature = "rdma")]
mod bursts;
#[cfg(feature = "rdma")]
mod clocks;
#[cfg(feature = "rdma")]
mod crowded;
#[cfg(feature = "rdma")]
pub mod endpoints;
#[cfg(feature = "rdma")]
pub mod error;
#[cfg(feature = "rdma")]
mod facts;
#[cfg(feature = "rdma")]
mod local;
#[cfg(feature = "rdma")]
mod mode;
#[cfg(feature = "rdma")]
mod needs;
#[cfg(feature = "rdma")]
#[allow(missing_docs)]
pub mod one_host;
#[cfg(feature = "rdma")]
mod open_port;
#[cfg(feature = "rdma")]
pub mod path_proof;
#[cfg(feature = "rdma")]
mod peer;
#[cfg(feature = "rdma")]
pub(crate) mod polled_end;
#[cfg(feature = "rdma")]
pub(crate) mod receiving_end;
#[cfg(feature = "rdma")]
pub(crate) mod requesting_end;
#[cfg(feature = "rdma")]
pub mod run;
#[cfg(feature = "rdma")]
pub(crate) mod sending_end;
#[cfg(feature = "rdma")]
mod two_ports;
#[cfg(feature = "rdma")]
pub mod uc_route;
#[cfg(feature = "rdma")]
mod verbs_link;
#[cfg(feature = "rdma")]
pub mod verbs_port;
#[cfg(feature = "rdma")]
mod within_devices;
