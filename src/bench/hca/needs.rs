//! What a point takes of memory, in bytes and in huge pages.

use super::config::{Config, Operation};
use super::endpoints::header_of;
use super::placement::Placement;
use super::plan::Point;
use super::result::Message;
use crate::buffer::{Arrival, Bytes, HUGE_PAGE, PayloadBuffer};
use crate::host::HugePages;
use crate::rig::error::RigError;
use crate::rig::memory::{Allowance, Need};
use crate::time::Ticks;

/// Bytes that a message takes in memory until its point is written: the judged message and its latencies, sorted.
const BYTES_PER_RESULT: u64 = (size_of::<Message>() + 4 * size_of::<i64>()) as u64;

/// What a point takes.
#[derive(Debug, Clone)]
pub(super) struct Needs {
    /// Bytes of each buffer: payload of sender and receiver, t_subm, t_comp in the sender, t_comp in a completion thread,
    /// arrivals.
    buffers: [Bytes; 6],
    results: u64,
    messages: u64,
}

impl Needs {
    /// Of a point with so many receive requests.
    pub(super) fn of(point: &Point, config: &Config, receives: u32) -> Self {
        let depth = config.depth_of(point.burst) as usize;
        let size = point.size as usize;
        let stamps = Bytes((depth * size_of::<Ticks>()) as u64);
        let messages = u64::from(point.burst) * u64::from(config.repeat);
        let header = header_of(point.service);
        debug_assert!(header == 0 || point.operation == Operation::Send);
        Needs {
            buffers: [
                PayloadBuffer::bytes_needed(depth, size, 0),
                PayloadBuffer::bytes_needed(receives as usize, size, header),
                stamps,
                stamps,
                stamps,
                Bytes((depth * size_of::<Arrival>()) as u64),
            ],
            results: messages * BYTES_PER_RESULT,
            messages,
        }
    }

    /// Bytes of all buffers, each in whole huge pages with one more for its alignment, and of the results.
    pub(super) fn bytes(&self) -> u64 {
        self.buffer_bytes(&self.buffers) + self.results
    }

    fn buffer_bytes(&self, buffers: &[Bytes]) -> u64 {
        let rounded = |bytes: &Bytes| bytes.0.next_multiple_of(HUGE_PAGE as u64) + HUGE_PAGE as u64;
        buffers.iter().map(rounded).sum()
    }

    /// Refuses a point that does not fit into memory.
    pub(super) fn require(&self, point: &Point, config: &Config) -> Result<(), RigError> {
        let Some(allowance) = Allowance::of_this_process() else {
            return Ok(());
        };
        let (payload, stamps) = self.buffers.split_at(2);
        let need = |what, bytes| Need { what, bytes };
        let needs = [
            need("both message buffers", self.buffer_bytes(payload)),
            need("time stamps", self.buffer_bytes(stamps)),
            need("the results of its messages", self.results),
        ];
        let options = format!(
            "--burst {} of --size {} with --repeat {} ({} messages)",
            point.burst, point.size, config.repeat, self.messages
        );
        let advice = "use a smaller --repeat, and several runs, or a smaller --burst or --size";
        Ok(allowance.require(&needs, &options, advice)?)
    }

    /// Huge pages for all buffers.
    fn huge_pages(&self, placement: &Placement) -> u64 {
        let pages = |bytes: &Bytes| bytes.0.div_ceil(HUGE_PAGE as u64).max(1);
        let unused = placement.completion.is_none().then_some(4);
        let used = (0..)
            .zip(&self.buffers)
            .filter(|(at, _)| Some(*at) != unused);
        used.map(|(_, bytes)| pages(bytes)).sum()
    }
}

/// Checks that there are enough huge pages for the point that needs the most of them.
pub(super) fn require_huge_pages<'a>(
    points: impl Iterator<Item = (&'a Point, &'a Needs, &'a Placement)>,
) -> Result<(), RigError> {
    let of = |(point, needs, placement): (&'a Point, &Needs, &Placement)| {
        (needs.huge_pages(placement), point)
    };
    let Some((needed, point)) = points.map(of).max_by_key(|(pages, _)| *pages) else {
        return Ok(());
    };
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
