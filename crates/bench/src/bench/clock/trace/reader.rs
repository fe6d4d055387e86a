//! The thread that takes the records out of the kernel's rings while others watch, on a CPU that is not watched.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bench::clock::error::RunError;
use crate::bench::clock::jump::Longest;
use crate::host::threads;
use crate::host::trace::{Parts, Stretch, Stretches, Tracer};
use crate::time::{Anchors, AnyReading, raw_now};

use super::{SOMETHING, Trace, keep, ring, room};

/// How often it looks; longer where it takes a CPU that is watched.
const LOOK: Duration = Duration::from_millis(2);
const LOOK_BESIDE: Duration = Duration::from_millis(20);
/// How long it waits for a record behind the end of the watch, and a watching thread for the first, in milliseconds.
const LAST_RECORDS: u32 = 100;
const FIRST_RECORDS: u32 = 2000;

/// What a watching thread tells the reader.
#[derive(Debug, Default)]
pub(in crate::bench::clock) struct WatchState {
    thread: AtomicI32,
    begun: AtomicU64,
    ended: AtomicU64,
    /// By the reader: a record names the thread.
    is_named: AtomicBool,
}

impl WatchState {
    /// By the watching thread. It sleeps until the reader knows it by its going and coming. If that takes too long, the
    /// records up to its next switch count as lost.
    pub(in crate::bench::clock) fn begin(&self) {
        let thread = nix::unistd::gettid().as_raw();
        self.thread.store(thread, Ordering::Release);
        for _ in 0..FIRST_RECORDS {
            if self.is_named.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The watch begins.
    pub(in crate::bench::clock) fn start(&self) {
        self.begun.store(raw_now(), Ordering::Release);
    }

    /// The watch is over.
    pub(in crate::bench::clock) fn end(&self) {
        self.ended.store(raw_now(), Ordering::Release);
    }
}

/// The trace of all watched CPUs, under way.
#[derive(Debug)]
pub(in crate::bench::clock) struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Trace>>>,
}

/// Where the run fails, nobody asks for the trace.
impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

struct CpuTrace {
    tracer: Tracer,
    stretches: Stretches,
    kept: Longest<Parts>,
    told: usize,
}

impl CpuTrace {
    fn drain(&mut self, told: &[WatchState]) {
        let (stretches, kept) = (&mut self.stretches, &mut self.kept);
        let told = &told[self.told];
        stretches.of_thread(told.thread.load(Ordering::Acquire));
        let mut keep = |stretch: Stretch| keep(kept, stretch);
        self.tracer
            .drain(|record| stretches.take(record, &mut keep));
        told.is_named
            .store(stretches.records > 0, Ordering::Release);
    }
}

impl Reader {
    /// Starts it, with all memory. It inherits where the calling thread may run; `beside`: whether that is a CPU that
    /// is watched. Each of `told` is a watching thread's.
    pub(in crate::bench::clock) fn start(
        cpus: &[usize],
        reading: AnyReading,
        told: &Arc<[WatchState]>,
        beside: bool,
    ) -> Result<Self, RunError> {
        let room = room(cpus.len());
        let tracers = Tracer::open(cpus, ring(cpus.len()))?;
        let of_cpu = |(at, tracer)| {
            Ok(CpuTrace {
                tracer,
                stretches: Stretches::default(),
                kept: Longest::new(room, SOMETHING).map_err(|_| RunError::TraceMemory)?,
                told: at,
            })
        };
        let of_cpus = tracers.into_iter().enumerate().map(of_cpu);
        let mut of_cpus = of_cpus.collect::<Result<Vec<CpuTrace>, RunError>>()?;
        let (told, stop) = (Arc::clone(told), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&stop);
        let read = move || {
            let look = if beside { LOOK_BESIDE } else { LOOK };
            let mut anchors = Anchors::new();
            while !until.load(Ordering::Acquire) {
                anchors.drop_one(reading);
                of_cpus.iter_mut().for_each(|it| it.drain(&told));
                std::thread::sleep(look);
            }
            anchors.read(reading);
            anchors.finish();
            let finish = |mut of_cpu: CpuTrace| {
                let own = &told[of_cpu.told];
                let end = own.ended.load(Ordering::Acquire);
                let watched = own.begun.load(Ordering::Acquire)..end;
                // What is lost is told by the next record.
                for _ in 0..LAST_RECORDS {
                    of_cpu.drain(&told);
                    if of_cpu.stretches.latest >= end {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Trace::new(
                    of_cpu.stretches,
                    watched,
                    of_cpu.kept,
                    &of_cpu.tracer,
                    &anchors,
                )
            };
            of_cpus.into_iter().map(finish).collect()
        };
        let thread = std::thread::Builder::new().name("trace-reader".to_owned());
        let thread = Some(threads::start(thread, read)?);
        Ok(Reader { stop, thread })
    }

    /// The trace of each CPU, in their order, once all have ended.
    pub(in crate::bench::clock) fn finish(mut self) -> Vec<Trace> {
        self.stop.store(true, Ordering::Release);
        let traces = self.thread.take().map(JoinHandle::join);
        let traces = traces.unwrap_or_else(|| Ok(Vec::new()));
        traces.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
