//! What is known of the port of one end, wherever that is.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::Service;
use crate::rdma::verbs::{DeviceLimits, Gid, LinkLayer, PartitionKeys, Transport};

/// A port with its host, as the other end needs to know them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    /// Its name.
    pub(super) host: String,
    /// What the kernel drew when it was booted: two hosts have two.
    pub(super) boot_id: String,
    pub(super) device: String,
    pub(super) port: u8,
    pub(super) address: Option<IpAddr>,
    pub(super) limits: DeviceLimits,
    pub(super) mtu: u32,
    pub(super) max_message: u32,
    pub(super) link_layer: LinkLayer,
    pub(super) transport: Transport,
    pub(super) software: bool,
    pub(super) gids: Vec<Gid>,
    pub(super) partition_keys: PartitionKeys,
    /// Bytes that can be inline, by the service types that there are.
    pub(super) inline: Vec<(Service, u32)>,
    /// The port, in words.
    pub(super) description: String,
    /// The device, for the results.
    pub(super) details: Value,
}
