//! What would be measured, by how many ranks there are; without a device.

use std::time::Duration;

use serde_json::{Value, json};

use super::FabricArguments;
use super::distances;
use crate::arguments::UsageError;
use crate::bench::fabric::tiers::{Endpoint, TierFile, TierSource, Tiers, meaning};
use crate::bench::hca::plan::Point;
use crate::driver::dry_run::time_in_words;
use crate::host::machine_name::machine_name;
use crate::launch::identity::{Engine, Identity, Rendezvous, environment};
use crate::launch::schedule::{Concurrency, Pair, Schedule};
use crate::results::finding::Finding;
use crate::results::finding::kinds::PAIRS_SAMPLED;
use crate::results::text::printable;
use crate::results::units;
use crate::terminal::output::{print_as, terminal_width};
use crate::terminal::table::{Column, Table};

/// Connecting, probes and taking in what comes of a pair, in both directions.
const OF_A_PAIR: Duration = Duration::from_millis(300);
/// The bytes of an ordered pair's rows in runs.csv and pairs.csv.
const BYTES_OF_A_PAIR: [u64; 2] = [280, 330];
/// The memory that rank 0 takes for an ordered pair and round.
const MEMORY_OF_A_PAIR: u64 = 340;
/// The processor time that rank 0 takes for an ordered pair.
const CPU_OF_A_PAIR: Duration = Duration::from_micros(45);
/// Up to this many ranks each pair is printed.
const MOST_RANKS_WITH_PAIRS: u32 = 8;

/// What must be known where not all pairs are measured.
pub(super) fn sampled(schedule: Schedule) -> Option<Finding> {
    let partners = schedule.sampled()?;
    let percent = 100.0 * schedule.pairs() as f64 / schedule.all_pairs() as f64;
    // Names: a run that goes on states the same again.
    let found = Finding::of(&PAIRS_SAMPLED).name("partners", partners.to_string());
    let found = found.name("others", others(schedule).to_string());
    Some(found.name("percent", units::significant(percent)))
}

fn others(schedule: Schedule) -> u32 {
    schedule.ranks().saturating_sub(1)
}

/// About how long a pair takes in both directions.
pub(super) fn of_a_pair(arguments: &FabricArguments, point: &Point) -> Duration {
    let messages = arguments.hca.repeat.saturating_mul(point.burst);
    let of_message = Duration::from_micros(10) + point.mean_pause();
    OF_A_PAIR + of_message.saturating_mul(messages).saturating_mul(2)
}

/// The pairs of each tier, on hosts of the file.
struct PlannedTiers {
    tiers: Tiers,
    /// The hosts that the ranks are assumed to be on, and how many the file names.
    hosts: [usize; 2],
    /// By tier, the pairs that are measured.
    measured: Vec<u64>,
}

impl PlannedTiers {
    /// As if each rank were on a host of the file, in the order of their names.
    fn new(ranks: u32, file: TierFile, schedule: Schedule) -> Self {
        let hosts = file.hosts();
        let named = hosts.len();
        let mut there: Vec<Option<Endpoint>> = hosts
            .into_iter()
            .map(|it| Some(Endpoint::of_host(it)))
            .collect();
        there.truncate(ranks as usize);
        let taken = there.len();
        // Further ranks are on hosts that it does not name.
        there.extend(
            (taken..ranks as usize).map(|rank| Some(Endpoint::of_host(format!("rank {rank}")))),
        );
        let tiers = Tiers::of_ranks(&there, &TierSource::File(file));
        let mut measured = vec![0; tiers.count()];
        for pair in schedule.batches().flatten() {
            let [from, to] = pair.ranks().map(|rank| rank as usize);
            measured[tiers.of(from, to)] += 1;
        }
        PlannedTiers {
            tiers,
            hosts: [taken, named],
            measured,
        }
    }

    fn text(&self) -> String {
        let mut table = Table::new(vec![
            Column::text("tier"),
            Column::text("nodes"),
            Column::number("pairs", ""),
            Column::number("measured", ""),
        ]);
        for ((name, pairs), measured) in self.tiers.pairs().into_iter().zip(&self.measured) {
            let words = meaning(name);
            table.row([
                name.to_owned(),
                words,
                pairs.to_string(),
                measured.to_string(),
            ]);
        }
        let [taken, named] = self.hosts;
        let source = self.tiers.source();
        let others = self.tiers.unknown().len();
        let hosts = match (taken == named, others) {
            (true, 0) => format!("the {named} hosts that it names"),
            (true, _) => format!(
                "the {named} hosts that it names, and the other {others} ranks on hosts that it does not name"
            ),
            (false, _) => format!("the first {taken} of the {named} hosts that it names"),
        };
        let mut text = format!("\ntiers by {source}, if the ranks are on {hosts}:\n");
        text += &table.render(terminal_width());
        text
    }
}

/// What would be measured.
struct DryRunPlan {
    tiers: Option<PlannedTiers>,
    ranks: u32,
    rounds: u32,
    concurrency: Concurrency,
    schedule: Schedule,
    round: Duration,
    /// Suspects with their control set at the most, and how long they take.
    again: (u64, Duration),
}

impl DryRunPlan {
    fn new(ranks: u32, arguments: &FabricArguments, point: &Point, file: Option<TierFile>) -> Self {
        let schedule = arguments.schedule(ranks);
        let pair = of_a_pair(arguments, point);
        let again = match arguments.concurrency {
            Concurrency::Alone => 0,
            _ => schedule.pairs().min(2 * u64::from(arguments.again)),
        };
        DryRunPlan {
            tiers: file.map(|file| PlannedTiers::new(ranks, file, schedule)),
            ranks,
            rounds: arguments.rounds(),
            concurrency: arguments.concurrency,
            schedule,
            round: schedule.time(pair),
            again: (again, pair.saturating_mul(again as u32)),
        }
    }

    fn all(&self) -> Duration {
        let rounds = self.round.saturating_mul(self.rounds);
        rounds.saturating_add(self.again.1)
    }

    fn ordered_pairs(&self) -> u64 {
        self.schedule.pairs().saturating_mul(2)
    }

    /// Of the tables, and of rank 0's memory.
    fn bytes(&self) -> [u64; 2] {
        let [a_round, over_all] = BYTES_OF_A_PAIR;
        let rounds = u64::from(self.rounds);
        let pairs = self.ordered_pairs();
        let files = pairs.saturating_mul(a_round.saturating_mul(rounds).saturating_add(over_all));
        [
            files,
            pairs
                .saturating_mul(rounds)
                .saturating_mul(MEMORY_OF_A_PAIR),
        ]
    }

    /// Of rank 0.
    fn cpu(&self) -> Duration {
        let pairs = self.ordered_pairs().saturating_mul(u64::from(self.rounds));
        Duration::from_secs_f64(CPU_OF_A_PAIR.as_secs_f64() * pairs as f64)
    }

    /// The pairs of each batch, where they are few.
    fn batches(&self) -> Option<Vec<Vec<Pair>>> {
        (self.ranks <= MOST_RANKS_WITH_PAIRS).then(|| self.schedule.batches().collect())
    }

    fn text(&self) -> String {
        let mut table = Table::new(vec![
            Column::text(""),
            Column::number("pairs", ""),
            Column::number("batches", ""),
            Column::number("time", "about"),
        ]);
        let (pairs, batches) = (self.schedule.pairs(), self.schedule.batch_count());
        let rounds = u64::from(self.rounds);
        let (again, of_again) = self.again;
        table.row([
            "a round".to_owned(),
            pairs.to_string(),
            batches.to_string(),
            time_in_words(self.round),
        ]);
        if again > 0 {
            table.row([
                "suspects again, at most".to_owned(),
                again.to_string(),
                again.to_string(),
                time_in_words(of_again),
            ]);
        }
        table.row([
            "all".to_owned(),
            pairs
                .saturating_mul(rounds)
                .saturating_add(again)
                .to_string(),
            batches
                .saturating_mul(rounds)
                .saturating_add(again)
                .to_string(),
            time_in_words(self.all()),
        ]);
        let at_once = match self.concurrency {
            Concurrency::Together => "all that have no rank in common at once".to_owned(),
            Concurrency::Alone => "one pair after the other".to_owned(),
            Concurrency::AtMost(most) => format!("at most {most} at once"),
        };
        let of_others = self.schedule.sampled().map(|partners| {
            let others = others(self.schedule);
            format!(", each with {partners} of {others} others drawn at random")
        });
        let mut text = format!(
            "{} ranks{}, each pair in both directions, {at_once}; {} round{}\n\n{}",
            self.ranks,
            of_others.unwrap_or_default(),
            self.rounds,
            if self.rounds == 1 { "" } else { "s" },
            table.render(terminal_width())
        );
        if let Some(batches) = self.batches() {
            let mut table = Table::new(vec![Column::number("batch", ""), Column::text("pairs")]);
            for (number, batch) in (1..).zip(batches) {
                let pairs: Vec<String> = batch.iter().map(ToString::to_string).collect();
                table.row([format!("{number}"), pairs.join(" ")]);
            }
            text += &format!("\n{}", table.render(terminal_width()));
        }
        if let Some(tiers) = &self.tiers {
            text += &tiers.text();
        }
        let [files, memory] = self.bytes().map(units::bytes);
        text += &format!(
            "\nrank 0 needs about {memory} of memory, {files} of disk for its tables, and {} of processor time\n",
            time_in_words(self.cpu())
        );
        if let Some(found) = sampled(self.schedule) {
            text += &format!("{}\n", found.line(0));
        }
        text + "\nno device was opened: the time of a pair is an estimate\n"
    }

    fn document(&self) -> Value {
        let mut document = json!({
            "ranks": self.ranks,
            "concurrency": self.concurrency.to_string(),
            "rounds": self.rounds,
            "partners": self.schedule.sampled().map_or(json!("all"), |partners| json!(partners)),
            "pairs": self.schedule.pairs(),
            "all_pairs": self.schedule.all_pairs(),
            "batches": self.schedule.batch_count(),
            "again_at_most": self.again.0,
            "round_s": self.round.as_secs_f64(),
            "time_s": self.all().as_secs_f64(),
            "rank_0_files_bytes": self.bytes()[0],
            "rank_0_memory_bytes": self.bytes()[1],
            "rank_0_cpu_s": self.cpu().as_secs_f64(),
        });
        if let Some(batches) = self.batches() {
            let ranks = |batch: &Vec<Pair>| batch.iter().map(|pair| pair.ranks()).collect();
            let ranks: Vec<Vec<[u32; 2]>> = batches.iter().map(ranks).collect();
            document["batch_pairs"] = json!(ranks);
        }
        if let Some(planned) = &self.tiers {
            let PlannedTiers {
                tiers,
                hosts,
                measured,
            } = planned;
            let mut pairs = serde_json::Map::new();
            let mut of_sample = serde_json::Map::new();
            for ((name, all), measured) in tiers.pairs().into_iter().zip(measured) {
                pairs.insert(name.to_owned(), all.into());
                of_sample.insert(name.to_owned(), (*measured).into());
            }
            document["tiers"] = json!({
                "source": tiers.source(), "pairs": pairs, "measured": of_sample, "hosts": hosts[0], "hosts_named": hosts[1],
            });
        }
        document
    }
}

/// The launcher by which the ranks would find each other, and where.
fn launcher_text(identity: &Identity) -> String {
    let Rendezvous { hosts, port } = &identity.rendezvous;
    let hosts: Vec<_> = hosts.iter().map(|host| printable(host)).collect();
    format!(
        "job {}; rank 0 is met at {}, port {port}\n",
        identity.job,
        hosts.join(" or "),
    )
}

/// Prints schedule and duration; of several ranks that a launcher has started, the first does.
pub(super) fn run(arguments: &FabricArguments, point: &Point) -> anyhow::Result<u8> {
    let found = arguments.identity(&machine_name().0);
    let by_launcher = Identity::rank_by_launcher(&environment);
    let rank = arguments.rank.or(by_launcher);
    let file = match rank {
        Some(1..) => None,
        _ => distances::read(arguments)?,
    };
    let ranks = match (arguments.ranks, &found, &file) {
        (Some(ranks), Ok(_), _) => ranks,
        // What another number of ranks would take.
        (Some(ranks), Err(error), _) if error.is_by_number() => ranks,
        (None, Ok(identity), _) => identity.ranks,
        (None, Err(_), Some(file)) if by_launcher.is_none() => file.hosts().len() as u32,
        (_, Err(error), _) => return Err(UsageError(error.to_string()).into()),
    };
    if rank.is_some_and(|rank| rank > 0) {
        return Ok(0);
    }
    if ranks < 2 {
        return Err(UsageError(format!("--ranks {ranks}: a pair takes 2 or more")).into());
    }
    let planned = DryRunPlan::new(ranks, arguments, point, file);
    let by_launcher = found
        .ok()
        .filter(|identity| identity.job.engine != Engine::Options);
    let mut document = planned.document();
    if let Some(identity) = &by_launcher {
        document["job"] = json!(identity.job);
        document["rendezvous"] =
            json!({ "hosts": identity.rendezvous.hosts, "port": identity.rendezvous.port });
    }
    let json = arguments.hca.output.json;
    let text = || planned.text() + &by_launcher.as_ref().map_or_else(String::new, launcher_text);
    print_as(json, &document, text).map(|()| 0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::testing::Has as _;

    fn planned(ranks: u32, concurrency: Concurrency) -> DryRunPlan {
        let schedule = Schedule::new(ranks, concurrency);
        DryRunPlan {
            tiers: None,
            ranks,
            rounds: 3,
            concurrency,
            schedule,
            round: schedule.time(Duration::from_secs(1)),
            again: (2, Duration::from_secs(2)),
        }
    }

    #[test]
    fn pairs_of_few_ranks_are_told_and_of_many_their_number() {
        let four = planned(4, Concurrency::Together);
        let document = four.document();
        assert_eq!(document["time_s"], 11.0);
        let batches = document["batch_pairs"].as_array().unwrap();
        assert_eq!(batches.len(), 3);
        assert_eq!(batches[0].as_array().unwrap().len(), 2);
        let text = four.text();
        text.has(&["4 ranks", "3 rounds", "0-3", "11s"]);
        let many = planned(1024, Concurrency::Alone);
        assert_eq!(many.document()["batch_pairs"], Value::Null);
        assert_eq!(many.document()["batches"], 523_776);
        assert!(many.text().contains("1571330"), "{}", many.text());
    }

    #[test]
    fn the_pairs_of_each_tier_are_counted_on_the_hosts_of_the_file() {
        let text = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=c Switches=a,b\n\
                    SwitchName=d Nodes=n[5-6]\n";
        let of = |ranks| {
            let mut plan = planned(ranks, Concurrency::Together);
            let file = TierFile::topology(text, Path::new("")).unwrap();
            plan.tiers = Some(PlannedTiers::new(ranks, file, plan.schedule));
            plan
        };
        let six = of(6).document();
        assert_eq!(six["tiers"]["source"], "topology.conf");
        assert_eq!(
            six["tiers"]["pairs"],
            json!({ "leaf": 3, "up-1": 4, "apart": 8 })
        );
        let (four, seven) = (of(4), of(7));
        assert_eq!(
            four.document()["tiers"]["pairs"],
            json!({ "leaf": 2, "up-1": 4 })
        );
        four.text().has(&[
            "by topology.conf",
            "the first 4 of the 6 hosts",
            "in one pod",
        ]);
        let pairs = &seven.document()["tiers"]["pairs"];
        assert_eq!(
            *pairs,
            json!({ "leaf": 3, "up-1": 4, "apart": 8, "unknown": 6 })
        );
        seven.text().has(&[
            "not judged",
            "the 6 hosts that it names, and the other 1 ranks",
        ]);
    }
}
