//! Which CPU each role of a measurement gets.
//!
//! A pure function of the topology and of what was asked for: [`Placement::plan`]. Pinning itself is
//! [`super::pinning`].
//!
//! In this order, what matters to a role: a CPU of its own; a physical core of its own; an isolated CPU; a big core of
//! a hybrid processor; the NUMA node of its device; not CPU 0, which gets most interrupts; the lowest number.
//!
//! Left out: caches shared between cores, and where the interrupts of the devices go.

use super::compromise::{Compromise, PlacementWarning};
use super::cpu_set::CpuSet;
use super::error::HostError;
use super::topology::{Cpu, Topology};
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt;

/// What a thread of a measurement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Posts the messages.
    Sender,
    /// Polls for messages that arrive.
    Receiver,
    /// Polls for completions of what was sent.
    Completion,
    /// Rewrites the time stamp in the payload, again and again.
    Stamp,
}

impl Role {
    /// The option by which the user names the CPU.
    pub fn option(self) -> &'static str {
        match self {
            Self::Sender => "--sender-cpu",
            Self::Receiver => "--receiver-cpu",
            Self::Completion => "--completion-cpu",
            Self::Stamp => "--stamp-cpu",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Completion => "completion thread",
            Self::Stamp => "stamp thread",
        })
    }
}

/// How a role waits for what comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Busy: it never gives up its CPU.
    #[default]
    Spin,
    /// By events: it sleeps in the kernel in between.
    Sleep,
}

/// What is asked for one role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoleRequest {
    /// The CPU named by the user.
    pub cpu: Option<usize>,
    /// The NUMA node of the device it works with, if known. Completion and stamp thread work with the sender's device.
    pub numa_node: Option<usize>,
    /// How it waits.
    pub waiting: Waiting,
}

/// What is asked for one measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlacementRequest {
    /// The sender.
    pub sender: RoleRequest,
    /// The receiver.
    pub receiver: RoleRequest,
    /// The completion thread, if one is wanted.
    ///
    /// One that spins is had only if the user named its CPU or a physical core is left for it. One that sleeps is
    /// always had.
    pub completion: Option<RoleRequest>,
    /// The stamp thread, if one is wanted; it is always had.
    pub stamp: Option<RoleRequest>,
}

/// Who polls for send completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionBy {
    /// A thread of its own.
    Thread,
    /// The sender, between posts and after the last.
    Sender,
}

/// The CPU of each role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The sender's CPU.
    pub sender: usize,
    /// The receiver's CPU.
    pub receiver: usize,
    /// The completion thread's CPU, if there is such a thread.
    pub completion: Option<usize>,
    /// The stamp thread's CPU, if one was asked for.
    pub stamp: Option<usize>,
    /// The CPUs of all other threads: where no role runs, if there are any, else all allowed ones.
    ///
    /// Of those where no role runs, it is the ones on cores of their own and not isolated, as far as there are any.
    pub supervisor: CpuSet,
    /// Who polls for send completions.
    pub completion_by: CompletionBy,
    /// What is less than it should be.
    pub warnings: Vec<PlacementWarning>,
}

impl Placement {
    /// Finds a CPU for each role.
    ///
    /// # Errors
    /// [`HostError::CpuUnavailable`] if a CPU that was named does not exist, is offline or not allowed,
    /// [`HostError::SameCpu`] if sender and receiver were put on the same CPU although there are more, and
    /// [`HostError::NoCpu`] if no CPU is allowed.
    pub fn plan(topology: &Topology, request: &PlacementRequest) -> Result<Self, HostError> {
        let mut planner = Planner::new(topology, request)?;
        planner.place_named()?;

        let sender = planner.place(Role::Sender, &request.sender);
        let receiver = planner.place(Role::Receiver, &request.receiver);
        // Before the completion thread, which the sender can do without.
        let stamp = request
            .stamp
            .map(|stamp| planner.place_stamp(&stamp, receiver));
        let completion = request
            .completion
            .and_then(|completion| planner.place_completion(&completion, sender));

        Ok(Self {
            sender,
            receiver,
            completion,
            stamp,
            supervisor: planner.supervisor(),
            completion_by: if completion.is_some() {
                CompletionBy::Thread
            } else {
                CompletionBy::Sender
            },
            warnings: planner
                .compromises()
                .into_iter()
                .map(PlacementWarning::from)
                .collect(),
        })
    }

    /// Each role that has a thread, with its CPU.
    pub fn roles(&self) -> Vec<(Role, usize)> {
        [
            (Role::Sender, Some(self.sender)),
            (Role::Receiver, Some(self.receiver)),
            (Role::Completion, self.completion),
            (Role::Stamp, self.stamp),
        ]
        .into_iter()
        .filter_map(|(role, cpu)| Some((role, cpu?)))
        .collect()
    }

    /// Whether two roles have the same CPU. With SCHED_FIFO, one of them may then never run.
    pub fn shares_cpu(&self) -> bool {
        let roles = self.roles();
        roles.iter().map(|(_, cpu)| *cpu).collect::<CpuSet>().len() < roles.len()
    }
}

/// A placement in the making.
struct Planner<'a> {
    topology: &'a Topology,
    request: &'a PlacementRequest,
    allowed: CpuSet,
    placed: Vec<(Role, &'a Cpu)>,
}

impl<'a> Planner<'a> {
    fn new(topology: &'a Topology, request: &'a PlacementRequest) -> Result<Self, HostError> {
        let allowed = topology.allowed();
        if allowed.is_empty() {
            return Err(HostError::NoCpu);
        }
        Ok(Self {
            topology,
            request,
            allowed,
            placed: Vec::new(),
        })
    }

    fn requests(&self) -> impl Iterator<Item = (Role, RoleRequest)> + use<'a> {
        let request = self.request;
        [
            (Role::Sender, Some(request.sender)),
            (Role::Receiver, Some(request.receiver)),
            (Role::Completion, request.completion),
            (Role::Stamp, request.stamp),
        ]
        .into_iter()
        .filter_map(|(role, request)| Some((role, request?)))
    }

    /// Takes the CPUs the user named, so that no other role chooses them.
    fn place_named(&mut self) -> Result<(), HostError> {
        for (role, request) in self.requests() {
            let Some(id) = request.cpu else { continue };
            let unavailable = |reason| HostError::CpuUnavailable {
                option: role.option(),
                cpu: id,
                reason,
                allowed: self.allowed.clone(),
            };
            let cpu = match self.topology.cpu(id) {
                Some(cpu) if cpu.allowed => cpu,
                Some(_) => {
                    return Err(unavailable(
                        "is not allowed for this process (see taskset -p and its cpuset)",
                    ));
                }
                None if self.topology.offline.contains(id) => {
                    return Err(unavailable("is offline"));
                }
                None => return Err(unavailable("does not exist")),
            };
            self.placed.push((role, cpu));
        }
        match (self.request.sender.cpu, self.request.receiver.cpu) {
            (Some(sender), Some(receiver)) if sender == receiver && self.allowed.len() > 1 => {
                Err(HostError::SameCpu {
                    first: Role::Sender.option(),
                    second: Role::Receiver.option(),
                    cpu: sender,
                    allowed: self.allowed.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    fn cpu_of(&self, role: Role) -> Option<usize> {
        self.placed
            .iter()
            .find(|(placed, _)| *placed == role)
            .map(|(_, cpu)| cpu.id)
    }

    fn put(&mut self, role: Role, cpu: &'a Cpu) -> usize {
        self.placed.push((role, cpu));
        cpu.id
    }

    fn allowed_cpus(&self) -> impl Iterator<Item = &'a Cpu> + use<'a> {
        self.topology.cpus.iter().filter(|cpu| cpu.allowed)
    }

    /// The number of roles on that CPU, and on its physical core.
    fn load(&self, cpu: &Cpu) -> (usize, usize) {
        let on = |taken: &dyn Fn(usize) -> bool| {
            self.placed.iter().filter(|(_, cpu)| taken(cpu.id)).count()
        };
        (on(&|id| id == cpu.id), on(&|id| cpu.siblings.contains(id)))
    }

    /// The roles on that CPU that must never stop: where all CPUs are taken, it is better to share with another one.
    fn endpoints(&self, cpu: &Cpu) -> usize {
        let endpoint = |role: &Role| matches!(role, Role::Sender | Role::Receiver);
        self.placed
            .iter()
            .filter(|(role, on)| on.id == cpu.id && endpoint(role))
            .count()
    }

    /// The best CPU for a role with that request.
    fn best(&self, request: &RoleRequest) -> &'a Cpu {
        let boot_core = |cpu: &Cpu| {
            if cpu.id == 0 {
                2
            } else {
                usize::from(cpu.siblings.contains(0))
            }
        };
        let remote = |cpu: &Cpu| request.numa_node.is_some() && cpu.numa_node != request.numa_node;
        self.allowed_cpus()
            .min_by_key(|cpu| {
                (
                    self.endpoints(cpu),
                    self.load(cpu),
                    !cpu.isolated,
                    cpu.efficiency,
                    remote(cpu),
                    boot_core(cpu),
                    cpu.id,
                )
            })
            .expect("at least one CPU is allowed: Planner::new checked it")
    }

    fn place(&mut self, role: Role, request: &RoleRequest) -> usize {
        match self.cpu_of(role) {
            Some(cpu) => cpu,
            None => self.put(role, self.best(request)),
        }
    }

    /// A core of its own, else a free CPU, of the receiver's core if there is one, else the receiver's CPU.
    fn place_stamp(&mut self, request: &RoleRequest, receiver: usize) -> usize {
        if let Some(cpu) = self.cpu_of(Role::Stamp) {
            return cpu;
        }
        let best = self.best(request);
        let cpu = match self.load(best) {
            (0, 0) => best,
            _ => self
                .free_cpu_near(receiver)
                .unwrap_or_else(|| self.known(receiver)),
        };
        self.put(Role::Stamp, cpu)
    }

    /// A thread that spins needs a core of its own; one that sleeps may share the sender's.
    fn place_completion(&mut self, request: &RoleRequest, sender: usize) -> Option<usize> {
        if let Some(cpu) = self.cpu_of(Role::Completion) {
            return Some(cpu);
        }
        let best = self.best(request);
        let cpu = match (self.load(best), request.waiting) {
            ((0, 0), _) => best,
            (_, Waiting::Spin) => return None,
            (_, Waiting::Sleep) => self
                .free_cpu_near(sender)
                .unwrap_or_else(|| self.known(sender)),
        };
        Some(self.put(Role::Completion, cpu))
    }

    /// A CPU without a role, on the core of `near` if there is one.
    fn free_cpu_near(&self, near: usize) -> Option<&'a Cpu> {
        self.allowed_cpus()
            .filter(|cpu| self.load(cpu).0 == 0)
            .min_by_key(|cpu| (!cpu.siblings.contains(near), self.load(cpu), cpu.id))
    }

    fn known(&self, id: usize) -> &'a Cpu {
        self.topology
            .cpu(id)
            .expect("a role was placed on this CPU of the topology")
    }

    fn supervisor(&self) -> CpuSet {
        let free = |cpu: &&Cpu| self.load(cpu).0 == 0;
        // Threads on isolated CPUs are not balanced between them, so those come second.
        self.allowed_cpus()
            .filter(free)
            .map(|cpu| {
                let core_is_free = self.load(cpu).1 == 0;
                (core_is_free, Reverse(cpu.isolated))
            })
            .max()
            .map(|best| {
                self.allowed_cpus()
                    .filter(free)
                    .filter(|cpu| (self.load(cpu).1 == 0, Reverse(cpu.isolated)) == best)
                    .map(|cpu| cpu.id)
                    .collect()
            })
            .unwrap_or_else(|| self.allowed.clone())
    }

    fn compromises(&self) -> Vec<Compromise> {
        let mut found = Vec::new();
        let mut placed = self.placed.clone();
        placed.sort_by_key(|(role, _)| *role);
        if let (1, Some(cpu)) = (self.allowed.len(), self.allowed.first()) {
            found.push(Compromise::SingleCpu { cpu });
        } else {
            for (index, &(first, first_cpu)) in placed.iter().enumerate() {
                for &(second, second_cpu) in &placed[index + 1..] {
                    if first_cpu.id == second_cpu.id {
                        found.push(Compromise::SharedCpu {
                            first,
                            second,
                            cpu: first_cpu.id,
                        });
                    } else if first_cpu.siblings.contains(second_cpu.id) {
                        found.push(Compromise::SmtSiblings {
                            first,
                            first_cpu: first_cpu.id,
                            second,
                            second_cpu: second_cpu.id,
                        });
                    }
                }
            }
        }
        for &(role, cpu) in &placed {
            let device_node = self
                .requests()
                .find(|(of, _)| *of == role)
                .and_then(|(_, it)| it.numa_node);
            if let (Some(cpu_node), Some(device_node)) = (cpu.numa_node, device_node)
                && cpu_node != device_node
            {
                found.push(Compromise::NumaRemote {
                    role,
                    cpu: cpu.id,
                    cpu_node,
                    device_node,
                });
            }
            if cpu.efficiency {
                found.push(Compromise::EfficiencyCore { role, cpu: cpu.id });
            }
        }
        if self.request.completion.is_some() && self.cpu_of(Role::Completion).is_none() {
            found.push(Compromise::CompletionBySender);
        }
        if self.allowed.len() > 1 && self.allowed_cpus().all(|cpu| self.load(cpu).0 > 0) {
            found.push(Compromise::SupervisorShares);
        }
        found
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
