//! Rank 0 with scripted ranks over real sockets: its files, and how a run goes on that was broken off.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::launch::agent::{Agent, Work};
use crate::launch::message::{DirectionReport, Hello, Order, PairReport};
use crate::launch::schedule::Pair;
use crate::results::Record;
use crate::results::folder::{MARK, RUNS};
use crate::results::schema::fabric as columns;

const LONG: Duration = Duration::from_secs(60);

/// A name of nodes: only rank 0 comes.
const ALONE: &str = "alone";

/// What was measured, by round.
type Measured = Arc<Mutex<Vec<(u32, Pair)>>>;

/// The ranks of one pair that is slow both ways.
const SLOW: [u32; 2] = [1, 4];

/// A rank that fails with one pair in one round.
struct Scripted {
    fails: Option<(u32, Pair)>,
    measured: Measured,
}

impl Work for Scripted {
    fn measure(&mut self, order: &Order) -> Result<PairReport, String> {
        let place = (order.round, order.pair);
        self.measured.lock().unwrap().push(place);
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
            let failure = (fails && from < to).then(|| "no,\nanswer".to_owned());
            DirectionReport {
                figures,
                failure,
                ..DirectionReport::default()
            }
        };
        Ok(PairReport {
            directions: [direction(low, high), direction(high, low)],
            ..PairReport::default()
        })
    }
}

/// Runs rank 0 and so many scripted ranks. Returns what was measured besides.
fn run(
    options: &[&str],
    ranks: u32,
    node: &'static str,
    fails: Option<(u32, Pair)>,
) -> (anyhow::Result<u8>, Vec<(u32, Pair)>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let measured = Measured::default();
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
        let mut work = Scripted {
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
    assert!(
        error.contains("0 ordered pairs were left out and 1 failed"),
        "{error}"
    );
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
        assert_eq!(text(broken, name), text(whole, name), "{name}");
    }
    let pairs = text(broken, columns::PAIRS);
    assert_eq!(
        (pairs.lines().count(), text(broken, RUNS).lines().count()),
        (13, 25)
    );
    // 1000 + 10 + 2, and 5 more in the second round.
    assert!(
        pairs.contains("n1-to-n2,n1,n2,1,2,fabric,together,complete,,2,"),
        "{pairs}"
    );
    assert!(pairs.contains(",1014.5,"), "{pairs}");
    let (ended, _) = run(&["--resume", &path("broken")], 4, ALONE, None);
    let error = ended.unwrap_err();
    assert!(error.is::<UsageError>() && error.to_string().contains("it is complete"));
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
    assert!(
        error.is::<UsageError>() && error.to_string().contains("--resume"),
        "{error}"
    );
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
