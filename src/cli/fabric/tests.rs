//! Rank 0 with scripted ranks over real sockets: its files, and how a run goes on that was broken off.

use crate::testing::Has as _;
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

mod over_time;

use super::*;
use crate::launch::agent::{Agent, RankWork};
use crate::launch::message::{DirectionReport, Hello, MeasurementOrder, PairReport, Start};
use crate::launch::schedule::Pair;
use crate::report::ReportArguments;
use crate::results::Record;
use crate::results::finding::{Finding, Findings, kinds};
use crate::results::folder::{MARK, PACKAGE, RUNS};
use crate::results::schema::between::{MESSAGES, PROBES_FILE};
use crate::results::schema::fabric as columns;

const LONG: Duration = Duration::from_secs(60);

/// A name of nodes: only rank 0 comes.
const ALONE: &str = "alone";

/// Names of nodes: from rank 1 to rank 2 it takes longer; rank 1's clock or rank 2's was set.
const SLOW_WAY: &str = "way";
const SET: &str = "set";
/// Each pair takes a while.
const SLOWLY: &str = "slowly";
/// Pairs have samples.
const SAMPLED: &str = "sampled";
/// A CPU quota stops rank 1.
const QUOTA: &str = "quota";

type MeasuredLog = Arc<Mutex<Vec<(u32, Pair)>>>;

/// The ranks of one pair that is slow both ways.
const SLOW: [u32; 2] = [1, 4];

/// A rank that fails with one pair in one round.
struct ScriptedRank {
    node: &'static str,
    fails: Option<(u32, Pair)>,
    measured: MeasuredLog,
}

impl RankWork for ScriptedRank {
    fn prepare(&mut self, _start: &Start) -> Result<Value, String> {
        let check = |check| Finding::of(&kinds::MACHINE_NOT_READY).name("check", check);
        let quota = (self.node == QUOTA).then(|| check("CPU quota"));
        Ok(serde_json::json!({ "findings": Vec::from_iter(quota) }))
    }

    fn measure(&mut self, order: &MeasurementOrder) -> Result<PairReport, String> {
        let place = (order.round, order.pair);
        self.measured.lock().unwrap().push(place);
        if self.node == SLOWLY {
            sleep(Duration::from_millis(20));
        }
        let [low, high] = order.pair.ranks();
        let fails = self.fails == Some(place);
        let direction = |from: u32, to: u32| {
            let mut figures = Record::new();
            let slow = if [low, high] == SLOW { 3000 } else { 0 };
            let half = f64::from(1000 + 10 * from + to + 5 * order.round + slow);
            figures
                .set(&columns::HALF_P50, half)
                .set(&columns::HALF_P99, 2.0 * half)
                .set(&columns::OFFSET_LOW, -50_i64)
                .set(&columns::OFFSET_HIGH, 50_i64)
                .set(&columns::SENT, 10_u32);
            if [SLOW_WAY, SET].contains(&self.node) {
                exchanged(&mut figures, from, to, self.node);
            }
            let failure = (fails && from < to).then(|| "no,\nanswer".to_owned());
            let stopped = self.node == QUOTA && from == 1;
            let throttled = || {
                let found = Finding::of(&kinds::THROTTLED).count("throttled", 2);
                found.count("periods", 3).on("quota1")
            };
            let samples = (self.node == SAMPLED).then(|| samples(order.round));
            DirectionReport {
                figures,
                failure,
                samples: samples.unwrap_or_default(),
                findings: Vec::from_iter(stopped.then(throttled)),
            }
        };
        Ok(PairReport {
            directions: [direction(low, high), direction(high, low)],
            ..PairReport::default()
        })
    }
}

/// The files of a pair, with a row each.
fn samples(round: u32) -> BTreeMap<String, String> {
    let files = [MESSAGES, PROBES_FILE].iter().map(|file| {
        let cells = vec![round.to_string(); file.columns.len()];
        (file.name.to_owned(), cells.join(",") + "\n")
    });
    files.collect()
}

/// What clocks tell that show the same: each way takes 1 us, but for one.
fn exchanged(figures: &mut Record, from: u32, to: u32, node: &str) {
    let takes = |from, to| match (from, to, node) {
        (1, 2, SLOW_WAY) => 9_000_i64,
        _ => 1_000,
    };
    let theta = match (from, to, node) {
        (1, 2, SET) => 50_000,
        (2, 1, SET) => -50_000,
        _ => 0,
    };
    let (low, high) = (theta - takes(to, from), theta + takes(from, to));
    figures
        .replace(&columns::OFFSET_LOW, low)
        .replace(&columns::OFFSET_HIGH, high)
        .set(&columns::OFFSET_AT, 5_000_000_000_u64)
        .set(&columns::EXCHANGES_LASTED, 100_000_000_u64)
        .set(&columns::RATE_LOW, -0.5)
        .set(&columns::RATE_HIGH, 0.5)
        .set(&columns::LINES_RATE, 0_i64)
        .set(&columns::LINES_LOW, low)
        .set(&columns::LINES_HIGH, high)
        .set(&columns::ONE_WAY_STATUS, "proven")
        .set(&columns::ONE_WAY_P50_LOW, 500.0)
        .set(&columns::ONE_WAY_P50_HIGH, 1_500.0);
}

fn run(
    options: &[&str],
    ranks: u32,
    node: &'static str,
    fails: Option<(u32, Pair)>,
) -> (anyhow::Result<u8>, Vec<(u32, Pair)>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let measured = MeasuredLog::default();
    let member = |rank: u32| {
        let options = Options {
            rank: Some(rank),
            ranks: Some(ranks),
            rendezvous: Some(format!("127.0.0.1:{port}")),
        };
        let identity = Identity::find(&options, &|_| None, &format!("{node}{rank}")).unwrap();
        let serves = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 7000));
        let boot = (format!("boot{rank}"), "0-3".to_owned());
        let hello = Hello::new(&identity, Value::Null, boot, serves);
        (identity, hello)
    };
    let (identity, hello) = member(0);
    let mut attending = Vec::new();
    // What rank 0 refuses by itself, nobody else hears of.
    for rank in 0..if node == ALONE { 0 } else { ranks } {
        let (identity, hello) = member(rank);
        let mut work = ScriptedRank {
            node,
            fails,
            measured: Arc::clone(&measured),
        };
        attending.push(spawn(move || {
            let agent = Agent::meet(&identity.rendezvous, &hello, LONG);
            agent.and_then(|agent| agent.attend(&mut work))
        }));
    }
    let words = [
        &["fabric", "--quiet", "--again", "0", "--rounds", "2"],
        options,
    ]
    .concat();
    let ended = rank_zero(
        &words,
        &identity,
        (listener, hello.terms, Limits::default()),
    );
    attending.into_iter().for_each(|rank| drop(rank.join()));
    let measured = measured.lock().unwrap().clone();
    (ended, measured)
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn what_is_missing_is_measured_and_the_tables_are_as_of_a_whole_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (whole, broken) = (path("whole"), path("broken"));
    let (ended, measured) = run(&["--out", &whole], 4, "n", None);
    assert_eq!((ended.unwrap(), measured.len()), (0, 12));
    let bad = (1, Pair::of(1, 2));
    let (ended, measured) = run(&["--out", &broken], 4, "n", Some(bad));
    let error = ended.unwrap_err().to_string();
    error.has(&["0 ordered pairs were left out and 1 failed"]);
    assert_eq!(measured.len(), 12);
    let (whole, broken) = (Path::new(&whole), Path::new(&broken));
    let runs = text(broken, RUNS);
    assert!(runs.contains(",incomplete,\"no, answer\","), "{runs}");
    assert!(
        runs.lines()
            .skip(1)
            .all(|row| row.contains(",fabric,together,")),
        "{runs}"
    );
    // As a killed process leaves it.
    fs::write(broken.join(RUNS), format!("{runs}n0-to-n1,1,9")).unwrap();

    let (ended, measured) = run(&["--resume", &path("broken")], 4, "n", None);
    assert_eq!((ended.unwrap(), measured), (0, vec![bad]));
    assert!(!broken.join(MARK).exists());
    for name in [
        columns::PAIRS,
        columns::NODES,
        "summary.csv",
        "left_out.csv",
    ] {
        assert!(described(broken).iter().any(|path| path == name), "{name}");
        assert_eq!(text(broken, name), text(whole, name), "{name}");
    }
    let pairs = text(broken, columns::PAIRS);
    assert_eq!(pairs.lines().count(), 13);
    assert_eq!(text(broken, RUNS).lines().count(), 25);
    // 1000 + 10 + 2, and 5 more in the second round.
    pairs.has(&[
        "n1-to-n2,n1,n2,1,2,fabric,together,complete,,2,",
        ",1014.5,",
    ]);
    let (ended, _) = run(&["--resume", &path("broken")], 4, ALONE, None);
    let error = ended.unwrap_err();
    assert!(error.is::<UsageError>() && error.to_string().contains("it is complete"));
}

/// The tables that the package of a run describes, with each column as the file has it.
fn described(run: &Path) -> Vec<String> {
    let package: Value = serde_json::from_str(&text(run, PACKAGE)).unwrap();
    assert_eq!(package["name"], "hcabench-fabric");
    let resources = package["resources"].as_array().unwrap().iter();
    let paths = resources.map(|resource| {
        let path = resource["path"].as_str().unwrap();
        let fields = resource["schema"]["fields"].as_array().unwrap();
        let names = fields.iter().map(|field| field["name"].as_str().unwrap());
        let names: Vec<&str> = names.collect();
        let header = text(run, path).lines().next().unwrap().to_owned();
        assert_eq!(names.join(","), header, "{path}");
        path.to_owned()
    });
    paths.collect()
}

#[test]
fn the_package_describes_each_column_of_each_table() {
    let folder = tempfile::tempdir().unwrap();
    let tables = [
        "summary.csv",
        columns::PAIRS,
        columns::NODES,
        RUNS,
        "left_out.csv",
    ];
    let of = |ranks: u32, options: &[&str]| {
        let out = folder.path().join(ranks.to_string());
        let path = out.display().to_string();
        let words = [&["--out", &path], options].concat();
        let (ended, _) = run(&words, ranks, SAMPLED, None);
        assert_eq!(ended.unwrap(), 0);
        described(&out)
    };
    let with_rules = of(3, &["--history", folder.path().to_str().unwrap()]);
    assert_eq!(with_rules[..6], [&tables[..], &[columns::RULES]].concat());
    let samples = ["messages.csv", "probes.csv"].map(|name| format!("sampled0-to-sampled1/{name}"));
    assert_eq!(with_rules[6..8], samples);
    assert_eq!(with_rules.len(), 6 + 2 * 6);
    // 17 times 16 folders are more than it describes.
    assert_eq!(of(17, &[]), tables);
}

/// Where the process that is killed has its results.
const KILLED: &str = "HCABENCH_TEST_KILLED";

#[test]
fn a_run_whose_rank_0_was_killed_goes_on_and_has_each_pair_once() {
    let options = ["--concurrency", "alone", "--rounds", "2"];
    let of = |option, out: &str| run(&[&[option, out][..], &options].concat(), 5, SLOWLY, None);
    if let Ok(out) = std::env::var(KILLED) {
        // In the process that is killed: it does not end by itself.
        of("--out", &out).0.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let path = out.display().to_string();
    let this = "a_run_whose_rank_0_was_killed_goes_on_and_has_each_pair_once";
    let mut killed = Command::new(std::env::current_exe().unwrap());
    let mut killed = killed
        .arg(this)
        .env(KILLED, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let rows = || fs::read_to_string(out.join(RUNS)).map_or(0, |text| text.lines().count());
    let until = Instant::now() + LONG;
    while rows() < 8 && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let before = rows();
    assert!((8..41).contains(&before), "{before}");
    assert!(out.join(MARK).exists());
    // The tests of this process may have been started by other arguments.
    let mut document: Value = serde_json::from_str(&text(&out, columns::FABRIC)).unwrap();
    document["command_line"] = std::env::args().collect();
    fs::write(out.join(columns::FABRIC), document.to_string()).unwrap();
    let (ended, measured) = of("--resume", &path);
    assert_eq!(ended.unwrap(), 0);
    // Of a pair both rows or none are there, but for one that was being written.
    let whole = 20 - measured.len();
    assert!(
        (before - 1).abs_diff(2 * whole) <= 2,
        "{before} lines, {whole} pairs"
    );
    assert!(!out.join(MARK).exists());
    let text = text(&out, RUNS);
    let mut pairs: Vec<(&str, &str)> = text
        .lines()
        .skip(1)
        .map(|row| {
            let mut cells = row.split(',');
            (cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    assert_eq!(pairs.len(), 40);
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), 40);
}

#[test]
fn other_ranks_and_nodes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let (ended, _) = run(&["--out", &out], 3, "n", Some((0, Pair::of(0, 1))));
    ended.unwrap_err();
    let before = text(Path::new(&out), RUNS);
    for (ranks, node, told) in [
        (4, ALONE, "the number of ranks differs: 3 there, 4 now"),
        (3, "m", "rank 0 was n0 there, and is m0 now"),
    ] {
        let (ended, measured) = run(&["--resume", &out], ranks, node, None);
        let error = ended.unwrap_err();
        assert!(error.is::<UsageError>(), "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert!(measured.is_empty());
    }
    assert_eq!(text(Path::new(&out), RUNS), before);
    let nothing = folder.path().join("nothing").display().to_string();
    let (ended, _) = run(&["--resume", &nothing], 3, ALONE, None);
    let error = ended.unwrap_err();
    assert!(error.is::<UsageError>(), "{error}");
    assert!(error.to_string().contains("--resume"), "{error}");
}

#[test]
fn a_file_of_groups_that_is_not_there_is_refused_before_ranks_come() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (out, groups) = (path("out"), path("groups"));
    // No rank comes: who waited for them first would wait for a minute.
    let (ended, _) = run(&["--out", &out, "--group", &groups], 4, ALONE, None);
    let error = ended.unwrap_err();
    assert!(error.is::<UsageError>(), "{error}");
    error.to_string().has(&[&format!("--group {groups}: ")]);
    assert!(!Path::new(&out).exists());
    for text in [
        "SwitchName=a Nodes=n0\nSwitchName=b Node=n1\n",
        "\nn0 leaf\n",
    ] {
        fs::write(&groups, text).unwrap();
        let (ended, _) = run(&["--out", &out, "--topology", &groups], 4, ALONE, None);
        let error = ended.unwrap_err();
        assert!(error.is::<UsageError>(), "{error}");
        let expected = format!("--topology {groups}: line 2: ");
        error.to_string().has(&[&expected, "SwitchName=NAME"]);
        assert!(!Path::new(&out).exists());
    }
}

#[test]
fn pairs_are_judged_within_the_tiers_of_the_topology_and_others_are_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (out, conf) = (path("out"), path("topology.conf"));
    fs::write(
        &conf,
        "SwitchName=a Nodes=n[0-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=c Switches=a,b\n",
    )
    .unwrap();
    let (ended, _) = run(&["--out", &out, "--topology", &conf], 6, "n", None);
    assert_eq!(ended.unwrap(), 0);
    let out = Path::new(&out);
    let both = ["tier", "verdict"];
    assert_eq!(cells(out, "n0-to-n2", &both), ["leaf", "ok"]);
    assert_eq!(cells(out, "n0-to-n3", &both), ["up-1", "ok"]);
    for pair in ["n0-to-n5", "n5-to-n3"] {
        assert_eq!(cells(out, pair, &both), ["unknown", "not-judged"], "{pair}");
    }
    let nodes = text(out, columns::NODES);
    let node = nodes.lines().find(|row| row.starts_with("n5,")).unwrap();
    assert!(node.contains(",not-judged,"), "{node}");
    let document: Value = serde_json::from_str(&text(out, columns::FABRIC)).unwrap();
    let expected = serde_json::json!({
        "source": "topology.conf", "file": conf, "unknown": ["n5"],
        "pairs": { "leaf": 4, "up-1": 6, "unknown": 5 },
        "groups": ["c.a", "c.a", "c.a", "c.b", "c.b", ""],
    });
    assert_eq!(document["tiers"], expected);
    let found: Findings = serde_json::from_value(document["findings"].clone()).unwrap();
    let lines: Vec<String> = found.all().iter().map(|found| found.line(0)).collect();
    lines.join("\n").has(&[
        "the tier of n5 is unknown",
        "topology.conf does not name them",
    ]);
}

#[test]
fn a_slow_pair_is_measured_again_beside_others() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let options = ["--out", &out, "--again", "2"];
    let (ended, measured) = run(&options, 8, "n", None);
    assert_eq!(ended.unwrap(), 0);
    let again: Vec<Pair> = measured
        .iter()
        .filter(|(round, _)| *round == 2)
        .map(|(_, pair)| *pair)
        .collect();
    assert!(again.contains(&Pair::of(1, 4)), "{again:?}");
    let pairs = text(Path::new(&out), columns::PAIRS);
    let role = |name: &str| pairs.lines().filter(|row| row.contains(name)).count();
    assert_eq!(
        role(",suspect,") + role(",control,"),
        2 * again.len(),
        "{pairs}"
    );
    let slow = pairs.lines().find(|row| row.starts_with("n4-to-n1,"));
    assert!(slow.unwrap().contains(",suspect,"), "{pairs}");
}

#[test]
fn a_sample_measures_as_many_partners_of_each_rank_and_goes_on_with_the_same_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let path = out.display().to_string();
    let options = ["--partners", "4"];
    let schedule = Schedule::new(8, Concurrency::Together);
    let schedule = schedule.with(partners("4").unwrap(), 1);
    let pairs: Vec<Pair> = schedule.batches().flatten().collect();
    let bad = (1, pairs[5]);
    let (ended, measured) = run(
        &[&["--out", &path][..], &options].concat(),
        8,
        "n",
        Some(bad),
    );
    ended.unwrap_err();
    assert_eq!(measured.len(), 32);
    // As rank 0 leaves it that is killed while it writes a row of the second round.
    let rows = text(&out, RUNS);
    let kept: Vec<&str> = rows.split_inclusive('\n').take(1 + 32 + 8).collect();
    fs::write(out.join(RUNS), format!("{}n0-to-n", kept.concat())).unwrap();
    let again = [&["--resume", &path][..], &options].concat();
    let (ended, again) = run(&again, 8, "n", None);
    assert_eq!(ended.unwrap(), 0);
    assert!((12..=13).contains(&again.len()), "{again:?}");
    assert!(
        again
            .iter()
            .all(|(round, pair)| *round == 1 && pairs.contains(pair))
    );
    assert!(!out.join(MARK).exists());
    assert_eq!(text(&out, RUNS).lines().count(), 1 + 64);
    let rows = text(&out, columns::PAIRS);
    assert_eq!(rows.lines().count(), 1 + 32);
    for pair in &pairs {
        let [low, high] = pair.ranks();
        assert!(rows.contains(&format!("\nn{low}-to-n{high},")), "{pair}");
        assert!(rows.contains(&format!("\nn{high}-to-n{low},")), "{pair}");
    }
    let nodes = text(&out, columns::NODES);
    assert!(
        nodes.lines().skip(1).all(|row| row.contains(",8,0,")),
        "{nodes}"
    );
    let summary = text(&out, "summary.csv");
    summary.has(&["fabric,56,32,"]);
    let document: Value = serde_json::from_str(&text(&out, columns::FABRIC)).unwrap();
    let schedule = &document["schedule"];
    let said = ["partners", "pairs", "seed"].map(|name| schedule[name].as_u64().unwrap());
    assert_eq!(said, [4, 16, 1]);
    let found: Findings = serde_json::from_value(document["findings"].clone()).unwrap();
    let lines: Vec<String> = found.all().iter().map(|found| found.line(0)).collect();
    lines
        .join("\n")
        .has(&["each rank was measured with 4 of 7 others"]);
}

#[test]
fn a_sample_of_fewer_than_four_partners_is_refused() {
    for text in ["0", "3", "some", "-4", ""] {
        assert!(partners(text).unwrap_err().contains("from 4"), "{text}");
    }
    assert_eq!(partners("all").unwrap(), Partners::All);
}

#[test]
fn a_file_of_other_hosts_is_refused_and_tiers_do_not_change_when_a_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (out, conf) = (path("out"), path("topology.conf"));
    fs::write(&conf, "SwitchName=a Nodes=m[0-2]\n").unwrap();
    let options = ["--topology", &conf];
    let (ended, measured) = run(&[&["--out", &out][..], &options].concat(), 3, "n", None);
    let error = ended.unwrap_err();
    assert!(error.is::<UsageError>() && measured.is_empty(), "{error}");
    error
        .to_string()
        .has(&["--topology", "called as n0", "such as m0"]);
    assert!(!Path::new(&out).exists());

    fs::write(&conf, "SwitchName=a Nodes=n[0-1]\n").unwrap();
    let bad = (0, Pair::of(1, 2));
    let (ended, _) = run(
        &[&["--out", &out][..], &options].concat(),
        3,
        "n",
        Some(bad),
    );
    ended.unwrap_err();
    fs::write(&conf, "SwitchName=a Nodes=n[0-2]\n").unwrap();
    let (ended, measured) = run(&[&["--resume", &out][..], &options].concat(), 3, "n", None);
    let error = ended.unwrap_err();
    assert!(error.is::<UsageError>() && measured.is_empty(), "{error}");
    error
        .to_string()
        .has(&["the place of n2 in the network was unknown there, and is a now"]);
}

fn cells(folder: &Path, pair: &str, columns: &[&str]) -> Vec<String> {
    let mut reader = csv::Reader::from_path(folder.join(columns::PAIRS)).unwrap();
    let names = reader.headers().unwrap().clone();
    let place = |name: &str| names.iter().position(|it| it == name).unwrap();
    let rows = reader.records().map(Result::unwrap);
    let row = rows.into_iter().find(|row| &row[0] == pair).unwrap();
    columns
        .iter()
        .map(|name| row[place(name)].to_owned())
        .collect()
}

#[test]
fn a_way_that_is_slower_than_over_third_hosts_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (out, textfile) = (path("out"), path("fabric.prom"));
    let options = [
        "--out",
        &out,
        "--prometheus",
        &textfile,
        "--max-outliers",
        "0",
    ];
    let (ended, _) = run(&options, 4, SLOW_WAY, None);
    assert_eq!(ended.unwrap(), 3);
    let out = Path::new(&out);
    let document: Value = serde_json::from_str(&text(out, columns::FABRIC)).unwrap();
    let ways = document["slow_ways"].as_array().unwrap();
    let [way] = &ways[..] else {
        panic!("{ways:?}");
    };
    assert_eq!(way["from"].as_str(), Some("way1"));
    assert_eq!(way["to"].as_str(), Some("way2"));
    // 7 us, but for what the clocks may gain meanwhile.
    let by = way["slower_by_at_least_ns"].as_u64().unwrap();
    assert!((6_500..=7_000).contains(&by), "{by}");
    for (pair, expected) in [
        ("way1-to-way2", by.to_string()),
        ("way2-to-way1", String::new()),
    ] {
        assert_eq!(cells(out, pair, &["slower_by_at_least_ns"]), [expected]);
    }
    let summary = text(out, "summary.csv");
    assert!(summary.lines().last().unwrap().ends_with(",1"), "{summary}");
    let monitoring = fs::read_to_string(&textfile).unwrap();
    let metric = "hcabench_fabric_pair_slower_by_at_least_seconds{from=\"way1\",to=\"way2\"";
    assert!(monitoring.contains(metric), "{monitoring}");
}

#[test]
fn ranks_that_a_quota_stops_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let [out, page] = ["out", "page.html"].map(|name| folder.path().join(name));
    let (ended, _) = run(&["--out", &out.display().to_string()], 3, QUOTA, None);
    assert_eq!(ended.unwrap(), 0);
    let document: Value = serde_json::from_str(&text(&out, columns::FABRIC)).unwrap();
    let found: Findings = serde_json::from_value(document["findings"].clone()).unwrap();
    let lines: Vec<String> = found.all().iter().map(|found| found.line(0)).collect();
    let lines = lines.join("\n");
    // Known beforehand of each rank; of rank 1 two directions in two rounds.
    lines.has(&["quota0: CPU quota", "quota2: CPU quota"]);
    lines.has(&["quota1: a CPU quota throttled the group in 8 of 12 periods"]);
    let arguments = ReportArguments {
        folder: out,
        out: page.clone(),
        title: None,
        quiet: true,
    };
    crate::report::run(&arguments).unwrap();
    fs::read_to_string(page)
        .unwrap()
        .has(&["in 8 of 12 periods"]);
}

#[test]
fn a_run_that_goes_on_names_ranks_that_a_quota_stops_once() {
    let folder = tempfile::tempdir().unwrap();
    let bad = (1, Pair::of(1, 2));
    for (node, kept, measured, text_of_rank_1) in [
        // No rank had a quota before.
        ("n", usize::MAX, 1, "in 2 of 3 periods"),
        // Of the rows nothing is left, so that each counts once.
        (QUOTA, 1, 6, "in 8 of 12 periods"),
    ] {
        let out = folder.path().join(node);
        let path = out.display().to_string();
        run(&["--out", &path], 3, node, Some(bad)).0.unwrap_err();
        rename(&out, node, QUOTA);
        let rows = text(&out, RUNS);
        let rows: Vec<&str> = rows.split_inclusive('\n').take(kept).collect();
        fs::write(out.join(RUNS), rows.concat()).unwrap();
        let (ended, again) = run(&["--resume", &path], 3, QUOTA, None);
        assert_eq!((ended.unwrap(), again.len()), (0, measured));
        let document: Value = serde_json::from_str(&text(&out, columns::FABRIC)).unwrap();
        let found: Findings = serde_json::from_value(document["findings"].clone()).unwrap();
        let of_ranks = found
            .all()
            .into_iter()
            .filter(|it| it.kind != "without-secret");
        assert_eq!(of_ranks.count(), 4, "{found:?}");
        let lines: Vec<String> = found.all().iter().map(|found| found.line(0)).collect();
        let lines = lines.join("\n");
        lines.has(&["quota0: CPU quota", "quota2: CPU quota", text_of_rank_1]);
    }
}

#[test]
fn clocks_that_contradict_each_other_fail_the_run_and_nobody_is_blamed() {
    let folder = tempfile::tempdir().unwrap();
    for drift in [&[][..], &["--clock-drift", "0"]] {
        let out = folder.path().join(drift.len().to_string());
        let out = out.display().to_string();
        let (ended, _) = run(&[&["--out", &out][..], drift].concat(), 4, SET, None);
        let error = ended.unwrap_err().to_string();
        error.has(&["clocks contradict each other over third hosts"]);
        let out = Path::new(&out);
        assert!(out.join(MARK).exists());
        let document: Value = serde_json::from_str(&text(out, columns::FABRIC)).unwrap();
        let told = document["contradictions"].as_array().unwrap();
        assert!(!told.is_empty() && told.iter().all(|it| it.to_string().contains("set1, set2")));
        assert_eq!(document["slow_ways"].as_array().unwrap().len(), 0);
        let columns = [
            "one_way_status",
            "one_way_p50_high_ns",
            "slower_by_at_least_ns",
            "verdict",
        ];
        for pair in ["set1-to-set2", "set2-to-set1"] {
            assert_eq!(
                cells(out, pair, &columns),
                ["contradiction", "", "", "ok"],
                "{pair}"
            );
        }
        assert_eq!(cells(out, "set0-to-set3", &columns[..1]), ["proven"]);
        assert!(!text(out, columns::NODES).contains(",slow,"));
    }
}

/// Gives the nodes of a run other names: scripted ranks measure by their names.
fn rename(folder: &Path, from: &str, to: &str) {
    let document = (0..3).fold(text(folder, columns::FABRIC), |document, rank| {
        document.replace(&format!("\"{from}{rank}\""), &format!("\"{to}{rank}\""))
    });
    fs::write(folder.join(columns::FABRIC), document).unwrap();
}

#[test]
fn a_round_of_clocks_that_contradict_each_other_is_measured_again_and_heals() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let options = ["--rounds", "1"];
    let (ended, measured) = run(&[&["--out", &out][..], &options].concat(), 3, SET, None);
    ended.unwrap_err();
    assert_eq!(measured.len(), 3);
    let path = Path::new(&out);
    // The clocks are right from then on.
    rename(path, SET, SLOW_WAY);
    let again = [&["--resume", &out][..], &options].concat();
    let (ended, measured) = run(&again, 3, SLOW_WAY, None);
    assert_eq!((ended.unwrap(), measured.len()), (0, 3));
    assert!(!path.join(MARK).exists());
    let document: Value = serde_json::from_str(&text(path, columns::FABRIC)).unwrap();
    assert_eq!(document["contradictions"].as_array().unwrap().len(), 0);
    assert_eq!(cells(path, "way1-to-way2", &["one_way_status"]), ["proven"]);
}

#[test]
fn clocks_of_a_run_that_goes_on_are_compared_with_none_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let path = Path::new(&out);
    let options = ["--rounds", "1"];
    let bad = (0, Pair::of(1, 2));
    let first = [&["--out", &out][..], &options].concat();
    let (ended, _) = run(&first, 3, SLOW_WAY, Some(bad));
    ended.unwrap_err();
    // A clock is another from here on.
    rename(path, SLOW_WAY, SET);
    let again = [&["--resume", &out][..], &options].concat();
    let (ended, measured) = run(&again, 3, SET, None);
    assert_eq!((ended.unwrap(), measured), (0, vec![bad]));
    let document: Value = serde_json::from_str(&text(path, columns::FABRIC)).unwrap();
    assert_eq!(document["resumed_at"], serde_json::json!([6]));
}
