//! Jumps of several CPUs at once: what stops all of them is below the kernel, an SMI or the hypervisor.
//!
//! Jumps of two CPUs coincide when they begin within a tolerance of each other. Where jumps are many, some coincide by
//! chance; how many, if those of the CPUs were independent and evenly spread, is said beside.
//!
//! Left out: timer interrupts of all CPUs come at the same time as well on many kernels, so coincidence alone proves
//! nothing where an interrupt is the cause.

use serde::Serialize;

/// How often jumps of several CPUs coincide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Coincidences {
    /// Jumps, over all CPUs, that began with one of another CPU.
    pub jumps: u64,
    /// Of these, those that began with one of every other CPU.
    pub on_all_cpus: u64,
    /// Jumps that would do so by chance.
    pub by_chance: f64,
}

/// For each CPU and each of its jumps, the number of other CPUs with a jump that began at most `tolerance` before or
/// after. `begins` has the beginnings by CPU, ascending, on one clock.
pub(super) fn others(begins: &[Vec<u64>], tolerance: u64) -> Vec<Vec<u32>> {
    let of_cpu = |cpu: usize| {
        let mut counts = vec![0; begins[cpu].len()];
        for (_, other) in begins.iter().enumerate().filter(|(at, _)| *at != cpu) {
            let mut from = 0;
            for (count, &begin) in counts.iter_mut().zip(&begins[cpu]) {
                let is_over = |it: &&u64| it.saturating_add(tolerance) < begin;
                from += other[from..].iter().take_while(is_over).count();
                let next = other.get(from);
                let near = next.is_some_and(|&it| it <= begin.saturating_add(tolerance));
                *count += u32::from(near);
            }
        }
        counts
    };
    (0..begins.len()).map(of_cpu).collect()
}

/// Sums up what [`others`] found of two CPUs or more, for a run of so many ticks.
pub(super) fn summarise(
    begins: &[Vec<u64>],
    others: &[Vec<u32>],
    tolerance: u64,
    ticks: u64,
) -> Coincidences {
    let cpus = begins.len();
    let all = || others.iter().flatten();
    let counts: Vec<f64> = begins.iter().map(|begins| begins.len() as f64).collect();
    let total: f64 = counts.iter().sum();
    let reach = (2.0 * tolerance as f64 / ticks.max(1) as f64).min(1.0);
    Coincidences {
        jumps: all().filter(|&&others| others > 0).count() as u64,
        on_all_cpus: all().filter(|&&others| others as usize == cpus - 1).count() as u64,
        by_chance: counts
            .iter()
            .map(|count| count * (1.0 - (-reach * (total - count)).exp()))
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn jumps_of_two_cpus_are_told_from_those_of_one() {
        let begins = vec![vec![100, 5000, 9000], vec![40, 5003, 20_000], vec![4990]];
        let found = others(&begins, 10);
        assert_eq!(found, [vec![0, 2, 0], vec![0, 1, 0], vec![1]]);
        let summary = summarise(&begins, &found, 10, 1_000_000);
        assert_eq!((summary.jumps, summary.on_all_cpus), (3, 1));
        assert!(summary.by_chance < 0.01, "{summary:?}");
    }

    #[test]
    fn chance_is_that_of_independent_jumps() {
        // 1000 jumps each in 1e9 ticks, within 1000 of each other: 1000 * (1 - e^-0.002) of each CPU.
        let begins = vec![(0..1000).map(|n| n * 1_000_000).collect::<Vec<u64>>(); 2];
        let summary = summarise(&begins, &others(&begins, 1000), 1000, 1_000_000_000);
        assert!((summary.by_chance - 3.996).abs() < 0.001, "{summary:?}");
        assert_eq!(summary.jumps, 2000);
    }

    proptest! {
        #[test]
        fn are_those_of_looking_at_every_pair(
            first in prop::collection::vec(0_u64..2000, 0..40), second in prop::collection::vec(0_u64..2000, 0..40), tolerance in 0_u64..50,
        ) {
            let mut begins = vec![first, second];
            begins.iter_mut().for_each(|begins| begins.sort_unstable());
            let found = others(&begins, tolerance);
            for (cpu, other) in [(0, 1), (1, 0)] {
                for (at, begin) in begins[cpu].iter().enumerate() {
                    let near = begins[other].iter().any(|it| it.abs_diff(*begin) <= tolerance);
                    prop_assert_eq!(found[cpu][at], u32::from(near));
                }
            }
        }
    }
}
