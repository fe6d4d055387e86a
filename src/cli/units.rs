//! Numbers are written alike in all options, as clap has them.

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};

use super::CommandLine;

/// All commands that take options, by the words before these.
fn commands() -> Vec<(Vec<String>, Command)> {
    let line = CommandLine::command();
    let mut all = vec![(Vec::new(), line.clone())];
    let mut next = 0;
    while let Some((words, command)) = all.get(next).cloned() {
        all.extend(command.get_subcommands().map(|below| {
            let mut words = words.clone();
            words.push(below.get_name().to_owned());
            (words, below.clone())
        }));
        next += 1;
    }
    all
}

/// An option that takes a value, with its command.
struct TakingOption {
    command: Vec<String>,
    name: String,
    line: Command,
}

impl TakingOption {
    /// The message about a value, if it is refused whatever else there is.
    fn refusal(&self, value: &str) -> Option<String> {
        let mut words = vec!["hcabench".to_owned()];
        words.extend(self.command.iter().cloned());
        words.push(format!("--{}={value}", self.name));
        let error = self.line.clone().try_get_matches_from(words).err()?;
        let of_value = [ErrorKind::ValueValidation, ErrorKind::InvalidValue];
        of_value.contains(&error.kind()).then(|| {
            assert!(error.get(ContextKind::InvalidArg).is_some(), "{error}");
            error.to_string()
        })
    }

    fn takes(&self, value: &str) -> bool {
        self.refusal(value).is_none()
    }
}

/// All of them but those of free text, by their command and name.
fn options() -> Vec<TakingOption> {
    let line = CommandLine::command();
    let mut all = Vec::new();
    for (words, command) in commands() {
        let takes = |arg: &&Arg| arg.get_action().takes_values() && arg.get_long().is_some();
        for arg in command.get_arguments().filter(takes) {
            all.push(TakingOption {
                command: words.clone(),
                name: arg.get_long().unwrap_or_default().to_owned(),
                line: line.clone(),
            });
        }
    }
    all.retain(|option| !option.takes("neither a number nor a name!"));
    all
}

/// Numbers that count nothing: they are names, or codes of a standard.
const NAMES: [&str; 18] = [
    "seed",
    "order-seed",
    "cpu",
    "cpus",
    "sender-cpu",
    "receiver-cpu",
    "completion-cpu",
    "stamp-cpu",
    "background-cpu",
    "chase-cpu",
    "generators",
    "memory-node",
    "comp-vector",
    "zeromq-port",
    "broker-process",
    "pkey-index",
    "flow-label",
    "path-mtu",
];
/// Sizes in bytes, of which k, M and G are binary.
const SIZES: [&str; 3] = ["max-inline", "log-buffer", "size"];

#[test]
fn numbers_of_things_and_rates_take_the_same_units_with_all_options() {
    let mut checked = 0;
    for option in options() {
        let is_taken = |number: &u64| option.takes(&number.to_string());
        let Some(number) = [1000, 2000, 20_000, 64].into_iter().find(is_taken) else {
            continue;
        };
        let name = &*option.name;
        if NAMES.contains(&name)
            || SIZES.contains(&name)
            || number < 1000 && !option.takes("0.064k")
        {
            // Codes of a byte, shares and fixed sets.
            let is_named = NAMES.contains(&name) || SIZES.contains(&name);
            assert!(
                is_named || !option.takes("256") || !option.takes("300"),
                "--{name}"
            );
            continue;
        }
        let thousands = number as f64 / 1e3;
        let ways = [
            format!("{thousands}k"),
            format!("{}M", thousands / 1e3),
            format!("{}G", thousands / 1e6),
        ];
        for way in ways {
            assert_eq!(option.refusal(&way), None, "{}", option.command.join(" "));
        }
        // What is refused is told with what is allowed.
        let refusal = option.refusal("1x").unwrap();
        let is_told = refusal.contains("\"1x\"") && refusal.contains("from ");
        let has_units = refusal.contains("k, M") || refusal.contains("k, M or G");
        let is_told = is_told && has_units || name == "concurrency";
        assert!(is_told, "{} {refusal}", option.command.join(" "));
        checked += 1;
    }
    assert!(checked >= 40, "{checked}");
}

#[test]
fn sizes_take_the_same_units_with_all_options() {
    let mut checked = 0;
    for option in options() {
        if !SIZES.contains(&&*option.name) || !option.takes("16k") && !option.takes("4k") {
            continue;
        }
        let (size, way) = match option.takes("16k") {
            true => ("16k", "16KiB"),
            false => ("4k", "4KiB"),
        };
        assert_eq!(option.refusal(&size.to_uppercase()), None);
        assert_eq!(option.refusal(way), None);
        checked += 1;
    }
    assert!(checked >= 4, "{checked}");
}

#[test]
fn times_take_the_same_units_with_all_options() {
    let mut checked = 0;
    for option in options() {
        let Some(time) = ["1s", "1ms", "20us"]
            .into_iter()
            .find(|time| option.takes(time))
        else {
            continue;
        };
        let nanos = humantime::parse_duration(time).unwrap().as_nanos();
        for way in [format!("{nanos}ns"), format!("{}us", nanos / 1000)] {
            assert_eq!(option.refusal(&way), None, "{}", option.command.join(" "));
        }
        let refusal = option.refusal("1x").unwrap();
        let is_told = refusal.contains("is not a time from") && refusal.contains("ns, us, ms, s");
        assert!(is_told, "{} {refusal}", option.command.join(" "));
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}
