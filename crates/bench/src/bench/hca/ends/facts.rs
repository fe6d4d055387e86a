//! What is known of the port of one end, wherever that is.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::hca::settings::config::Service;
use crate::rdma::verbs::{DeviceLimits, Gid, LinkLayer, PartitionKeys, Transport};

/// A port with its host, as the other end needs to know them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    /// Its name.
    pub(crate) host: String,
    /// What the kernel drew when it was booted: two hosts have two.
    pub(crate) boot_id: String,
    pub(crate) device: String,
    pub(crate) port: u8,
    pub(crate) address: Option<IpAddr>,
    pub(crate) limits: DeviceLimits,
    pub(crate) mtu: u32,
    pub(crate) max_message: u32,
    pub(crate) link_layer: LinkLayer,
    pub(crate) transport: Transport,
    pub(crate) software: bool,
    pub(crate) gids: Vec<Gid>,
    pub(crate) partition_keys: PartitionKeys,
    /// Bytes that can be inline, by the service types that there are.
    pub(crate) inline: Vec<(Service, u32)>,
    /// The port, in words.
    pub(crate) description: String,
    /// The device, for the results.
    pub(crate) details: Value,
}
