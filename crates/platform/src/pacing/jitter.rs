//! Pseudo-random variance of waits, the same for the same seed.

/// The generator splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014; its
/// constants are those of Vigna's public-domain `splitmix64.c`): one addition and two multiplications a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator for a seed, any number.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// The next number, all 64 bits of it equally likely.
    #[inline(always)]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Puts items in an order that is drawn (Fisher and Yates). The remainder favours small places by less than one in
    /// 2^50 for any slice that fits into memory.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.draw() % (last as u64 + 1)) as usize);
        }
    }
}

/// A variance: each wait is longer or shorter by up to a share of its length, each length between equally likely, so
/// that the mean stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    share: f64,
    generator: SplitMix64,
}

impl Jitter {
    /// A jitter of up to `share` of the wait, 0 to 1.
    pub fn new(share: f64, seed: u64) -> Self {
        assert!(
            (0.0..=1.0).contains(&share),
            "a jitter is a share of the wait from 0 to 1, not {share}"
        );
        Jitter {
            share,
            generator: SplitMix64::new(seed),
        }
    }

    /// The largest deviation from `length`, in its unit.
    pub(super) fn spread(&self, length: u64) -> u64 {
        ((length as f64 * self.share).round() as u64).min(length)
    }

    /// A length from `length - spread` to `length + spread`.
    #[inline(always)]
    pub(super) fn vary(&mut self, length: u64, spread: u64) -> u64 {
        let width = 2 * u128::from(spread) + 1;
        // The high half of a product maps 64 random bits to 0..width (Lemire, ACM TOMACS 29, 2019, without its
        // rejection: the bias is below width / 2^64).
        let offset = (u128::from(self.generator.draw()) * width) >> 64;
        length - spread + offset as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_those_of_the_reference() {
        // The first outputs of the C program for the seed 1234567.
        let mut generator = SplitMix64::new(1_234_567);
        assert_eq!(
            [generator.draw(), generator.draw(), generator.draw()],
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn both_ends_of_a_small_range_come_and_the_mean_stays() {
        let mut jitter = Jitter::new(0.5, 3);
        let spread = jitter.spread(4);
        let drawn: Vec<u64> = (0..10_000).map(|_| jitter.vary(4, spread)).collect();
        assert_eq!(drawn.iter().min(), Some(&2));
        assert_eq!(drawn.iter().max(), Some(&6));
        let mean = drawn.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((mean - 4.0).abs() < 0.1, "{mean}");
    }

    #[test]
    #[should_panic(expected = "from 0 to 1")]
    fn more_than_the_whole_wait_is_refused() {
        Jitter::new(1.01, 0);
    }

    proptest! {
        #[test]
        fn lengths_stay_within_the_share(length in 0_u64..1 << 62, share in 0.0..=1.0_f64, seed in any::<u64>()) {
            let mut jitter = Jitter::new(share, seed);
            let spread = jitter.spread(length);
            for _ in 0..20 {
                let varied = jitter.vary(length, spread);
                prop_assert!(varied >= length - spread && varied <= length + spread);
            }
        }
    }
}
