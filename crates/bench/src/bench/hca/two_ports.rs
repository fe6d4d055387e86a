//! What two ports allow together, whether one host has both or two have one each.

use super::config::Service;
use super::path::PathLimits;
use super::plan::{Limits, Point, longest_queue};
use crate::rdma::verbs::{
    DeviceLimits, Gid, LinkLayer, PartitionKeys, common_partitions, usual_pair,
};

/// A port, as far as limits go.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnePort<'a> {
    /// Those of its device.
    pub(super) limits: &'a DeviceLimits,
    /// Active, in bytes.
    pub(super) mtu: u32,
    /// Largest message, in bytes.
    pub(super) max_message: u32,
    pub(super) link_layer: LinkLayer,
}

/// The port that messages come from, and the one they arrive at.
#[derive(Debug, Clone, Copy)]
pub(super) struct TwoPorts<'a>(pub(super) [OnePort<'a>; 2]);

impl TwoPorts<'_> {
    fn least(&self, of: fn(&OnePort<'_>) -> u32) -> u32 {
        let [one, other] = &self.0;
        of(one).min(of(other))
    }

    /// Requests that a queue of each of so many queue pairs holds.
    pub(super) fn longest_queue(&self, queue_pairs: u32) -> u32 {
        longest_queue(
            self.least(|end| end.limits.max_queue_pair_work_requests),
            self.least(|end| end.limits.max_completion_queue_entries),
            queue_pairs,
        )
    }

    /// RDMA reads and atomics that the sending device may have outstanding and the receiving one serves.
    fn reads(&self) -> u8 {
        let [sender, receiver] = &self.0;
        let most = sender.limits.max_outstanding_reads;
        most.min(receiver.limits.max_served_reads)
    }

    /// So many as a point takes.
    pub(super) fn reads_of(&self, point: &Point) -> u8 {
        match point.operation.is_one_way() {
            true => 0,
            false => self.reads(),
        }
    }

    /// What a plan must keep to; `inline`: bytes by service type.
    pub(super) fn limits(&self, inline: Vec<(Service, u32)>) -> Limits {
        Limits {
            queue_pairs: self.least(|end| end.limits.max_queue_pairs),
            queue_pair_work_requests: self.least(|end| end.limits.max_queue_pair_work_requests),
            completion_queue_entries: self.least(|end| end.limits.max_completion_queue_entries),
            path_mtu: self.least(|end| end.mtu),
            message: self.least(|end| end.max_message),
            reads: self.reads(),
            atomics: self.0.iter().all(|end| end.limits.atomics),
            inline,
        }
    }

    /// What paths must keep to, by the GIDs and the partition keys of both.
    pub(super) fn path_limits(
        &self,
        gids: [&[Gid]; 2],
        partition_keys: [&PartitionKeys; 2],
    ) -> PathLimits {
        let [here, there] = gids;
        let suits = |gid: &&Gid| {
            let mut others = there.iter().filter(|peer| peer.index == gid.index);
            others.any(|peer| peer.suits(gid))
        };
        let mut layers = self.0.iter().map(|end| end.link_layer);
        let ethernet = layers.any(|layer| layer == LinkLayer::Ethernet);
        PathLimits {
            mtu: self.least(|end| end.mtu),
            partition_keys: common_partitions(partition_keys[0], partition_keys[1]),
            has_usual_gids: usual_pair(gids, [None; 2]).is_some(),
            gids: here.iter().filter(suits).map(|gid| gid.index).collect(),
            // Ethernet has 3 bits of priority, InfiniBand 4 of service level.
            service_level: if ethernet { 7 } else { 15 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_is_the_limit_and_reads_have_a_direction() {
        let limits = |most: u32, outstanding: u8, served: u8| DeviceLimits {
            max_queue_pairs: most,
            max_queue_pair_work_requests: 2 * most,
            max_completion_queue_entries: 300 - most,
            max_outstanding_reads: outstanding,
            max_served_reads: served,
            atomics: most > 50,
            completion_vectors: 1,
            completion_timestamps: None,
        };
        let (one, other) = (limits(40, 16, 1), limits(60, 2, 8));
        let port = |limits, mtu, link_layer| OnePort {
            limits,
            mtu,
            max_message: 1 << 20,
            link_layer,
        };
        let one = port(&one, 4096, LinkLayer::InfiniBand);
        let other = port(&other, 1024, LinkLayer::Ethernet);
        let both = TwoPorts([one, other]);
        let found = both.limits(Vec::new());
        assert_eq!(
            (found.queue_pairs, found.queue_pair_work_requests),
            (40, 80)
        );
        assert_eq!(
            (found.completion_queue_entries, found.path_mtu),
            (240, 1024)
        );
        assert_eq!((found.reads, TwoPorts([other, one]).reads()), (8, 1));
        assert!(!found.atomics);
        assert_eq!((both.longest_queue(1), both.longest_queue(4)), (80, 60));
        let none = PartitionKeys::new();
        let path = both.path_limits([&[], &[]], [&none, &none]);
        assert_eq!(
            (path.mtu, path.service_level, path.has_usual_gids),
            (1024, 7, false)
        );
        let path = TwoPorts([one, one]).path_limits([&[], &[]], [&none, &none]);
        assert_eq!(path.service_level, 15);
    }
}
