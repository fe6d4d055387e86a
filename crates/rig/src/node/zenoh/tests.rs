use super::*;
use crate::node::settings::Poll;
use crate::node::test_samples::{
    WORDS, come_to_the_subscribers_of_each_scenario, pool, read, write,
};
use crate::node::{Ends, Node as _};
use crate::testing::Has as _;

fn settings(poll: Poll) -> Settings {
    Settings {
        poll,
        vectorize: 4,
        receive_queue: 8,
        ..Settings::of_words(WORDS)
    }
}

fn started(wiring: &Wiring, poll: Poll) -> Ends<ZenohPublisher, ZenohSubscriber> {
    let maker = Zenoh {
        wiring,
        settings: &settings(poll),
        name: "hcabench-test",
    };
    let mut ends = Ends::of(&maker, wiring).unwrap();
    for publisher in &mut ends.publishers {
        publisher.start(&mut pool(WORDS), &mut || true).unwrap();
    }
    ends
}

#[test]
fn samples_come_to_the_subscribers_of_each_scenario() {
    for (poll, what) in [(Poll::Busy, "busy"), (Poll::Event, "event")] {
        come_to_the_subscribers_of_each_scenario(what, |wiring| (started(wiring, poll), ()));
    }
}

#[test]
fn a_subscriber_that_has_ended_is_waited_for_as_long_as_allowed() {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let settings = Settings {
        timeout: Duration::from_millis(100),
        ..settings(Poll::Event)
    };
    let maker = Zenoh {
        wiring: &wiring,
        settings: &settings,
        name: "hcabench-test",
    };
    let (subscriber, locator) = maker.subscriber(0, &[]).unwrap();
    drop(subscriber);
    let (mut publisher, _) = maker.publisher(0, &[locator]).unwrap();
    let mut pool = pool(WORDS);
    let error = publisher.start(&mut pool, &mut || true).unwrap_err();
    error.to_string().has(&["0 of 1 subscribers", "--timeout"]);
    let error = publisher.start(&mut pool, &mut || false).unwrap_err();
    assert!(matches!(error, NodeError::GivenUp), "{error}");
}

#[test]
fn samples_of_another_run_do_not_come() {
    let wiring = Wiring::new(Scenario::StraightRun, 1, 1);
    let mut ends = started(&wiring, Poll::Event);
    let (session, _) = ends.publishers[0].open.as_ref().unwrap();
    session.put("hcabench-other/0", [0; 24]).wait().unwrap();
    // That of another size is not one of this run.
    session.put("hcabench-test/0", [0; 23]).wait().unwrap();
    let mut pool = pool(WORDS);
    assert!(write(&mut ends.publishers[0], &mut pool, 7));
    assert_eq!(read(&mut ends.subscribers[0], &mut pool), [7]);
}
