//! The statistics of a network interface (`ethtool -S`) that are those of its physical port, by the names that the
//! drivers give them.
//!
//! From the kernel's sources: mlx5 from `core/en_stats.c` (`pport_per_prio_pfc_stats_desc`) and
//! `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`, which has the unit of the durations;
//! ice from `ice_ethtool.c` (`ice_gstrings_pf_stats`, `__ice_get_strings`); bnxt from `bnxt_ethtool.c`
//! (`bnxt_port_stats_arr`, `BNXT_RX_STATS_EXT_PFC_ENTRY`).

/// mlx5's name of the packets that left the physical port.
pub(super) const PACKETS_ON_WIRE: &str = "tx_packets_phy";

/// Of a port and a direction. `N` stands for a priority, of which messages have one.
#[derive(Debug)]
pub(super) struct Pauses {
    /// Pause frames.
    pub(super) frames: &'static [&'static str],
    /// Microseconds for which they stopped the port or one priority.
    pub(super) microseconds: &'static [&'static str],
}

/// Pauses that the port was asked for.
pub(super) const RECEIVED: Pauses = Pauses {
    frames: &[
        "rx_prioN_pause",
        "rx_global_pause",
        "link_xoff_rx.nic",
        "rx_priority_N_xoff.nic",
        "rx_pause_frames",
        "rx_pfc_ena_frames_priN",
    ],
    microseconds: &[
        "rx_prioN_pause_duration",
        "rx_global_pause_duration",
        "pfc_priN_rx_duration_us",
    ],
};

/// Pauses that the port asked others for.
pub(super) const SENT: Pauses = Pauses {
    frames: &[
        "tx_prioN_pause",
        "tx_global_pause",
        "link_xoff_tx.nic",
        "tx_priority_N_xoff.nic",
        "tx_pause_frames",
        "tx_pfc_ena_frames_priN",
    ],
    microseconds: &[
        "tx_prioN_pause_duration",
        "tx_global_pause_duration",
        "pfc_priN_tx_duration_us",
    ],
};

/// Those of the physical port. mlx5 shows 0 for each of them where the function may not read them (virtual functions and
/// subfunctions), which is what a port shows that has never sent: then there are none.
pub(super) fn of_physical_port(all: Vec<(String, u64)>) -> Vec<(String, u64)> {
    if all.contains(&(PACKETS_ON_WIRE.to_owned(), 0)) {
        return Vec::new();
    }
    let physical = all.into_iter().filter(|(name, _)| is_physical(name));
    physical.collect()
}

fn is_physical(name: &str) -> bool {
    let pauses = [RECEIVED, SENT];
    name.ends_with("_phy")
        || name.starts_with("vport_loopback_")
        || pauses
            .iter()
            .any(|it| is_one_of(name, it.frames) || is_one_of(name, it.microseconds))
}

/// Whether a name is one of these, of any priority.
pub(super) fn is_one_of(name: &str, patterns: &[&str]) -> bool {
    let priority = |letter: char| letter.is_ascii_digit();
    patterns
        .iter()
        .any(|pattern| match pattern.split_once('N') {
            None => name == *pattern,
            Some((start, end)) => name
                .strip_prefix(start)
                .and_then(|rest| rest.strip_suffix(end))
                .is_some_and(|middle| middle.len() == 1 && middle.starts_with(priority)),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_may_not_read_the_physical_port_has_no_counters_of_it() {
        let of = |sent| {
            let all = [
                (PACKETS_ON_WIRE, sent),
                ("rx_prio3_pause", 0),
                ("tx_packets", 7),
            ];
            of_physical_port(Vec::from(all.map(|(name, value)| (name.to_owned(), value))))
        };
        assert_eq!(of(0), []);
        let names = of(5).into_iter().map(|(name, _)| name);
        assert!(names.eq([PACKETS_ON_WIRE, "rx_prio3_pause"]));
    }

    #[test]
    fn names_of_the_physical_port_are_told_from_others() {
        for name in [
            PACKETS_ON_WIRE,
            "vport_loopback_packets",
            "rx_prio3_pause",
            "tx_prio0_pause_duration",
            "rx_global_pause",
            "rx_priority_7_xoff.nic",
            "link_xoff_tx.nic",
            "rx_pfc_ena_frames_pri5",
            "pfc_pri3_rx_duration_us",
        ] {
            assert!(is_physical(name), "{name}");
        }
        for name in [
            "tx_packets",
            "tx_vport_rdma_unicast_packets",
            "tx_prio3_bytes",
            "rx_prio3_pause_transition",
            "rx_priority_7_xon.nic",
            "rx_prioN_pause",
            "rx_prio_pause",
            "",
        ] {
            assert!(!is_physical(name), "{name}");
        }
    }
}
