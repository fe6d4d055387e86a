//! Text for the textfile collector of Prometheus' node exporter: the last run, as gauges in seconds.
//!
//! A fabric of many nodes has too many pairs for a monitor: above [`MOST_PAIRS`] only pairs that are not ok are told,
//! and how many there are of each verdict. The file is put in place in one step, as the collector may read at any time;
//! it reads files whose names end in `.prom`.

use std::io::Write as _;
use std::path::Path;

use super::culprits::{NodeJudgement, NodeVerdict};
use super::verdict::PairVerdict;
use crate::results::ReportError;
use crate::results::durable::replace;
use crate::results::exposition::{MetricsText, flag};

/// So many ordered pairs are told each, that is 32 nodes.
pub const MOST_PAIRS: usize = 32 * 31;

/// A node, by its name.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// As the launcher names it.
    pub name: &'a str,
    /// Its switch or group.
    pub group: &'a str,
    /// What is said of it.
    pub judged: &'a NodeJudgement,
}

/// An ordered pair.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The node that sends.
    pub from: &'a str,
    /// The node that receives.
    pub to: &'a str,
    /// How far apart they are.
    pub tier: &'a str,
    /// What is said of it.
    pub verdict: PairVerdict,
    /// Half a round trip in ns: median and 99th percentile.
    pub half_round_trip_ns: [Option<f64>; 2],
    /// The 99th percentile of the excess in ns.
    pub excess_p99_ns: Option<f64>,
    /// Messages that were lost.
    pub lost: Option<u64>,
    /// By how many ns this direction is slower than it has to be, at least, if that is proved.
    pub slower_by_ns: Option<u64>,
}

/// A run, for a monitor.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// When it ended, in seconds since 1970.
    pub ended_unix_s: f64,
    /// Whether it is whole.
    pub complete: bool,
    /// All nodes.
    pub nodes: &'a [Node<'a>],
    /// All ordered pairs.
    pub pairs: &'a [Pair<'a>],
}

/// Writes the file, in one step.
///
/// # Errors
/// When it cannot be written or put in place.
pub fn write(path: &Path, snapshot: &Snapshot<'_>) -> Result<(), ReportError> {
    let text = text(snapshot);
    replace(path, |out| out.write_all(text.as_bytes()))
}

/// The text of the file.
pub fn text(snapshot: &Snapshot<'_>) -> String {
    let mut out = MetricsText::new(PREFIX);
    out.metric(
        "run_end_timestamp_seconds",
        "When the last run ended, since 1970.",
    );
    out.sample(&[], Some(snapshot.ended_unix_s));
    out.metric(
        "run_complete",
        "Whether the last run measured all that it was to measure.",
    );
    out.sample(&[], Some(flag(snapshot.complete)));
    add_nodes(&mut out, snapshot.nodes);
    out.metric("pairs", "Ordered pairs by verdict.");
    use PairVerdict::{Congested, Missing, NotJudged, Ok, Slow, Suspect};
    for verdict in [Ok, Slow, Congested, Suspect, NotJudged, Missing] {
        let count = snapshot
            .pairs
            .iter()
            .filter(|pair| pair.verdict == verdict)
            .count();
        out.sample(&[("verdict", verdict.name())], Some(count as f64));
    }
    let all = snapshot.pairs.len() <= MOST_PAIRS;
    let told = |pair: &&Pair<'_>| all || pair.verdict != Ok || pair.slower_by_ns.is_some();
    let told: Vec<&Pair<'_>> = snapshot.pairs.iter().filter(told).collect();
    add_pairs(&mut out, &told);
    out.into_text()
}

fn seconds(nanoseconds: Option<f64>) -> Option<f64> {
    nanoseconds.map(|nanoseconds| nanoseconds / 1e9)
}

/// What is before the name of each metric.
const PREFIX: &str = "hcabench_fabric_";

fn add_nodes(out: &mut MetricsText, nodes: &[Node<'_>]) {
    out.metric(
        "node_slow",
        "Whether the node is named, by direction; unknown if only round trips show it.",
    );
    for node in nodes {
        let direction = node.judged.verdict.direction();
        if !matches!(
            node.judged.verdict,
            NodeVerdict::NotJudged | NodeVerdict::Missing
        ) {
            let told = direction.map_or("none", |direction| direction.name());
            let labels = [
                ("node", node.name),
                ("group", node.group),
                ("direction", told),
            ];
            out.sample(&labels, Some(flag(direction.is_some())));
        }
    }
    out.metric(
        "node_score",
        "How far the node stands out, in robust standard deviations.",
    );
    for node in nodes {
        out.sample(
            &[("node", node.name), ("group", node.group)],
            node.judged.score,
        );
    }
    out.metric(
        "node_effect_seconds",
        "By how much the node's messages take longer than those of others.",
    );
    for node in nodes {
        for (direction, effect) in ["egress", "ingress"]
            .into_iter()
            .zip(node.judged.effects_ns)
        {
            let labels = [
                ("node", node.name),
                ("group", node.group),
                ("direction", direction),
            ];
            out.sample(&labels, seconds(effect));
        }
    }
}

/// A metric of pairs: its name, its help, and its values of a pair, each with the percentile that it is of, if any.
type PairMetric = (
    &'static str,
    &'static str,
    fn(&Pair<'_>) -> Vec<(Option<&'static str>, Option<f64>)>,
);

const PAIR_METRICS: [PairMetric; 5] = [
    (
        "pair_half_round_trip_seconds",
        "Half of a round trip, assumed symmetric.",
        |pair| {
            let values = pair.half_round_trip_ns.map(seconds);
            [Some("50"), Some("99")].into_iter().zip(values).collect()
        },
    ),
    (
        "pair_excess_seconds",
        "Latency of messages above the minimum of their direction.",
        |pair| vec![(Some("99"), seconds(pair.excess_p99_ns))],
    ),
    (
        "pair_lost_messages",
        "Messages of the last run that did not arrive.",
        |pair| vec![(None, pair.lost.map(|lost| lost as f64))],
    ),
    (
        "pair_slower_by_at_least_seconds",
        "By how much the way is proved to be slower than it has to be, at least.",
        |pair| vec![(None, seconds(pair.slower_by_ns.map(|ns| ns as f64)))],
    ),
    (
        "pair_ok",
        "Whether the pair is as its tier and nodes lead to expect.",
        |pair| vec![(None, Some(flag(pair.verdict == PairVerdict::Ok)))],
    ),
];

fn add_pairs(out: &mut MetricsText, pairs: &[&Pair<'_>]) {
    for (name, help, values_of) in PAIR_METRICS {
        out.metric(name, help);
        for pair in pairs {
            for (percentile, value) in values_of(pair) {
                let mut labels = vec![("from", pair.from), ("to", pair.to), ("tier", pair.tier)];
                labels.extend(percentile.map(|percentile| ("percentile", percentile)));
                out.sample(&labels, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fabric::culprits::Direction;

    const JUDGED: NodeJudgement = NodeJudgement {
        verdict: NodeVerdict::Slow(Direction::Egress),
        score: Some(12.5),
        figure: Some("excess_p99_ns"),
        effects_ns: [Some(2500.0), None],
        scores: [Some(12.5), None],
    };

    fn pair(verdict: PairVerdict) -> Pair<'static> {
        Pair {
            from: "n1",
            to: "a \"b\"\\\nc",
            tier: "leaf",
            verdict,
            half_round_trip_ns: [Some(1500.0), None],
            excess_p99_ns: Some(250.0),
            lost: Some(3),
            slower_by_ns: Some(3_000_000).filter(|_| verdict == PairVerdict::Slow),
        }
    }

    fn snapshot(nodes: &[Node<'_>], pairs: &[Pair<'_>]) -> String {
        text(&Snapshot {
            ended_unix_s: 1_767_323_045.25,
            complete: true,
            nodes,
            pairs,
        })
    }

    #[test]
    fn each_line_is_as_the_format_wants_it() {
        let nodes = [Node {
            name: "n1",
            group: "s0.s4",
            judged: &JUDGED,
        }];
        let text = snapshot(&nodes, &[pair(PairVerdict::Ok)]);
        for line in [
            "hcabench_fabric_run_end_timestamp_seconds 1767323045.25",
            "hcabench_fabric_node_slow{node=\"n1\",group=\"s0.s4\",direction=\"egress\"} 1",
            "hcabench_fabric_node_effect_seconds{node=\"n1\",group=\"s0.s4\",direction=\"egress\"} 0.0000025",
            "hcabench_fabric_pairs{verdict=\"ok\"} 1",
            "hcabench_fabric_pair_half_round_trip_seconds{from=\"n1\",to=\"a \\\"b\\\"\\\\\\nc\",tier=\"leaf\",\
             percentile=\"50\"} 0.0000015",
            "hcabench_fabric_pair_lost_messages{from=\"n1\",to=\"a \\\"b\\\"\\\\\\nc\",tier=\"leaf\"} 3",
        ] {
            let is_there = text.lines().any(|it| it == line);
            assert!(is_there, "{line} is not in\n{text}");
        }
        assert!(text.ends_with('\n') && !text.contains("99\"} \n") && !text.contains("ingress"));
        // Each metric has its help and its type once, before its samples, which stand together.
        let mut known: Vec<&str> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("# HELP ") {
                Some(rest) => {
                    let name = rest.split(' ').next().unwrap();
                    assert!(!known.contains(&name), "{name} twice");
                    known.push(name);
                }
                None if line.starts_with("# TYPE") => assert!(line.ends_with(" gauge")),
                None if line.starts_with("# UNIT") => assert!(line.ends_with("seconds seconds")),
                None if line == "# EOF" => {}
                None => {
                    let name = line.split(['{', ' ']).next().unwrap();
                    assert_eq!(Some(&name), known.last(), "{line}");
                    assert!(name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'));
                }
            }
        }
    }

    #[test]
    fn of_many_pairs_only_those_that_are_not_ok_are_told() {
        let mut pairs = vec![pair(PairVerdict::Ok); MOST_PAIRS + 1];
        pairs[7] = pair(PairVerdict::Slow);
        let text = snapshot(&[], &pairs);
        let slower = "hcabench_fabric_pair_slower_by_at_least_seconds{from=\"n1\"";
        let slower: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with(slower))
            .collect();
        let is_expected = matches!(slower[..], [one] if one.ends_with(" 0.003"));
        assert!(is_expected, "{slower:?}");
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with("hcabench_fabric_pair_ok"))
                .count(),
            1
        );
        let all = snapshot(&[], &pairs[..MOST_PAIRS]);
        assert_eq!(
            all.lines()
                .filter(|line| line.starts_with("hcabench_fabric_pair_ok"))
                .count(),
            MOST_PAIRS
        );
    }

    #[test]
    fn the_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fabric.prom");
        for complete in [false, true] {
            write(
                &path,
                &Snapshot {
                    ended_unix_s: 1.0,
                    complete,
                    nodes: &[],
                    pairs: &[],
                },
            )
            .unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(&format!("run_complete {}\n", u8::from(complete))));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
