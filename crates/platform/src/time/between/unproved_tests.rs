//! Messages that prove nothing, and what is declared.

use super::simulated::*;
use super::*;
use crate::time::Nanos;

#[test]
fn a_clock_that_is_set_or_changes_its_rate_in_the_middle_is_a_contradiction() {
    let mut random = Noise::new(7);
    let before = Truth {
        theta: 5_000,
        ppb: 10_000,
    };
    let half = 500_000_000;
    for (what, after) in [
        (
            "set",
            Truth {
                theta: 55_000,
                ..before
            },
        ),
        (
            "set back",
            Truth {
                theta: -45_000,
                ..before
            },
        ),
        (
            "faster by 200 ppm",
            Truth {
                theta: 5_000 - 100_000,
                ppb: 210_000,
            },
        ),
    ] {
        let whole = a_second(before, &mut random)
            .into_iter()
            .zip(a_second(after, &mut random));
        let probes = whole.zip(0..).map(|((early, late), number)| {
            if number * 1_000_000 < half {
                early
            } else {
                late
            }
        });
        let probes: Vec<Probe> = probes.collect();
        for limit in [
            RateLimit::ANY,
            RateLimit::new(500).unwrap(),
            RateLimit::CONSTANT,
        ] {
            let found = contradiction(messages_of(&probes), limit);
            assert!((2..=4).contains(&found.messages.len()), "{what}: {found}");
            assert!(found.missing_ns > 10_000, "{what}: {found}");
            for message in &found.messages {
                assert!(
                    messages_of(&probes).any(|other| other == *message),
                    "{what}: {message:?}"
                );
            }
            let again = contradiction(found.messages.iter().copied(), limit);
            assert_eq!(again.missing_ns, found.missing_ns);
        }
        // Each half by itself is none.
        for part in [&probes[..500], &probes[500..]] {
            Bounds::prove(messages_of(part), RateLimit::ANY).unwrap();
        }
    }
}

#[test]
fn a_contradiction_is_explained() {
    let at = |ns: u64| Nanos(1_000_000 + ns);
    let messages = [
        Message::forward(at(0), at(500)),
        Message::backward(at(2_000), at(1_100)),
    ];
    let found = Bounds::prove(messages, RateLimit::CONSTANT).unwrap_err();
    assert!(found.is_contradiction());
    assert_eq!(
        found.to_string(),
        "the exchanges contradict each other by 400 ns if the peer's clock runs at the rate of this one: by the \
         forward message posted at 1000000 ns and received at 1000500 ns it was ahead by 500 ns at most; by the \
         backward message posted at 1002000 ns and received at 1001100 ns it was ahead by 900 ns at least. A clock \
         was set or changed its rate while it was measured, or a stamp is wrong"
    );
    let limit = RateLimit::new(1_000).unwrap();
    let found = Bounds::prove(messages, limit).unwrap_err().to_string();
    assert!(
        found.contains("by 399 ns even if the peer's clock runs +1000.000 ppm faster"),
        "{found}"
    );
    assert!(found.contains("of what is allowed (1000 ppm)"), "{found}");
    // If B may be twice as fast, it gains what is missing.
    let bounds = Bounds::prove(messages, RateLimit::ANY).unwrap();
    assert!(bounds.rate_ppm()[0] <= 4e8 / 1_100.0 && 4e8 / 1_100.0 - 1.1e-4 < bounds.rate_ppm()[0]);
}

#[test]
fn two_messages_at_one_time_contradict_each_other_at_all_rates() {
    let at = |ns: u64| Nanos(1_000_000 + ns);
    let bent = [(0, 1_000), (1_000, 900), (2_000, 1_000)];
    let forward = bent.map(|(own, theta)| Message::forward(at(own), at(own + theta)));
    let backward = Message::backward(at(1_950), at(1_000));
    let found = contradiction(forward.into_iter().chain([backward]), RateLimit::ANY);
    assert_eq!((found.missing_ns, found.rate_ppm), (50, 0.0));
    assert_eq!(found.messages, [backward, forward[1]]);
}

#[test]
fn too_few_messages_and_stamps_of_other_years_are_refused() {
    let message = Message::forward(Nanos(5), Nanos(9));
    let answer = Message::backward(Nanos(5), Nanos(9));
    let missing =
        |messages: &[Message]| match Bounds::prove(messages.iter().copied(), RateLimit::ANY) {
            Err(BoundsError::OneWayOnly { missing }) => missing,
            other => panic!("{other:?}"),
        };
    assert_eq!(missing(&[]), Direction::Forward);
    assert_eq!(missing(&[answer]), Direction::Forward);
    assert_eq!(missing(&[message, message]), Direction::Backward);
    for (posted, received) in [
        (0, 1 << 63),
        (u64::MAX, u64::MAX),
        (5, 1 << 62),
        (1 << 62, 5),
        (1 << 62, 1 << 62),
    ] {
        let far = Message::forward(Nanos(posted), Nanos(received));
        let found = Bounds::prove([message, answer, far], RateLimit::ANY).unwrap_err();
        assert_eq!(found, BoundsError::TooFarApart { message: far });
        assert!(!found.is_contradiction() && found.to_string().contains("years away"));
    }
    // The first message is where the origin is: what then follows is far from it, or it is no reading.
    let far = Message::forward(Nanos(u64::MAX), Nanos(0));
    assert!(Bounds::prove([far, message, answer], RateLimit::ANY).is_err());
    assert_eq!(RateLimit::new(1_000_001), None);
}

#[test]
fn what_is_declared_narrows_the_bounds_or_contradicts_them() {
    let mut random = Noise::new(3);
    let truth = Truth {
        theta: 1_000,
        ppb: 500,
    };
    let probes = a_second(truth, &mut random);
    let proved = Bounds::prove(messages_of(&probes), RateLimit::ANY).unwrap();
    let middle = proved.middle();
    // From 200 to 1800 or so is proved at the start, and 500 ns more at the end.
    let declared = proved.declared(1_700).unwrap();
    for at in [0, 500_000_000, 999_000_000] {
        let span = declared.at(Truth::a(at));
        assert!(
            is_in(span, truth.theta(at)) && span.high_ns <= 1_700,
            "{span:?}"
        );
        assert!(span.width_ns() < proved.at(Truth::a(at)).width_ns());
    }
    let wide = proved.declared(1_000_000).unwrap();
    assert_eq!(wide.at(middle), proved.at(middle));
    let found = proved.declared(100).unwrap_err();
    assert!(found.is_contradiction());
    let text = found.to_string();
    assert!(
        text.starts_with(
            "the clocks were declared to agree within 100 ns, and the exchanges prove that"
        ),
        "{text}"
    );
    let BoundsError::Declared { proved: span, .. } = found else {
        panic!("{found:?}")
    };
    assert!(span.low_ns > 100);

    // Clocks whose epochs have nothing to do with each other do not agree.
    for theta in [1_000_000_000_000_000_000, -2_900_000_000_000_000_000] {
        let probes = a_second(Truth { theta, ppb: 0 }, &mut random);
        let proved = Bounds::prove(messages_of(&probes), RateLimit::ANY).unwrap();
        assert!(proved.declared(5_000).unwrap_err().is_contradiction());
        proved.declared(u64::MAX).unwrap();
        proved.declared(i64::MAX as u64).unwrap();
    }
}
