//! One-way latency over a reliable connection through the crate `ibverbs`: a second opinion on hcabench's figures.
//!
//! The same method with another library: both devices in one process, one clock, the stamp in the message, receive
//! requests posted in advance, busy polling on two pinned threads, the sender taking its completions in the pauses. The
//! crate has no immediate data, no inline data and no connection manager, so messages are told by their order, which a
//! reliable connection keeps, and the queue pairs are introduced to each other by hand.
//!
//!     hcabench-peer SENDER RECEIVER SIZE BURST PAUSE_NS SENDER_CPU RECEIVER_CPU
//!
//! SENDER and RECEIVER are devices, of which the first RoCE v2 GID of an IPv4 address is used. Prints key=value.

#![allow(
    clippy::disallowed_methods,
    reason = "it ends where no thread can be had"
)]

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ibverbs::{CompletionQueue, Context, MemoryRegion, QueuePair, ibv_gid_type, ibv_wc};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Messages before the measured ones, as hcabench has them by default.
const WARM_UP: usize = 100;
const ROCE_V2: ibv_gid_type = 2;
/// Words from one message to the next at the least: a cache line.
const LINE: usize = 8;
/// How long a burst may take beside its pauses.
const LIMIT: Duration = Duration::from_secs(30);

struct Settings {
    sender: String,
    receiver: String,
    words: usize,
    burst: usize,
    pause_ns: u64,
    sender_cpu: usize,
    receiver_cpu: usize,
}

impl Settings {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let [sender, receiver, numbers @ ..] = arguments else {
            return Err("SENDER RECEIVER SIZE BURST PAUSE_NS SENDER_CPU RECEIVER_CPU".to_owned());
        };
        let number = |at: usize, name: &str, allowed: std::ops::RangeInclusive<u64>| {
            numbers
                .get(at)
                .and_then(|text| text.parse().ok())
                .filter(|value| allowed.contains(value))
                .ok_or_else(|| format!("{name} must be a whole number in {allowed:?}"))
        };
        let size = number(0, "SIZE", 8..=32768)? as usize;
        if !size.is_multiple_of(8) {
            return Err(format!("SIZE {size} is not a multiple of 8"));
        }
        Ok(Settings {
            sender: sender.clone(),
            receiver: receiver.clone(),
            words: size / 8,
            burst: number(1, "BURST", 1..=8192)? as usize,
            pause_ns: number(2, "PAUSE_NS", 0..=1_000_000_000)?,
            sender_cpu: number(3, "SENDER_CPU", 0..=1023)? as usize,
            receiver_cpu: number(4, "RECEIVER_CPU", 0..=1023)? as usize,
        })
    }

    fn slots(&self) -> usize {
        self.burst.max(WARM_UP)
    }

    fn stride(&self) -> usize {
        self.words.next_multiple_of(LINE)
    }

    fn range(&self, slot: usize) -> std::ops::Range<usize> {
        let start = slot * self.stride();
        start..start + self.words
    }
}

#[derive(Default)]
struct Shared {
    ready: AtomicBool,
    posted: AtomicU32,
    failed: AtomicBool,
}

impl Shared {
    fn fail<T>(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> Result<T, Failure> {
        self.failed.store(true, Ordering::Relaxed);
        Err(error.into())
    }

    fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

type Failure = Box<dyn Error + Send + Sync>;

#[inline(always)]
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has it");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

fn pin_to(cpu: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

fn open(name: &str) -> Result<(Context, u32), Failure> {
    let devices = ibverbs::devices()?;
    let device = devices
        .iter()
        .find(|device| {
            device
                .name()
                .is_some_and(|found| found.to_bytes() == name.as_bytes())
        })
        .ok_or_else(|| format!("there is no device {name}"))?;
    let context = device.open()?;
    let entry = context
        .gid_table()
        .iter()
        .find(|entry| {
            entry.gid_type == ROCE_V2
                && entry.gid.subnet_prefix() == 0
                && entry.gid.interface_id() >> 32 == 0xffff
        })
        .ok_or_else(|| format!("{name} has no RoCE v2 GID of an IPv4 address"))?;
    let index = entry.gid_index;
    Ok((context, index))
}

/// Takes a completion if there is one, with the clock read right behind it.
#[inline(always)]
fn poll_stamped(queue: &CompletionQueue<'_>) -> Result<Option<(u64, u64)>, Failure> {
    let mut completions = [ibv_wc::default()];
    let found = queue.poll(&mut completions)?;
    let Some(completion) = found.first() else {
        return Ok(None);
    };
    let stamp = now_ns();
    match completion.error() {
        None => Ok(Some((completion.wr_id(), stamp))),
        Some((status, vendor)) => Err(format!("{status:?}, vendor error {vendor}").into()),
    }
}

struct End<'a> {
    settings: &'a Settings,
    queue_pair: QueuePair<'a>,
    queue: &'a CompletionQueue<'a>,
    memory: MemoryRegion<u64>,
}

impl End<'_> {
    fn deadline(&self, count: usize) -> Instant {
        Instant::now() + LIMIT + Duration::from_nanos(self.settings.pause_ns * count as u64)
    }

    fn send(&mut self, count: usize, shared: &Shared) -> Result<Vec<u64>, Failure> {
        pin_to(self.settings.sender_cpu)?;
        let deadline = self.deadline(count);
        // Not zeros: pages of zeros come from the kernel untouched, and would be faulted in by the loop.
        let mut submitted = vec![u64::MAX; count];
        self.memory.fill(u64::MAX);
        let mut completed = 0;
        while !shared.ready.load(Ordering::Acquire) {
            if shared.failed() || Instant::now() > deadline {
                return shared.fail("the receiver is not ready");
            }
            std::thread::yield_now();
        }
        for (slot, place) in submitted.iter_mut().enumerate() {
            let range = self.settings.range(slot);
            let stamp = now_ns();
            self.memory[range.start] = stamp;
            // SAFETY: nobody touches a slot before its completion; the memory outlives the queue pair.
            if let Err(error) = unsafe {
                self.queue_pair
                    .post_send(&mut self.memory, range, slot as u64)
            } {
                return shared.fail(format!("posting: {error}"));
            }
            *place = stamp;
            shared.posted.store(slot as u32 + 1, Ordering::Release);
            if slot + 1 == count {
                break;
            }
            let start = now_ns();
            loop {
                while self.complete(shared)? {
                    completed += 1;
                }
                if now_ns() - start >= self.settings.pause_ns {
                    break;
                }
            }
            if shared.failed() {
                return shared.fail("the receiver has failed");
            }
        }
        while completed < count {
            if self.complete(shared)? {
                completed += 1;
            } else if Instant::now() > deadline {
                return shared.fail(format!("only {completed} of {count} sends completed"));
            }
        }
        Ok(submitted)
    }

    #[inline(always)]
    fn complete(&self, shared: &Shared) -> Result<bool, Failure> {
        match poll_stamped(self.queue) {
            Ok(found) => Ok(found.is_some()),
            Err(error) => shared.fail(format!("sending: {error}")),
        }
    }

    /// When each message came, with the stamp that it brought.
    fn receive(&mut self, count: usize, shared: &Shared) -> Result<Vec<(u64, u64)>, Failure> {
        pin_to(self.settings.receiver_cpu)?;
        self.memory.fill(u64::MAX);
        for slot in 0..count {
            let range = self.settings.range(slot);
            // SAFETY: a slot is read only after its completion; the memory outlives the queue pair.
            unsafe {
                self.queue_pair
                    .post_receive(&mut self.memory, range, slot as u64)
            }?;
        }
        let mut arrivals = vec![(u64::MAX, u64::MAX); count];
        let deadline = self.deadline(count);
        let mut looks = 0_u32;
        let mut received = 0;
        shared.ready.store(true, Ordering::Release);
        while received < count {
            match poll_stamped(self.queue) {
                Ok(Some(arrival)) => {
                    arrivals[received] = arrival;
                    received += 1;
                }
                Ok(None) => {
                    looks = looks.wrapping_add(1);
                    let late = looks.is_multiple_of(1 << 16) && Instant::now() > deadline;
                    if late || shared.failed() {
                        return shared.fail(format!("only {received} of {count} messages came"));
                    }
                }
                Err(error) => return shared.fail(format!("receiving: {error}")),
            }
        }
        Ok(arrivals
            .into_iter()
            .map(|(slot, stamp)| {
                let word = &raw const self.memory[self.settings.range(slot as usize).start];
                // SAFETY: the index was checked by the slice; the device wrote it before the completion that was taken.
                (stamp, unsafe { word.read_volatile() })
            })
            .collect())
    }
}

fn run_burst([sender, receiver]: &mut [End<'_>; 2], count: usize) -> Result<Vec<u64>, Failure> {
    let shared = Shared::default();
    let note = |_: &Failure| shared.failed.store(true, Ordering::Relaxed);
    let (submitted, arrivals) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receiver.receive(count, &shared).inspect_err(note));
        let sending = scope.spawn(|| sender.send(count, &shared).inspect_err(note));
        let submitted = sending.join().expect("the sender does not panic");
        let arrivals = receiving.join().expect("the receiver does not panic");
        (submitted, arrivals)
    });
    let (submitted, arrivals) = match (submitted, arrivals) {
        (Ok(submitted), Ok(arrivals)) => (submitted, arrivals),
        (Err(one), Err(other)) => return Err(format!("{one}; {other}").into()),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    arrivals
        .iter()
        .zip(&submitted)
        .enumerate()
        .map(|(sequence, (&(received, brought), &stamp))| {
            if brought == stamp && received > stamp {
                Ok(received - stamp)
            } else {
                Err(format!("message {sequence} brought {brought}, was sent with {stamp}").into())
            }
        })
        .collect()
}

fn measure(settings: &Settings) -> Result<Vec<u64>, Failure> {
    // No page fault may fall into a loop.
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE)
        .map_err(|error| format!("mlockall: {error}: raise the limit with ulimit -l"))?;
    let (from, from_gid) = open(&settings.sender)?;
    let (to, to_gid) = open(&settings.receiver)?;
    let slots = settings.slots();
    let queues = [
        from.create_cq(slots as i32, 0)?,
        to.create_cq(slots as i32, 0)?,
    ];
    let domains = [from.alloc_pd()?, to.alloc_pd()?];
    let prepare = |end: usize, gid: u32, (send, receive): (u32, u32)| {
        domains[end]
            .create_qp(&queues[end], &queues[end], ibverbs::ibv_qp_type::IBV_QPT_RC)
            .set_gid_index(gid)
            .set_max_send_wr(send)
            .set_max_recv_wr(receive)
            // 134 ms until a packet is sent again, as hcabench has it.
            .set_timeout(15)
            .build()
    };
    let sending = prepare(0, from_gid, (slots as u32, 1))?;
    let receiving = prepare(1, to_gid, (1, slots as u32))?;
    let (here, there) = (sending.endpoint(), receiving.endpoint());
    let end = |number: usize, queue_pair| -> Result<_, Failure> {
        Ok(End {
            settings,
            memory: domains[number].allocate(slots * settings.stride())?,
            queue_pair,
            queue: &queues[number],
        })
    };
    let (sending, receiving) = (sending.handshake(there)?, receiving.handshake(here)?);
    let mut ends = [end(0, sending)?, end(1, receiving)?];
    run_burst(&mut ends, WARM_UP)?;
    run_burst(&mut ends, settings.burst)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let settings = match Settings::parse(&arguments) {
        Ok(settings) => settings,
        Err(reason) => {
            eprintln!("usage: {reason}");
            return ExitCode::from(2);
        }
    };
    let mut latencies = match measure(&settings) {
        Ok(latencies) => latencies,
        Err(error) => {
            let advice = match error.downcast_ref::<io::Error>() {
                Some(_) => " (is the device active, and the memlock limit high enough?)",
                None => "",
            };
            eprintln!("{error}{advice}");
            return ExitCode::FAILURE;
        }
    };
    latencies.sort_unstable();
    let count = latencies.len();
    let median = (latencies[(count - 1) / 2] + latencies[count / 2]) as f64 / 2.0;
    println!("received={count}");
    println!("latency_min_ns={}", latencies[0]);
    println!("latency_p50_ns={median:.1}");
    println!("latency_max_ns={}", latencies[count - 1]);
    ExitCode::SUCCESS
}
