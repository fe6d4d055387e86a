//! The same benchmark between two hosts: publishers in this process, subscribers in one of another host.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `message` | the messages between the two processes |
//! | `probing` | probes over the node-type: a sample there and one back, four stamps |
//! | `remote` | the other host, as a run of this one sees it |
//! | [`serving`] | the process there: makes subscribers as it is asked, and answers probes |
//! | `bounds` | what the stamps of two clocks say |
//! | `presentation` | what plots and reports show of it |
//!
//! Ends and their loops are those of one host. What publishers and subscribers share lies in the memory of each process,
//! and the supervisors of both pass it on over the control connection. Subscribers cannot learn in time where the
//! warm-up ends: all that comes is noted there, and this process leaves out what does not count.

pub(super) mod bounds;
pub(super) mod message;
pub(in crate::bench) mod presentation;
mod probing;
pub(super) mod remote;
pub mod serving;
