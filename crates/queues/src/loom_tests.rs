//! The interleavings of two threads, and all values the memory model allows, on queues that are small enough for it.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --no-default-features --lib loom`; see `ci/measure check-queues`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::element::Words;
use super::equeue::{Batching, Elasticity};
use super::interface::{Queue, Receiver, Sender, SharedEnds};
use super::many::FanOutSender;
use super::parameters::Parameters;
use super::ring::{self, Memory, RingReceiver, RingSender, Shape};
use super::weakened;
use super::{
    BQueue, BatchingBaton, DemotingBaton, EQueue, FastForward, Ffq, Lamport, LinkedBlocks,
    McRingBuffer, Sharded, TunedFastForward,
};

/// With a second word, that may only be read when the first one is there.
type LoomElement = Words<2>;

fn element(number: u64) -> LoomElement {
    Words::from_words([number, number ^ 1])
}

/// All interleavings in which no thread is interrupted more than three times; an end that finds the queue full or empty
/// lets the other go on.
fn check<S, R>(count: u64, made: impl Fn() -> (S, R) + Sync + Send + 'static)
where
    S: Sender<LoomElement> + 'static,
    R: Receiver<LoomElement> + 'static,
{
    explore(3, move || {
        let (sender, mut receiver) = made();
        let thread = loom::thread::spawn(move || send(sender, 1..=count));
        receive_all(&mut receiver, count);
        thread.join().unwrap();
    });
}

/// All interleavings in which no thread is interrupted more often than this.
fn explore(interruptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.check(run);
}

fn send(mut sender: impl Sender<LoomElement>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        while !sender.enqueue(element(number)) {
            loom::thread::yield_now();
        }
    }
    sender.flush();
}

/// Takes so many, in order, and finds nothing behind them.
fn receive_all(receiver: &mut impl Receiver<LoomElement>, count: u64) {
    for number in 1..=count {
        let received = loop {
            if let Some(received) = receiver.dequeue() {
                break received;
            }
            loom::thread::yield_now();
        };
        assert_eq!(received, element(number));
    }
    assert_eq!(receiver.dequeue(), None);
}

fn shards(capacity: usize, senders: usize, receivers: usize) -> SharedEnds<Sharded, LoomElement> {
    Sharded::shared(capacity, &Parameters::default(), senders, receivers)
}

/// Tries so often to send the numbers from `first` on, and tells how many it could. Of three threads no two may wait for
/// the third: loom would let them wait for ever.
fn try_to_send(sender: &mut impl Sender<LoomElement>, first: u64, attempts: usize) -> u64 {
    let mut next = first;
    for _ in 0..attempts {
        next += u64::from(sender.enqueue(element(next)));
    }
    next - first
}

/// What comes out in so many attempts.
fn try_to_receive(receiver: &mut impl Receiver<LoomElement>, attempts: usize) -> Vec<LoomElement> {
    (0..attempts).filter_map(|_| receiver.dequeue()).collect()
}

/// Each sender's elements come out once and in order, whatever the other one does.
#[test]
fn sharded_of_two_senders() {
    explore(2, || {
        let (senders, mut receivers) = shards(2, 2, 1).unwrap();
        let senders = senders.into_iter().zip([10, 20]);
        let threads: Vec<_> = senders
            .map(|(mut sender, first)| {
                loom::thread::spawn(move || (first, try_to_send(&mut sender, first, 2)))
            })
            .collect();
        let mut all = try_to_receive(&mut receivers[0], 3);
        let sent = threads.into_iter().map(|thread| thread.join().unwrap());
        let sent: Vec<(u64, u64)> = sent.collect();
        // An attempt looks at both rings, and there is one element in each at most.
        all.extend(try_to_receive(&mut receivers[0], 3));
        for (first, count) in sent {
            assert!(count > 0);
            let of_sender = |found: &&LoomElement| found.words()[0] / 10 == first / 10;
            let found: Vec<LoomElement> = all.iter().filter(of_sender).copied().collect();
            let expected: Vec<LoomElement> = (first..first + count).map(element).collect();
            assert_eq!(found, expected);
        }
    });
}

/// One thread sends the numbers from 1 on, two receive, and take what is left once all have ended: the second in so many
/// attempts. Tells how many were sent, and what each took.
fn send_to_two<S, R>(
    mut sender: S,
    mut here: R,
    mut there: R,
    attempts_there: usize,
) -> (u64, Vec<LoomElement>, Vec<LoomElement>)
where
    S: Sender<LoomElement> + 'static,
    R: Receiver<LoomElement> + 'static,
{
    let sending = loom::thread::spawn(move || try_to_send(&mut sender, 1, 3));
    let thread = loom::thread::spawn(move || {
        let taken = try_to_receive(&mut there, 2);
        (there, taken)
    });
    let mut taken_here = try_to_receive(&mut here, 2);
    let sent = sending.join().unwrap();
    let (mut there, mut taken_there) = thread.join().unwrap();
    taken_here.extend(try_to_receive(&mut here, 2));
    taken_there.extend(try_to_receive(&mut there, attempts_there));
    (sent, taken_here, taken_there)
}

/// Each element comes out at one of the receivers, at each of them in order.
#[test]
fn sharded_of_two_receivers() {
    explore(2, || {
        let (mut senders, receivers) = shards(2, 1, 2).unwrap();
        let [here, there] = receivers.try_into().unwrap();
        let (sent, taken_here, taken_there) = send_to_two(senders.remove(0), here, there, 2);
        for taken in [&taken_here, &taken_there] {
            assert!(taken.is_sorted_by_key(|found| found.words()[0]));
        }
        let mut all = [taken_here, taken_there].concat();
        all.sort_by_key(|found| found.words()[0]);
        assert_eq!(all, (1..=sent).map(element).collect::<Vec<_>>());
    });
}

/// All receivers get all elements, each in order; of one that was not taken by all, those behind have nothing.
#[test]
fn one_sender_to_all() {
    explore(2, || {
        let (first, here) = made::<BatchingBaton>(1);
        let (second, there) = made::<BatchingBaton>(2);
        let sender = FanOutSender::new(vec![first, second]);
        let (sent, taken_here, taken_there) = send_to_two(sender, here, there, 3);
        let expected = |count| (1..=count).map(element).collect::<Vec<_>>();
        assert_eq!(taken_there, expected(sent));
        assert!([expected(sent), expected(sent + 1)].contains(&taken_here));
    });
}

/// The ring of run-time size behind the interface of the others.
impl<M: Memory + Send> Sender<LoomElement> for RingSender<M> {
    fn enqueue(&mut self, element: LoomElement) -> bool {
        RingSender::enqueue(self, |at| element.words()[at])
    }
}

impl<M: Memory + Send> Receiver<LoomElement> for RingReceiver<M> {
    fn dequeue(&mut self) -> Option<LoomElement> {
        let mut words = [0; 2];
        RingReceiver::dequeue(self, |at, word| words[at] = word)
            .then(|| LoomElement::from_words(words))
    }
}

#[test]
fn ring() {
    for capacity in [1, 2] {
        check(3, move || {
            ring::tests::ends(1, Shape { capacity, words: 2 })
        });
    }
}

/// A queue just before its indices wrap around, if it has any.
fn made<Q: Queue<LoomElement>>(capacity: usize) -> (Q::Sender, Q::Receiver) {
    Q::starting_at(capacity, usize::MAX - 1).unwrap()
}

/// A queue with these parameters.
fn with<Q: Queue<LoomElement>, const N: usize>(
    capacity: usize,
    given: [usize; N],
) -> (Q::Sender, Q::Receiver) {
    Q::with_parameters(capacity, &Parameters::of(given)).unwrap()
}

macro_rules! check_all {
    ($($name:ident: $queue:ty;)+) => {$(
        #[test]
        fn $name() {
            check(3, || made::<$queue>(1));
            check(3, || made::<$queue>(2));
        }
    )+};
}

check_all! {
    lamport: Lamport;
    fastforward: FastForward;
    mcringbuffer: McRingBuffer;
    b_queue: BQueue;
    equeue: EQueue;
    ffq: Ffq;
    linked_blocks: LinkedBlocks;
    batching_baton: BatchingBaton;
    demoting_baton: DemotingBaton;
    sharded: Sharded;
}

/// Each lap has another size if either end had to wait in the one before.
#[test]
fn equeue_that_changes_its_size() {
    for (capacity, smallest) in [(2, 1), (4, 1), (4, 2)] {
        let elasticity = Elasticity {
            smallest,
            enlarge: 1,
            shrink: 1,
        };
        for batch in [1, 2] {
            let batching = Batching {
                batch,
                slice: 1,
                penalty: 0,
            };
            check(6, move || {
                EQueue::with_elasticity(capacity, elasticity, batching).unwrap()
            });
        }
    }
}

/// Where a batch is more than one element.
#[test]
fn batches() {
    check(5, || with::<McRingBuffer, 1>(8, [2]));
    check(4, || with::<BQueue, 2>(4, [2, 0]));
    check(4, || with::<BQueue, 2>(3, [2, 0]));
    check(4, || with::<EQueue, 3>(4, [2, 1, 0]));
    check(4, || made::<LinkedBlocks>(4));
    check(4, || made::<BatchingBaton>(3));
    check(4, || with::<TunedFastForward, 3>(16, [1, 1, 0]));
    check(3, || with::<TunedFastForward, 3>(2, [1, 1, 0]));
}

/// All tests above, asked of the program itself: one that is added later is among them.
fn all_tests() -> Vec<String> {
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--list", "--format", "terse", HERE])
        .output()
        .unwrap();
    let listed = String::from_utf8(run.stdout).unwrap();
    let names = listed
        .lines()
        .filter_map(|line| line.strip_prefix(HERE)?.strip_suffix(": test"));
    let tests: Vec<String> = names
        .filter(|name| *name != "each_ordering_taken_away_is_found")
        .map(str::to_owned)
        .collect();
    // Of each kind.
    for known in ["lamport", "batches", "one_sender_to_all"] {
        assert!(tests.iter().any(|test| test == known), "{listed}");
    }
    tests
}

const HERE: &str = "loom_tests::";

/// Runs a test in a process of its own, as one that fails leaves loom in no state to go on, and without an ordering.
fn without(ordering: &str, test: &str) -> (bool, String) {
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg(format!("{HERE}{test}"))
        .env(weakened::ORDERING, ordering)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    let ran = |result: &str| told.contains(&format!("test result: {result}"));
    // A process that is aborted, as by a panic within another one, says of its own panic all the same.
    let failed = ran("FAILED. 0 passed; 1 failed") || told.contains("panicked at");
    assert!(failed || ran("ok. 1 passed"), "{test}: {told}");
    assert_eq!(failed, !run.status.success(), "{test}: {told}");
    // Who waits for ever is not wrong by what it sees.
    let counts = failed && !told.contains("exceeded maximum number of branches");
    (counts, told)
}

/// A release or acquire that nothing depends on would stand there for nothing, or for what no test looks at.
#[test]
fn each_ordering_taken_away_is_found() {
    let mut runs: Vec<(Duration, String, String)> = Vec::new();
    for test in all_tests() {
        let began = Instant::now();
        let (failed, told) = without(weakened::LIST, &test);
        assert!(!failed, "{told}");
        runs.push((began.elapsed(), test, told));
    }
    // The quick ones first: one that finds it is enough.
    runs.sort();
    let mut met: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (_, test, told) in &runs {
        for line in told.lines() {
            // The name of the test stands before the first one.
            if let Some((_, place)) = line.split_once(weakened::TOLD) {
                met.entry(place.to_owned()).or_default().push(test);
            }
        }
    }
    for file in [
        "lamport",
        "mcringbuffer",
        "ffq",
        "linked_blocks",
        "slots",
        "ring",
    ] {
        let of = format!("crates/queues/src/{file}.rs:");
        assert!(met.keys().any(|place| place.starts_with(&of)), "{met:?}");
    }
    let mut unseen = Vec::new();
    for (place, tests) in &met {
        match tests.iter().find(|test| without(place, test).0) {
            Some(test) => println!("{place}: found by {test}"),
            None => unseen.push((place, tests)),
        }
    }
    assert!(unseen.is_empty(), "needed by nobody: {unseen:#?}");
}
