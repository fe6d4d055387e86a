//! Points under memory load that leave no CPU for its generators.

use super::config::Config;
use super::cpus::Cpus;
use super::plan::Plan;
use super::rows;
use crate::generators::CpusLeft;
use crate::host::{CpuSet, Topology};
use crate::results::schema::REASON;

/// Leaves them out, with the reason. Returns the CPUs of the generators.
pub(super) fn leave_out_crowded(plan: &mut Plan, config: &Config, topology: &Topology) -> CpuSet {
    let mut left = CpusLeft::new(topology);
    for point in std::mem::take(&mut plan.points) {
        let Cpus {
            sender, receiver, ..
        } = point.cpus;
        let load = point.memory_load;
        let kept = match load.is_on() {
            // The sender's thread makes the queue.
            true => left.keep_free(load, &CpuSet::from_iter([sender, receiver]), sender),
            false => Ok(()),
        };
        match kept {
            Ok(()) => plan.points.push(point),
            Err(reason) => {
                let mut row = rows::settings(&point, config);
                row.set(&REASON, reason);
                plan.left_out.push(row);
            }
        }
    }
    left.for_generators()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::plan::Point;
    use crate::bench::queue::result::made_up;
    use crate::generators::MemoryLoad;
    use crate::host::made_up::Machine;
    use crate::results::schema::queue as columns;

    #[test]
    fn points_under_memory_load_need_a_cpu_that_is_left() {
        let config = Config {
            has_memory_load: true,
            ..made_up::config()
        };
        for (cores, generators, measured) in [(2, "", 1), (3, "2", 2), (6, "2-5", 2)] {
            let off = made_up::point("lamport");
            let on = Point {
                memory_load: MemoryLoad::of_percent(50).unwrap(),
                ..off.clone()
            };
            let mut plan = Plan {
                points: vec![off, on],
                left_out: Vec::new(),
            };
            let topology = Machine::new(1, cores, 1).topology();
            let found = leave_out_crowded(&mut plan, &config, &topology);
            assert_eq!(found.to_string().as_str(), generators);
            assert_eq!(plan.points.len(), measured);
            let told: Vec<(String, String)> = (plan.left_out.iter())
                .map(|row| (row.text(&columns::MEMORY_LOAD), row.text(&REASON)))
                .collect();
            assert_eq!(told.len(), 2 - measured);
            let is_told = |(load, reason): &(String, String)| {
                load == "50" && reason.contains("no CPU is left")
            };
            assert!(told.iter().all(is_told), "{told:?}");
        }
    }
}
