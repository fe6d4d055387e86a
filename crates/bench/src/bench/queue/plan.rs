//! Which points are measured, and which cannot be.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cpus::{CpuChoice, Cpus};
use super::left_out::left_out;
use super::sharing::{refusal, set_columns};
use crate::generators::MemoryLoad;
use crate::node::wiring::Wiring;
use crate::pacing::{EndLoad, Load};
use crate::queues::registry;
use crate::results::Record;
use crate::results::schema::REASON;

/// The offered rates of a load curve, in per cent of saturation.
pub const CURVE_PERCENTS: [u32; 14] = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100];

/// More than any sender can keep, stamps and all: a thousandth of a nanosecond from start to start.
const UNREACHABLE_RATE_PER_S: f64 = 1e12;

/// Lists whose product is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Queues, by their registered names.
    pub queues: Vec<String>,
    pub capacities: Vec<usize>,
    /// Sizes of an element in bytes.
    pub payloads: Vec<usize>,
    /// Loads of the sender; none for a load curve.
    pub senders: Vec<EndLoad>,
    pub receiver: EndLoad,
    /// Whether the sender's load goes from 1 % to saturation; its jitter and seed are those of this load.
    pub curve: Option<EndLoad>,
    pub cpus: CpuChoice,
    pub memory_loads: Vec<MemoryLoad>,
    /// How several threads at each end share queues; nothing of one and one.
    pub wirings: Vec<Wiring>,
}

/// One queue under one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub queue: String,
    /// Elements it holds at most.
    pub capacity: usize,
    /// Bytes of an element.
    pub payload: usize,
    /// The sender's load. On a load curve its rate is known once the saturation is.
    pub sender: EndLoad,
    pub receiver: EndLoad,
    /// On a load curve, the offered rate in per cent of saturation.
    pub percent_of_saturation: Option<u32>,
    pub cpus: Cpus,
    /// What generators on other CPUs draw meanwhile.
    pub memory_load: MemoryLoad,
    /// Of several threads, how they share queues; the two CPUs say nothing then.
    pub wiring: Option<Wiring>,
}

impl fmt::Display for Point {
    /// Unique in its sweep, and fit for the name of a folder.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}-cap{}-{}B-",
            // A colon is no part of a name that all file systems take.
            self.queue.replace(':', "_"),
            self.capacity,
            self.payload
        )?;
        match self.percent_of_saturation {
            Some(percent) => write!(formatter, "{percent:03}pc")?,
            None => write!(formatter, "{}", self.sender)?,
        }
        write!(formatter, "-recv_{}-", self.receiver)?;
        match &self.wiring {
            Some(wiring) => write!(
                formatter,
                "{}-{}x{}",
                wiring.scenario.name(),
                wiring.publishers,
                wiring.subscribers
            )?,
            None => write!(formatter, "cpu{}to{}", self.cpus.sender, self.cpus.receiver)?,
        }
        formatter.write_str(&self.memory_load.in_name())
    }
}

/// What is measured, in this order, and what is not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    pub points: Vec<Point>,
    /// Queues that do not come in a capacity, pairs of CPUs that there are not, and points that leave no CPU for the
    /// generators of their memory load.
    pub left_out: Vec<Record>,
}

impl Plan {
    /// The product of the lists on each of these pairs, without the queues that do not come in a capacity: each is made
    /// once to find out.
    pub fn new(sweep: &Sweep, cpus: &[Cpus]) -> Self {
        let steps: Vec<(EndLoad, Option<u32>)> = match sweep.curve {
            Some(load) => CURVE_PERCENTS.map(|percent| (load, Some(percent))).into(),
            None => sweep.senders.iter().map(|&load| (load, None)).collect(),
        };
        let wirings: Vec<Option<Wiring>> = match sweep.wirings.as_slice() {
            [] => vec![None],
            all => all.iter().copied().map(Some).collect(),
        };
        let mut plan = Plan::default();
        for queue in &sweep.queues {
            let shapes = sweep.capacities.iter();
            let shapes = shapes.flat_map(|&capacity| wirings.iter().map(move |it| (capacity, *it)));
            for (capacity, wiring) in shapes {
                let refused = match &wiring {
                    Some(wiring) => refusal(queue, capacity, wiring),
                    None => registry::refusal(queue, capacity),
                };
                if let Some(reason) = refused {
                    let mut row = left_out(Some(queue), Some(capacity), None, &reason);
                    set_columns(&mut row, wiring.as_ref());
                    plan.left_out.push(row);
                    continue;
                }
                let payloads = sweep.payloads.iter();
                let pairs =
                    payloads.flat_map(|payload| cpus.iter().map(move |cpus| (payload, cpus)));
                let loads = &sweep.memory_loads;
                let places = pairs.flat_map(|pair| loads.iter().map(move |load| (pair, load)));
                for ((&payload, &cpus), &memory_load) in places {
                    let point = |(sender, percent_of_saturation)| Point {
                        queue: queue.clone(),
                        capacity,
                        payload,
                        sender,
                        receiver: sweep.receiver,
                        percent_of_saturation,
                        cpus,
                        memory_load,
                        wiring,
                    };
                    plan.points.extend(steps.iter().copied().map(point));
                }
            }
        }
        plan
    }

    /// Why nothing is left to be measured, if so.
    pub fn why_empty(&self) -> Option<String> {
        let last = self.left_out.last();
        let reason = last.map_or("no queue was named".to_owned(), |row| row.text(&REASON));
        self.points.is_empty().then_some(reason)
    }
}

impl Point {
    /// The load with the longer pauses in the mean, which is that of an element, and also of a round trip: both ends
    /// pause at once.
    pub fn slower(&self) -> &EndLoad {
        match self.receiver.mean_pause() > self.sender.mean_pause() {
            true => &self.receiver,
            false => &self.sender,
        }
    }

    /// The longest pause of either end.
    pub fn longest_pause(&self) -> Duration {
        (self.sender.longest_pause()).max(self.receiver.longest_pause())
    }

    /// The same queue as fast as its ends can under the loop that offers the rates of a load curve: with a schedule
    /// that is always late. Without one the sender would have fewer stamps to take, and rates would be offered that the
    /// instrument itself cannot keep.
    pub fn at_saturation(&self) -> Self {
        Point {
            sender: EndLoad {
                load: Load::ConstantRate {
                    rate_per_s: UNREACHABLE_RATE_PER_S,
                },
                ..self.sender
            },
            percent_of_saturation: None,
            ..self.clone()
        }
    }

    /// The point with the rate that is offered when the queue takes `saturation` elements a second; only on a load
    /// curve does that change anything.
    pub fn with_saturation(&self, saturation: f64) -> Self {
        let mut point = self.clone();
        if let Some(percent) = self.percent_of_saturation {
            let rate_per_s = (saturation * f64::from(percent) / 100.0).round().max(1.0);
            point.sender.load = Load::ConstantRate { rate_per_s };
        }
        point
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::host::CoreRelation;
    use crate::results::schema::queue as columns;

    pub(in crate::bench::queue) fn sweep(queues: &[&str]) -> Sweep {
        Sweep {
            queues: queues.iter().map(|&name| name.to_owned()).collect(),
            capacities: vec![0, 64],
            payloads: vec![8, 64],
            senders: vec![EndLoad::NONE],
            receiver: EndLoad::NONE,
            curve: None,
            cpus: CpuChoice::EachRelation,
            memory_loads: vec![MemoryLoad::OFF],
            wirings: Vec::new(),
        }
    }

    const CPUS: [Cpus; 1] = [Cpus {
        sender: 0,
        receiver: 1,
        cores: Some(CoreRelation::SameCache),
    }];

    fn any_queue() -> &'static str {
        registry::names().next().unwrap()
    }

    #[test]
    fn a_capacity_that_a_queue_does_not_have_is_left_out_with_the_reason() {
        let plan = Plan::new(&sweep(&[any_queue()]), &CPUS);
        assert_eq!(plan.points.len(), 2);
        assert_eq!(plan.left_out.len(), 1);
        let left_out = &plan.left_out[0];
        assert_eq!(left_out.number(columns::CAPACITY.name), Some(0.0));
        let reason = left_out.get(REASON.name).unwrap().text();
        assert!(reason.contains("cannot hold 0 elements"), "{reason}");
        assert_eq!(plan.why_empty(), None);
        let nothing = Plan {
            points: Vec::new(),
            ..plan
        };
        assert_eq!(nothing.why_empty(), Some(reason));
    }

    #[test]
    fn names_of_points_differ() {
        let mut sweep = sweep(&[any_queue()]);
        sweep.capacities = vec![64, 1024];
        let rate = |rate_per_s| EndLoad {
            load: Load::ConstantRate { rate_per_s },
            ..EndLoad::NONE
        };
        sweep.senders = vec![rate(1e6), rate(2e6), EndLoad::NONE];
        let plan = Plan::new(&sweep, &CPUS);
        let names: std::collections::BTreeSet<_> =
            plan.points.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 12);
        let name = format!("{}-cap64-8B-rate1000000-recv_max-cpu0to1", any_queue());
        assert!(names.contains(&name), "{names:?}");
    }

    #[test]
    fn a_point_under_memory_load_is_named_by_it_and_others_as_ever() {
        let mut sweep = sweep(&[any_queue()]);
        sweep.memory_loads.extend(MemoryLoad::of_percent(50));
        sweep.capacities = vec![64];
        sweep.payloads = vec![8];
        let points = Plan::new(&sweep, &CPUS).points;
        let [off, on] = &points[..] else {
            panic!("{points:?}")
        };
        assert!(off.to_string().ends_with("-recv_max-cpu0to1"), "{off}");
        assert_eq!(on.to_string(), format!("{off}-memory_load50"));
        // Saturation is found under the same load.
        assert_eq!(on.at_saturation().memory_load, on.memory_load);
    }

    #[test]
    fn a_curve_goes_from_one_per_cent_to_saturation() {
        let mut sweep = sweep(&[any_queue()]);
        sweep.curve = Some(EndLoad {
            jitter: 0.1,
            ..EndLoad::NONE
        });
        let plan = Plan::new(&sweep, &CPUS);
        assert_eq!(plan.points.len(), 2 * CURVE_PERCENTS.len());
        let rates: Vec<f64> = plan.points[..CURVE_PERCENTS.len()]
            .iter()
            .map(|point| match point.with_saturation(2e7).sender.load {
                Load::ConstantRate { rate_per_s } => rate_per_s,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((rates[0], rates[rates.len() - 1]), (2e5, 2e7));
        assert!(rates.is_sorted());
        // Saturation is found by the loop that offers these rates, jitter included.
        let point = &plan.points[0];
        let fastest = point.at_saturation();
        let offered = point.with_saturation(1e6);
        let kind = |point: &Point| std::mem::discriminant(&point.sender.load);
        assert_eq!(kind(&fastest), kind(&offered));
        assert_eq!(fastest.sender.jitter, 0.1);
    }
}
