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
//! byte was seen in memory ([`loops::memory_polling`]). RDMA reads and atomics have a t_subm and a t_comp only.
//!
//! Latency is t_recv - t_subm (or - t_send), completion latency t_comp - t_subm. Both contain one reading of the clock;
//! neither contains the preparation of the work request, the pause, the check of the payload, or any page fault.
//!
//! | folder | what is in it |
//! | --- | --- |
//! | [`settings`] | what can be set |
//! | [`loops`] | the hot loops, over ports; the floor runs the same loops over shared memory |
//! | [`plan`] | the points of a sweep, and where their threads run |
//! | `ends` | the two ends of a point on real verbs (feature `rdma`, as all below but `result`) |
//! | [`result`] | each message judged, what comes out of a point, its rows |
//! | `session` | one point on connected ends: threads, bursts |
//! | `run` | all of it put together, with a peer in this process or on another host |
//! | `between` | the other host: its side, the wire, the bounds of clocks |

#[cfg(feature = "rdma")]
pub mod between;
// Results between two hosts are shown without RDMA, too.
#[path = "between/presentation.rs"]
pub(super) mod between_presentation;
#[cfg(feature = "rdma")]
pub mod ends;
#[cfg(feature = "rdma")]
pub mod error;
pub mod loops;
#[allow(missing_docs)]
pub mod message;
pub mod plan;
pub(super) mod presentation;
#[allow(missing_docs)]
pub mod result;
#[cfg(feature = "rdma")]
pub mod run;
#[cfg(feature = "rdma")]
mod session;
pub mod settings;
