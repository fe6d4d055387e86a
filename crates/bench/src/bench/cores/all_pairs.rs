//! The figures of all pairs, read from a results folder: medians over its rounds, and which pair suits a measurement.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::plan::{self, UNKNOWN, name_of};
use crate::host::{CoreRelation, CpuSet, Topology};
use crate::results::read::{ReadError, ReadErrorKind, Run};
use crate::results::schema::Column;
use crate::results::schema::cores::{CORES, PAIRS_FILE, SCHEMA, pair};
use crate::stats::median_of;

/// A CPU of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredCpu {
    /// Its number.
    pub cpu: usize,
    /// What it is in, the largest first: socket, NUMA node, last level of cache, core; without what is not known.
    pub groups: Vec<String>,
}

/// A pair, and half of its round trip.
#[derive(Debug, Clone, PartialEq)]
pub struct Advised {
    /// What its CPUs have in common.
    pub cores: String,
    /// Its CPUs, the lower number first.
    pub cpus: [usize; 2],
    /// The median over rounds.
    pub half_ns: f64,
}

/// The pairs of a run.
#[derive(Debug)]
pub struct AllPairs {
    /// Its CPUs, by their numbers.
    pub cpus: Vec<MeasuredCpu>,
    /// Why the run is not whole, if it is not.
    pub incomplete: Option<String>,
    /// What of it cannot be read.
    pub damaged: Vec<Arc<ReadError>>,
    run: Run,
}

impl AllPairs {
    /// Reads which CPUs a run has.
    ///
    /// # Errors
    /// Where it cannot be read, or is of another benchmark.
    pub fn salvage(path: &Path) -> Result<Self, ReadError> {
        Self::of(Run::salvage(path)?, path)
    }

    /// The same of a run that was read from there.
    ///
    /// # Errors
    /// Where it is of another benchmark, or has no pair.
    pub fn of(run: Run, path: &Path) -> Result<Self, ReadError> {
        if run.schema.benchmark != SCHEMA.benchmark {
            let reason = format!("it holds results of {}", run.schema.title);
            return Err(ReadErrorKind::NoResults(reason).at(path));
        }
        let reported = run.document()["obtained"]["cpus"].as_array();
        let cpus = reported.into_iter().flatten().filter_map(|cpu| {
            let text = |name: &str| match &cpu[name] {
                Value::Null => None,
                Value::String(text) => Some(format!("{name} {text}")),
                other => Some(format!("{name} {other}")),
            };
            Some(MeasuredCpu {
                cpu: usize::try_from(cpu["cpu"].as_u64()?).ok()?,
                groups: ["socket", "node", "cache", "cluster", "core"]
                    .into_iter()
                    .filter_map(text)
                    .collect(),
            })
        });
        let mut all = AllPairs {
            cpus: cpus.collect(),
            incomplete: run.incomplete.clone(),
            damaged: run.damaged.clone(),
            run,
        };
        if all.cpus.is_empty() {
            // Of a damaged file those that pairs name.
            let mut found = CpuSet::new();
            let pairs = all.medians(&pair::HALF);
            pairs.keys().flatten().for_each(|cpu| {
                found.insert(*cpu);
            });
            let groups = Vec::new();
            let cpu = |cpu| MeasuredCpu {
                cpu,
                groups: groups.clone(),
            };
            all.cpus = found.iter().map(cpu).collect();
        }
        match all.cpus.is_empty() {
            true => Err(ReadErrorKind::NoResults("there is no pair in it".to_owned()).at(path)),
            false => Ok(all),
        }
    }

    /// The first of its CPUs of which this machine's kernel reports anything else than it did then.
    pub fn changed_cpu(&self, topology: &Topology) -> Option<usize> {
        let cpus: CpuSet = self.cpus.iter().map(|cpu| cpu.cpu).collect();
        let here = plan::reported(topology, &cpus);
        let here = here.as_array().map_or(&[][..], Vec::as_slice);
        let then = self.run.document()["obtained"]["cpus"].as_array();
        let then = then.map_or(&[][..], Vec::as_slice);
        let of = |all: &[Value], cpu: usize| all.iter().find(|it| it["cpu"] == cpu).cloned();
        cpus.iter().find(|cpu| of(here, *cpu) != of(then, *cpu))
    }

    /// The machine that it was measured on.
    pub fn hostname(&self) -> Option<&str> {
        self.run.machine()["hostname"].as_str()
    }

    /// A figure of each direction, by the CPUs of sender and receiver: its median over rounds.
    pub fn medians(&mut self, column: &Column) -> BTreeMap<[usize; 2], f64> {
        let found = self.by_kind(column).into_iter();
        found.map(|(cpus, (_, value))| (cpus, value)).collect()
    }

    /// The same with what the CPUs have in common.
    fn by_kind(&mut self, column: &Column) -> BTreeMap<[usize; 2], (String, f64)> {
        let columns = [pair::SENDER.name, pair::RECEIVER.name, column.name];
        let mut all = BTreeMap::<[usize; 2], (String, Vec<f64>)>::new();
        for point in &self.run.points {
            let cores = point.setting(CORES.name).unwrap_or(UNKNOWN);
            let read = point.rows(PAIRS_FILE.name).and_then(|rows| {
                rows.each(&columns, |cells| {
                    let cpu = |place: usize| {
                        let text = cells.text(place);
                        let reason = || format!("{} is {text:?}, no CPU", columns[place]);
                        text.parse::<usize>().map_err(|_| cells.foreign(reason()))
                    };
                    let cpus = [cpu(0)?, cpu(1)?];
                    let Some(value) = cells.number(2)? else {
                        return Ok(());
                    };
                    if value <= 0.0 && column.name == pair::HALF.name {
                        return Err(cells.foreign(format!("{} is {value}, no time", column.name)));
                    }
                    let of_pair = all.entry(cpus);
                    let of_pair = of_pair.or_insert_with(|| (cores.to_owned(), Vec::new()));
                    of_pair.1.push(value);
                    Ok(())
                })
            });
            if let Err(error) = read
                && point.incomplete.is_none()
                && self.damaged.iter().all(|known| known.path != error.path)
            {
                self.damaged.push(Arc::new(error));
            }
        }
        let median = |(cpus, (cores, values)): ([usize; 2], (String, Vec<f64>))| {
            Some((cpus, (cores, median_of(&values)?)))
        };
        all.into_iter().filter_map(median).collect()
    }

    /// The fastest pair of each kind by half of the round trip, of those CPUs if any are given, the closest kind first.
    pub fn fastest(&mut self, of: Option<&CpuSet>) -> Vec<Advised> {
        let mut fastest: Vec<Advised> = Vec::new();
        for ([sender, receiver], (cores, half_ns)) in self.by_kind(&pair::HALF) {
            let is_asked = |cpu: usize| of.is_none_or(|of| of.contains(cpu));
            if sender > receiver || !is_asked(sender) || !is_asked(receiver) {
                continue;
            }
            let cpus = [sender, receiver];
            match fastest.iter_mut().find(|known| known.cores == cores) {
                Some(known) if known.half_ns <= half_ns => {}
                Some(known) => (known.cpus, known.half_ns) = (cpus, half_ns),
                None => fastest.push(Advised {
                    cores,
                    cpus,
                    half_ns,
                }),
            }
        }
        let order = |kind: &Advised| {
            let mut kinds = CoreRelation::ALL.iter();
            kinds
                .position(|known| known.name() == kind.cores)
                .unwrap_or(usize::MAX)
        };
        fastest.sort_by_key(order);
        fastest
    }
}

/// The pair for a sender and a receiver that must not share a core: the fastest of those that do not, else of those of
/// which it is not known.
pub fn advised(fastest: &[Advised]) -> Option<&Advised> {
    let siblings = name_of(Some(CoreRelation::SmtSiblings));
    let (unknown, known): (Vec<_>, Vec<_>) = fastest.iter().partition(|kind| kind.cores == UNKNOWN);
    let apart = known.into_iter().filter(|kind| kind.cores != siblings);
    let best = apart.min_by(|one, other| one.half_ns.total_cmp(&other.half_ns));
    best.or_else(|| unknown.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_pair_that_shares_no_core_is_advised() {
        let kind = |cores: &str, cpus, half_ns| Advised {
            cores: cores.to_owned(),
            cpus,
            half_ns,
        };
        let all = [
            kind("smt-siblings", [0, 4], 21.0),
            kind("same-cache", [0, 1], 48.0),
            kind("other-socket", [0, 2], 131.0),
        ];
        assert_eq!(advised(&all), Some(&all[1]));
        assert_eq!(advised(&all[..1]), None);
        // That may share a core.
        let unknown = kind("unknown", [1, 5], 20.0);
        assert_eq!(advised(&[all[1].clone(), unknown.clone()]), Some(&all[1]));
        assert_eq!(advised(&[all[0].clone(), unknown.clone()]), Some(&unknown));
    }
}
