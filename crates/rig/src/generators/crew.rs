//! Generators on their CPUs, a thread each, with buffers that their own threads have made: near their CPU, if nothing
//! else is asked for. They generate or rest on command, and sleep meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::generator::{Generator, Groups, Load};
use crate::buffer::{Bytes, HUGE_PAGE, PageKind, PageSize, Region, RegionError};
use crate::host::interrupt::{self, BlockedSignals};
use crate::host::{HostError, Needs, pinning, threads};
use crate::rig::error::{RigError, unless_interrupted};
use crate::rig::role::Role;

/// How long making the buffers may take, of all of them.
const MAKING: Duration = Duration::from_secs(300);
/// How long generators may take to follow a command: the longest pause, and a CPU that somebody else has.
const OBEYING: Duration = Duration::from_secs(5);
/// The same once a signal has come. A thread that is left behind ends with the program.
const AFTER_SIGNAL: Duration = Duration::from_millis(300);
/// How often is looked for a signal meanwhile.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_AT_SEEN: Duration = Duration::from_micros(50);
/// Its own stack, which holds little.
const STACK: usize = 256 << 10;

const GENERATOR: Role = Role::new("generator of memory load", "memory-load");

/// Generators could not be made, or do not follow commands.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorsError {
    /// A thread could not be started or did not get to its CPU, or a signal has come.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// A buffer could not be made.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The buffers took too long.
    #[error("the buffers of the generators were not made within {} s: use smaller ones", MAKING.as_secs())]
    TooSlow,
    /// A thread has ended before its buffers were made.
    #[error("a generator of memory load ended before it had its buffers")]
    Ended,
    /// A thread made no progress.
    #[error("the generator on CPU {cpu} did not follow a command within {} s; keep other threads off that CPU",
        OBEYING.as_secs())]
    Silent {
        /// Its CPU.
        cpu: usize,
    },
}

impl GeneratorsError {
    /// Whether a limit of this process or of the machine is reached, which something smaller may keep.
    pub fn is_shortage(&self) -> bool {
        match self {
            GeneratorsError::Rig(error) => error.is_shortage(),
            GeneratorsError::Region(error) => error.is_shortage(),
            _ => false,
        }
    }
}

/// What buffers are to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSettings {
    /// Of each of them.
    pub size: Bytes,
    /// The largest available one, if none is asked for.
    pub page: Option<PageSize>,
    /// The NUMA node; without one, that of the CPU.
    pub node: Option<u32>,
}

impl From<HostError> for GeneratorsError {
    fn from(error: HostError) -> Self {
        GeneratorsError::Rig(error.into())
    }
}

/// Buffers that a generator has.
pub const BUFFERS: u64 = 2;
/// A buffer that the last level of cache holds a quarter of leaves it.
pub const CACHES: u64 = 4;
/// The largest buffer by default: making it takes a second or so.
const LARGEST: u64 = 1 << 30;

impl BufferSettings {
    /// A size of buffers that leaves the last level of cache, if that is known and as many bytes are there for each: in
    /// pages of 2 MiB, and one of these at least.
    pub fn usual_size(cache: Option<Bytes>, there: u64) -> Bytes {
        let page = HUGE_PAGE as u64;
        let leaves = cache.map_or(LARGEST, |cache| CACHES.saturating_mul(cache.0).min(LARGEST));
        Bytes(
            leaves
                .next_multiple_of(page)
                .min(there / page * page)
                .max(page),
        )
    }

    /// A buffer.
    ///
    /// # Errors
    /// Those of [`Region::new`].
    pub fn region(&self) -> Result<Region, RegionError> {
        match self.page {
            Some(page) => Region::new(self.size, page, self.node),
            None => Region::in_largest(self.size, self.node),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum GeneratorCommand {
    Rest,
    Generate(Load),
    Leave,
}

/// A thread's side.
#[derive(Debug, Default)]
struct GeneratorThread {
    /// The number of the last order that it has taken up.
    seen: CachePadded<AtomicU64>,
    groups: Groups,
}

#[derive(Debug)]
struct CrewState {
    order: Mutex<GeneratorCommand>,
    given: Condvar,
    /// The number of the order.
    number: CachePadded<AtomicU64>,
    posts: Box<[GeneratorThread]>,
}

impl CrewState {
    fn order(&self) -> std::sync::MutexGuard<'_, GeneratorCommand> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, order: GeneratorCommand) -> u64 {
        let mut current = self.order();
        *current = order;
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        self.given.notify_all();
        number
    }

    /// The next order, with its number.
    fn next(&self, done: u64) -> (u64, GeneratorCommand) {
        let mut order = self.order();
        while self.number.load(Ordering::Relaxed) == done {
            order = self
                .given
                .wait(order)
                .unwrap_or_else(PoisonError::into_inner);
        }
        (self.number.load(Ordering::Relaxed), *order)
    }
}

/// Generators, which rest at first. They end when this value is dropped.
#[derive(Debug)]
pub struct Generators {
    shared: Arc<CrewState>,
    threads: Vec<JoinHandle<()>>,
    cpus: Vec<usize>,
    kinds: Vec<PageKind>,
}

impl Generators {
    /// One on each of these CPUs, with two buffers: one that it reads and one that it stores to.
    ///
    /// # Errors
    /// When a thread cannot be started or pinned, or a buffer cannot be made.
    pub fn new(cpus: &[usize], room: BufferSettings) -> Result<Self, GeneratorsError> {
        let shared = Arc::new(CrewState {
            order: Mutex::new(GeneratorCommand::Rest),
            given: Condvar::new(),
            number: CachePadded::default(),
            posts: cpus.iter().map(|_| GeneratorThread::default()).collect(),
        });
        let mut generators = Generators {
            shared,
            threads: Vec::new(),
            cpus: cpus.to_vec(),
            kinds: Vec::new(),
        };
        let (made, all_made) = channel();
        let needs = Needs {
            threads: cpus.len() as u64,
            stacks: cpus.len() as u64 * STACK as u64,
            files: 0,
        };
        needs.require("the generators of memory load")?;
        // A signal is for a thread that can act on it.
        let held = BlockedSignals::new()?;
        for (place, &cpu) in cpus.iter().enumerate() {
            let (shared, made) = (Arc::clone(&generators.shared), made.clone());
            let thread = std::thread::Builder::new()
                .name(format!("memory-load-{cpu}"))
                .stack_size(STACK);
            let serve = move || serve(cpu, room, &made, &shared, place);
            let thread = threads::start(thread, serve).map_err(|source| RigError::Spawn {
                role: GENERATOR,
                source,
            })?;
            generators.threads.push(thread);
        }
        drop((made, held));
        let begun = Instant::now();
        while generators.kinds.len() < 2 * cpus.len() {
            match all_made.recv_timeout(LOOK) {
                Ok(kinds) => generators.kinds.extend(kinds?),
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < MAKING => unless_interrupted()?,
                Err(RecvTimeoutError::Timeout) => return Err(GeneratorsError::TooSlow),
                Err(RecvTimeoutError::Disconnected) => return Err(GeneratorsError::Ended),
            }
        }
        Ok(generators)
    }

    /// Their CPUs.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// The pages of their buffers.
    pub fn page_kinds(&self) -> &[PageKind] {
        &self.kinds
    }

    /// Has all of them generate a load. When it returns they do.
    ///
    /// # Errors
    /// When one of them does not answer.
    pub fn generate(&self, load: Load) -> Result<(), GeneratorsError> {
        self.obeyed(GeneratorCommand::Generate(load), unless_interrupted)
    }

    /// Has all of them rest, also after a signal. When it returns they do.
    ///
    /// # Errors
    /// When one of them does not answer.
    pub fn rest(&self) -> Result<(), GeneratorsError> {
        self.obeyed(GeneratorCommand::Rest, || Ok(()))
    }

    /// The groups that each of them has done since it was made.
    pub fn groups(&self) -> impl Iterator<Item = u64> + '_ {
        self.shared.posts.iter().map(|post| post.groups.done())
    }

    fn obeyed(
        &self,
        order: GeneratorCommand,
        goes_on: impl Fn() -> Result<(), RigError>,
    ) -> Result<(), GeneratorsError> {
        let number = self.shared.give(order);
        let begun = Instant::now();
        for (post, &cpu) in self.shared.posts.iter().zip(&self.cpus) {
            while post.seen.load(Ordering::Acquire) < number {
                goes_on()?;
                if begun.elapsed() >= OBEYING {
                    return Err(GeneratorsError::Silent { cpu });
                }
                std::thread::sleep(LOOK_AT_SEEN);
            }
        }
        Ok(())
    }
}

impl Drop for Generators {
    fn drop(&mut self) {
        self.shared.give(GeneratorCommand::Leave);
        // After a signal the program is to end within a second.
        let grace = interrupt::requested().map_or(OBEYING, |_| AFTER_SIGNAL);
        let deadline = Instant::now() + grace;
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(LOOK_AT_SEEN);
            }
            if thread.is_finished() {
                // What it panicked with is on stderr.
                let _ = thread.join();
            }
        }
    }
}

type StartupSender = Sender<Result<[PageKind; 2], GeneratorsError>>;

/// What a thread does.
fn serve(cpu: usize, room: BufferSettings, made: &StartupSender, shared: &CrewState, place: usize) {
    let make = || -> Result<_, GeneratorsError> {
        pinning::pin_current_thread(cpu)?;
        let (read, stored) = (room.region()?, room.region()?);
        let kinds = [read.page_kind(), stored.page_kind()];
        Ok((Generator::new(read, stored), kinds))
    };
    let (mut generator, kinds) = match make() {
        Ok(parts) => parts,
        Err(error) => {
            // No thread listens once another one has failed.
            let _ = made.send(Err(error));
            return;
        }
    };
    let _ = made.send(Ok(kinds));
    let post = &shared.posts[place];
    let mut number = 0;
    loop {
        let order;
        (number, order) = shared.next(number);
        post.seen.store(number, Ordering::Release);
        match order {
            GeneratorCommand::Rest => {}
            GeneratorCommand::Leave => return,
            GeneratorCommand::Generate(load) => {
                let goes_on = || shared.number.load(Ordering::Relaxed) == number;
                generator.run(&load, &post.groups, goes_on);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::{Accesses, InstructionSet, Store};
    use crate::testing::Refused as _;

    fn room() -> BufferSettings {
        BufferSettings {
            size: Bytes(1 << 20),
            page: Some(PageSize::Small),
            node: None,
        }
    }

    fn load() -> Load {
        Load {
            accesses: Accesses::with_share(InstructionSet::BASE, Store::NonTemporal, 50),
            pause: 0,
        }
    }

    fn groups(generators: &Generators) -> Vec<u64> {
        generators.groups().collect()
    }

    #[test]
    fn buffers_leave_the_cache_where_they_fit() {
        let mib = |count: u64| Bytes(count << 20);
        for (cache, there, size) in [
            (Some(mib(32)), 4 << 30, mib(128)),
            // Four times 19.25 MiB are 77.
            (Some(Bytes(77 << 18)), 4 << 30, mib(78)),
            (Some(mib(480)), 4 << 30, mib(1024)),
            (Some(mib(32)), 17 << 20, mib(16)),
            (None, 4 << 30, mib(1024)),
            (Some(mib(32)), 1, mib(2)),
        ] {
            assert_eq!(BufferSettings::usual_size(cache, there), size);
        }
    }

    #[test]
    fn they_generate_and_rest_as_they_are_told() {
        let here = pinning::current_cpu().unwrap();
        let generators = Generators::new(&[here], room()).unwrap();
        assert_eq!(generators.page_kinds(), [PageKind::Small; 2]);
        assert_eq!(groups(&generators), [0]);
        for _ in 0..3 {
            let before = groups(&generators);
            generators.generate(load()).unwrap();
            while groups(&generators) == before {
                std::thread::yield_now();
            }
            generators.rest().unwrap();
            let after = groups(&generators);
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(groups(&generators), after);
        }
    }

    #[test]
    fn no_signal_comes_to_a_generator() {
        use nix::sys::signal::{SigSet, Signal};
        let is_held = || SigSet::thread_get_mask().unwrap().contains(Signal::SIGINT);
        let before = is_held();
        let here = pinning::current_cpu().unwrap();
        let generators = Generators::new(&[here], room()).unwrap();
        assert_eq!(is_held(), before);
        let masks = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| {
                let task = task.unwrap().path();
                let name = std::fs::read_to_string(task.join("comm")).ok()?;
                let status = std::fs::read_to_string(task.join("status")).ok()?;
                let blocked = status
                    .lines()
                    .find_map(|line| line.strip_prefix("SigBlk:"))?;
                let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
                name.starts_with("memory-load").then_some(blocked)
            });
        let masks: Vec<u64> = masks.collect();
        let both = 1 << (Signal::SIGINT as u32 - 1) | 1 << (Signal::SIGTERM as u32 - 1);
        let are_blocked = !masks.is_empty() && masks.iter().all(|blocked| blocked & both == both);
        assert!(are_blocked, "{masks:x?}");
        drop(generators);
    }

    #[test]
    fn a_buffer_that_cannot_be_had_is_told_and_no_thread_stays() {
        let here = pinning::current_cpu().unwrap();
        let room = BufferSettings {
            size: Bytes(1 << 50),
            ..room()
        };
        Generators::new(&[here, here], room).refused(&["mmap of 1024 TiB"]);
        Generators::new(&[65_000], self::room()).refused(&["65000"]);
    }
}
