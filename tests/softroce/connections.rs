//! The library: queue pairs, connecting, and what is left when all is dropped.

use crate::testing::Has as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hcabench::bench::hca::ends::endpoints::{
    EndPort, EndpointSettings, Endpoints, Receives, STEP_LIMIT, StepLimit,
};
use hcabench::bench::hca::ends::{BurstPort, ReceivingEnd, SendingEnd};
use hcabench::bench::hca::error::RunError;
use hcabench::bench::hca::loops::port::SendPort;
use hcabench::bench::hca::loops::tag::Tag;
use hcabench::bench::hca::plan::{Plan, Point, made_up::single};
use hcabench::bench::hca::settings::comp_vector::CompletionVectors;
use hcabench::bench::hca::settings::config::{Poll, Service, Switch};
use hcabench::buffer::HugePagePolicy;
use hcabench::rdma::cm::{
    ActiveEndpoint, CmError, EventChannel, IdService, PassiveEndpoint, PendingConnection, UcRoute,
};
use hcabench::rdma::verbs::{
    Capabilities, CompletionQueue, Context, OutstandingReads, PollResult, ProtectionDomain,
    QueuePair, QueuePairAttributes, Retries, ServiceType, WorkCompletion, granted_inline,
};
use hcabench::time::Ticks;

use crate::machine::{Disturbance, ENDS, Machine, sh};

pub(crate) const SERVICES: [Service; 3] = [Service::Rc, Service::Uc, Service::Ud];
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn ends() -> [EndPort; 2] {
    ENDS.map(|(device, _, address)| EndPort {
        device: device.to_owned(),
        port: 1,
        address: Some(address.parse().unwrap()),
    })
}

pub(crate) fn settings(service: Service) -> EndpointSettings {
    EndpointSettings {
        point: Point {
            service,
            burst: 16,
            depth: 16,
            inline: Switch::On,
            ..Plan::new(&single()).points[0]
        },
        uc_route: UcRoute::Endpoint,
        receives: Receives {
            requests: 16,
            slots: 16,
        },
        reads: 0,
        comp_vectors: CompletionVectors::default(),
        limit: StepLimit::Each(STEP_LIMIT),
        huge_pages: HugePagePolicy::Off,
        hw_timestamps: false,
        sender_cpu: 0,
        receiver_cpu: 1,
    }
}

pub(crate) fn address(end: usize) -> IpAddr {
    ENDS[end].2.parse().unwrap()
}

pub(crate) fn attributes(context: &Arc<Context>, service: ServiceType) -> QueuePairAttributes {
    let queue = CompletionQueue::create(context, 8, false, 0).unwrap();
    QueuePairAttributes {
        service,
        capabilities: Capabilities {
            send_requests: 4,
            receive_requests: 4,
            inline_bytes: 8,
        },
        send_elements: 1,
        send_queue: Arc::clone(&queue),
        receive_queue: queue,
        shared_requests: None,
    }
}

pub(crate) const RC: (IdService, ServiceType) = (
    IdService::ReliableConnection,
    ServiceType::ReliableConnection,
);

pub(crate) fn listening(channel: &Arc<EventChannel>, service: IdService) -> PassiveEndpoint {
    PassiveEndpoint::listen(channel, service, ("rxe1", 1), address(1), 1).unwrap()
}

pub(crate) fn connecting(
    channel: &Arc<EventChannel>,
    (service, of): (IdService, ServiceType),
    to: SocketAddr,
) -> (Arc<ProtectionDomain>, PendingConnection) {
    let (from, to) = (("rxe0", 1), (address(0), to));
    let end = ActiveEndpoint::resolve(channel, service, from, to, None, LIMIT).unwrap();
    let domain = ProtectionDomain::allocate(&end.context()).unwrap();
    let (queue_pair, retries) = (attributes(&end.context(), of), Retries::default());
    let connecting = end.connect(&domain, queue_pair, retries, OutstandingReads::default());
    (domain, connecting.unwrap())
}

pub(crate) fn accepting(listener: &PassiveEndpoint, of: ServiceType) -> PendingConnection {
    let end = listener.request(LIMIT).unwrap();
    let domain = ProtectionDomain::allocate(&end.context()).unwrap();
    let (queue_pair, retries) = (attributes(&end.context(), of), Retries::default());
    let accepting = end.accept(&domain, queue_pair, retries, OutstandingReads::default());
    accepting.unwrap()
}

/// Whether a number is that of a thread of this process, which is what the kernel lists as pid.
fn is_ours(thread: &serde_json::Value) -> bool {
    Path::new("/proc/self/task")
        .join(thread.to_string())
        .is_dir()
}

/// As the kernel says: `ibv_query_qp` answers the service type out of the library's own record.
pub(crate) fn type_and_state(queue_pair: &QueuePair) -> (String, String) {
    let listed: serde_json::Value =
        serde_json::from_str(&sh("rdma -j resource show qp")).expect("rdma prints JSON");
    let is_it = |entry: &&serde_json::Value| {
        entry["ifname"] == queue_pair.device_name()
            && entry["lqpn"] == queue_pair.number()
            && is_ours(&entry["pid"])
    };
    let all = listed.as_array().expect("a list of queue pairs");
    let found: Vec<_> = all.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{} of {listed}", queue_pair.number());
    let text = |key: &str| found[0][key].as_str().expect(key).to_owned();
    (text("type"), text("state"))
}

/// Sends slot 2 with the stamp 4711 where the receive request is in slot 3, and returns the completion of its arrival.
pub(crate) fn send_one(endpoints: &Endpoints, tag: Tag, what: &str) -> WorkCompletion {
    endpoints.receiver.post(3).unwrap();
    let mut port = endpoints.sender.port();
    port.set_tag(tag);
    port.prepare(2, true);
    port.stamp(Ticks(4711));
    port.post().unwrap();
    let mut poller = endpoints.receiver.queue_pair().receive_queue().poller();
    let deadline = Instant::now() + LIMIT;
    loop {
        match poller.poll() {
            PollResult::Done(completion) => break completion,
            PollResult::Empty => assert!(Instant::now() < deadline, "{what}: nothing arrived"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

library_tests! {
    fn both_ends_have_the_service_type_asked_for_and_are_ready() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let [from, to] = ends();
        for service in SERVICES {
            let endpoints = Endpoints::connect(Some(&channel), &from, &to, &settings(service)).unwrap();
            let expected = service.name().to_uppercase();
            for (queue_pair, device, states) in [
                (endpoints.sender.queue_pair(), "rxe0", &["RTS"][..]),
                // A passive end need not be able to send.
                (endpoints.receiver.queue_pair(), "rxe1", &["RTS", "RTR"]),
            ] {
                let (found, state) = type_and_state(queue_pair);
                assert_eq!(found, expected);
                assert!(states.contains(&state.as_str()), "{service:?} {device}: {state}");
                assert_eq!(queue_pair.device_name(), device);
            }
            assert!(endpoints.sender.queue_pair().granted().inline_bytes >= 8);
            assert!(endpoints.sender.queue_pair().granted().send_requests >= 16);
            assert!(endpoints.receiver.queue_pair().granted().receive_requests >= 16);
            assert_eq!(endpoints.sender.link().trouble(), None);
            assert_eq!(endpoints.receiver.link().trouble(), None);
        }
    }

    /// What the device says it grants it does grant, and not a byte more.
    fn the_largest_inline_size_is_the_largest() {
        let _machine = Machine::take();
        let context = Arc::new(Context::open_by_name("rxe0").unwrap());
        let channel = EventChannel::create().unwrap();
        let [from, to] = ends();
        for service in SERVICES {
            let granted = granted_inline(&context, ServiceType::from(service)).unwrap();
            let with = |size: u32| {
                let mut settings = settings(service);
                settings.point.size = size;
                Endpoints::connect(Some(&channel), &from, &to, &settings)
            };
            let size = granted / 8 * 8;
            let endpoints = with(size).unwrap();
            assert!(endpoints.sender.queue_pair().granted().inline_bytes >= size);
            let refused = with(size + 8).unwrap_err();
            let is_call = matches!(refused, RunError::Connection(CmError::Call { .. }));
            let is_inline = matches!(refused, RunError::Inline { .. });
            assert!(is_call || is_inline, "{refused}");
        }
    }

    fn a_message_arrives_with_its_immediate_data() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let [from, to] = ends();
        let endpoints = Endpoints::connect(Some(&channel), &from, &to, &settings(Service::Rc)).unwrap();
        let completion = send_one(&endpoints, Tag::new(0xfeed), "RC");
        assert_eq!(completion.work_request_id, 3);
        assert_eq!(completion.immediate_data, 0xfeed_0002);
        assert_eq!(completion.byte_count, 8);
        assert_eq!(endpoints.receiver.payload().slot(3).load_stamp().0, 4711);
    }

    fn a_late_acceptance_is_waited_for() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let listener = listening(&channel, RC.0);
        let (_, active) = connecting(&channel, RC, listener.address());
        let accepting = std::thread::spawn(move || {
            sleep(Duration::from_millis(1200));
            accepting(&listener, RC.1).established(LIMIT).unwrap()
        });
        let begun = Instant::now();
        let connection = active.established(LIMIT).unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(1));
        let peer = accepting.join().unwrap();
        assert_eq!(type_and_state(connection.queue_pair()).1, "RTS");
        assert!(connection.ending().is_none() && peer.ending().is_none());
        // One end hears that the other has gone.
        drop(peer);
        crate::machine::wait_until("the end is told", LIMIT, || connection.ending().is_some());
    }

    fn a_peer_that_does_not_listen_refuses() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let nobody = SocketAddr::new(address(1), 4242);
        let (_, active) = connecting(&channel, RC, nobody);
        let error = active.established(LIMIT).unwrap_err();
        assert!(matches!(error, CmError::Event { step: "connecting", .. }), "{error}");
        error.has(&["Rejected"]);
    }

    fn a_peer_that_never_answers_is_given_up_in_time() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let listener = listening(&channel, RC.0);
        let limit = Duration::from_millis(700);
        let in_time = |begun: Instant| {
            let took = begun.elapsed();
            assert!((limit..limit + Duration::from_secs(3)).contains(&took), "{took:?}");
        };

        // It got the request and does nothing about it.
        let (_, active) = connecting(&channel, RC, listener.address());
        let begun = Instant::now();
        let error = active.established(limit).unwrap_err();
        in_time(begun);
        assert!(matches!(error, CmError::TimedOut { step: "connecting", .. }), "{error}");
        drop(error);

        // Nobody asks for a connection. (The request from before went with its sender.)
        let other = listening(&channel, RC.0);
        let begun = Instant::now();
        let error = other.request(limit).unwrap_err();
        in_time(begun);
        assert!(matches!(error, CmError::TimedOut { .. }), "{error}");

        // It is not even found.
        let cut = Disturbance::of_everything("veth1", "loss 100%");
        sh("ip neigh flush dev veth0");
        let begun = Instant::now();
        let gone = ActiveEndpoint::resolve(
            &channel,
            RC.0,
            ("rxe0", 1),
            (address(0), listener.address()),
            None,
            limit,
        );
        let took = begun.elapsed();
        assert!(took < limit + Duration::from_secs(3), "{took:?}");
        gone.unwrap_err().to_string().has(&["resolving the address"]);
        drop(cut);
    }

    /// An address that leads to another device than the one asked for is told, and not used.
    fn an_address_of_the_other_device_is_refused() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        for service in [
            IdService::ReliableConnection,
            IdService::UnreliableConnection(UcRoute::Endpoint),
            IdService::UnreliableDatagram,
        ] {
            let error =
                PassiveEndpoint::listen(&channel, service, ("rxe0", 1), address(1), 1).unwrap_err();
            assert!(matches!(error, CmError::WrongDevice { .. }), "{error}");
        }
    }

    /// The neighbour table empty, so that addresses have to be resolved on the way.
    fn connections_need_no_neighbour_known_before() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let [from, to] = ends();
        for _ in 0..3 {
            for service in SERVICES {
                sh("ip neigh flush dev veth0; ip neigh flush dev veth1");
                if let Err(error) = Endpoints::connect(Some(&channel), &from, &to, &settings(service)) {
                    panic!("{service:?}: {error}");
                }
            }
        }
    }

    fn fifty_connections_leave_nothing_behind() {
        let _machine = Machine::take();
        let channel = EventChannel::create().unwrap();
        let [from, to] = ends();
        let connect = |service| {
            let mut events = settings(service);
            (events.point.poll_recv, events.point.poll_comp) = (Poll::Event, Poll::Event);
            drop(Endpoints::connect(Some(&channel), &from, &to, &events).unwrap());
        };
        // What libraries keep for good is there after the first of each kind.
        SERVICES.iter().for_each(|&service| connect(service));
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = (descriptors(), kernel_objects());
        for round in 0..50 {
            connect(SERVICES[round % 3]);
        }
        assert_eq!((descriptors(), kernel_objects()), before);
    }
}

fn kernel_objects() -> String {
    sh("rdma resource show")
}
