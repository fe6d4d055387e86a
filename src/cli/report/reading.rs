//! What a reader needs to know who was not there when it was measured.

use crate::results::read::Benchmark;

/// What is meant, a colon, and its explanation.
const HCA: [&str; 5] = [
    "latency: One way, from right before a message is posted (or, where the time stamp is 'send', until when the adapter \
     read it) to right after its completion was found at the receiver, both on one clock of one host. Nothing is halved, \
     and nothing is subtracted.",
    "comp: From the same beginning to when the sender found the completion of its own request: when it may use its buffer \
     again.",
    "pause 0, and a burst: Without a pause messages queue behind each other, and latency grows with the burst. With a \
     pause longer than the latency each message is alone.",
    "lost: UC and UD may lose messages on a bad link. They are counted, and are in no percentile of the summary.",
    "the floor: The same two loops over shared memory between the same two cores. A latency close to it says more about \
     the machine than about the fabric.",
];
const QUEUE: [&str; 5] = [
    "enqueue, dequeue: What one operation takes, the time stamp included.",
    "latency: From before the first attempt to enqueue an element to after its dequeue: a full queue is in it.",
    "intended: From when the schedule wanted the element sent: a sender that was stalled does not hide what that caused.",
    "medians over runs: Each figure is the median over the runs of its point. Two modes: the runs fall into two groups, \
     and the median may be a figure that never occurred.",
    "a time stamp: Its cost is in each of the times. An operation that takes little more than it takes next to nothing.",
];
const BETWEEN: [&str; 4] = [
    "rtt/2: Half of a probe's round trip, without what the peer took. It is the one-way latency only if both ways take \
     the same, which is assumed and not measured.",
    "at least, at most: Between these bounds lies the one-way latency. They follow from all exchanges, as no message \
     arrives before it is posted; with --clock-uncertainty also from what was declared.",
    "excess: The latency of a message above the least of its round. The offset of the two clocks is not in it: it tells \
     of queueing in this direction.",
    "t_comp: It is of one clock, and exact.",
];
const CLOCK: [&str; 3] = [
    "jump: A difference between two readings of the clock far above the usual: time in which the thread did not run.",
    "cause: What the kernel's counters say rose in that time. Unexplained: nothing did; on several CPUs at once that \
     speaks for the firmware or the hypervisor.",
    "jumps together: The time of all jumps. The percentiles are of all differences, with the loop's own cost.",
];
const NODE: [&str; 5] = [
    "latency: From the stamp of a sample, taken right before it is handed to its node, to right after its subscriber has \
     read it. The node-type lies between the two, with all that it does on both sides.",
    "intended: From when the sample was meant to be sent: a publisher that was stalled does not hide what that caused.",
    "missed: Steps for which no sample was made, as their publisher was busy for a period or longer. That is the \
     publisher's fault, not the node's.",
    "refused, lost: The node had no room for a sample; or it took it, and a copy of it never arrived.",
    "delivery rate: Copies that arrived, as a share of those that were to arrive if no step was missed.",
];
const MEMORY: [&str; 6] = [
    "latency: The time of a load that waits for the one before it: a pointer chase over all lines of a buffer in an \
     order that no prefetcher foresees. It is no message, and nothing is halved or subtracted. Of a round it is the \
     mean of the windows that were kept.",
    "bandwidth: What generators on other CPUs draw meanwhile. Counted by the memory controllers where that is possible, \
     else estimated: an upper bound, with a line read for each line that a regular store writes.",
    "unloaded, at 50 % of it: Without generators (or with the least load), and on the straight line between two points \
     before the largest bandwidth, by latencies as they were measured.",
    "smoothed: Savitzky and Golay's filter over the latencies in the order of load. Bandwidths are never smoothed, and \
     points are never sorted by them: a curve may bend backwards.",
    "in-cache, core-limited: The buffers may lie in the last level of cache, or one core alone draws the bandwidth: the \
     figures say little about the memory.",
    "stalled, unstable: A generator did nothing for half of a window or longer, which then does not count; or the \
     bandwidth had not settled before the first window.",
];
const FABRIC: [&str; 7] = [
    "rtt/2: Half of a round trip of probes, without what the peer took. It is the one-way latency only if both ways take \
     the same, which is assumed and not measured. It cannot tell which of the two ways is slow.",
    "excess: What a message took beyond the least of its direction. No offset of the clocks is in it, so it does tell \
     which way is slow; a delay that each message has is not in it.",
    "one way: Bounds that are proved from the exchanges. Where both bounds of one way lie above those of the other, the \
     slower way is certain.",
    "tier: How far apart two nodes are, as the engine or a file tells. Pairs of unequal tiers are never compared.",
    "score: By how much a node or pair stands out, in robust standard deviations: of a node by the medians of all pairs \
     that it sends to (egress) or receives from (ingress), of a pair by what its tier and its two nodes do not explain.",
    "slow, congested, suspect: A pair that stands out: also measured alone; not alone, so the way is shared; or nothing \
     is known of it alone.",
    "hatched: Nothing was measured. A pair without a figure is never a good one.",
];
const ALL: [&str; 2] = [
    "percentiles: Interpolated linearly between the closest ranks; nothing is removed as an outlier. The tables have the \
     median over rounds of each round's percentile, histograms have the samples of all rounds together: their medians \
     differ where rounds do. High ones need samples: of 1000 in a round, p99.9 is little else than the maximum.",
    "two runs: Differences of a few percent between two runs can be chance: hcabench compare says which are not.",
];

/// What is meant, and its explanation.
pub fn of(benchmark: Benchmark) -> Vec<(String, String)> {
    let own: &[&str] = match benchmark {
        Benchmark::Hca => &HCA,
        Benchmark::Between => &BETWEEN,
        Benchmark::Queue => &QUEUE,
        Benchmark::Clock => &CLOCK,
        Benchmark::Node => &NODE,
        Benchmark::Memory => return MEMORY.iter().chain(&ALL[1..]).filter_map(split).collect(),
    };
    own.iter().chain(&ALL).filter_map(split).collect()
}

/// The same of a fabric.
pub fn of_fabric() -> Vec<(String, String)> {
    FABRIC.iter().chain(&ALL[1..]).filter_map(split).collect()
}

fn split(text: &&str) -> Option<(String, String)> {
    let (what, text) = text.split_once(": ")?;
    Some((what.to_owned(), text.to_owned()))
}
