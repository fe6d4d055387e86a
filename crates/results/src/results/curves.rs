//! Curves of latency over bandwidth: which rows of a summary make one, in which order, and what follows from all of
//! them.
//!
//! A curve has the complete rows that agree in all settings of a point but the pause, in the order of load: from the
//! longest pause to none. That order stays, also where the bandwidth falls with the load: a curve that bends backwards
//! shows an over-saturated memory. A row without generators is the first of its curve, or of each curve that differs
//! from it in settings that only generators have.

use super::record::{Cell, Record};
use super::schema::{COMPLETE, Column, CrossRowFigure, STATUS, Schema, memory};
use crate::sorting::{sort_by, sort_by_key};
use crate::stats::Smoothing;

/// Settings without effect where there are no generators.
const OF_GENERATORS: [&str; 2] = [memory::GENERATORS.name, memory::GENERATOR_COUNT.name];

/// The shares of the largest bandwidth at which the latency is given, in per cent.
pub const SHARES_OF_PEAK: [f64; 3] = [50.0, 80.0, 95.0];

/// A point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The number of its row.
    pub row: usize,
    /// The pause behind each group of accesses; `None` without generators.
    pub pause: Option<f64>,
    /// The bandwidth to go by, in 10^6 bytes a second, where there is one.
    pub bandwidth_mb_s: Option<f64>,
    /// The latency as it was measured.
    pub latency_ns: f64,
    /// The same smoothed along the curve, where it was.
    pub smoothed_ns: Option<f64>,
    /// What to know before it is believed, with blanks between; empty if nothing.
    pub marks: String,
}

/// Points in the order of load.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// At least one.
    pub loads: Vec<Load>,
    /// Whether its bandwidths are what the memory controllers counted; else they are estimated.
    pub is_measured: bool,
}

/// The texts of the settings but for the pause, in the order of the schema.
type Settings = Vec<String>;

impl Curve {
    /// All curves of rows, by the text of each of their columns (empty where there is none), in the order of their
    /// first rows.
    pub fn all<R>(rows: &[R], text: impl Fn(&R, &str) -> String) -> Vec<Curve> {
        let mut curves: Vec<(Settings, Curve)> = Vec::new();
        // Bandwidths of two kinds are never in one figure.
        let is_complete = |row: &&R| text(row, STATUS.name) == COMPLETE;
        let mut complete = rows.iter().filter(is_complete);
        let is_measured = complete.all(|row| text(row, memory::SOURCE.name) == "measured");
        let bandwidth = match is_measured {
            true => memory::MEASURED,
            false => memory::ESTIMATED,
        };
        let places = rows.iter().enumerate();
        let found =
            places.filter_map(|(number, row)| load(number, &bandwidth, |column| text(row, column)));
        let (loaded, unloaded): (Vec<_>, Vec<_>) = found.partition(|(_, it)| it.pause.is_some());
        for (settings, load) in loaded {
            add(&mut curves, settings, load, is_measured);
        }
        for (settings, load) in unloaded {
            let mut own = curves
                .iter_mut()
                .filter(|it| agrees(&settings, &it.0))
                .peekable();
            match own.peek() {
                Some(_) => own.for_each(|(_, curve)| curve.loads.push(load.clone())),
                None => add(&mut curves, settings, load, is_measured),
            }
        }
        let mut curves: Vec<Curve> = curves.into_iter().map(|(_, curve)| curve).collect();
        for curve in &mut curves {
            let pause = |load: &Load| load.pause.unwrap_or(f64::INFINITY);
            sort_by(&mut curve.loads, |one, other| {
                pause(other).total_cmp(&pause(one))
            });
        }
        sort_by_key(&mut curves, |curve| {
            curve.loads.iter().map(|load| load.row).min()
        });
        curves
    }

    /// Bandwidth and latency of the points that have both, in the order of load.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let loads = self.loads.iter();
        loads.filter_map(|load| Some((load.bandwidth_mb_s?, load.latency_ns)))
    }

    /// The point without generators, or else that with the least load.
    pub fn unloaded(&self) -> &Load {
        &self.loads[0]
    }

    /// The point with the largest bandwidth, the first if there are several; `None` without bandwidths.
    pub fn peak(&self) -> Option<(f64, f64)> {
        self.points()
            .reduce(|most, point| if point.0 > most.0 { point } else { most })
    }

    /// The latency at a share of the largest bandwidth (0 to 1), as it was measured: on the straight line between the
    /// two points before the peak that have more and less. `None` where the first point has more.
    pub fn latency_at(&self, share: f64) -> Option<f64> {
        let (peak, _) = self.peak()?;
        let wanted = share * peak;
        let points: Vec<(f64, f64)> = self.points().collect();
        // The first that crosses it lies before the peak, which is not below it.
        let mut pairs = points.windows(2);
        let pair = pairs.find(|pair| pair[0].0 < wanted && wanted <= pair[1].0)?;
        let [(below, from), (above, to)] = [pair[0], pair[1]];
        Some(from + (to - from) * (wanted - below) / (above - below))
    }
}

fn add(curves: &mut Vec<(Settings, Curve)>, settings: Settings, load: Load, is_measured: bool) {
    match curves.iter_mut().find(|(its, _)| *its == settings) {
        Some((_, curve)) => curve.loads.push(load),
        None => curves.push((
            settings,
            Curve {
                loads: vec![load],
                is_measured,
            },
        )),
    }
}

/// Whether a row without generators belongs to a curve.
fn agrees(unloaded: &Settings, curve: &Settings) -> bool {
    let names = in_common().map(|column| column.name);
    let mut all = names.zip(unloaded.iter().zip(curve));
    all.all(|(name, (one, other))| one.is_empty() || one == other || OF_GENERATORS.contains(&name))
}

/// The settings that the points of a curve have in common.
fn in_common() -> impl Iterator<Item = &'static Column> {
    let settings = memory::SCHEMA.point.iter();
    settings.filter(|column| **column != memory::PAUSE)
}

/// The facts about a curve in a row; `None` where it is not complete or has no latency.
fn load(row: usize, bandwidth: &Column, text: impl Fn(&str) -> String) -> Option<(Settings, Load)> {
    let number = |column: &Column| text(column.name).parse::<f64>().ok();
    let latency_ns = number(&memory::LATENCY).filter(|_| text(STATUS.name) == COMPLETE)?;
    let load = Load {
        row,
        pause: number(&memory::PAUSE),
        bandwidth_mb_s: number(bandwidth),
        latency_ns,
        smoothed_ns: number(&memory::SMOOTHED),
        marks: text(memory::MARKS.name),
    };
    Some((in_common().map(|column| text(column.name)).collect(), load))
}

/// Sets what follows from all rows of a summary, where the benchmark has something of that kind.
pub fn complete(schema: &Schema, summary: &mut [Record]) {
    match schema.across {
        None => {}
        Some(CrossRowFigure::Curves) => {
            let smoothed = smoothed(summary);
            for (row, smoothed) in summary.iter_mut().zip(smoothed) {
                let marks = marks(row);
                row.replace(
                    &memory::MARKS,
                    Some(marks).filter(|marks| !marks.is_empty()),
                );
                row.replace(&memory::SMOOTHED, smoothed);
            }
        }
    }
}

/// Of each row, its latency smoothed along its curve. A row that is in several curves has no single one.
fn smoothed(summary: &[Record]) -> Vec<Option<f64>> {
    let text = |row: &Record, column: &str| row.get(column).map(Cell::text).unwrap_or_default();
    let mut found: Vec<Vec<Option<f64>>> = vec![Vec::new(); summary.len()];
    for curve in Curve::all(summary, text) {
        let setting = summary[curve.loads[0].row].text(&memory::SMOOTH);
        let smoothing: Smoothing = setting.parse().unwrap_or(Smoothing::None);
        let latencies: Vec<f64> = curve.loads.iter().map(|load| load.latency_ns).collect();
        let smoothed = smoothing.of(&latencies);
        for (place, load) in curve.loads.iter().enumerate() {
            found[load.row].push(smoothed.as_ref().map(|all| all[place]));
        }
    }
    let only = |found: Vec<Option<f64>>| match found[..] {
        [one] => one,
        _ => None,
    };
    found.into_iter().map(only).collect()
}

/// What to know before the figures of a row are believed.
fn marks(row: &Record) -> String {
    let is_set = |column: &Column| row.text(column) == "true";
    let is_counted = |column: &Column| row.number(column.name).is_some_and(|count| count > 0.0);
    let marks = [
        ("in-cache", is_set(&memory::IN_CACHE)),
        ("core-limited", is_set(&memory::CORE_LIMITED)),
        ("core-shared", is_set(&memory::CORE_SHARED)),
        ("stalled", is_counted(&memory::STALLED)),
        ("unstable", is_counted(&memory::UNSETTLED)),
    ];
    let set = marks.iter().filter(|(_, is_set)| *is_set);
    set.map(|(mark, _)| *mark).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
