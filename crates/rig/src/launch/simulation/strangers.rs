//! Connections that are refused, or send what they should not.

use super::super::wire::WireError;
use super::*;
use crate::testing::Refused as _;

#[test]
fn who_does_not_belong_to_the_run_is_refused_and_the_run_goes_on() {
    let meeting = SimulatedRendezvous::of(3);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, meeting.place.port));
    let attending = meeting.attend_well([0, 1]);
    // They come before rank 2, which all wait for.
    let (place, hello) = (meeting.place.clone(), meeting.hello(2));
    let others = spawn(move || {
        let come = |change: &dyn Fn(&mut Hello), words: &[&str]| {
            let mut hello = hello.clone();
            change(&mut hello);
            let met = rendezvous::meet(&place, &hello, None, LONG);
            met.map(drop).refused(words);
        };
        // A port scan, and a connection that sends nothing and stays.
        drop(TcpStream::connect(address).unwrap());
        let silent = TcpStream::connect(address).unwrap();
        for nonsense in ["GET / HTTP/1.1\r\n\r\n", "{}\n", "\"Pong\"\n", "\u{0}\n"] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(nonsense.as_bytes()).unwrap();
            let mut wire = Wire::of(stream).unwrap();
            let ended = wire.receive::<ToRank>(LONG).unwrap_err();
            assert!(matches!(ended, WireError::Closed(_)), "{nonsense}: {ended}");
        }
        let mut endless = Wire::connect(address, LONG).unwrap();
        // Closed before it is read to its end.
        let _ = endless.send(&"x".repeat(4 << 20), LONG);
        come(
            &|hello| hello.terms.program.commit = Some("beef".into()),
            &["commit beef", "one build", "n2"],
        );
        come(
            &|hello| hello.terms.job.job = "77".into(),
            &["job '77'", "rank 0 of job ''"],
        );
        come(&|hello| hello.terms.ranks = 4, &["one of 4", "one of 3"]);
        come(&|hello| hello.rank = 3, &["one of 3"]);
        let long = "e\u{301}".repeat(10_000);
        come(
            &|hello| hello.node.clone_from(&long),
            &["more than 255 bytes"],
        );
        come(
            &|hello| hello.terms.job.job.clone_from(&long),
            &["it is of job"],
        );
        come(
            &|hello| hello.terms.settings = json!({ "size": 9 }),
            &["other options"],
        );
        let two = Agent::meet(&place, &hello, LONG).unwrap();
        let ended = two.attend(&mut Scripted(good));
        drop(silent);
        ended
    });
    let mut conductor = meeting.gather(LIMITS).unwrap();
    // In the run, too.
    let late = meeting.hello(2);
    let place = meeting.place.clone();
    let late = spawn(move || {
        rendezvous::meet(&place, &late, None, LONG)
            .map(drop)
            .refused(&["rank 2 (n2)", "such a rank already"])
    });
    let mut round = 0;
    while !late.is_finished() {
        let mut kept = MeasuredPairs::default();
        let schedule = Schedule::new(3, Concurrency::Together);
        conductor
            .measure(round, schedule.batches(), &mut kept)
            .unwrap();
        assert!(kept.missing().0.is_empty(), "{:?}", kept.missing());
        round += 1;
    }
    late.join().unwrap();
    let remarks = format!("{:?}", conductor.remarks());
    for words in [
        "GET / HTTP/1.1",
        "more than 64 KiB",
        "other options",
        "has closed",
    ] {
        assert!(remarks.contains(words), "{words} is not in {remarks}");
    }
    let is_short = |remark: &String| remark.len() < 3_000;
    assert!(conductor.remarks().iter().all(is_short), "{remarks}");
    assert!(dropped(&conductor).is_empty());
    conductor.end(None);
    assert!(joined(attending).iter().all(Result::is_ok));
    others.join().unwrap().unwrap();
}

#[test]
fn who_says_nothing_or_a_letter_now_and_then_keeps_nobody_waiting() {
    let meeting = SimulatedRendezvous::of(2);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, meeting.place.port));
    let (silent, mut slow) = [(); 2]
        .map(|()| TcpStream::connect(address).unwrap())
        .into();
    let (place, hello) = (meeting.place.clone(), meeting.hello(1));
    let after = spawn(move || {
        while slow.write_all(b"{").is_ok() {
            sleep(SHORT / 6);
        }
        Agent::meet(&place, &hello, LONG)?.attend(&mut Scripted(good))
    });
    let attending = meeting.attend_well([0]);
    let limits = Limits {
        answer: Duration::from_secs(1),
        ..LIMITS
    };
    let conductor = meeting.gather(limits).unwrap();
    let remarks = format!("{:?}", conductor.remarks());
    let late = remarks.matches("it did not greet in time").count();
    assert!(late >= 2, "{remarks}");
    conductor.end(None);
    assert!(joined(attending).iter().all(Result::is_ok));
    after.join().unwrap().unwrap();
    drop(silent);
}

#[test]
fn a_rank_that_says_what_it_was_not_asked_for_is_dropped() {
    let report = |pair| FromRank::Report {
        round: 0,
        pair,
        report: Box::new(Ok(PairReport::default())),
    };
    let sayings: [(&str, Vec<FromRank>); 3] = [
        ("not requested", vec![report(Pair::of(0, 1))]),
        (
            "not requested",
            vec![FromRank::Hello(Box::new(
                SimulatedRendezvous::of(3).hello(2),
            ))],
        ),
        // On a busy machine the conductor takes them in several turns: one of these has too many.
        ("more than was requested", vec![FromRank::Pong; 500]),
    ];
    for (reason, sayings) in sayings {
        let meeting = SimulatedRendezvous::of(3);
        let said = Arc::new(Barrier::new(2));
        let (says, until) = (said.clone(), Arc::new(AtomicBool::new(false)));
        let ended = until.clone();
        let bad = meeting.misbehave(2, move |mut wire| {
            sayings
                .iter()
                .for_each(|saying| drop(wire.send(saying, LONG)));
            says.wait();
            while !ended.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(5));
            }
        });
        let fails = |order: &MeasurementOrder| match order.pair.higher() {
            2 => Err("no answer".to_owned()),
            _ => good(order),
        };
        let attending: Vec<_> = (0..2).map(|rank| meeting.attend(rank, fails)).collect();
        let mut conductor = meeting.gather(LIMITS).unwrap();
        said.wait();
        let (missing, reasons) = meeting.measure(&mut conductor).missing();
        assert_eq!(missing, pairs_with(3, &[2]));
        assert!(reasons.contains(reason), "{reason} is not in {reasons}");
        until.store(true, Ordering::SeqCst);
        conductor.end(None);
        bad.join().unwrap();
        assert!(joined(attending).iter().all(Result::is_ok));
    }
}

#[test]
fn a_rank_that_others_cannot_reach_ends_the_run_before_it_begins() {
    let meeting = SimulatedRendezvous::of(3);
    let mut attending = meeting.attend_well([0, 1]);
    let (place, mut hello) = (meeting.place.clone(), meeting.hello(2));
    hello.serves.set_ip(Ipv4Addr::LOCALHOST.into());
    attending.push(spawn(move || {
        Agent::meet(&place, &hello, LONG)?.attend(&mut Scripted(good))
    }));
    let ended = meeting.gather(LIMITS).map(drop);
    let error = ended.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    let words = ["rank 2 (n2)", "127.0.0.1", "--bind"];
    Err::<(), _>(error).refused(&words);
    for rank in joined(attending) {
        rank.refused(&words);
    }
}

#[test]
fn ranks_with_the_secret_measure_and_one_with_another_or_none_is_not_admitted() {
    let secret = |text: &str| Secret::of(text.as_bytes()).unwrap();
    let meeting = SimulatedRendezvous::of(3);
    let attend = |rank, secret: Option<Secret>| {
        let (place, hello) = (meeting.place.clone(), meeting.hello(rank));
        let limit = match secret {
            // It may be that rank 0 is busy.
            None => Duration::from_secs(2),
            Some(_) => LONG,
        };
        spawn(move || {
            let agent = Agent::meet_with(secret.as_ref(), &place, &hello, limit)?;
            agent.attend(&mut Scripted(good))
        })
    };
    let strange = vec![
        attend(2, Some(secret("the secret of another job"))),
        attend(2, None),
    ];
    let ours = || Some(secret("the secret of this very job"));
    let attending: Vec<_> = (0..2).map(|rank| attend(rank, ours())).collect();
    let listener = meeting.listener.try_clone().unwrap();
    let door = Door {
        secret: ours(),
        ..listener.into()
    };
    let late = attend(2, ours());
    let terms = meeting.hello(0).terms;
    let mut conductor = Conductor::gather_unless(door, terms, LIMITS, || None).unwrap();
    let kept = meeting.measure(&mut conductor);
    assert!(kept.missing().0.is_empty(), "{:?}", kept.missing());
    // They ask some times more: rank 0 is still there, to be asked.
    while !strange.iter().all(JoinHandle::is_finished) {
        meeting.measure(&mut conductor);
    }
    let remarks = format!("{:?}", conductor.remarks());
    for words in ["has another secret", "shows no secret"] {
        assert!(remarks.contains(words), "{words} is not in {remarks}");
    }
    conductor.end(None);
    let attending = attending.into_iter().chain([late]).collect();
    assert!(joined(attending).iter().all(Result::is_ok));
    let [other, none] = <[_; 2]>::try_from(joined(strange)).unwrap();
    other.refused(&[
        "rank 0 does not admit this rank",
        "the secrets differ",
        "--secret-file",
    ]);
    none.refused(&["rank 0 was not reached within 2 s", "if it has a secret"]);
}
