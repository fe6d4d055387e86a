//! The rows of the memory benchmark in the results: settings of a point, figures of a round, windows.

use std::path::Path;

use serde::Serialize;

use super::analysis::{Analysis, lines_of};
use super::config::{Config, Pause};
use super::error::RunError;
use super::plan::{Point, Setting};
use super::windows::{MeasuredWindows, Window};
use crate::buffer::PageKind;
use crate::generators::Accesses;
use crate::host::CpuSet;
use crate::results::schema::memory as columns;
use crate::results::{Record, SampleWriter};

/// The settings of a point.
pub(super) fn settings(point: &Point, setting: &Setting, config: &Config) -> Record {
    let pause = match point.pause {
        Pause::Nops(nops) => Some(nops),
        Pause::Off => None,
    };
    let place = setting.place(point);
    let generators: CpuSet = place.generators.iter().copied().collect();
    let mut record = Record::new();
    record
        .set(&columns::READ_SHARE, point.read_share)
        .set(&columns::STORE, point.store.name())
        .set(&columns::PAUSE, pause)
        .set(&columns::ISA, setting.instruction_set.name())
        .set(&columns::SIZE, point.size.0)
        .set(&columns::GENERATORS, generators.to_string())
        .set(&columns::GENERATOR_COUNT, place.generators.len())
        .set(&columns::CHASE_CPU, place.chase_cpu)
        .set(&columns::MEMORY_NODE, place.memory_node)
        .set(&columns::WINDOWS, config.windows)
        .set(&columns::WINDOW, config.window.as_nanos() as u64)
        .set(&columns::SETTLE, config.settle.as_nanos() as u64)
        .set(&columns::OUTLIERS, config.outliers.name())
        .set(&columns::SMOOTH, config.smooth.to_string());
    record
}

/// What is found of a point in a round, beside what its windows come to.
#[derive(Debug)]
pub(super) struct PointSetup {
    /// Of all buffers.
    pub pages: Vec<PageKind>,
    /// How long they took, told once in a round.
    pub setup_ns: Option<u64>,
}

/// The figures of a round.
pub(super) fn figures(
    point: &Point,
    setting: &Setting,
    measured: &MeasuredWindows,
    found: &Analysis,
    around: &PointSetup,
) -> Record {
    let is_loaded = point.pause != Pause::Off;
    let place = setting.place(point);
    let source = if found.measured_mb_s.is_some() {
        "measured"
    } else {
        "estimated"
    };
    let tlb = found.tlb.as_ref();
    let mut record = Record::new();
    record
        .set(&columns::LATENCY, found.latency_ns)
        .set(&columns::DEVIATION, found.deviation_ns)
        .set(&columns::LATENCY_MAX, found.latency_max_ns)
        .set(&columns::ISSUED, found.issued_mb_s)
        .set(&columns::ESTIMATED, found.estimated_mb_s)
        .set(&columns::MEASURED, found.measured_mb_s)
        .set(&columns::SOURCE, source)
        .set(&columns::STEPS, found.steps)
        .set(&columns::MEASURED_WINDOWS, found.verdicts.len())
        .set(
            &columns::REMOVED,
            found.count(|window| !window.kept && !window.stalled),
        )
        .set(&columns::STALLED, found.count(|window| window.stalled))
        .set(&columns::UNSETTLED, u64::from(!measured.settled))
        .set(
            &columns::SETTLE_TIME,
            measured.settle_time.as_nanos() as u64,
        )
        .set(&columns::SETUP_TIME, around.setup_ns)
        .set(
            &columns::IN_CACHE,
            setting.in_cache(point).map(|small| small.is_some()),
        )
        .set(
            &columns::CORE_LIMITED,
            is_loaded && place.generators.len() == 1,
        )
        .set(&columns::CORE_SHARED, is_loaded && place.shares_core)
        .set(&columns::CPU_NODE, place.cpu_node)
        // What was measured, also where another process has planned more.
        .set(&columns::SIZE, point.size.0)
        .set(
            &columns::GENERATOR_SIZE,
            is_loaded.then_some(setting.generator_size.0),
        )
        .set(&columns::PAGES, pages(&around.pages))
        .set(
            &columns::WITHOUT_TLB,
            tlb.and_then(|tlb| tlb.latency_without_ns),
        )
        .set(&columns::WALK_CYCLES, tlb.and_then(|tlb| tlb.walk_cycles))
        .set(&columns::WALKS, tlb.map(|tlb| tlb.walks))
        .set(&columns::TLB_HITS, tlb.map(|tlb| tlb.hits));
    record
}

/// The smallest of them, as results name them.
fn pages(kinds: &[PageKind]) -> Option<&'static str> {
    kinds.iter().min().map(|kind| match kind {
        PageKind::Small | PageKind::PartlyTransparentHuge => "4k",
        PageKind::TransparentHuge => "2m-transparent",
        PageKind::Huge => "2m",
        PageKind::Giant => "1g",
    })
}

/// A row of `windows.csv`.
#[derive(Debug, Serialize)]
struct WindowRow {
    round: u32,
    window: usize,
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

/// Writes all windows of a round, also those that do not count.
pub(super) fn write_windows(
    folder: &Path,
    round: u32,
    windows: &[Window],
    found: &Analysis,
    accesses: Option<&Accesses>,
) -> Result<(), RunError> {
    let mut file = SampleWriter::open(folder, &columns::WINDOWS_FILE, round)?;
    for (number, (window, verdict)) in windows.iter().zip(&found.verdicts).enumerate() {
        let lines = lines_of(window, accesses);
        file.append(&WindowRow {
            round,
            window: number,
            t_start_ns: window.start.as_nanos() as u64,
            time_ns: window.chase.time.as_nanos() as u64,
            steps: window.chase.steps,
            latency_ns: (window.chase.latency_ns() * 1e3).round() / 1e3,
            lines_read: lines.read,
            lines_stored: lines.stored,
            controllers_bytes: window.controllers_bytes,
            walk_cycles: window.tlb.and_then(|tlb| tlb.walk_cycles),
            page_walks: window.tlb.map(|tlb| tlb.walks),
            stlb_hits: window.tlb.map(|tlb| tlb.hits),
            stalled: verdict.stalled,
            kept: verdict.kept,
        })?;
    }
    Ok(file.finish()?)
}
