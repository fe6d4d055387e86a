//! How runs begin without some of the ranks, and how they end.

use super::*;
use crate::testing::Refused as _;

#[test]
fn who_does_not_come_or_cannot_measure_is_left_out() {
    struct Unable;
    impl RankWork for Unable {
        fn prepare(&mut self, _: &Start) -> Result<Value, String> {
            Err("no active port".to_owned())
        }
        fn measure(&mut self, _: &MeasurementOrder) -> Result<PairReport, String> {
            unreachable!("it cannot")
        }
    }
    let meeting = SimulatedRendezvous::of(4);
    let attending = meeting.attend_well([0, 3]);
    let (place, hello) = (meeting.place.clone(), meeting.hello(1));
    let unable = spawn(move || Agent::meet(&place, &hello, LONG)?.attend(&mut Unable));
    let limits = Limits {
        gather: Duration::from_secs(5),
        ..LIMITS
    };
    let mut conductor = meeting.gather(limits).unwrap();
    let (missing, reasons) = meeting.measure(&mut conductor).missing();
    assert_eq!(missing, pairs_with(4, &[1, 2]));
    assert!(
        reasons.contains("rank 1 (n1) cannot measure: no active port"),
        "{reasons}"
    );
    assert!(
        reasons.contains("rank 2 did not join within 5s"),
        "{reasons}"
    );
    conductor.end(None);
    assert!(joined(attending).iter().all(Result::is_ok));
    unable.join().unwrap().refused(&["no active port"]);
}

#[test]
fn ranks_of_another_build_alone_end_the_run_at_once_and_both_are_told() {
    let meeting = SimulatedRendezvous::of(2);
    let attending = meeting.attend_well([0]);
    let (place, mut hello) = (meeting.place.clone(), meeting.hello(1));
    hello.terms.program.version = "0.0.9".to_owned();
    let other = spawn(move || Agent::meet(&place, &hello, LONG).map(drop));
    let limits = Limits {
        refused: SHORT,
        ..LIMITS
    };
    meeting.gather(limits).refused(&[
        "1 of 2 ranks",
        "rank 1 (n1): it is hcabench 0.0.9",
        "one build",
    ]);
    other
        .join()
        .unwrap()
        .refused(&["refuses this process", "0.0.9"]);
    joined(attending).remove(0).refused(&["too few ranks"]);
}

#[test]
fn a_signal_to_rank_0_ends_all() {
    static SIGNALLED: AtomicBool = AtomicBool::new(false);
    let meeting = SimulatedRendezvous::of(3);
    let attending: Vec<_> = (0..3)
        .map(|rank| {
            meeting.attend(rank, |_| {
                SIGNALLED.store(true, Ordering::SeqCst);
                sleep(SHORT);
                Ok(PairReport::default())
            })
        })
        .collect();
    let signal = || SIGNALLED.load(Ordering::SeqCst).then_some(Signal::SIGTERM);
    let mut conductor = meeting.gather_unless(LIMITS, signal).unwrap();
    let schedule = Schedule::new(3, Concurrency::Alone);
    let ended = conductor
        .measure(0, schedule.batches(), &mut MeasuredPairs::default())
        .unwrap_err();
    assert_eq!(
        Failure::from(ended),
        Failure::Interrupted("SIGTERM".to_owned())
    );
    conductor.end(Some("interrupted by SIGTERM"));
    assert!(joined(attending).iter().all(Result::is_err));
}

#[test]
fn a_sink_that_can_keep_nothing_ends_the_run_and_so_does_rank_0() {
    struct Full;
    impl Sink for Full {
        fn report(&mut self, _: Pair, _: u32, _: PairReport) -> Result<(), LaunchError> {
            Err(Failure::Run("no space left on device".to_owned()).into())
        }
        fn left_out(&mut self, _: Pair, _: u32, _: &str) -> Result<(), LaunchError> {
            unreachable!("none fails")
        }
    }
    let meeting = SimulatedRendezvous::of(2);
    let attending = meeting.attend_well([0, 1]);
    let mut conductor = meeting.gather(LIMITS).unwrap();
    conductor
        .measure(0, [vec![Pair::of(0, 1)]], &mut Full)
        .refused(&["no space left"]);
    // As if it were killed.
    drop(conductor);
    for ended in joined(attending) {
        ended.refused(&["rank 0 is lost", "closed the connection"]);
    }
}

#[test]
fn a_rank_does_not_wait_for_ever_for_a_rank_0_that_hangs_or_is_not_there() {
    let meeting = SimulatedRendezvous::of(2);
    let attending = meeting.attend_well([1]);
    let mut wire = Wire::of(meeting.listener.accept().unwrap().0).unwrap();
    let _hello: FromRank = wire.receive(LONG).unwrap();
    wire.send(&ToRank::Welcome, LONG).unwrap();
    let start = Start {
        run: String::new(),
        place: 0,
        share: (0, 1),
        silence_ms: 50,
    };
    wire.send(&ToRank::Start(start), LONG).unwrap();
    joined(attending)
        .remove(0)
        .refused(&["rank 0 is lost", "did not answer within 0.05 s"]);
    let SimulatedRendezvous {
        listener, place, ..
    } = meeting;
    drop((wire, listener));
    let unmet = rendezvous::meet(&place, &SimulatedRendezvous::of(2).hello(1), None, SHORT);
    unmet
        .map(drop)
        .refused(&["not reached within 0 s", "127.0.0.1"]);
}

#[test]
fn rank_0_listens_only_where_it_is() {
    let at = |hosts: &[&str], port| Rendezvous {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        port,
    };
    let free = SimulatedRendezvous::of(2).place.port;
    // No host has an address for documentation.
    rendezvous::listen(&at(&["192.0.2.7"], free)).refused(&["192.0.2.7", "--rendezvous"]);
    let listening = rendezvous::listen(&at(&["192.0.2.7", "127.0.0.1"], free)).unwrap();
    assert_eq!(
        listening.local_addr().unwrap().to_string(),
        format!("127.0.0.1:{free}")
    );
    rendezvous::listen(&at(&["127.0.0.1"], free)).refused(&["127.0.0.1", "another port"]);
    drop(listening);
    // Others may know this host by another address than that of its loopback.
    let named = rendezvous::listen(&at(&["localhost"], free)).unwrap();
    assert!(named.local_addr().unwrap().ip().is_unspecified());
}
