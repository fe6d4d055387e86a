//! What a point takes of memory, in bytes and in huge pages.

use crate::bench::hca::ends::verbs_link::header_of;
use crate::bench::hca::message::Message;
use crate::bench::hca::plan::Point;
use crate::bench::hca::plan::placement::Placement;
use crate::bench::hca::result::hardware::HardwareTimes;
use crate::bench::hca::settings::background::{Background, Traffic};
use crate::bench::hca::settings::config::{Config, Operation};
use crate::buffer::{Arrival, Bytes, HUGE_PAGE, PayloadBuffer};
use crate::host::HugePages;
use crate::rig::error::RigError;
use crate::rig::memory::{Allowance, MemoryNeed};
use crate::time::Ticks;

/// Bytes that a message takes in memory until its point is written: the judged message and its latencies, sorted.
const BYTES_PER_RESULT: u64 = (size_of::<Message>() + 5 * size_of::<i64>()) as u64;

/// The same of what adapters stamp: the times of each message, those from the adapter to us, sorted, and the counts.
const BYTES_PER_STAMPS: u64 = (size_of::<HardwareTimes>() + size_of::<[i64; 8]>()) as u64;

/// The place among the buffers of the one that only a completion thread takes.
const OF_COMPLETION_THREAD: usize = 4;

/// What a point takes.
#[derive(Debug, Clone)]
pub(crate) struct PointNeeds {
    /// Bytes of each buffer: payload of sender and receiver, t_subm, t_comp in the sender, t_comp in a completion
    /// thread, arrivals; the adapters' stamps at both ends.
    buffers: [Bytes; 8],
    /// Each of both ends of the queue pairs in the background, and how many there are.
    background: (Bytes, u64),
    results: u64,
    messages: u64,
}

impl PointNeeds {
    /// Of a point with so many slots of each queue of receive requests for what arrives.
    pub(crate) fn of(point: &Point, config: &Config, slots: u32) -> Self {
        let burst = point.burst as usize;
        let receives = (slots * point.receive_queues()) as usize;
        let size = point.size as usize;
        let stamps = Bytes((burst * size_of::<Ticks>()) as u64);
        let messages = u64::from(point.burst) * u64::from(config.repeat);
        let header = header_of(point.service);
        let of_background = |background: Background| {
            let (slots, size) = (background.in_flight() as usize, background.size as usize);
            let pairs = match background.traffic {
                Traffic::Sent => u64::from(background.queue_pairs),
                Traffic::None => 1,
            };
            (PayloadBuffer::bytes_needed(slots, size, 0), 2 * pairs)
        };
        let (of_sender, of_receiver) = match (config.hw_timestamps, point.operation) {
            (false, _) => (Bytes(0), Bytes(0)),
            (true, of) if of.has_immediate_data() => (stamps, stamps),
            (true, _) => (stamps, Bytes(0)),
        };
        let bytes_of_results = match config.hw_timestamps {
            true => BYTES_PER_RESULT + BYTES_PER_STAMPS,
            false => BYTES_PER_RESULT,
        };
        debug_assert!(header == 0 || point.operation == Operation::Send);
        PointNeeds {
            buffers: [
                PayloadBuffer::bytes_needed(burst, size, 0),
                PayloadBuffer::bytes_needed(receives, size, header),
                stamps,
                stamps,
                stamps,
                Bytes((burst * size_of::<Arrival>()) as u64),
                of_sender,
                of_receiver,
            ],
            background: point.background.map_or((Bytes(0), 0), of_background),
            results: messages * bytes_of_results,
            messages,
        }
    }

    /// Bytes of all buffers, each in whole huge pages with one more for its alignment, and of the results.
    pub(crate) fn bytes(&self) -> u64 {
        self.buffer_bytes(&self.buffers) + self.background_bytes() + self.results
    }

    fn background_bytes(&self) -> u64 {
        let (each, count) = self.background;
        self.buffer_bytes(&[each]) * count
    }

    fn buffer_bytes(&self, buffers: &[Bytes]) -> u64 {
        let rounded = |bytes: &Bytes| bytes.0.next_multiple_of(HUGE_PAGE as u64) + HUGE_PAGE as u64;
        buffers
            .iter()
            .filter(|bytes| bytes.0 > 0)
            .map(rounded)
            .sum()
    }

    /// Refuses a point that does not fit into memory.
    pub(crate) fn require(&self, point: &Point, config: &Config) -> Result<(), RigError> {
        let Some(allowance) = Allowance::of_this_process() else {
            return Ok(());
        };
        let (payload, stamps) = self.buffers.split_at(2);
        let need = |what, bytes| MemoryNeed { what, bytes };
        let needs = [
            need("both message buffers", self.buffer_bytes(payload)),
            need("the messages in the background", self.background_bytes()),
            need("time stamps", self.buffer_bytes(stamps)),
            need("the results of its messages", self.results),
        ];
        let mut options = format!(
            "--burst {} of --size {} with --repeat {} ({} messages)",
            point.burst, point.size, config.repeat, self.messages
        );
        if let Some(background) = point.background {
            options += &format!(" and --background {background}");
        }
        let advice = "use a smaller --repeat, and several runs, or a smaller --burst or --size";
        Ok(allowance.require(&needs, &options, advice)?)
    }

    /// Huge pages for all buffers.
    pub(crate) fn huge_pages(&self, placement: &Placement) -> u64 {
        let pages = |bytes: &Bytes| bytes.0.div_ceil(HUGE_PAGE as u64).max(1);
        let (each, count) = self.background;
        let buffers = self.buffers.iter().filter(|bytes| bytes.0 > 0);
        let all = buffers.map(pages).sum::<u64>() + pages(&each) * count;
        match placement.completion {
            Some(_) => all,
            None => all - pages(&self.buffers[OF_COMPLETION_THREAD]),
        }
    }
}

/// Checks that there are enough huge pages for a point.
pub(crate) fn require_huge_pages(needed: u64, point: &Point) -> Result<(), RigError> {
    let pool = HugePages::read();
    let free = pool.map_or(0, |pool| pool.available());
    if needed <= free + pool.map_or(0, |pool| pool.overcommit) {
        return Ok(());
    }
    Err(RigError::TooFewHugePages {
        what: format!("{point} needs"),
        needed,
        free,
        pool: pool.map_or(0, |pool| pool.total) + needed - free,
    })
}
