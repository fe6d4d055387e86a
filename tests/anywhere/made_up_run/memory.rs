//! Made-up runs of `hcabench memory`: windows as the benchmark writes them, and figures that follow from them.

use std::path::{Path, PathBuf};

use hcabench::results::schema::memory;
use hcabench::results::{PointFolder, Record, SampleWriter};
use hcabench::stats::{Outliers, kept, mean_and_deviation};
use serde::Serialize;

use super::{MadeRow, run_of};

const WINDOWS: u32 = 8;
const WINDOW_NS: u64 = 10_000_000;
const LINE: f64 = 64.0;
/// Of buffers that are of no other.
pub(crate) const SIZE: u64 = 64 << 20;

/// A point of a curve: pause, issued bandwidth in MB/s, latency in ns, and its marks.
pub(crate) type MadeWindows = (Option<u32>, f64, f64, &'static str);

#[derive(Debug, Clone)]
pub(crate) struct MadeCurve {
    pub reads: u32,
    pub store: &'static str,
    pub smooth: &'static str,
    pub loads: Vec<MadeWindows>,
    /// Of its buffers.
    pub size: u64,
    /// The nodes of its CPUs and of its memory, if it is of a pair of nodes.
    pub nodes: Option<[u32; 2]>,
}

impl MadeCurve {
    /// Rises to a peak, bends backwards over its last `behind` points; `noise` is the share by which latencies scatter.
    pub(crate) fn bent(
        reads: u32,
        points: usize,
        behind: usize,
        peak_mb_s: f64,
        noise: f64,
    ) -> Self {
        let last = points - behind;
        let load = |place: usize| {
            let up = (place.min(last) as f64 / last as f64).powf(0.6);
            let over = place.saturating_sub(last) as f64;
            let bandwidth = (up * peak_mb_s * (1.0 - 0.035 * over)).max(20.0);
            let scatter = [0.3, -0.8, 1.0, -0.2, -1.0, 0.6, 0.1][place % 7] * noise;
            let latency = (95.0 + 30.0 * up / (1.08 - up) + 45.0 * over) * (1.0 + scatter);
            let pause =
                (place > 0).then(|| ((points - 1 - place) * (points - 1 - place)) as u32 * 16);
            (pause, bandwidth, latency, "")
        };
        MadeCurve {
            reads,
            store: "regular",
            smooth: "savgol:11:3",
            loads: (0..points).map(load).collect(),
            size: SIZE,
            nodes: None,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct WindowRow {
    round: u32,
    window: u32,
    t_start_ns: u64,
    time_ns: u64,
    steps: u64,
    latency_ns: f64,
    lines_read: u64,
    lines_stored: u64,
    controllers_bytes: Option<u64>,
    walk_cycles: Option<u64>,
    page_walks: Option<u64>,
    stlb_hits: Option<u64>,
    stalled: bool,
    kept: bool,
}

fn windows(curve: &MadeCurve, load: MadeWindows, round: u32) -> Vec<WindowRow> {
    let (pause, bandwidth, latency, marks) = load;
    let lines = bandwidth * 1e6 / LINE * WINDOW_NS as f64 / 1e9;
    let lines = if pause.is_some() { lines } else { 0.0 };
    let window = |window: u32| {
        let scatter = 1.0 + 0.002 * f64::from((window * 5 + round * 3) % 7);
        let is_hit = window == 3;
        let steps = WINDOW_NS as f64 / (latency * scatter * if is_hit { 2.0 } else { 1.0 });
        let steps = steps as u64;
        let of = |share: f64| (lines * scatter * share / 100.0) as u64;
        WindowRow {
            round,
            window,
            t_start_ns: u64::from(window) * WINDOW_NS,
            time_ns: WINDOW_NS,
            steps,
            latency_ns: (1e3 * WINDOW_NS as f64 / steps as f64).round() / 1e3,
            lines_read: of(f64::from(curve.reads)),
            lines_stored: of(100.0 - f64::from(curve.reads)),
            controllers_bytes: None,
            walk_cycles: None,
            page_walks: None,
            stlb_hits: None,
            stalled: window == 0 && marks.contains("stalled"),
            kept: true,
        }
    };
    let mut all: Vec<WindowRow> = (0..WINDOWS).map(window).collect();
    // What stood still counts neither as a window nor for what an outlier is.
    all.iter_mut()
        .for_each(|window| window.kept = !window.stalled);
    let going: Vec<&mut WindowRow> = all.iter_mut().filter(|window| window.kept).collect();
    let latencies: Vec<f64> = going.iter().map(|window| window.latency_ns).collect();
    for (window, kept) in going.into_iter().zip(kept(&latencies, Outliers::Mad)) {
        window.kept = kept;
    }
    all
}

fn figures(curve: &MadeCurve, load: MadeWindows, windows: &[WindowRow]) -> Record {
    let (pause, _, _, marks) = load;
    let kept: Vec<&WindowRow> = windows.iter().filter(|window| window.kept).collect();
    let latencies: Vec<f64> = kept.iter().map(|window| window.latency_ns).collect();
    let (mean, deviation) = mean_and_deviation(&latencies).unwrap();
    let sum = |of: fn(&WindowRow) -> u64| kept.iter().map(|window| of(window)).sum::<u64>();
    let (stored, steps, time) = (
        sum(|it| it.lines_stored),
        sum(|it| it.steps),
        sum(|it| it.time_ns),
    );
    let lines = sum(|it| it.lines_read) + stored;
    let read_first = if curve.store == "regular" { stored } else { 0 };
    let mb_s = |lines: u64| 1e3 * LINE * lines as f64 / time as f64;
    let greatest = windows.iter().map(|it| it.latency_ns).fold(0.0, f64::max);
    let mut record = Record::new();
    record
        .set(&memory::READ_SHARE, curve.reads)
        .set(&memory::STORE, curve.store)
        .set(&memory::PAUSE, pause)
        .set(&memory::ISA, "avx2")
        .set(&memory::SIZE, curve.size)
        .set(&memory::GENERATORS, "1-3")
        .set(&memory::GENERATOR_COUNT, 3_u32)
        .set(&memory::CHASE_CPU, curve.nodes.map_or(0, |[cpus, _]| cpus))
        .set(&memory::MEMORY_NODE, curve.nodes.map(|[_, memory]| memory))
        .set(&memory::WINDOWS, WINDOWS)
        .set(&memory::WINDOW, WINDOW_NS)
        .set(&memory::SETTLE, 1_000_000_000_u64)
        .set(&memory::OUTLIERS, Outliers::Mad.name())
        .set(&memory::SMOOTH, curve.smooth)
        .set(&memory::LATENCY, mean)
        .set(&memory::DEVIATION, deviation)
        .set(&memory::LATENCY_MAX, greatest)
        .set(&memory::ISSUED, mb_s(lines))
        .set(&memory::ESTIMATED, mb_s(lines + read_first + steps))
        .set(&memory::SOURCE, "estimated")
        .set(&memory::STEPS, steps)
        .set(&memory::MEASURED_WINDOWS, windows.len())
        .set(
            &memory::REMOVED,
            windows.iter().filter(|it| !it.kept && !it.stalled).count(),
        )
        .set(
            &memory::STALLED,
            windows.iter().filter(|it| it.stalled).count(),
        )
        .set(&memory::UNSETTLED, u32::from(marks.contains("unstable")))
        .set(&memory::IN_CACHE, marks.contains("in-cache"))
        .set(&memory::CORE_LIMITED, marks.contains("core-limited"))
        .set(&memory::CORE_SHARED, marks.contains("core-shared"))
        .set(&memory::CPU_NODE, curve.nodes.map(|[cpus, _]| cpus))
        .set(&memory::PAGES, "2m-transparent");
    record
}

pub(crate) fn memory_run(
    path: &Path,
    curves: &[MadeCurve],
    rounds: u32,
    unfinished: bool,
) -> PathBuf {
    let points = curves
        .iter()
        .flat_map(|curve| curve.loads.iter().map(move |load| (curve, *load)));
    let row = |(curve, load): (&MadeCurve, MadeWindows)| {
        let pause = load.0.map_or("none".to_owned(), |pause| pause.to_string());
        let nodes = curve
            .nodes
            .map(|[cpus, memory]| format!("-nodes-{cpus}-{memory}"));
        let size = (curve.size != SIZE).then(|| format!("-size-{}", curve.size));
        let of = [nodes, size].map(Option::unwrap_or_default).concat();
        let all: Vec<Vec<WindowRow>> = (0..rounds)
            .map(|round| windows(curve, load, round))
            .collect();
        MadeRow {
            name: format!("{}-reads{}-pause{pause}{of}", curve.store, curve.reads),
            rounds: all
                .iter()
                .map(|windows| figures(curve, load, windows))
                .collect(),
            files: Box::new(move |place: &PointFolder, round: u32| {
                place.file(memory::WINDOWS_FILE.name).unwrap();
                let file = &memory::WINDOWS_FILE;
                let mut writer = SampleWriter::open(place.path(), file, round).unwrap();
                for window in &all[round as usize] {
                    writer.append(window).unwrap();
                }
                writer.finish().unwrap();
            }),
        }
    };
    let rows: Vec<MadeRow<'_>> = points.map(row).collect();
    run_of(path, &memory::SCHEMA, &rows, unfinished)
}
