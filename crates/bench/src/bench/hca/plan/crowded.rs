//! Points under memory load that leave no CPU for its generators.

use super::placement::Placement;
use super::{Plan, Point};
use crate::generators::CpusLeft;
use crate::host::{CpuSet, Topology};

/// Leaves them out, with the reason. Returns the CPUs of the generators beside.
///
/// # Errors
/// Those of `placement`.
pub(crate) fn leave_out_crowded<E>(
    plan: Plan,
    topology: &Topology,
    placement: impl Fn(&Point) -> Result<Placement, E>,
) -> Result<(Plan, CpuSet), E> {
    let mut left = CpusLeft::new(topology);
    let mut failure = None;
    let plan = plan.without(|point| {
        if !point.memory_load.is_on() {
            return None;
        }
        match placement(point) {
            Ok(placed) => {
                // The receiver's buffers are made on its CPU.
                let kept = left.keep_free(point.memory_load, &placed.all(), placed.receiver);
                kept.err()
            }
            Err(error) => {
                failure.get_or_insert(error);
                None
            }
        }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok((plan, left.for_generators())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::plan::placement::RunThreads;
    use crate::bench::hca::settings::config::{CpuRequest, Sweep, Timestamp};
    use crate::generators::MemoryLoad;
    use crate::host::HostError;
    use crate::host::made_up::Machine;

    /// The points that are measured, the reasons of others, and the CPUs of generators.
    fn found(cores: usize, timestamps: &[Timestamp]) -> (usize, Vec<String>, String) {
        let sweep = Sweep {
            timestamps: timestamps.to_vec(),
            memory_loads: [0, 50]
                .map(|it| MemoryLoad::of_percent(it).unwrap_or_default())
                .to_vec(),
            ..single()
        };
        let topology = Machine::new(1, cores, 1).topology();
        let placement = |point: &Point| {
            let run = RunThreads::default();
            Placement::of_point(&topology, point, run, CpuRequest::default(), [None; 2])
        };
        let (plan, cpus) = leave_out_crowded(Plan::new(&sweep), &topology, placement).unwrap();
        let reasons = plan.left_out.into_iter().map(|left_out| left_out.reason);
        (plan.points.len(), reasons.collect(), cpus.to_string())
    }

    #[test]
    fn generators_have_what_sender_receiver_and_completion_thread_leave() {
        use Timestamp::{Send, Submit};
        let (measured, reasons, cpus) = found(4, &[Submit]);
        assert_eq!((measured, reasons.len(), cpus.as_str()), (2, 0, "0"));
        // The fourth CPU is that of the stamp thread.
        let (measured, reasons, cpus) = found(4, &[Submit, Send]);
        assert_eq!((measured, reasons.len(), cpus.as_str()), (3, 1, "0"));
        assert!(reasons[0].contains("--memory-load 50%"), "{reasons:?}");
        for cores in [2, 3] {
            let (measured, reasons, cpus) = found(cores, &[Submit]);
            assert_eq!((measured, cpus.as_str()), (1, ""), "{cores}");
            assert!(reasons[0].contains("no CPU is left"), "{reasons:?}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let mut sweep = single();
        sweep.memory_loads = vec![MemoryLoad::of_percent(1).unwrap()];
        let topology = Machine::new(1, 4, 1).topology();
        let absent = |_: &Point| Err(HostError::NoCpu);
        assert!(leave_out_crowded(Plan::new(&sweep), &topology, absent).is_err());
        sweep.memory_loads = vec![MemoryLoad::OFF];
        assert!(leave_out_crowded(Plan::new(&sweep), &topology, absent).is_ok());
    }
}
