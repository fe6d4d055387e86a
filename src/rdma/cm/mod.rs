//! The RDMA connection manager (librdmacm): from two IP addresses to two queue pairs that reach each other.
//!
//! Roles and states are types: an [`ActiveEndpoint`] resolves, gets a queue pair and connects, a [`PassiveEndpoint`]
//! listens, gets a request and a queue pair and accepts; both end as a [`Connection`]. Events are read by a thread of
//! the [`EventChannel`], so both ends can live in one thread, and each step has a time limit.
//!
//! UC has two routes, which [`UcRoute`] names.

mod active;
mod connection;
mod error;
mod event_channel;
mod id;
mod passive;
mod unreliable;

pub use active::{ActiveEndpoint, Connecting, Prepared, Resolved};
pub use connection::Connection;
pub use error::CmError;
pub use event_channel::{Event, EventChannel, EventKind};
pub use id::{Id, IdService};
pub use passive::{Accepting, Listening, PassiveEndpoint, Requested, RequestedWithQueuePair};
pub use unreliable::UcRoute;
