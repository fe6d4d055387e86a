//! Rank 0: has pairs measured, batch by batch, and finds out who is dead or hung. One thread, however many ranks there
//! are.
//!
//! | what happens | who is to blame | what becomes of it |
//! | --- | --- | --- |
//! | a rank's connection ends, or brings what is no message | the rank | it is dropped |
//! | an order is not answered in time | the rank that got it | it is dropped |
//! | a rank with nothing to measure does not answer a ping | the rank | it is dropped |
//! | a measurement fails | the partner, if it does not answer a ping; else both | the pair is left out |
//! | measurements of a rank fail with two partners that are not to blame (`rank_failures`) | the rank | it is dropped |
//!
//! All pairs of a rank that is dropped are left out. The rest goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::connections::Connections;
use super::entrance::Door;
use super::error::LaunchError;
use super::message::{FromRank, Hello, MeasurementOrder, PairReport, Start, Terms, ToRank};
use super::roster::{Member, Roster, UNASKED};
use super::schedule::Pair;
use crate::host::{interrupt, machine_name};
use crate::sorting::distinct;

/// Who takes what is measured. What it was given is safe when [`batch_over`](Sink::batch_over) returns.
pub trait Sink {
    /// A pair was measured, at least in one direction.
    ///
    /// # Errors
    /// When it cannot be kept: the run ends.
    fn report(&mut self, pair: Pair, round: u32, report: PairReport) -> Result<(), LaunchError>;

    /// A pair was not measured.
    ///
    /// # Errors
    /// When it cannot be kept: the run ends.
    fn left_out(&mut self, pair: Pair, round: u32, reason: &str) -> Result<(), LaunchError>;

    /// Whether the report of a pair is to have its samples.
    fn keeps_samples(&self) -> bool {
        false
    }

    /// All pairs that were to be measured at once are: the next ones are measured after this.
    ///
    /// # Errors
    /// When what it was given cannot be kept: the run ends.
    fn batch_over(&mut self) -> Result<(), LaunchError> {
        Ok(())
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until all ranks have come.
    pub gather: Duration,
    /// Until ranks that were refused, for which alone is waited, are given up: somebody else may have taken their name.
    pub refused: Duration,
    /// Until each has prepared its work.
    pub prepare: Duration,
    /// A measurement of a pair.
    pub measure: Duration,
    /// An answer that needs no work.
    pub answer: Duration,
    /// Between two looks whether ranks with nothing to measure are alive.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            gather: Duration::from_secs(60),
            refused: Duration::from_secs(10),
            prepare: Duration::from_secs(60),
            measure: Duration::from_secs(60),
            answer: Duration::from_secs(5),
            heartbeat: Duration::from_secs(10),
        }
    }
}

/// A measurement that failed, until it is known whether the partner is alive.
#[derive(Debug)]
struct FailedMeasurement {
    pair: Pair,
    reason: String,
    /// The other direction was measured: it is in the results.
    is_kept: bool,
}

/// Rank 0.
#[derive(Debug)]
pub struct Conductor {
    roster: Roster,
    limits: Limits,
    failed: Vec<FailedMeasurement>,
}

impl Conductor {
    /// Waits until all ranks have come and prepared, or their time has passed: who has not is dropped.
    ///
    /// # Errors
    /// When fewer than two are there, or a signal comes.
    pub fn gather(
        door: impl Into<Door>,
        terms: Terms,
        limits: Limits,
    ) -> Result<Self, LaunchError> {
        Self::gather_unless(door.into(), terms, limits, interrupt::requested)
    }

    pub(super) fn gather_unless(
        door: Door,
        terms: Terms,
        limits: Limits,
        signal: fn() -> Option<Signal>,
    ) -> Result<Self, LaunchError> {
        let ranks = terms.ranks;
        let connections = Connections::new(door, terms, limits.answer, signal)?;
        let mut conductor = Conductor {
            roster: Roster::new(connections, limits.answer, limits.heartbeat),
            limits,
            failed: Vec::new(),
        };
        conductor.wait_for_all(ranks)?;
        conductor.enough(ranks)?;
        conductor.can_be_reached()?;
        conductor.prepare()?;
        conductor.enough(ranks)?;
        Ok(conductor)
    }

    /// Waits until all ranks have come, or were refused.
    fn wait_for_all(&mut self, ranks: u32) -> Result<(), LaunchError> {
        let until = Instant::now() + self.limits.gather;
        let mut lost: BTreeMap<u32, String> = BTreeMap::new();
        while Instant::now() < until {
            // Until the run begins a rank may come again.
            lost.append(&mut self.roster.dropped);
            self.roster.look_for_no_report()?;
            // Counted: there are as many looks as ranks.
            let missing = ranks as usize - self.roster.members.len();
            let is_over = self.roster.last_refused.elapsed() >= self.limits.refused;
            if missing == 0 || is_over && missing == self.roster.refused_of(ranks) {
                break;
            }
        }
        self.roster.connections.close_registration();
        for rank in (0..ranks).filter(|rank| !self.roster.members.contains_key(rank)) {
            let late = || format!("rank {rank} did not join within {:?}", self.limits.gather);
            let known = self.roster.refused.remove(&rank).or(lost.remove(&rank));
            let reason = known.unwrap_or_else(late);
            self.roster.dropped.insert(rank, reason);
        }
        Ok(())
    }

    /// Whether there are enough ranks for a pair.
    fn enough(&mut self, ranks: u32) -> Result<(), LaunchError> {
        if self.roster.members.len() > 1 {
            return Ok(());
        }
        // Who was not let in may be the one that did not join, and that is the cause.
        let missing = self.roster.remarks.iter().take(2);
        let missing = missing.chain(self.roster.dropped.values()).take(4);
        let missing = missing.cloned().collect::<Vec<_>>().join("; ");
        self.roster
            .send_to_all(&ToRank::End(Some("too few ranks are there".to_owned())));
        Err(LaunchError::TooFew {
            there: self.roster.members.len(),
            ranks,
            missing,
        })
    }

    /// Whether ranks on other hosts can reach each of them, as far as addresses show.
    fn can_be_reached(&mut self) -> Result<(), LaunchError> {
        let hosts = distinct(self.members().map(|(hello, _)| &*hello.boot_id));
        let mut only_here = self.members().filter_map(|(hello, _)| {
            let address = hello.serves.ip();
            let rank = hello.name();
            let error = LaunchError::OnlyHere { rank, address };
            (hosts.len() > 1 && address.is_loopback()).then_some(error)
        });
        let Some(error) = only_here.next() else {
            return Ok(());
        };
        drop(only_here);
        self.roster
            .send_to_all(&ToRank::End(Some(error.to_string())));
        Err(error)
    }

    /// Notifies the ranks that all are there, and waits until they are ready.
    fn prepare(&mut self) -> Result<(), LaunchError> {
        let hosts = places(
            self.members()
                .map(|(hello, _)| (hello.rank, &hello.boot_id)),
        );
        let shares = places(
            self.members()
                .map(|(hello, _)| (hello.rank, (&hello.boot_id, &hello.cpus))),
        );
        let Limits {
            measure,
            answer,
            heartbeat,
            ..
        } = self.limits;
        // The one that serves a measurement receives nothing while it lasts.
        let silence_ms =
            milliseconds(2 * (measure + heartbeat + 2 * answer).max(self.limits.prepare));
        let run = machine_name::unique_name();
        let mut starts = Vec::new();
        for (rank, (place, _)) in hosts {
            let start = Start {
                run: run.clone(),
                place,
                share: shares[&rank],
                silence_ms,
            };
            starts.push((rank, start));
        }
        for (rank, start) in starts {
            self.roster.connections.send(rank, &ToRank::Start(start));
        }
        let until = Instant::now() + self.limits.prepare;
        let waits = |member: &Member| member.prepared.is_none();
        // Those before are ready: there are as many looks as ranks.
        let mut first = 0;
        while Instant::now() < until {
            let mut later = self.roster.members.range(first..);
            let Some((rank, _)) = later.find(|(_, member)| waits(member)) else {
                break;
            };
            first = *rank;
            self.roster.look_for_no_report()?;
        }
        let reason = format!("did not get ready within {:?}", self.limits.prepare);
        let late = self
            .roster
            .members
            .iter()
            .filter(|(_, member)| waits(member));
        for rank in late.map(|(rank, _)| *rank).collect::<Vec<_>>() {
            self.roster.give_up(rank, &reason);
        }
        Ok(())
    }

    /// The ranks that take part, each with its greeting and what it has prepared.
    pub fn members(&self) -> impl Iterator<Item = (&Hello, &Value)> {
        let members = self.roster.members.values();
        members.map(|member| {
            (
                &member.hello,
                member.prepared.as_ref().unwrap_or(&Value::Null),
            )
        })
    }

    /// The ranks that greeted, those that were dropped included, of which nothing is known to be prepared.
    pub fn came(&self) -> impl Iterator<Item = (&Hello, &Value)> {
        let left = self.roster.left.values();
        let left = left.filter(|hello| !self.roster.members.contains_key(&hello.rank));
        left.map(|hello| (hello, &Value::Null))
            .chain(self.members())
    }

    /// The ranks that do not, or no longer, each with the reason.
    pub fn dropped(&self) -> &BTreeMap<u32, String> {
        &self.roster.dropped
    }

    /// Who was not let in, and why.
    pub fn remarks(&self) -> &[String] {
        &self.roster.remarks
    }

    /// Has the pairs of each batch measured at once, one batch after the other. The pairs of a batch must be disjoint.
    ///
    /// # Errors
    /// When a signal comes, or the sink cannot keep something.
    pub fn measure(
        &mut self,
        round: u32,
        batches: impl IntoIterator<Item = Vec<Pair>>,
        sink: &mut dyn Sink,
    ) -> Result<(), LaunchError> {
        batches.into_iter().try_for_each(|batch| {
            let measured = self.measure_batch(round, &batch, sink);
            // Also what had come when a signal did.
            measured.and(sink.batch_over())
        })
    }

    /// Ends the run: for all ranks it was complete, or it was not and why.
    pub fn end(mut self, reason: Option<&str>) {
        self.roster
            .send_to_all(&ToRank::End(reason.map(str::to_owned)));
    }

    fn measure_batch(
        &mut self,
        round: u32,
        batch: &[Pair],
        sink: &mut dyn Sink,
    ) -> Result<(), LaunchError> {
        let mut running = BTreeSet::new();
        self.roster.beat();
        for pair in batch {
            if let Some(reason) = self.roster.gone(*pair) {
                sink.left_out(*pair, round, &reason)?;
            } else {
                self.order(*pair, round, sink.keeps_samples());
                running.insert(*pair);
            }
        }
        let until = Instant::now() + self.limits.measure + self.limits.answer;
        let mut lost = self.roster.dropped.len();
        while !running.is_empty() {
            for (rank, message) in self.roster.look()? {
                let FromRank::Report {
                    round: its,
                    pair,
                    report,
                } = message
                else {
                    self.roster.give_up(rank, UNASKED);
                    continue;
                };
                if its != round
                    || pair.lower() != rank
                    || !running.contains(&pair)
                    || self.is_failed(pair)
                {
                    self.roster.give_up(rank, UNASKED);
                } else if let Some(report) = self.take(pair, *report) {
                    sink.report(pair, round, report)?;
                    if !self.is_failed(pair) {
                        self.roster.failures.clear(pair);
                        self.roster.set_busy(pair, false);
                        running.remove(&pair);
                    }
                }
            }
            if Instant::now() >= until {
                let silent: Vec<Pair> = running
                    .iter()
                    .copied()
                    .filter(|pair| !self.is_failed(*pair))
                    .collect();
                for pair in silent {
                    let limit = self.limits.measure + self.limits.answer;
                    self.roster.give_up(
                        pair.lower(),
                        &format!("did not answer an order within {limit:?}"),
                    );
                }
            }
            self.roster.beat();
            self.conclude(round, &mut running, sink)?;
            if self.roster.dropped.len() > lost {
                lost = self.roster.dropped.len();
                self.end_lost(round, &mut running, sink)?;
            }
        }
        self.roster.judge();
        Ok(())
    }

    fn order(&mut self, pair: Pair, round: u32, samples: bool) {
        self.roster.set_busy(pair, true);
        let Some(partner) = self.roster.members.get(&pair.higher()) else {
            return;
        };
        let serves = partner.hello.serves;
        let order = MeasurementOrder {
            round,
            pair,
            partner_node: partner.hello.node.clone(),
            partner: self
                .roster
                .connections
                .address(serves, pair.higher(), pair.lower()),
            limit_ms: milliseconds(self.limits.measure),
            samples,
        };
        self.roster
            .connections
            .send(pair.lower(), &ToRank::Measure(order));
    }

    /// What there is to keep of a report. Of a failure, the partner is asked whether it is alive.
    fn take(&mut self, pair: Pair, report: Result<PairReport, String>) -> Option<PairReport> {
        let (reason, report) = match report {
            Ok(report) => {
                let failures = report
                    .directions
                    .iter()
                    .flat_map(|direction| &direction.failure);
                let failures: Vec<&str> = failures.map(String::as_str).collect();
                match failures.as_slice() {
                    [] => return Some(report),
                    [one] => (one.to_string(), Some(report)),
                    all => (all.join("; "), None),
                }
            }
            Err(reason) => (reason, None),
        };
        let is_kept = report.is_some();
        self.failed.push(FailedMeasurement {
            pair,
            reason,
            is_kept,
        });
        self.roster.ping(pair.higher());
        report
    }

    fn is_failed(&self, pair: Pair) -> bool {
        self.failed.iter().any(|failed| failed.pair == pair)
    }

    /// Ends the pairs of which it is known by now that nothing will come, and why.
    fn conclude(
        &mut self,
        round: u32,
        running: &mut BTreeSet<Pair>,
        sink: &mut dyn Sink,
    ) -> Result<(), LaunchError> {
        for failed in std::mem::take(&mut self.failed) {
            let FailedMeasurement {
                pair,
                ref reason,
                is_kept,
            } = failed;
            let gone = self.roster.gone(pair);
            let is_asked = self.roster.is_asked(pair.higher());
            if gone.is_none() && is_asked {
                self.failed.push(failed);
                continue;
            }
            if gone.is_none() {
                self.roster.failures.add(pair);
            }
            if !is_kept {
                let gone = gone.map(|gone| format!("{gone}; ")).unwrap_or_default();
                let reason = format!("{gone}rank {}: {reason}", pair.lower());
                sink.left_out(pair, round, &reason)?;
            }
            self.roster.set_busy(pair, false);
            running.remove(&pair);
        }
        Ok(())
    }

    /// Ends the pairs whose measuring rank is lost: they report nothing.
    fn end_lost(
        &mut self,
        round: u32,
        running: &mut BTreeSet<Pair>,
        sink: &mut dyn Sink,
    ) -> Result<(), LaunchError> {
        let ended = running
            .iter()
            .copied()
            .filter(|pair| self.roster.dropped.contains_key(&pair.lower()));
        for pair in ended.collect::<Vec<_>>() {
            let reason = self.roster.gone(pair).unwrap_or_default();
            sink.left_out(pair, round, &reason)?;
            self.roster.set_busy(pair, false);
            running.remove(&pair);
        }
        Ok(())
    }
}

/// Of each rank, its place among those that have the same in common, in the order of ranks, and how many these are.
fn places<K: Ord>(ranks: impl Iterator<Item = (u32, K)>) -> BTreeMap<u32, (u32, u32)> {
    let mut groups: BTreeMap<K, Vec<u32>> = BTreeMap::new();
    for (rank, common) in ranks {
        groups.entry(common).or_default().push(rank);
    }
    let places = groups.values().flat_map(|ranks| {
        let count = ranks.len() as u32;
        (0..)
            .zip(ranks)
            .map(move |(place, rank)| (*rank, (place, count)))
    });
    places.collect()
}

fn milliseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
}
