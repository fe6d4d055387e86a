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

/// Where they are put, in the order of the request.
#[derive(Debug)]
struct Placed {
    cpus: [Option<usize>; 4],
    placement: Placement,
}

impl Placed {
    fn plan(topology: &Topology, request: &PlacementRequest) -> Result<Self, HostError> {
        let named = [
            ("sender", "--sender-cpu", None, Need::Always),
            ("receiver", "--receiver-cpu", None, Need::Always),
            ("completion thread", "--completion-cpu", Some(0), INSTEAD),
            ("stamp thread", "--stamp-cpu", Some(1), Need::Always),
        ];
        let roles = request.roles().into_iter().zip(named).enumerate();
        let (places, roles): (Vec<usize>, Vec<RoleSpec>) = roles
            .filter_map(|(place, (request, (name, option, beside, need)))| {
                let role = RoleSpec {
                    name,
                    option,
                    beside,
                    need,
                    ..request?
                };
                Some((place, role))
            })
            .unzip();
        let placement = Placement::plan(topology, &roles)?;
        let mut cpus = [None; 4];
        for (place, cpu) in places.into_iter().zip(&placement.cpus) {
            cpus[place] = *cpu;
        }
        Ok(Placed { cpus, placement })
    }
}

impl PlacementRequest {
    fn roles(&self) -> [Option<RoleRequest>; 4] {
        let ends = [self.sender, self.receiver].map(Some);
        [ends[0], ends[1], self.completion, self.stamp]
    }
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

fn ends(sender: RoleRequest, receiver: RoleRequest) -> PlacementRequest {
    PlacementRequest {
        sender,
        receiver,
        ..PlacementRequest::default()
    }
}

impl PlacementRequest {
    fn completion(self, completion: RoleRequest) -> Self {
        PlacementRequest {
            completion: Some(completion),
            ..self
        }
    }

    fn stamp(self, stamp: RoleRequest) -> Self {
        PlacementRequest {
            stamp: Some(stamp),
            ..self
        }
    }
}

fn with_completion() -> PlacementRequest {
    PlacementRequest::default().completion(RoleRequest::default())
}

fn everything() -> PlacementRequest {
    with_completion().stamp(RoleRequest::default())
}

/// Plans on a machine: CPUs of sender, receiver, completion and stamp thread (-1 for none), those of the rest, and what
/// is less than it should be.
#[track_caller]
fn check(
    topology: &Topology,
    request: PlacementRequest,
    cpus: &[i32],
    supervisor: &str,
    told: &[&str],
) {
    let Placed {
        cpus: found,
        placement,
    } = Placed::plan(topology, &request).unwrap();
    let wanted = |place| cpus.get(place).and_then(|&cpu| usize::try_from(cpu).ok());
    assert_eq!(found, std::array::from_fn(wanted));
    assert_eq!(placement.supervisor.to_string(), supervisor);
    let warnings = placement.warnings.iter();
    let messages: Vec<&str> = warnings.map(|it| it.message.as_str()).collect();
    assert_eq!(messages, told);
    let is_shared = |text: &&str| text.contains("share CPU");
    assert_eq!(placement.shares_cpu(), told.iter().any(is_shared));
}

const NO_CORE_TOLD: &str = "no core is left for a completion thread: the sender does it";
const SUPERVISOR_SHARES: &str =
    "no CPU is left for the rest of the process, which runs on those of the measurement";

#[test]
fn each_role_has_a_core_and_cpu_0_is_left_to_the_rest() {
    let topology = Machine::new(1, 8, 1).topology();
    check(&topology, everything(), &[1, 2, 4, 3], "0,5-7", &[]);
}

#[test]
fn roles_are_near_their_devices() {
    let near = ends(on_node(0), on_node(1)).completion(on_node(0));
    let topology = Machine::new(2, 4, 2).topology();
    // Not 8, 9 to 12: their cores have a role on the other thread, all but that of CPU 0.
    let rest = "0,5-8,13-15";
    check(&topology, near.stamp(on_node(0)), &[1, 4, 3, 2], rest, &[]);
}

#[test]
fn a_node_without_enough_cores_is_a_remark() {
    let topology = Machine::new(2, 1, 2).topology();
    // Another physical core is worth more than the right node.
    let told = ["receiver runs on CPU 2 of NUMA node 0, its device is on node 1"];
    check(
        &topology,
        ends(on_node(1), on_node(1)),
        &[1, 2],
        "0,3",
        &told,
    );
}

#[test]
fn isolated_cpus_come_first_even_if_remote() {
    let machine = Machine::new(2, 4, 1);
    machine.isolate("3,5-6");
    let request = ends(on_node(0), on_node(0)).completion(RoleRequest::default());
    let told = ["receiver runs on CPU 5 of NUMA node 1, its device is on node 0"];
    check(&machine.topology(), request, &[3, 5, 6], "0-2,4,7", &told);
}

#[test]
fn siblings_are_used_only_when_no_core_is_left() {
    // CPUs 0 and 2 share a core, and 1 and 3.
    let topology = Machine::new(1, 2, 2).topology();
    // CPU 2 shares a core with CPU 0, and is still quieter than that.
    check(
        &topology,
        with_completion(),
        &[1, 2],
        "0,3",
        &[NO_CORE_TOLD],
    );
    let shared = "receiver (CPU 2) and stamp thread (CPU 0) share a physical core";
    let told = [shared, NO_CORE_TOLD];
    check(&topology, everything(), &[1, 2, -1, 0], "3", &told);
}

#[test]
fn where_there_are_few_cpus_roles_share() {
    let usual = PlacementRequest::default;
    let one_core = Machine::new(1, 1, 2).topology();
    let siblings = "sender (CPU 1) and receiver (CPU 0) share a physical core";
    check(
        &one_core,
        usual(),
        &[1, 0],
        "0-1",
        &[siblings, SUPERVISOR_SHARES],
    );

    let two = Machine::new(1, 2, 1).topology();
    let shared = "receiver and stamp thread share CPU 0";
    let told = [shared, NO_CORE_TOLD, SUPERVISOR_SHARES];
    check(&two, everything(), &[1, 0, -1, 0], "0-1", &told);
    let asleep = RoleRequest {
        waiting: Waiting::Sleep,
        ..RoleRequest::default()
    };
    let told = [
        "sender and completion thread share CPU 1",
        SUPERVISOR_SHARES,
    ];
    check(&two, usual().completion(asleep), &[1, 0, 1], "0-1", &told);
    // Sender and receiver rather share with another than with each other.
    let told = ["receiver and stamp thread share CPU 1", SUPERVISOR_SHARES];
    check(&two, usual().stamp(on_cpu(1)), &[0, 1, -1, 1], "0-1", &told);

    let three = Machine::new(1, 3, 1).topology();
    check(
        &three,
        with_completion(),
        &[1, 2, 0],
        "0-2",
        &[SUPERVISOR_SHARES],
    );
}

#[test]
fn a_single_cpu_is_shared_by_all() {
    let topology = Machine::new(1, 1, 1).topology();
    let single = "all threads share CPU 0, the only one there is";
    check(
        &topology,
        everything(),
        &[0, 0, -1, 0],
        "0",
        &[single, NO_CORE_TOLD],
    );
    // Named twice, it is still the only one.
    check(
        &topology,
        ends(on_cpu(0), on_cpu(0)),
        &[0, 0],
        "0",
        &[single],
    );
}

#[test]
fn big_cores_come_before_small_ones() {
    let machine = Machine::new(1, 6, 1);
    machine.file("sys/devices/cpu_atom/cpus", "1-3");
    let told = ["completion thread runs on CPU 1, an efficiency core"];
    check(
        &machine.topology(),
        everything(),
        &[4, 5, 1, 0],
        "2-3",
        &told,
    );
}

#[test]
fn named_cpus_are_kept_free_of_the_others() {
    let named = ends(RoleRequest::default(), on_cpu(1)).completion(on_cpu(6));
    // 1 and 5, and 2 and 6, are siblings.
    check(
        &Machine::new(1, 4, 2).topology(),
        named,
        &[3, 1, 6],
        "0,4",
        &[],
    );
    // One that is named onto the sender exists with a warning.
    let named = ends(on_cpu(1), RoleRequest::default()).completion(on_cpu(1));
    let told = ["sender and completion thread share CPU 1"];
    check(
        &Machine::new(1, 4, 1).topology(),
        named,
        &[1, 2, 1],
        "0,3",
        &told,
    );
}

#[test]
fn what_cannot_be_had_is_an_error_that_names_option_value_and_choice() {
    let machine = Machine::new(1, 4, 1);
    machine.file("sys/devices/system/cpu/online", "0-2");
    let topology = machine.topology_for("0-1");
    for (request, begins, ends) in [
        (
            (2, 0),
            "--sender-cpu 2: CPU 2 is not allowed",
            "choose one of 0-1",
        ),
        (
            (3, 0),
            "--sender-cpu 3: CPU 3 is offline",
            "choose one of 0-1",
        ),
        (
            (99, 0),
            "--sender-cpu 99: CPU 99 does not exist",
            "choose one of 0-1",
        ),
        ((1, 1), "--sender-cpu 1 and --receiver-cpu 1", "two of 0-1"),
    ] {
        let request = self::ends(on_cpu(request.0), on_cpu(request.1));
        let error = Placed::plan(&topology, &request).unwrap_err().to_string();
        assert!(
            error.starts_with(begins) && error.ends_with(ends),
            "{error}"
        );
    }
    assert!(matches!(
        Placed::plan(&machine.topology_for("7"), &PlacementRequest::default()),
        Err(HostError::NoCpu)
    ));
}

#[test]
fn what_was_given_up_stands_in_the_result_with_advice() {
    let topology = Machine::new(1, 2, 1).topology();
    let placed = Placed::plan(&topology, &with_completion()).unwrap();
    let json = serde_json::to_value(&placed.placement.warnings).unwrap();
    assert_eq!(json[0]["kind"], "no_core_left");
    assert_eq!(json[0]["role"], "completion thread");
    assert_eq!(json[0]["message"], NO_CORE_TOLD);
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
        let Placed { cpus, placement } = placement;
        let names = ["sender", "receiver", "completion thread", "stamp thread"];
        let roles: Vec<(&str, usize)> =
            names.into_iter().zip(cpus).filter_map(|(name, cpu)| Some((name, cpu?))).collect();
        let used: CpuSet = roles.iter().map(|(_, cpu)| *cpu).collect();
        prop_assert!(used.difference(&allowed).is_empty());

        // What was named is honoured, and what was asked for exists.
        let named = request.roles().map(|role| role.and_then(|role| role.cpu));
        for (wanted, got) in named.into_iter().zip(cpus) {
            if wanted.is_some() { prop_assert_eq!(wanted, got); }
        }
        let [sender, receiver, completion, stamp] = cpus;
        prop_assert_eq!(request.stamp.is_some(), stamp.is_some());
        if request.completion.is_some_and(|it| it.waiting == Waiting::Sleep) {
            prop_assert!(completion.is_some());
        }

        // Sender and receiver share only what they must.
        if allowed.len() > 1 { prop_assert_ne!(sender, receiver); }
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
        let warnings = placement.warnings.iter();
        let told: Vec<Compromise> = warnings.map(|it| it.compromise.clone()).collect();
        for (index, (first, cpu)) in roles.iter().enumerate() {
            for (second, other) in &roles[index + 1..] {
                let shared = cpu == other;
                let expected = Compromise::SharedCpu { first, second, cpu: *cpu };
                let said = told.contains(&expected) || matches!(told.first(), Some(Compromise::SingleCpu { .. }));
                prop_assert_eq!(shared, said);
            }
        }
        prop_assert_eq!(
            request.completion.is_some() && completion.is_none(),
            told.contains(&NO_CORE)
        );
    }
}
