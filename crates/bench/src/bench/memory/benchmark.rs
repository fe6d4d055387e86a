//! The memory benchmark as the rig runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use super::analysis::Analysis;
use super::config::{Bandwidth, Config, Pause, Sweep};
use super::error::RunError;
use super::plan::{Place, Point, Setting, points};
use super::rows::{self, PointSetup};
use super::windows::{AGREEING, MeasuredWindows, MemoryInstruments};
use crate::buffer::{Bytes, PageKind};
use crate::generators::{BUFFERS, BufferSettings, Chase, Generators, LINE};
use crate::host::tlb::TlbCounters;
use crate::host::uncore::{Uncore, UncoreError};
use crate::host::{CpuSet, interrupt, pinning};
use crate::results::Record;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::{REASON, Schema, memory as columns};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
    SampleFolders,
};
use crate::rig::error::{RigError, unless_interrupted};
use crate::rig::findings::of_throttling;
use crate::rig::role::Role;

/// An upper estimate of a row of `windows.csv`, and of what else a point leaves, in bytes.
const BYTES_PER_WINDOW: u64 = 120;
const BYTES_PER_POINT: u64 = 64 << 10;
/// Each time that it is told wakes up who shows it.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(200);
/// What a point takes beside its windows and the fewest that it settles in, about (`ci/measure estimates`).
const TIME_BESIDE: Duration = Duration::from_millis(60);
/// What linking the lines of a chase at random takes for each MiB of it, about, in huge pages: where the last level of
/// cache holds their order, of 4 bytes a line, and where it does not (`ci/measure estimates`; 128 MiB and 1 GiB).
const TO_LINK_IN_CACHE: Duration = Duration::from_micros(500);
const TO_LINK_BEYOND: Duration = Duration::from_micros(1500);
/// What the kernel takes to clear a MiB when it is first touched, about, and how many threads are cleared for at a time.
const TO_TOUCH: Duration = Duration::from_micros(200);
const TOUCHED_AT_ONCE: usize = 8;
/// What is gone along before a fresh chase is measured: that many times the last level of cache, or as much where its size
/// is not known, and no longer than that.
const CACHES_TO_WARM: u64 = 2;
const TO_WARM: Bytes = Bytes(64 << 20);
const LONGEST_WARM_UP: Duration = Duration::from_secs(1);
/// A step in memory, about.
const STEP: Duration = Duration::from_nanos(150);
/// The share of the issued bandwidth of which the controllers count at least that much, unless some of them are missed.
const COUNTED: f64 = 0.5;
const MEBIBYTE: f64 = 1048576.0;

/// How long something takes that takes so long for each MiB.
fn time_of(each: Duration, size: Bytes) -> Duration {
    each.mul_f64(size.0 as f64 / MEBIBYTE)
}

/// How long the lines of a chase take to be linked, about.
fn time_to_link(size: Bytes, cache: Option<Bytes>) -> Duration {
    let order = size.0 / (LINE / size_of::<u32>()) as u64;
    let fits = cache.is_some_and(|cache| order <= cache.0);
    time_of(
        if fits {
            TO_LINK_IN_CACHE
        } else {
            TO_LINK_BEYOND
        },
        size,
    )
}

/// How long the buffers of a place take to be made but for their links, about.
fn time_to_touch(largest: Bytes, of_generators: Bytes, generators: usize) -> Duration {
    let turns = BUFFERS as u32 * generators.div_ceil(TOUCHED_AT_ONCE) as u32;
    time_of(TO_TOUCH, largest) + time_of(TO_TOUCH, of_generators) * turns
}

/// How much of a fresh chase is gone along before it is measured, at most.
fn to_warm(cache: Option<Bytes>) -> Bytes {
    cache.map_or(TO_WARM, |cache| Bytes(cache.0 * CACHES_TO_WARM))
}

fn time_to_warm_up(size: Bytes, cache: Option<Bytes>) -> Duration {
    let lines = size.0.min(to_warm(cache).0) / LINE as u64;
    STEP.mul_f64(lines as f64).min(LONGEST_WARM_UP)
}

/// The memory benchmark.
#[derive(Debug)]
pub struct MemoryBenchmark {
    config: Config,
    sweep: Sweep,
    points: Vec<Point>,
    setting: Option<Setting>,
    /// Of each place, the node of its memory, and why the controllers there cannot be read, if they cannot.
    unread: Vec<(Option<u32>, Option<String>)>,
    bench: Option<RoundSetup>,
}

/// Why memory controllers cannot be read: one reason if all places have the same, else each with its nodes.
fn unread_in_words(places: &[(Option<u32>, Option<String>)]) -> Option<String> {
    let (_, first) = places.first()?;
    if places.iter().all(|(_, reason)| reason == first) {
        return first.clone();
    }
    let mut by_reason = BTreeMap::<&str, BTreeSet<u32>>::new();
    for (node, reason) in places {
        if let Some(reason) = reason {
            by_reason.entry(reason).or_default().extend(node);
        }
    }
    let of_nodes = by_reason.into_iter().map(|(reason, nodes)| {
        let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
        format!("memory of node {}: {reason}", nodes.join(", "))
    });
    Some(of_nodes.collect::<Vec<_>>().join("; "))
}

/// What was made for a round.
#[derive(Debug)]
struct RoundSetup {
    bench: MemoryInstruments,
    pages: Vec<PageKind>,
    /// The same of what translations of addresses take.
    untranslated: Option<String>,
    /// The place that they were made at, by its number.
    place: usize,
    /// What the chase goes through.
    size: Bytes,
    /// Whether it has gone along its lines since they were linked.
    is_warm: bool,
    /// How long it took; taken by the first point.
    time: Option<Duration>,
}

impl MemoryBenchmark {
    /// With what is asked for.
    pub fn new(config: Config, sweep: Sweep) -> Self {
        MemoryBenchmark {
            config,
            sweep,
            points: Vec::new(),
            setting: None,
            unread: Vec::new(),
            bench: None,
        }
    }

    fn setting(&self) -> &Setting {
        self.setting.as_ref().expect("a plan was made")
    }

    /// How long a round of a point takes, about.
    fn time(&self) -> Duration {
        let settle = (self.config.window * AGREEING as u32).min(self.config.settle);
        settle + self.config.window * self.config.windows + TIME_BESIDE
    }

    /// How long what a point needs takes to be made, about, where the point before it has something else.
    fn time_to_arrange(setting: &Setting, point: &Point) -> Duration {
        let (largest, cache) = (setting.largest(), setting.cache);
        let chase = time_to_link(point.size, cache) + time_to_warm_up(point.size, cache);
        // Points are measured in any order, so that nearly all of them are at another place, or through another size.
        match (setting.measured().count(), point.size_varies) {
            (1, false) => Duration::ZERO,
            (1, true) => chase,
            _ => {
                let generators = setting.place(point).generators.len();
                chase + time_to_touch(largest, setting.generator_size, generators)
            }
        }
    }

    /// How long the first point of a round takes beside that, about, as the buffers are made for it.
    fn time_to_prepare(setting: &Setting, point: &Point) -> Duration {
        let (largest, cache) = (setting.largest(), setting.cache);
        let generators = setting.place(point).generators.len();
        time_to_touch(largest, setting.generator_size, generators)
            + time_to_link(largest, cache)
            + time_to_warm_up(largest, cache)
    }

    /// Makes all buffers of a place, each by a thread on the CPU that will use it, and a chase through the first
    /// `size` bytes of its own.
    fn make(&self, place: usize, size: Bytes) -> Result<RoundSetup, RunError> {
        let at = &self.setting().places[place];
        let made = self.make_at(at, place, size);
        made.map_err(|error| match at.cpu_node {
            Some(_) => error.of_node_pairs(),
            None => error,
        })
    }

    fn make_at(&self, at: &Place, place: usize, size: Bytes) -> Result<RoundSetup, RunError> {
        let begun = Instant::now();
        let setting = self.setting();
        let room = BufferSettings {
            size: setting.largest(),
            page: self.config.page,
            node: at.memory_node,
        };
        let goes_on = || interrupt::requested().is_none();
        let make = || -> Result<Option<Chase>, RunError> {
            Ok(Chase::new(room.region()?, size, self.config.seed, goes_on))
        };
        let chase = pinning::on_cpu(at.chase_cpu, make)??;
        unless_interrupted()?;
        let chase =
            chase.ok_or_else(|| RunError::Refused(format!("--size {size}: allowed is less")))?;
        let of_generators = BufferSettings {
            size: setting.generator_size,
            ..room
        };
        let generators = Generators::new(&at.generators, of_generators)?;
        let controllers = self.controllers(at)?;
        let tlb = TlbCounters::open();
        let untranslated = tlb.as_ref().err().cloned();
        let mut pages = generators.page_kinds().to_vec();
        pages.push(chase.region().page_kind());
        Ok(RoundSetup {
            bench: MemoryInstruments {
                chase,
                generators,
                controllers: controllers.ok(),
                tlb: tlb.ok(),
            },
            pages,
            untranslated,
            place,
            size,
            is_warm: false,
            time: Some(begun.elapsed()),
        })
    }

    /// The counters of memory controllers, where they are wanted and can be read; else why not.
    fn controllers(&self, at: &Place) -> Result<Result<Uncore, String>, RunError> {
        let open = || {
            // Events are named for all pairs of nodes at once.
            if let (Some(_), Some(node)) = (at.cpu_node, at.memory_node) {
                Uncore::require_package(node)?;
            }
            Uncore::open(at.memory_node, &self.config.events)
        };
        match (self.config.bandwidth, self.config.events.is_empty()) {
            (Bandwidth::Software, true) => Ok(Err("they were not asked for".to_owned())),
            (Bandwidth::Software, false) => Err(RunError::Refused(
                "--bandwidth software reads no counters, and --read-event and --write-event name some: leave one out"
                    .to_owned(),
            )),
            (Bandwidth::Auto, true) => Ok(open().map_err(|error| error.to_string())),
            (Bandwidth::Auto, false) => match open() {
                Ok(controllers) => Ok(Ok(controllers)),
                Err(error @ UncoreError::Unassigned { .. }) => Ok(Err(error.to_string())),
                Err(error) => Err(RunError::Refused(format!(
                    "--read-event, --write-event: {error}"
                ))),
            },
            (Bandwidth::Uncore, false) => open().map(Ok).map_err(|error| {
                RunError::Refused(format!("--read-event, --write-event: {error}"))
            }),
            (Bandwidth::Uncore, true) => open().map(Ok).map_err(|error| {
                let advice = match (at.cpu_node, &error) {
                    (Some(_), UncoreError::Unassigned { .. }) => "",
                    _ => "name events by --read-event and --write-event, or ",
                };
                RunError::Refused(format!(
                    "--bandwidth uncore: {error}: {advice}use --bandwidth auto or software"
                ))
            }),
        }
    }

    /// Makes what a point needs and was not made for the one before it: the buffers of another place, or the links of a
    /// chase through more or fewer lines.
    fn arrange(&mut self, point: &Point) -> Result<(), RunError> {
        let made = match self.bench.take() {
            Some(made) if made.place == point.place => made,
            other => {
                // Buffers of two places may not fit.
                drop(other);
                self.make(point.place, point.size)?
            }
        };
        self.bench = Some(match made.size == point.size {
            true => made,
            false => self.relink(made, point.size)?,
        });
        Ok(())
    }

    fn relink(&self, made: RoundSetup, size: Bytes) -> Result<RoundSetup, RunError> {
        let MemoryInstruments { chase, .. } = made.bench;
        let goes_on = || interrupt::requested().is_none();
        let chase = Chase::new(chase.into_region(), size, self.config.seed, goes_on);
        unless_interrupted()?;
        Ok(RoundSetup {
            bench: MemoryInstruments {
                chase: chase.expect("a size up to the largest is possible"),
                ..made.bench
            },
            size,
            is_warm: false,
            ..made
        })
    }

    fn round(
        &mut self,
        point: Point,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, RunError> {
        let setting = self.setting().clone();
        let load = point.load(setting.instruction_set);
        // The chase runs here. Nothing else of this process does meanwhile, but generators on their CPUs.
        let chase_cpu = setting.place(&point).chase_cpu;
        pinning::pin_current_thread(chase_cpu)?;
        // Here, so that what fits into the caches of this CPU is in them.
        self.arrange(&point)?;
        let config = self.config.clone();
        let made = self.bench.as_mut().expect("the benchmark was prepared");
        if !made.is_warm {
            let most = to_warm(setting.cache);
            made.bench.chase.warm_up(most, LONGEST_WARM_UP);
            made.is_warm = true;
        }
        let around = PointSetup {
            pages: made.pages.clone(),
            setup_ns: made.time.take().map(|time| time.as_nanos() as u64),
        };
        let mut told = Instant::now();
        let look = |done: usize| -> Result<(), RigError> {
            if told.elapsed() >= BETWEEN_PROGRESS {
                told = Instant::now();
                let text = match done {
                    0 => "waiting for a stable bandwidth".to_owned(),
                    done => format!("{done} of {} windows", config.windows),
                };
                progress(Progress {
                    done: done as u64,
                    of: config.windows.into(),
                    text: Some(text),
                });
            }
            unless_interrupted()
        };
        let (measured, ended) = made.bench.measure(load, &config, look)?;
        pinning::check_still_on(chase_cpu).map_err(moved)?;
        let accesses = load.map(|load| load.accesses);
        let found = Analysis::of(&measured, load.as_ref(), config.outliers);
        rows::write_windows(
            &place.folders[0],
            place.round,
            &measured.windows,
            &found,
            accesses.as_ref(),
        )?;
        let row = RowOutcome {
            figures: rows::figures(&point, &setting, &measured, &found, &around),
            findings: findings(
                &point,
                &setting,
                &measured,
                &found,
                made.bench.tlb.is_some(),
            ),
            ends_sweep: ended.is_some(),
            failure: ended.map(|error| error.to_string()),
            obtained: json!({ "pages": around.pages }),
            ..RowOutcome::default()
        };
        Ok(Outcome {
            rows: vec![row],
            ..Outcome::default()
        })
    }
}

fn moved(moved: pinning::ThreadMigration) -> RigError {
    RigError::Moved {
        role: Role::new("chase", "chase"),
        moved,
    }
}

fn findings(
    point: &Point,
    setting: &Setting,
    measured: &MeasuredWindows,
    found: &Analysis,
    counts_translations: bool,
) -> Vec<Finding> {
    let is_loaded = point.pause != Pause::Off;
    let in_cache = setting.in_cache(point);
    // A sweep over sizes begins in the caches on purpose.
    let of_cache = match in_cache {
        Some(Some(size)) if point.size == setting.largest() => {
            Some(Finding::of(&kinds::IN_CACHE).measure("size_bytes", size.0 as f64))
        }
        None => Some(Finding::of(&kinds::CACHE_UNKNOWN)),
        Some(_) => None,
    };
    let is_missed = found
        .measured_mb_s
        .zip(found.issued_mb_s)
        .is_some_and(|(measured, issued)| measured < COUNTED * issued);
    let removed = found.count(|window| !window.stalled && !window.kept) as u64;
    let is_stalled = found.count(|window| window.stalled) > 0;
    let uncounted = match counts_translations {
        true => {
            let windows = measured.windows.iter();
            windows.filter(|window| window.tlb.is_none()).count() as u64
        }
        false => 0,
    };
    let stated = [
        (!measured.settled).then(|| Finding::of(&kinds::UNSTABLE)),
        is_stalled.then(|| Finding::of(&kinds::STALLED)),
        Finding::counted(&kinds::WINDOWS_REMOVED, removed, None),
        Finding::counted(&kinds::TLB_COUNTERS_SHARED, uncounted, None),
        (is_missed && in_cache == Some(None)).then(|| Finding::of(&kinds::TRAFFIC_MISSED)),
        of_cache,
        (is_loaded && setting.place(point).generators.len() == 1)
            .then(|| Finding::of(&kinds::CORE_LIMITED)),
    ];
    let throttled = of_throttling(&measured.throttled, None);
    stated.into_iter().flatten().chain(throttled).collect()
}

impl Benchmark for MemoryBenchmark {
    fn schema(&self) -> &'static Schema {
        &columns::SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        let setting = Setting::find(&self.config, &self.sweep)?;
        // Refused before anything is made.
        let mut unread = Vec::new();
        for place in setting.measured() {
            let reason = self.controllers(place)?.err();
            unread.push((place.memory_node, reason));
        }
        self.unread = unread;
        let (points, left_out) = points(&self.sweep, &setting.sizes, &setting.places);
        let settings = |point: &Point| rows::settings(point, &setting, &self.config);
        let planned = |(index, point): (usize, &Point)| PlannedPoint {
            index,
            rows: vec![PlannedRow {
                name: point.to_string(),
                settings: settings(point),
            }],
            time: match index {
                0 => {
                    self.time()
                        + Self::time_to_prepare(&setting, point)
                        + Self::time_to_arrange(&setting, point)
                }
                _ => self.time() + Self::time_to_arrange(&setting, point),
            },
            bytes: u64::from(self.config.windows) * BYTES_PER_WINDOW + BYTES_PER_POINT,
            bytes_once: 0,
            bytes_of_losses: 0,
            may_abort: false,
        };
        let plan = Plan {
            points: points.iter().enumerate().map(planned).collect(),
            left_out: left_out
                .iter()
                .map(|(point, reason)| {
                    let mut record: Record = settings(point);
                    record.set(&REASON, reason.as_str());
                    record
                })
                .collect(),
        };
        self.points = points;
        self.setting = Some(setting);
        Ok(plan)
    }

    fn busy_cpus(&self) -> Option<usize> {
        // Beside the chase.
        Some(1 + self.setting().most_generators())
    }

    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        let largest = self.setting().largest();
        let first = self.points.first().map_or(0, |point| point.place);
        let made = self.make(first, largest)?;
        let unread = unread_in_words(&self.unread);
        let setting = self.setting();
        let pages = made.pages.iter().min().map_or("", |kind| kind.describe());
        let chases: CpuSet = setting.measured().map(|place| place.chase_cpu).collect();
        let generators = setting.measured().flat_map(|place| &place.generators);
        let generators: CpuSet = generators.copied().collect();
        let size = setting.largest();
        let up_to = if setting.sizes.len() > 1 {
            "up to "
        } else {
            ""
        };
        let announcements = vec![
            format!("chase:    CPU {chases}, {up_to}{size} in {pages}"),
            format!(
                "load:     CPU {generators}, {}, two buffers of {} each",
                setting.instruction_set.name(),
                setting.generator_size
            ),
        ];
        let controllers = made.bench.controllers.as_ref().map(Uncore::events);
        let translations = match (&made.bench.tlb, &made.untranslated) {
            (Some(tlb), _) => json!({ "read": true, "processor": tlb.processor() }),
            (None, reason) => json!({ "read": false, "because": reason }),
        };
        let shared = setting.measured().find(|place| place.shares_core);
        let shared = shared.map(|place| {
            Finding::of(&kinds::CORE_SHARED).listed("cpu", place.chase_cpu.to_string())
        });
        self.bench = Some(made);
        Ok(Ready {
            plan,
            obtained: json!({ "latency_is": "a load that waits for the one before it, of a separate line",
                "memory_controllers_are_read": unread.is_none(),
                "memory_controllers_are_not_read_because": unread,
            }),
            instrument: json!({
                "clock": { "name": "monotonic", "read": "at the ends of some 200 us of steps" },
                "memory_controllers": controllers,
                "tlb_counters": translations,
            }),
            announcements,
            findings: shared.into_iter().collect(),
        })
    }

    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let point = self.points[point];
        Ok(self.round(point, place, progress)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::memory::windows::Window;
    use crate::generators::chase::ChaseTiming;
    use crate::generators::{InstructionSet, Store};
    use crate::host::tlb::TlbCounts;
    use crate::stats::outliers::Outliers;

    const fn mib(count: u64) -> Bytes {
        Bytes(count << 20)
    }

    fn point(pause: Pause, place: usize, size_varies: bool) -> Point {
        Point {
            read_share: 100,
            store: Store::Regular,
            pause,
            size: mib(128),
            size_varies,
            place,
            nodes: None,
        }
    }

    fn setting(places: usize, cache: Bytes) -> Setting {
        let place = Place {
            cpu_node: None,
            memory_node: None,
            chase_cpu: 0,
            generators: vec![1, 2],
            shares_core: false,
            share_cache: 2,
            left_out: None,
        };
        Setting {
            instruction_set: InstructionSet::BASE,
            sizes: vec![mib(128)],
            generator_size: mib(128),
            places: vec![place; places],
            cache: Some(cache),
        }
    }

    #[test]
    fn the_time_to_link_goes_by_where_the_order_of_the_lines_lies() {
        let cache = Some(mib(32));
        // 8 MiB of order.
        assert_eq!(time_to_link(mib(128), cache), Duration::from_millis(64));
        // 64 MiB.
        assert_eq!(time_to_link(mib(1024), cache), Duration::from_millis(1536));
        assert_eq!(time_to_link(mib(100), None), Duration::from_millis(150));
        assert!(time_to_warm_up(mib(1), cache) < Duration::from_millis(3));
        let twice_the_cache = time_to_warm_up(mib(64), cache);
        assert_eq!(time_to_warm_up(mib(1024), cache), twice_the_cache);
        assert_eq!(time_to_warm_up(mib(4096), Some(mib(4096))), LONGEST_WARM_UP);
    }

    #[test]
    fn a_point_of_another_place_takes_all_its_buffers_once() {
        let off = point(Pause::Off, 0, false);
        let time = |places: usize, point: &Point| {
            MemoryBenchmark::time_to_arrange(&setting(places, mib(32)), point)
        };
        assert_eq!(time(1, &off), Duration::ZERO);
        let (link, warm) = (
            time_to_link(mib(128), Some(mib(32))),
            time_to_warm_up(mib(128), Some(mib(32))),
        );
        assert_eq!(time(1, &point(Pause::Off, 0, true)), link + warm);
        // The chase's, and two buffers of the generators, which touch them at the same time.
        let touched = TO_TOUCH * 3 * 128;
        assert_eq!(time(2, &off), link + warm + touched);
        assert_eq!(time(2, &point(Pause::Off, 1, true)), link + warm + touched);
        assert_eq!(time_to_touch(mib(1), mib(1), 9), TO_TOUCH * 5);
    }

    #[test]
    fn each_reason_why_controllers_are_not_read_is_told_with_its_nodes() {
        let all = |reasons: [Option<&str>; 3]| {
            let places = reasons.iter().zip([0, 1, 1]);
            let places = places.map(|(reason, node)| (Some(node), reason.map(str::to_owned)));
            unread_in_words(&places.collect::<Vec<_>>())
        };
        assert_eq!(all([None; 3]), None);
        assert_eq!(all([Some("no PMU"); 3]), Some("no PMU".to_owned()));
        let told = "memory of node 1: no PMU".to_owned();
        assert_eq!(all([None, Some("no PMU"), Some("no PMU")]), Some(told));
        let told = all([Some("busy"), Some("no PMU"), Some("busy")]).unwrap();
        assert_eq!(told, "memory of node 0, 1: busy; memory of node 1: no PMU");
        assert_eq!(unread_in_words(&[]), None);
    }

    fn found(controllers_bytes: u64, tlb: Option<TlbCounts>, cache: Bytes) -> Vec<String> {
        let window = |tlb| Window {
            start: Duration::ZERO,
            chase: ChaseTiming {
                steps: 10_000,
                time: Duration::from_millis(1),
            },
            groups: vec![100, 100],
            controllers_bytes: Some(controllers_bytes),
            tlb,
        };
        let mut windows = vec![window(Some(TlbCounts::default())); 12];
        windows[3].tlb = tlb;
        let measured = MeasuredWindows {
            windows,
            settled: true,
            ..MeasuredWindows::default()
        };
        let (point, setting) = (point(Pause::Nops(0), 0, false), setting(1, cache));
        let load = point.load(setting.instruction_set);
        let analysis = Analysis::of(&measured, load.as_ref(), Outliers::None);
        let found = findings(&point, &setting, &measured, &analysis, true);
        found.into_iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn controllers_that_count_far_too_little_are_told() {
        // 200 groups of 50 lines of 64 bytes are 640 000 bytes.
        let counts = Some(TlbCounts::default());
        assert_eq!(found(300_000, counts, mib(32)), ["traffic-missed"]);
        assert_eq!(found(640_000, counts, mib(32)), [""; 0]);
        // The cache may have served them.
        assert_eq!(found(300_000, counts, mib(64)), ["in-cache"]);
    }

    #[test]
    fn windows_without_counts_of_page_walks_are_told() {
        assert_eq!(found(640_000, None, mib(32)), ["tlb-counters-shared"]);
    }
}
