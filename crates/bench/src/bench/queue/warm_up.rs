//! The warm-up: elements go through for a time, in parts, and none of them is kept.
//!
//! The sender says before each part that it begins, and behind the last one that it was that; nobody waits in between,
//! and the elements that count follow at once. What came out is compared with what was put in by number, order and sum.

use std::time::{Duration, Instant};

use super::control::{Ending, QueueControl};
use super::loops::Loop;
use super::measurer::CarriedElements;
use super::notes::WARM_UP_PART;
use super::plan::Point;
use super::task::Task;

/// A part takes about so long at most, where the load pauses.
const PART: Duration = Duration::from_millis(1);

pub(super) fn part_of(point: &Point) -> usize {
    let pause = point.longest_pause().as_nanos();
    let most = PART.as_nanos().checked_div(pause);
    most.map_or(WARM_UP_PART, |most| (most as usize).clamp(1, WARM_UP_PART))
}

/// The most elements that are put in: a receiver with pauses takes them out in the time of the warm-up, however many
/// the queue can hold.
fn most_of(task: &Task) -> u64 {
    let pause = task.point.receiver.mean_pause().as_nanos();
    let most = task.config.warmup.as_nanos().checked_div(pause);
    most.map_or(u64::MAX, |most| most as u64)
}

/// The sender's; returns what it put in.
pub(super) fn of_sender(
    end: &mut dyn Loop,
    task: &Task,
    control: &QueueControl,
) -> CarriedElements {
    let (part, most) = (part_of(&task.point), most_of(task));
    let began = Instant::now();
    let mut carried = CarriedElements::default();
    let mut parts = 0;
    while began.elapsed() < task.config.warmup
        && carried.elements < most
        && end.tally().ending == Ending::Complete
    {
        parts += 1;
        control.warm_up.begin(parts);
        end.run(part);
        carried += end.forget();
    }
    control.warm_up.end(parts);
    carried
}

/// The receiver's; returns what came out.
pub(super) fn of_receiver(
    end: &mut dyn Loop,
    task: &Task,
    control: &QueueControl,
) -> CarriedElements {
    let part = part_of(&task.point);
    let mut carried = CarriedElements::default();
    let mut parts = 0;
    while end.tally().ending == Ending::Complete && control.comes_another_part(parts) {
        parts += 1;
        end.run(part);
        carried += end.forget();
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::queue::config::Config;
    use crate::bench::queue::faulty;
    use crate::bench::queue::result::made_up;
    use crate::bench::queue::runner::EndTally;
    use crate::pacing::{EndLoad, Load};
    use crate::time::Ticks;

    /// A sender whose queue is never full.
    #[derive(Default)]
    struct Endless {
        sent: u64,
    }

    impl Loop for Endless {
        fn start(&mut self) -> Ticks {
            Ticks(0)
        }
        fn run(&mut self, count: usize) {
            self.sent = count as u64;
        }
        fn forget(&mut self) -> CarriedElements {
            CarriedElements {
                elements: self.sent,
                ..CarriedElements::default()
            }
        }
        fn flush(&mut self) {}
        fn tally(&self) -> EndTally {
            EndTally::default()
        }
        fn leftovers(&mut self, _most: usize) -> Vec<u64> {
            Vec::new()
        }
    }

    #[test]
    fn no_more_is_put_in_than_a_slow_receiver_takes_out_in_the_time() {
        let config = Config {
            // Long enough that it is not the time that ends it.
            warmup: Duration::from_secs(3600),
            ..made_up::config()
        };
        let receiver = EndLoad {
            load: Load::ConstantWait { wait_ns: 1e6 },
            ..EndLoad::NONE
        };
        let point = Point {
            receiver,
            ..made_up::point("endless")
        };
        let task = Task::new(faulty::clock(), false, &point, &config, 10);
        let put_in = of_sender(&mut Endless::default(), &task, &QueueControl::default());
        assert_eq!(put_in.elements, 3_600_000);
    }

    #[test]
    fn a_part_of_a_slow_load_is_short() {
        let part = |load| {
            let sender = EndLoad {
                load,
                ..EndLoad::NONE
            };
            part_of(&Point {
                sender,
                ..made_up::point("lamport")
            })
        };
        assert_eq!(part(Load::None), WARM_UP_PART);
        assert_eq!(part(Load::ConstantRate { rate_per_s: 1e8 }), WARM_UP_PART);
        assert_eq!(part(Load::ConstantWait { wait_ns: 1e5 }), 10);
        assert_eq!(part(Load::ConstantRate { rate_per_s: 1.0 }), 1);
    }
}
