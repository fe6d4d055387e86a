//! The roles of the benchmark's threads, and where they run.

use serde::Serialize;

use super::config::{CpuRequest, Poll, Timestamp};
use super::plan::Point;
use crate::host::{CpuSet, HostError, Need, PlacementWarning, RoleSpec, Topology, Waiting};
use crate::rig::role::Role;

/// Posts the messages.
pub const SENDER: Role = Role::new("sender", "hcabench-send");
/// Polls for messages that arrive.
pub const RECEIVER: Role = Role::new("receiver", "hcabench-recv");
/// Polls for completions of what was sent.
pub const COMPLETION: Role = Role::new("completion thread", "hcabench-comp");
/// Rewrites the time stamp in the payload, again and again.
pub const STAMP: Role = Role::new("stamp thread", "hcabench-stamp");

/// Where the threads of a point run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    pub sender: usize,
    /// For reads and atomics no thread runs there; it is near the memory that they are of.
    pub receiver: usize,
    pub completion: Option<usize>,
    /// The stamp thread's CPU, if one was asked for.
    pub stamp: Option<usize>,
    /// The CPUs of all other threads.
    pub supervisor: CpuSet,
    /// Who polls for send completions: `thread`, or `sender`, between posts and after the last.
    pub completion_by: &'static str,
    pub warnings: Vec<PlacementWarning>,
    #[serde(skip)]
    pub shares_cpu: bool,
}

impl Placement {
    /// Finds the CPUs for a point; `numa_nodes` are those of the sending and of the receiving device.
    pub fn of_point(
        topology: &Topology,
        point: &Point,
        named: CpuRequest,
        numa_nodes: [Option<usize>; 2],
    ) -> Result<Self, HostError> {
        let waiting = |poll| match poll {
            Poll::Busy => Waiting::Spin,
            Poll::Event => Waiting::Sleep,
        };
        let [from, to] = numa_nodes;
        let mut roles = vec![RoleSpec {
            numa_node: from,
            ..RoleSpec::new(SENDER.name, "--sender-cpu", named.sender)
        }];
        // A CPU that was named is kept free also where there is no thread for it.
        if point.operation.is_one_way() || named.receiver.is_some() {
            roles.push(RoleSpec {
                numa_node: to,
                waiting: waiting(point.poll_recv),
                ..RoleSpec::new(RECEIVER.name, "--receiver-cpu", named.receiver)
            });
        }
        let (receiver, completion) = (1, roles.len());
        roles.push(
            RoleSpec {
                numa_node: from,
                waiting: waiting(point.poll_comp),
                need: Need::IfCoreLeft {
                    instead: "the sender polls for completions between posts",
                    advice: "completion latencies include the wait for the sender's next look; name a CPU by --completion-cpu, \
                             or use --poll-comp event",
                },
                beside: Some(0),
                ..RoleSpec::new(COMPLETION.name, "--completion-cpu", named.completion)
            },
        );
        if point.timestamp == Timestamp::Send {
            roles.push(RoleSpec {
                numa_node: from,
                beside: Some(receiver),
                ..RoleSpec::new(STAMP.name, "--stamp-cpu", named.stamp)
            });
        }
        let placed = crate::host::Placement::plan(topology, &roles)?;
        let sender = placed.cpu(0);
        let receiver = match completion > receiver {
            true => placed.cpu(receiver),
            false => near(topology, to).unwrap_or(sender),
        };
        let stamp = placed.cpus.get(completion + 1).copied().flatten();
        let completion = placed.cpus[completion];
        Ok(Placement {
            sender,
            receiver,
            completion,
            stamp,
            completion_by: if completion.is_some() {
                "thread"
            } else {
                "sender"
            },
            shares_cpu: placed.shares_cpu(),
            supervisor: placed.supervisor,
            warnings: placed.warnings,
        })
    }

    /// Whether the stamp thread had to share its CPU, so that t_send comes late or not at all.
    pub fn stamp_shares_cpu(&self) -> bool {
        self.stamp.is_some_and(|stamp| {
            [Some(self.sender), Some(self.receiver), self.completion].contains(&Some(stamp))
        })
    }
}

/// A CPU of a NUMA node that may be used.
fn near(topology: &Topology, node: Option<usize>) -> Option<usize> {
    let mut cpus = topology.cpus.iter();
    let found = cpus.find(|cpu| cpu.allowed && node.is_some() && cpu.numa_node == node);
    found.map(|cpu| cpu.id)
}
