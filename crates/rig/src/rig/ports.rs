//! The ports of a pair of ends as the user names them, their service type, and the route to UC.

use std::fmt;

use super::named::named;

/// The TCP port where another host is asked, if none is named.
pub const SERVING: u16 = 18_599;

named! {
    /// The service type of the queue pairs.
    Service {
        /// Reliable connection.
        Rc = "rc",
        /// Unreliable connection.
        Uc = "uc",
        /// Unreliable datagram.
        Ud = "ud",
    }
}

named! {
    /// By which route the connection manager is to make UC queue pairs.
    UcRouteRequest {
        /// The first of the others that works.
        Auto = "auto",
        /// `rdma_create_ep`, which every librdmacm has.
        Endpoint = "endpoint",
        /// `rdma_create_id2`, which a patched librdmacm exports.
        Patched = "patched",
    }
}

/// A port as the user names it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PortRequest {
    /// The device.
    pub device: String,
    /// Its port; that which suits the other end best if not given.
    pub port: Option<u8>,
    /// The address that leads to it; that which suits the other end best if not given.
    pub address: Option<std::net::IpAddr>,
}

impl fmt::Display for PortRequest {
    /// As the command line has it: `mlx5_0:1@10.0.0.1`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.device)?;
        if let Some(port) = self.port {
            write!(formatter, ":{port}")?;
        }
        match self.address {
            Some(address) => write!(formatter, "@{address}"),
            None => Ok(()),
        }
    }
}
