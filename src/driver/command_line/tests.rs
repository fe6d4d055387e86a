use crate::testing::{Has as _, Refused as _, temporary};
use std::fs;

use clap::{Arg, ArgAction};

use super::*;

fn command() -> Command {
    let list = || {
        [
            Arg::new("service").long("service"),
            Arg::new("burst").long("burst"),
            Arg::new("inline")
                .long("inline")
                .num_args(0..=1)
                .default_missing_value("on"),
            Arg::new("force").long("force").action(ArgAction::SetTrue),
            Arg::new("quiet").long("quiet").action(ArgAction::SetTrue),
            Arg::new("out").long("out"),
            Arg::new("config").long("config"),
            Arg::new("resume").long("resume"),
        ]
    };
    Command::new("hcabench")
        .args(list())
        .subcommand(Command::new("queue").args(list()).args_override_self(true))
        .args_override_self(true)
}

fn words(text: &str) -> Vec<OsString> {
    text.split(' ').map(OsString::from).collect()
}

fn expanded(text: &str, file: &str) -> Result<String, String> {
    let path = temporary("run.toml");
    fs::write(&path, file).unwrap();
    let typed = words(&text.replace("FILE", path.to_str().unwrap()));
    let found = expand(typed, &command()).map_err(|error| error.to_string())?;
    // The file is read once: its name is in no command line that is recorded or given to a child.
    Ok(found.join(OsStr::new(" ")).into_string().unwrap())
}

#[test]
fn options_of_a_file_stand_before_those_typed() {
    let file = "service = [\"rc\", \"uc\"]\nburst = 8192\ninline = true\nquiet = false\n";
    let found = expanded("hcabench --config FILE --burst 5", file).unwrap();
    let expected = "hcabench --burst=8192 --inline --service=rc,uc --burst 5";
    assert_eq!(found, expected);
    let found = expanded("hcabench queue --config=FILE --burst 5", "burst = \"7\"").unwrap();
    assert_eq!(found, "hcabench queue --burst=7 --burst 5");
    let found = expanded("hcabench --config FILE", "command = \"queue\"\nburst = 7").unwrap();
    assert_eq!(found, "hcabench queue --burst=7");
}

#[test]
fn a_file_that_cannot_be_used_is_bad_input_that_names_it() {
    for (file, part) in [
        ("burst = ", "run.toml"),
        (
            "bursts = 7",
            "'bursts' is not an option of the HCA benchmark",
        ),
        ("command = \"nothing\"", "not a command of hcabench"),
        ("burst = { a = 1 }", "not a text, a number or a list"),
        ("config = \"x\"", "not an option of"),
    ] {
        expanded("hcabench --config FILE", file).refused(&[part]);
    }
    let other = expanded(
        "hcabench queue --config FILE",
        "command = \"hca\"\nburst = 1",
    );
    assert!(other.is_ok());
    let nowhere = expand(words("hcabench --config /nowhere/x.toml"), &command());
    nowhere.refused(&["/nowhere/x.toml"]);
}

#[test]
fn what_is_saved_reads_back() {
    let command = command();
    let typed = words("hcabench queue --service rc,uc --inline --burst 7 --out x --force");
    let matches = command.clone().get_matches_from(typed);
    let text = to_file(&matches, &command);
    text.lacks(&["out", "force"]);
    let found = expanded("hcabench --config FILE", &text).unwrap();
    let again = command.clone().get_matches_from(words(&found));
    assert_eq!(to_file(&again, &command), text);
}

#[test]
fn only_a_bare_resume_takes_the_command_line_of_its_folder() {
    let command = command();
    let only = |text: &str| only_resumes(&words(text), &command);
    assert_eq!(only("--resume x"), Some("x".into()));
    assert_eq!(only("--resume=x --quiet --until-round 3"), Some("x".into()));
    assert_eq!(only("--rounds 4 --resume x"), Some("x".into()));
    assert_eq!(only("--resume x --service rc"), None);
    assert_eq!(only("queue --resume x"), Some("x".into()));
    assert_eq!(only("queue --resume x --queue all"), None);
    assert_eq!(only("plot --resume x"), None);
    assert_eq!(only("--service rc"), None);
}

#[test]
fn what_belongs_to_one_run_is_not_repeated() {
    let line = words("--service rc --out x --force --budget=5s --inline --config=a");
    let kept = without(&line, &OF_ONE_RUN);
    assert_eq!(kept, words("--service rc --budget=5s --inline"));
}

#[test]
fn options_may_stand_before_the_folder_of_rerun() {
    let at = |text: &str| folder_of_rerun(&words(text), &command());
    assert_eq!(at("rerun x"), Some(1));
    assert_eq!(at("rerun --force x --out y"), Some(2));
    assert_eq!(at("rerun --out y --dry-run x"), Some(4));
    assert_eq!(at("rerun --out=y x"), Some(2));
    assert_eq!(at("rerun --inline x"), Some(2));
    for missing in ["rerun --force", "rerun --out x", "rerun --burst 5 --force"] {
        assert_eq!(at(missing), None, "{missing}");
        let typed = format!("hcabench {missing}");
        let refused = expand(words(&typed), &command());
        let options = missing.trim_start_matches("rerun ");
        refused.refused(&[missing, &format!("hcabench rerun DIR {options}")]);
    }
    let nowhere = expand(words("hcabench rerun --dry-run /nowhere/x"), &command());
    nowhere.refused(&["rerun /nowhere/x"]);
    // These are clap's.
    for help in [
        "hcabench rerun --help",
        "hcabench rerun -h",
        "hcabench rerun",
    ] {
        assert_eq!(expand(words(help), &command()).unwrap(), words(help));
    }
}
