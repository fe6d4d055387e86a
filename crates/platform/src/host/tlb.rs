//! What a thread's loads cost beside the memory: hits of the second-level TLB and page walks, by the counters of its
//! core, through perf.
//!
//! | processors | events | cycles of a hit |
//! | --- | --- | --- |
//! | Intel, Haswell and Broadwell | `DTLB_LOAD_MISSES` (0x08) `.WALK_DURATION`, `.WALK_COMPLETED`, `.STLB_HIT` | 8 |
//! | Intel, Skylake to Cascade Lake | the same with `.WALK_ACTIVE` | 9 |
//! | Intel, Ice Lake | the same | 7 |
//! | Intel, Sapphire and Granite Rapids | the same (0x12) | 7 |
//! | AMD, Zen | `LsL1DTlbMiss` (0x45), hits and misses of the second level; no cycles | - |
//!
//! Cycles of walks are those in which at least one is under way (a threshold of 1): newer cores have two or more walkers,
//! and without the threshold a cycle counts for each that is busy.
//!
//! In a chase a walk is over before its load begins, and at most one is under way: so cycles of walks are time that the
//! load took longer. What a hit costs is not counted: it is the figure of Intel's own metrics. On Skylake walks of the
//! hypervisor's tables do not count.
//!
//! Left out: hybrid processors, whose cores differ; Arm; and what a walk takes on AMD, which no event counts.
//!
//! The tests find events on made-up machines. Reading them was never tried: no machine at hand shows any.
//!
//! Source: the events and metrics (`tma_dtlb_load`) in the kernel's tools/perf/pmu-events/arch/x86; Processor
//! Programming Reference of AMD families 17h, 19h and 1Ah, PMCx045; perf_event_open(2).

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use perf_event::events::{Event, Hardware, Raw};
use perf_event::{Builder, Counter, Group};

use super::system_files::SystemFiles;

const CPU: &str = "sys/bus/event_source/devices/cpu";

/// The threshold of 1 (`cmask`).
const AT_LEAST_ONE: u64 = 1 << 24;

/// The events of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CoreEvents {
    /// What perf or the maker calls the processor.
    of: &'static str,
    /// Cycles of walks, and of a hit, where they are known.
    cycles: Option<(u64, u64)>,
    /// Walks that were completed; of AMD, misses of the second-level TLB, each of which walks.
    walks: u64,
    hits: u64,
}

impl CoreEvents {
    /// What is opened behind the cycles of the core, in the order in which [`TlbCounts::of`] takes them.
    fn raw(&self) -> impl Iterator<Item = u64> + use<> {
        let walk_cycles = self.cycles.map(|(event, _)| event);
        [self.walks, self.hits].into_iter().chain(walk_cycles)
    }

    /// Of Intel, by the event and what its units are of hits.
    const fn of_intel(of: &'static str, event: u64, hits: u64, cycles_of_hit: u64) -> Self {
        CoreEvents {
            of,
            cycles: Some((event | 0x10 << 8 | AT_LEAST_ONE, cycles_of_hit)),
            walks: event | 0x0e << 8,
            hits: event | hits << 8,
        }
    }
}

/// By perf's own name for the processor.
const INTEL: [CoreEvents; 6] = [
    CoreEvents::of_intel("haswell", 0x08, 0x60, 8),
    CoreEvents::of_intel("broadwell", 0x08, 0x60, 8),
    CoreEvents::of_intel("skylake", 0x08, 0x20, 9),
    CoreEvents::of_intel("icelake", 0x08, 0x20, 7),
    CoreEvents::of_intel("sapphire_rapids", 0x12, 0x20, 7),
    CoreEvents::of_intel("granite_rapids", 0x12, 0x20, 7),
];

/// The first family of AMD that has them.
const ZEN: u32 = 0x17;
const AMD: CoreEvents = CoreEvents {
    of: "zen",
    cycles: None,
    walks: 0x45 | 0xf0 << 8,
    hits: 0x45 | 0x0f << 8,
};

/// What happened between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TlbCounts {
    /// Cycles of the core.
    pub cycles: u64,
    /// Those of them in which a page walk was under way, where they are counted.
    pub walk_cycles: Option<u64>,
    /// Page walks that were completed; of AMD, misses of the second-level TLB.
    pub walks: u64,
    /// Accesses that found their page in the second-level TLB.
    pub hits: u64,
    /// Cycles of walks, and of hits by what one costs.
    pub translation_cycles: Option<u64>,
}

impl TlbCounts {
    /// Of what the cycles of the core and the counters of [`CoreEvents::raw`] have; `None` if one is missing.
    fn of(events: &CoreEvents, mut counts: impl Iterator<Item = u64>) -> Option<Self> {
        let [cycles, walks, hits] = [counts.next()?, counts.next()?, counts.next()?];
        let timed = match events.cycles {
            None => None,
            Some((_, of_hit)) => Some((counts.next()?, of_hit)),
        };
        Some(TlbCounts {
            cycles,
            walk_cycles: timed.map(|(walking, _)| walking),
            walks,
            hits,
            translation_cycles: timed.map(|(walking, of_hit)| walking + hits * of_hit),
        })
    }

    /// The share of the time that translations took; `None` where that is not counted, or no share.
    pub fn translation_share(&self) -> Option<f64> {
        let share = self.translation_cycles? as f64 / self.cycles as f64;
        Some(share).filter(|share| (0.0..1.0).contains(share))
    }
}

/// Counts that were read at a moment.
#[derive(Debug, Clone, Copy)]
pub struct TlbReading {
    counts: TlbCounts,
    enabled: Duration,
    running: Duration,
}

impl TlbReading {
    /// What happened since an earlier reading; `None` if the counters did not count all the time.
    pub fn since(&self, before: &TlbReading) -> Option<TlbCounts> {
        let is_whole = self.enabled - before.enabled == self.running - before.running;
        let [after, before] = [&self.counts, &before.counts];
        let both = |count: fn(&TlbCounts) -> Option<u64>| Some(count(after)? - count(before)?);
        is_whole.then(|| TlbCounts {
            cycles: after.cycles - before.cycles,
            walk_cycles: both(|it| it.walk_cycles),
            walks: after.walks - before.walks,
            hits: after.hits - before.hits,
            translation_cycles: both(|it| it.translation_cycles),
        })
    }
}

/// The counters of the thread that opened them.
pub struct TlbCounters {
    group: Group,
    /// Cycles, and what [`CoreEvents::raw`] has.
    members: Vec<Counter>,
    events: CoreEvents,
}

impl std::fmt::Debug for TlbCounters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.events.fmt(formatter)
    }
}

impl TlbCounters {
    /// Opens those of the calling thread, in user space. They count from now on.
    ///
    /// # Errors
    /// With the reason in words: they are not known for this processor, or may not be read.
    pub fn open() -> Result<Self, String> {
        let events = find(&SystemFiles::of_this_machine())?;
        Self::of(events, Hardware::CPU_CYCLES, events.raw().map(Raw::new))
    }

    fn of<E: Event>(
        events: CoreEvents,
        cycles: impl Event,
        others: impl IntoIterator<Item = E>,
    ) -> Result<Self, String> {
        let opened = || -> io::Result<(Group, Vec<Counter>)> {
            let mut group = Group::new()?;
            let mut members = vec![group.add(&Builder::new(cycles))?];
            for event in others {
                members.push(group.add(&Builder::new(event))?);
            }
            group.enable()?;
            Ok((group, members))
        };
        let (group, members) = opened().map_err(|error| {
            match Errno::try_from(error).unwrap_or(Errno::UnknownErrno) {
                errno @ (Errno::EACCES | Errno::EPERM) => format!(
                    "perf_event_open is not allowed ({errno}): sysctl kernel.perf_event_paranoid=2 or less, or run \
                     with CAP_PERFMON"
                ),
                errno => format!("perf_event_open of a counter of the processor failed: {errno}"),
            }
        })?;
        Ok(TlbCounters {
            group,
            members,
            events,
        })
    }

    /// What perf or the maker calls the processor.
    pub fn processor(&self) -> &'static str {
        self.events.of
    }

    /// What was counted until now; `None` where it cannot be read any more.
    pub fn read(&mut self) -> Option<TlbReading> {
        let data = self.group.read().ok()?;
        let counts = self.members.iter().map(|member| data.get(member));
        let counts: Option<Vec<u64>> = counts.map(|count| Some(count?.value())).collect();
        Some(TlbReading {
            counts: TlbCounts::of(&self.events, counts?.into_iter())?,
            enabled: data.time_enabled()?,
            running: data.time_running()?,
        })
    }
}

/// The events of this processor, or why there are none.
fn find(files: &SystemFiles) -> Result<CoreEvents, String> {
    if files.names(CPU).is_empty() {
        return Err(match files.names(&format!("{CPU}_core")).is_empty() {
            true => format!(
                "perf shows no counters of the processor (/{CPU}): virtual machines have none unless their host \
                 passes them on"
            ),
            false => "the cores of a hybrid processor differ".to_owned(),
        });
    }
    let info = |key: &str| files.field("proc/cpuinfo", key, ':');
    let named = files.optional(&format!("{CPU}/caps/pmu_name"));
    let family = info("cpu family").and_then(|family| family.parse::<u32>().ok());
    let found = match (named.as_deref(), info("vendor_id").as_deref()) {
        (Some(name), Some("GenuineIntel")) => INTEL.iter().find(|events| events.of == name),
        (_, Some("AuthenticAMD")) => family.filter(|family| *family >= ZEN).map(|_| &AMD),
        _ => None,
    };
    found.copied().ok_or_else(|| {
        let name = named.or_else(|| info("model name"));
        format!(
            "the events of this processor ({}) that count page walks are not known",
            name.as_deref().unwrap_or("unknown")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::Machine;
    use super::*;
    use crate::testing::Refused as _;
    use perf_event::events::Software;

    fn machine(vendor: &str, family: u32, name: Option<&str>) -> Machine {
        let machine = Machine::new(1, 2, 1);
        machine.file(&format!("{CPU}/type"), "4").file(
            "proc/cpuinfo",
            &format!("vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel name\t: Some Processor"),
        );
        if let Some(name) = name {
            machine.file(&format!("{CPU}/caps/pmu_name"), name);
        }
        machine
    }

    fn found(machine: &Machine) -> Result<CoreEvents, String> {
        find(&SystemFiles::below(machine.root()))
    }

    #[test]
    fn events_go_by_the_name_that_perf_has_for_the_processor() {
        let of = |name| found(&machine("GenuineIntel", 6, Some(name))).unwrap();
        let events = of("sapphire_rapids");
        assert_eq!(events.cycles, Some((0x100_1012, 7)));
        assert_eq!([events.walks, events.hits], [0x0e12, 0x2012]);
        assert_eq!(of("haswell").hits, 0x6008);
        assert_eq!(of("skylake").cycles, Some((0x100_1008, 9)));
        for family in [0x17, 0x19, 0x1a] {
            let events = found(&machine("AuthenticAMD", family, None)).unwrap();
            assert_eq!([events.walks, events.hits], [0xf045, 0x0f45]);
            assert_eq!(events.cycles, None);
        }
    }

    #[test]
    fn a_processor_without_known_events_is_told_by_name() {
        found(&Machine::new(1, 1, 1))
            .refused(&["no counters of the processor", "virtual machines"]);
        let hybrid = Machine::new(1, 1, 1);
        hybrid.file(&format!("{CPU}_core/type"), "4");
        found(&hybrid).refused(&["hybrid"]);
        found(&machine("GenuineIntel", 6, Some("new_lake"))).refused(&["new_lake", "not known"]);
        found(&machine("GenuineIntel", 6, None)).refused(&["Some Processor", "not known"]);
        found(&machine("AuthenticAMD", 0x15, None)).refused(&["Some Processor"]);
        found(&machine("HygonGenuine", 0x18, Some(""))).refused(&["Some Processor"]);
        let nothing = Machine::new(1, 1, 1);
        nothing.file(&format!("{CPU}/type"), "8");
        found(&nothing).refused(&["(unknown)"]);
    }

    #[test]
    fn translations_take_the_cycles_of_walks_and_of_hits() {
        let reading = |cycles: u64, walk_cycles, hits: u64, running: u64| TlbReading {
            counts: TlbCounts {
                cycles,
                walk_cycles: Some(walk_cycles),
                walks: 10,
                hits,
                translation_cycles: Some(walk_cycles + 7 * hits),
            },
            enabled: Duration::from_nanos(100 + cycles),
            running: Duration::from_nanos(running),
        };
        let (before, after) = (reading(1000, 100, 50, 900), reading(3000, 500, 100, 2900));
        let counts = after.since(&before).unwrap();
        assert_eq!(
            (counts.cycles, counts.walk_cycles, counts.hits),
            (2000, Some(400), 50)
        );
        assert_eq!(counts.translation_share(), Some(0.375));
        // Somebody else had the counters meanwhile.
        assert_eq!(reading(3000, 500, 100, 2000).since(&before), None);
        let none = TlbCounts {
            walk_cycles: None,
            translation_cycles: None,
            ..counts
        };
        assert_eq!(none.translation_share(), None);
        // Not of these cycles.
        let more = TlbCounts {
            translation_cycles: Some(2000),
            ..counts
        };
        assert_eq!(more.translation_share(), None);
        assert_eq!(TlbCounts::default().translation_share(), None);
    }

    #[test]
    fn each_event_that_is_opened_is_taken_for_what_it_counts() {
        for events in INTEL.into_iter().chain([AMD]) {
            // Each counter has the number of its event.
            let counts = TlbCounts::of(&events, [1].into_iter().chain(events.raw())).unwrap();
            assert_eq!(
                (counts.cycles, counts.walks),
                (1, events.walks),
                "{events:?}"
            );
            assert_eq!(counts.hits, events.hits);
            assert_eq!(counts.walk_cycles, events.cycles.map(|(event, _)| event));
            let all = events.raw().count();
            assert_eq!(TlbCounts::of(&events, events.raw().take(all)), None);
        }
    }

    #[test]
    fn what_the_kernel_counts_is_read_in_its_order() {
        // Events of the kernel, which every machine has.
        let others = [
            Software::PAGE_FAULTS_MIN,
            Software::CPU_MIGRATIONS,
            Software::PAGE_FAULTS_MAJ,
        ];
        let opened = TlbCounters::of(INTEL[0], Software::TASK_CLOCK, others);
        let mut counters = match opened {
            Ok(counters) => counters,
            // A sandbox may forbid the call, or know none; then that must be what is told.
            Err(reason) => {
                let is_told = reason.contains("not allowed") || reason.contains("ENOSYS");
                return assert!(is_told, "{reason}");
            }
        };
        let before = counters.read().unwrap();
        let mut map = memmap2::MmapMut::map_anon(50 * 4096).unwrap();
        let _ = map.advise(memmap2::Advice::NoHugePage);
        map.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&map);
        let counts = counters.read().unwrap().since(&before).unwrap();
        assert!(counts.cycles > 0 && counts.walks > 0, "{counts:?}");
        assert_eq!(counts.walk_cycles, Some(0), "{counts:?}");
    }

    #[test]
    fn this_machine_counts_or_says_why_not() {
        match TlbCounters::open() {
            Ok(mut counters) => assert!(counters.read().is_some()),
            Err(reason) => assert!(!reason.is_empty()),
        }
    }
}
