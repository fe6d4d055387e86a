//! A made-up fabric: its nodes and pairs, as tables.

use std::fs;
use std::path::{Path, PathBuf};

use hcabench::pacing::SplitMix64;
use hcabench::results::document::Program;
use hcabench::results::folder::{LEFT_OUT, RUNS, SUMMARY};
use hcabench::results::schema::fabric::{self, FABRIC, SCHEMA, node, tier};
use hcabench::results::schema::{COMPLETE, POINT, REASON, ROUND, ROUNDS, STARTED_AT, STATUS};
use hcabench::results::{Record, RunsFile, runs};
use serde_json::{Value, json};

/// A fabric of racks with so many nodes each, two rows of racks.
pub(crate) struct MadeFabric {
    pub nodes: usize,
    pub rack: usize,
    /// A node whose egress is slow, and by how many ns.
    pub slow: Option<(usize, f64)>,
    /// A node to and from which all takes this many times as long, which the run itself does not name.
    pub slower: Option<(usize, f64)>,
    /// A node without figures.
    pub dead: Option<usize>,
    /// A node that loses this share of what it sends.
    pub loses: Option<(usize, f64)>,
    /// When it began; the rows have another date.
    pub started_at: Option<String>,
    /// The kernel of the last node.
    pub kernel: &'static str,
    pub size_bytes: u32,
    /// What nodes are called.
    pub called: &'static str,
    pub missing_one_in: u64,
    pub rounds: u32,
    pub seed: u64,
    pub concurrency: &'static str,
}

impl MadeFabric {
    pub(crate) fn of(nodes: usize, rack: usize) -> Self {
        MadeFabric {
            nodes,
            rack,
            slow: None,
            slower: None,
            dead: None,
            loses: None,
            started_at: None,
            kernel: "6.1.0-25",
            size_bytes: 8,
            called: "node",
            missing_one_in: 0,
            rounds: 0,
            seed: 1,
            concurrency: "alone",
        }
    }

    fn racks(&self) -> usize {
        self.nodes.div_ceil(self.rack)
    }

    fn row(&self, node: usize) -> usize {
        2 * (node / self.rack) / self.racks()
    }

    fn name(&self, node: usize) -> String {
        let width = (self.nodes - 1).to_string().len();
        format!("{}{node:0width$}", self.called)
    }
}

pub(crate) fn fabric_run(path: &Path, made: &MadeFabric) -> PathBuf {
    fs::create_dir_all(path).unwrap();
    let nodes = (0..made.nodes)
        .map(|it| node_row(made, it))
        .collect::<Vec<Record>>();
    runs::write(&path.join(fabric::NODES), &fabric::nodes(), &nodes).unwrap();
    let mut numbers = SplitMix64::new(made.seed);
    let mut pairs = Vec::new();
    for from in 0..made.nodes {
        for to in (0..made.nodes).filter(|to| *to != from) {
            pairs.push(pair_row(made, from, to, &mut numbers));
        }
    }
    runs::write(&path.join(fabric::PAIRS), &fabric::pairs(), &pairs).unwrap();
    rounds(path, made, &pairs, &mut numbers);
    others(path, made, pairs.iter().filter(is_measured).count());
    path.to_path_buf()
}

fn is_measured(pair: &&Record) -> bool {
    pair.number(fabric::HALF_P50.name).is_some()
}

fn rounds(path: &Path, made: &MadeFabric, pairs: &[Record], numbers: &mut SplitMix64) {
    let mut file = RunsFile::create(&path.join(RUNS), &SCHEMA).unwrap();
    let measured = pairs.iter().filter(is_measured);
    for (round, pair) in
        (0..made.rounds).flat_map(|it| measured.clone().map(move |pair| (it, pair)))
    {
        let mut row = Record::new();
        row.set_from(&POINT, pair)
            .set(&ROUND, round)
            .set(&STARTED_AT, super::STARTED_AT)
            .set(&STATUS, COMPLETE);
        for column in &fabric::PAIR {
            row.set_from(column, pair);
        }
        for column in [fabric::HALF_P50, fabric::HALF_P99, fabric::EXCESS_P99] {
            let noise = (numbers.draw() % 1000) as f64 / 1e5;
            row.set(
                &column,
                pair.number(column.name).map(|it| it * (1.0 + noise)),
            );
        }
        file.append(&row).unwrap();
    }
}

fn others(path: &Path, made: &MadeFabric, measured: usize) {
    let names: Vec<String> = (0..made.nodes).map(|it| made.name(it)).collect();
    let there: Vec<_> = (names.iter().enumerate())
        .map(|(it, name)| {
            let description =
                format!("mlx5_0 port 1 at 10.0.0.{it}, InfiniBand, MTU 4096 B, 200 Gbit/s");
            let kernel = if it + 1 == made.nodes {
                made.kernel
            } else {
                "6.1.0-25"
            };
            let port = json!({
                "device": "mlx5_0", "port": 1, "description": description, "kernel": kernel,
                "details": { "device": { "firmware": "28.39.1002" } },
            });
            let port = if made.dead == Some(it) {
                Value::Null
            } else {
                port
            };
            json!({ "rank": it, "node": name, "boot_id": format!("boot{it}"), "port": port })
        })
        .collect();
    let mut text = json!({
        "hcabench": Program::this(),
        "engine": "slurm", "job": { "engine": "slurm", "job": "7", "step": "0" },
        "ranks": made.nodes, "nodes": names, "there": there,
        "schedule": { "method": "circle", "concurrency": made.concurrency, "rounds": made.rounds },
        "settings": { "service": "rc", "size_bytes": made.size_bytes },
    });
    if let Some(moment) = &made.started_at {
        text["started_at"] = json!(moment);
    }
    fs::write(path.join(FABRIC), text.to_string()).unwrap();
    let mut left_out = Vec::new();
    for other in (0..made.nodes).filter(|it| made.dead.is_some_and(|dead| dead != *it)) {
        let dead = made.dead.unwrap();
        for (from, to) in [(dead, other), (other, dead)] {
            let mut row = Record::new();
            row.set(&fabric::FROM, made.name(from))
                .set(&fabric::TO, made.name(to))
                .set(&REASON, format!("{} does not answer", made.name(dead)));
            left_out.push(row);
        }
    }
    runs::write(&path.join(LEFT_OUT), &SCHEMA.left_out(), &left_out).unwrap();
    let all = made.nodes * (made.nodes - 1);
    let mut row = Record::new();
    row.set(&tier::NAME, "all")
        .set(&tier::PAIRS, all)
        .set(&tier::MEASURED, measured)
        .set(&tier::HALF_LEAST, 1500.0)
        .set(&tier::HALF_P50, 1900.0)
        .set(&tier::HALF_GREATEST, 2480.0)
        .set(&tier::LOST, 0_u32);
    runs::write(&path.join(SUMMARY), &fabric::summary(), &[row]).unwrap();
}

fn node_row(made: &MadeFabric, it: usize) -> Record {
    let slow = made.slow.is_some_and(|(slow, _)| slow == it);
    let mut row = Record::new();
    row.set(&node::NAME, made.name(it))
        .set(&node::RANK, it)
        .set(
            &node::GROUP,
            format!("row{}.rack{}", made.row(it), it / made.rack),
        )
        .set(&node::SCORE, if slow { 40.0 } else { it as f64 / 100.0 })
        .set(
            &node::VERDICT,
            match (slow, made.dead == Some(it)) {
                (true, _) => "slow",
                (_, true) => "missing",
                _ => "ok",
            },
        )
        .set(&node::DIRECTION, slow.then_some("egress"));
    row
}

fn pair_row(made: &MadeFabric, from: usize, to: usize, numbers: &mut SplitMix64) -> Record {
    let mut share = || (numbers.draw() >> 11) as f64 / (1_u64 << 53) as f64;
    let (tier, base) = match (
        from / made.rack == to / made.rack,
        made.row(from) == made.row(to),
    ) {
        (true, _) => ("leaf", 1500.0),
        (_, true) => ("up-1", 1900.0),
        _ => ("apart", 2400.0),
    };
    let slow = made
        .slow
        .filter(|(slow, _)| *slow == from)
        .map_or(0.0, |(_, by)| by);
    let slower = (made.slower).filter(|(node, _)| *node == from || *node == to);
    let times = slower.map_or(1.0, |(_, times)| times);
    let half = times * (base + 80.0 * share()) + slow / 2.0;
    let is_missing = made.dead.is_some_and(|dead| from == dead || to == dead)
        || made.missing_one_in > 0 && share() * (made.missing_one_in as f64) < 1.0;
    let mut row = Record::new();
    row.set(&POINT, format!("{}-to-{}", made.name(from), made.name(to)))
        .set(&STATUS, COMPLETE)
        .set(&ROUNDS, if is_missing { 0 } else { made.rounds })
        .set(&fabric::FROM, made.name(from))
        .set(&fabric::TO, made.name(to))
        .set(&fabric::FROM_RANK, from)
        .set(&fabric::TO_RANK, to)
        .set(&fabric::TIER, tier)
        .set(&fabric::VERDICT, if is_missing { "missing" } else { "ok" });
    if !is_missing {
        let loses = made.loses.filter(|(node, _)| *node == from);
        row.set(&fabric::HALF_MIN, times * 0.9 * base)
            .set(&fabric::HALF_P50, half)
            .set(&fabric::HALF_P99, 1.5 * half)
            .set(&fabric::EXPECTED, base + 40.0)
            .set(&fabric::REST, half - base - 40.0)
            .set(&fabric::SCORE, (half - base - 40.0) / 25.0)
            .set(&fabric::ONE_WAY_P50_LOW, 0.2 * half)
            .set(&fabric::ONE_WAY_P50_HIGH, 1.8 * half + slow)
            .set(&fabric::EXCESS_P99, 200.0 + 100.0 * share() + slow)
            .set(&fabric::SENT, 600_u32)
            .set(
                &fabric::LOST,
                match loses {
                    Some((_, share)) => (600.0 * share) as u32,
                    None if slow > 0.0 && share() < 0.5 => 2,
                    None => 0,
                },
            );
    }
    row
}
