//! What two ports allow together, whether one host has both or two have one each.

use super::facts::Facts;
use crate::bench::hca::plan::{Limits, Point, longest_queue};
use crate::bench::hca::settings::config::{Service, Switch};
use crate::bench::hca::settings::path::PathLimits;
use crate::rdma::verbs::{Gid, LinkLayer, common_partitions, usual_pair};

/// The port that messages come from, and the one they arrive at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TwoPorts<'a>(pub(crate) [&'a Facts; 2]);

impl TwoPorts<'_> {
    fn least(&self, of: fn(&Facts) -> u32) -> u32 {
        let [one, other] = self.0;
        of(one).min(of(other))
    }

    /// Requests that a queue of each of so many queue pairs holds.
    pub(crate) fn longest_queue(&self, queue_pairs: u32) -> u32 {
        longest_queue(
            self.least(|end| end.limits.max_queue_pair_work_requests),
            self.least(|end| end.limits.max_completion_queue_entries),
            queue_pairs,
        )
    }

    /// Receive requests that each queue of a point holds.
    pub(crate) fn longest_receive_queue(&self, point: &Point) -> u32 {
        match point.resources.srq {
            Switch::Off => self.longest_queue(point.queue_pairs),
            Switch::On => {
                let most = self.0[1].limits.max_shared_receive_requests;
                most.min(self.least(|end| end.limits.max_completion_queue_entries))
            }
        }
    }

    /// RDMA reads and atomics that the sending device may have outstanding and the receiving one serves.
    fn reads(&self) -> u8 {
        let [sender, receiver] = self.0;
        let most = sender.limits.max_outstanding_reads;
        most.min(receiver.limits.max_served_reads)
    }

    /// So many as a point takes.
    pub(crate) fn reads_of(&self, point: &Point) -> u8 {
        match point.operation.is_one_way() {
            true => 0,
            false => self.reads(),
        }
    }

    /// The most inline data of the sender, by the service types that both have.
    fn inline(&self) -> Vec<(Service, u32)> {
        let [sender, receiver] = self.0;
        let has = |service| receiver.inline.iter().any(|(of, _)| *of == service);
        let inline = sender.inline.iter().copied();
        inline.filter(|(service, _)| has(*service)).collect()
    }

    /// What a plan must keep to.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            queue_pairs: self.least(|end| end.limits.max_queue_pairs),
            queue_pair_work_requests: self.least(|end| end.limits.max_queue_pair_work_requests),
            completion_queue_entries: self.least(|end| end.limits.max_completion_queue_entries),
            path_mtu: self.least(|end| end.mtu),
            message: self.least(|end| end.max_message),
            reads: self.reads(),
            atomics: self.0.iter().all(|end| end.limits.atomics),
            inline: self.inline(),
        }
    }

    /// What paths must keep to.
    pub(crate) fn path_limits(&self) -> PathLimits {
        let [here, there] = self.0;
        let gids = [&*here.gids, &*there.gids];
        let suits = |gid: &&Gid| {
            let mut others = there.gids.iter().filter(|peer| peer.index == gid.index);
            others.any(|peer| peer.suits(gid))
        };
        let mut layers = self.0.iter().map(|end| end.link_layer);
        let ethernet = layers.any(|layer| layer == LinkLayer::Ethernet);
        PathLimits {
            mtu: self.least(|end| end.mtu),
            partition_keys: common_partitions(&here.partition_keys, &there.partition_keys),
            has_usual_gids: usual_pair(gids, [None; 2]).is_some(),
            gids: here
                .gids
                .iter()
                .filter(suits)
                .map(|gid| gid.index)
                .collect(),
            // Ethernet has 3 bits of priority, InfiniBand 4 of service level.
            service_level: if ethernet { 7 } else { 15 },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::hca::plan::Plan;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::comp_vector::CompletionVectors;
    use crate::rdma::verbs::{DeviceLimits, OnDemandPaging, PartitionKeys, Transport};

    pub(crate) fn port(most: u32, [outstanding, served]: [u8; 2], link_layer: LinkLayer) -> Facts {
        Facts {
            host: String::new(),
            boot_id: String::new(),
            device: String::new(),
            port: 1,
            address: None,
            limits: DeviceLimits {
                max_queue_pairs: most,
                max_queue_pair_work_requests: 2 * most,
                max_completion_queue_entries: 300 - most,
                max_outstanding_reads: outstanding,
                max_served_reads: served,
                atomics: most > 50,
                completion_vectors: 1,
                completion_timestamps: None,
                hardware_clock: None,
                max_shared_receive_queues: 1,
                max_shared_receive_requests: 3 * most,
                on_demand_paging: Some(OnDemandPaging::default()),
            },
            mtu: 4096,
            max_message: 1 << 20,
            link_layer,
            transport: Transport::InfiniBand,
            software: false,
            gids: Vec::new(),
            partition_keys: PartitionKeys::new(),
            inline: vec![(Service::Rc, most)],
            description: String::new(),
            details: serde_json::Value::Null,
        }
    }

    #[test]
    fn two_ends_of_one_device_have_two_interrupts() {
        let port = |device: &str, completion_vectors| {
            let mut port = port(40, [1, 1], LinkLayer::Ethernet);
            port.device = device.to_owned();
            port.boot_id = "a start of this machine".to_owned();
            port.limits.completion_vectors = completion_vectors;
            port
        };
        let asked = CompletionVectors {
            sender: 1,
            receiver: 1,
        };
        for (asked, receiver, vectors) in [
            (None, port("mlx5_0", 8), "0,1"),
            (None, port("mlx5_0", 1), "0,0"),
            (None, port("mlx5_1", 8), "0,0"),
            (Some(asked), port("mlx5_0", 8), "1,1"),
        ] {
            let sender = port("mlx5_0", receiver.limits.completion_vectors);
            let found = CompletionVectors::of_run(asked, [&sender, &receiver]);
            assert_eq!(found.to_string(), vectors, "{receiver:?}");
        }
        // Where it is not known whether they are on one machine.
        let unknown = [(); 2].map(|()| Facts {
            boot_id: String::new(),
            ..port("mlx5_0", 8)
        });
        let found = CompletionVectors::of_run(None, [&unknown[0], &unknown[1]]);
        assert_eq!(found.to_string(), "0,0");
    }

    #[test]
    fn the_smaller_of_two_is_the_limit_and_reads_have_a_direction() {
        let one = &port(40, [16, 1], LinkLayer::InfiniBand);
        let other = &Facts {
            mtu: 1024,
            inline: vec![(Service::Uc, 8), (Service::Rc, 8)],
            ..port(60, [2, 8], LinkLayer::Ethernet)
        };
        let both = TwoPorts([one, other]);
        let found = both.limits();
        assert_eq!(found.queue_pairs, 40);
        assert_eq!(found.queue_pair_work_requests, 80);
        assert_eq!(found.completion_queue_entries, 240);
        assert_eq!(found.path_mtu, 1024);
        assert_eq!((found.reads, TwoPorts([other, one]).reads()), (8, 1));
        // Of a service type that both have, and of the sender.
        assert_eq!(found.inline, [(Service::Rc, 40)]);
        assert!(!found.atomics);
        assert_eq!((both.longest_queue(1), both.longest_queue(4)), (80, 60));
        // A shared one is the receiver's, and does not get shorter with each queue pair.
        let mut point = Plan::new(&single()).points[0];
        point.queue_pairs = 4;
        assert_eq!(both.longest_receive_queue(&point), 60);
        point.resources.srq = Switch::On;
        assert_eq!(both.longest_receive_queue(&point), 180);
        assert_eq!(TwoPorts([other, one]).longest_receive_queue(&point), 120);
        let path = both.path_limits();
        assert_eq!(path.mtu, 1024);
        assert_eq!(path.service_level, 7);
        assert!(!path.has_usual_gids);
        let path = TwoPorts([one, one]).path_limits();
        assert_eq!(path.service_level, 15);
    }
}
