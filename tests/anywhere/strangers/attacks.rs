//! What strangers do, and an end that lies.

use super::*;

/// Numbers that are the same in each run.
pub(super) struct Drawn(pub(super) u64);

impl Drawn {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A genuine connection, recorded on its way by somebody who has the secret.
pub(super) struct Recorded {
    /// As it was on the wire, to the end that serves.
    wire: Vec<u8>,
    /// Its lines.
    pub(super) lines: Vec<String>,
}

/// Records a run of `node --peer` by passing it on.
pub(super) fn record(folder: &Path, to: SocketAddr) -> Recorded {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let words = format!(
        "--peer {} {EASY} --type udp --rate 200 --count 20",
        listener.local_addr().unwrap()
    );
    let run = node(folder, &words).env("HCABENCH_SECRET", SECRET).start();
    let client = Sealed::over(listener.accept().unwrap().0, SECRET, false).unwrap();
    let server = Sealed::over(TcpStream::connect(to).unwrap(), SECRET, true).unwrap();
    for end in [&client, &server] {
        end.stream
            .set_read_timeout(Some(Duration::from_millis(2)))
            .unwrap();
    }
    let (mut ends, mut lines) = ([client, server], Vec::new());
    // In turn, in one thread: each end has one state of its keys.
    'over: loop {
        for from in 0..2 {
            let mut first = [0];
            match ends[from].stream.peek(&mut first) {
                Ok(0) => break 'over,
                Ok(_) => {
                    ends[from].stream.set_read_timeout(Some(HUNG)).unwrap();
                    let line = ends[from].receive().unwrap();
                    ends[from]
                        .stream
                        .set_read_timeout(Some(Duration::from_millis(2)))
                        .unwrap();
                    ends[1 - from].send(&line).unwrap();
                    if from == 0 {
                        lines.extend(line);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    let wire = std::mem::take(&mut ends[1].sent);
    drop(ends);
    run.wait(LIMIT).expect(0);
    let lines = String::from_utf8(lines)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    Recorded { wire, lines }
}

/// A line in which some numbers are others, lists are shorter or longer, or the end is missing.
fn lied(line: &str, drawn: &mut Drawn) -> String {
    const NUMBERS: [&str; 8] = [
        "0",
        "-1",
        "4294967295",
        "18446744073709551615",
        "1e308",
        "99999999999999999999999",
        "null",
        "[]",
    ];
    match drawn.below(6) {
        0 => line[..drawn.below(line.len())].to_owned(),
        1 => line.replace('[', "[[[[").replace(',', ",,"),
        2 => format!("{line}{line}"),
        3 => line.replacen(']', &(",7".repeat(1 + drawn.below(20_000)) + "]"), 1),
        _ => {
            let mut text = String::new();
            let mut rest = line;
            while let Some(at) = rest.find(|it: char| it.is_ascii_digit()) {
                let end = rest[at..]
                    .find(|it: char| !it.is_ascii_digit())
                    .map_or(rest.len(), |end| at + end);
                let number = match drawn.below(3) {
                    0 => NUMBERS[drawn.below(NUMBERS.len())],
                    _ => &rest[at..end],
                };
                text += &rest[..at];
                text += number;
                rest = &rest[end..];
            }
            text + rest
        }
    }
}

/// What a case came to.
#[derive(Debug, Default, Clone)]
pub(super) struct Outcome {
    pub(super) cases: usize,
    /// Were not even connected; of lies, those that were answered with a failure.
    pub(super) refused: usize,
    pub(super) got_through: usize,
    pub(super) hung: usize,
}

/// Reads until the other end closes. Returns how many bytes came; none: it hung.
fn until_closed(stream: &mut TcpStream) -> Option<usize> {
    let until = Instant::now() + HUNG;
    stream.set_read_timeout(Some(HUNG)).unwrap();
    let (mut came, mut part) = (0, [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return Some(came),
            Ok(count) => came += count,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
                ) =>
            {
                return Some(came);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if Instant::now() > until {
            return None;
        }
    }
}

/// What strangers do. With each, the bytes at most that may come back.
pub(super) const KINDS: [(&str, usize); 12] = [
    ("garbage", 0),
    ("garbage that begins as a greeting does", 0),
    ("nothing at all (half open)", 0),
    ("a byte of a greeting now and then", 0),
    ("an oversized frame", 0),
    ("a greeting that is cut short", 0),
    ("another secret", 0),
    ("no secret: lines of JSON", 0),
    ("a genuine connection, replayed", GREETING),
    ("a genuine connection, replayed with changes", GREETING),
    (
        "a genuine greeting, replayed, then an endless frame",
        GREETING,
    ),
    ("a genuine greeting, replayed, then nothing", GREETING),
];

/// What goes on beside them.
pub(super) const HALF_OPEN: (&str, usize) = ("nothing at all, 2,000 at a time", 0);

/// Does over a new connection what a stranger of that kind does. Returns the bytes that came back; none: it hung.
fn attack(
    kind: usize,
    mut stream: TcpStream,
    recorded: &Recorded,
    drawn: &mut Drawn,
) -> Option<usize> {
    let greeting = &recorded.wire[..GREETING];
    // It may be closed before all is written.
    let mut send = |bytes: &[u8]| stream.write_all(bytes).is_ok();
    match kind {
        0 => {
            let count = drawn.below(3000);
            let mut bytes = drawn.bytes(count);
            // Two bytes might be those of a greeting by chance.
            bytes.iter_mut().take(1).for_each(|first| *first |= 0x80);
            send(&bytes);
        }
        1 => {
            let count = 48 + drawn.below(1000);
            send(&[&[0, 48][..], &drawn.bytes(count)].concat());
        }
        2 => {}
        3 => {
            for byte in greeting.iter().take(40) {
                if !send(&[*byte]) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        4 => {
            send(&[0xff; 2 + 65_535]);
        }
        5 => {
            send(&greeting[..drawn.below(GREETING)]);
            let _ = stream.shutdown(Shutdown::Write);
        }
        6 => {
            let secret = format!("guess number {} of a secret", drawn.next());
            let copy = stream.try_clone().unwrap();
            return match Sealed::over(copy, &secret, true) {
                Ok(_) => Some(usize::MAX),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                // An answer that cannot be read with this secret is one, too.
                Err(error) if error.kind() == ErrorKind::Other => Some(1),
                Err(_) => until_closed(&mut stream),
            };
        }
        7 => {
            send(format!("{}\n", recorded.lines[0]).as_bytes());
        }
        8 => {
            send(&recorded.wire);
        }
        10 => {
            send(&[greeting, &[0xff; 200_000]].concat());
        }
        11 => {
            send(greeting);
        }
        _ => {
            let mut wire = recorded.wire.clone();
            for _ in 0..=drawn.below(3) {
                let place = drawn.below(wire.len());
                wire[place] ^= 1 << drawn.below(8);
            }
            send(&wire);
        }
    }
    until_closed(&mut stream)
}

/// Each kind of stranger in turn, many at a time.
pub(super) fn attack_all(to: SocketAddr, recorded: &Recorded, all: usize) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = std::thread::scope(|scope| {
        let client = || {
            let mut outcomes = vec![Outcome::default(); KINDS.len()];
            loop {
                let case = next.fetch_add(1, Ordering::Relaxed);
                if case >= all {
                    return outcomes;
                }
                let kind = case % KINDS.len();
                let outcome = &mut outcomes[kind];
                outcome.cases += 1;
                let Ok(stream) = TcpStream::connect_timeout(&to, HUNG) else {
                    outcome.refused += 1;
                    continue;
                };
                let came = attack(kind, stream, recorded, &mut Drawn(case as u64 + 1));
                outcome.hung += usize::from(came.is_none());
                outcome.got_through += usize::from(came.is_some_and(|came| came > KINDS[kind].1));
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        clients
            .into_iter()
            .map(|it| it.join().unwrap())
            .collect::<Vec<_>>()
    });
    let mut sum = vec![Outcome::default(); KINDS.len()];
    for outcome in outcomes {
        for (sum, one) in sum.iter_mut().zip(outcome) {
            sum.cases += one.cases;
            sum.refused += one.refused;
            sum.got_through += one.got_through;
            sum.hung += one.hung;
        }
    }
    sum
}

/// Keeps thousands of connections half open, more than serve lets wait, until all else is over. Each is to be closed
/// within its time.
pub(super) fn keep_half_open(to: SocketAddr, over: &AtomicBool) -> Outcome {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(8192), hard).unwrap();
    let mut outcome = Outcome::default();
    while !over.load(Ordering::Relaxed) {
        let connect = |_| TcpStream::connect_timeout(&to, HUNG);
        for stream in (0..2000).map(connect).collect::<Vec<_>>() {
            outcome.cases += 1;
            let Ok(mut stream) = stream else {
                outcome.refused += 1;
                continue;
            };
            let came = until_closed(&mut stream);
            outcome.hung += usize::from(came.is_none());
            outcome.got_through += usize::from(came.is_some_and(|came| came > 0));
        }
    }
    outcome
}

/// What an end with the right secret may send, whatever comes of it: serve must go on, and close the connection once
/// this end does.
pub(super) fn lie(to: SocketAddr, recorded: &Recorded, drawn: &mut Drawn) -> Outcome {
    let mut outcome = Outcome {
        cases: 1,
        ..Outcome::default()
    };
    let Ok(mut sealed) = TcpStream::connect(to).and_then(|it| Sealed::over(it, SECRET, true))
    else {
        outcome.hung = 1;
        return outcome;
    };
    let place = drawn.below(recorded.lines.len());
    for (at, line) in recorded.lines.iter().enumerate() {
        let line = match at == place {
            true => lied(line, drawn),
            false => line.clone(),
        };
        if sealed.send(format!("{line}\n").as_bytes()).is_err() {
            break;
        }
    }
    let _ = sealed.stream.shutdown(Shutdown::Write);
    loop {
        match sealed.receive() {
            Ok(line) if line.starts_with(b"{\"failed\"") => outcome.refused = 1,
            Ok(_) => {}
            Err(error) => {
                outcome.hung = usize::from(error.kind() == ErrorKind::WouldBlock);
                return outcome;
            }
        }
    }
}
