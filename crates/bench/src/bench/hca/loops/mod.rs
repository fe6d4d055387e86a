//! The hot loops, over ports: what they post to and poll is a type parameter.

pub mod background;
pub mod busy_receiver;
pub mod completion;
pub mod control;
pub mod depth;
pub mod floor;
pub mod memory_polling;
pub mod memory_port;
pub mod port;
#[cfg(feature = "rdma")]
pub(crate) mod receive_requests;
pub mod receiver;
pub mod sender;
pub mod signalling;
pub mod stamper;
pub mod tag;
