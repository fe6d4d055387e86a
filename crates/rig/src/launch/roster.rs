//! Who takes part: which ranks have come, whether they are alive, and who is dropped and why.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::connections::{Connections, RankEvent};
use super::error::LaunchError;
use super::message::{FromRank, Hello, ToRank};
use super::rank_failures::RankFailures;
use super::schedule::Pair;

/// At most this many remarks are kept, and of connections that are no ranks: a port scan is not to fill the memory, nor
/// to take the place of others.
const MOST_REMARKS: usize = 100;
const MOST_OF_STRANGERS: u32 = 20;

/// The reason why a rank that sends unrequested messages is dropped.
pub(super) const UNASKED: &str = "sent a message that was not requested";

/// A rank that has come.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) hello: Hello,
    /// What it has prepared, once it has.
    pub(super) prepared: Option<Value>,
    /// Whether it takes part in a measurement.
    is_busy: bool,
}

/// The ranks.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) connections: Connections,
    pub(super) members: BTreeMap<u32, Member>,
    /// Who does not take part, or no longer, and why.
    pub(super) dropped: BTreeMap<u32, String>,
    /// The greetings of those that no longer do.
    pub(super) left: BTreeMap<u32, Hello>,
    /// Who was not let in.
    pub(super) remarks: Vec<String>,
    /// Connections that were no ranks, and where it is remarked how many more these are.
    strangers: u32,
    more_strangers: Option<usize>,
    /// Ranks that were not let in, and why; and when the last of them was not.
    pub(super) refused: BTreeMap<u32, String>,
    pub(super) last_refused: Instant,
    /// How long an answer may take, and between two looks whether idle ranks are alive.
    limits: [Duration; 2],
    pub(super) failures: RankFailures,
    /// Who was asked whether it is alive and has not answered, and when.
    pinged: BTreeMap<u32, Instant>,
    /// Before, none of them is late.
    first_late: Instant,
    next_beat: Instant,
}

impl Roster {
    pub(super) fn new(connections: Connections, answer: Duration, heartbeat: Duration) -> Self {
        Roster {
            connections,
            members: BTreeMap::new(),
            dropped: BTreeMap::new(),
            left: BTreeMap::new(),
            remarks: Vec::new(),
            strangers: 0,
            more_strangers: None,
            refused: BTreeMap::new(),
            last_refused: Instant::now(),
            limits: [answer, heartbeat],
            failures: RankFailures::default(),
            pinged: BTreeMap::new(),
            first_late: Instant::now(),
            next_beat: Instant::now() + heartbeat,
        }
    }

    /// Has these ranks take part in a measurement, or no longer.
    pub(super) fn set_busy(&mut self, pair: Pair, is_busy: bool) {
        for rank in pair.ranks() {
            if let Some(member) = self.members.get_mut(&rank) {
                debug_assert_ne!(
                    member.is_busy, is_busy,
                    "rank {rank} is in two pairs at once"
                );
                member.is_busy = is_busy;
            }
        }
    }

    /// Whether a rank was asked if it is alive, and has not answered.
    pub(super) fn is_asked(&self, rank: u32) -> bool {
        self.pinged.contains_key(&rank)
    }

    /// How many of this many ranks were refused and have not come since.
    pub(super) fn refused_of(&self, ranks: u32) -> usize {
        let refused = self.refused.range(..ranks);
        refused
            .filter(|(rank, _)| !self.members.contains_key(rank))
            .count()
    }

    /// Why a pair cannot be measured, if a rank of it is lost.
    pub(super) fn gone(&self, pair: Pair) -> Option<String> {
        let reasons = pair
            .ranks()
            .map(|rank| self.dropped.get(&rank).map(String::as_str));
        let reasons: Vec<&str> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    pub(super) fn send_to_all(&mut self, message: &ToRank) {
        for rank in self.members.keys() {
            self.connections.send(*rank, message);
        }
    }

    /// Drops who is to blame for what failed until now.
    pub(super) fn judge(&mut self) {
        while let Some(rank) = self.failures.worst() {
            let partners = self.failures.partners(rank).map(|rank| rank.to_string());
            let partners: Vec<String> = partners.collect();
            let reason = format!("failed with ranks {}", partners.join(" and "));
            self.give_up(rank, &reason);
        }
    }

    /// Asks ranks with nothing to measure whether they are alive, from time to time, and drops those that do not
    /// answer.
    pub(super) fn beat(&mut self) {
        let now = Instant::now();
        let [answer, heartbeat] = self.limits;
        if now >= self.first_late {
            let late = |pinged: Instant| now.duration_since(pinged) >= answer;
            let silent = self.pinged.iter().filter(|(_, pinged)| late(**pinged));
            for rank in silent.map(|(rank, _)| *rank).collect::<Vec<_>>() {
                let reason = format!("does not answer for {answer:?}: it is hung");
                self.give_up(rank, &reason);
            }
            let first = self.pinged.values().min();
            self.first_late = first.map_or(now, |first| *first) + answer;
        }
        if now < self.next_beat {
            return;
        }
        self.next_beat = now + heartbeat;
        let idle = self.members.iter().filter(|(_, member)| !member.is_busy);
        for rank in idle.map(|(rank, _)| *rank).collect::<Vec<_>>() {
            self.ping(rank);
        }
    }

    pub(super) fn ping(&mut self, rank: u32) {
        if self.members.contains_key(&rank) && !self.pinged.contains_key(&rank) {
            self.pinged.insert(rank, Instant::now());
            self.connections.send(rank, &ToRank::Ping);
        }
    }

    /// Drops a rank: what it did or did not do is the reason.
    pub(super) fn give_up(&mut self, rank: u32, what: &str) {
        let Some(member) = self.members.remove(&rank) else {
            return;
        };
        self.connections.close(rank);
        self.pinged.remove(&rank);
        self.dropped
            .insert(rank, format!("{} {what}", member.hello.name()));
        self.failures.forget(rank);
        self.left.insert(rank, member.hello);
    }

    /// Remarks that a connection was no rank; many of them are counted.
    fn remark_stranger(&mut self, reason: String) {
        self.strangers += 1;
        let more = self.strangers.saturating_sub(MOST_OF_STRANGERS);
        let remark = match more {
            0 => reason,
            more => format!("{more} more connections were refused"),
        };
        match self.more_strangers {
            Some(place) => self.remarks[place] = remark,
            None if self.remarks.len() < MOST_REMARKS => {
                self.more_strangers = (more > 0).then_some(self.remarks.len());
                self.remarks.push(remark);
            }
            None => {}
        }
    }

    /// As [`look`](Self::look), where nothing is to be reported.
    pub(super) fn look_for_no_report(&mut self) -> Result<(), LaunchError> {
        for (rank, _) in self.look()? {
            self.give_up(rank, UNASKED);
        }
        Ok(())
    }

    /// Waits a moment for what happens. Returns reports, and other messages of ranks.
    pub(super) fn look(&mut self) -> Result<Vec<(u32, FromRank)>, LaunchError> {
        let mut said = Vec::new();
        for event in self.connections.wait()? {
            match event {
                RankEvent::Joined(hello) => {
                    let member = Member {
                        hello: *hello,
                        prepared: None,
                        is_busy: false,
                    };
                    self.members.insert(member.hello.rank, member);
                }
                RankEvent::Said(rank, FromRank::Pong) => {
                    self.pinged.remove(&rank);
                }
                RankEvent::Said(rank, FromRank::Ready(Ok(prepared))) => {
                    if let Some(member) = self.members.get_mut(&rank) {
                        member.prepared = Some(prepared);
                    }
                }
                RankEvent::Said(rank, FromRank::Ready(Err(reason))) => {
                    self.give_up(rank, &format!("cannot measure: {reason}"));
                }
                RankEvent::Said(rank, message) => said.push((rank, message)),
                RankEvent::Lost(rank, reason) => self.give_up(rank, &format!("is lost: {reason}")),
                RankEvent::Refused(None, reason) => self.remark_stranger(reason),
                RankEvent::Refused(rank, reason) => {
                    if self.remarks.len() < MOST_REMARKS {
                        self.remarks.push(reason.clone());
                    }
                    if let Some(rank) = rank.filter(|rank| !self.members.contains_key(rank)) {
                        self.refused.insert(rank, reason);
                        self.last_refused = Instant::now();
                    }
                }
            }
        }
        Ok(said)
    }
}
