//! What a reader needs to know who was not there when it was measured.

use crate::bench::presentation_of;
use crate::results::schema::Schema;

const FABRIC: [&str; 7] = [
    "rtt/2: Half of a round trip of probes, without what the peer took. It is the one-way latency only if both ways \
     take the same, which is assumed and not measured. It does not show which of the two ways is slow.",
    "excess: The latency of a message above the least of its direction. It contains no clock offset, so it shows which \
     way is slow; a delay that each message has is not in it.",
    "one way: Bounds that are proved from the exchanges. Where both bounds of one way lie above those of the other, the \
     slower way is certain.",
    "tier: How far apart two nodes are, by the launcher or a file. Pairs of unequal tiers are never compared, those of an \
     unknown tier with none.",
    "score: By how much a node or pair stands out, in robust standard deviations: of a node by the medians of all pairs \
     that it sends to (egress) or receives from (ingress), of a pair by what its tier and its two nodes do not explain.",
    "slow, congested, suspect: A pair that stands out: also measured alone; not alone, so the way is shared; or nothing \
     is known of it alone.",
    "hatched: Nothing was measured. A pair without a figure is never a good one.",
];
const ALL: [&str; 2] = [
    "percentiles: Interpolated linearly between the closest ranks; nothing is removed as an outlier. The tables have \
     the median over rounds of each round's percentile, histograms have the samples of all rounds together: their \
     medians differ where rounds do. High ones need samples: of 1000 in a round, p99.9 is essentially the maximum.",
    "two runs: Differences of a few percent between two runs can be chance: hcabench compare shows which are not.",
];

/// What is meant, and its explanation.
pub(crate) fn of(schema: &Schema) -> Vec<(String, String)> {
    let own = presentation_of(schema).reading.iter();
    let all = &ALL[usize::from(!schema.has_percentiles())..];
    own.chain(all).filter_map(split).collect()
}

/// The same of a fabric.
pub(crate) fn of_fabric() -> Vec<(String, String)> {
    FABRIC.iter().chain(&ALL[1..]).filter_map(split).collect()
}

fn split(text: &&str) -> Option<(String, String)> {
    let (what, text) = text.split_once(": ")?;
    Some((what.to_owned(), text.to_owned()))
}
