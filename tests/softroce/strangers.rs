//! Messages of others: a datagram queue pair of this process sends to the receiving one of a run.

use crate::testing::Has as _;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hcabench::buffer::{HugePagePolicy, PayloadBuffer};
use hcabench::rdma::cm::{Connection, EventChannel, IdService};
use hcabench::rdma::verbs::{
    Access, AddressHandle, Destination, MemoryRegion, PollResult, ProtectionDomain, SendRequest,
    ServiceType,
};
use hcabench::time::Ticks;

use crate::connections::{accepting, connecting, listening};
use crate::loss::wait_for_traffic;
use crate::machine::{Machine, sh, wait_until};
use crate::program::LIMIT;
use crate::results::Results;

const STEP: Duration = Duration::from_secs(20);
/// Of a burst of so many; a stranger's messages bear the number of the last one, which is not sent yet when they come.
const BURST: u32 = 5000;
const WORDS: &str = "--service ud --burst 5000 --pause 2ms --warmup 0";
/// What the stranger sends; a run has receive requests for some more messages than its own.
const STRANGE: u64 = 20;
const LARGEST: u32 = 512;

struct Stranger {
    domain: Arc<ProtectionDomain>,
    region: Arc<MemoryRegion>,
    connection: Connection,
    _peer: Connection,
}

impl Stranger {
    fn new() -> Self {
        let channel = EventChannel::create().unwrap();
        let of = ServiceType::UnreliableDatagram;
        let service = (IdService::UnreliableDatagram, of);
        let listener = listening(&channel, service.0);
        let (domain, active) = connecting(&channel, service, listener.address());
        let accepting = accepting(&listener, of);
        let payload = PayloadBuffer::new(1, LARGEST as usize, 0, HugePagePolicy::Off).unwrap();
        payload.slot(0).store_stamp(Ticks(0xabab_abab_abab_abab));
        Stranger {
            region: MemoryRegion::register(&domain, Arc::new(payload), Access::Send).unwrap(),
            domain,
            connection: active.established(STEP).unwrap(),
            _peer: accepting.established(STEP).unwrap(),
        }
    }

    fn send(&self, queue_pair: u32, bytes: u32, immediate_data: u32) {
        let vector = self.connection.address().unwrap();
        let handle =
            AddressHandle::create(&self.domain, &vector.to_queue_pair(queue_pair)).unwrap();
        let destination = Destination::Datagram(handle);
        let mut request = SendRequest::new(&self.region, bytes, destination, false);
        request.aim(self.region.extent().0, immediate_data, true);
        let own = self.connection.queue_pair();
        own.post_send(&mut request).unwrap();
        let mut sent = own.send_queue().poller();
        let deadline = Instant::now() + STEP;
        loop {
            match sent.poll() {
                PollResult::Done(_) => return,
                PollResult::Empty => assert!(Instant::now() < deadline, "it does not leave"),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn queue_pairs() -> BTreeSet<u32> {
    let listed: serde_json::Value =
        serde_json::from_str(&sh("rdma -j resource show qp")).expect("rdma prints JSON");
    let all = listed.as_array().expect("a list of queue pairs");
    all.iter()
        .filter(|one| one["ifname"] == "rxe1" && one["type"] == "UD")
        .map(|one| one["lqpn"].as_u64().unwrap() as u32)
        .collect()
}

fn new_queue_pair(known: &BTreeSet<u32>) -> u32 {
    let new: Vec<u32> = queue_pairs().difference(known).copied().collect();
    let [one] = new[..] else {
        panic!("queue pairs of the run: {new:?}");
    };
    one
}

library_tests! {
    fn messages_of_others_are_counted_as_such_and_blamed_on_nobody() {
        let machine = Machine::take();
        let stranger = Stranger::new();
        let known = queue_pairs();
        for timestamp in ["submit", "send"] {
            let out = machine.out(timestamp);
            let words = format!("{WORDS} --timestamp {timestamp}");
            let running = machine.start_as(&out, &words);
            wait_for_traffic();
            let receiver = new_queue_pair(&known);
            for _ in 0..STRANGE {
                stranger.send(receiver, 8, BURST - 1);
            }
            let ended = running.wait(LIMIT).expect(0);
            let results = Results::at(&out);
            results.check(1);
            let row = &results.summary().rows[0];
            assert_eq!(row.count("messages_foreign"), STRANGE);
            assert_eq!(row.count("messages_received"), u64::from(BURST));
            row.has_no(&["lost", "corrupted", "duplicated", "late"]);
            // A stranger's eight bytes would be a stamp of a time in years.
            assert!(row.decimal("latency_max_ns") < 60e9);
            ended.warns(&format!("{STRANGE} messages at this run's queue pair came from other senders"));
            ended.stdout.lacks(&["arrived twice", "after their burst", "wrong data"]);
            wait_until("the queue pairs of the run are gone", STEP, || queue_pairs() == known);
        }
    }
    /// rxe then stops the queue pair: the run cannot go on, and says what may have come.
    fn a_message_of_others_that_is_too_large_is_named_as_the_cause() {
        let machine = Machine::take();
        let stranger = Stranger::new();
        let known = queue_pairs();
        let running = machine.start(WORDS);
        wait_for_traffic();
        stranger.send(new_queue_pair(&known), LARGEST, BURST - 1);
        running
            .wait(LIMIT)
            .expect(1)
            .says(&["ud-send-8B", "receiving", "message larger than --size"]);
        assert!(machine.results().is_marked());
    }
}
