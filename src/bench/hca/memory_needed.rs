//! The memory that a point needs, before any of it is mapped.

use super::config::Service;
use super::endpoints::GLOBAL_ROUTE_HEADER;
use super::plan::Point;
use crate::buffer::{Arrival, Bytes, PayloadBuffer};
use crate::host::Placement;
use crate::time::Ticks;

/// Bytes of a huge page.
const HUGE_PAGE: u64 = 2 << 20;

/// Bytes of each buffer of a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffers {
    source: Bytes,
    target: Bytes,
    /// t_subm, or t_comp; the sender has one of each, and a completion thread has one.
    stamps: Bytes,
    arrivals: Bytes,
}

/// The buffers of a point with so many messages before the measured ones.
pub(super) fn buffers(point: &Point, warmup: u32) -> Buffers {
    let depth = point.burst.max(warmup) as usize;
    let size = point.size as usize;
    let header = match point.service {
        Service::Ud => GLOBAL_ROUTE_HEADER,
        Service::Rc | Service::Uc => 0,
    };
    Buffers {
        source: PayloadBuffer::bytes_needed(depth, size, 0),
        target: PayloadBuffer::bytes_needed(depth, size, header),
        stamps: Bytes((depth * size_of::<Ticks>()) as u64),
        arrivals: Bytes((depth * size_of::<Arrival>()) as u64),
    }
}

/// An upper estimate of the bytes of all buffers, whatever pages they get: each in whole huge pages, with one more for
/// its alignment.
pub(super) fn bytes(of: Buffers) -> Bytes {
    let rounded = |bytes: Bytes| bytes.0.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
    let all = [
        of.source,
        of.target,
        of.stamps,
        of.stamps,
        of.stamps,
        of.arrivals,
    ];
    Bytes(all.map(rounded).iter().sum())
}

/// Huge pages for all buffers.
pub(super) fn huge_pages(of: Buffers, placement: &Placement) -> u64 {
    let pages = |bytes: Bytes| bytes.0.div_ceil(HUGE_PAGE);
    let stamps = 2 + u64::from(placement.completion.is_some());
    pages(of.source) + pages(of.target) + stamps * pages(of.stamps) + pages(of.arrivals)
}
