//! The real conductor with scripted ranks over real sockets: what happens when some of them die, hang, or are others
//! than they should be.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::agent::{Agent, RankWork};
use super::conductor::{Conductor, Limits, Sink};
use super::entrance::Door;
use super::error::LaunchError;
use super::identity::{Identity, Options, Rendezvous};
use super::message::{FromRank, Hello, MeasurementOrder, PairReport, Start, ToRank};
use super::rendezvous;
use super::schedule::{Concurrency, Pair, Schedule};
use super::secret::Secret;
use super::wire::Wire;
use crate::rig::benchmark::Failure;

mod endings;
mod strangers;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
/// Nothing but a failure of the test takes so long.
const LIMITS: Limits = Limits {
    gather: LONG,
    refused: LONG,
    prepare: LONG,
    measure: LONG,
    answer: LONG,
    heartbeat: LONG,
};
/// As long as it takes to find out that a rank is hung.
const SHORT_LIMITS: Limits = Limits {
    measure: Duration::from_secs(2),
    answer: Duration::from_secs(3),
    heartbeat: SHORT,
    ..LIMITS
};

/// What was measured, by round and pair; the inner error: why not.
#[derive(Debug, Default)]
struct MeasuredPairs(BTreeMap<(u32, Pair), Result<PairReport, String>>);

impl Sink for MeasuredPairs {
    fn report(&mut self, pair: Pair, round: u32, report: PairReport) -> Result<(), LaunchError> {
        assert!(
            self.0.insert((round, pair), Ok(report)).is_none(),
            "{pair} twice"
        );
        Ok(())
    }

    fn left_out(&mut self, pair: Pair, round: u32, reason: &str) -> Result<(), LaunchError> {
        let before = self.0.insert((round, pair), Err(reason.to_owned()));
        assert!(before.is_none(), "{pair} twice");
        Ok(())
    }
}

impl MeasuredPairs {
    /// The ranks that are in every pair without figures, and the reasons.
    fn missing(&self) -> (BTreeSet<Pair>, String) {
        let missing = self
            .0
            .iter()
            .filter_map(|((_, pair), kept)| Some((*pair, kept.as_ref().err()?)));
        let (pairs, reasons): (BTreeSet<Pair>, Vec<&String>) = missing.unzip();
        (pairs, format!("{reasons:?}"))
    }
}

/// All pairs of these ranks that one of the others is in.
fn pairs_with(ranks: u32, bad: &[u32]) -> BTreeSet<Pair> {
    let schedule = Schedule::new(ranks, Concurrency::Together);
    let all = schedule.batches().flatten();
    all.filter(|pair| pair.ranks().iter().any(|rank| bad.contains(rank)))
        .collect()
}

struct Scripted<F>(F);

impl<F: FnMut(&MeasurementOrder) -> Result<PairReport, String>> RankWork for Scripted<F> {
    fn prepare(&mut self, start: &Start) -> Result<Value, String> {
        Ok(json!({ "place": start.place, "of": start.share.1 }))
    }

    fn measure(&mut self, order: &MeasurementOrder) -> Result<PairReport, String> {
        (self.0)(order)
    }
}

fn good(_: &MeasurementOrder) -> Result<PairReport, String> {
    Ok(PairReport::default())
}

/// A place to meet, and the messages of all ranks there.
struct SimulatedRendezvous {
    listener: TcpListener,
    place: Rendezvous,
    ranks: u32,
}

type RankThread = JoinHandle<Result<(), LaunchError>>;

impl SimulatedRendezvous {
    fn of(ranks: u32) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let place = Rendezvous {
            hosts: vec!["127.0.0.1".to_owned()],
            port: listener.local_addr().unwrap().port(),
        };
        SimulatedRendezvous {
            listener,
            place,
            ranks,
        }
    }

    /// Every second rank is on another host.
    fn hello(&self, rank: u32) -> Hello {
        let options = Options {
            rank: Some(rank),
            ranks: Some(self.ranks),
            rendezvous: Some("127.0.0.1".to_owned()),
        };
        let identity = Identity::find(&options, &|_| None, &format!("n{rank}")).unwrap();
        let serves = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 7000 + rank as u16));
        Hello::new(
            &identity,
            json!({ "size": 8 }),
            (format!("boot{}", rank % 2), "0-3".to_owned()),
            serves,
        )
    }

    fn attend<F>(&self, rank: u32, measure: F) -> RankThread
    where
        F: FnMut(&MeasurementOrder) -> Result<PairReport, String> + Send + 'static,
    {
        let (place, hello) = (self.place.clone(), self.hello(rank));
        spawn(move || Agent::meet(&place, &hello, LONG)?.attend(&mut Scripted(measure)))
    }

    fn attend_well(&self, ranks: impl IntoIterator<Item = u32>) -> Vec<RankThread> {
        ranks
            .into_iter()
            .map(|rank| self.attend(rank, good))
            .collect()
    }

    /// A rank that comes, gets ready, and then runs a script, with its connection.
    fn misbehave(&self, rank: u32, then: impl FnOnce(Wire) + Send + 'static) -> JoinHandle<()> {
        let (place, hello) = (self.place.clone(), self.hello(rank));
        spawn(move || {
            let mut wire = rendezvous::meet(&place, &hello, None, LONG).unwrap();
            let start: ToRank = wire.receive(LONG).unwrap();
            assert!(matches!(start, ToRank::Start(_)));
            wire.send(&FromRank::Ready(Ok(Value::Null)), LONG).unwrap();
            then(wire);
        })
    }

    fn gather(&self, limits: Limits) -> Result<Conductor, LaunchError> {
        self.gather_unless(limits, || None)
    }

    fn gather_unless(
        &self,
        limits: Limits,
        signal: fn() -> Option<Signal>,
    ) -> Result<Conductor, LaunchError> {
        let listener = self.listener.try_clone().unwrap();
        Conductor::gather_unless(listener.into(), self.hello(0).terms, limits, signal)
    }

    /// Measures all pairs, all of a round at once.
    fn measure(&self, conductor: &mut Conductor) -> MeasuredPairs {
        let mut kept = MeasuredPairs::default();
        let schedule = Schedule::new(self.ranks, Concurrency::Together);
        conductor.measure(0, schedule.batches(), &mut kept).unwrap();
        assert_eq!(
            kept.0.len() as u64,
            schedule.pairs(),
            "each pair is accounted for"
        );
        kept
    }
}

fn dropped(conductor: &Conductor) -> Vec<u32> {
    conductor.dropped().keys().copied().collect()
}

fn joined(attending: Vec<RankThread>) -> Vec<Result<(), LaunchError>> {
    attending
        .into_iter()
        .map(|rank| rank.join().unwrap())
        .collect()
}

#[test]
fn all_pairs_are_measured_by_the_lower_rank_which_knows_its_partner() {
    let meeting = SimulatedRendezvous::of(5);
    let work = |rank: u32| {
        move |order: &MeasurementOrder| {
            assert_eq!(order.pair.lower(), rank);
            assert_eq!(order.partner_node, format!("n{}", order.pair.higher()));
            assert_eq!(
                order.partner.to_string(),
                format!("127.0.0.1:{}", 7000 + order.pair.higher())
            );
            assert_eq!(order.limit(), LONG);
            Ok(PairReport {
                begun_unix_ns: u64::from(order.pair.higher()),
                ..PairReport::default()
            })
        }
    };
    let attending: Vec<_> = (0..5)
        .map(|rank| meeting.attend(rank, work(rank)))
        .collect();
    let mut conductor = meeting.gather(LIMITS).unwrap();
    let places: Vec<_> = conductor
        .members()
        .map(|(_, prepared)| prepared.to_string())
        .collect();
    assert_eq!(
        places[3], r#"{"place":1,"of":2}"#,
        "the second of those with its boot id"
    );
    assert_eq!(places[4], r#"{"place":2,"of":3}"#);
    let kept = meeting.measure(&mut conductor);
    for ((_, pair), report) in &kept.0 {
        assert_eq!(
            report.as_ref().unwrap().begun_unix_ns,
            u64::from(pair.higher())
        );
    }
    // Again, as another round.
    let pairs = vec![vec![Pair::of(1, 4), Pair::of(3, 2)], vec![Pair::of(0, 1)]];
    let mut again = MeasuredPairs::default();
    conductor.measure(1, pairs, &mut again).unwrap();
    assert_eq!(again.0.len(), 3);
    assert!(dropped(&conductor).is_empty() && conductor.remarks().is_empty());
    conductor.end(None);
    assert!(joined(attending).iter().all(Result::is_ok));
}

#[test]
fn alone_is_alone_and_together_is_at_the_same_time() {
    let meeting = SimulatedRendezvous::of(4);
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let both = Arc::new(Barrier::new(2));
    let work = || {
        let (running, most, both) = (running.clone(), most.clone(), both.clone());
        move |order: &MeasurementOrder| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            match order.round {
                0 => sleep(Duration::from_millis(5)),
                // Comes back only if the other pair of the round measures, too.
                _ => drop(both.wait()),
            }
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(PairReport::default())
        }
    };
    let attending: Vec<_> = (0..4).map(|rank| meeting.attend(rank, work())).collect();
    let mut conductor = meeting.gather(LIMITS).unwrap();
    let mut kept = MeasuredPairs::default();
    let alone = Schedule::new(4, Concurrency::Alone);
    conductor.measure(0, alone.batches(), &mut kept).unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let together = Schedule::new(4, Concurrency::Together);
    conductor.measure(1, together.batches(), &mut kept).unwrap();
    assert_eq!((kept.0.len(), most.load(Ordering::SeqCst)), (12, 2));
    conductor.end(None);
    assert!(joined(attending).iter().all(Result::is_ok));
}

#[test]
fn a_rank_that_dies_is_named_and_the_others_go_on() {
    let meeting = SimulatedRendezvous::of(6);
    // One dies while it measures, one while it serves: its partner waits for it a while.
    let attending = meeting.attend_well([0, 1, 4]);
    let dies = meeting.misbehave(2, |mut wire| drop(wire.receive::<ToRank>(LONG).unwrap()));
    let serves = meeting.misbehave(5, drop);
    let fails_with_5 = meeting.attend(3, |order| match order.pair.higher() {
        5 => Err("the partner is lost".to_owned()),
        _ => good(order),
    });
    let mut conductor = meeting.gather(LIMITS).unwrap();
    let kept = meeting.measure(&mut conductor);
    let (missing, reasons) = kept.missing();
    assert!(missing.is_subset(&pairs_with(6, &[2, 5])), "{missing:?}");
    assert!(
        missing.contains(&Pair::of(2, 5)) && missing.len() >= 4,
        "{missing:?}"
    );
    assert_eq!(dropped(&conductor), [2, 5]);
    for words in [
        "rank 2 (n2) is lost",
        "rank 5 (n5) is lost",
        "has closed the connection",
    ] {
        assert!(reasons.contains(words), "{words} is not in {reasons}");
    }
    conductor.end(None);
    dies.join().unwrap();
    serves.join().unwrap();
    assert!(joined(attending).iter().all(Result::is_ok));
    fails_with_5.join().unwrap().unwrap();
}

#[test]
fn a_rank_that_hangs_is_named_whether_it_measures_serves_or_waits() {
    // Rank 0 measures in all its pairs, rank 4 serves in all.
    let cases = [0, 2, 4].map(|hung| spawn(move || one_hangs(hung)));
    cases.into_iter().for_each(|case| case.join().unwrap());
}

fn one_hangs(hung: u32) {
    let meeting = SimulatedRendezvous::of(5);
    let end = Arc::new(AtomicBool::new(false));
    let ended = end.clone();
    let hangs = meeting.misbehave(hung, move |_wire| {
        while !ended.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(10));
        }
    });
    let work = move |order: &MeasurementOrder| match order.pair.higher() == hung {
        true => Err("no answer".to_owned()),
        false => good(order),
    };
    let others = (0..5).filter(|rank| *rank != hung);
    let attending: Vec<_> = others.map(|rank| meeting.attend(rank, work)).collect();
    let mut conductor = meeting.gather(SHORT_LIMITS).unwrap();
    let kept = meeting.measure(&mut conductor);
    let (missing, reasons) = kept.missing();
    assert_eq!(missing, pairs_with(5, &[hung]));
    assert_eq!(dropped(&conductor), [hung], "{reasons}");
    assert!(
        reasons.contains("did not answer an order") || reasons.contains("it is hung"),
        "{reasons}"
    );
    end.store(true, Ordering::SeqCst);
    conductor.end(None);
    hangs.join().unwrap();
    assert!(joined(attending).iter().all(Result::is_ok));
}

#[test]
fn who_fails_with_two_partners_is_dropped_and_nobody_else() {
    for bad in [&[3][..], &[1, 4], &[0, 2, 7]] {
        let meeting = SimulatedRendezvous::of(8);
        let work = move |order: &MeasurementOrder| match order
            .pair
            .ranks()
            .iter()
            .any(|rank| bad.contains(rank))
        {
            true => Err("retries exceeded".to_owned()),
            false => good(order),
        };
        let attending: Vec<_> = (0..8).map(|rank| meeting.attend(rank, work)).collect();
        let mut conductor = meeting.gather(LIMITS).unwrap();
        let (missing, reasons) = meeting.measure(&mut conductor).missing();
        assert_eq!(dropped(&conductor), *bad, "{reasons}");
        assert_eq!(missing, pairs_with(8, bad));
        assert!(reasons.contains(": retries exceeded") && reasons.contains("failed with ranks"));
        conductor.end(Some("incomplete"));
        for ended in joined(attending).into_iter().filter_map(Result::err) {
            assert!(
                matches!(ended, LaunchError::Ended(_) | LaunchError::Gone(_)),
                "{ended}"
            );
        }
    }
}

#[test]
fn a_direction_that_fails_leaves_the_other_in_the_results() {
    let meeting = SimulatedRendezvous::of(2);
    let attending: Vec<_> = (0..2)
        .map(|rank| {
            meeting.attend(rank, |order| {
                let mut report = good(order)?;
                report.directions[1].failure = Some("lost".to_owned());
                Ok(report)
            })
        })
        .collect();
    let mut conductor = meeting.gather(LIMITS).unwrap();
    let kept = meeting.measure(&mut conductor);
    let report = kept.0[&(0, Pair::of(0, 1))].as_ref().unwrap();
    assert_eq!(report.directions[1].failure.as_deref(), Some("lost"));
    // With one partner only.
    assert!(dropped(&conductor).is_empty());
    conductor.end(None);
    assert!(joined(attending).iter().all(Result::is_ok));
}
