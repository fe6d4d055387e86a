//! Several processes as one measurement: on two hosts, or on all of a fabric.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `wire` | lines of JSON over TCP, each step with a time limit |

pub(crate) mod wire;
