//! Which windows count, and what they come to.

use std::time::Duration;

use super::windows::{MeasuredWindows, Window};
use crate::generators::{Accesses, LINE, LineCounts, Load, Store};
use crate::host::tlb::TlbCounts;
use crate::stats::median_of;
use crate::stats::outliers::{Outliers, kept, mean_and_deviation};

/// A generator that did less than this share of what it does in the middle of its windows has stood still.
const STANDS_STILL: f64 = 0.5;
/// 1 MB, as bandwidths are told in.
const MEGABYTE: f64 = 1e6;

/// What is told of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowVerdict {
    /// Whether a generator did nothing for at least half of it.
    pub stalled: bool,
    /// Whether it counts: it was not stalled, and is no outlier.
    pub kept: bool,
}

/// What the windows of a point come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Of each window.
    pub verdicts: Vec<WindowVerdict>,
    /// The mean of those that count, in nanoseconds a step, and their standard deviation.
    pub latency_ns: Option<f64>,
    /// Of more than one window.
    pub deviation_ns: Option<f64>,
    /// Of the slowest window, whether it counts or not.
    pub latency_max_ns: Option<f64>,
    /// Steps in those that count.
    pub steps: u64,
    /// In 10^6 bytes a second, as is the next.
    pub issued_mb_s: Option<f64>,
    /// With what is read beside.
    pub estimated_mb_s: Option<f64>,
    /// By the controllers, where all windows have it.
    pub measured_mb_s: Option<f64>,
    /// What translations took, where all windows have it.
    pub tlb: Option<TranslationFigures>,
}

/// What the translation of its address adds to a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TranslationFigures {
    /// The mean latency less the time of page walks and of hits of the second-level TLB, where that is counted.
    pub latency_without_ns: Option<f64>,
    /// Cycles of page walks a step, where they are counted.
    pub walk_cycles: Option<f64>,
    /// Page walks a step.
    pub walks: f64,
    /// Hits of the second-level TLB a step.
    pub hits: f64,
}

impl TranslationFigures {
    /// Of windows that count; `None` if there are none, or one has no counts.
    fn of(windows: &[&Window]) -> Option<Self> {
        let counts: Option<Vec<TlbCounts>> = windows.iter().map(|window| window.tlb).collect();
        let counts = counts.filter(|counts| !counts.is_empty())?;
        let steps: u64 = windows.iter().map(|window| window.chase.steps).sum();
        let a_step = |count: u64| count as f64 / steps.max(1) as f64;
        let without = windows.iter().zip(&counts).map(|(window, counts)| {
            let share = counts.translation_share()?;
            Some(window.chase.latency_ns() * (1.0 - share))
        });
        let without: Option<Vec<f64>> = without.collect();
        let walk_cycles: Option<u64> = counts.iter().map(|counts| counts.walk_cycles).sum();
        Some(TranslationFigures {
            latency_without_ns: without.and_then(|all| Some(mean_and_deviation(&all)?.0)),
            walk_cycles: walk_cycles.map(a_step),
            walks: a_step(counts.iter().map(|counts| counts.walks).sum()),
            hits: a_step(counts.iter().map(|counts| counts.hits).sum()),
        })
    }
}

impl Analysis {
    /// Of windows in which generators did this; `None` if they rested.
    pub fn of(measured: &MeasuredWindows, load: Option<&Load>, outliers: Outliers) -> Self {
        let accesses = load.map(|load| &load.accesses);
        let windows = &measured.windows;
        let stalled = stalled(windows, load);
        let going: Vec<&Window> = windows
            .iter()
            .zip(&stalled)
            .filter(|(_, stalled)| !**stalled)
            .map(|(it, _)| it)
            .collect();
        let latencies: Vec<f64> = going
            .iter()
            .map(|window| window.chase.latency_ns())
            .collect();
        let inliers = kept(&latencies, outliers);
        let mut next = inliers.iter();
        let verdicts: Vec<WindowVerdict> = (stalled.into_iter())
            .map(|stalled| WindowVerdict {
                stalled,
                kept: !stalled && next.next().is_some_and(|kept| *kept),
            })
            .collect();
        let counting = || {
            windows
                .iter()
                .zip(&verdicts)
                .filter(|(_, verdict)| verdict.kept)
                .map(|(window, _)| window)
        };
        let latencies: Vec<f64> = counting().map(|window| window.chase.latency_ns()).collect();
        let moments = mean_and_deviation(&latencies);
        let all = windows.iter().map(|window| window.chase.latency_ns());
        let time: Duration = counting().map(|window| window.chase.time).sum();
        let per_second =
            |bytes: u64| (!time.is_zero()).then(|| bytes as f64 / MEGABYTE / time.as_secs_f64());
        let steps = counting().map(|window| window.chase.steps).sum();
        let (mut issued, mut beside) = (0, steps * LINE as u64);
        for window in counting() {
            let lines = lines_of(window, accesses);
            issued += lines.bytes();
            if accesses.is_some_and(|accesses| accesses.store == Store::Regular) {
                beside += lines.stored * LINE as u64;
            }
        }
        let controllers: Option<u64> = counting().map(|window| window.controllers_bytes).sum();
        Analysis {
            latency_ns: moments.map(|(mean, _)| mean),
            deviation_ns: moments.and_then(|(_, deviation)| deviation),
            latency_max_ns: all.max_by(f64::total_cmp),
            steps,
            issued_mb_s: per_second(issued),
            estimated_mb_s: per_second(issued + beside),
            measured_mb_s: controllers.and_then(per_second),
            tlb: TranslationFigures::of(&counting().collect::<Vec<_>>()),
            verdicts,
        }
    }

    /// Windows of which something is true.
    pub fn count(&self, of: impl Fn(&WindowVerdict) -> bool) -> usize {
        self.verdicts.iter().filter(|verdict| of(verdict)).count()
    }
}

/// The lines that all generators accessed in a window.
pub fn lines_of(window: &Window, accesses: Option<&Accesses>) -> LineCounts {
    let groups = window.groups.iter().sum();
    accesses.map_or_else(LineCounts::default, |accesses| {
        LineCounts::of_groups(groups, accesses)
    })
}

/// Of each window, whether a generator stood still for half of it. The chase may have stood still as well: time counts.
fn stalled(windows: &[Window], load: Option<&Load>) -> Vec<bool> {
    let generators = windows.first().map_or(0, |window| window.groups.len());
    let mut stalled = vec![false; windows.len()];
    let Some(load) = load else {
        return stalled;
    };
    let late = load.late_groups() as f64;
    for generator in 0..generators {
        let rate =
            |window: &Window| window.groups[generator] as f64 / window.chase.time.as_secs_f64();
        let rates: Vec<f64> = windows.iter().map(rate).collect();
        let usual = median_of(&rates).unwrap_or(0.0);
        for ((stalled, rate), window) in stalled.iter_mut().zip(rates).zip(windows) {
            let missing = (usual - rate) * window.chase.time.as_secs_f64();
            *stalled |= rate == 0.0 || (rate < STANDS_STILL * usual && missing > late);
        }
    }
    stalled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::InstructionSet;
    use crate::generators::chase::ChaseTiming;

    fn window(steps: u64, groups: &[u64]) -> Window {
        Window {
            start: Duration::ZERO,
            chase: ChaseTiming {
                steps,
                time: Duration::from_millis(1),
            },
            groups: groups.to_vec(),
            controllers_bytes: Some(1_000_000),
            tlb: None,
        }
    }

    /// With walks of 10 cycles a step and a hit at every second one, of 100 cycles of each.
    fn translated(steps: u64, is_timed: bool) -> Window {
        let tlb = TlbCounts {
            cycles: 100 * steps,
            walk_cycles: is_timed.then_some(10 * steps),
            walks: steps,
            hits: steps / 2,
            translation_cycles: is_timed.then_some(20 * steps),
        };
        Window {
            tlb: Some(tlb),
            ..window(steps, &[100])
        }
    }

    #[test]
    fn translations_are_taken_out_where_all_windows_have_their_cycles() {
        let found = |windows: Vec<Window>| {
            Analysis::of(
                &measured(windows),
                Some(&load(Store::Regular)),
                Outliers::Mad,
            )
        };
        let all = found(vec![translated(10_000, true); 12]);
        assert_eq!(all.latency_ns, Some(100.0));
        let tlb = all.tlb.unwrap();
        assert_eq!(tlb.latency_without_ns, Some(80.0));
        assert_eq!(
            (tlb.walk_cycles, tlb.walks, tlb.hits),
            (Some(10.0), 1.0, 0.5)
        );
        // A window that does not count has no part in it.
        let mut windows = vec![translated(10_000, true); 12];
        windows[3] = window(10_000, &[0]);
        assert_eq!(found(windows).tlb, Some(tlb));
        let counted = found(vec![translated(10_000, false); 12]).tlb.unwrap();
        assert_eq!(
            (counted.latency_without_ns, counted.walk_cycles),
            (None, None)
        );
        assert_eq!((counted.walks, counted.hits), (1.0, 0.5));
        let mut windows = vec![translated(10_000, true); 12];
        windows[3] = window(10_000, &[100]);
        assert_eq!(found(windows).tlb, None);
        assert_eq!(found(Vec::new()).tlb, None);
    }

    fn measured(windows: Vec<Window>) -> MeasuredWindows {
        MeasuredWindows {
            windows,
            settled: true,
            ..MeasuredWindows::default()
        }
    }

    /// 16 groups between two looks.
    fn load(store: Store) -> Load {
        let accesses = Accesses::with_share(InstructionSet::BASE, store, 60);
        Load { accesses, pause: 0 }
    }

    #[test]
    fn bandwidths_are_told_apart() {
        let windows = measured(vec![window(10_000, &[100, 50]); 12]);
        for (store, stored_twice) in [(Store::Regular, 1.0), (Store::NonTemporal, 0.0)] {
            let found = Analysis::of(&windows, Some(&load(store)), Outliers::Mad);
            // 150 groups of 50 lines of 64 bytes a millisecond.
            assert_eq!(found.issued_mb_s, Some(480.0));
            // 20 of the 50 lines are stored; the chase reads 10 000 lines.
            assert_eq!(
                found.estimated_mb_s,
                Some(480.0 + stored_twice * 192.0 + 640.0)
            );
            assert_eq!(found.measured_mb_s, Some(1000.0));
            assert_eq!(found.latency_ns, Some(100.0));
            assert_eq!(found.deviation_ns, Some(0.0));
            assert_eq!(found.steps, 120_000);
        }
        let found = Analysis::of(&windows, None, Outliers::Mad);
        assert_eq!(found.issued_mb_s, Some(0.0));
        assert_eq!(found.estimated_mb_s, Some(640.0));
        let found = Analysis::of(&measured(Vec::new()), None, Outliers::Mad);
        assert_eq!((found.latency_ns, found.issued_mb_s), (None, None));
    }

    #[test]
    fn outliers_are_left_out_and_stay_in_the_rows() {
        let mut windows: Vec<Window> = (0..20).map(|turn| window(10_000 + turn, &[100])).collect();
        windows[7] = window(1000, &[100]);
        for (outliers, removed) in [
            (Outliers::Mad, 1),
            (Outliers::Sigma3, 1),
            (Outliers::None, 0),
        ] {
            let found = Analysis::of(
                &measured(windows.clone()),
                Some(&load(Store::Regular)),
                outliers,
            );
            assert_eq!(found.count(|verdict| !verdict.kept), removed);
            assert_eq!(found.verdicts[7].kept, removed == 0);
            assert_eq!(found.latency_max_ns, Some(1000.0));
            assert_eq!(found.latency_ns.unwrap() < 101.0, removed == 1);
        }
    }

    #[test]
    fn a_window_in_which_a_generator_stands_still_is_told_and_does_not_count() {
        let mut windows = vec![window(10_000, &[1000, 1000]); 10];
        windows[3].groups[1] = 400;
        windows[4].groups[0] = 0;
        windows[5].groups[1] = 600;
        // All of the process stood still.
        windows[6].chase.time = Duration::from_millis(200);
        let found = Analysis::of(
            &measured(windows.clone()),
            Some(&load(Store::Regular)),
            Outliers::None,
        );
        let stalled: Vec<usize> = (0..10)
            .filter(|&place| found.verdicts[place].stalled)
            .collect();
        assert_eq!(stalled, [3, 4, 6]);
        assert!(
            found
                .verdicts
                .iter()
                .all(|verdict| verdict.kept != verdict.stalled)
        );
        // So few groups come and go with the looks.
        let mut few = vec![window(10_000, &[33]); 10];
        few[3].groups[0] = 10;
        let found = Analysis::of(&measured(few), Some(&load(Store::Regular)), Outliers::None);
        assert_eq!(found.count(|window| window.stalled), 0);
        // Who rests stands still at will.
        let resting = Analysis::of(&measured(windows), None, Outliers::None);
        assert_eq!(resting.count(|verdict| verdict.stalled), 0);
    }
}
