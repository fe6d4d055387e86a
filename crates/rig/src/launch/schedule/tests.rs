use crate::testing::Refused as _;
use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn at_most(count: u32) -> Concurrency {
    Concurrency::AtMost(NonZeroU32::new(count).unwrap())
}

fn all(ranks: u32) -> Schedule {
    Schedule::new(ranks, Concurrency::Together)
}

fn assert_disjoint(batch: &[Pair]) {
    let ranks: HashSet<u32> = batch.iter().flat_map(|pair| pair.ranks()).collect();
    assert_eq!(ranks.len(), 2 * batch.len(), "{batch:?}");
}

#[test]
fn each_pair_is_in_one_round_and_rounds_are_disjoint() {
    for ranks in 2..=130 {
        let schedule = all(ranks);
        assert_eq!(
            schedule.rounds(),
            if ranks % 2 == 0 { ranks - 1 } else { ranks }
        );
        let mut seen = HashSet::new();
        for round in 0..schedule.rounds() {
            let pairs: Vec<Pair> = schedule.round(round).collect();
            assert_eq!(pairs.len() as u32, ranks / 2);
            assert_disjoint(&pairs);
            for pair in pairs {
                assert!(pair.lower() < pair.higher() && pair.higher() < ranks);
                assert_eq!(schedule.round_of(pair), round, "{pair} of {ranks}");
                assert!(seen.insert(pair), "{pair} of {ranks} is there twice");
            }
        }
        assert_eq!(seen.len() as u64, schedule.pairs());
    }
}

#[test]
fn a_round_of_very_many_ranks_is_at_hand_at_once() {
    let schedule = Schedule::new(1 << 16, Concurrency::Alone);
    assert_eq!(schedule.pairs(), 2_147_450_880);
    assert_eq!(schedule.batches().next().unwrap().len(), 1);
    let last: Vec<Pair> = schedule.round(schedule.rounds() - 1).collect();
    assert_eq!(last.len(), 1 << 15);
    assert_disjoint(&last);
}

fn sample(ranks: u32, count: u32, seed: u64) -> Schedule {
    all(ranks).with(Partners::AtMost(NonZeroU32::new(count).unwrap()), seed)
}

#[test]
fn a_sample_gives_each_rank_its_partners_and_each_pair_the_same_chance() {
    for ranks in [8, 9, 64, 65] {
        for count in [1, 3, 6] {
            let schedule = sample(ranks, count, 7);
            let pairs: Vec<Pair> = schedule.batches().flatten().collect();
            assert_eq!(pairs.len() as u64, schedule.pairs());
            assert_eq!(schedule.batches().count() as u64, schedule.batch_count());
            schedule.batches().for_each(|batch| assert_disjoint(&batch));
            assert_eq!(pairs.iter().collect::<HashSet<_>>().len(), pairs.len());
            for (rank, partners) in (0..).zip(schedule.partners()) {
                let with = pairs.iter().filter(|pair| pair.ranks().contains(&rank));
                assert_eq!(with.count() as u32, partners, "{rank} of {ranks}");
                assert!((count..=count + ranks % 2).contains(&partners));
            }
            // The same seed draws the same, and what is missing of it fits into as many batches.
            let again = sample(ranks, count, 7).batches().flatten();
            assert!(again.eq(pairs.iter().copied()));
            assert!(schedule.batches_of(pairs).len() as u64 <= schedule.batch_count());
        }
        for count in [ranks - 1, ranks, 10 * ranks] {
            assert_eq!(sample(ranks, count, 7), all(ranks));
        }
        assert_eq!(all(ranks).partners(), vec![ranks - 1; ranks as usize]);
        assert_eq!(all(ranks).with(Partners::All, 7).sampled(), None);
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..2000 {
            for pair in sample(ranks, 2, seed).batches().flatten() {
                *counts.entry(pair).or_insert(0_u32) += 1;
            }
        }
        let all_pairs = all(ranks).all_pairs();
        let expected = 2000.0 * sample(ranks, 2, 0).pairs() as f64 / all_pairs as f64;
        assert_eq!(counts.len() as u64, all_pairs);
        for (pair, count) in counts {
            let beyond = (f64::from(count) - expected) / expected.sqrt();
            assert!(
                beyond.abs() < 5.0,
                "{pair} of {ranks}: {count}, not {expected}"
            );
        }
    }
}

#[test]
fn a_sample_has_pairs_of_nearly_each_block_of_neighbours() {
    let (ranks, block, mut without) = (1024, 32, 0);
    for seed in 0..20 {
        // By chance each block has 7.8 of its pairs.
        let pairs = sample(ranks, 16, seed).batches().flatten();
        let blocks = pairs.map(|pair| pair.ranks().map(|rank| rank / block));
        let found: HashSet<u32> = blocks
            .filter(|[one, other]| one == other)
            .map(|of| of[0])
            .collect();
        without += (ranks / block) as usize - found.len();
    }
    assert!(without <= 6, "{without} of 640 blocks have no pair");
}

#[test]
fn the_time_is_known_before() {
    let time = |ranks, concurrency| {
        Schedule::new(ranks, concurrency)
            .time(Duration::from_millis(300))
            .as_secs_f64()
    };
    assert!((time(512, Concurrency::Together) / 60.0 - 2.555).abs() < 0.001);
    assert!((time(512, Concurrency::Alone) / 3600.0 - 10.9).abs() < 0.05);
    assert_eq!(Schedule::new(8, at_most(3)).batch_count(), 14);
    assert_eq!(Schedule::new(2, Concurrency::Together).batch_count(), 1);
}

#[test]
fn concurrency_is_read_as_it_is_written() {
    for text in ["alone", "together", "1", "64"] {
        assert_eq!(text.parse::<Concurrency>().unwrap().to_string(), text);
    }
    for text in ["", "0", "-1", "both", "1.5"] {
        text.parse::<Concurrency>().refused(&["alone", "together"]);
    }
}

#[test]
fn some_of_all_pairs_of_very_many_ranks_take_no_more_batches_than_all() {
    let schedule = all(256);
    let pairs = (0..schedule.rounds()).flat_map(|round| schedule.round(round));
    let batches = schedule.batches_of(pairs.filter(|pair| pair.lower() % 3 != 1));
    assert!(batches.len() <= 255, "{}", batches.len());
    let alone = Schedule::new(256, Concurrency::Alone);
    let few = (1..200).map(|rank| Pair::of(rank, 0));
    assert_eq!(alone.batches_of(few).len(), 199);
}

proptest! {
    #[test]
    fn batches_are_disjoint_small_enough_and_complete(
        ranks in 2_u32..=130,
        count in 1_u32..70,
        some in proptest::collection::vec((0_u32..130, 0_u32..130), 0..300),
    ) {
        let schedule = Schedule::new(ranks, at_most(count));
        let batches: Vec<_> = schedule.batches().collect();
        prop_assert_eq!(batches.len() as u64, schedule.batch_count());
        prop_assert_eq!(batches.iter().flatten().count() as u64, schedule.pairs());
        let some: HashSet<Pair> = some
            .into_iter()
            .filter(|(one, other)| one != other && one.max(other) < &ranks)
            .map(|(one, other)| Pair::of(one, other))
            .collect();
        let twice = some.iter().chain(&some).copied();
        let packed = schedule.batches_of(twice);
        for batch in batches.iter().chain(&packed) {
            prop_assert!(!batch.is_empty() && batch.len() <= count as usize);
            assert_disjoint(batch);
        }
        let found: Vec<Pair> = packed.iter().flatten().copied().collect();
        prop_assert_eq!(found.len(), some.len());
        prop_assert_eq!(found.into_iter().collect::<HashSet<_>>(), some);
        prop_assert!(all(ranks).batches_of(batches.into_iter().flatten()).len() as u32 <= all(ranks).rounds());
    }
}
