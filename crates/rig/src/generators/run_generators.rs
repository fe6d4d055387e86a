//! Memory load beside what another benchmark measures: generators draw a share of their peak while a point is measured,
//! and sleep at all other times.
//!
//! The load is the same mix everywhere: half of the lines are read and half are stored through the caches, by the widest
//! instructions that the processor has. A run has one set of generators ([`CpusLeft`](super::CpusLeft)). They are made
//! and calibrated before its first point with load, once in a process.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::accesses::{Accesses, InstructionSet, Store};
use super::calibration::{self, CalibratedLoad, calibrate};
use super::crew::{BUFFERS, BufferSettings, CACHES, Generators, GeneratorsError};
use super::generator::LineCounts;
use crate::buffer::{Bytes, HUGE_PAGE};
use crate::host::{CpuSet, memory_layout};
use crate::results::finding::Finding;
use crate::results::finding::kinds::GENERATORS_IN_CACHE;
use crate::rig::error::RigError;
use crate::rig::memory::{Allowance, MemoryLimitError, MemoryNeed};

/// Of the lines, those that are read, in percent.
const READ_SHARE: u32 = 50;
/// Bytes of buffers that are made in a second, at least.
const MADE_PER_S: u64 = 1 << 30;

/// The share of their peak that generators draw, in per cent: 1 to 100; 0 where there is no load.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct MemoryLoad(u32);

impl MemoryLoad {
    /// No load.
    pub const OFF: Self = MemoryLoad(0);

    /// A load; `None` of what is not 1 to 100 per cent.
    pub fn of_percent(percent: u32) -> Option<Self> {
        (1..=100).contains(&percent).then_some(MemoryLoad(percent))
    }

    /// Per cent of the peak.
    pub fn percent(self) -> u32 {
        self.0
    }

    /// Whether there is one.
    pub fn is_on(self) -> bool {
        self != Self::OFF
    }

    /// What the name of a point has behind it: nothing without a load.
    pub fn in_name(self) -> String {
        match self.is_on() {
            true => format!("-memory_load{}", self.0),
            false => String::new(),
        }
    }
}

impl fmt::Display for MemoryLoad {
    /// As the command line has it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_on() {
            true => write!(formatter, "{}%", self.0),
            false => formatter.write_str("off"),
        }
    }
}

/// What generators issued while a point was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadTraffic {
    /// Bytes of the lines that they read and stored.
    pub bytes: u64,
    /// How long that was.
    pub time: Duration,
}

impl LoadTraffic {
    /// In 10^6 bytes a second.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// The generators of a run.
#[derive(Debug)]
pub struct RunGenerators {
    cpus: CpuSet,
    room: BufferSettings,
    /// The last level of their cache.
    cache: Option<Bytes>,
    accesses: Accesses,
    /// Each load of the run, once.
    loads: Vec<MemoryLoad>,
    /// How many points are under one of them.
    points: u32,
    made: Option<CalibratedGenerators>,
}

#[derive(Debug)]
struct CalibratedGenerators {
    generators: Generators,
    /// Of each load, and behind them the peak.
    calibrated: Vec<CalibratedLoad>,
}

impl RunGenerators {
    /// On these CPUs, for the loads of a run; none if there are no such CPUs, or no loads. Nothing is made yet. `others`:
    /// bytes that the run takes beside the generators.
    ///
    /// # Errors
    /// When their buffers do not fit into the memory that this process may take.
    pub fn new(
        cpus: CpuSet,
        loads: impl IntoIterator<Item = MemoryLoad>,
        others: u64,
    ) -> Result<Option<Self>, RigError> {
        let cache = cpus
            .first()
            .and_then(memory_layout::last_level_cache)
            .map(Bytes);
        let allowed = Allowance::of_this_process();
        Ok(Self::within(allowed.as_ref(), cache, cpus, loads, others)?)
    }

    /// With small buffers.
    #[cfg(any(test, feature = "testing"))]
    pub fn made_up(cpus: CpuSet, loads: &[MemoryLoad]) -> Self {
        let allowed = Allowance {
            bytes: BUFFERS * HUGE_PAGE as u64 * cpus.len() as u64,
            group: None,
        };
        let made = Self::within(Some(&allowed), None, cpus, loads.iter().copied(), 0);
        made.unwrap().unwrap()
    }

    fn within(
        allowed: Option<&Allowance>,
        cache: Option<Bytes>,
        cpus: CpuSet,
        loads: impl IntoIterator<Item = MemoryLoad>,
        others: u64,
    ) -> Result<Option<Self>, MemoryLimitError> {
        let mut loads: Vec<MemoryLoad> = loads.into_iter().filter(|load| load.is_on()).collect();
        let points = loads.len() as u32;
        loads.sort_unstable();
        loads.dedup();
        let Some(instruction_set) = InstructionSet::widest() else {
            return Ok(None);
        };
        if cpus.is_empty() || loads.is_empty() {
            return Ok(None);
        }
        let room = BufferSettings {
            size: size_of_buffers(allowed, cache, &cpus, others)?,
            page: None,
            node: None,
        };
        Ok(Some(RunGenerators {
            cpus,
            room,
            cache,
            accesses: Accesses::with_share(instruction_set, Store::Regular, READ_SHARE),
            loads,
            points,
            made: None,
        }))
    }

    /// Those of the generators.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.room.size.0 * BUFFERS * self.cpus.len() as u64
    }

    /// Of these CPUs, those that no generator has; all of them if there are none.
    pub fn without_generators(&self, cpus: &CpuSet) -> CpuSet {
        let free = cpus.difference(&self.cpus);
        if free.is_empty() { cpus.clone() } else { free }
    }

    /// How long making and calibrating takes, about: once in a round.
    fn preparation(&self) -> Duration {
        let making = Duration::from_secs_f64(self.bytes() as f64 / MADE_PER_S as f64);
        making + calibration::time(&self.percents())
    }

    /// What a point has of that time: each under load as much.
    pub fn share_of_preparation(&self, load: MemoryLoad) -> Duration {
        match load.is_on() {
            true => self.preparation() / self.points,
            false => Duration::ZERO,
        }
    }

    /// The facts about a run with them.
    pub fn announcement(&self) -> String {
        let several = if self.cpus.len() == 1 { "" } else { "s" };
        format!(
            "memory load: {} generator{several} on CPU {}, with buffers of {}, {}",
            self.cpus.len(),
            self.cpus,
            self.room.size,
            self.accesses.instruction_set.name(),
        )
    }

    /// Buffers that the cache holds a good part of.
    pub fn finding(&self) -> Option<Finding> {
        let cache = self
            .cache
            .filter(|cache| self.room.size.0 < CACHES * cache.0)?;
        let found = Finding::of(&GENERATORS_IN_CACHE)
            .measure("buffer_bytes", self.room.size.0 as f64)
            .measure("caches", CACHES as f64)
            .measure("cache_bytes", cache.0 as f64);
        Some(found)
    }

    /// What was obtained, for the results. What differs from run to run is there once they are made.
    pub fn obtained(&self) -> Value {
        let mut found = json!({
            "generators": self.cpus,
            "read_share_percent": READ_SHARE,
            "store": self.accesses.store.name(),
            "isa": self.accesses.instruction_set.name(),
        });
        if let Some(made) = &self.made {
            found["buffer_bytes"] = json!(self.room.size.0);
            found["pages"] = json!(made.generators.page_kinds());
        }
        found
    }

    /// Their calibration, for the results; null before there is one.
    pub fn calibration(&self) -> Value {
        let Some(made) = &self.made else {
            return Value::Null;
        };
        let mb_per_s = |it: &CalibratedLoad| it.bytes_per_s / 1e6;
        let one = |(load, it): (&MemoryLoad, &CalibratedLoad)| {
            json!({
                "percent": load.percent(),
                "pause_nops": it.load.pause,
                "mb_s": mb_per_s(it),
            })
        };
        json!({
            "peak_mb_s": made.calibrated.last().map(mb_per_s),
            "loads": self.loads.iter().zip(&made.calibrated).map(one).collect::<Vec<_>>(),
        })
    }

    fn percents(&self) -> Vec<u32> {
        let percents = self.loads.iter().map(|load| load.percent());
        percents.collect()
    }

    /// Makes and calibrates them if that was not done before. They rest afterwards.
    ///
    /// # Errors
    /// When they cannot be made or do not answer, or a signal has come.
    pub fn prepare(&mut self) -> Result<(), GeneratorsError> {
        if self.made.is_some() {
            return Ok(());
        }
        let cpus: Vec<usize> = self.cpus.iter().collect();
        let generators = Generators::new(&cpus, self.room)?;
        let mut percents = self.percents();
        percents.push(100);
        let calibrated = calibrate(&generators, self.accesses, &percents)?;
        self.made = Some(CalibratedGenerators {
            generators,
            calibrated,
        });
        Ok(())
    }

    /// A load that is about to be drawn; `None` without one.
    ///
    /// # Panics
    /// For a load before [`prepare`](Self::prepare), or one that is not of this run.
    pub fn load(&self, load: MemoryLoad) -> Option<ActiveLoad<'_>> {
        if !load.is_on() {
            return None;
        }
        let place = self.loads.iter().position(|one| *one == load);
        let place = place.expect("a point's load is one of its run");
        let made = self
            .made
            .as_ref()
            .expect("generators are made before they are used");
        Some(ActiveLoad {
            generators: &made.generators,
            calibrated: made.calibrated[place],
            begun: None,
            drawn: None,
        })
    }
}

/// So much that a buffer leaves the cache, if that fits beside what else the run takes; at least a huge page.
fn size_of_buffers(
    allowed: Option<&Allowance>,
    cache: Option<Bytes>,
    cpus: &CpuSet,
    others: u64,
) -> Result<Bytes, MemoryLimitError> {
    let page = HUGE_PAGE as u64;
    let buffers = BUFFERS * cpus.len() as u64;
    let Some(allowed) = allowed else {
        return Ok(BufferSettings::usual_size(cache, u64::MAX));
    };
    let needs = [
        MemoryNeed {
            what: "what is measured",
            bytes: others,
        },
        MemoryNeed {
            what: "the buffers of generators",
            bytes: buffers * page,
        },
    ];
    let options = format!("--memory-load with generators on CPU {cpus}");
    allowed.require(
        &needs,
        &options,
        "allow this process fewer CPUs (taskset -c), or measure less at once",
    )?;
    Ok(BufferSettings::usual_size(
        cache,
        (allowed.bytes - others) / buffers,
    ))
}

/// A load from its beginning to its end. The generators rest once it is dropped.
#[derive(Debug)]
pub struct ActiveLoad<'a> {
    generators: &'a Generators,
    calibrated: CalibratedLoad,
    /// When it began, and the groups until then.
    begun: Option<(Instant, u64)>,
    drawn: Option<LoadTraffic>,
}

impl ActiveLoad<'_> {
    /// Has the generators begin. When it returns they are at work.
    ///
    /// # Errors
    /// When one of them does not answer, or a signal has come.
    pub fn begin(&mut self) -> Result<(), GeneratorsError> {
        let now = || Some((Instant::now(), self.generators.groups().sum()));
        // They have an order even where one of them does not answer.
        self.begun = now();
        self.generators.generate(self.calibrated.load)?;
        self.begun = now();
        Ok(())
    }

    /// Has them rest, and counts what they issued since the beginning.
    ///
    /// # Errors
    /// When one of them does not answer.
    pub fn end(&mut self) -> Result<(), GeneratorsError> {
        let Some((begun, before)) = self.begun.take() else {
            return Ok(());
        };
        let groups: u64 = self.generators.groups().sum();
        self.drawn = Some(LoadTraffic {
            bytes: LineCounts::of_groups(groups - before, &self.calibrated.load.accesses).bytes(),
            time: begun.elapsed(),
        });
        self.generators.rest()
    }

    /// What was issued, once it has ended.
    pub fn drawn(&self) -> Option<LoadTraffic> {
        self.drawn
    }
}

impl Drop for ActiveLoad<'_> {
    fn drop(&mut self) {
        // The cause of an unexpected end comes first.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests;
