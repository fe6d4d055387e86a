//! The same benchmark between two hosts: the sending half of the rig in one process, the receiving half in another.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `message` | what the two processes tell each other |
//! | `half` | one half of a connection |
//! | `ping_pong` | probes: a message there and one back, four stamps |
//! | `probe_end`, `prober` | an end of the probes, and who exchanges them between bursts |
//! | `far` | the far receiver, as a session of this process sees it |
//! | `serving` | the other process: does what it is asked |
//! | `served` | a point there: receives bursts, and answers probes |
//! | `service` | the port of this host, for those that are let in |
//! | `remote` | a run of this process to another host: bursts and probes |
//! | `two_hosts` | this as the rig sees it |
//! | `pair` | a pair of ranks of a fabric, in both directions |
//! | `figures` | what the stamps of two clocks say |
//!
//! The session is that of one host (`session`): the threads of the sending side run here, and one thread stands for the
//! far receiver. It hands each burst on, and gives back what the other process stored. So bursts are supervised, and
//! their messages judged, in one place.
//!
//! Stamps of the two hosts are of two clocks. Before, between and after the bursts there are probes, whose four stamps
//! bound the offset of the clocks ([`between`](crate::time)).

mod far;
mod figures;
mod half;
mod message;
pub mod pair;
mod ping_pong;
mod probe_end;
mod prober;
mod remote;
mod served;
#[allow(missing_docs)]
pub mod service;
mod serving;
mod two_hosts;
