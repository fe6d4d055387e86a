//! The RDMA connection manager (librdmacm): from two IP addresses to two queue pairs that reach each other.
//!
//! Roles and states are types: an [`ActiveEndpoint`] resolves and connects, a [`PassiveEndpoint`] listens and gets a
//! [`ConnectionRequest`], which accepts; both are [`PendingConnection`] then, and end as a [`Connection`]. Events are
//! read when one is asked for, and kept for whom they concern, so both ends can live in one thread; each step has a
//! time limit.
//!
//! UC has two routes, which [`UcRoute`] names.

mod endpoint;
mod error;
mod event_channel;
mod event_kind;
mod id;
mod service;
mod unreliable;

pub use endpoint::{
    ActiveEndpoint, Connection, ConnectionRequest, PassiveEndpoint, PendingConnection,
};
pub use error::CmError;
pub use event_channel::{Event, EventChannel};
pub use event_kind::EventKind;
pub use id::Id;
pub use service::IdService;
pub use unreliable::UcRoute;
