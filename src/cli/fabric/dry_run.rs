//! What would be measured, by how many ranks there are; without a device.

use std::time::Duration;

use serde_json::{Value, json};

use super::FabricArguments;
use crate::arguments::UsageError;
use crate::bench::hca::plan::Point;
use crate::driver::dry_run::time_in_words;
use crate::host::machine_name::machine_name;
use crate::launch::identity::{Engine, Identity, Rendezvous, environment};
use crate::launch::schedule::{Concurrency, Pair, Schedule};
use crate::results::text::printable;
use crate::terminal::output::{print_as, terminal_width};
use crate::terminal::table::{Column, Table};

/// Connecting, probes and taking in what comes of a pair, in both directions.
const OF_A_PAIR: Duration = Duration::from_millis(300);
/// Up to this many ranks each pair is printed.
const ALL_PAIRS_TOLD: u32 = 8;

/// About how long a pair takes in both directions.
pub(super) fn of_a_pair(arguments: &FabricArguments, point: &Point) -> Duration {
    let messages = arguments.hca.repeat.saturating_mul(point.burst);
    let of_message = Duration::from_micros(10) + point.mean_pause();
    OF_A_PAIR + of_message.saturating_mul(messages).saturating_mul(2)
}

/// What would be measured.
struct DryRunPlan {
    ranks: u32,
    rounds: u32,
    concurrency: Concurrency,
    schedule: Schedule,
    round: Duration,
    /// Suspects with their control set at the most, and how long they take.
    again: (u64, Duration),
}

impl DryRunPlan {
    fn new(ranks: u32, arguments: &FabricArguments, point: &Point) -> Self {
        let schedule = Schedule::new(ranks, arguments.concurrency);
        let pair = of_a_pair(arguments, point);
        let again = match arguments.concurrency {
            Concurrency::Alone => 0,
            _ => schedule.pairs().min(2 * u64::from(arguments.again)),
        };
        DryRunPlan {
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

    /// The pairs of each batch, where they are few.
    fn batches(&self) -> Option<Vec<Vec<Pair>>> {
        (self.ranks <= ALL_PAIRS_TOLD).then(|| self.schedule.batches().collect())
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
        let mut text = format!(
            "{} ranks, each pair in both directions, {at_once}; {} round{}\n\n{}",
            self.ranks,
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
        text + "\nno device was opened: the time of a pair is an estimate\n"
    }

    fn document(&self) -> Value {
        let mut document = json!({
            "ranks": self.ranks,
            "concurrency": self.concurrency.to_string(),
            "rounds": self.rounds,
            "pairs": self.schedule.pairs(),
            "batches": self.schedule.batch_count(),
            "again_at_most": self.again.0,
            "round_s": self.round.as_secs_f64(),
            "time_s": self.all().as_secs_f64(),
        });
        if let Some(batches) = self.batches() {
            let told = |batch: &Vec<Pair>| batch.iter().map(|pair| pair.ranks()).collect();
            let told: Vec<Vec<[u32; 2]>> = batches.iter().map(told).collect();
            document["batch_pairs"] = json!(told);
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
    let ranks = match (arguments.ranks, &found) {
        (Some(ranks), Ok(_)) => ranks,
        // What another number of ranks would take.
        (Some(ranks), Err(error)) if error.is_by_number() => ranks,
        (None, Ok(identity)) => identity.ranks,
        (_, Err(error)) => return Err(UsageError(error.to_string()).into()),
    };
    let by_launcher = Identity::rank_by_launcher(&environment);
    if arguments.rank.or(by_launcher).is_some_and(|rank| rank > 0) {
        return Ok(0);
    }
    if ranks < 2 {
        return Err(UsageError(format!("--ranks {ranks}: a pair takes 2 or more")).into());
    }
    let planned = DryRunPlan::new(ranks, arguments, point);
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
    use super::*;
    use crate::testing::Has as _;

    fn planned(ranks: u32, concurrency: Concurrency) -> DryRunPlan {
        let schedule = Schedule::new(ranks, concurrency);
        DryRunPlan {
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
}
