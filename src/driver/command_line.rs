//! From what was typed to what is run: options from a file, the command line of an earlier run, and back into a file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::arguments::UsageError;
use crate::results::document::Document;
use crate::results::schema::fabric::FABRIC;
use crate::results::text::printable;
use crate::results::{durable, json};

/// Options that belong to one call and not to what is measured, with whether they take a value.
const OF_ONE_RUN: [(&str, bool); 15] = [
    ("out", true),
    ("json-lines", true),
    ("label", true),
    ("force", false),
    ("resume", true),
    ("config", true),
    ("save-config", true),
    ("until-round", true),
    ("dry-run", false),
    ("no-color", false),
    ("help", false),
    ("version", false),
    // Of a process of a fabric.
    ("rank", true),
    ("rendezvous", true),
    ("bind", true),
];
/// Options that no setting of a point or run follows from, with whether they take a value: they may accompany
/// `--resume` without its settings.
const BESIDE_RESUME: [(&str, bool); 19] = [
    ("resume", true),
    ("json-lines", true),
    ("prometheus", true),
    ("quiet", false),
    ("json", false),
    ("brief", false),
    ("sort", true),
    ("no-color", false),
    ("until-round", true),
    ("budget", true),
    ("rounds", true),
    ("order-seed", true),
    ("label", true),
    ("rank", true),
    ("ranks", true),
    ("rendezvous", true),
    ("bind", true),
    ("secret-file", true),
    ("without-secret", false),
];
/// Options of a fabric that set how it is judged and how long it may take.
const OF_JUDGEMENT: [&str; 6] = [
    "fail-above",
    "max-outliers",
    "pair-timeout",
    "baseline",
    "rules",
    "history",
];
/// The command that repeats an earlier run.
const RERUN: &str = "rerun";

/// Where the results folder is in the arguments of `rerun`, if it is there: options may come before it.
fn folder_of_rerun(arguments: &[OsString], command: &Command) -> Option<usize> {
    let mut at = 1;
    while is_option(arguments.get(at)?) {
        at += if has_next_as_value(&arguments[at], command) {
            2
        } else {
            1
        };
    }
    Some(at)
}

/// Whether the argument behind an option is its value, in any of the commands.
fn has_next_as_value(option: &OsStr, command: &Command) -> bool {
    let Some(name) = option.to_str().and_then(|text| text.strip_prefix("--")) else {
        return false;
    };
    let commands = std::iter::once(command).chain(command.get_subcommands());
    let mut all = commands.flat_map(Command::get_arguments);
    let found = all.find(|it| it.get_long() == Some(name));
    found.is_some_and(|it| {
        it.get_action().takes_values() && it.get_num_args().is_none_or(|many| many.min_values() > 0)
    })
}

/// What was typed, with the options of `--config` in it, and for `rerun DIR` and a bare `--resume DIR` the command line
/// of that run. `typed` begins with the program's name.
pub(crate) fn expand(typed: Vec<OsString>, command: &Command) -> Result<Vec<OsString>, UsageError> {
    let (program, rest) = typed.split_at(typed.len().min(1));
    let mut arguments = rest.to_vec();
    let is_help = |it: &OsString| it == "--help" || it == "-h";
    if let [first, next, ..] = arguments.as_slice()
        && first == RERUN
        && !is_help(next)
    {
        let Some(at) = folder_of_rerun(&arguments, command) else {
            let options = arguments[1..].join(OsStr::new(" "));
            let options = options.to_string_lossy();
            return Err(UsageError(format!(
                "rerun {options}: the results folder is missing, as in `hcabench rerun DIR {options}`"
            )));
        };
        let mut again = stored(Path::new(&arguments[at]), "rerun")?;
        again.extend_from_slice(&arguments[1..at]);
        again.extend_from_slice(&arguments[at + 1..]);
        arguments = again;
    } else if let Some(folder) = only_resumes(&arguments, command) {
        // The command may be named, as that run's is.
        let named = arguments
            .iter()
            .take_while(|first| !is_option(first))
            .count();
        let mut again = stored(&folder, "--resume")?;
        if named == 0 || again.first() == arguments.first() {
            // What is left of its budget is unknown.
            again = without(&again, &[("budget", true)]);
            again.extend_from_slice(&arguments[named..]);
            arguments = again;
        }
    }
    let command_typed = arguments.first().filter(|first| !is_option(first));
    let is_sweep = command_typed.is_none_or(|name| is_sweep(command, name));
    // That of `plot` has sections, and may lie in the folder that is drawn.
    if let Some(file) = value_of(&arguments, "config").filter(|_| is_sweep) {
        let at = usize::from(arguments.first().is_some_and(|first| !is_option(first)));
        let (name, more) = from_file(Path::new(&file), &arguments, command)?;
        // From here on they are options like any others: nothing reads the file again, which may change.
        arguments = without(&arguments, &[("config", true)]);
        arguments.splice(at..at, more);
        if let Some(name) = name {
            arguments.insert(0, name);
        }
    }
    Ok([program, &arguments].concat())
}

fn is_option(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().starts_with(b"-")
}

/// The words of a command line one by one, with the name of an option before them; those of options in `known`, which
/// has whether they take a value, come with that value.
fn words_of<'a>(
    arguments: &'a [OsString],
    known: &[(&str, bool)],
) -> Vec<(Option<&'a str>, &'a [OsString])> {
    let mut words = Vec::new();
    let mut rest = arguments;
    while let Some(first) = rest.first() {
        let text = first.to_str().unwrap_or_default();
        let name = (text.strip_prefix("--")).map(|it| it.split('=').next().unwrap_or(it));
        let takes_value = known
            .iter()
            .any(|(it, takes)| Some(*it) == name && *takes && !text.contains('='));
        let (word, others) = rest.split_at(rest.len().min(1 + usize::from(takes_value)));
        words.push((name, word));
        rest = others;
    }
    words
}

/// The value of an option, in either spelling; of several, the last.
fn value_of(arguments: &[OsString], option: &str) -> Option<OsString> {
    let words = words_of(arguments, &[(option, true)]);
    let mut values = words.into_iter().filter(|(name, _)| *name == Some(option));
    match values.next_back()?.1 {
        [_, value] => Some(value.clone()),
        [word, ..] => Some(word.to_str()?.split_once('=')?.1.into()),
        [] => None,
    }
}

/// Whether a command measures a sweep, as the one without a name does.
fn is_sweep(command: &Command, name: &OsStr) -> bool {
    let found = name.to_str().and_then(|name| command.find_subcommand(name));
    found.is_some_and(|found| {
        found
            .get_arguments()
            .any(|it| it.get_long() == Some("resume"))
    })
}

/// The folder of `--resume` where nothing else sets what to measure.
fn only_resumes(arguments: &[OsString], command: &Command) -> Option<PathBuf> {
    let folder = value_of(arguments, "resume")?;
    let first = arguments.first();
    let named = first.is_some_and(|first| is_sweep(command, first));
    let words = words_of(&arguments[usize::from(named)..], &BESIDE_RESUME);
    let is_beside = |name: Option<&str>| BESIDE_RESUME.iter().any(|(it, _)| Some(*it) == name);
    (words.into_iter().all(|(name, _)| is_beside(name))).then(|| folder.into())
}

/// The command line of the run in a folder, without what belongs to that run alone.
fn stored(folder: &Path, asked: &str) -> Result<Vec<OsString>, UsageError> {
    let refused = |reason: String| UsageError(format!("{asked} {}: {reason}", folder.display()));
    let words = match folder.join(FABRIC).exists() {
        true => json::read(&folder.join(FABRIC))
            .map(|fabric: FabricCommandLine| fabric.command_line)
            .map_err(|error| error.to_string()),
        false => Document::of_run(folder)
            .map(|document| document.command_line)
            .map_err(|error| error.to_string()),
    };
    let words: Vec<String> = words.map_err(refused)?.into_iter().skip(1).collect();
    // Messages repeat words of a command line.
    if let Some(word) = words.iter().find(|word| printable(word) != word.as_str()) {
        let word = printable(word);
        return Err(refused(format!(
            "its command line has control characters: {word}"
        )));
    }
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    Ok(without(&words, &OF_ONE_RUN))
}

/// What is taken from `fabric.json`.
#[derive(serde::Deserialize)]
struct FabricCommandLine {
    command_line: Vec<String>,
}

/// The settings in a command line, by option: the last of each counts. Without those of one run, and without those that
/// change nothing of what is measured in a fabric.
pub(crate) fn settings_of(words: impl IntoIterator<Item = String>) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for word in words {
        match (word.strip_prefix("--"), &last) {
            (Some(option), _) => {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                settings.insert(name.to_owned(), value.to_owned());
                last = Some(name.to_owned());
            }
            (None, Some(name)) => {
                let value = settings.entry(name.clone()).or_default();
                if !value.is_empty() {
                    value.push(' ');
                }
                value.push_str(&word);
            }
            (None, None) => {}
        }
    }
    let is_beside = |name: &str| {
        let beside = BESIDE_RESUME.iter().any(|(it, _)| *it == name) && name != "rounds";
        beside || is_of_one_run(name) || OF_JUDGEMENT.contains(&name)
    };
    settings.retain(|name, _| !is_beside(name));
    settings
}

fn is_of_one_run(option: &str) -> bool {
    OF_ONE_RUN.iter().any(|(it, _)| *it == option)
}

/// Without those options, which are given with whether they take a value.
pub(crate) fn without(arguments: &[OsString], options: &[(&str, bool)]) -> Vec<OsString> {
    let leave = |name: &str| options.iter().any(|(option, _)| *option == name);
    let words = words_of(arguments, options).into_iter();
    let kept = words.filter(|(name, _)| !name.is_some_and(leave));
    kept.flat_map(|(_, word)| word.iter().cloned()).collect()
}

/// The command that a file names, if the command line names none, and its options as arguments.
fn from_file(
    file: &Path,
    arguments: &[OsString],
    command: &Command,
) -> Result<(Option<OsString>, Vec<OsString>), UsageError> {
    let wrong = |what: String| UsageError(format!("--config {}: {what}", file.display()));
    let mut table = table_of(file).map_err(&wrong)?;
    let typed = arguments.first().filter(|first| !is_option(first));
    let recorded = match table.remove("command") {
        None => None,
        Some(toml::Value::String(name)) if name == "hca" => None,
        Some(toml::Value::String(name)) if command.find_subcommand(&name).is_some() => Some(name),
        Some(other) => {
            return Err(wrong(format!(
                "command is {other}, which is not a command of hcabench"
            )));
        }
    };
    if let (Some(typed), Some(recorded)) = (typed, &recorded)
        && typed.as_os_str() != OsStr::new(recorded)
    {
        let typed = typed.to_string_lossy();
        return Err(wrong(format!(
            "it has options of {recorded}, and the command is {typed}"
        )));
    }
    let name = typed.and_then(|it| it.to_str()).or(recorded.as_deref());
    let options = name.and_then(|name| command.find_subcommand(name));
    let of = name.unwrap_or("the HCA benchmark");
    let found = arguments_of(&table, options.unwrap_or(command), of).map_err(wrong)?;
    Ok((
        recorded.filter(|_| typed.is_none()).map(OsString::from),
        found,
    ))
}

/// The table in a file of options: TOML; JSON in a file with that ending, as earlier versions had it for figures.
pub(crate) fn table_of(file: &Path) -> Result<toml::Table, String> {
    let text = durable::read_text(file).map_err(|error| error.to_string())?;
    match file.extension().is_some_and(|ending| ending == "json") {
        true => serde_json::from_str(&text).map_err(|error| error.to_string()),
        false => text
            .parse()
            .map_err(|error: toml::de::Error| error.to_string().trim_end().replace('\n', "\n  ")),
    }
}

/// The option of a command that has this name, or had it.
pub(crate) fn option_of<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let is_it = |it: &&Arg| {
        let aliases = it.get_all_aliases().unwrap_or_default();
        it.get_long() == Some(name) || aliases.contains(&name)
    };
    command.get_arguments().find(is_it)
}

/// The options in a table as arguments of a command, which is called `of`.
pub(crate) fn arguments_of(
    table: &toml::Table,
    options: &Command,
    of: &str,
) -> Result<Vec<OsString>, String> {
    let mut found = Vec::new();
    for (key, value) in table {
        let known = option_of(options, key)
            .filter(|_| !is_of_one_run(key) || ["out", "label", "json-lines"].contains(&&**key));
        let known =
            known.ok_or_else(|| format!("'{key}' is not an option of {of} that a file can set"))?;
        // Of an option that may be repeated, each time that it is given.
        let may_repeat = matches!(known.get_action(), ArgAction::Append);
        let texts: Vec<String> = match value {
            toml::Value::Boolean(false) if needs_value(known) => {
                return Err(format!("{key} = false: --{key} needs a value"));
            }
            toml::Value::Boolean(given) => {
                found.extend(given.then(|| format!("--{key}").into()));
                continue;
            }
            toml::Value::Array(values) if may_repeat => {
                values.iter().map(in_words).collect::<Result<_, _>>()?
            }
            toml::Value::Table(names) if may_repeat => {
                let named = |(name, value)| Ok(format!("{name}={}", in_list(value)?));
                names.iter().map(named).collect::<Result<_, String>>()?
            }
            value => vec![in_words(value)?],
        };
        found.extend(texts.iter().map(|text| format!("--{key}={text}").into()));
    }
    Ok(found)
}

fn needs_value(option: &Arg) -> bool {
    let least = option.get_num_args().map_or(1, |count| count.min_values());
    option.get_action().takes_values() && least > 0
}

/// As [`in_words`], where a text in a list may have commas.
fn in_list(value: &toml::Value) -> Result<String, String> {
    let toml::Value::Array(values) = value else {
        return in_words(value);
    };
    let escaped = |value| Ok(in_words(value)?.replace(',', "\\,"));
    let all: Result<Vec<String>, String> = values.iter().map(escaped).collect();
    Ok(all?.join(","))
}

fn in_words(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Array(values) => {
            let all: Result<Vec<String>, String> = values.iter().map(in_words).collect();
            Ok(all?.join(","))
        }
        other => Err(format!("{other} is not a text, a number or a list of them")),
    }
}

/// The options that were given, as the text of a file for `--config`: without those of one run and without defaults.
pub(crate) fn to_file(matches: &ArgMatches, command: &Command) -> String {
    let (name, matches, command) = match matches.subcommand() {
        None => (None, matches, command),
        Some((name, matches)) => (
            Some(name),
            matches,
            command.find_subcommand(name).unwrap_or(command),
        ),
    };
    let mut table = toml::Table::new();
    if let Some(name) = name {
        table.insert("command".to_owned(), toml::Value::String(name.to_owned()));
    }
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let Some(long) = argument.get_long() else {
            continue;
        };
        let given = matches.try_contains_id(id).unwrap_or(false)
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        if is_of_one_run(long) || !given {
            continue;
        }
        let raw: Vec<String> = matches
            .get_raw(id)
            .into_iter()
            .flatten()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let takes = argument.get_action().takes_values();
        let value = match raw.as_slice() {
            [text] if takes => toml::Value::String(text.clone()),
            several if takes && several.len() > 1 => {
                toml::Value::Array(several.iter().cloned().map(toml::Value::String).collect())
            }
            _ => toml::Value::Boolean(true),
        };
        table.insert(long.to_owned(), value);
    }
    table.to_string()
}

#[cfg(test)]
mod tests;
