//! The points of a sweep, and what they run on: CPUs, sizes, instruction set.

use std::fmt;

use super::config::{Config, Pause, Sweep};
use super::error::RunError;
use crate::buffer::{Bytes, PageSize, Region};
use crate::generators::cpus_left::preferred;
use crate::generators::{
    Accesses, BUFFERS, BufferSettings, CACHES, InstructionSet, LINE, Load, Store,
};
use crate::host::placement::{Placement, RoleSpec};
use crate::host::{CpuSet, Topology, memory_layout};
use crate::rig::memory::{Allowance, MemoryNeed};

/// While the cycle is made, 4 bytes are taken for each line of 64.
const BYTES_PER_BYTE_OF_ORDER: u64 = 16;

/// What is measured at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Per cent of the accesses that read.
    pub read_share: u32,
    /// How the others store.
    pub store: Store,
    /// What is behind each group.
    pub pause: Pause,
    /// What the chase goes through.
    pub size: Bytes,
    /// Whether others go through more or less.
    pub size_varies: bool,
    /// The place that it runs at, by its number.
    pub place: usize,
    /// The nodes of its CPUs and of its memory, where pairs of nodes are measured.
    pub nodes: Option<(usize, u32)>,
}

impl fmt::Display for Point {
    /// The name of its folder.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "reads{}-{}-pause-{}",
            self.read_share,
            self.store.name(),
            self.pause
        )?;
        if self.size_varies {
            write!(formatter, "-size-{}", self.size.0)?;
        }
        match self.nodes {
            Some((cpus, memory)) => write!(formatter, "-nodes-{cpus}-{memory}"),
            None => Ok(()),
        }
    }
}

impl Point {
    /// What generators do; `None` if they rest.
    pub fn load(&self, instruction_set: InstructionSet) -> Option<Load> {
        match self.pause {
            Pause::Off => None,
            Pause::Nops(pause) => Some(Load {
                accesses: Accesses::with_share(instruction_set, self.store, self.read_share),
                pause,
            }),
        }
    }
}

/// All points of these sizes at these places, and those that are none, each with the reason.
pub fn points(
    sweep: &Sweep,
    sizes: &[Bytes],
    places: &[Place],
) -> (Vec<Point>, Vec<(Point, String)>) {
    let mut all = Vec::new();
    for (place, at) in places.iter().enumerate() {
        for &read_share in &sweep.read_shares {
            for &store in &sweep.stores {
                for &size in sizes {
                    all.extend(sweep.pauses.iter().map(|&pause| Point {
                        read_share,
                        store,
                        pause,
                        size,
                        size_varies: sizes.len() > 1,
                        place,
                        nodes: at.cpu_node.zip(at.memory_node),
                    }));
                }
            }
        }
    }
    let (mut points, mut left_out) = (Vec::new(), Vec::new());
    for point in all {
        let stores_nothing_again =
            point.read_share == 100 && Some(&point.store) != sweep.stores.first();
        match &places[point.place].left_out {
            Some(reason) => left_out.push((point, reason.clone())),
            None if stores_nothing_again => {
                let reason = "nothing is stored, so that kinds of stores do not differ";
                left_out.push((point, reason.to_owned()));
            }
            None => points.push(point),
        }
    }
    (points, left_out)
}

/// Where threads run and buffers lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The node of the CPUs, where pairs of nodes are measured.
    pub cpu_node: Option<usize>,
    /// The node of all buffers; that of each thread, if there is none.
    pub memory_node: Option<u32>,
    /// The CPU of the chase.
    pub chase_cpu: usize,
    /// Those of generators.
    pub generators: Vec<usize>,
    /// Whether a generator runs on another thread of the chase's core.
    pub shares_core: bool,
    /// How many generators share a last level of cache, where the fewest do.
    pub share_cache: u64,
    /// Why nothing is measured there, if nothing is.
    pub left_out: Option<String>,
}

impl Place {
    fn new(
        topology: &Topology,
        chase_cpu: usize,
        generators: Vec<usize>,
        memory_node: Option<u32>,
    ) -> Self {
        let chase = topology.cpu(chase_cpu);
        let share_cache = |cpu: &usize| {
            let cache = topology.cpu(*cpu)?.last_level_cache.as_ref()?;
            let sharing = generators.iter().filter(|cpu| cache.contains(**cpu));
            Some(sharing.count() as u64)
        };
        Place {
            share_cache: (generators.iter().map(|cpu| share_cache(cpu).unwrap_or(1)))
                .min()
                .unwrap_or(0),
            cpu_node: None,
            memory_node,
            chase_cpu,
            shares_core: chase
                .is_some_and(|chase| generators.iter().any(|cpu| chase.siblings.contains(*cpu))),
            generators,
            left_out: None,
        }
    }

    fn buffers(&self) -> u64 {
        1 + BUFFERS * self.generators.len() as u64
    }
}

/// The CPUs of each node with the memory of each. Those that cannot be measured have the reason: of `reaches`, why a
/// node's memory cannot be had.
fn node_pairs(
    topology: &Topology,
    memory: &CpuSet,
    loads: bool,
    reaches: impl Fn(u32) -> Result<(), String>,
) -> Vec<Place> {
    let unreached: Vec<(u32, Option<String>)> = memory
        .iter()
        .map(|node| (node as u32, reaches(node as u32).err()))
        .collect();
    let mut places = Vec::new();
    for node in topology.numa_nodes() {
        let cpus = topology.select(|cpu| cpu.allowed && cpu.numa_node == Some(node));
        // Not the first, which serves interrupts as a rule.
        let Some(chase_cpu) = cpus.iter().next_back() else {
            continue;
        };
        let siblings = topology.cpu(chase_cpu).map(|cpu| cpu.siblings.clone());
        let siblings = siblings.unwrap_or_default();
        let left = topology.select(|cpu| cpus.contains(cpu.id) && cpu.id != chase_cpu);
        let generators: Vec<usize> = match loads {
            true => preferred(&left, |cpu| !siblings.contains(cpu))
                .iter()
                .collect(),
            false => Vec::new(),
        };
        let alone = (loads && generators.is_empty()).then(|| {
            format!(
                "of node {node} this process may use CPU {cpus} alone, which is that of the chase: allow it more, or \
                 measure with --pause off"
            )
        });
        places.extend(unreached.iter().map(|(memory_node, reason)| Place {
            cpu_node: Some(node),
            left_out: alone.clone().or_else(|| reason.clone()),
            ..Place::new(topology, chase_cpu, generators.clone(), Some(*memory_node))
        }));
    }
    places
}

/// Refuses pairs of which none can be measured.
fn require_one(pairs: &[Place]) -> Result<(), RunError> {
    let refused = |why: &str| Err(RunError::Refused(format!("--node-pairs: {why}")));
    match pairs {
        [] => refused("the kernel reports no NUMA nodes of this machine"),
        [first, ..] => match &first.left_out {
            Some(reason) if pairs.iter().all(|pair| pair.left_out.is_some()) => refused(reason),
            _ => Ok(()),
        },
    }
}

/// Why this process can have no memory of a node, if it cannot.
fn reaches(node: u32, allowed: Option<&CpuSet>) -> Result<(), String> {
    match allowed.filter(|allowed| !allowed.contains(node as usize)) {
        Some(allowed) => Err(format!(
            "this process may not use the memory of node {node}: its cpuset allows node {allowed}"
        )),
        // A sandbox may forbid the call that binds memory.
        None => Region::new(Bytes(LINE as u64), PageSize::Small, Some(node))
            .map(|_| ())
            .map_err(|error| error.to_string()),
    }
}

/// What all points run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// That of the accesses.
    pub instruction_set: InstructionSet,
    /// Of the buffer of the chase, at least one.
    pub sizes: Vec<Bytes>,
    /// Of each buffer of a generator.
    pub generator_size: Bytes,
    /// Where points are measured, at least one.
    pub places: Vec<Place>,
    /// The last level of cache; `None` if its size is not known.
    pub cache: Option<Bytes>,
}

impl Setting {
    /// Where a point is measured.
    pub fn place(&self, point: &Point) -> &Place {
        &self.places[point.place]
    }

    /// The most generators that run at a time.
    pub fn most_generators(&self) -> usize {
        let generators = self.measured().map(|place| place.generators.len());
        generators.max().unwrap_or(0)
    }

    /// The places where something is measured.
    pub fn measured(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(|place| place.left_out.is_none())
    }

    /// The largest size of the chase.
    pub fn largest(&self) -> Bytes {
        largest(&self.sizes)
    }

    /// What a point reads and stores to that is smaller than four times the last level of cache: the buffer of the chase,
    /// or else those of the generators that share such a cache together, of which each has that size. `None` if the size of
    /// the cache is not known.
    pub fn in_cache(&self, point: &Point) -> Option<Option<Bytes>> {
        let enough = CACHES * self.cache?.0;
        let of_generators = BUFFERS * self.place(point).share_cache * self.generator_size.0;
        Some(match point.pause {
            _ if point.size.0 < enough => Some(point.size),
            Pause::Nops(_) if of_generators < enough => Some(self.generator_size),
            _ => None,
        })
    }

    /// What there is on this machine for what is asked for.
    ///
    /// # Errors
    /// [`RunError::Refused`] for an instruction set, CPUs or a node that are not there, and for buffers that do not fit.
    pub fn find(config: &Config, sweep: &Sweep) -> Result<Self, RunError> {
        let topology = Topology::read()?;
        check_line(memory_layout::cache_line())?;
        let instruction_set = instruction_set(config.instruction_set)?;
        let loads = sweep.pauses.iter().any(|pause| *pause != Pause::Off);
        let nodes = memory_layout::nodes_with_memory()?;
        let mut places = match sweep.node_pairs {
            true => {
                let allowed = memory_layout::nodes_allowed()?;
                node_pairs(&topology, &nodes, loads, |node| {
                    reaches(node, allowed.as_ref())
                })
            }
            false => {
                let chase = RoleSpec::new("chase", "--chase-cpu", config.chase_cpu);
                let chase_cpu = Placement::plan(&topology, &[chase])?.cpu(0);
                let generators = match loads {
                    true => generators(&topology, chase_cpu, config.generators.as_ref())?,
                    false => Vec::new(),
                };
                check_node(config.memory_node, &nodes)?;
                vec![Place::new(
                    &topology,
                    chase_cpu,
                    generators,
                    config.memory_node,
                )]
            }
        };
        if sweep.node_pairs {
            require_one(&places)?;
        }
        let cache = memory_layout::last_level_cache(places[0].chase_cpu).map(Bytes);
        let buffers = places.iter().map(Place::buffers).max().unwrap_or(1);
        let allowed = Allowance::of_this_process();
        let (sizes, generator_size) = match sweep.sizes.is_empty() {
            false => (sweep.sizes.clone(), largest(&sweep.sizes)),
            true => {
                let there = allowed.as_ref().map_or(u64::MAX, |allowed| allowed.bytes);
                let (size, of_generators) = usual_sizes(cache, there, buffers);
                (vec![size], of_generators)
            }
        };
        let needed = |buffers: u64| {
            let of_generators = buffer_bytes(generator_size, config.page);
            buffer_bytes(largest(&sizes), config.page)
                .saturating_add(of_generators.saturating_mul(buffers - 1))
        };
        if let Some(allowed) = allowed {
            let advice = match sweep.node_pairs {
                true => "use a smaller --size",
                false => "use smaller buffers, or fewer --generators",
            };
            check_size(&allowed, largest(&sizes), needed(buffers), buffers, advice)?;
        }
        for place in places.iter_mut().filter(|place| place.left_out.is_none()) {
            let Some(node) = place.memory_node else {
                continue;
            };
            let free = memory_layout::free_on_node(node);
            if let Err(reason) = check_node_has(node, free, needed(place.buffers())) {
                match sweep.node_pairs {
                    true => place.left_out = Some(format!("{reason}: use a smaller --size")),
                    false => {
                        return Err(RunError::Refused(format!(
                            "--memory-node {node}: {reason}: use a smaller --size, or fewer --generators"
                        )));
                    }
                }
            }
        }
        if sweep.node_pairs {
            require_one(&places)?;
        }
        Ok(Setting {
            instruction_set,
            sizes,
            generator_size,
            places,
            cache,
        })
    }
}

fn largest(sizes: &[Bytes]) -> Bytes {
    let largest = sizes.iter().max_by_key(|size| size.0);
    *largest.expect("there is a size")
}

/// Of the buffer of the chase, and of each of the others, in so many bytes: it is the chase that must leave the cache.
fn usual_sizes(cache: Option<Bytes>, there: u64, buffers: u64) -> (Bytes, Bytes) {
    let size = BufferSettings::usual_size(cache, there / 2);
    let order = size.0 / BYTES_PER_BYTE_OF_ORDER;
    // What else it takes has room for one more.
    let left = there.saturating_sub(size.0 + order) / buffers;
    let of_generators = BufferSettings::usual_size(cache, left);
    (size, Bytes(of_generators.0.min(size.0)))
}

/// The generators' functions and the chase are made for one length of lines.
fn check_line(line: Option<u64>) -> Result<(), RunError> {
    match line.filter(|line| *line != LINE as u64) {
        None => Ok(()),
        Some(line) => Err(RunError::Refused(format!(
            "hcabench memory: a cache line of this processor has {line} bytes; allowed is {LINE}, which its accesses \
             are made for"
        ))),
    }
}

fn instruction_set(asked: Option<InstructionSet>) -> Result<InstructionSet, RunError> {
    let there = || {
        let there = InstructionSet::ALL.iter().filter(|set| set.is_there());
        let names: Vec<&str> = there.map(|set| set.name()).collect();
        if names.is_empty() {
            "none is: it runs on x86-64 and aarch64 only".to_owned()
        } else {
            names.join(", ")
        }
    };
    match asked {
        Some(asked) if asked.is_there() => Ok(asked),
        Some(asked) => Err(RunError::Refused(format!(
            "--isa {}: this processor does not have it: allowed is auto or one of {}",
            asked.name(),
            there()
        ))),
        None => InstructionSet::widest().ok_or_else(|| {
            RunError::Refused(format!("--isa auto: of the instruction sets {}", there()))
        }),
    }
}

/// Those asked for, or all that are left, without the other threads of the chase's core.
fn generators(
    topology: &Topology,
    chase: usize,
    asked: Option<&CpuSet>,
) -> Result<Vec<usize>, RunError> {
    if let Some(asked) = asked {
        for cpu in asked.iter() {
            let generator = RoleSpec::new("generator", "--generators", Some(cpu));
            Placement::plan(
                topology,
                &[
                    RoleSpec::new("chase", "--chase-cpu", Some(chase)),
                    generator,
                ],
            )?;
            if cpu == chase {
                return Err(RunError::Refused(format!(
                    "--generators {asked}: CPU {cpu} is that of the chase (--chase-cpu): choose others of {}",
                    topology.allowed()
                )));
            }
        }
        return Ok(asked.iter().collect());
    }
    let here = topology.cpu(chase);
    let siblings = here.map(|cpu| cpu.siblings.clone()).unwrap_or_default();
    let left = topology.select(|cpu| cpu.allowed && cpu.id != chase);
    // A sibling is better than none.
    let generators = preferred(&left, |cpu| !siblings.contains(cpu));
    if generators.is_empty() {
        return Err(RunError::Refused(format!(
            "--generators: no CPU is left beside CPU {chase}, which is that of the chase: this process may use CPU {}; \
             allow it more, or measure with --pause off",
            topology.allowed()
        )));
    }
    Ok(generators.iter().collect())
}

fn check_node(asked: Option<u32>, there: &CpuSet) -> Result<(), RunError> {
    match asked {
        Some(node) if !there.contains(node as usize) => Err(RunError::Refused(format!(
            "--memory-node {node}: this machine has no such NUMA node with memory: allowed is one of {there}"
        ))),
        _ => Ok(()),
    }
}

/// What the size of a buffer comes to in its pages.
fn buffer_bytes(size: Bytes, page: Option<PageSize>) -> u64 {
    page.unwrap_or(PageSize::Huge).length_for(size).0
}

/// The kernel ends a process that wants more of a node than there is.
fn check_node_has(node: u32, free: Option<u64>, needed: u64) -> Result<(), String> {
    match free {
        Some(free) if needed > free => Err(format!(
            "the buffers take {needed} bytes, and {free} are free on node {node}"
        )),
        _ => Ok(()),
    }
}

fn check_size(
    allowed: &Allowance,
    size: Bytes,
    needed: u64,
    buffers: u64,
    advice: &'static str,
) -> Result<(), RunError> {
    let needs = [
        MemoryNeed {
            what: "the buffers",
            bytes: needed,
        },
        MemoryNeed {
            what: "the order of the chase",
            bytes: size.0 / BYTES_PER_BYTE_OF_ORDER,
        },
    ];
    let options = format!("--size {size} with {buffers} buffers");
    Ok(allowed.require(&needs, &options, advice)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use crate::testing::{Has as _, Refused as _};

    fn place() -> Place {
        Place::new(&Machine::new(1, 2, 1).topology(), 0, vec![1], None)
    }

    #[test]
    fn the_cpus_of_each_node_meet_the_memory_of_each_also_of_one_without_cpus() {
        // CPUs 0, 1, 4 and 5 are of node 0, two threads a core.
        let topology = Machine::new(2, 2, 2).topology();
        let memory: CpuSet = "0-2".parse().unwrap();
        let all = |_| Ok(());
        let places = node_pairs(&topology, &memory, true, all);
        let told = |place: &Place| {
            assert!(!place.shares_core);
            let nodes = (place.cpu_node.unwrap(), place.memory_node.unwrap());
            (nodes, place.chase_cpu, place.generators.clone())
        };
        let expected = |node: usize, chase_cpu: usize, generators: [usize; 2]| {
            (0..3).map(move |memory| ((node, memory), chase_cpu, generators.to_vec()))
        };
        let expected = expected(0, 5, [0, 4]).chain(expected(1, 7, [2, 6]));
        assert!(places.iter().map(told).eq(expected), "{places:?}");
        let sweep = Sweep {
            read_shares: vec![100],
            stores: vec![Store::Regular],
            pauses: vec![Pause::Off],
            sizes: Vec::new(),
            node_pairs: true,
        };
        let (points, _) = points(&sweep, &[Bytes(1 << 20)], &places);
        let name = "reads100-regular-pause-off-nodes-0-2";
        assert_eq!((points.len(), points[2].to_string().as_str()), (6, name));
        // A node of which this process may use one CPU, and one of which it may use none.
        let one = Machine::new(2, 2, 1).topology_for("1");
        let told = ["--node-pairs", "node 0", "CPU 1 alone", "--pause off"];
        require_one(&node_pairs(&one, &memory, true, all)).refused(&told);
        let places = node_pairs(&one, &memory, false, all);
        let is_alone = |place: &Place| place.chase_cpu == 1 && place.generators.is_empty();
        assert!(
            places.len() == 3 && places.iter().all(is_alone),
            "{places:?}"
        );
        let machine = Machine::new(1, 1, 1);
        machine.without("sys/devices/system/node");
        let none = node_pairs(&machine.topology(), &memory, false, all);
        require_one(&none).refused(&["--node-pairs", "no NUMA nodes"]);
    }

    #[test]
    fn pairs_that_cannot_be_measured_are_left_out_with_the_reason() {
        let memory: CpuSet = "0-1".parse().unwrap();
        let allowed: CpuSet = "0".parse().unwrap();
        let is_allowed = |node: u32| match node {
            0 => Ok(()),
            node => reaches(node, Some(&allowed)),
        };
        // Node 0 has CPUs 0 and 1, of which this process may use both, and node 1 has CPU 2 for it.
        let topology = Machine::new(2, 2, 1).topology_for("0-2");
        let places = node_pairs(&topology, &memory, true, is_allowed);
        require_one(&places).unwrap();
        let sweep = Sweep {
            read_shares: vec![100],
            stores: vec![Store::Regular],
            pauses: vec![Pause::Off, Pause::Nops(0)],
            sizes: Vec::new(),
            node_pairs: true,
        };
        let (points, left_out) = points(&sweep, &[Bytes(1 << 20)], &places);
        let is_first = |point: &Point| point.nodes == Some((0, 0));
        assert!(
            points.len() == 2 && points.iter().all(is_first),
            "{points:?}"
        );
        let reason = |nodes: (usize, u32)| {
            let mut all = left_out.iter();
            let found = all.find(|(point, _)| point.nodes == Some(nodes));
            found.unwrap().1.as_str()
        };
        reason((0, 1)).has(&["memory of node 1", "allows node 0"]);
        reason((1, 0)).has(&["CPU 2 alone", "--pause off"]);
        assert_eq!(left_out.len(), 6);
        let none = node_pairs(&topology, &memory, false, |_| {
            Err("it is not there".to_owned())
        });
        require_one(&none).refused(&["--node-pairs: it is not there"]);
        // What is told names no option that pairs of nodes exclude.
        let why = check_node_has(3, Some(10), 20).unwrap_err();
        assert!(!why.contains("--"), "{why}");
        why.has(&["take 20 bytes", "10 are free on node 3"]);
    }

    #[test]
    fn many_generators_do_not_make_the_chase_fit_into_the_cache() {
        let mib = |count: u64| Bytes(count << 20);
        let cache = Some(mib(32));
        for (there, buffers, expected) in [
            (4 << 30, 3, (mib(128), mib(128))),
            // 255 generators.
            (4 << 30, 511, (mib(128), mib(6))),
            (64 << 20, 511, (mib(32), mib(2))),
            (u64::MAX, 511, (mib(128), mib(128))),
        ] {
            assert_eq!(
                usual_sizes(cache, there, buffers),
                expected,
                "{there} {buffers}"
            );
        }
    }

    #[test]
    fn without_stores_their_kinds_do_not_differ() {
        let sweep = Sweep {
            read_shares: vec![50, 100],
            stores: vec![Store::Regular, Store::NonTemporal],
            pauses: vec![Pause::Nops(0), Pause::Off],
            sizes: Vec::new(),
            node_pairs: false,
        };
        let (points, left_out) = points(&sweep, &[Bytes(1 << 20)], &[place()]);
        assert_eq!((points.len(), left_out.len()), (6, 2));
        assert!(left_out.iter().all(|(point, _)| point.read_share == 100));
        let names: Vec<String> = points.iter().map(Point::to_string).collect();
        assert_eq!(names[0], "reads50-regular-pause-0");
        assert_eq!(names[3], "reads50-non-temporal-pause-off");
    }

    #[test]
    fn each_size_is_a_point_and_the_largest_is_that_of_the_generators() {
        let sweep = Sweep {
            read_shares: vec![100],
            stores: vec![Store::Regular],
            pauses: vec![Pause::Off],
            sizes: vec![Bytes(64 << 10), Bytes(1 << 20), Bytes(16 << 10)],
            node_pairs: false,
        };
        let (points, _) = points(&sweep, &sweep.sizes, &[place()]);
        let names: Vec<String> = points.iter().map(Point::to_string).collect();
        let expected = ["65536", "1048576", "16384"];
        assert_eq!(
            names,
            expected.map(|size| format!("reads100-regular-pause-off-size-{size}"))
        );
        let setting = Setting {
            instruction_set: InstructionSet::BASE,
            sizes: sweep.sizes,
            generator_size: Bytes(16 << 10),
            places: vec![place()],
            cache: Some(Bytes(16 << 10)),
        };
        assert_eq!(setting.largest(), Bytes(1 << 20));
        let in_cache = points.iter().map(|point| setting.in_cache(point));
        let small = Some(Some(Bytes(16 << 10)));
        assert_eq!(
            in_cache.collect::<Vec<_>>(),
            [Some(None), Some(None), small]
        );
        // Two buffers of the generator are 32 KiB.
        let loaded = Point {
            pause: Pause::Nops(0),
            ..points[1]
        };
        assert_eq!(setting.in_cache(&loaded), small);
        let unknown = Setting {
            cache: None,
            ..setting
        };
        assert_eq!(unknown.in_cache(&loaded), None);
    }

    #[test]
    fn generators_share_the_cache_that_fewest_of_them_have() {
        let machine = Machine::new(1, 8, 1);
        for cpu in 0..8 {
            let cpus = if cpu < 6 { "0-5" } else { "6-7" };
            machine.cache(cpu, 0, 3, cpus);
        }
        let shared = |generators: &[usize]| {
            Place::new(&machine.topology(), 0, generators.to_vec(), None).share_cache
        };
        assert_eq!(shared(&[1, 2, 3, 4, 5, 6, 7]), 2);
        assert_eq!(shared(&[1, 2, 3]), 3);
        assert_eq!(shared(&[1, 2, 7]), 1);
        assert_eq!(shared(&[]), 0);
        // Not known.
        let unknown = Machine::new(1, 4, 1).topology();
        assert_eq!(Place::new(&unknown, 0, vec![1, 2], None).share_cache, 1);
    }

    #[test]
    fn generators_are_the_other_cores_of_all_packages() {
        // CPUs 0 to 3 and 8 to 11 are of the first package, two threads a core.
        let topology = Machine::new(2, 4, 2).topology();
        let expected = [0, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15];
        assert_eq!(generators(&topology, 1, None).unwrap(), expected);
        let asked: CpuSet = "4-5".parse().unwrap();
        assert_eq!(generators(&topology, 1, Some(&asked)).unwrap(), [4, 5]);
        generators(&topology, 4, Some(&asked)).refused(&["--chase-cpu 4", "--generators 4"]);
        let absent: CpuSet = "99".parse().unwrap();
        generators(&topology, 4, Some(&absent)).refused(&["--generators 99"]);
        // Where there is one core only, its other thread has to do.
        let topology = Machine::new(1, 1, 2).topology();
        assert_eq!(generators(&topology, 0, None).unwrap(), [1]);
        let topology = Machine::new(1, 1, 1).topology();
        generators(&topology, 0, None).refused(&["--generators", "no CPU is left", "--pause off"]);
    }

    #[test]
    fn buffers_that_do_not_fit_are_refused() {
        let allowed = |bytes| Allowance { bytes, group: None };
        let mib = |count: u64| Bytes(count << 20);
        let checked = |size: Bytes| {
            let advice = "or fewer --generators";
            check_size(&allowed(1 << 30), size, 3 * size.0, 3, advice)
        };
        checked(mib(512)).refused(&["--size 512 MiB", "half of this machine", "--generators"]);
        checked(mib(256)).unwrap();
    }

    #[test]
    fn lines_of_another_length_are_refused() {
        check_line(None).unwrap();
        check_line(Some(64)).unwrap();
        check_line(Some(128)).refused(&["has 128 bytes", "allowed is 64"]);
    }

    #[test]
    fn nodes_and_instruction_sets_that_are_not_there_are_refused() {
        let there: CpuSet = "0,2".parse().unwrap();
        check_node(Some(2), &there).unwrap();
        check_node(Some(1), &there).refused(&["--memory-node 1", "one of 0,2"]);
        for &set in InstructionSet::ALL {
            match set.is_there() {
                true => assert_eq!(instruction_set(Some(set)).unwrap(), set),
                false => instruction_set(Some(set)).refused(&["--isa", "allowed is auto"]),
            }
        }
    }
}
