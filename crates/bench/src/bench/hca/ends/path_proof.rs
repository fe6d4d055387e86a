//! What proves the way that messages took: queue pairs and GIDs as the kernel has them, by how much the counters of
//! both ports grew during the measured bursts, and what changed of the ports meanwhile.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::bench::hca::message::Counts;
use crate::bench::hca::plan::Point;
use crate::rdma::verbs::{AddressVector, Gid, PortCounters, QueuePair, QueuePairState};
use crate::results::finding::{Finding, Severity, kinds};

/// A pause that is shorter than the time divided by this is no more than advice.
const BRIEF: u64 = 1000;

/// An end of the path as the kernel has it.
#[derive(Debug, Clone, Serialize)]
pub struct PathEnd {
    /// The GID that its packets come from; none where they have no global route, or there are none.
    pub gid: Option<Gid>,
    /// Its first queue pair; of one for datagrams, the route is that of its address handle. None where the kernel refuses to
    /// tell.
    pub queue_pair: Option<QueuePairState>,
    /// Whether the driver promises that RDMA writes to it appear in order; none where it cannot be asked.
    pub writes_in_order: Option<bool>,
    /// Why the kernel refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_pair_unknown: Option<String>,
}

impl PathEnd {
    /// Asks the kernel. `address` is where the datagrams of an end go.
    pub(crate) fn of(queue_pair: &QueuePair, port: u8, address: Option<&AddressVector>) -> Self {
        let (mut state, refusal) = match queue_pair.state() {
            Ok(state) => (Some(state), None),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(state) = &mut state {
            let route = || address.map(AddressVector::route);
            state.route = state.route.take().or_else(route);
        }
        let route = state.as_ref().and_then(|state| state.route.as_ref());
        let global = route.and_then(|route| route.global.as_ref());
        let gid = |index| Gid::read(queue_pair.device_name(), port, index);
        PathEnd {
            gid: global.and_then(|global| gid(global.source_gid_index)),
            queue_pair: state,
            writes_in_order: queue_pair.writes_in_order(),
            queue_pair_unknown: refusal,
        }
    }

    /// Whether a sender's messages go to the GID that they come from: one port is both ends.
    pub(crate) fn sends_to_itself(&self) -> bool {
        let route = self.queue_pair.as_ref().and_then(|it| it.route.as_ref());
        let destination = route.and_then(|route| Some(route.global.as_ref()?.destination_gid));
        let own = self.gid.as_ref().and_then(|it| it.gid.parse().ok());
        destination.is_some() && destination == own
    }
}

/// Both ends.
#[derive(Debug, Clone, Serialize)]
pub struct Path {
    /// Where messages come from.
    pub sender: PathEnd,
    /// Where they arrive: a [`PathEnd`] of this host or of another one.
    pub receiver: Value,
}

/// What the two ports tell of the measured bursts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortRecord {
    /// By how much the counters of the sender's port grew.
    pub sender: PortCounters,
    /// The same of the receiver's.
    pub receiver: PortCounters,
    /// What changed of either port since it was connected, in words.
    pub changes: Vec<String>,
    /// From before the first burst to after the last.
    pub time: Duration,
}

impl PortRecord {
    /// Congestion notifications that made the sender slower: those that it received, or if its driver does not count
    /// them, those that the receiver sent.
    pub fn congestion_notifications(&self) -> Option<u64> {
        let received = self.sender.notifications_received();
        received.or_else(|| self.receiver.notifications_sent())
    }

    /// What held the sender's port back. On InfiniBand its wait for credits is usual, and is counted in ticks whose
    /// length is the device's (IBA, PortXmitWait and PortSamplesControl), so that its share of the time is unknown.
    fn waits(&self) -> Vec<Finding> {
        let time = |found: Finding| found.count("time_ns", nanoseconds(self.time));
        let ticks = Finding::counted(&kinds::PORT_WAITED, self.sender.waits().unwrap_or(0), None);
        let mut all: Vec<_> = ticks.map(time).into_iter().collect();
        let paused = self.sender.paused_us().filter(|paused| *paused > 0);
        let received = self.sender.pauses_received();
        for (count, port) in [
            (
                received.filter(|_| paused.is_none()),
                "the sender's port received",
            ),
            (self.receiver.pauses_sent(), "the receiver's port sent"),
        ] {
            let found = Finding::counted(&kinds::PAUSE_FRAMES, count.unwrap_or(0), None);
            all.extend(found.map(|found| found.name("port", port)));
        }
        all.extend(paused.map(|paused| {
            let paused = paused.saturating_mul(1000);
            let found = time(Finding::of(&kinds::PAUSED).count("paused_ns", paused));
            let is_brief = paused.saturating_mul(BRIEF) < nanoseconds(self.time);
            match is_brief {
                true => Finding {
                    severity: Severity::Advice,
                    ..found
                },
                false => found,
            }
        }));
        all
    }

    /// What gives reason to doubt that the messages of a point took the way undisturbed, or took it at all. That they
    /// stayed within the adapter is known before where one port is both ends.
    pub fn findings(&self, point: &Point, counts: &Counts, to_itself: bool) -> Vec<Finding> {
        let on_wire = self.sender.packets_on_wire().filter(|_| !to_itself);
        let mut all = Vec::new();
        for (count, kind) in [
            (self.sender.retransmissions(), kinds::RETRANSMISSIONS),
            (self.congestion_notifications(), kinds::CONGESTION),
            // Also where one of the counters has stopped, so that their sum is unknown.
            (Some(self.sender.known_errors()), kinds::SENDER_PORT_ERRORS),
            (
                Some(self.receiver.known_errors()),
                kinds::RECEIVER_PORT_ERRORS,
            ),
        ] {
            all.extend(Finding::counted(&kind, count.unwrap_or(0), None));
        }
        all.extend(self.waits());
        if !all.is_empty() && point.background.is_some() {
            all.push(Finding::of(&kinds::COUNTED_WITH_BACKGROUND));
        }
        // Each message that arrived was at least one packet.
        for (packets, kind) in [
            (self.sender.packets_sent(), kinds::PACKETS_NOT_SENT),
            (on_wire, kinds::LOOPBACK_IN_ADAPTER),
            (
                self.receiver.packets_received(),
                kinds::PACKETS_NOT_RECEIVED,
            ),
        ] {
            if let Some(packets) = packets.filter(|packets| *packets < counts.received) {
                let found = Finding::of(&kind).count("packets", packets);
                all.push(found.count("count", counts.received));
            }
        }
        let changes = self.changes.iter();
        all.extend(
            changes.map(|change| Finding::of(&kinds::PORT_CHANGED).listed("changes", change)),
        );
        all
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::{Plan, made_up::single};

    /// What is said of a point of 100 messages.
    fn said(record: &PortRecord) -> Vec<String> {
        said_of(record, false)
    }

    fn said_of(record: &PortRecord, to_itself: bool) -> Vec<String> {
        let point = Plan::new(&single()).points[0];
        let counts = Counts {
            sent: 100,
            received: 100,
            ..Counts::default()
        };
        let found = record.findings(&point, &counts, to_itself).into_iter();
        found.map(|found| found.problem).collect()
    }

    #[test]
    fn an_undisturbed_path_and_one_without_counters_give_no_warning() {
        assert_eq!(said(&PortRecord::default()), [""; 0]);
        let quiet = PortRecord {
            sender: PortCounters::of(&[
                ("hw_counters/sent_pkts", 100),
                ("hw_counters/completer_retry_err", 0),
                ("hw_counters/np_cnp_sent", 7),
            ]),
            receiver: PortCounters::of(&[("hw_counters/rcvd_pkts", 100)]),
            ..PortRecord::default()
        };
        assert_eq!(said(&quiet), [""; 0]);
    }

    #[test]
    fn each_disturbance_is_told_with_its_count() {
        for (sender, receiver, begins) in [
            ("hw_counters/packet_seq_err", "", "3 retransmissions"),
            (
                "hw_counters/rp_cnp_handled",
                "",
                "3 congestion notifications",
            ),
            ("", "hw_counters/np_cnp_sent", "3 congestion notifications"),
            (
                "counters/port_xmit_wait",
                "",
                "the sender's port waited for 3 ticks in 2.00 s",
            ),
            (
                "ethtool/rx_prio3_pause_duration",
                "",
                "the sender's port was paused for 3.00 us of 2.00 s",
            ),
            (
                "ethtool/rx_priority_3_xoff.nic",
                "ethtool/rx_priority_3_xoff.nic",
                "the sender's port received 3 pause frames",
            ),
            (
                "ethtool/tx_pause_frames",
                "ethtool/tx_pause_frames",
                "the receiver's port sent 3 pause frames",
            ),
            ("counters/symbol_error", "", "3 errors at the sender's port"),
            (
                "",
                "hw_counters/out_of_buffer",
                "3 errors at the receiver's port",
            ),
            (
                "hw_counters/sent_pkts",
                "",
                "only 3 packets left the sender's port for 100 messages",
            ),
            (
                "ethtool/tx_packets_phy",
                "",
                "loopback in the adapter: only 3 packets left the physical port for 100 messages",
            ),
            (
                "",
                "hw_counters/rcvd_pkts",
                "only 3 packets came to the receiver's port for 100",
            ),
        ] {
            let record = PortRecord {
                sender: PortCounters::of(&[(sender, 3)]),
                receiver: PortCounters::of(&[(receiver, 3)]),
                time: Duration::from_secs(2),
                ..PortRecord::default()
            };
            let said = said(&record);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with(begins), "{said:?}");
        }
    }

    #[test]
    fn only_a_wait_whose_time_is_unknown_is_no_reservation() {
        let severities = |counters: &[(&str, u64)]| {
            let record = PortRecord {
                sender: PortCounters::of(counters),
                ..PortRecord::default()
            };
            let found = record.waits().into_iter();
            found.map(|found| found.severity).collect::<Vec<_>>()
        };
        let ticks = ("counters/port_xmit_wait", 9);
        assert_eq!(severities(&[ticks]), [Severity::Advice]);
        // The frames are not stated beside their time.
        let paused = [
            ticks,
            ("ethtool/rx_prio3_pause", 2),
            ("ethtool/rx_prio3_pause_duration", 40),
        ];
        assert_eq!(
            severities(&paused),
            [Severity::Advice, Severity::Reservation]
        );
        for (microseconds, severity) in [(1999, Severity::Advice), (2000, Severity::Reservation)] {
            let record = PortRecord {
                sender: PortCounters::of(&[("ethtool/rx_prio3_pause_duration", microseconds)]),
                time: Duration::from_secs(2),
                ..PortRecord::default()
            };
            assert_eq!(record.waits()[0].severity, severity, "{microseconds} us");
        }
        let none = [
            ("counters/port_xmit_wait", 0),
            ("ethtool/rx_prio3_pause", 0),
        ];
        assert_eq!(severities(&none), []);
    }

    #[test]
    fn one_port_that_is_both_ends_is_named_once() {
        let record = PortRecord {
            sender: PortCounters::of(&[("ethtool/tx_packets_phy", 3)]),
            ..PortRecord::default()
        };
        assert_eq!(said_of(&record, true), [""; 0]);
        assert_eq!(said_of(&record, false).len(), 1);
        let end = |own: &str, destination: &str| PathEnd {
            gid: Some(Gid {
                index: 0,
                gid: own.to_owned(),
                kind: None,
                interface: None,
            }),
            queue_pair: Some(QueuePairState::to(destination.parse().unwrap())),
            writes_in_order: None,
            queue_pair_unknown: None,
        };
        let own = "0000:0000:0000:0000:0000:ffff:0a4d:0001";
        assert!(end(own, "::ffff:10.77.0.1").sends_to_itself());
        assert!(!end(own, "::ffff:10.77.0.2").sends_to_itself());
        let unknown = PathEnd {
            gid: None,
            queue_pair: None,
            ..end(own, "::1")
        };
        assert!(!unknown.sends_to_itself());
    }

    #[test]
    fn errors_are_found_where_another_counter_of_them_has_stopped() {
        let counters = |downed, symbols| {
            PortCounters::of(&[
                ("counters/link_downed", downed),
                ("counters/symbol_error", symbols),
            ])
        };
        let record = PortRecord {
            sender: counters(3, 65_535).since(&counters(1, 7)),
            ..PortRecord::default()
        };
        assert_eq!(record.sender.errors(), None);
        assert_eq!(said(&record), ["2 errors at the sender's port"]);
    }

    #[test]
    fn what_the_sender_counts_of_congestion_is_not_counted_again_at_the_receiver() {
        let record = PortRecord {
            sender: PortCounters::of(&[("hw_counters/rp_cnp_handled", 0)]),
            receiver: PortCounters::of(&[("hw_counters/np_cnp_sent", 5)]),
            changes: vec!["mlx5_0 port 1: the LID changed".to_owned()],
            ..PortRecord::default()
        };
        assert_eq!(record.congestion_notifications(), Some(0));
        let change = "ports changed during the measurement: mlx5_0 port 1: the LID changed";
        assert_eq!(said(&record), [change]);
    }
}
