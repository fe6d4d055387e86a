use super::*;
use crate::node::settings::{Poll, UnixSocket};
use crate::node::tcp::TcpSockets;
use crate::node::test_samples::{
    LIMIT, WORDS, come_to_the_subscribers_of_each_scenario, pool, read, read_all, write,
};
use crate::node::unix::UnixSockets;
use crate::node::{Ends, Node as _, Scenario};
use crate::testing::Has as _;
use nix::sys::socket::{MsgFlags, accept, connect, recv, send};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

type EndsOf<S> = Ends<ConnectedPublisher<S>, ConnectedSubscriber>;

/// A name that no other test has.
fn name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("hcabench-test-{}-{number}", std::process::id())
}

fn settings(words: usize) -> Settings {
    Settings {
        poll: Poll::Event,
        vectorize: 4,
        ..Settings::of_words(words)
    }
}

fn unix(kind: UnixSocket) -> UnixSockets {
    let mut settings = settings(WORDS);
    settings.sockets.unix_socket = kind;
    UnixSockets::of(&settings)
}

/// Runs it with the sockets of each node-type.
macro_rules! with_all {
    ($run:ident) => {
        $run(TcpSockets::of(&settings(WORDS)), "tcp");
        $run(unix(UnixSocket::Stream), "stream");
        $run(unix(UnixSocket::SeqPacket), "seqpacket");
    };
}

/// Ends that are connected.
fn started<S: Sockets>(sockets: S, wiring: &Wiring, settings: &Settings) -> EndsOf<S> {
    let maker = Connected {
        sockets,
        wiring,
        settings,
        name: &name(),
    };
    let mut ends = Ends::of(&maker, wiring).unwrap();
    let mut pool = pool(settings.words);
    for publisher in &mut ends.publishers {
        publisher.start(&mut pool, &mut || true).unwrap();
    }
    for subscriber in &mut ends.subscribers {
        subscriber.start(&mut pool, &mut || true).unwrap();
    }
    ends
}

#[test]
fn samples_come_to_the_subscribers_of_each_scenario() {
    fn run<S: Sockets>(sockets: S, what: &str) {
        come_to_the_subscribers_of_each_scenario(what, |wiring| {
            (started(sockets, wiring, &settings(WORDS)), ())
        });
    }
    with_all!(run);
}

#[test]
fn without_room_samples_are_refused_for_all_and_those_taken_come_whole() {
    /// Larger, so that fewer fill the buffers of the sockets.
    const WORDS: usize = 515;
    fn run<S: Sockets>(sockets: S, what: &str) {
        let wiring = Wiring::new(Scenario::FanOut, 1, 2);
        let mut ends = started(sockets, &wiring, &settings(WORDS));
        let mut pool = pool(WORDS);
        let [one, other] = ends.subscribers.get_disjoint_mut([0, 1]).unwrap();
        let publisher = &mut ends.publishers[0];
        let mut taken = 0;
        let mut found = Vec::new();
        // The one reads all at once, the other nothing.
        while write(publisher, &mut pool, taken) {
            taken += 1;
            assert!(taken < 1_000_000, "{what}");
            found.extend(read(one, &mut pool));
        }
        assert!(
            !write(publisher, &mut pool, taken),
            "{what}: there is no room still"
        );
        let all: Vec<u64> = (0..taken).collect();
        found.extend(read_all(one, &mut pool, all.len() - found.len()));
        assert!(found == all, "{what}: {} of {taken}", found.len());
        // What the publisher has kept comes, although it writes no more.
        let mut found = Vec::new();
        let limit = Instant::now() + LIMIT;
        while found.len() < all.len() && Instant::now() < limit {
            publisher.flush().unwrap();
            found.extend(read(other, &mut pool));
        }
        assert!(found == all, "{what}: {} of {taken}", found.len());
        assert!(
            write(publisher, &mut pool, taken),
            "{what}: there is room again"
        );
    }
    with_all!(run);
}

/// A subscriber and a socket that is to be connected to it.
fn with_stranger<S: Sockets>(
    sockets: S,
    name: &str,
    timeout: Duration,
) -> (ConnectedSubscriber, OwnedFd) {
    let settings = Settings {
        timeout,
        ..settings(WORDS)
    };
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let maker = Connected {
        sockets,
        wiring: &wiring,
        settings: &settings,
        name,
    };
    let (subscriber, told) = maker.subscriber(0).unwrap();
    let stranger = sockets.open(SockFlag::empty()).unwrap();
    let address = sockets.address(&told).unwrap();
    connect(stranger.as_raw_fd(), &address).unwrap();
    (subscriber, stranger)
}

fn put(socket: &OwnedFd, bytes: &[u8]) {
    let sent = send(socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL);
    assert_eq!(sent, Ok(bytes.len()));
}

#[test]
fn a_frame_in_pieces_is_passed_on_once_it_is_whole_and_one_that_ends_early_never() {
    fn run<S: Sockets>(sockets: S, _: &str) {
        let name = name();
        let (mut subscriber, publisher) = with_stranger(sockets, &name, LIMIT);
        let mut pool = pool(WORDS);
        let (start, end) = name.as_bytes().split_at(3);
        put(&publisher, start);
        let mut looks = 0;
        subscriber
            .start(&mut pool, &mut || {
                looks += 1;
                if looks == 3 {
                    put(&publisher, end);
                }
                true
            })
            .unwrap();
        let mut frame = (8 * WORDS as u32).to_le_bytes().to_vec();
        (5000..5003_u64).for_each(|word| frame.extend_from_slice(&word.to_le_bytes()));
        for piece in frame[..27].chunks(9) {
            put(&publisher, piece);
            assert_eq!(read(&mut subscriber, &mut pool), [0; 0]);
        }
        // The last byte, two frames, and the beginning of another.
        put(
            &publisher,
            &[&frame[27..], &frame, &frame, &frame[..20]].concat(),
        );
        assert_eq!(read_all(&mut subscriber, &mut pool, 3), [5, 5, 5]);
        drop(publisher);
        assert_eq!(read(&mut subscriber, &mut pool), [0; 0]);
        assert!(pool.is_whole());
    }
    run(TcpSockets::of(&settings(WORDS)), "tcp");
    run(unix(UnixSocket::Stream), "stream");
}

#[test]
fn frames_and_messages_of_another_size_are_no_samples() {
    fn run<S: Sockets>(sockets: S, what: &str) {
        let name = name();
        let (mut subscriber, publisher) = with_stranger(sockets, &name, LIMIT);
        let mut pool = pool(WORDS);
        put(&publisher, name.as_bytes());
        subscriber.start(&mut pool, &mut || true).unwrap();
        put(&publisher, &[1; 8 * WORDS + 4]);
        let mut samples = Vec::new();
        pool.fill(&mut samples, 1);
        let read = subscriber.read(&mut pool, &mut samples, || false);
        match what {
            "seqpacket" => assert_eq!(read.unwrap(), 0),
            _ => read.unwrap_err().to_string().has(&["a frame of", "24"]),
        }
    }
    with_all!(run);
}

#[test]
fn a_connection_of_another_program_is_closed_and_takes_no_place() {
    fn run<S: Sockets>(sockets: S, what: &str) {
        let (mut subscriber, stranger) =
            with_stranger(sockets, &name(), Duration::from_millis(100));
        put(&stranger, b"GET / HTTP/1.1\r\n");
        let error = subscriber.start(&mut pool(WORDS), &mut || true);
        let error = error.unwrap_err().to_string();
        error.has(&["0 of 1 publishers", "--timeout"]);
        let got = recv(stranger.as_raw_fd(), &mut [0; 1], MsgFlags::empty());
        assert!(
            matches!(got, Ok(0) | Err(Errno::ECONNRESET)),
            "{what}: {got:?}"
        );
    }
    with_all!(run);
}

#[test]
fn a_publisher_finds_that_its_subscriber_has_ended() {
    fn run<S: Sockets>(sockets: S, what: &str) {
        let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
        let mut ends = started(sockets, &wiring, &settings(WORDS));
        ends.subscribers.clear();
        let mut pool = pool(WORDS);
        let mut samples = Vec::new();
        pool.fill(&mut samples, 1);
        // TCP has the answer to the first one only.
        let error = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            ends.publishers[0].write(&mut pool, &mut samples).err()
        });
        let error = error.unwrap_or_else(|| panic!("{what}"));
        assert!(matches!(error, NodeError::PeerEnded(_)), "{what}: {error}");
        ends.publishers[0].flush().unwrap();
    }
    with_all!(run);
}

#[test]
fn a_publisher_waits_for_a_subscriber_that_takes_no_more_at_once() {
    fn run<S: Sockets>(sockets: S, what: &str) {
        let (wiring, settings) = (Wiring::new(Scenario::StraightRun, 1, 1), settings(WORDS));
        let maker = Connected {
            sockets,
            wiring: &wiring,
            settings: &settings,
            name: &name(),
        };
        let listener = sockets.open(SockFlag::SOCK_NONBLOCK).unwrap();
        let told = sockets.bind(&listener, maker.name, 0).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        let address = sockets.address(&told).unwrap();
        // One more than there is room for.
        let strangers = [(); 3].map(|()| sockets.open(SockFlag::SOCK_NONBLOCK).unwrap());
        for stranger in &strangers {
            let _ = connect(stranger.as_raw_fd(), &address);
        }
        let mut publisher = maker.publisher(0, &[told]).unwrap();
        let mut looks = 0;
        let given_up = publisher.start(&mut pool(WORDS), &mut || {
            looks += 1;
            looks < 3
        });
        assert!(
            matches!(given_up, Err(NodeError::GivenUp)),
            "{what}: {given_up:?}"
        );
        // TCP tries again after a second: the attempt outlasts many looks.
        let mut looks = 0;
        let connected = publisher.start(&mut pool(WORDS), &mut || {
            looks += 1;
            if looks == 3 {
                while accept(listener.as_raw_fd()).is_ok() {}
            }
            true
        });
        assert!(connected.is_ok() && looks >= 3, "{what}: {connected:?}");
    }
    with_all!(run);
}
