//! Tests of the placement on made-up machines.

use super::Compromise::{
    EfficiencyCore, NoCoreLeft, NumaRemote, SharedCpu, SingleCpu, SmtSiblings, SupervisorShares,
};
use super::*;
use crate::host::made_up::Machine;
use proptest::prelude::*;

/// Two ends, and who can share with them: a role that is had where a core is left, and one that always is.
fn sender() -> RoleSpec {
    RoleSpec::new("sender", "--sender-cpu", None)
}

fn receiver() -> RoleSpec {
    RoleSpec::new("receiver", "--receiver-cpu", None)
}

fn completion() -> RoleSpec {
    RoleSpec {
        beside: Some(0),
        need: Need::IfCoreLeft,
        ..RoleSpec::new("completion thread", "--completion-cpu", None)
    }
}

fn stamp() -> RoleSpec {
    RoleSpec {
        beside: Some(1),
        ..RoleSpec::new("stamp thread", "--stamp-cpu", None)
    }
}

fn everything() -> [RoleSpec; 4] {
    [sender(), receiver(), completion(), stamp()]
}

impl RoleSpec {
    fn near(self, node: usize) -> Self {
        RoleSpec {
            numa_node: Some(node),
            ..self
        }
    }

    fn on(self, cpu: usize) -> Self {
        RoleSpec {
            cpu: Some(cpu),
            ..self
        }
    }
}

/// Plans on a machine: the CPUs of the roles (-1 for none), those of the rest, and what is less than it should be.
#[track_caller]
fn check(
    topology: &Topology,
    roles: &[RoleSpec],
    cpus: &[i32],
    rest: &str,
    given_up: &[Compromise],
) {
    let placement = Placement::plan(topology, roles).unwrap();
    let wanted = cpus.iter().map(|&cpu| usize::try_from(cpu).ok());
    assert_eq!(placement.cpus, wanted.collect::<Vec<_>>());
    assert_eq!(placement.supervisor.to_string(), rest);
    assert_eq!(placement.warnings, given_up);
    let mut shared = given_up.iter();
    let is_shared = |it: &Compromise| matches!(it, SharedCpu { .. } | SingleCpu { .. });
    assert_eq!(placement.shares_cpu(), shared.any(is_shared));
}

const NO_CORE: Compromise = NoCoreLeft {
    role: "completion thread",
};

const fn shared(first: &'static str, second: &'static str, cpu: usize) -> Compromise {
    SharedCpu { first, second, cpu }
}

const fn siblings(first: (&'static str, usize), second: (&'static str, usize)) -> Compromise {
    SmtSiblings {
        first: first.0,
        first_cpu: first.1,
        second: second.0,
        second_cpu: second.1,
    }
}

const fn remote_receiver(cpu: usize, cpu_node: usize, device_node: usize) -> Compromise {
    NumaRemote {
        role: "receiver",
        option: "--receiver-cpu",
        cpu,
        cpu_node,
        device_node,
    }
}

#[test]
fn each_role_has_a_core_and_cpu_0_is_left_to_the_rest() {
    let topology = Machine::new(1, 8, 1).topology();
    check(&topology, &everything(), &[1, 2, 4, 3], "0,5-7", &[]);
}

#[test]
fn roles_are_near_their_devices() {
    let [sender, receiver, completion, stamp] = everything();
    let ends = [sender.near(0), receiver.near(1)];
    let roles = [ends[0], ends[1], completion.near(0), stamp.near(0)];
    let topology = Machine::new(2, 4, 2).topology();
    // Not 8, 9 to 12: their cores have a role on the other thread, all but that of CPU 0.
    check(&topology, &roles, &[1, 4, 3, 2], "0,5-8,13-15", &[]);
}

#[test]
fn a_node_without_enough_cores_is_a_remark() {
    let topology = Machine::new(2, 1, 2).topology();
    // Another physical core is worth more than the right node.
    let told = [remote_receiver(2, 0, 1)];
    let roles = [sender().near(1), receiver().near(1)];
    check(&topology, &roles, &[1, 2], "0,3", &told);
}

#[test]
fn isolated_cpus_come_first_even_if_remote() {
    let machine = Machine::new(2, 4, 1);
    machine.isolate("3,5-6");
    let roles = [sender().near(0), receiver().near(0), completion()];
    let told = [remote_receiver(5, 1, 0)];
    check(&machine.topology(), &roles, &[3, 5, 6], "0-2,4,7", &told);
}

#[test]
fn siblings_are_used_only_when_no_core_is_left() {
    // CPUs 0 and 2 share a core, and 1 and 3.
    let topology = Machine::new(1, 2, 2).topology();
    // CPU 2 shares a core with CPU 0, and is still quieter than that.
    let roles = [sender(), receiver(), completion()];
    check(&topology, &roles, &[1, 2, -1], "0,3", &[NO_CORE]);
    let told = [siblings(("receiver", 2), ("stamp thread", 0)), NO_CORE];
    check(&topology, &everything(), &[1, 2, -1, 0], "3", &told);
}

#[test]
fn where_there_are_few_cpus_roles_share() {
    let ends = [sender(), receiver()];
    let one_core = Machine::new(1, 1, 2).topology();
    let told = [siblings(("sender", 1), ("receiver", 0)), SupervisorShares];
    check(&one_core, &ends, &[1, 0], "0-1", &told);

    let two = Machine::new(1, 2, 1).topology();
    let told = [
        shared("receiver", "stamp thread", 0),
        NO_CORE,
        SupervisorShares,
    ];
    check(&two, &everything(), &[1, 0, -1, 0], "0-1", &told);
    let asleep = RoleSpec {
        waiting: WaitMode::Sleep,
        ..completion()
    };
    let told = [shared("sender", "completion thread", 1), SupervisorShares];
    let roles = [sender(), receiver(), asleep];
    check(&two, &roles, &[1, 0, 1], "0-1", &told);
    // Sender and receiver rather share with another than with each other.
    let told = [shared("receiver", "stamp thread", 1), SupervisorShares];
    let roles = [sender(), receiver(), stamp().on(1)];
    check(&two, &roles, &[0, 1, 1], "0-1", &told);

    let three = Machine::new(1, 3, 1).topology();
    let roles = [sender(), receiver(), completion()];
    check(&three, &roles, &[1, 2, 0], "0-2", &[SupervisorShares]);
}

#[test]
fn a_single_cpu_is_shared_by_all() {
    let topology = Machine::new(1, 1, 1).topology();
    let single = SingleCpu { cpu: 0 };
    let told = [single.clone(), NO_CORE];
    check(&topology, &everything(), &[0, 0, -1, 0], "0", &told);
    // Named twice, it is still the only one.
    let roles = [sender().on(0), receiver().on(0)];
    check(&topology, &roles, &[0, 0], "0", &[single]);
}

#[test]
fn big_cores_come_before_small_ones() {
    let machine = Machine::new(1, 6, 1);
    machine.file("sys/devices/cpu_atom/cpus", "1-3");
    let told = [EfficiencyCore {
        role: "completion thread",
        option: "--completion-cpu",
        cpu: 1,
    }];
    let topology = machine.topology();
    check(&topology, &everything(), &[4, 5, 1, 0], "2-3", &told);
}

#[test]
fn named_cpus_are_kept_free_of_the_others() {
    // 1 and 5, and 2 and 6, are siblings.
    let roles = [sender(), receiver().on(1), completion().on(6)];
    let topology = Machine::new(1, 4, 2).topology();
    check(&topology, &roles, &[3, 1, 6], "0,4", &[]);
    // One that is named onto the sender exists with a warning.
    let roles = [sender().on(1), receiver(), completion().on(1)];
    let told = [shared("sender", "completion thread", 1)];
    let topology = Machine::new(1, 4, 1).topology();
    check(&topology, &roles, &[1, 2, 1], "0,3", &told);
}

#[test]
fn what_cannot_be_had_is_an_error_that_names_option_value_and_choice() {
    let machine = Machine::new(1, 4, 1);
    machine.file("sys/devices/system/cpu/online", "0-2");
    let topology = machine.topology_for("0-1");
    let one = "choose one of 0-1";
    for (cpus, begins, ends) in [
        ((2, 0), "--sender-cpu 2: CPU 2 is not allowed", one),
        ((3, 0), "--sender-cpu 3: CPU 3 is offline", one),
        ((99, 0), "--sender-cpu 99: CPU 99 does not exist", one),
        ((1, 1), "--sender-cpu 1 and --receiver-cpu 1", "two of 0-1"),
    ] {
        let roles = [sender().on(cpus.0), receiver().on(cpus.1)];
        let error = Placement::plan(&topology, &roles).unwrap_err().to_string();
        assert!(
            error.starts_with(begins) && error.ends_with(ends),
            "{error}"
        );
    }
    let none = Placement::plan(&machine.topology_for("7"), &[sender(), receiver()]);
    assert!(matches!(none, Err(HostError::NoCpu)));
}

#[test]
fn what_was_given_up_stands_in_the_result() {
    let topology = Machine::new(1, 2, 1).topology();
    let placement = Placement::plan(&topology, &[sender(), receiver(), completion()]).unwrap();
    let json = serde_json::to_value(&placement.warnings).unwrap();
    for (field, told) in [("kind", "no_core_left"), ("role", "completion thread")] {
        assert_eq!(json[0][field], told);
    }
}

fn any_role(role: RoleSpec) -> impl Strategy<Value = RoleSpec> {
    let cpu = prop::option::weighted(0.3, 0usize..20);
    let waiting = prop::sample::select(vec![WaitMode::Spin, WaitMode::Sleep]);
    let asked = (cpu, prop::option::of(0usize..3), waiting);
    asked.prop_map(move |(cpu, numa_node, waiting)| RoleSpec {
        cpu,
        numa_node,
        waiting,
        ..role
    })
}

/// The two ends, and some of the others.
fn any_roles() -> impl Strategy<Value = Vec<RoleSpec>> {
    let others = (
        prop::option::of(any_role(completion())),
        prop::option::of(any_role(stamp())),
    );
    (any_role(sender()), any_role(receiver()), others).prop_map(
        |(sender, receiver, (completion, stamp))| {
            let others = completion.into_iter().chain(stamp);
            [sender, receiver].into_iter().chain(others).collect()
        },
    )
}

/// Machines as numbers, so that no files are needed: packages, cores, threads, and the CPUs allowed, isolated and
/// small.
fn any_topology() -> impl Strategy<Value = Topology> {
    let cpus = || prop::collection::vec(any::<bool>(), 24);
    let size = (1usize..3, 1usize..5, 1usize..3);
    (size, cpus(), cpus(), cpus(), any::<bool>()).prop_map(
        |((packages, cores, threads), allowed, isolated, efficiency, all_allowed)| {
            let all = packages * cores;
            let cpus = (0..all * threads)
                .map(|id| Cpu {
                    id,
                    package: Some(id % all / cores),
                    numa_node: Some(id % all / cores),
                    siblings: (0..threads).map(|thread| id % all + thread * all).collect(),
                    reports_siblings: true,
                    cluster: None,
                    last_level_cache: None,
                    isolated: isolated[id],
                    nohz_full: false,
                    allowed: all_allowed || allowed[id],
                    efficiency: efficiency[id],
                })
                .collect();
            Topology {
                cpus,
                offline: CpuSet::new(),
            }
        },
    )
}

proptest! {
    #[test]
    fn a_plan_holds_what_it_promises(topology in any_topology(), roles in any_roles()) {
        let allowed = topology.allowed();
        let placement = match Placement::plan(&topology, &roles) {
            Ok(placement) => placement,
            Err(HostError::NoCpu) => { prop_assert!(allowed.is_empty()); return Ok(()) }
            Err(HostError::SameCpu { .. }) => {
                prop_assert!(allowed.len() > 1 && roles[0].cpu == roles[1].cpu);
                return Ok(())
            }
            Err(HostError::CpuUnavailable { cpu, .. }) => { prop_assert!(!allowed.contains(cpu)); return Ok(()) }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let cpus = &placement.cpus;
        let used: CpuSet = cpus.iter().flatten().copied().collect();
        prop_assert!(used.difference(&allowed).is_empty());

        // What was named is honoured, and what was asked for exists.
        for (role, got) in roles.iter().zip(cpus) {
            if role.cpu.is_some() { prop_assert_eq!(role.cpu, *got); }
            if role.need == Need::Always || role.waiting == WaitMode::Sleep { prop_assert!(got.is_some()); }
        }

        // Sender and receiver share only what they must.
        if allowed.len() > 1 { prop_assert_ne!(cpus[0], cpus[1]); }
        if roles.iter().all(|role| role.cpu.is_none()) {
            let core = |cpu: usize| topology.cpu(cpu).unwrap().siblings.clone();
            let cores: std::collections::BTreeSet<_> = cpus.iter().flatten().map(|cpu| core(*cpu)).collect();
            let placed = cpus.iter().flatten().count();
            prop_assert_eq!(cores.len(), placed.min(topology.allowed_cores().len()));
        }

        // The rest keeps off, if there is anywhere else.
        if allowed.difference(&used).is_empty() {
            prop_assert_eq!(&placement.supervisor, &allowed);
        } else {
            prop_assert!(placement.supervisor.is_disjoint(&used) && !placement.supervisor.is_empty());
        }

        // Nothing is shared without a word.
        let warnings = placement.warnings.iter();
        let told: Vec<Compromise> = warnings.cloned().collect();
        let is_single = matches!(told.first(), Some(SingleCpu { .. }));
        let placed: Vec<(&RoleSpec, usize)> =
            roles.iter().zip(cpus).filter_map(|(role, cpu)| Some((role, (*cpu)?))).collect();
        for (index, (first, cpu)) in placed.iter().enumerate() {
            for (second, other) in &placed[index + 1..] {
                let expected = shared(first.name, second.name, *cpu);
                prop_assert_eq!(cpu == other, told.contains(&expected) || is_single);
            }
        }
        let is_left_out = |it: &Compromise| matches!(it, NoCoreLeft { .. });
        prop_assert_eq!(cpus.contains(&None), told.iter().any(is_left_out));
    }
}
