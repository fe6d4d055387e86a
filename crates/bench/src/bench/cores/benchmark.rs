//! The benchmark as the rig runs it: a point is a kind of pairs, all of which are measured one after another.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::json;

use super::config::{Config, LineNode};
use super::error::RunError;
use super::lines::NodeLines;
use super::one_pair::{PairOutcome, PairRun, PairStamps};
use super::plan::{self, Point};
use super::rows::{self, DirectionRow, PointCounts};
use crate::host::throttling::{ThrottleCounters, ThrottlingRecord};
use crate::host::{CpuSet, Topology, interrupt, memory_layout, pinning};
use crate::results::SampleWriter;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::{Schema, cores as columns};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Plan, PlannedPoint, PlannedRow, Progress, Ready, RowOutcome,
    SampleFolders,
};
use crate::rig::error::{RigError, unless_interrupted};
use crate::rig::findings::{of_rate, of_throttling};
use crate::rig::in_threads::ThreadsError;
use crate::rig::sweep::Rounds;
use crate::time::{AnyClock, StampCost, measure_stamp_cost};

/// An upper estimate of both rows of a pair in `pairs.csv`, and of what else a point leaves, in bytes.
const BYTES_PER_PAIR: u64 = 300;
const BYTES_PER_POINT: u64 = 64 << 10;
/// How many lines the turn of the first one goes on from a round to the next: in six rounds 30 of them count also with a
/// slow pair, of which a round has six batches and counts five.
const TURNS_PER_ROUND: usize = 5;
/// Each report of progress wakes a thread up.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(200);

/// The benchmark.
#[derive(Debug)]
pub struct CoresBenchmark {
    config: Config,
    points: Vec<Point>,
    topology: Option<Topology>,
    bench: Option<Bench>,
}

/// What was made for a round.
#[derive(Debug)]
struct Bench {
    clock: AnyClock,
    stamp: StampCost,
    /// By the node that was asked for; without one, where the kernel reports none.
    lines: BTreeMap<Option<usize>, NodeLines>,
    stamps: PairStamps,
    /// CPUs that a thread of a pair never ran on: further pairs would take as long to find the same.
    never_ran: CpuSet,
}

/// What came of the pairs of a point.
struct Measured {
    rows: Vec<DirectionRow>,
    unmeasured: usize,
    throttled: ThrottlingRecord,
    /// A signal that came before the last of them.
    ended: Option<RigError>,
}

/// The turns of pairs. A pair whose CPUs did not run at the same time has a second one, after the first ones of all.
struct Turns {
    order: VecDeque<usize>,
    pairs: usize,
    /// How many began.
    taken: usize,
}

impl Turns {
    fn of(order: Vec<usize>) -> Self {
        Turns {
            pairs: order.len(),
            order: order.into(),
            taken: 0,
        }
    }

    fn next(&mut self) -> Option<usize> {
        let pair = self.order.pop_front()?;
        self.taken += 1;
        Some(pair)
    }

    /// Whether the turn that began last is the first of its pair.
    fn are_first(&self) -> bool {
        self.taken <= self.pairs
    }

    /// The pairs that had a turn in vain, if the one that began last does not end.
    fn in_vain(&self) -> usize {
        let untried = self.pairs.saturating_sub(self.taken);
        self.order.len() - untried + usize::from(!self.are_first())
    }
}

impl CoresBenchmark {
    /// With what is asked for.
    pub fn new(config: Config) -> Self {
        CoresBenchmark {
            config,
            points: Vec::new(),
            topology: None,
            bench: None,
        }
    }

    fn topology(&self) -> &Topology {
        self.topology.as_ref().expect("a plan was made")
    }

    fn find_points(&mut self) -> Result<(), RunError> {
        let topology = Topology::read()?;
        let cpus = plan::cpus(&topology, self.config.cpus.as_ref())?;
        check_node(
            self.config.memory_node,
            &memory_layout::nodes_with_memory()?,
        )?;
        self.points = plan::points(&topology, &cpus);
        self.topology = Some(topology);
        Ok(())
    }

    /// All CPUs that are in a pair.
    fn cpus(&self) -> CpuSet {
        let pairs = self.points.iter().flat_map(|point| &point.pairs);
        pairs.flatten().copied().collect()
    }

    /// The node of the lines that a CPU writes for another one to read.
    fn node_of(&self, writer: usize, reader: usize) -> Option<usize> {
        let node = |cpu: usize| self.topology().cpu(cpu).and_then(|cpu| cpu.numa_node);
        match self.config.memory_node {
            LineNode::Writer => node(writer),
            LineNode::Reader => node(reader),
            LineNode::Node(node) => Some(node as usize),
        }
    }

    fn bench(&self) -> Result<Bench, RunError> {
        let clock = AnyClock::prepare(self.config.clock)?;
        let mut lines = BTreeMap::new();
        let mut of_nodes = BTreeMap::<Option<usize>, CpuSet>::new();
        for cpu in self.cpus().iter() {
            let node = self.node_of(cpu, cpu);
            of_nodes.entry(node).or_default().insert(cpu);
        }
        for (node, cpus) in of_nodes {
            let made = match self.config.memory_node {
                LineNode::Node(node) => NodeLines::new(Some(node))?,
                // Memory goes to the node of the CPU that first touches it. Not every container permits more.
                _ => pinning::on_cpus(&cpus, || NodeLines::new(None))??,
            };
            lines.insert(node, made);
        }
        Ok(Bench {
            stamp: measure_stamp_cost(&clock),
            clock,
            lines,
            stamps: PairStamps::default(),
            never_ran: CpuSet::new(),
        })
    }

    fn round(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, RunError> {
        let mut bench = self.bench.take().expect("the benchmark was prepared");
        let measured = self.pairs(&self.points[point], place, &mut bench, progress);
        let stamp = bench.stamp;
        self.bench = Some(bench);
        let measured = measured?;
        let row = row_of(&measured, self.points[point].pairs.len(), stamp.cost_ns);
        Ok(Outcome {
            rows: vec![row],
            ..Outcome::default()
        })
    }

    /// Measures all pairs of a point, in an order of the round, and writes them.
    fn pairs(
        &self,
        point: &Point,
        place: &SampleFolders,
        bench: &mut Bench,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Measured, RunError> {
        let mut file = SampleWriter::open(&place.folders[0], &columns::PAIRS_FILE, place.round)?;
        let mut throttling = ThrottleCounters::open();
        let mut measured = Measured {
            rows: Vec::with_capacity(2 * point.pairs.len()),
            unmeasured: 0,
            throttled: ThrottlingRecord::default(),
            ended: None,
        };
        throttling.begin();
        let begun = Instant::now();
        let mut reported: Option<Instant> = None;
        let pairs = point.pairs.len();
        let mut turns = Turns::of(Rounds { count: 2, seed: 0 }.order(place.round, pairs));
        while let Some(pair) = turns.next() {
            let done = turns.taken.min(pairs) - 1;
            if reported.is_none_or(|at| at.elapsed() >= BETWEEN_PROGRESS) {
                reported = Some(Instant::now());
                progress(Progress {
                    done: done as u64,
                    of: pairs as u64,
                    text: Some(format!("pair {} of {pairs}", done + 1)),
                });
            }
            let [low, high] = point.pairs[pair];
            // Neither is always the one that asks.
            let cpus = match place.round.is_multiple_of(2) {
                true => [low, high],
                false => [high, low],
            };
            let start_ns = begun.elapsed().as_nanos() as u64;
            match self.pair(cpus, place.round, start_ns, bench) {
                Ok(Some(directions)) => {
                    for row in directions {
                        file.append(&row)?;
                        measured.rows.push(row);
                    }
                }
                Ok(None) if turns.are_first() => turns.order.push_back(pair),
                Ok(None) => measured.unmeasured += 1,
                Err(RunError::Rig(interrupted @ RigError::Interrupted(_))) => {
                    measured.unmeasured += turns.in_vain();
                    measured.ended = Some(interrupted);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        measured.throttled = throttling.record();
        file.finish()?;
        Ok(measured)
    }

    /// Both directions of a pair; `None` where its CPUs did not run at the same time.
    fn pair(
        &self,
        cpus: [usize; 2],
        round: u32,
        start_ns: u64,
        bench: &mut Bench,
    ) -> Result<Option<[DirectionRow; 2]>, RunError> {
        unless_interrupted()?;
        let Bench {
            clock,
            lines,
            stamps,
            never_ran,
            ..
        } = bench;
        let [first, second] = cpus;
        if cpus.iter().any(|cpu| never_ran.contains(*cpu)) {
            return Ok(None);
        }
        let asked = [self.node_of(first, second), self.node_of(second, first)];
        let of_node = |node: Option<usize>| lines.get(&node).expect("each node has lines");
        let both = asked.map(of_node);
        both.iter().for_each(|lines| lines.clear());
        let stop = || interrupt::requested().is_some();
        let run = PairRun {
            cpus,
            ways: [both[0].way(false), both[1].way(true)],
            first_turn: round as usize * TURNS_PER_ROUND,
            duration: self.config.duration,
            stamps,
            stop: &stop,
        };
        let found = match clock.visit(run) {
            Err(RunError::Threads(ThreadsError::Interrupted)) => {
                unless_interrupted()?;
                None
            }
            Err(error) => return Err(error),
            Ok(PairOutcome::NeverTogether) => None,
            Ok(PairOutcome::NeverRan(cpus)) => {
                for cpu in cpus {
                    never_ran.insert(cpu);
                }
                None
            }
            Ok(PairOutcome::Measured(found)) => Some(found),
        };
        let nodes = both.map(NodeLines::node);
        Ok(found.map(|found| DirectionRow::both(round, start_ns, cpus, asked, nodes, &found)))
    }
}

/// The row of a point of that many pairs.
fn row_of(measured: &Measured, pairs: usize, stamp_ns: Option<f64>) -> RowOutcome {
    let counts = PointCounts::of(&measured.rows, measured.unmeasured);
    let ended = measured.ended.as_ref().map(RigError::to_string);
    let none = measured.rows.is_empty().then(|| {
        "no pair was measured: their CPUs did not run at the same time; stop other work on them"
            .to_owned()
    });
    RowOutcome {
        figures: rows::figures(&measured.rows, counts, stamp_ns),
        findings: findings(measured, counts, pairs),
        ends_sweep: ended.is_some(),
        failure: ended.or(none),
        ..RowOutcome::default()
    }
}

fn findings(measured: &Measured, counts: PointCounts, pairs: usize) -> Vec<Finding> {
    let directions = measured.rows.len() as u64;
    let pairs = pairs as u64;
    let counted = [
        (&kinds::PAIRS_UNMEASURED, counts.unmeasured, pairs),
        (&kinds::PAIRS_PARTLY_MEASURED, counts.partly, pairs),
        (&kinds::ONE_WAY_NEGATIVE, counts.negative, directions),
        (&kinds::LINES_ON_OTHER_NODE, counts.elsewhere, directions),
    ];
    let counted = counted.map(|(kind, count, of)| Finding::counted(kind, count as u64, Some(of)));
    let throttled = of_throttling(&measured.throttled, None);
    counted.into_iter().flatten().chain(throttled).collect()
}

fn check_node(asked: LineNode, there: &CpuSet) -> Result<(), RunError> {
    match asked {
        LineNode::Node(node) if !there.contains(node as usize) => Err(RunError::Refused(format!(
            "--memory-node {node}: this machine has no such NUMA node with memory: allowed is writer, reader or one of \
             {there}"
        ))),
        _ => Ok(()),
    }
}

impl Benchmark for CoresBenchmark {
    fn schema(&self) -> &'static Schema {
        &columns::SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        self.find_points()?;
        let planned = |(index, point): (usize, &Point)| PlannedPoint {
            index,
            rows: vec![PlannedRow {
                name: point.to_string(),
                settings: rows::settings(point),
            }],
            time: point.time(&self.config),
            bytes: point.pairs.len() as u64 * BYTES_PER_PAIR + BYTES_PER_POINT,
            bytes_once: 0,
            bytes_of_losses: 0,
            may_abort: false,
        };
        Ok(Plan {
            points: self.points.iter().enumerate().map(planned).collect(),
            left_out: Vec::new(),
        })
    }

    fn busy_cpus(&self) -> Option<usize> {
        Some(2)
    }

    fn prepare(&mut self, plan: Plan) -> Result<Ready, Failure> {
        let bench = self.bench()?;
        let kinds = self.points.iter();
        let kinds = kinds.map(|point| format!("{} {point}", point.pairs.len()));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let facts = bench.clock.tsc_facts();
        let ready = Ready {
            plan,
            obtained: json!({ "cpus": plan::reported(self.topology(), &self.cpus()) }),
            instrument: json!({ "clock": { "tsc": facts, "stamp": bench.stamp } }),
            announcements: vec![format!("pairs:    of CPUs {}: {kinds}", self.cpus())],
            findings: facts
                .and_then(|facts| of_rate(&facts.rate))
                .into_iter()
                .collect(),
        };
        self.bench = Some(bench);
        Ok(ready)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &SampleFolders,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        Ok(self.round(point, place, progress)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::one_pair::PairFigures;
    use super::*;
    use crate::testing::{Has as _, Refused as _};
    use crate::time::ClockKind;

    fn config(memory_node: LineNode) -> Config {
        Config {
            cpus: None,
            duration: super::super::config::DEFAULT_DURATION,
            memory_node,
            clock: ClockKind::Monotonic,
        }
    }

    #[test]
    fn lines_lie_where_they_are_written_or_read_or_on_the_node_asked_for() {
        let node = |memory_node, writer, reader| {
            let mut benchmark = CoresBenchmark::new(config(memory_node));
            benchmark.topology = Some(plan::tests::two_sockets().topology());
            benchmark.node_of(writer, reader)
        };
        assert_eq!(node(LineNode::Writer, 0, 2), Some(0));
        assert_eq!(node(LineNode::Writer, 2, 0), Some(1));
        assert_eq!(node(LineNode::Reader, 0, 2), Some(1));
        assert_eq!(node(LineNode::Node(3), 0, 2), Some(3));
    }

    #[test]
    fn a_node_that_is_not_there_is_refused_with_those_that_are() {
        let there: CpuSet = "0,2".parse().unwrap();
        check_node(LineNode::Node(2), &there).unwrap();
        check_node(LineNode::Reader, &there).unwrap();
        let refused = check_node(LineNode::Node(1), &there);
        refused.refused(&["--memory-node 1", "writer, reader or one of 0,2"]);
    }

    /// A pair with figures, or with those of round trips alone.
    fn directions(is_whole: bool, nodes: [Option<usize>; 2]) -> [DirectionRow; 2] {
        let found = PairFigures {
            round_trip_ns: 100.0,
            least_round_trip_ns: 90.0,
            batches: 7,
            one_way_ns: [is_whole.then_some(60.0); 2],
            handovers: if is_whole { 90 } else { 0 },
            offset_ns: is_whole.then_some([3.0, 40.0]),
            stream_mb_s: [is_whole.then_some(9000.0); 2],
        };
        DirectionRow::both(0, 0, [0, 1], [Some(0), Some(1)], nodes, &found)
    }

    fn row(rows: Vec<DirectionRow>, pairs: usize) -> RowOutcome {
        let measured = Measured {
            unmeasured: pairs - rows.len() / 2,
            rows,
            throttled: ThrottlingRecord::default(),
            ended: None,
        };
        row_of(&measured, pairs, None)
    }

    fn kinds_of(row: &RowOutcome) -> Vec<&str> {
        row.findings
            .iter()
            .map(|found| found.kind.as_str())
            .collect()
    }

    #[test]
    fn pairs_that_lack_figures_are_found_and_a_point_without_any_fails() {
        let nodes = [Some(0), Some(1)];
        let rows = [directions(true, nodes), directions(false, nodes)].concat();
        let part = row(rows, 3);
        assert_eq!(
            kinds_of(&part),
            ["pairs-unmeasured", "pairs-partly-measured"]
        );
        assert_eq!(part.figures.number(columns::PARTLY.name), Some(1.0));
        assert_eq!(part.failure, None);
        let none = row(Vec::new(), 1);
        assert_eq!(kinds_of(&none), ["pairs-unmeasured"]);
        none.failure.unwrap().has(&["no pair was measured"]);
        let whole = row(directions(true, nodes).into(), 1);
        assert!(whole.findings.is_empty() && whole.failure.is_none());
    }

    #[test]
    fn lines_on_another_node_than_asked_for_are_found() {
        // Where the kernel does not report a node, none is recorded.
        let rows = directions(true, [Some(1), None]);
        assert_eq!(rows.each_ref().map(|row| row.memory_node), [Some(1), None]);
        let found = row(rows.into(), 1);
        assert_eq!(kinds_of(&found), ["lines-on-other-node"]);
        assert_eq!(found.figures.number(columns::ELSEWHERE.name), Some(1.0));
    }

    #[test]
    fn pairs_that_wait_for_a_second_turn_were_tried_in_vain() {
        let mut turns = Turns::of(vec![2, 0, 1]);
        assert_eq!((turns.next(), turns.in_vain()), (Some(2), 0));
        turns.order.push_back(2);
        assert_eq!((turns.next(), turns.in_vain()), (Some(0), 1));
        turns.order.push_back(0);
        assert_eq!((turns.next(), turns.in_vain()), (Some(1), 2));
        assert!(turns.are_first());
        assert_eq!((turns.next(), turns.in_vain()), (Some(2), 2));
        assert!(!turns.are_first());
        // The second turn of 2 succeeded.
        assert_eq!((turns.next(), turns.in_vain()), (Some(0), 1));
        assert_eq!(turns.next(), None);
    }

    #[test]
    fn a_cpu_that_a_thread_never_ran_on_is_not_tried_again() {
        let mut benchmark = CoresBenchmark::new(config(LineNode::Writer));
        benchmark.topology = Some(plan::tests::two_sockets().topology());
        let mut bench = benchmark.bench().unwrap();
        bench.never_ran.insert(5);
        // No lines are there: it would be a panic to look for them.
        assert!(bench.lines.is_empty());
        assert_eq!(benchmark.pair([0, 5], 0, 0, &mut bench).unwrap(), None);
    }
}
