//! What the counters of a port mean, by the names that the kernel's drivers give them.
//!
//! From the kernel's sources: `core/sysfs.c` (`counters/`), `sw/rxe/rxe_hw_counters.c`, `hw/mlx5/counters.c`,
//! `hw/mlx4/main.c`, `hw/bnxt_re/hw_counters.c`, `hw/irdma/verbs.c`, `hw/mana/counters.c`, `hw/cxgb4/provider.c`,
//! `hw/efa/efa_verbs.c`, and for OPA the names of `hw/hfi1/chip.c`. A driver that is missing here has its counters in the
//! results all the same.

use super::PortCounters;
use super::physical_counters::{PACKETS_ON_WIRE, RECEIVED, SENT, is_one_of};
use super::port_counters::{OF_DEVICE, OF_INTERFACE};

/// Packets that a port sent; the first of them that it has.
pub(super) const PACKETS_SENT: &[&str] = &[
    "hw_counters/sent_pkts",
    "hw_counters/tx_roce_only_pkts",
    "hw_counters/tx_pkts",
    "hw_counters/tx_packets",
    "hw_counters/TxUDP",
    "counters/port_xmit_packets",
];

/// Packets that a port received; the first of them that it has.
pub(super) const PACKETS_RECEIVED: &[&str] = &[
    "hw_counters/rcvd_pkts",
    "hw_counters/rx_roce_only_pkts",
    "hw_counters/rx_pkts",
    "hw_counters/rx_packets",
    "hw_counters/RxUDP",
    "counters/port_rcv_packets",
];

/// Why a requester sends again, each counted at the sender: it got notice of a gap, or no answer in time, or the
/// receiver was not ready.
pub(super) const RETRANSMISSIONS: &[&str] = &[
    // rxe
    "hw_counters/completer_retry_err",
    "hw_counters/rcvd_rnr_err",
    // mlx5
    "hw_counters/packet_seq_err",
    "hw_counters/implied_nak_seq_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/roce_adp_retrans",
    // mlx4
    "hw_counters/sq_num_oos",
    "hw_counters/sq_num_to",
    "hw_counters/sq_num_rnr",
    // bnxt_re
    "hw_counters/to_retransmits",
    "hw_counters/seq_err_naks_rcvd",
    "hw_counters/rnr_naks_rcvd",
    // irdma
    "hw_counters/RetransSegs",
    "hw_counters/tcpRetransSegs",
    "hw_counters/Nak_Sequence_Error",
    "hw_counters/Nak_Sequence_Error_Implied",
    "hw_counters/RTO",
    "hw_counters/RNR_received",
    // cxgb4
    "hw_counters/ip4RetransSegs",
    "hw_counters/ip6RetransSegs",
    // efa
    "hw_counters/retrans_pkts",
    // mana
    "hw_counters/requester_oos_nak",
    "hw_counters/requester_implicit_nak",
    "hw_counters/requester_timeout",
    "hw_counters/requester_rnr_nak",
    // hfi1
    "hw_counters/RcResend",
];

/// Congestion notifications that a port received, which make it send slower.
pub(super) const NOTIFICATIONS_RECEIVED: &[&str] = &[
    // mlx5
    "hw_counters/rp_cnp_handled",
    // bnxt_re
    "hw_counters/rx_cnp_pkts",
    // irdma
    "hw_counters/cnpHandled",
    // mana
    "hw_counters/received_cnps",
    // hfi1
    "hw_counters/RcvBecn",
];

/// Congestion notifications that a port sent, as packets with a congestion mark came.
pub(super) const NOTIFICATIONS_SENT: &[&str] = &[
    // mlx5
    "hw_counters/np_cnp_sent",
    // bnxt_re
    "hw_counters/tx_cnp_pkts",
    // irdma
    "hw_counters/cnpSent",
];

/// Ticks in which a port had something to send and did not: for want of credits, or of its turn.
pub(super) const WAITS: &[&str] = &["counters/port_xmit_wait"];

/// Packets that were damaged or thrown away, and requests that failed. Connections that end are not among them.
pub(super) const ERRORS: &[&str] = &[
    // InfiniBand performance management
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_rcv_remote_physical_errors",
    "counters/port_xmit_discards",
    "counters/port_xmit_constraint_errors",
    "counters/port_rcv_constraint_errors",
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
    // rxe
    "hw_counters/send_err",
    "hw_counters/link_downed",
    "hw_counters/retry_exceeded_err",
    "hw_counters/retry_rnr_exceeded_err",
    // mlx5
    "hw_counters/out_of_buffer",
    "hw_counters/rx_icrc_encapsulated",
    "hw_counters/resp_local_length_error",
    "hw_counters/resp_cqe_error",
    "hw_counters/req_cqe_error",
    "hw_counters/req_remote_invalid_request",
    "hw_counters/req_remote_access_errors",
    "hw_counters/resp_remote_access_errors",
    "hw_counters/req_transport_retries_exceeded",
    "hw_counters/req_rnr_retries_exceeded",
    // mlx4
    "hw_counters/rq_num_lle",
    "hw_counters/sq_num_lle",
    "hw_counters/rq_num_lqpoe",
    "hw_counters/sq_num_lqpoe",
    "hw_counters/rq_num_lpe",
    "hw_counters/sq_num_lpe",
    "hw_counters/sq_num_bre",
    "hw_counters/rq_num_rire",
    "hw_counters/sq_num_rire",
    "hw_counters/rq_num_rae",
    "hw_counters/sq_num_rae",
    "hw_counters/sq_num_roe",
    "hw_counters/sq_num_tree",
    "hw_counters/sq_num_rree",
    // bnxt_re
    "hw_counters/rx_roce_errors",
    "hw_counters/rx_roce_discards",
    "hw_counters/rx_out_of_buffer",
    "hw_counters/oos_drop_count",
    "hw_counters/max_retry_exceeded",
    "hw_counters/unrecoverable_err",
    "hw_counters/bad_resp_err",
    "hw_counters/local_qp_op_err",
    "hw_counters/local_protection_err",
    "hw_counters/remote_invalid_req_err",
    "hw_counters/remote_access_err",
    "hw_counters/remote_op_err",
    // irdma
    "hw_counters/rxVlanErrors",
    "hw_counters/ip4InDiscards",
    "hw_counters/ip4InTruncatedPkts",
    "hw_counters/ip4OutNoRoutes",
    "hw_counters/ip6InDiscards",
    "hw_counters/ip6InTruncatedPkts",
    "hw_counters/ip6OutNoRoutes",
    "hw_counters/InOptErrors",
    "hw_counters/InProtoErrors",
    "hw_counters/tcpInOptErrors",
    "hw_counters/tcpInProtoErrors",
    "hw_counters/CRC_errors",
    // efa
    "hw_counters/rx_drops",
    "hw_counters/unresponsive_remote_events",
    // mana
    "hw_counters/general_hw_error",
    "hw_counters/total_fatal_error",
    "hw_counters/requester_retries_exceeded",
    "hw_counters/requester_rnr_nak_retries_exceeded",
];

/// Each is `None` where the driver has no counter for it.
impl PortCounters {
    /// Packets that the port sent, of whatever kind and for whomever.
    pub fn packets_sent(&self) -> Option<u64> {
        self.first(PACKETS_SENT)
    }

    /// Packets that the port received, of whatever kind and for whomever.
    pub fn packets_received(&self) -> Option<u64> {
        self.first(PACKETS_RECEIVED)
    }

    /// Packets that left the physical port, whichever function of the adapter sent them. mlx5's others are those of a
    /// function, counted before its switch decides whether a packet takes the wire.
    pub fn packets_on_wire(&self) -> Option<u64> {
        self.get(&format!("{OF_INTERFACE}{PACKETS_ON_WIRE}"))
    }

    /// Pause frames that the physical port received, which stop it from sending.
    pub fn pauses_received(&self) -> Option<u64> {
        self.of_interface(RECEIVED.frames)
            .reduce(u64::saturating_add)
    }

    /// Pause frames that the physical port sent.
    pub fn pauses_sent(&self) -> Option<u64> {
        self.of_interface(SENT.frames).reduce(u64::saturating_add)
    }

    /// Microseconds in which pause frames kept the physical port from sending: those of the priority that has most.
    pub fn paused_us(&self) -> Option<u64> {
        self.of_interface(RECEIVED.microseconds).max()
    }

    /// The growth of the statistics of its interfaces with one of these names.
    fn of_interface(&self, patterns: &[&str]) -> impl Iterator<Item = u64> {
        self.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(OF_INTERFACE)?;
            is_one_of(name, patterns).then_some(value)
        })
    }

    /// How often a requester had reason to send again.
    pub fn retransmissions(&self) -> Option<u64> {
        self.sum(RETRANSMISSIONS)
    }

    /// Congestion notifications that the port received.
    pub fn notifications_received(&self) -> Option<u64> {
        self.sum(NOTIFICATIONS_RECEIVED)
    }

    /// Congestion notifications that the port sent.
    pub fn notifications_sent(&self) -> Option<u64> {
        self.sum(NOTIFICATIONS_SENT)
    }

    /// Ticks in which the port had something to send and did not.
    pub fn waits(&self) -> Option<u64> {
        self.sum(WAITS)
    }

    /// Errors; a mishap that the driver counts twice counts twice.
    pub fn errors(&self) -> Option<u64> {
        self.sum(ERRORS)
    }

    /// The errors that are known where the growth of other such counters is not.
    pub fn known_errors(&self) -> u64 {
        let found = self.each_of(ERRORS).flatten();
        found.fold(0, u64::saturating_add)
    }

    fn first(&self, names: &[&str]) -> Option<u64> {
        self.each_of(names).next().flatten()
    }

    /// Of all that the port has; unknown where one of them is.
    fn sum(&self, names: &[&str]) -> Option<u64> {
        let mut found = self.each_of(names).peekable();
        found.peek()?;
        found.try_fold(0, |sum: u64, one| Some(sum.saturating_add(one?)))
    }

    /// Those of these that the port or its device has, with their growth where that is known.
    fn each_of(&self, names: &[&str]) -> impl Iterator<Item = Option<u64>> {
        let found = names.iter().filter_map(|name| self.own_name(name));
        found.map(|name| self.get(&name))
    }

    /// The name that a counter has here. Some names of irdma have blanks in some kernels, and underscores in others;
    /// what the port itself does not count the device may count as a whole.
    fn own_name(&self, name: &str) -> Option<String> {
        let with_blanks = name
            .split_once('/')
            .map(|(folder, name)| format!("{folder}/{}", name.replace('_', " ")));
        let of_port = [Some(name.to_owned()), with_blanks].into_iter().flatten();
        let of_port: Vec<String> = of_port.collect();
        let of_device = of_port.iter().map(|name| format!("{OF_DEVICE}{name}"));
        let mut all = of_port.iter().cloned().chain(of_device);
        all.find(|name| self.has(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(names: &[(&str, u64)]) -> PortCounters {
        let named = names
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        named.collect()
    }

    #[test]
    fn what_a_driver_does_not_count_is_none_and_not_zero() {
        let none = counters(&[("hw_counters/something_new", 3)]);
        let all = [
            none.packets_sent(),
            none.packets_received(),
            none.retransmissions(),
            none.notifications_received(),
            none.notifications_sent(),
            none.waits(),
            none.errors(),
            none.packets_on_wire(),
            none.pauses_received(),
            none.pauses_sent(),
            none.paused_us(),
        ];
        assert_eq!(all, [None; 11]);
        let quiet = counters(&[("hw_counters/completer_retry_err", 0)]);
        assert_eq!(quiet.retransmissions(), Some(0));
    }

    #[test]
    fn pauses_of_all_priorities_add_up_and_their_times_do_not() {
        for (sent, received, time) in [
            (
                "tx_prio3_pause",
                ["rx_prio3_pause", "rx_global_pause"],
                Some("rx_prio3_pause_duration"),
            ),
            (
                "tx_priority_3_xoff.nic",
                ["rx_priority_3_xoff.nic", "link_xoff_rx.nic"],
                None,
            ),
            (
                "tx_pfc_ena_frames_pri3",
                ["rx_pfc_ena_frames_pri3", "rx_pause_frames"],
                Some("pfc_pri3_rx_duration_us"),
            ),
        ] {
            let named = |name: &str, value| (format!("ethtool/{name}"), value);
            let mut all = vec![named(sent, 7), named(received[0], 2), named(received[1], 3)];
            all.push(named("rx_packets_phy", 100));
            if let Some(time) = time {
                all.extend([named(time, 50), named(&time.replace('3', "5"), 40)]);
            }
            let counters: PortCounters = all.into_iter().collect();
            assert_eq!(counters.pauses_sent(), Some(7), "{sent}");
            assert_eq!(counters.pauses_received(), Some(5), "{sent}");
            assert_eq!(counters.paused_us(), time.map(|_| 50), "{sent}");
        }
    }

    #[test]
    fn reasons_to_send_again_add_up_and_packets_are_counted_once() {
        let mlx5 = counters(&[
            ("counters/port_xmit_packets", 100),
            ("hw_counters/local_ack_timeout_err", 2),
            ("hw_counters/packet_seq_err", 3),
            // Of the responder: it is told of at the other end.
            ("hw_counters/out_of_sequence", 50),
        ]);
        assert_eq!(mlx5.packets_sent(), Some(100));
        assert_eq!(mlx5.retransmissions(), Some(5));
        let bnxt_re = counters(&[
            ("counters/port_xmit_packets", 7),
            ("hw_counters/tx_pkts", 9),
        ]);
        assert_eq!(bnxt_re.packets_sent(), Some(9));
    }

    #[test]
    fn a_sum_with_a_member_that_has_stopped_is_unknown() {
        let grown = |symbol_errors, link_downed| {
            let before = counters(&[("counters/symbol_error", 3), ("counters/link_downed", 1)]);
            let now = counters(&[
                ("counters/symbol_error", symbol_errors),
                ("counters/link_downed", link_downed),
            ]);
            now.since(&before)
        };
        assert_eq!(grown(5, 1).errors(), Some(2));
        let stopped = grown(65_535, 4);
        assert_eq!((stopped.errors(), stopped.known_errors()), (None, 3));
        assert_eq!(grown(65_535, 255).known_errors(), 0);
        let packets = [
            ("hw_counters/tx_pkts", 9),
            ("counters/port_xmit_packets", 7),
        ];
        let set_back = counters(&packets.map(|(name, _)| (name, 1))).since(&counters(&packets));
        assert_eq!(set_back.packets_sent(), None, "and not that of another");
    }

    #[test]
    fn what_a_port_does_not_count_is_that_of_its_device() {
        let of_device = ("device/hw_counters/ip4RetransSegs", 5);
        assert_eq!(counters(&[of_device]).retransmissions(), Some(5));
        let of_both = counters(&[of_device, ("hw_counters/ip4RetransSegs", 2)]);
        assert_eq!(of_both.retransmissions(), Some(2));
    }

    #[test]
    fn blanks_and_underscores_in_a_name_are_the_same() {
        for name in ["hw_counters/RNR received", "hw_counters/RNR_received"] {
            assert_eq!(counters(&[(name, 4)]).retransmissions(), Some(4), "{name}");
        }
    }

    #[test]
    fn the_book_names_each_counter() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/path.md");
        let book = std::fs::read_to_string(path).unwrap();
        for name in [
            PACKETS_SENT,
            PACKETS_RECEIVED,
            RETRANSMISSIONS,
            NOTIFICATIONS_RECEIVED,
            NOTIFICATIONS_SENT,
            WAITS,
            ERRORS,
        ]
        .concat()
        {
            let (_, name) = name.split_once('/').expect("a folder and a name");
            assert!(book.contains(&format!("`{name}`")), "{name}");
        }
        let of_interface = [RECEIVED.frames, RECEIVED.microseconds, &[PACKETS_ON_WIRE]];
        for name in of_interface.concat() {
            assert!(book.contains(&format!("`{name}`")), "{name}");
        }
    }
}
