//! Which CPU each role of a measurement gets.
//!
//! A pure function of the topology and of the roles, which are data: [`Placement::plan`]. Pinning itself is
//! [`super::pinning`].
//!
//! In this order, what matters to a role: a separate CPU; a separate physical core; an isolated CPU; a big core of a
//! hybrid processor; the NUMA node of its device; not CPU 0, which gets most interrupts; the lowest number.
//!
//! Left out: caches shared between cores, and where the interrupts of the devices go.

use super::compromise::Compromise;
use super::cpu_set::CpuSet;
use super::error::HostError;
use super::topology::{Cpu, Topology};
use serde::Serialize;
use std::cmp::Reverse;

/// How a role waits for what comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Busy: it never gives up its CPU.
    #[default]
    Spin,
    /// By events: it sleeps in the kernel in between.
    Sleep,
}

/// Whether a role must have a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Need {
    /// It always has.
    #[default]
    Always,
    /// One that spins has only where its CPU was named or a physical core is left for it; one that sleeps always has.
    IfCoreLeft,
}

/// A role of a measurement, and what it asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoleSpec {
    /// What it is called: `receiver`.
    pub name: &'static str,
    /// The option by which the user names its CPU.
    pub option: &'static str,
    /// The CPU that the user named.
    pub cpu: Option<usize>,
    /// The NUMA node of the device it works with, if known.
    pub numa_node: Option<usize>,
    pub waiting: WaitMode,
    pub need: Need,
    /// Where no core is left: the role, by its place in the list, whose core it shares, or in the end whose CPU. A role
    /// without one is an end of the measurement, with which no other role shares a CPU if that can be avoided.
    pub beside: Option<usize>,
}

impl RoleSpec {
    /// One that spins, must have a thread, and shares with no other role.
    pub fn new(name: &'static str, option: &'static str, cpu: Option<usize>) -> Self {
        RoleSpec {
            name,
            option,
            cpu,
            ..RoleSpec::default()
        }
    }

    fn is_end(&self) -> bool {
        self.beside.is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Those of the roles, in their order; `None` for one that has no thread.
    pub cpus: Vec<Option<usize>>,
    /// The CPUs of all other threads: where no role runs, if there are any, else all allowed ones.
    ///
    /// It runs on CPUs without a role, on separate cores and not isolated ones, as far as there are any.
    pub supervisor: CpuSet,
    pub warnings: Vec<Compromise>,
}

impl Placement {
    /// Finds a CPU for each role, those that must have one first.
    ///
    /// # Errors
    /// [`HostError::CpuUnavailable`] if a CPU that was named does not exist, is offline or not allowed,
    /// [`HostError::SameCpu`] if two ends were put on the same CPU although there are more, and
    /// [`HostError::NoCpu`] if no CPU is allowed.
    pub fn plan(topology: &Topology, roles: &[RoleSpec]) -> Result<Self, HostError> {
        let mut planner = Planner::new(topology, roles)?;
        planner.place_named()?;
        let always = |role: &(usize, &RoleSpec)| role.1.need == Need::Always;
        let (first, later): (Vec<_>, Vec<_>) = roles.iter().enumerate().partition(always);
        for (place, role) in first.into_iter().chain(later) {
            planner.place(place, role);
        }
        let cpus = (0..roles.len()).map(|place| planner.cpu_of(place).map(|cpu| cpu.id));
        Ok(Self {
            cpus: cpus.collect(),
            supervisor: planner.supervisor(),
            warnings: planner.compromises(),
        })
    }

    /// The CPUs of two ends, `--sender-cpu` and `--receiver-cpu`.
    pub fn of_pair(
        topology: &Topology,
        sender: Option<usize>,
        receiver: Option<usize>,
    ) -> Result<([usize; 2], Self), HostError> {
        let roles = [
            RoleSpec::new("sender", "--sender-cpu", sender),
            RoleSpec::new("receiver", "--receiver-cpu", receiver),
        ];
        let placement = Self::plan(topology, &roles)?;
        let pair = [placement.cpu(0), placement.cpu(1)];
        Ok((pair, placement))
    }

    /// The CPU of a role that always has a thread.
    ///
    /// # Panics
    /// For one that has none.
    pub fn cpu(&self, place: usize) -> usize {
        self.cpus[place].expect("this role always has a thread")
    }

    /// Whether two roles have the same CPU. With SCHED_FIFO, one of them may then never run.
    pub fn shares_cpu(&self) -> bool {
        let taken = self.cpus.iter().flatten();
        taken.clone().copied().collect::<CpuSet>().len() < taken.count()
    }
}

/// A placement in the making.
struct Planner<'a> {
    topology: &'a Topology,
    roles: &'a [RoleSpec],
    allowed: CpuSet,
    /// By place in the list of roles.
    placed: Vec<(usize, &'a Cpu)>,
}

impl<'a> Planner<'a> {
    fn new(topology: &'a Topology, roles: &'a [RoleSpec]) -> Result<Self, HostError> {
        let allowed = topology.allowed();
        if allowed.is_empty() {
            return Err(HostError::NoCpu);
        }
        Ok(Self {
            topology,
            roles,
            allowed,
            placed: Vec::new(),
        })
    }

    /// Takes the CPUs the user named, so that no other role chooses them.
    fn place_named(&mut self) -> Result<(), HostError> {
        for (place, role) in self.roles.iter().enumerate() {
            let Some(id) = role.cpu else { continue };
            let reason = match self.topology.cpu(id) {
                Some(cpu) if cpu.allowed => {
                    self.placed.push((place, cpu));
                    continue;
                }
                Some(_) => "is not allowed for this process (see taskset -p and its cpuset)",
                None if self.topology.offline.contains(id) => "is offline",
                None => "does not exist",
            };
            return Err(HostError::CpuUnavailable {
                option: role.option,
                cpu: id,
                reason,
                allowed: self.allowed.clone(),
            });
        }
        let mut ends: Vec<&RoleSpec> = Vec::new();
        for end in self.roles.iter().filter(|role| role.is_end()) {
            let Some(cpu) = end.cpu else { continue };
            if let Some(first) = ends.iter().find(|first| first.cpu == end.cpu)
                && self.allowed.len() > 1
            {
                return Err(HostError::SameCpu {
                    first: first.option,
                    second: end.option,
                    cpu,
                    allowed: self.allowed.clone(),
                });
            }
            ends.push(end);
        }
        Ok(())
    }

    fn cpu_of(&self, place: usize) -> Option<&'a Cpu> {
        let found = self.placed.iter().find(|(placed, _)| *placed == place);
        found.map(|(_, cpu)| *cpu)
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

    /// The ends of the measurement on that CPU: where all CPUs are taken, it is better to share with another role.
    fn ends(&self, cpu: &Cpu) -> usize {
        let on = self.placed.iter().filter(|(_, on)| on.id == cpu.id);
        on.filter(|(place, _)| self.roles[*place].is_end()).count()
    }

    /// The best CPU for a role.
    fn best(&self, role: &RoleSpec) -> &'a Cpu {
        let boot_core = |cpu: &Cpu| (cpu.id == 0, cpu.siblings.contains(0));
        let remote = |cpu: &Cpu| role.numa_node.is_some() && cpu.numa_node != role.numa_node;
        self.allowed_cpus()
            .min_by_key(|cpu| {
                (
                    self.ends(cpu),
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

    /// Puts a role on the best CPU. One that can share, and for which no core is left: on a free CPU, of the core it
    /// shares if there is one, else on that CPU itself.
    fn place(&mut self, place: usize, role: &RoleSpec) {
        if self.cpu_of(place).is_some() {
            return;
        }
        let best = self.best(role);
        let near = role.beside.and_then(|beside| self.cpu_of(beside));
        let cpu = match (near, self.load(best)) {
            (None, _) | (_, (0, 0)) => best,
            (Some(_), _) if role.need != Need::Always && role.waiting == WaitMode::Spin => return,
            (Some(near), _) => self.free_cpu_near(near).unwrap_or(near),
        };
        self.placed.push((place, cpu));
    }

    /// A CPU without a role, on the core of `near` if there is one.
    fn free_cpu_near(&self, near: &Cpu) -> Option<&'a Cpu> {
        self.allowed_cpus()
            .filter(|cpu| self.load(cpu).0 == 0)
            .min_by_key(|cpu| (!cpu.siblings.contains(near.id), self.load(cpu), cpu.id))
    }

    fn supervisor(&self) -> CpuSet {
        let is_free = |cpu: &&Cpu| self.load(cpu).0 == 0;
        let free: Vec<&Cpu> = self.allowed_cpus().filter(is_free).collect();
        // Threads on isolated CPUs are not balanced between them, so those come second.
        let rank = |cpu: &Cpu| (self.load(cpu).1 == 0, Reverse(cpu.isolated));
        let Some(best) = free.iter().map(|cpu| rank(cpu)).max() else {
            return self.allowed.clone();
        };
        let best = free.into_iter().filter(|cpu| rank(cpu) == best);
        best.map(|cpu| cpu.id).collect()
    }

    fn compromises(&self) -> Vec<Compromise> {
        let mut found = Vec::new();
        let mut placed = self.placed.clone();
        placed.sort_by_key(|(place, _)| *place);
        let name = |place: usize| self.roles[place].name;
        if let (1, Some(cpu)) = (self.allowed.len(), self.allowed.first()) {
            found.push(Compromise::SingleCpu { cpu });
        } else {
            for (index, &(first, first_cpu)) in placed.iter().enumerate() {
                for &(second, second_cpu) in &placed[index + 1..] {
                    if first_cpu.id == second_cpu.id {
                        found.push(Compromise::SharedCpu {
                            first: name(first),
                            second: name(second),
                            cpu: first_cpu.id,
                        });
                    } else if first_cpu.siblings.contains(second_cpu.id) {
                        found.push(Compromise::SmtSiblings {
                            first: name(first),
                            first_cpu: first_cpu.id,
                            second: name(second),
                            second_cpu: second_cpu.id,
                        });
                    }
                }
            }
        }
        for &(place, cpu) in &placed {
            let role = &self.roles[place];
            if let (Some(cpu_node), Some(device_node)) = (cpu.numa_node, role.numa_node)
                && cpu_node != device_node
            {
                found.push(Compromise::NumaRemote {
                    role: role.name,
                    option: role.option,
                    cpu: cpu.id,
                    cpu_node,
                    device_node,
                });
            }
            if cpu.efficiency {
                found.push(Compromise::EfficiencyCore {
                    role: role.name,
                    option: role.option,
                    cpu: cpu.id,
                });
            }
        }
        for (place, role) in self.roles.iter().enumerate() {
            if (role.need, self.cpu_of(place)) == (Need::IfCoreLeft, None) {
                found.push(Compromise::NoCoreLeft { role: role.name });
            }
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
