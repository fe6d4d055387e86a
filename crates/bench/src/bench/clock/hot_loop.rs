//! The loop that watches a clock; every report is made from it.
//!
//! It is generic over the clock and over what is stored, so that each combination is compiled on its own. It judges a
//! difference while the next reading is under way: comparing and storing then cost next to nothing, because a
//! processor does them while it waits for the counter.

use crate::time::{Reading, Ticks};

use super::recorder::Recorder;

/// A difference above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongDifference {
    /// The reading behind it.
    pub end: Ticks,
    /// The difference to the reading before, with wrap-around: a step backwards is a very large number.
    pub difference: u64,
    /// One reading later; the difference up to it is not judged yet. `None` when the pass ended with this one.
    pub after: Option<Ticks>,
}

/// How a pass of the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Readings made, one for each difference.
    pub readings: u64,
    /// The last reading.
    pub last: Ticks,
    /// The difference above the limit that ended it, which is not recorded; if `None`, all were recorded.
    pub found: Option<LongDifference>,
}

/// Reads the clock `readings` times, at least once, or until a difference is above `limit`. The first difference is
/// that to `from`. Differences up to the limit are recorded.
#[inline(never)]
pub fn watch<R: Reading, K: Recorder>(
    clock: &R,
    recorder: &mut K,
    from: Ticks,
    readings: u64,
    limit: u64,
) -> Pass {
    let mut end = clock.read();
    let mut difference = end.0.wrapping_sub(from.0);
    let mut made = 1;
    let mut record = recorder.recording();
    let mut after = None;
    while made < readings {
        let (next, above) = clock.read_beside(|| {
            let above = difference > limit;
            if !above {
                record(difference);
            }
            above
        });
        made += 1;
        if above {
            after = Some(next);
            break;
        }
        difference = next.0.wrapping_sub(end.0);
        end = next;
    }
    let above = difference > limit;
    if !above {
        record(difference);
    }
    drop(record);
    // All but the one that is above, and the one behind it.
    recorder.recorded(made - u64::from(above) - u64::from(after.is_some()));
    Pass {
        readings: made,
        last: after.unwrap_or(end),
        found: above.then_some(LongDifference {
            end,
            difference,
            after,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clock::scripted::{Scripted, ScriptedReadings};

    fn watched(differences: &[u64], readings: u64, limit: u64) -> (Pass, Vec<u64>) {
        ScriptedReadings::of_differences(1000, differences).play(|| {
            let mut all = Vec::new();
            let from = Scripted.read();
            let mut record = |difference| all.push(difference);
            let pass = watch(&Scripted, &mut record, from, readings, limit);
            (pass, all)
        })
    }

    #[test]
    fn a_pass_without_a_jump_records_every_difference() {
        for readings in 1..5 {
            let differences = &[10, 11, 12, 13][..readings];
            let (pass, recorded) = watched(differences, readings as u64, 50);
            assert_eq!(recorded, differences);
            let last = Ticks(1000 + differences.iter().sum::<u64>());
            assert_eq!((pass.readings, pass.last), (readings as u64, last));
            assert_eq!(pass.found, None);
        }
    }

    #[test]
    fn a_jump_ends_the_pass_one_reading_later_and_none_is_lost_at_either_end() {
        // A step backwards is above any limit.
        for (jump, limit) in [(600, 50), (5_u64.wrapping_neg(), u64::MAX >> 1)] {
            for at in 0..5_usize {
                let mut differences = [10; 5];
                differences[at] = jump;
                // It ends behind the reading after the jump: no more is read.
                let read = (at + 2).min(5);
                let (pass, recorded) = watched(&differences[..read], 5, limit);
                assert_eq!(recorded, vec![10; at], "jump at {at}");
                let end = Ticks((1000 + 10 * at as u64).wrapping_add(jump));
                let found = LongDifference {
                    end,
                    difference: jump,
                    after: (at < 4).then_some(Ticks(end.0 + 10)),
                };
                assert_eq!(pass.found, Some(found));
                assert_eq!(pass.readings, read as u64);
            }
        }
    }
}
