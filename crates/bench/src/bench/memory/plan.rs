//! The points of a sweep, and what they run on: CPUs, sizes, instruction set.

use std::fmt;

use super::config::{Config, Pause, Sweep};
use super::error::RunError;
use crate::buffer::{Bytes, PageSize};
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
        match self.size_varies {
            true => write!(formatter, "-size-{}", self.size.0),
            false => Ok(()),
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

/// All points of these sizes, and those that are none, each with the reason.
pub fn points(sweep: &Sweep, sizes: &[Bytes]) -> (Vec<Point>, Vec<(Point, &'static str)>) {
    let (mut points, mut left_out) = (Vec::new(), Vec::new());
    for &read_share in &sweep.read_shares {
        for (place, &store) in sweep.stores.iter().enumerate() {
            for &size in sizes {
                for &pause in &sweep.pauses {
                    let point = Point {
                        read_share,
                        store,
                        pause,
                        size,
                        size_varies: sizes.len() > 1,
                    };
                    if read_share == 100 && place > 0 {
                        left_out.push((
                            point,
                            "nothing is stored, so that kinds of stores do not differ",
                        ));
                    } else {
                        points.push(point);
                    }
                }
            }
        }
    }
    (points, left_out)
}

/// What all points run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// That of the accesses.
    pub instruction_set: InstructionSet,
    /// Of the buffer of the chase, at least one.
    pub sizes: Vec<Bytes>,
    /// The CPU of the chase.
    pub chase_cpu: usize,
    /// Those of generators.
    pub generators: Vec<usize>,
    /// Whether a generator runs on another thread of the chase's core.
    pub shares_core: bool,
    /// The last level of cache; `None` if its size is not known.
    pub cache: Option<Bytes>,
}

impl Setting {
    /// The largest size, which the generators' buffers have.
    pub fn largest(&self) -> Bytes {
        let largest = self.sizes.iter().max_by_key(|size| size.0);
        *largest.expect("there is a size")
    }

    /// Whether a buffer is smaller than four times the last level of cache; `None` if its size is not known.
    pub fn in_cache(&self, size: Bytes) -> Option<bool> {
        self.cache.map(|cache| size.0 < CACHES * cache.0)
    }

    /// What there is on this machine for what is asked for.
    ///
    /// # Errors
    /// [`RunError::Refused`] for an instruction set, CPUs or a node that are not there, and for buffers that do not fit.
    pub fn find(config: &Config, sweep: &Sweep) -> Result<Self, RunError> {
        let topology = Topology::read()?;
        check_line(memory_layout::cache_line())?;
        let instruction_set = instruction_set(config.instruction_set)?;
        let chase = RoleSpec::new("chase", "--chase-cpu", config.chase_cpu);
        let chase_cpu = Placement::plan(&topology, &[chase])?.cpu(0);
        let loads = sweep.pauses.iter().any(|pause| *pause != Pause::Off);
        let generators = match loads {
            true => generators(&topology, chase_cpu, config.generators.as_ref())?,
            false => Vec::new(),
        };
        check_node(config.memory_node, &memory_layout::nodes_with_memory()?)?;
        let cache = memory_layout::last_level_cache(chase_cpu).map(Bytes);
        let buffers = 1 + BUFFERS * generators.len() as u64;
        let allowed = Allowance::of_this_process();
        let mut sizes = sweep.sizes.clone();
        if sizes.is_empty() {
            // What else it takes has room for one more.
            let there = allowed.as_ref().map_or(u64::MAX, |allowed| allowed.bytes);
            sizes.push(BufferSettings::usual_size(cache, there / (buffers + 1)));
        }
        let setting = Setting {
            instruction_set,
            sizes,
            chase_cpu,
            shares_core: topology
                .cpu(chase_cpu)
                .is_some_and(|chase| generators.iter().any(|cpu| chase.siblings.contains(*cpu))),
            generators,
            cache,
        };
        let size = setting.largest();
        if let Some(allowed) = allowed {
            check_size(&allowed, size, buffers, config.page)?;
        }
        if let Some(node) = config.memory_node {
            let free = memory_layout::free_on_node(node);
            check_node_has(node, free, buffer_bytes(size, config.page) * buffers)?;
        }
        Ok(setting)
    }
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
fn check_node_has(node: u32, free: Option<u64>, needed: u64) -> Result<(), RunError> {
    match free {
        Some(free) if needed > free => Err(RunError::Refused(format!(
            "--memory-node {node}: the buffers take {needed} bytes, and {free} are free there: use a smaller --size, or \
             fewer --generators"
        ))),
        _ => Ok(()),
    }
}

fn check_size(
    allowed: &Allowance,
    size: Bytes,
    buffers: u64,
    page: Option<PageSize>,
) -> Result<(), RunError> {
    let buffer = buffer_bytes(size, page);
    let needs = [
        MemoryNeed {
            what: "the buffers",
            bytes: buffer.saturating_mul(buffers),
        },
        MemoryNeed {
            what: "the order of the chase",
            bytes: buffer / BYTES_PER_BYTE_OF_ORDER,
        },
    ];
    let options = format!("--size {size} with {buffers} buffers");
    Ok(allowed.require(
        &needs,
        &options,
        "use smaller buffers, or fewer --generators",
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use crate::testing::Refused as _;

    #[test]
    fn without_stores_their_kinds_do_not_differ() {
        let sweep = Sweep {
            read_shares: vec![50, 100],
            stores: vec![Store::Regular, Store::NonTemporal],
            pauses: vec![Pause::Nops(0), Pause::Off],
            sizes: Vec::new(),
        };
        let (points, left_out) = points(&sweep, &[Bytes(1 << 20)]);
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
        };
        let (points, _) = points(&sweep, &sweep.sizes);
        let names: Vec<String> = points.iter().map(Point::to_string).collect();
        let expected = ["65536", "1048576", "16384"];
        assert_eq!(
            names,
            expected.map(|size| format!("reads100-regular-pause-off-size-{size}"))
        );
        let setting = Setting {
            instruction_set: InstructionSet::BASE,
            sizes: sweep.sizes,
            chase_cpu: 0,
            generators: Vec::new(),
            shares_core: false,
            cache: Some(Bytes(16 << 10)),
        };
        assert_eq!(setting.largest(), Bytes(1 << 20));
        let in_cache = points.iter().map(|point| setting.in_cache(point.size));
        assert_eq!(
            in_cache.collect::<Vec<_>>(),
            [Some(false), Some(false), Some(true)]
        );
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
        let checked = check_size(&allowed(1 << 30), mib(512), 3, None);
        checked.refused(&["--size 512 MiB", "half of this machine", "--generators"]);
        check_size(&allowed(1 << 30), mib(256), 3, None).unwrap();
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
