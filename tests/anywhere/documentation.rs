//! Documented commands, options and columns are the program's. `HCABENCH_WRITE_DOCS=1` writes the generated pages.

use crate::common;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Ended, hcabench as program};
use crate::testing::Has as _;
use clap::CommandFactory as _;
use common::figures::FIGURES;
use hcabench::cli::{CommandLine, EXIT_CODES};
use hcabench::launch::identity::launchers::LAUNCHERS;
use hcabench::results::schema::{Column, Data, NamedColumn, Over, Schema, fabric};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// All commands, the one without a name first.
fn commands() -> Vec<String> {
    let line = CommandLine::command();
    let mut names: Vec<String> = (line.get_subcommands())
        .map(|command| command.get_name().to_owned())
        .collect();
    names.push(String::new());
    names.sort();
    names
}

fn hcabench(words: &[String]) -> Ended {
    let program = program("").env("COLUMNS", "100");
    program.change(|command| command.args(words)).run()
}

/// Checks that the program takes these options: else it would refuse them before --help. False: not to be checked.
fn check_taken(place: &str, command: &str) -> bool {
    let command = command.split(" #").next().unwrap_or_default();
    let words = shlex::split(command).unwrap_or_else(|| panic!("{place}: {command}: quotes"));
    // Reads an earlier run before anything else.
    let reads_a_folder = |word: &String| word == "--resume";
    // Words to be replaced, such as DIR, or to be left out: it stands for many.
    let is_pattern = |word: &String| {
        let first = word.split([' ', '.']).next().unwrap_or_default();
        let is_to_be_replaced = |letter: char| letter.is_ascii_uppercase();
        word.starts_with('[') || !first.is_empty() && first.chars().all(is_to_be_replaced)
    };
    if words
        .iter()
        .any(|word| is_pattern(word) || reads_a_folder(word))
    {
        return false;
    }
    let mut words = words[1..].to_vec();
    if words[0] == "rerun" {
        // What follows the folder are options of the earlier run, here one of the HCA benchmark.
        words.drain(..2);
    }
    words.push("--help".to_owned());
    let ended = hcabench(&words);
    assert!(ended.is_success(), "{place}: {command}: {}", ended.stderr);
    true
}

fn help_of(command: &str) -> String {
    let words = command.split_whitespace().map(str::to_owned);
    let words = Vec::from_iter(words.chain(["--help".to_owned()]));
    hcabench(&words).expect(0).stdout
}

fn pages() -> Vec<PathBuf> {
    let folders = [".", "docs", "notebooks", "listings", "rdma-cm-patch"];
    let entries = folders.map(|folder| fs::read_dir(Path::new(ROOT).join(folder)).unwrap());
    let paths = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect()
}

#[test]
fn each_command_of_the_pages_is_taken() {
    let mut found = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap().replace("\\\n", " ");
        for line in page.lines().filter_map(|line| line.strip_prefix("    ")) {
            let command = line.strip_prefix("ci/").unwrap_or(line);
            if command.starts_with("hcabench ") {
                found += usize::from(check_taken(&path.display().to_string(), command));
            }
        }
    }
    assert!(found >= 40, "only {found} commands were found");
}

#[test]
fn the_help_of_each_command_has_examples_that_are_taken() {
    for name in &commands() {
        let help = help_of(name);
        let (_, examples) = help
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{name}"));
        let examples = examples
            .lines()
            .filter_map(|line| line.strip_prefix("  hcabench"));
        let examples: Vec<String> = examples.map(|rest| format!("hcabench{rest}")).collect();
        assert!(examples.len() >= 2, "{name}: {examples:?}");
        for example in examples {
            assert!(check_taken(name, &example), "{example}");
        }
    }
}

#[test]
fn what_all_benchmarks_have_is_under_the_same_heading() {
    for name in ["", "clock", "fabric", "memory", "node", "queue"] {
        let help = help_of(name);
        let (_, options) = help.split_once("\nOptions:\n").unwrap();
        let is_option = |line: &&str| line.is_empty() || line.starts_with(' ');
        let options: Vec<&str> = options.lines().take_while(is_option).collect();
        (options.join("\n")).has(&["--out <DIR>", "--rounds <N>", "--dry-run"]);
    }
}

/// What is generated of a page begins behind this line, and ends before the next.
const GENERATED: [&str; 2] = [
    "<!-- generated -->\n",
    "<!-- end of what is generated -->\n",
];

/// Compares the generated part of a page with what is in docs/, or writes it there.
fn check_part(name: &str, part: &str) {
    let page = fs::read_to_string(Path::new(ROOT).join("docs").join(name)).unwrap();
    let [begins, ends] = GENERATED;
    let (before, rest) = page.split_once(begins).expect("where it begins");
    let (_, after) = rest.split_once(ends).expect("where it ends");
    check_page(name, &format!("{before}{begins}{part}{ends}{after}"));
}

/// Compares a generated page with what is in docs/, or writes it there.
fn check_page(name: &str, page: &str) {
    let path = Path::new(ROOT).join("docs").join(name);
    if std::env::var_os("HCABENCH_WRITE_DOCS").is_some() {
        fs::write(&path, page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let different = found
        .lines()
        .zip(page.lines())
        .find(|(there, now)| there != now);
    assert!(
        found == page,
        "docs/{name} is not what the program has: run HCABENCH_WRITE_DOCS=1 cargo test --test anywhere documentation. \
         The first difference: {different:?}"
    );
}

#[test]
fn the_page_of_options_is_the_help_of_the_program() {
    let mut page = "# Options\n\n\
         The output of `hcabench --help` and `hcabench COMMAND --help`, generated from the program. An option takes one \
         value,\nor several with commas between them where its value is LIST: a sweep is the product of all lists.\n\n\
         Some points cannot exist: a write on UD, a UD message above the path's MTU, more inline data than the device \
         takes,\n`--timestamp send` with inline. Such a point is an error when it is asked for alone. As part of a \
         sweep it is listed\nwith the reason in `left_out.csv`.\n\n\
         A number of things and a rate may have `k`, `M` or `G` behind them, for 1000, a million and 1000 millions, and\n\
         `_` between digits: `--count 20k`. A size has `k`, `M` or `G` (or `KiB`, `MiB`, `GiB`) for powers of 1024, and\n\
         `kB`, `MB` or `GB` for those of 1000. A time has `ns`, `us`, `ms`, `s`, `min` or `h`.\n\n\
         ## Exit codes\n\n\
         | code | meaning |\n| --- | --- |\n"
        .to_owned();
    for (code, meaning) in EXIT_CODES {
        page += &format!("| {code} | {meaning} |\n");
    }
    let figures = FIGURES.map(|figure| format!("plot {figure}"));
    for name in commands().iter().chain(&figures).map(String::as_str) {
        let title = match name {
            "" => "hcabench: the HCA benchmark".to_owned(),
            name => format!("hcabench {name}"),
        };
        write!(page, "\n## {title}\n\n").unwrap();
        for line in help_of(name).lines() {
            let line = format!("    {line}");
            writeln!(page, "{}", line.trim_end()).unwrap();
        }
    }
    check_page("options.md", &page);
}

fn table<'a>(page: &mut String, columns: impl IntoIterator<Item = &'a Column>) {
    page.push_str(
        "| column | unit | kind | over rounds | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for column in columns {
        let name = column.name;
        let unit = match (column.unit(), column.data) {
            ("", Data::Flag) => "true, false",
            ("", Data::Moment) => "RFC 3339",
            (unit, _) => unit,
        };
        let kind = serde_json::to_value(column.kind).unwrap();
        let kind = kind.as_str().unwrap();
        let over = match column.over {
            Over::First => "",
            Over::Least => "least",
            Over::Greatest => "greatest",
            Over::Sum => "sum",
            Over::Median => "median",
            Over::MedianWithBounds => "median, with bounds",
        };
        let meaning = column.meaning.replace('|', "\\|");
        writeln!(page, "| `{name}` | {unit} | {kind} | {over} | {meaning} |").unwrap();
    }
}

#[test]
fn the_page_of_columns_is_the_schema() {
    let mut page = "# Columns\n\n\
         The columns of all files, generated from the schema. `datapackage.json` in each results folder has the same \
         for\nprograms. Times are in nanoseconds in every file, and the end of a name is its unit. A \
         median *with bounds* has\ntwo more columns: those of `latency_p50_ns` are `latency_p50_low_ns` and \
         `latency_p50_high_ns`.\n"
        .to_owned();
    for schema in Schema::ALL {
        writeln!(
            page,
            "\n## {}\n\n### summary.csv\n\nA row a point.\n",
            schema.title
        )
        .unwrap();
        // Bounds are told by the columns that they are of.
        let declared = |(name, column): &(Cow<'static, str>, Column)| {
            (*name == column.name).then_some(*column)
        };
        let summary: Vec<Column> = schema.summary().iter().filter_map(declared).collect();
        table(&mut page, &summary);
        page.push_str(
            "\n### runs.csv\n\nA row for each point and round: the columns of `summary.csv` without `rounds` and \
             bounds, and these.\n\n",
        );
        let runs: Vec<Column> = schema.runs().iter().filter_map(declared).collect();
        table(
            &mut page,
            runs.iter().filter(|column| !summary.contains(column)),
        );
        for file in schema.samples {
            write!(
                page,
                "\n### POINT/{}\n\n{}\n\n",
                file.name,
                sentence(file.meaning)
            )
            .unwrap();
            table(&mut page, file.columns);
        }
        page.push_str(
            "\n### run in settings.json\n\nThe settings of a run that are no point's.\n\n",
        );
        table(&mut page, schema.run);
    }
    page.push_str(&columns_of_a_fabric());
    check_page("columns.md", &page);
}

fn columns_of_a_fabric() -> String {
    let mut page = "\n## fabric\n".to_owned();
    let pairs = fabric::pairs();
    let runs = fabric::SCHEMA.runs();
    let of_runs = runs.into_iter().filter(|column| !pairs.contains(column));
    let of_runs: Vec<NamedColumn> = of_runs.collect();
    for (file, text, columns) in [
        ("pairs.csv", "A row for each ordered pair.", pairs.clone()),
        (
            "runs.csv",
            "A row for each ordered pair and round: the columns of `pairs.csv` up to `retransmitted` without `rounds` \
             and bounds,\nand these.",
            of_runs,
        ),
        ("nodes.csv", "A row for each node.", fabric::nodes()),
        (
            "rules.csv",
            "A row for each rule of `--baseline`, `--rules` or `--history` and each node and tier.",
            fabric::rules(),
        ),
        (
            "summary.csv",
            "A row for each tier, and one for all.",
            fabric::summary(),
        ),
    ] {
        write!(page, "\n### {file}\n\n{text}\n\n").unwrap();
        let declared = columns.iter().filter(|(name, column)| *name == column.name);
        table(&mut page, declared.map(|(_, column)| column));
    }
    page
}

#[test]
fn the_page_of_launchers_has_the_table_of_the_program() {
    let mut part = "\n".to_owned();
    for launcher in LAUNCHERS {
        writeln!(part, "### {}\n\n    {}\n", launcher.title, launcher.start).unwrap();
        let command = launcher.start.split_once("hcabench ");
        if let Some((_, words)) = command {
            // What a shell would replace has spaces.
            let words = words.replace("$(", "").replace([')', '\''], "");
            assert!(check_taken(launcher.title, &format!("hcabench {words}")));
        } else {
            let file = launcher.start.rsplit(' ').next().unwrap();
            assert!(Path::new(ROOT).join(file).is_file(), "{file}");
        }
        part += "| variable | for | documented in | seen with |\n| --- | --- | --- | --- |\n";
        for (purpose, variable) in launcher.variables() {
            let seen = match variable.seen {
                "" => "-",
                seen => seen,
            };
            let (name, source) = (variable.name, variable.source);
            writeln!(part, "| `{name}` | {purpose} | {source} | {seen} |").unwrap();
        }
        part.push('\n');
        for line in wrapped(launcher.note) {
            writeln!(part, "{line}").unwrap();
        }
        part.push('\n');
    }
    check_part("launchers.md", &part);
}

#[test]
fn the_program_takes_the_arguments_of_the_manifests() {
    let files = fs::read_dir(Path::new(ROOT).join("deploy/kubernetes")).unwrap();
    let mut found = 0;
    for path in files.map(|file| file.unwrap().path()) {
        let text = fs::read_to_string(&path).unwrap();
        let words = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("args: "));
        for words in words {
            let words: Vec<String> = serde_json::from_str(words).unwrap();
            let command = shlex::try_join(words.iter().map(String::as_str)).unwrap();
            let place = path.display().to_string();
            assert!(check_taken(&place, &format!("hcabench {command}")));
            found += 1;
        }
    }
    assert_eq!(found, 3, "an Indexed Job, a JobSet and an MPIJob");
}

/// A paragraph in lines of at most 120 characters.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 120 {
            lines.push(word.to_owned());
        } else {
            let space = if line.is_empty() { "" } else { " " };
            write!(line, "{space}{word}").unwrap();
        }
    }
    lines
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}
