//! The roles of the benchmark's threads, and where they run.

use serde::Serialize;

use super::Point;
#[cfg(feature = "rdma")]
use crate::bench::hca::settings::config::Config;
use crate::bench::hca::settings::config::{CpuRequest, Poll, Timestamp};
use crate::host::{Compromise, CpuSet, HostError, Need, RoleSpec, Topology, WaitMode};
#[cfg(feature = "rdma")]
use crate::rig::priority::SpinPlacement;
use crate::rig::role::Role;

/// Posts the messages.
pub const SENDER: Role = Role::new("sender", "hcabench-send");
/// Polls for messages that arrive.
pub const RECEIVER: Role = Role::new("receiver", "hcabench-recv");
/// Polls for completions of what was sent.
pub const COMPLETION: Role = Role::new("completion thread", "hcabench-comp");
/// Rewrites the time stamp in the payload, again and again.
pub const STAMP: Role = Role::new("stamp thread", "hcabench-stamp");
/// Sends in the background.
pub const BACKGROUND: Role = Role::new("background thread", "hcabench-backgr");

/// What all points of a run keep to, so that they are measured in the same places and in the same way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunThreads {
    /// Whether any has a background: all keep a CPU free for its thread.
    pub background: bool,
    /// Whether any has a thread domain, whose queue pairs a single thread uses: in all that poll busily the sender
    /// takes the completions.
    pub thread_domain: bool,
}

/// Where the threads of a point run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    pub sender: usize,
    /// For reads and atomics no thread runs there; it is near the memory that they are of.
    pub receiver: usize,
    pub completion: Option<usize>,
    /// The stamp thread's CPU, if one was asked for.
    pub stamp: Option<usize>,
    /// The CPU of the thread in the background, if there is one.
    pub background: Option<usize>,
    /// The CPUs of all other threads.
    pub supervisor: CpuSet,
    /// Who polls for send completions: `thread`, or `sender`, between posts and after the last.
    pub completion_by: &'static str,
    pub warnings: Vec<Compromise>,
    #[serde(skip)]
    pub shares_cpu: bool,
    /// Whether a thread receives here.
    #[serde(skip)]
    pub receives: bool,
}

impl RunThreads {
    /// Of the points of a run.
    #[cfg(feature = "rdma")]
    pub fn of(config: &Config) -> Self {
        let mut resources = config.sweep.resources.iter();
        RunThreads {
            background: config.has_background(),
            thread_domain: resources.any(|all| all.thread_domain.is_on()),
        }
    }
}

impl Placement {
    /// What a real-time priority depends on.
    #[cfg(feature = "rdma")]
    pub fn places(&self) -> SpinPlacement {
        let options =
            "--sender-cpu, --receiver-cpu, --completion-cpu, --stamp-cpu, --background-cpu";
        SpinPlacement::of(&self.warnings, self.shares_cpu, options)
    }

    /// Finds the CPUs for a point; `numa_nodes` are those of the sending and of the receiving device.
    pub fn of_point(
        topology: &Topology,
        point: &Point,
        run: RunThreads,
        named: CpuRequest,
        numa_nodes: [Option<usize>; 2],
    ) -> Result<Self, HostError> {
        let receives = point.operation.is_one_way() || named.receiver.is_some();
        Self::plan(topology, point, run, named, numa_nodes, receives)
    }

    /// The same for the sending side alone: what receives is on another host.
    #[cfg(feature = "rdma")]
    pub fn of_sending_side(
        topology: &Topology,
        point: &Point,
        run: RunThreads,
        named: CpuRequest,
        numa_node: Option<usize>,
    ) -> Result<Self, HostError> {
        let run = RunThreads {
            background: false,
            ..run
        };
        Self::plan(topology, point, run, named, [numa_node; 2], false)
    }

    fn plan(
        topology: &Topology,
        point: &Point,
        run: RunThreads,
        named: CpuRequest,
        numa_nodes: [Option<usize>; 2],
        receives: bool,
    ) -> Result<Self, HostError> {
        let (background, [from, to]) = (run.background, numa_nodes);
        let mut roles = vec![RoleSpec {
            numa_node: from,
            ..RoleSpec::new(SENDER.name, "--sender-cpu", named.sender)
        }];
        // A CPU that was named is kept free also where there is no thread for it.
        if receives {
            roles.push(receiving(point, named.receiver, to));
        }
        let (receiver, completion) = (1, roles.len());
        roles.push(RoleSpec {
            numa_node: from,
            waiting: waiting(point.poll_comp),
            need: Need::IfCoreLeft,
            beside: Some(0),
            ..RoleSpec::new(COMPLETION.name, "--completion-cpu", named.completion)
        });
        if point.timestamp == Timestamp::Send {
            roles.push(RoleSpec {
                numa_node: from,
                beside: Some(if receives { receiver } else { 0 }),
                ..RoleSpec::new(STAMP.name, "--stamp-cpu", named.stamp)
            });
        }
        if background {
            roles.push(RoleSpec {
                numa_node: from,
                beside: Some(0),
                ..RoleSpec::new(BACKGROUND.name, "--background-cpu", named.background)
            });
        }
        let mut placed = crate::host::Placement::plan(topology, &roles)?;
        let of_background = background.then(|| placed.cpus.pop().flatten()).flatten();
        if point.background.is_none() {
            let mut warnings = placed.warnings;
            warnings.retain(|warning| !warning.concerns(BACKGROUND.name));
            placed.warnings = warnings;
        }
        let sender_collects = point.resources.thread_domain.is_on()
            || (run.thread_domain && point.poll_comp == Poll::Busy);
        if sender_collects {
            (placed.warnings).retain(|warning| !warning.concerns(COMPLETION.name));
        }
        let background = of_background.filter(|_| point.background.is_some());
        let shares_cpu =
            placed.shares_cpu() || background.is_some_and(|cpu| placed.cpus.contains(&Some(cpu)));
        let sender = placed.cpu(0);
        let receiver = match completion > receiver {
            true => placed.cpu(receiver),
            false => near(topology, to).unwrap_or(sender),
        };
        let stamp = placed.cpus.get(completion + 1).copied().flatten();
        let completion = placed.cpus[completion].filter(|_| !sender_collects);
        Ok(Placement {
            sender,
            receiver,
            completion,
            stamp,
            background,
            completion_by: if completion.is_some() {
                "thread"
            } else {
                "sender"
            },
            shares_cpu,
            receives: receives && point.operation.is_one_way(),
            supervisor: placed.supervisor,
            warnings: placed.warnings,
        })
    }

    /// The CPUs of the measuring threads.
    fn of_threads(&self) -> [Option<usize>; 4] {
        [
            Some(self.sender),
            self.receives.then_some(self.receiver),
            self.completion,
            self.stamp,
        ]
    }

    /// The CPUs of all threads that the point has.
    pub fn all(&self) -> CpuSet {
        let all = self.of_threads().into_iter().chain([self.background]);
        all.flatten().collect()
    }

    /// Whether the thread in the background has the CPU of a measuring thread.
    pub fn background_shares_cpu(&self) -> bool {
        self.background.is_some() && self.of_threads().contains(&self.background)
    }

    /// Whether the stamp thread had to share its CPU, so that t_send comes late or not at all.
    pub fn stamp_shares_cpu(&self) -> bool {
        self.stamp.is_some_and(|stamp| {
            [Some(self.sender), Some(self.receiver), self.completion].contains(&Some(stamp))
        })
    }
}

/// Where the receiving thread runs on a host that only receives, the CPUs of all other threads, and what it gave up.
#[cfg(feature = "rdma")]
pub fn of_receiving_side(
    topology: &Topology,
    point: &Point,
    named: Option<usize>,
    numa_node: Option<usize>,
) -> Result<(usize, CpuSet, Vec<Compromise>), HostError> {
    let role = receiving(point, named, numa_node);
    let placed = crate::host::Placement::plan(topology, &[role])?;
    Ok((placed.cpu(0), placed.supervisor, placed.warnings))
}

fn receiving(point: &Point, named: Option<usize>, numa_node: Option<usize>) -> RoleSpec {
    RoleSpec {
        numa_node,
        waiting: waiting(point.poll_recv),
        ..RoleSpec::new(RECEIVER.name, "--receiver-cpu", named)
    }
}

fn waiting(poll: Poll) -> WaitMode {
    match poll {
        Poll::Busy => WaitMode::Spin,
        Poll::Event => WaitMode::Sleep,
    }
}

/// A CPU of a NUMA node that may be used.
fn near(topology: &Topology, node: Option<usize>) -> Option<usize> {
    let mut cpus = topology.cpus.iter();
    let found = cpus.find(|cpu| cpu.allowed && node.is_some() && cpu.numa_node == node);
    found.map(|cpu| cpu.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::{Plan, made_up::single};
    use crate::bench::hca::settings::background::tests::background;
    use crate::host::made_up::Machine;

    fn placed(cores: usize, of_run: bool, of_point: bool, named: Option<usize>) -> Placement {
        let mut point = Plan::new(&single()).points[0];
        point.background = of_point.then(|| background(200, 4096, 1));
        let topology = Machine::new(1, cores, 1).topology();
        let named = CpuRequest {
            background: named,
            ..CpuRequest::default()
        };
        let run = RunThreads {
            background: of_run,
            thread_domain: false,
        };
        Placement::of_point(&topology, &point, run, named, [None; 2]).unwrap()
    }

    #[test]
    fn the_background_has_a_cpu_of_its_own_where_one_is_left_else_the_senders() {
        let wide = placed(8, true, true, None);
        let cpu = wide.background.unwrap();
        let measuring = [Some(wide.sender), Some(wide.receiver), wide.completion];
        assert!(wide.completion.is_some() && !measuring.contains(&Some(cpu)));
        assert!(!wide.background_shares_cpu() && !wide.shares_cpu && wide.warnings.is_empty());

        let narrow = placed(2, true, true, None);
        assert_eq!(narrow.background, Some(narrow.sender));
        assert!(narrow.background_shares_cpu() && narrow.shares_cpu);
        let told = |placement: &Placement| {
            placement.warnings.contains(&Compromise::SharedCpu {
                first: "sender",
                second: "background thread",
                cpu: placement.sender,
            })
        };
        assert!(told(&narrow), "{:?}", narrow.warnings);
        let beside_receiver = placed(2, true, true, Some(narrow.receiver));
        assert_eq!(beside_receiver.background, Some(beside_receiver.receiver));
        // The point without traffic is measured in the same places, and nothing is said of a thread that it has not.
        let without = placed(2, true, false, None);
        assert_eq!((without.background, without.shares_cpu), (None, false));
        assert!(!without.background_shares_cpu() && !told(&without));
        let ends = |placement: &Placement| (placement.sender, placement.receiver);
        assert_eq!(ends(&without), ends(&narrow));
    }

    #[test]
    fn what_is_in_a_thread_domain_is_used_by_one_thread() {
        use crate::bench::hca::settings::config::Switch;
        let topology = Machine::new(1, 8, 1).topology();
        let placed = |of_run, of_point, poll_comp| {
            let mut point = Plan::new(&single()).points[0];
            (point.resources.thread_domain, point.poll_comp) = (of_point, poll_comp);
            let run = RunThreads {
                background: false,
                thread_domain: of_run,
            };
            let cpus = CpuRequest::default();
            Placement::of_point(&topology, &point, run, cpus, [None; 2]).unwrap()
        };
        let usual = placed(false, Switch::Off, Poll::Busy);
        assert!(usual.completion.is_some());
        // The point that it is compared with is measured in the same way.
        for of_point in [Switch::On, Switch::Off] {
            let found = placed(true, of_point, Poll::Busy);
            assert_eq!((found.completion, found.completion_by), (None, "sender"));
            assert_eq!(
                (found.sender, found.receiver),
                (usual.sender, usual.receiver)
            );
        }
        // A thread that sleeps cannot be the one that sends.
        let sleeps = placed(true, Switch::Off, Poll::Event);
        assert!(sleeps.completion.is_some());
    }

    #[test]
    fn all_points_of_a_run_with_a_background_are_measured_in_the_same_places() {
        for cores in 2..6 {
            let places = |of_point| {
                let placement = placed(cores, true, of_point, None);
                (placement.sender, placement.receiver, placement.completion)
            };
            assert_eq!(places(true), places(false), "{cores}");
            assert_eq!(placed(cores, false, false, None).background, None);
        }
    }
}
