//! `--find-rate` as its user has it: refusals, the dry run, a search that ends and one that is taken up again. Nothing
//! here depends on how long anything takes: no latency is below a nanosecond, so that no rate holds, and how many rates
//! are tried before a search ends depends on whether each was kept.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::common::{Row, alone, ends, expect, json, rows};
use crate::made_up_run::rounds::{document, hca_point, run};
use crate::testing::{Has as _, temporary};
use hcabench::results::schema::hca;

const QUEUE: &str = "queue --queue lamport --capacity 64 --load constant-rate --rate 2k,20k --count 100 --warmup 0 \
                     --clock monotonic --find-rate p99<1ns --order-seed 3";
const NODE: &str = "node --type loopback,shmem --rate 2k,4k --count 100 --warmup 0 --find-rate p99<1ns,loss<50% \
                    --order-seed 3";

/// Which point each round measured, in order.
fn measured(run: &Path) -> Vec<(String, String)> {
    let runs = rows(&run.join("runs.csv")).into_iter();
    runs.map(|row: Row| (row["round"].clone(), row["point"].clone()))
        .collect()
}

#[test]
fn what_cannot_be_searched_is_refused_with_what_can() {
    let folder = &*temporary("");
    for (words, parts) in [
        (
            "queue --find-rate p99<5us --load none",
            ["--load none", "allowed with constant-rate"],
        ),
        (
            "queue --find-rate p99<5us --load bursty",
            ["--load bursty", "allowed with constant-rate"],
        ),
        (
            "queue --find-rate p99<5us --load-curve",
            ["--load-curve", "allowed with --load constant-rate"],
        ),
        (
            "queue --find-rate p99<5us --load constant-rate --measure throughput",
            ["--measure throughput", "allowed with --measure time"],
        ),
        (
            "queue --find-rate p99<5us --load constant-rate --measure round-trip",
            ["--measure round-trip", "allowed with --measure time"],
        ),
        (
            "queue --find-rate p99<5us --load constant-rate --rate 1k",
            ["--rate 1000", "give two rates"],
        ),
        (
            "queue --find-rate loss<1%",
            ["--find-rate loss<1%", "loses nothing"],
        ),
        (
            "queue --find-rate p99<5us --load constant-rate --rounds 5",
            ["--rounds 5", "6 or more"],
        ),
        (
            "queue --find-rate p98<5us --load constant-rate",
            ["--find-rate", "\"p98\" is not one of p10, p50"],
        ),
        (
            "node --find-rate p99<5us --after-miss skip",
            ["--after-miss skip", "use catch-up"],
        ),
        (
            "--find-rate p99<5us --operation send,read",
            ["--operation read", "send, write and write-polled"],
        ),
        (
            "--find-rate p99<5us --operation fetch-add",
            ["--operation fetch-add", "nothing of it arrives"],
        ),
        (
            "--find-rate p99<5us --peer other",
            ["--peer other", "on one host"],
        ),
        (
            "--find-rate p99<5us --pause 1us",
            ["--pause", "messages are posted at rates"],
        ),
        (
            "--find-rate p99<5us --rate 1k,2k --arrivals poisson",
            ["--arrivals poisson", "allowed with constant"],
        ),
        (
            "--find-rate p99<5us --rate 1k",
            ["--rate 1000", "give two rates"],
        ),
        (
            "--find-rate p99<5us --burst 50",
            ["has 50 messages", "raise --burst or --repeat"],
        ),
        (
            "node --find-rate loss<0.1% --duration 1s",
            ["has 100 samples", "raise --duration or --count"],
        ),
        (
            "queue --find-rate p99<5us --rate 1k,1M --duration 20ms",
            ["has 20 elements", "raise --duration or --count"],
        ),
        (
            "node --find-rate p99<5us --rate 3.14,100 --duration 100s",
            ["--rate 3.14", "from 20 a second on"],
        ),
        (
            "fabric --find-rate p99<5us",
            ["--find-rate p99<5us", "in a fabric"],
        ),
        (
            "compare --run 'queue --find-rate p99<5us' --run queue --rounds 1",
            ["--run", "has --find-rate"],
        ),
    ] {
        // With a dry run, so that no device is needed where one is refused too late.
        let words = match words.starts_with("compare") {
            true => words.to_owned(),
            false => format!("{words} --dry-run"),
        };
        let (shown, told) = expect(folder, &words, 2);
        assert_eq!(shown, "", "{words}");
        told.has(&parts);
    }
}

#[test]
fn a_dry_run_has_the_rates_the_rounds_and_the_time_at_the_most() {
    let folder = &*temporary("");
    for (words, name) in [
        (
            "queue --queue lamport,baton --rate 1k,1M --duration 200ms --find-rate p99<5us",
            "1.00 k/s to 1.00 M/s, 2 searches",
        ),
        (
            "node --type loopback --find-rate p99<5us",
            "100 /s to 100 k/s",
        ),
        (
            "--find-rate p99<5us,loss<1% --burst 1000",
            "1.00 k/s to 1.00 M/s",
        ),
    ] {
        let words = format!("{words} --rounds 9 --dry-run");
        let (shown, _) = expect(folder, &words, 0);
        shown.has(&[
            &format!("from {name}: at most "),
            "rates, each in 6 to 9 rounds",
            "the rates that take longest, and the most that all rounds take:",
        ]);
        let document = ends(folder, &format!("{words} --json"), 0).json();
        document["find_rate"].as_str().unwrap().has(&[name]);
        let number = |key: &str| document[key].as_f64().unwrap();
        assert_eq!(number("rounds") % 9.0, 0.0);
        assert!(
            number("rounds") >= 90.0 && number("time_s") > 0.0,
            "{document}"
        );
    }
}

#[test]
fn a_search_that_finds_nothing_ends_well_and_is_taken_up_again() {
    let _alone = alone();
    let folder = &*temporary("");
    for (name, words, searches) in [("queue", QUEUE, 1), ("node", NODE, 2)] {
        let words = format!("{words} --rounds 6");
        let ended = ends(folder, &format!("{words} --out {name}"), 0);
        ended.stdout.has(&[
            "not found between 2.00 k/s and",
            "no rate that was measured holds",
            &format!("figure: hcabench plot median {name} --x rate_per_s --metric intended --percentile p99"),
        ]);
        let run = &folder.join(name);
        let all = measured(run);
        let settings = json(&run.join("settings.json"));
        assert_eq!(
            settings["run"]["find_rate"].as_str().unwrap(),
            match name {
                "queue" => "p99<1ns",
                _ => "p99<1ns,loss<50%",
            }
        );
        let found = &settings["details"]["find_rate"];
        assert_eq!(found.as_array().unwrap().len(), searches);
        for search in found.as_array().unwrap() {
            assert_eq!(search["found"], false);
            assert_eq!(search["rate_per_s"], Value::Null);
        }
        // Each rate that was tried is a row, and no other, with the rounds that it had.
        let tried: BTreeSet<&String> = all.iter().map(|(_, point)| point).collect();
        let summary = rows(&run.join("summary.csv"));
        assert_eq!(summary.len(), tried.len());
        for row in &summary {
            let rounds = all.iter().filter(|(_, point)| *point == row["point"]);
            assert_eq!(row["rounds"], rounds.count().to_string());
            assert_eq!(
                (row["rounds"].as_str(), row["status"].as_str()),
                ("6", "complete")
            );
        }
        let findings = json(&run.join("findings.json"));
        findings.to_string().has(&["rate-not-found"]);

        // Interrupted within the first rate, at its end and after it.
        for end in [1, 6, 8] {
            let part = format!("{name}-{end}");
            ends(
                folder,
                &format!("{words} --out {part} --until-round {end}"),
                0,
            );
            let before = measured(&folder.join(&part));
            // Where the first rate is not kept, there is no other.
            let expected = searches * end.min(6)..=searches * end;
            assert!(expected.contains(&before.len()), "{before:?}");
            if folder.join(&part).join("INCOMPLETE").exists() {
                let ended = ends(folder, &format!("--resume {part} --json"), 0);
                let document = ended.json();
                assert_eq!(document["status"], "complete");
                assert_eq!(document["find_rate"][0]["found"], false);
            }
            let after = measured(&folder.join(&part));
            assert_eq!(after[..before.len()], before);
            assert!(after.len() >= 6 * searches, "{after:?}");
        }
        // With another condition it is another search.
        let again = folder.join("again");
        let out = again.to_str().unwrap();
        ends(folder, &format!("{words} --out {out} --until-round 1"), 0);
        let other = words.replace("p99<1ns", "p50<1ns");
        let (_, told) = expect(folder, &format!("{other} --resume {out}"), 2);
        told.has(&["find_rate", "p99<1ns", "p50<1ns"]);
        let (_, told) = expect(folder, &format!("{words} --resume {out} --rounds 7"), 2);
        told.has(&["--rounds 7", "6 rounds at a rate"]);
        let other = words.replace("--rate 2k", "--rate 3k");
        let (_, told) = expect(folder, &format!("{other} --resume {out}"), 2);
        told.has(&[
            "would not be measured now",
            "measure again, with another --out",
        ]);
        std::fs::remove_dir_all(again).unwrap();
    }
}

#[test]
fn searches_with_other_conditions_are_not_compared_as_equals() {
    let folder = &*temporary("");
    for (name, conditions) in [
        ("plain", None),
        ("first", Some("p99<50us")),
        ("same", Some("p99<50us")),
        ("other", Some("p99<80us")),
    ] {
        let mut document = document(&hca::SCHEMA);
        if let Some(conditions) = conditions {
            document["run"]["find_rate"] = conditions.into();
        }
        let points = [hca_point(&[(hca::SERVICE, "rc")], 1, 8, 30_000.0)];
        run(&folder.join(name), &hca::SCHEMA, &document, &points, 0);
    }
    expect(folder, "compare first same", 0);
    for (new, there) in [("other", "p99<80us"), ("plain", "none")] {
        let (_, told) = expect(folder, &format!("compare first {new}"), 2);
        told.has(&["run.find_rate", "p99<50us", there]);
        expect(folder, &format!("compare first {new} --allow find_rate"), 0);
    }
    expect(folder, "show plain", 0);
    expect(folder, "show first", 0);
}
