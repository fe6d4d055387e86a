//! The effects of nodes in several runs, aligned.
//!
//! Effects count from the middle of the nodes of their run, which is another one where other nodes take part. So each run
//! is moved by the median over nodes of what it differs by from their centres. A run that is judged is compared with the
//! centres, each node from the median of what the *others* differ by: among few nodes a node is much of the median of all.
//! The variance is what runs show when each is compared so with the rest of them.

use super::metrics::{Metric, RunFigures};
use super::scores::{LEAST_NODES, median, medians_of_others};
use crate::stats::shared_spread::Variance;

/// All runs of a metric, aligned.
pub(super) struct Aligned {
    /// By node in order of names, then by direction; `None` of a node that no run has.
    pub(super) nodes: Vec<[Option<AlignedEffect>; 2]>,
    /// By run and direction, what is subtracted from effects.
    pub(super) offsets: Vec<[f64; 2]>,
}

/// An effect of a node over runs.
#[derive(Clone, Copy)]
pub(super) struct AlignedEffect {
    pub(super) centre: f64,
    pub(super) runs: usize,
    /// `None` of one run.
    pub(super) variance: Option<Variance>,
}

/// Runs are aligned again with the centres that follow, this often.
const ALIGNMENTS: usize = 12;

/// The effects of a run in one direction, by node in order of names.
type Effects = Vec<Option<f64>>;

impl Aligned {
    pub(super) fn of(runs: &[&RunFigures], metric: Metric, names: &[String]) -> Self {
        let mut aligned = Aligned {
            nodes: vec![[None; 2]; names.len()],
            offsets: vec![[0.0; 2]; runs.len()],
        };
        for direction in [0, 1] {
            let of_run = |run: &&RunFigures| -> Effects {
                let is_judged = run.nodes.len() >= LEAST_NODES;
                let places = run.places();
                let effect = |name: &String| {
                    let place = places.get(name.as_str()).copied().filter(|_| is_judged);
                    run.effect(metric, place?, direction)
                };
                names.iter().map(effect).collect()
            };
            let effects: Vec<Effects> = runs.iter().map(of_run).collect();
            let (centres, offsets) =
                align(&effects.iter().collect::<Vec<_>>(), vec![0.0; runs.len()]);
            let variances = variances(&effects, &offsets);
            for (node, centre) in centres.into_iter().enumerate() {
                aligned.nodes[node][direction] = centre.map(|(centre, runs)| AlignedEffect {
                    centre,
                    runs,
                    variance: variances[node],
                });
            }
            for (run, offset) in offsets.into_iter().enumerate() {
                aligned.offsets[run][direction] = offset;
            }
        }
        aligned
    }
}

/// Aligns runs: the centre of each node with the number of runs behind it, and what is subtracted from each run. Runs
/// without common nodes stay apart by what `offsets` begins with.
fn align(runs: &[&Effects], mut offsets: Vec<f64>) -> (Vec<Option<(f64, usize)>>, Vec<f64>) {
    let mut centres = vec![None; runs.first().map_or(0, |run| run.len())];
    let moved = |node: usize, offsets: &[f64]| -> Vec<f64> {
        let of_runs = runs.iter().zip(offsets);
        let of_node = of_runs.filter_map(|(run, offset)| Some(run[node]? - offset));
        of_node.collect()
    };
    for _ in 0..ALIGNMENTS {
        for (node, centre) in centres.iter_mut().enumerate() {
            *centre = median(moved(node, &offsets));
        }
        for (run, offset) in runs.iter().zip(&mut offsets) {
            let from = run.iter().zip(&centres);
            let from = from.filter_map(|(effect, centre)| Some((*effect)? - (*centre)?));
            *offset = median(from.collect()).unwrap_or(0.0);
        }
    }
    let middle = median(centres.iter().flatten().copied().collect()).unwrap_or(0.0);
    for offset in &mut offsets {
        *offset += middle;
    }
    let centre = |node: usize| {
        let figures = moved(node, &offsets);
        (!figures.is_empty()).then(|| {
            (
                figures.iter().sum::<f64>() / figures.len() as f64,
                figures.len(),
            )
        })
    };
    let centres = (0..centres.len()).map(centre).collect();
    (centres, offsets)
}

/// The variance of each node's effect. Each run is compared with the others as a run is with a baseline: what runs differ
/// by from centres that they were aligned with themselves is too small, and the more so the fewer nodes there are.
fn variances(runs: &[Effects], offsets: &[f64]) -> Vec<Option<Variance>> {
    let nodes = runs.first().map_or(0, Vec::len);
    let (mut squares, mut counts) = (vec![0.0; nodes], vec![0_usize; nodes]);
    for (place, run) in runs.iter().enumerate() {
        let others = runs.iter().enumerate().filter(|(other, _)| *other != place);
        let others: Vec<&Effects> = others.map(|(_, other)| other).collect();
        let mut of_others = offsets.to_vec();
        of_others.remove(place);
        let (centres, _) = align(&others, of_others);
        let apart = run.iter().zip(&centres);
        let apart: Vec<Option<f64>> = apart
            .map(|(effect, centre)| Some((*effect)? - (*centre)?.0))
            .collect();
        let offsets = medians_of_others(&apart);
        for (node, apart) in apart.iter().enumerate() {
            if let Some((apart, (_, behind))) = (*apart).zip(centres[node]) {
                // The error of the centre is in the deviation.
                let share = behind as f64 / (behind as f64 + 1.0);
                squares[node] += share * (apart - offsets[node]).powi(2);
                counts[node] += 1;
            }
        }
    }
    let variance = |(square, count): (f64, usize)| {
        (count > 1).then(|| Variance {
            value: square / count as f64,
            freedom: count as f64 - 1.0,
        })
    };
    squares.into_iter().zip(counts).map(variance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    /// Of few nodes each is much of what runs are aligned by.
    #[test]
    fn the_spread_of_few_nodes_is_what_a_further_run_differs_by() {
        let mut noise = Noise::new(6);
        let (mut expected, mut found) = (0.0, 0.0);
        for _ in 0..2000 {
            let mut run = || -> Effects { (0..4).map(|_| Some(noise.normal())).collect() };
            let runs: Vec<Effects> = (0..4).map(|_| run()).collect();
            let (centres, offsets) = align(&runs.iter().collect::<Vec<_>>(), vec![0.0; 4]);
            let further = run().into_iter().zip(&centres);
            let apart: Vec<_> = further
                .map(|(effect, centre)| Some(effect? - (*centre)?.0))
                .collect();
            let of_others = medians_of_others(&apart).into_iter().zip(&apart);
            found += of_others
                .map(|(of_others, apart)| (apart.unwrap() - of_others).powi(2))
                .sum::<f64>();
            let spreads = variances(&runs, &offsets).into_iter().flatten();
            // The centre is of four runs.
            expected += 1.25 * spreads.map(|it| it.value).sum::<f64>();
        }
        let ratio = found / expected;
        assert!((0.95..1.05).contains(&ratio), "{ratio}");
        // Two of three runs have the last node.
        let some = vec![Some(1.0), Some(2.0), Some(3.0), None];
        let all = vec![Some(1.0), Some(2.0), Some(3.0), Some(7.0)];
        let variances = variances(&[some, all.clone(), all], &[0.0; 3]);
        assert_eq!(variances[3].map(|it| it.freedom), Some(1.0));
    }

    /// Without the second run, the first and the third have no node in common.
    #[test]
    fn a_run_that_connects_two_others_makes_up_no_spread() {
        let effects = |nodes: std::ops::Range<usize>| -> Effects {
            let effect = |node: usize| if node < 6 { 0.0 } else { 0.15 };
            let middle = if nodes == (6..12) { 0.15 } else { 0.0 };
            (0..12)
                .map(|node| nodes.contains(&node).then(|| effect(node) - middle))
                .collect()
        };
        let runs = [effects(0..6), effects(0..12), effects(6..12)];
        let (_, offsets) = align(&runs.iter().collect::<Vec<_>>(), vec![0.0; 3]);
        for variance in variances(&runs, &offsets).into_iter().flatten() {
            assert!(variance.value < 1e-6, "{variance:?}");
        }
    }
}
