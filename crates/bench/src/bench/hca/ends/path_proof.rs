//! What proves the way that messages took: queue pairs and GIDs as the kernel has them, by how much the counters of
//! both ports grew during the measured bursts, and what changed of the ports meanwhile.

use serde::Serialize;
use serde_json::Value;

use crate::bench::hca::message::Counts;
use crate::bench::hca::plan::Point;
use crate::rdma::verbs::{AddressVector, Gid, PortCounters, QueuePair, QueuePairState};

/// An end of the path as the kernel has it.
#[derive(Debug, Clone, Serialize)]
pub struct PathEnd {
    /// The GID that its packets come from; none where they have no global route, or there are none.
    pub gid: Option<Gid>,
    /// Its first queue pair; of one for datagrams, the route is that of its address handle. None where the kernel refuses to
    /// tell.
    pub queue_pair: Option<QueuePairState>,
}

impl PathEnd {
    /// Asks the kernel. `address` is where the datagrams of an end go.
    pub(crate) fn of(queue_pair: &QueuePair, port: u8, address: Option<&AddressVector>) -> Self {
        let mut state = queue_pair.state().ok();
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
        }
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
}

impl PortRecord {
    /// Congestion notifications that made the sender slower: those that it received, or if its driver does not count
    /// them, those that the receiver sent.
    pub fn congestion_notifications(&self) -> Option<u64> {
        let received = self.sender.notifications_received();
        received.or_else(|| self.receiver.notifications_sent())
    }

    /// What gives reason to doubt that the messages of a point took the way undisturbed, or took it at all.
    pub fn warnings(&self, point: &Point, counts: &Counts) -> Vec<String> {
        let mut texts = Vec::new();
        for (count, what) in [
            (
                self.sender.retransmissions(),
                "retransmissions: packets were lost or late, and latencies hold the time until they were sent again",
            ),
            (
                self.congestion_notifications(),
                "congestion notifications: packets were marked on their way, and the adapter sent slower for it",
            ),
            (
                self.sender.waits(),
                "ticks in which the sender's port had something to send and did not: flow control held it back",
            ),
            (
                self.sender.errors(),
                "errors at the sender's port: counters.csv names them",
            ),
            (
                self.receiver.errors(),
                "errors at the receiver's port: counters.csv names them",
            ),
        ] {
            if let Some(count) = count.filter(|count| *count > 0) {
                let beside = match point.background {
                    Some(_) => " (those of the background are among them)",
                    None => "",
                };
                texts.push(format!("{point}: {count} {what}{beside}"));
            }
        }
        // Each message that arrived was at least one packet.
        let packets = [
            (self.sender.packets_sent(), "left the sender's port"),
            (
                self.receiver.packets_received(),
                "came to the receiver's port",
            ),
        ];
        for (packets, what) in packets {
            if let Some(packets) = packets.filter(|packets| *packets < counts.received) {
                texts.push(format!(
                    "{point}: only {packets} packets {what} for {} messages that arrived: the adapter looped them \
                     back, they took another way, or it is late with its counters",
                    counts.received
                ));
            }
        }
        let changes = self.changes.iter();
        texts.extend(changes.map(|change| format!("{point}: {change} since it was connected")));
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::{Plan, made_up::single};

    /// What is said of a point of 100 messages, without its name.
    fn said(record: &PortRecord) -> Vec<String> {
        let point = Plan::new(&single()).points[0];
        let counts = Counts {
            sent: 100,
            received: 100,
            ..Counts::default()
        };
        let warnings = record.warnings(&point, &counts);
        let without = warnings
            .iter()
            .map(|text| text.strip_prefix(&format!("{point}: ")));
        without.map(|text| text.unwrap().to_owned()).collect()
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
            changes: Vec::new(),
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
                "3 ticks in which the sender's port",
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
                "",
                "hw_counters/rcvd_pkts",
                "only 3 packets came to the receiver's port for 100",
            ),
        ] {
            let record = PortRecord {
                sender: PortCounters::of(&[(sender, 3)]),
                receiver: PortCounters::of(&[(receiver, 3)]),
                changes: Vec::new(),
            };
            let said = said(&record);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with(begins), "{said:?}");
        }
    }

    #[test]
    fn what_the_sender_counts_of_congestion_is_not_counted_again_at_the_receiver() {
        let record = PortRecord {
            sender: PortCounters::of(&[("hw_counters/rp_cnp_handled", 0)]),
            receiver: PortCounters::of(&[("hw_counters/np_cnp_sent", 5)]),
            changes: vec!["mlx5_0 port 1: the LID changed".to_owned()],
        };
        assert_eq!(record.congestion_notifications(), Some(0));
        let change = "mlx5_0 port 1: the LID changed since it was connected";
        assert_eq!(said(&record), [change]);
    }
}
