//! Plans of made-up sweeps and limits.

use super::made_up::single;
use super::*;
use crate::bench::hca::settings::background::tests::background;

pub(super) fn limits() -> Limits {
    Limits {
        queue_pairs: 600,
        queue_pair_work_requests: 16_384,
        completion_queue_entries: 4096,
        path_mtu: 1024,
        message: 1 << 30,
        reads: 16,
        atomics: true,
        inline: vec![(Service::Rc, 512), (Service::Uc, 512), (Service::Ud, 256)],
    }
}

#[test]
fn one_value_each_is_one_point() {
    let plan = Plan::new(&single()).within(&limits());
    assert_eq!(plan.points.len(), 1);
    assert!(plan.left_out.is_empty());
    assert_eq!(
        plan.points[0].to_string(),
        "rc-send-8B-burst1000-buffer-signaled-recv_busy-comp_busy-submit-monotonic-pause0ns-away0ns"
    );
}

#[test]
fn a_point_at_a_rate_is_named_by_it() {
    let rate = |arrivals| {
        Some(Rate {
            per_second: 5000,
            arrivals,
        })
    };
    let sweep = Sweep {
        rates: vec![rate(Arrivals::Constant), rate(Arrivals::Poisson)],
        ..single()
    };
    let plan = Plan::new(&sweep);
    for (point, (name, longest_us)) in
        (plan.points.iter()).zip([("rate5000", 200), ("poisson5000", 37 * 200)])
    {
        let name = format!("monotonic-{name}-away0ns");
        assert!(point.to_string().ends_with(&name), "{point}");
        assert_eq!(point.mean_pause(), Duration::from_micros(200));
        assert_eq!(point.longest_pause(), Duration::from_micros(longest_us));
    }
}

#[test]
fn a_point_is_named_by_its_queue_pairs_if_there_are_several() {
    let sweep = Sweep {
        queue_pairs: vec![1, 3],
        ..single()
    };
    let plan = Plan::new(&sweep).within(&limits());
    let [one, three] = plan.points[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(three.to_string(), format!("{one}-3queue_pairs"));
    assert_eq!((one.share(1000), three.share(1000)), (1000, 334));
}

#[test]
fn a_point_is_named_by_its_memory_load_if_there_is_one() {
    let mut sweep = single();
    sweep.memory_loads.extend(MemoryLoad::of_percent(50));
    let plan = Plan::new(&sweep).within(&limits());
    let [off, on] = plan.points[..] else {
        panic!("{plan:?}");
    };
    assert!(off.to_string().ends_with("-away0ns"), "{off}");
    assert_eq!(on.to_string(), format!("{off}-memory_load50"));
}

#[test]
fn a_depth_of_a_burst_or_more_is_none_and_a_shorter_one_takes_longer_bursts() {
    let sweep = Sweep {
        bursts: vec![10, 8192],
        depths: vec![None, Some(10), Some(20)],
        queue_pairs: vec![1, 4],
        ..single()
    };
    let plan = Plan::new(&sweep).within(&limits());
    let found: Vec<_> = (plan.points.iter())
        .map(|point| (point.queue_pairs, point.burst, point.depth, point.sends()))
        .collect();
    let expected = [
        (1, 10, 10, 10),
        (1, 8192, 10, 10),
        (1, 8192, 20, 20),
        (4, 10, 10, 3),
        (4, 8192, 10, 10),
        (4, 8192, 20, 20),
    ];
    assert_eq!(found, expected);
    assert!(plan.points[1].to_string().ends_with("away0ns-depth10"));
    // Those that are as long as the burst.
    assert_eq!(plan.left_out.len(), 2);
}

#[test]
fn a_sweep_is_the_product_and_every_point_is_measured_or_has_a_reason() {
    let sweep = Sweep {
        services: Service::ALL.to_vec(),
        operations: vec![Operation::Send, Operation::Write],
        inline: Switch::ALL.to_vec(),
        sizes: crate::bench::hca::settings::config::doubled_sizes(8..=32_768).collect(),
        ..single()
    };
    let plan = Plan::new(&sweep).within(&limits());
    assert_eq!(plan.points.len() + plan.left_out.len(), 3 * 2 * 2 * 13);
    // RC and UC: 13 sizes without inline and the 7 up to 512 B with it; UD send: 8 up to 1024 B, 6 up to 256 B.
    assert_eq!(plan.points.len(), 2 * 2 * (13 + 7) + 8 + 6);
    let names: std::collections::HashSet<_> = plan.points.iter().map(Point::to_string).collect();
    assert_eq!(names.len(), plan.points.len());
}

fn refusal(change: impl FnOnce(&mut Sweep)) -> Result<(), String> {
    let mut sweep = single();
    change(&mut sweep);
    Plan::new(&sweep).within(&limits()).check()
}

#[test]
fn impossible_alone_is_an_error_that_names_the_options() {
    type Case = (fn(&mut Sweep), [&'static str; 2]);
    let cases: [Case; 12] = [
        (
            |sweep| {
                sweep.services = vec![Service::Ud];
                sweep.operations = vec![Operation::Write];
            },
            ["--operation write", "ud"],
        ),
        (
            |sweep| {
                sweep.inline = vec![Switch::On];
                sweep.timestamps = vec![Timestamp::Send];
            },
            ["--timestamp send", "--inline"],
        ),
        (
            |sweep| {
                sweep.services = vec![Service::Ud];
                sweep.sizes = vec![2048];
            },
            ["--size 2048", "1024"],
        ),
        (
            |sweep| {
                sweep.inline = vec![Switch::On];
                sweep.sizes = vec![1024];
            },
            ["--inline", "512"],
        ),
        (|sweep| sweep.bursts = vec![8192], ["--burst 8192", "4096"]),
        (
            |sweep| (sweep.bursts, sweep.queue_pairs) = (vec![3], vec![4]),
            ["--queue-pairs 4", "--burst 3"],
        ),
        (
            |sweep| {
                (sweep.queue_pairs, sweep.timestamps) = (vec![2], vec![Timestamp::Send]);
            },
            ["--queue-pairs 2", "--timestamp send"],
        ),
        (
            |sweep| {
                (sweep.depths, sweep.unsignaled) = (vec![Some(3)], vec![Switch::On]);
            },
            ["--depth 3", "a depth of at least 4"],
        ),
        (
            |sweep| sweep.queue_pairs = vec![601],
            ["--queue-pairs 601", "600"],
        ),
        (
            |sweep| (sweep.bursts, sweep.depths) = (vec![8192], vec![Some(5000)]),
            ["--depth 5000 is impossible", "4096"],
        ),
        // The queue pairs of an end have one completion queue.
        (
            |sweep| (sweep.bursts, sweep.queue_pairs) = (vec![4096], vec![3]),
            ["impossible with --queue-pairs 3", "4095"],
        ),
        (
            |sweep| sweep.backgrounds = vec![Some(background(1, 1 << 31, 1))],
            ["--background 1@2147483648", "1073741824"],
        ),
    ];
    for (change, words) in cases {
        let error = refusal(change).unwrap_err();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn a_sweep_with_something_left_is_no_error_and_one_without_is() {
    let with_sizes = |sizes: &[u32]| {
        refusal(|sweep| {
            sweep.services = vec![Service::Ud];
            sweep.sizes = sizes.to_vec();
        })
    };
    assert_eq!(with_sizes(&[1024, 2048, 4096]), Ok(()));
    let error = with_sizes(&[2048, 4096]).unwrap_err();
    assert!(error.starts_with("none of the 2 points"), "{error}");
}
