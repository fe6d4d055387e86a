//! The baton that fetches ahead: our own queue for elements of whole cache lines, in more of them than a second-level
//! cache holds.
//!
//! There each line that an end touches has left that end's caches since the last lap. A slot that shows by itself
//! whether it is full costs the receiver two transfers: it reads the line, and asks for it again to clear the first
//! word. A queue with indices needs one, as its receiver writes to no slot. So here
//!
//! - *the receiver fetches full slots for writing*, a group ahead, which makes one transfer of the two. It looks at the
//!   last slot of the next group: if that is full, all before it are, and the sender does not touch them. It does so
//!   only after a group of successes in a row: a receiver that keeps finding nothing looks at one slot alone, and its
//!   latency is that of FastForward;
//! - *the sender fetches empty slots for writing*, within the batch that it knows to be empty, as that of
//!   [`batching`](super::batching), whose sender it is otherwise.

use crossbeam_utils::CachePadded;

use crate::batching::BatchSender;
use crate::element::Words;
use crate::interface::{NewEnds, Queue, ReceiveOnly, Receiver, SendOnly};
use crate::slots::{FusedSlot, SharedSlots, check_capacity};

/// Slots that are fetched ahead, and of a group. As many lines as a core of today has on their way at once, 10 to 16;
/// and a power of two. Model checkers do not get as far.
const AHEAD: usize = if cfg!(loom) { 2 } else { 16 };

/// The baton that fetches ahead.
#[derive(Debug)]
pub(crate) struct StreamingBaton;

/// The end that receives.
#[derive(Debug)]
pub struct GroupReceiver<const N: usize> {
    slots: SharedSlots<FusedSlot<N>>,
    /// The next slot, or their number.
    next: usize,
    /// The slots from the next one up to this one were seen full; at most their number.
    until: usize,
    /// Whether the group behind this one is full, too.
    fetches: bool,
    /// Elements since it last found nothing.
    in_a_row: usize,
}

impl<const N: usize> GroupReceiver<N> {
    /// Looks for full slots: a group of them if the last one is full, else the next one.
    #[inline(always)]
    fn begin(&mut self) -> bool {
        let count = self.slots.count();
        if self.next == count {
            self.next = 0;
        }
        // SAFETY: all that it is called with is below the number of slots, as shown there.
        let is_full = |index: usize| !unsafe { self.slots.at(index) }.is_empty();
        // Less than the number of slots, by the line above.
        if !is_full(self.next) {
            self.in_a_row = 0;
            return false;
        }
        (self.until, self.fetches) = (self.next + 1, false);
        if self.in_a_row >= AHEAD {
            // At least 1, and at most the number of slots, as is the end of the next group.
            let end = ((self.next | (AHEAD - 1)) + 1).min(count);
            let behind = if end == count { 0 } else { end } + AHEAD;
            // The sender fills slots in order: where one is full, all are that come out before it. The last slot of the
            // next group comes out behind this group, or is its last one in a ring of one group.
            self.fetches = is_full(behind.min(count) - 1);
            if self.fetches || is_full(end - 1) {
                self.until = end;
            }
        }
        self.in_a_row = self.in_a_row.saturating_add(self.until - self.next);
        true
    }
}

impl<const N: usize> Receiver<Words<N>> for ReceiveOnly<CachePadded<GroupReceiver<N>>> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<Words<N>> {
        let end = &mut *self.0;
        if end.next == end.until && !end.begin() {
            return None;
        }
        // SAFETY: less than the end of what was seen full, which is at most the number of slots; and this is the only
        // receiver.
        let element = unsafe { end.slots.at(end.next).take() }?;
        if end.fetches {
            let mut ahead = end.next + AHEAD;
            if ahead >= end.slots.count() {
                ahead -= end.slots.count();
            }
            if ahead < end.slots.count() {
                // SAFETY: as just seen.
                unsafe { end.slots.at(ahead) }.fetch_for_writing();
            }
        }
        end.next += 1;
        Some(element)
    }
}

impl<const N: usize> Queue<Words<N>> for StreamingBaton {
    type Sender = SendOnly<BatchSender<N, AHEAD>>;
    type Receiver = ReceiveOnly<CachePadded<GroupReceiver<N>>>;

    fn starting_at(capacity: usize, _start: usize) -> NewEnds<Self, Words<N>> {
        let slots = SharedSlots::new(check_capacity(capacity)?, FusedSlot::new);
        let receiver = GroupReceiver {
            slots: slots.clone(),
            next: 0,
            until: 0,
            fetches: false,
            in_a_row: 0,
        };
        let sender = BatchSender::new(slots, capacity.div_ceil(2));
        Ok((SendOnly(sender), ReceiveOnly(CachePadded::new(receiver))))
    }
}
