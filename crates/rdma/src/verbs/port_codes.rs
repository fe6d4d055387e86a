//! The codes in which a port reports its state, MTU, width and speed.

use rdma_sys as sys;

/// The state of a port in words.
pub(super) fn port_state(state: sys::ibv_port_state::Type) -> &'static str {
    match state {
        sys::ibv_port_state::IBV_PORT_DOWN => "down",
        sys::ibv_port_state::IBV_PORT_INIT => "initialising",
        sys::ibv_port_state::IBV_PORT_ARMED => "armed",
        sys::ibv_port_state::IBV_PORT_ACTIVE => "active",
        sys::ibv_port_state::IBV_PORT_ACTIVE_DEFER => "active, deferred",
        _ => "unknown",
    }
}

/// InfiniBand Architecture Specification, volume 1: MTU codes 1 to 5 are 256 to 4096 bytes.
pub(super) fn mtu_bytes(code: sys::ibv_mtu::Type) -> u32 {
    match code {
        1..=5 => 128 << code,
        _ => 0,
    }
}

/// The code of an MTU in bytes: the reverse.
pub(crate) fn mtu_code(bytes: u32) -> sys::ibv_mtu::Type {
    bytes.max(256).ilog2().min(12) - 7
}

/// Gbit/s of all lanes together; 0 where a code is not known.
pub(super) fn gigabits_per_second(speed: u32, width: u8) -> f64 {
    lane_rate(speed) * lanes(width)
}

/// `ibv_query_port(3)`: codes of the width.
fn lanes(code: u8) -> f64 {
    match code {
        1 => 1.0,
        2 => 4.0,
        4 => 8.0,
        8 => 12.0,
        16 => 2.0,
        _ => 0.0,
    }
}

/// `ibv_query_port(3)` and `enum ib_port_speed` of the kernel: codes of the speed of a lane, in Gbit/s, from SDR to XDR.
fn lane_rate(code: u32) -> f64 {
    match code {
        1 => 2.5,
        2 => 5.0,
        4 | 8 => 10.0,
        16 => 14.0,
        32 => 25.0,
        64 => 50.0,
        128 => 100.0,
        256 => 200.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_from_sdr_to_xdr() {
        for (speed, width, expected) in [
            (1, 1, 2.5),
            (16, 2, 56.0),
            (32, 2, 100.0),
            (64, 2, 200.0),
            (128, 2, 400.0),
            (256, 2, 800.0),
            (256, 16, 400.0),
            (512, 2, 0.0),
        ] {
            let rate = gigabits_per_second(speed, width);
            assert!((rate - expected).abs() < 1e-9, "{speed}, {width}: {rate}");
        }
    }
}
