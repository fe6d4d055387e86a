use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use super::super::sealing::{self, GREETING};
use super::super::wire::{WireError, listen_at};
use super::*;
use crate::testing::{Has as _, Refused as _};

const LIMIT: Duration = Duration::from_secs(30);

fn secret(text: &str) -> Secret {
    Secret::of(text.as_bytes()).unwrap()
}

fn ours() -> Secret {
    secret("the secret of these tests")
}

fn entrance(secret: Option<Secret>, most: usize, patience: Duration) -> (Entrance, SocketAddr) {
    let listener = listen_at("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let door = Door {
        listeners: vec![listener],
        secret,
    };
    (Entrance::new(door, most, patience).unwrap(), address)
}

/// What has arrived, once there is something.
fn next(entrance: &mut Entrance) -> Vec<Arrival> {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        let arrivals = entrance.wait(20).unwrap();
        if !arrivals.is_empty() {
            return arrivals;
        }
    }
    panic!("nothing arrived");
}

/// Why that many connections are refused.
fn refusals(entrance: &mut Entrance, count: usize) -> Vec<String> {
    let mut reasons = Vec::new();
    while reasons.len() < count {
        for arrival in next(entrance) {
            match arrival {
                Arrival::Refused(_, reason) => reasons.push(reason),
                Arrival::Greeting(_, greeting) => panic!("it was let in: {greeting}"),
            }
        }
    }
    reasons
}

fn one_refused(entrance: &mut Entrance) -> String {
    refusals(entrance, 1).remove(0)
}

fn connect(to: SocketAddr, secret: Option<&Secret>) -> Result<Wire, WireError> {
    let mut wire = Wire::connect(to, LIMIT)?;
    wire.show(secret, LIMIT)?;
    wire.send(&hello(), LIMIT)?;
    Ok(wire)
}

/// As long as a greeting is at the least, which is longer than that of an end with a secret.
fn hello() -> Value {
    json!({ "from": "afar", "host": "a host with a name of some length", "run": "of this test" })
}

/// What a stranger gets, until its connection is closed.
fn answer(mut stream: TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut all = Vec::new();
    // A connection with bytes that were not read is reset.
    if let Err(error) = stream.read_to_end(&mut all) {
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    }
    all
}

#[test]
fn who_has_the_secret_is_let_in_and_both_ways_are_sealed() {
    let (mut entrance, address) = entrance(Some(ours()), 4, LIMIT);
    let client = std::thread::spawn(move || {
        let mut wire = connect(address, Some(&ours())).unwrap();
        let back: Vec<u32> = wire.receive(LIMIT).unwrap();
        (wire.is_sealed(), back.len())
    });
    let Arrival::Greeting(mut wire, greeting) = next(&mut entrance).remove(0) else {
        panic!("it was refused");
    };
    assert!(wire.is_sealed() && !wire.is_exposed());
    assert_eq!(greeting, hello());
    // More than a frame.
    let large: Vec<u32> = (0..300_000).collect();
    wire.send(&large, LIMIT).unwrap();
    assert_eq!(client.join().unwrap(), (true, large.len()));
}

#[test]
fn another_secret_or_none_is_named_at_both_ends() {
    let (mut entrance, address) = entrance(Some(ours()), 4, LIMIT);
    for (theirs, here, there) in [
        (
            Some(secret("the secret of other tests")),
            "another secret",
            "the secrets differ, or it has none",
        ),
        (
            None,
            "shows no secret, and there is one here",
            "if it has a secret, give this end the same",
        ),
    ] {
        let client = std::thread::spawn(move || {
            let mut wire = connect(address, theirs.as_ref())?;
            wire.receive::<u8>(LIMIT)
        });
        one_refused(&mut entrance).has(&[here, "--secret-file or HCABENCH_SECRET"]);
        let unanswered = "closed the connection before it answered";
        client.join().unwrap().refused(&[unanswered, there]);
    }
    let (mut open, address) = self::entrance(None, 4, LIMIT);
    let client = std::thread::spawn(move || connect(address, Some(&ours())).map(drop));
    one_refused(&mut open).has(&["shows a secret, and there is none here"]);
    client.join().unwrap().refused(&["the secrets differ"]);
}

#[test]
fn a_stranger_gets_not_a_byte() {
    // One that is shorter than a greeting might go on.
    let patience = Duration::from_millis(100);
    let (mut entrance, address) = entrance(Some(ours()), 64, patience);
    let (_, wrong) = sealing::begin(&secret("the secret of other tests"));
    let cases: [&[u8]; 9] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\n",
        b"{}\n",
        b"{\"hello\":{}}\n",
        b"\x16\x03\x01\x02\x00",
        &[0xff; 100_000],
        &[0; 50],
        &wrong,
        &[0, 49],
    ];
    for case in cases {
        let mut stream = TcpStream::connect(address).unwrap();
        // It may be gone before all is written.
        let _ = stream.write_all(case);
        one_refused(&mut entrance);
        assert_eq!(answer(stream), b"", "{:?}", &case[..case.len().min(8)]);
    }
    assert!(entrance.strangers.is_empty());
}

#[test]
fn a_greeting_that_holds_an_end_of_a_line_is_still_one_of_a_secret() {
    let (mut entrance, address) = entrance(None, 4, LIMIT);
    let mut greetings = std::iter::repeat_with(|| sealing::begin(&ours()).1);
    let greeting = greetings.find(|it| it.contains(&b'\n')).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&greeting).unwrap();
    one_refused(&mut entrance).has(&["shows a secret, and there is none here"]);
}

#[test]
fn where_others_can_connect_without_a_secret_is_known() {
    for (address, secret, expected) in [
        ("127.0.0.1:0", None, false),
        ("0.0.0.0:0", None, true),
        ("0.0.0.0:0", Some(ours()), false),
    ] {
        let listener = listen_at(address.parse().unwrap()).unwrap();
        let listeners = vec![listener];
        assert_eq!(Door { listeners, secret }.is_open(), expected, "{address}");
    }
    assert_eq!(
        [room(1 << 20, 512), room(1024, 512), room(256, 512)],
        [1024, 256, 64]
    );
}

#[test]
fn a_greeting_in_single_bytes_or_cut_short_takes_no_more_than_its_time() {
    let patience = Duration::from_millis(300);
    let (mut entrance, address) = entrance(Some(ours()), 64, patience);
    let (_, greeting) = sealing::begin(&ours());
    let begun = Instant::now();
    let mut streams: Vec<TcpStream> = Vec::new();
    for length in [0, 1, 2, GREETING - 1, GREETING] {
        let mut stream = TcpStream::connect(address).unwrap();
        for byte in &greeting[..length] {
            stream.write_all(&[*byte]).unwrap();
        }
        streams.push(stream);
    }
    let reasons = refusals(&mut entrance, streams.len());
    assert!(begun.elapsed() >= patience);
    assert!(
        reasons.iter().all(|it| it.contains("in time")),
        "{reasons:?}"
    );
    let last = streams.pop().unwrap();
    assert_eq!(
        answer(last).len(),
        GREETING,
        "the answer to what showed the secret"
    );
    for stream in streams {
        assert_eq!(answer(stream), b"");
    }
}

#[test]
fn a_connection_that_is_replayed_is_not_let_in() {
    let (mut entrance, address) = entrance(Some(ours()), 64, LIMIT);
    // What a genuine end sends, as somebody on the way sees it.
    let (begun, greeting) = sealing::begin(&ours());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&greeting).unwrap();
    let mut back = [0; GREETING];
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    while entrance
        .strangers
        .values()
        .all(|(wire, _)| !wire.is_sealed())
    {
        assert!(entrance.wait(20).unwrap().is_empty());
    }
    stream.read_exact(&mut back).unwrap();
    let line = begun
        .conclude(&back)
        .unwrap()
        .seal(b"{\"from\":\"afar\"}\n");
    stream.write_all(&line).unwrap();
    assert!(matches!(next(&mut entrance)[0], Arrival::Greeting(..)));
    let mut again = TcpStream::connect(address).unwrap();
    again.write_all(&[&greeting[..], &line].concat()).unwrap();
    one_refused(&mut entrance).has(&["does not decrypt"]);
    assert!(answer(again).len() <= GREETING);
}

#[test]
fn whoever_has_the_secret_comes_in_while_thousands_do_not_greet() {
    const MOST: usize = 128;
    // As `--peer` does.
    const ATTEMPTS: usize = 5;
    let (mut entrance, address) = entrance(Some(ours()), MOST, LIMIT);
    // One of them is recorded, and is answered as if it were not.
    let recorded = sealing::begin(&ours()).1;
    let flood = std::thread::spawn(move || {
        let mut kept = Vec::new();
        for number in 0..2000_u32 {
            if let Ok(mut stream) = TcpStream::connect(address) {
                let sent = [&[][..], &[0, 48, 7], &recorded][number as usize % 3];
                let _ = stream.write_all(sent);
                kept.push(stream);
            }
            if kept.len() > 200 {
                kept.remove(0);
            }
        }
    });
    let client = std::thread::spawn(move || {
        let mut failures = Vec::new();
        for _ in 0..20 {
            let mut failed = Vec::new();
            while failed.len() < ATTEMPTS
                && let Err(error) = connect(address, Some(&ours()))
            {
                failed.push(error.to_string());
                std::thread::sleep(Duration::from_millis(100));
            }
            failures.extend((failed.len() == ATTEMPTS).then_some(failed));
        }
        failures
    });
    let mut greeted = 0;
    while !flood.is_finished() || !client.is_finished() {
        for arrival in entrance.wait(20).unwrap() {
            greeted += u32::from(matches!(arrival, Arrival::Greeting(..)));
        }
        assert!(entrance.strangers.len() <= MOST);
    }
    let rest = entrance.wait(0).unwrap();
    greeted += rest
        .iter()
        .filter(|it| matches!(it, Arrival::Greeting(..)))
        .count() as u32;
    flood.join().unwrap();
    assert_eq!(client.join().unwrap(), Vec::<Vec<String>>::new());
    assert_eq!(greeted, 20);
}

#[test]
fn without_room_the_oldest_that_shows_no_secret_goes() {
    let (mut entrance, address) = entrance(Some(ours()), 2, LIMIT);
    let mut genuine = TcpStream::connect(address).unwrap();
    genuine.write_all(&sealing::begin(&ours()).1).unwrap();
    while entrance
        .strangers
        .values()
        .all(|(wire, _)| !wire.is_sealed())
    {
        entrance.wait(20).unwrap();
    }
    let _silent = [(); 3].map(|()| TcpStream::connect(address).unwrap());
    assert_eq!(refusals(&mut entrance, 2), ["too many connect"; 2]);
    let left: Vec<bool> = entrance
        .strangers
        .values()
        .map(|it| it.0.is_sealed())
        .collect();
    assert_eq!(left, [true, false]);
}
