//! Which pairs there are, by what their CPUs have in common, and how long they take.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::config::Config;
use super::error::RunError;
use crate::host::placement::{Placement, RoleSpec};
use crate::host::{CoreRelation, CpuSet, Topology};

/// What a pair takes beside the time for which it is measured, about: two threads start, move to their CPUs and end.
const BESIDE_A_PAIR: Duration = Duration::from_micros(200);
/// What a point takes beside its pairs, about: its files.
const BESIDE_PAIRS: Duration = Duration::from_millis(10);

/// All pairs of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// What the CPUs of a pair have in common; `None` where the kernel does not report it.
    pub cores: Option<CoreRelation>,
    /// Each pair once, the lower number first.
    pub pairs: Vec<[usize; 2]>,
}

/// The name of what is not known of a pair.
pub const UNKNOWN: &str = "unknown";

/// The name of what two CPUs have in common.
pub fn name_of(cores: Option<CoreRelation>) -> &'static str {
    cores.map_or(UNKNOWN, CoreRelation::name)
}

impl fmt::Display for Point {
    /// The name of its folder.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(name_of(self.cores))
    }
}

impl Point {
    /// How long a round of it takes, about.
    pub fn time(&self, config: &Config) -> Duration {
        let pairs = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        (config.duration + BESIDE_A_PAIR).saturating_mul(pairs) + BESIDE_PAIRS
    }
}

/// The CPUs of the run.
///
/// # Errors
/// When one of them cannot be used, and when there are fewer than two.
pub fn cpus(topology: &Topology, asked: Option<&CpuSet>) -> Result<CpuSet, RunError> {
    let allowed = topology.allowed();
    let Some(asked) = asked else {
        return match allowed.len() {
            0 | 1 => Err(RunError::Refused(format!(
                "hcabench cores: a pair takes two CPUs, and this process may use one only ({allowed}): allow it more \
                 (taskset -p, its cpuset), or use a machine with two or more"
            ))),
            _ => Ok(allowed),
        };
    };
    for cpu in asked.iter() {
        Placement::plan(topology, &[RoleSpec::new("end", "--cpus", Some(cpu))])?;
    }
    match asked.len() {
        0 | 1 => Err(RunError::Refused(format!(
            "--cpus {asked}: a pair takes two CPUs: name two or more of {allowed}"
        ))),
        _ => Ok(asked.clone()),
    }
}

/// All pairs of these CPUs by their kinds, the closest first.
pub fn points(topology: &Topology, cpus: &CpuSet) -> Vec<Point> {
    let kinds = CoreRelation::ALL.iter().copied().map(Some).chain([None]);
    let mut points: Vec<Point> = kinds
        .map(|cores| Point {
            cores,
            pairs: Vec::new(),
        })
        .collect();
    let all: Vec<usize> = cpus.iter().collect();
    for (place, &first) in all.iter().enumerate() {
        for &second in &all[place + 1..] {
            let both = topology.cpu(first).zip(topology.cpu(second));
            let cores = both.and_then(|(one, other)| CoreRelation::between(one, other));
            let of_kind = |point: &&mut Point| point.cores == cores;
            let point = points.iter_mut().find(of_kind);
            point
                .expect("each kind is there")
                .pairs
                .push([first, second]);
        }
    }
    points.retain(|point| !point.pairs.is_empty());
    points
}

/// What the kernel reports of these CPUs.
pub fn reported(topology: &Topology, cpus: &CpuSet) -> Value {
    let text = |set: &Option<CpuSet>| set.as_ref().map(CpuSet::to_string);
    let cpus = cpus.iter().filter_map(|cpu| topology.cpu(cpu));
    let cpus = cpus.map(|cpu| {
        json!({
            "cpu": cpu.id,
            "core": cpu.siblings.to_string(),
            "cluster": text(&cpu.cluster),
            "cache": text(&cpu.last_level_cache),
            "node": cpu.numa_node,
            "socket": cpu.package,
        })
    });
    cpus.collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::config::{DEFAULT_DURATION, DEFAULT_ROUNDS, LineNode};
    use super::*;
    use crate::host::made_up::Machine;
    use crate::testing::Refused as _;
    use crate::time::ClockKind;

    /// Two sockets of two cores with two threads, and a last level of cache for each socket.
    pub(in super::super) fn two_sockets() -> Machine {
        let machine = Machine::new(2, 2, 2);
        for cpu in 0..8 {
            let first = cpu % 4 / 2 * 2;
            let cpus = format!("{first}-{},{}-{}", first + 1, first + 4, first + 5);
            machine.cache(cpu, 0, 3, &cpus);
        }
        machine
    }

    fn all(machine: &Machine) -> Vec<Point> {
        let topology = machine.topology();
        points(&topology, &cpus(&topology, None).unwrap())
    }

    #[test]
    fn two_sockets_of_two_cores_with_two_threads_have_three_kinds_of_pairs() {
        let points = all(&two_sockets());
        let kinds = points
            .iter()
            .map(|point| (point.to_string(), point.pairs.len()));
        let expected = [("smt-siblings", 4), ("same-cache", 8), ("other-socket", 16)];
        assert!(
            kinds.eq(expected.map(|(name, pairs)| (name.to_owned(), pairs))),
            "{points:?}"
        );
        assert_eq!(points[0].pairs, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(points[1].pairs[0], [0, 1]);
        // Of a machine whose kernel reports no caches, and of one that reports nothing.
        let machine = Machine::new(1, 2, 1);
        let names = || Vec::from_iter(all(&machine).iter().map(Point::to_string));
        assert_eq!(names(), ["other-core"]);
        for cpu in 0..2 {
            machine.without(&format!("sys/devices/system/cpu/cpu{cpu}/topology"));
        }
        assert_eq!(names(), [UNKNOWN]);
    }

    #[test]
    fn only_the_cpus_that_are_asked_for_are_paired() {
        let topology = two_sockets().topology();
        let asked = "0,2,6".parse().unwrap();
        let cpus = cpus(&topology, Some(&asked)).unwrap();
        let pairs: Vec<[usize; 2]> = points(&topology, &cpus)
            .into_iter()
            .flat_map(|point| point.pairs)
            .collect();
        assert_eq!(pairs, [[2, 6], [0, 2], [0, 6]]);
    }

    #[test]
    fn what_makes_no_pair_is_refused_with_what_does() {
        let topology = two_sockets().topology_for("0-3");
        let refused = |asked: &str| cpus(&topology, Some(&asked.parse().unwrap()));
        refused("1").refused(&["--cpus 1", "two or more of 0-3"]);
        refused("1,5").refused(&["--cpus 5", "not allowed", "0-3"]);
        refused("1,99").refused(&["--cpus 99", "does not exist", "0-3"]);
        let one = Machine::new(1, 1, 1).topology();
        cpus(&one, None).refused(&["two CPUs", "taskset", "machine with two"]);
    }

    #[test]
    fn what_the_kernel_reports_of_each_cpu_is_recorded() {
        let expected = json!([
            { "cpu": 1, "core": "1,5", "cluster": null, "cache": "0-1,4-5", "node": 0, "socket": 0 },
            { "cpu": 6, "core": "2,6", "cluster": null, "cache": "2-3,6-7", "node": 1, "socket": 1 },
        ]);
        let cpus = "1,6".parse().unwrap();
        assert_eq!(reported(&two_sockets().topology(), &cpus), expected);
    }

    #[test]
    fn all_pairs_of_256_cpus_take_at_most_five_minutes() {
        let config = Config {
            cpus: None,
            duration: DEFAULT_DURATION,
            memory_node: LineNode::Writer,
            clock: ClockKind::Monotonic,
        };
        let topology = Machine::new(2, 64, 2).topology();
        let points = points(&topology, &cpus(&topology, None).unwrap());
        let pairs: usize = points.iter().map(|point| point.pairs.len()).sum();
        assert_eq!(pairs, 256 * 255 / 2);
        let round: Duration = points.iter().map(|point| point.time(&config)).sum();
        assert!(
            DEFAULT_ROUNDS * round <= Duration::from_secs(300),
            "{round:?}"
        );
    }
}
