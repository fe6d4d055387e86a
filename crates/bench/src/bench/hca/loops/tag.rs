//! Which message of which burst something is: told by its immediate data, and on UD by who sent it.

use super::port::Completion;

/// What the immediate data says: which message of which burst. A message that comes late, when its burst is over, is
/// told by it from those of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    burst: u32,
}

const SEQUENCE_BITS: u32 = 16;

impl Tag {
    /// The tag of burst number `burst` of a connection; it returns after 65536 bursts.
    pub fn new(burst: u32) -> Self {
        Tag {
            burst: burst << SEQUENCE_BITS,
        }
    }

    /// The immediate data of message `sequence`.
    #[inline(always)]
    pub fn immediate_data(self, sequence: u32) -> u32 {
        self.burst | sequence
    }

    /// That of the burst after the one of this immediate data.
    #[inline(always)]
    pub fn after(immediate_data: u32) -> Self {
        Tag::new((immediate_data >> SEQUENCE_BITS) + 1)
    }

    /// Whether a message is of this burst.
    #[inline(always)]
    pub fn is_of(self, immediate_data: u32) -> bool {
        immediate_data >> SEQUENCE_BITS == self.burst >> SEQUENCE_BITS
    }

    /// The sequence number in immediate data.
    #[inline(always)]
    pub fn sequence(immediate_data: u32) -> u32 {
        immediate_data & ((1 << SEQUENCE_BITS) - 1)
    }
}

/// What a receiving loop takes for a message of its burst.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    tag: Tag,
    burst: u32,
    messages: u32,
    /// The first of the sources.
    source: Option<u32>,
    sources: &'a [u32],
}

impl<'a> Expected<'a> {
    /// Messages 0 to `messages - 1` of burst number `burst`, from the queue pairs `sources` in turn, where completions
    /// name them (UD), else none.
    pub fn new(burst: u32, messages: usize, sources: &'a [u32]) -> Self {
        Expected {
            tag: Tag::new(burst),
            burst,
            messages: messages as u32,
            source: sources.first().copied(),
            sources,
        }
    }

    /// Whether it comes from a queue pair of ours. The first is compared with before any is looked up, so that a single
    /// one costs a comparison.
    #[inline(always)]
    fn is_ours(&self, completion: &Completion) -> bool {
        let from = completion.source_queue_pair;
        self.source
            .is_none_or(|source| source == from || self.is_in_turn(completion))
    }

    /// Whether it comes from the queue pair whose turn it is.
    fn is_in_turn(&self, completion: &Completion) -> bool {
        let sequence = Tag::sequence(completion.immediate_data) as usize;
        self.sources[sequence % self.sources.len()] == completion.source_queue_pair
    }

    /// Whether it is one of them.
    #[inline(always)]
    pub fn includes(&self, completion: &Completion) -> bool {
        self.tag.is_of(completion.immediate_data)
            && Tag::sequence(completion.immediate_data) < self.messages
            && self.is_ours(completion)
    }

    /// Whether one that is not expected was sent by an earlier burst of this connection. Nobody knows how many messages
    /// that had, so `longest` bounds their numbers.
    pub fn is_late(&self, completion: &Completion, longest: u32) -> bool {
        let of_burst = completion.immediate_data >> SEQUENCE_BITS;
        // After all tags were used once, each may be that of an earlier burst.
        let earlier = of_burst < self.burst && !self.tag.is_of(completion.immediate_data);
        self.is_ours(completion) && earlier && Tag::sequence(completion.immediate_data) < longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(immediate_data: u32, source_queue_pair: u32) -> Completion {
        Completion {
            immediate_data,
            source_queue_pair,
            ..Completion::default()
        }
    }

    #[test]
    fn a_tag_tells_bursts_and_keeps_the_sequence_number() {
        let tag = Tag::new(7);
        for sequence in [0, 1, 8191, 65_535] {
            let data = tag.immediate_data(sequence);
            assert!(tag.is_of(data));
            assert!(!Tag::new(6).is_of(data));
            assert_eq!(Tag::sequence(data), sequence);
        }
        assert_eq!(Tag::new(65_536), Tag::new(0));
    }

    #[test]
    fn only_numbers_of_the_burst_from_the_sending_queue_pair_are_expected() {
        let expected = Expected::new(3, 10, &[17]);
        let tag = Tag::new(3);
        assert!(expected.includes(&completion(tag.immediate_data(9), 17)));
        assert!(!expected.includes(&completion(tag.immediate_data(10), 17)));
        assert!(!expected.includes(&completion(tag.immediate_data(9), 18)));
        assert!(!expected.includes(&completion(Tag::new(2).immediate_data(9), 17)));
        // Connections know where their messages come from, and completions do not say it.
        let connected = Expected::new(3, 10, &[]);
        assert!(connected.includes(&completion(tag.immediate_data(9), 99)));
    }

    #[test]
    fn several_queue_pairs_send_in_turn() {
        let expected = Expected::new(3, 10, &[17, 30, 18]);
        let tag = Tag::new(3);
        for (sequence, source) in [(0, 17), (1, 30), (2, 18), (3, 17), (8, 18)] {
            let data = tag.immediate_data(sequence);
            assert!(expected.includes(&completion(data, source)));
            assert!(!expected.includes(&completion(data, 31)), "not of ours");
        }
        assert!(!expected.includes(&completion(tag.immediate_data(1), 18)));
    }

    #[test]
    fn late_is_what_an_earlier_burst_can_have_sent_and_nothing_else() {
        let late = |burst, of_burst, sequence, source| {
            let data = Tag::new(of_burst).immediate_data(sequence);
            Expected::new(burst, 10, &[17]).is_late(&completion(data, source), 100)
        };
        assert!(late(3, 2, 99, 17) && late(3, 0, 0, 17));
        assert!(!late(3, 2, 100, 17), "no burst was that long");
        assert!(!late(3, 2, 99, 18), "not of our queue pair");
        assert!(!late(3, 4, 0, 17), "not sent yet");
        assert!(!late(3, 3, 50, 17), "of this burst, and never posted");
        assert!(!late(0, 1, 0, 17), "nothing is late in the first burst");
        assert!(late(65_536, 7, 0, 17), "after the tags came round");
    }
}
