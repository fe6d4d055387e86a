//! What the threads of a run are called.

use crate::rig::role::Role;

pub(super) const SENDER: Role = Role::new("sender", "hcabench-send");
pub(super) const RECEIVER: Role = Role::new("receiver", "hcabench-recv");

/// A sender that shares queues with others.
pub(super) const PRODUCER: Role = Role::new("producer", "hcabench-prod");
pub(super) const CONSUMER: Role = Role::new("consumer", "hcabench-cons");
