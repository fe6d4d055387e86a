//! Tests of the placement on made-up machines.

use super::*;
use crate::host::made_up::Machine;
use proptest::prelude::*;

/// What a role asks for.
type RoleRequest = RoleSpec;

/// Four roles as a benchmark of two ends has them: two ends, one that is had where a core is left, and one that always is.
#[derive(Debug, Clone, Copy, Default)]
struct PlacementRequest {
    sender: RoleRequest,
    receiver: RoleRequest,
    completion: Option<RoleRequest>,
    stamp: Option<RoleRequest>,
}

const INSTEAD: Need = Need::IfCoreLeft {
    instead: "the sender does it",
    advice: "name a CPU",
};

const NO_CORE: Compromise = Compromise::NoCoreLeft {
    role: "completion thread",
    instead: "the sender does it",
    advice: "name a CPU",
};

/// Where they are put.
#[derive(Debug, PartialEq)]
struct Placed {
    sender: usize,
    receiver: usize,
    completion: Option<usize>,
    stamp: Option<usize>,
    supervisor: CpuSet,
    warnings: Vec<PlacementWarning>,
    shares_cpu: bool,
}

impl Placed {
    fn plan(topology: &Topology, request: &PlacementRequest) -> Result<Self, HostError> {
        let role = |name, option, beside, request: RoleRequest| RoleSpec {
            name,
            option,
            beside,
            ..request
        };
        let mut roles = vec![
            role("sender", "--sender-cpu", None, request.sender),
            role("receiver", "--receiver-cpu", None, request.receiver),
        ];
        let mut at = [None; 2];
        if let Some(completion) = request.completion {
            let completion = RoleSpec {
                need: INSTEAD,
                ..completion
            };
            at[0] = Some(roles.len());
            roles.push(role(
                "completion thread",
                "--completion-cpu",
                Some(0),
                completion,
            ));
        }
        if let Some(stamp) = request.stamp {
            at[1] = Some(roles.len());
            roles.push(role("stamp thread", "--stamp-cpu", Some(1), stamp));
        }
        let placement = Placement::plan(topology, &roles)?;
        let of = |place: Option<usize>| place.and_then(|place| placement.cpus[place]);
        Ok(Placed {
            sender: placement.cpu(0),
            receiver: placement.cpu(1),
            completion: of(at[0]),
            stamp: of(at[1]),
            shares_cpu: placement.shares_cpu(),
            supervisor: placement.supervisor,
            warnings: placement.warnings,
        })
    }

    fn shares_cpu(&self) -> bool {
        self.shares_cpu
    }
}

fn plan(topology: &Topology, request: &PlacementRequest) -> Placed {
    Placed::plan(topology, request).unwrap()
}

fn on_node(node: usize) -> RoleRequest {
    RoleRequest {
        numa_node: Some(node),
        ..RoleRequest::default()
    }
}

fn on_cpu(cpu: usize) -> RoleRequest {
    RoleRequest {
        cpu: Some(cpu),
        ..RoleRequest::default()
    }
}

fn asleep() -> RoleRequest {
    RoleRequest {
        waiting: Waiting::Sleep,
        ..RoleRequest::default()
    }
}

fn with_completion() -> PlacementRequest {
    PlacementRequest {
        completion: Some(RoleRequest::default()),
        ..PlacementRequest::default()
    }
}

fn everything() -> PlacementRequest {
    PlacementRequest {
        stamp: Some(RoleRequest::default()),
        ..with_completion()
    }
}

fn compromises(placement: &Placed) -> Vec<Compromise> {
    placement
        .warnings
        .iter()
        .map(|warning| warning.compromise.clone())
        .collect()
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn each_role_has_a_core_and_cpu_0_is_left_to_the_rest() {
    let placement = plan(&Machine::new(1, 8, 1).topology(), &everything());
    assert_eq!(
        (
            placement.sender,
            placement.receiver,
            placement.stamp,
            placement.completion
        ),
        (1, 2, Some(3), Some(4))
    );
    assert_eq!(placement.supervisor, set("0,5-7"));
    assert_eq!(placement.warnings, []);
    assert!(!placement.shares_cpu());
}

#[test]
fn roles_are_near_their_devices() {
    let request = PlacementRequest {
        sender: on_node(0),
        receiver: on_node(1),
        completion: Some(on_node(0)),
        stamp: Some(on_node(0)),
    };
    let placement = plan(&Machine::new(2, 4, 2).topology(), &request);
    assert_eq!(
        (
            placement.sender,
            placement.receiver,
            placement.stamp,
            placement.completion
        ),
        (1, 4, Some(2), Some(3))
    );
    // Not 8, 9 to 12: their cores have a role on the other thread, all but that of CPU 0.
    assert_eq!(placement.supervisor, set("0,5-8,13-15"));
    assert_eq!(placement.warnings, []);
}

#[test]
fn a_node_without_enough_cores_is_a_remark() {
    let request = PlacementRequest {
        sender: on_node(1),
        receiver: on_node(1),
        ..Default::default()
    };
    let placement = plan(&Machine::new(2, 1, 2).topology(), &request);
    // Another physical core is worth more than the right node.
    assert_eq!((placement.sender, placement.receiver), (1, 2));
    assert_eq!(
        compromises(&placement),
        [Compromise::NumaRemote {
            role: "receiver",
            option: "--receiver-cpu",
            cpu: 2,
            cpu_node: 0,
            device_node: 1
        }]
    );
}

#[test]
fn isolated_cpus_come_first_even_if_remote() {
    let machine = Machine::new(2, 4, 1);
    machine.isolate("3,5-6");
    let request = PlacementRequest {
        sender: on_node(0),
        receiver: on_node(0),
        ..with_completion()
    };
    let placement = plan(&machine.topology(), &request);
    assert_eq!(
        (placement.sender, placement.receiver, placement.completion),
        (3, 5, Some(6))
    );
    assert_eq!(placement.supervisor, set("0-2,4,7"));
    assert_eq!(
        compromises(&placement),
        [Compromise::NumaRemote {
            role: "receiver",
            option: "--receiver-cpu",
            cpu: 5,
            cpu_node: 1,
            device_node: 0
        }]
    );
}

#[test]
fn siblings_are_used_only_when_no_core_is_left() {
    // CPUs 0 and 2 share a core, and 1 and 3.
    let topology = Machine::new(1, 2, 2).topology();
    let placement = plan(&topology, &with_completion());
    // CPU 2 shares a core with CPU 0, and is still quieter than that.
    assert_eq!(
        (placement.sender, placement.receiver, placement.completion),
        (1, 2, None)
    );
    assert_eq!(placement.completion, None);
    assert_eq!(placement.supervisor, set("0,3"));
    assert_eq!(compromises(&placement), [NO_CORE]);

    let placement = plan(&topology, &everything());
    assert_eq!(placement.stamp, Some(0));
    assert_eq!(
        compromises(&placement),
        [
            Compromise::SmtSiblings {
                first: "receiver",
                first_cpu: 2,
                second: "stamp thread",
                second_cpu: 0
            },
            NO_CORE
        ]
    );
}

#[test]
fn one_core_with_two_threads() {
    let placement = plan(
        &Machine::new(1, 1, 2).topology(),
        &PlacementRequest::default(),
    );
    assert_eq!((placement.sender, placement.receiver), (1, 0));
    assert_eq!(placement.supervisor, set("0-1"));
    assert_eq!(
        compromises(&placement),
        [
            Compromise::SmtSiblings {
                first: "sender",
                first_cpu: 1,
                second: "receiver",
                second_cpu: 0
            },
            Compromise::SupervisorShares
        ]
    );
}

#[test]
fn two_cpus_for_everything() {
    let topology = Machine::new(1, 2, 1).topology();
    let placement = plan(&topology, &everything());
    assert_eq!(
        (
            placement.sender,
            placement.receiver,
            placement.stamp,
            placement.completion
        ),
        (1, 0, Some(0), None)
    );
    assert!(placement.shares_cpu());
    assert_eq!(placement.supervisor, set("0-1"));
    assert_eq!(
        compromises(&placement),
        [
            Compromise::SharedCpu {
                first: "receiver",
                second: "stamp thread",
                cpu: 0
            },
            NO_CORE,
            Compromise::SupervisorShares
        ]
    );

    let request = PlacementRequest {
        completion: Some(asleep()),
        ..Default::default()
    };
    let placement = plan(&topology, &request);
    assert_eq!(placement.completion, Some(1));
    assert_eq!(
        compromises(&placement),
        [
            Compromise::SharedCpu {
                first: "sender",
                second: "completion thread",
                cpu: 1
            },
            Compromise::SupervisorShares
        ]
    );
}

#[test]
fn three_cpus_give_the_completion_thread_one() {
    let placement = plan(&Machine::new(1, 3, 1).topology(), &with_completion());
    assert_eq!(
        (placement.sender, placement.receiver, placement.completion),
        (1, 2, Some(0))
    );
    assert_eq!(compromises(&placement), [Compromise::SupervisorShares]);
}

#[test]
fn a_single_cpu_is_shared_by_all() {
    let topology = Machine::new(1, 1, 1).topology();
    let placement = plan(&topology, &everything());
    assert_eq!(
        (placement.sender, placement.receiver, placement.stamp),
        (0, 0, Some(0))
    );
    assert_eq!(placement.completion, None);
    assert_eq!(
        compromises(&placement),
        [Compromise::SingleCpu { cpu: 0 }, NO_CORE]
    );
    // Named twice, it is still the only one.
    let request = PlacementRequest {
        sender: on_cpu(0),
        receiver: on_cpu(0),
        ..Default::default()
    };
    assert_eq!(plan(&topology, &request).receiver, 0);
}

#[test]
fn big_cores_come_before_small_ones() {
    let machine = Machine::new(1, 6, 1);
    machine.file("sys/devices/cpu_atom/cpus", "1-3");
    let placement = plan(&machine.topology(), &everything());
    assert_eq!(
        (
            placement.sender,
            placement.receiver,
            placement.stamp,
            placement.completion
        ),
        (4, 5, Some(0), Some(1))
    );
    assert_eq!(
        compromises(&placement),
        [Compromise::EfficiencyCore {
            role: "completion thread",
            option: "--completion-cpu",
            cpu: 1
        }]
    );
}

#[test]
fn named_cpus_are_kept_free_of_the_others() {
    let request = PlacementRequest {
        receiver: on_cpu(1),
        completion: Some(on_cpu(6)),
        ..Default::default()
    };
    let placement = plan(&Machine::new(1, 4, 2).topology(), &request);
    // 1 and 5, and 2 and 6, are siblings.
    assert_eq!(
        (placement.sender, placement.receiver, placement.completion),
        (3, 1, Some(6))
    );
    assert_eq!(placement.warnings, []);
}

#[test]
fn a_completion_thread_named_onto_the_sender_exists_with_a_warning() {
    let request = PlacementRequest {
        sender: on_cpu(1),
        completion: Some(on_cpu(1)),
        ..Default::default()
    };
    let placement = plan(&Machine::new(1, 4, 1).topology(), &request);
    assert_eq!(placement.completion, Some(1));
    assert_eq!(
        compromises(&placement),
        [Compromise::SharedCpu {
            first: "sender",
            second: "completion thread",
            cpu: 1
        }]
    );
}

#[test]
fn sender_and_receiver_rather_share_with_another_than_with_each_other() {
    let request = PlacementRequest {
        stamp: Some(on_cpu(1)),
        ..Default::default()
    };
    let placement = plan(&Machine::new(1, 2, 1).topology(), &request);
    assert_eq!(
        (placement.sender, placement.receiver, placement.stamp),
        (0, 1, Some(1))
    );
    assert_eq!(
        compromises(&placement),
        [
            Compromise::SharedCpu {
                first: "receiver",
                second: "stamp thread",
                cpu: 1
            },
            Compromise::SupervisorShares
        ]
    );
}

#[test]
fn what_cannot_be_had_is_an_error_that_names_option_value_and_choice() {
    let machine = Machine::new(1, 4, 1);
    machine.file("sys/devices/system/cpu/online", "0-2");
    let topology = machine.topology_for("0-1");
    let refused = |request| Placed::plan(&topology, &request).unwrap_err().to_string();
    for (cpu, reason) in [(2, "not allowed"), (3, "offline"), (99, "does not exist")] {
        let error = refused(PlacementRequest {
            sender: on_cpu(cpu),
            ..Default::default()
        });
        assert!(
            error.starts_with(&format!("--sender-cpu {cpu}: CPU {cpu} is")) || cpu == 99,
            "{error}"
        );
        assert!(
            error.contains(reason) && error.ends_with("choose one of 0-1"),
            "{error}"
        );
    }
    let error = refused(PlacementRequest {
        sender: on_cpu(1),
        receiver: on_cpu(1),
        ..Default::default()
    });
    assert!(
        error.starts_with("--sender-cpu 1 and --receiver-cpu 1") && error.ends_with("two of 0-1"),
        "{error}"
    );
    let nowhere = machine.topology_for("7");
    assert!(matches!(
        Placed::plan(&nowhere, &PlacementRequest::default()),
        Err(HostError::NoCpu)
    ));
}

#[test]
fn what_was_given_up_stands_in_the_result_with_advice() {
    let placement = plan(&Machine::new(1, 2, 1).topology(), &with_completion());
    let json = serde_json::to_value(&placement.warnings).unwrap();
    assert_eq!(json[0]["kind"], "no_core_left");
    assert_eq!(json[0]["role"], "completion thread");
    assert_eq!(
        json[0]["message"],
        "no core is left for a completion thread: the sender does it"
    );
    assert_eq!(json[0]["advice"], "name a CPU");
}

fn any_role() -> impl Strategy<Value = RoleRequest> {
    (
        prop::option::weighted(0.3, 0usize..20),
        prop::option::of(0usize..3),
        any::<bool>(),
    )
        .prop_map(|(cpu, numa_node, sleeps)| RoleRequest {
            cpu,
            numa_node,
            waiting: if sleeps {
                Waiting::Sleep
            } else {
                Waiting::Spin
            },
            ..RoleRequest::default()
        })
}

prop_compose! {
    fn any_request()(
        sender in any_role(),
        receiver in any_role(),
        completion in prop::option::of(any_role()),
        stamp in prop::option::of(any_role()),
    ) -> PlacementRequest {
        PlacementRequest { sender, receiver, completion, stamp }
    }
}

/// Machines as numbers, so that no files are needed: packages, cores, threads, and the CPUs allowed, isolated and
/// small.
fn any_topology() -> impl Strategy<Value = Topology> {
    let cpus = || prop::collection::vec(any::<bool>(), 24);
    (
        1usize..3,
        1usize..5,
        1usize..3,
        cpus(),
        cpus(),
        cpus(),
        any::<bool>(),
    )
        .prop_map(
            |(packages, cores, threads, allowed, isolated, efficiency, all_allowed)| {
                let all = packages * cores;
                let cpus = (0..all * threads)
                    .map(|id| Cpu {
                        id,
                        core_id: Some(id % cores),
                        package: Some(id % all / cores),
                        numa_node: Some(id % all / cores),
                        siblings: (0..threads).map(|thread| id % all + thread * all).collect(),
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
    fn a_plan_holds_what_it_promises(topology in any_topology(), request in any_request()) {
        let allowed = topology.allowed();
        let placement = match Placed::plan(&topology, &request) {
            Ok(placement) => placement,
            Err(HostError::NoCpu) => { prop_assert!(allowed.is_empty()); return Ok(()) }
            Err(HostError::SameCpu { .. }) => {
                prop_assert!(allowed.len() > 1 && request.sender.cpu == request.receiver.cpu);
                return Ok(())
            }
            Err(HostError::CpuUnavailable { cpu, .. }) => { prop_assert!(!allowed.contains(cpu)); return Ok(()) }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let roles: Vec<(&str, usize)> = [
            ("sender", Some(placement.sender)),
            ("receiver", Some(placement.receiver)),
            ("completion thread", placement.completion),
            ("stamp thread", placement.stamp),
        ]
        .into_iter()
        .filter_map(|(name, cpu)| Some((name, cpu?)))
        .collect();
        let used: CpuSet = roles.iter().map(|(_, cpu)| *cpu).collect();
        prop_assert!(used.difference(&allowed).is_empty());

        // What was named is honoured, and what was asked for exists.
        for (wanted, got) in [
            (request.sender.cpu, Some(placement.sender)),
            (request.receiver.cpu, Some(placement.receiver)),
            (request.completion.and_then(|it| it.cpu), placement.completion),
            (request.stamp.and_then(|it| it.cpu), placement.stamp),
        ] {
            if wanted.is_some() { prop_assert_eq!(wanted, got); }
        }
        prop_assert_eq!(request.stamp.is_some(), placement.stamp.is_some());
        if request.completion.is_some_and(|it| it.waiting == Waiting::Sleep) {
            prop_assert!(placement.completion.is_some());
        }

        // Sender and receiver share only what they must.
        if allowed.len() > 1 { prop_assert_ne!(placement.sender, placement.receiver); }
        let named = [request.sender.cpu, request.receiver.cpu, request.completion.and_then(|it| it.cpu),
            request.stamp.and_then(|it| it.cpu)];
        if named.iter().all(Option::is_none) {
            let core = |cpu: usize| topology.cpu(cpu).unwrap().siblings.clone();
            let cores = roles.iter().map(|(_, cpu)| core(*cpu)).collect::<std::collections::BTreeSet<_>>();
            prop_assert_eq!(cores.len(), roles.len().min(topology.allowed_cores().len()));
        }

        // The rest keeps off, if there is anywhere else.
        if allowed.difference(&used).is_empty() {
            prop_assert_eq!(&placement.supervisor, &allowed);
        } else {
            prop_assert!(placement.supervisor.is_disjoint(&used) && !placement.supervisor.is_empty());
        }

        // Nothing is shared without a word.
        let told = compromises(&placement);
        for (index, (first, cpu)) in roles.iter().enumerate() {
            for (second, other) in &roles[index + 1..] {
                let shared = cpu == other;
                let expected = Compromise::SharedCpu { first, second, cpu: *cpu };
                let said = told.contains(&expected) || matches!(told.first(), Some(Compromise::SingleCpu { .. }));
                prop_assert_eq!(shared, said);
            }
        }
        prop_assert_eq!(
            request.completion.is_some() && placement.completion.is_none(),
            told.contains(&NO_CORE)
        );
    }
}
