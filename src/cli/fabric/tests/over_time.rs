//! Rank 0 judges what it measured against a baseline, and beside earlier runs.

use super::*;
use crate::cli::baseline::{self, BaselineArguments};

#[test]
fn a_node_that_is_slower_than_in_the_baseline_breaks_a_rule() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let earlier = ["runs/1", "runs/2", "runs/3"].map(path);
    for out in &earlier {
        let (ended, _) = run(&["--out", out], 5, "n", None);
        assert_eq!(ended.unwrap(), 0);
    }
    let file = path("baseline.json");
    let arguments = BaselineArguments {
        folders: earlier.iter().map(Into::into).collect(),
        out: (&file).into(),
        quiet: true,
    };
    assert_eq!(baseline::run(&arguments).unwrap(), 0);
    let same = path("same");
    let (ended, _) = run(&["--out", &same, "--baseline", &file], 5, "n", None);
    assert_eq!(ended.unwrap(), 0);
    let rules = text(Path::new(&same), columns::RULES);
    rules.has(&["\nrtt/2.p50,node,n2,", ",ok,"]);
    assert!(!rules.contains("yes"), "{rules}");

    // As if n2 had been faster by a quarter.
    let mut known: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for effect in known["nodes"]["n2"]["figures"]["rtt/2.p50"]
        .as_array_mut()
        .unwrap()
    {
        effect["centre"] = (effect["centre"].as_f64().unwrap() - 0.3).into();
    }
    fs::write(&file, known.to_string()).unwrap();
    let alone = path("alone");
    let (ended, _) = run(&["--out", &alone, "--baseline", &file], 5, "n", None);
    assert_eq!(ended.unwrap(), 3);
    let rules = text(Path::new(&alone), columns::RULES);
    let row = rules
        .lines()
        .find(|row| row.starts_with("rtt/2.p50,node,n2,"));
    row.unwrap().has(&[",out,", "unknown", "1 of 1", "yes"]);
    assert_eq!(rules.matches("yes").count(), 1, "{rules}");
    assert!(!Path::new(&alone).join(MARK).exists());

    // One run is no two of three; three earlier ones of which none is comparable count as little.
    let (history, none) = (path("runs"), path("none"));
    fs::create_dir(&none).unwrap();
    for (earlier, code) in [(&none, 0), (&history, 3)] {
        let out = format!("{earlier}/new");
        let options = ["--out", &out, "--baseline", &file, "--history", earlier];
        let (ended, _) = run(&options, 5, "n", None);
        assert_eq!(ended.unwrap(), code, "{earlier}");
    }

    // Before any rank comes.
    for (option, value, told) in [
        ("--size", "64", "these settings differ from the baseline's"),
        ("--concurrency", "alone", "schedule.concurrency"),
        (
            "--rules",
            "/nowhere/rules.toml",
            "--rules /nowhere/rules.toml",
        ),
    ] {
        let new = path("new");
        let options = ["--out", &new, "--baseline", &file, option, value];
        let error = run(&options, 5, ALONE, None).0.unwrap_err();
        assert!(error.is::<UsageError>(), "{error}");
        error.to_string().has(&[told]);
        assert!(!Path::new(&new).exists());
    }

    // Once it is known which ranks come.
    let other = path("other");
    let (ended, measured) = run(&["--out", &other, "--baseline", &file], 5, "m", None);
    let error = ended.unwrap_err();
    assert!(error.is::<UsageError>(), "{error}");
    error
        .to_string()
        .has(&["none of its nodes is in the baseline", "fix: "]);
    assert!(measured.is_empty() && !Path::new(&other).exists());
}
