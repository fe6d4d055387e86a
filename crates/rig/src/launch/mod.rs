//! Several processes as one measurement: on two hosts, or on all of a fabric.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `secret` | the secret that processes share |
//! | `sealing` | the handshake and the frames of a connection with a secret |
//! | `wire` | lines of JSON over TCP, each step with a time limit |
//! | `node_list` | lists of nodes as Slurm writes them |
//! | `identity` | who a process is among them, by its launcher: rank, ranks, node, job, where rank 0 is met |
//! | `schedule` | which pairs measure at once, and how long all of it takes |
//! | `message` | the messages between rank 0 and the ranks |
//! | `error` | why processes cannot measure together |
//! | `resolving` | the addresses of hosts by their names |
//! | `rendezvous` | where rank 0 listens, and how the others find it |
//! | `entrance` | who connects, until it has greeted |
//! | `connections` | rank 0's connections, and who is let in |
//! | `rank_failures` | who is to blame for what failed in pairs |
//! | `roster` | which ranks take part, are alive, and are dropped |
//! | `conductor` | rank 0: has pairs measured, and finds who is dead or hung |
//! | `agent` | every rank: measures on command |

pub mod agent;
pub mod conductor;
pub mod connections;
pub mod entrance;
pub mod error;
pub mod identity;
pub mod message;
pub mod node_list;
pub mod rank_failures;
pub mod rendezvous;
pub(crate) mod resolving;
pub(crate) mod roster;
pub mod schedule;
pub(crate) mod sealing;
pub mod secret;
#[cfg(test)]
mod simulation;
pub mod wire;
