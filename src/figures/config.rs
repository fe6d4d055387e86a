//! Settings of a figure: from a file, and from options, which take precedence.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, FromArgMatches as _};
use toml::{Table, Value};

use super::options::{Figure, MEDIAN, PlotArguments, Settings, SettingsFile, refused};
use crate::arguments::UsageError;
use crate::driver::command_line::{arguments_of, option_of, table_of};
use crate::results::folder::SUMMARY;
use crate::results::read::{ReadError, ReadErrorKind};
use crate::results::text::printable_path;

/// The file in a folder of results; the second is that of earlier versions.
const FILES: [&str; 2] = ["plot.toml", "plot.json"];

/// The settings of a figure. `chosen_here` where the program chose the options.
pub(super) fn settings(
    arguments: &PlotArguments,
    chosen_here: bool,
) -> Result<Settings, UsageError> {
    let PlotArguments {
        figure,
        common,
        given,
    } = arguments;
    Settings::must_fit(given, *figure).map_err(UsageError)?;
    let (path, wider) = file(common.config.as_deref(), &common.from);
    let below = match &path {
        None => Settings::default(),
        Some(path) => of_file(path, *figure)
            .map_err(|cause| UsageError(format!("{}: {cause}", printable_path(path))))?,
    };
    let wrong = |error: clap::Error| UsageError(in_a_line(&error));
    let mut settings = below.clone();
    settings.update_from_arg_matches(given).map_err(wrong)?;
    let typed = Settings::from_arg_matches(given).map_err(wrong)?;
    settings.file = SettingsFile {
        path,
        label: others(&below.label, &typed.label)
            .map(|(name, _)| name.clone())
            .collect(),
        order: typed.order.is_empty(),
        wider: wider || chosen_here,
    };
    settings.only = others(&below.only, &typed.only).cloned().collect();
    settings.only.extend(typed.only);
    settings.label = others(&below.label, &typed.label).cloned().collect();
    settings.label.extend(typed.label);
    if common.no_subtitle {
        settings.subtitle = Some(String::new());
    }
    let percentile = &mut settings.percentile;
    let twice = (1..percentile.len()).find(|&at| percentile[..at].contains(&percentile[at]));
    if let Some(twice) = twice {
        let value = format!("p{}", percentile[twice]);
        return Err(refused("percentile", &value, "name it once"));
    }
    if percentile.is_empty() {
        percentile.push(MEDIAN);
        percentile.extend(match figure {
            Figure::Load => &[99.0][..],
            Figure::Time => &[99.0, 99.9],
            _ => &[],
        });
    }
    Ok(settings)
}

/// Those of a file whose names were not typed.
fn others<'a, T>(
    of_file: &'a [(String, T)],
    typed: &'a [(String, T)],
) -> impl Iterator<Item = &'a (String, T)> {
    let is_typed = |name: &String| typed.iter().any(|(it, _)| it == name);
    of_file.iter().filter(move |(name, _)| !is_typed(name))
}

/// The file that was named, or the one in the first folder, or none; and whether it is that of the run around the
/// folder.
fn file(named: Option<&Path>, from: &[PathBuf]) -> (Option<PathBuf>, bool) {
    if let Some(path) = named {
        return (Some(path.to_path_buf()), false);
    }
    let within = |folder: &Path| {
        let mut files = FILES.iter().map(|name| folder.join(name));
        files.find(|path| path.is_file())
    };
    let folder = &from[0];
    if let Some(own) = within(folder) {
        return (Some(own), false);
    }
    // That of a run holds for its points.
    let full = folder.canonicalize().ok();
    let above = full.as_deref().and_then(Path::parent);
    let run = above.filter(|run| !folder.join(SUMMARY).exists() && run.join(SUMMARY).exists());
    let file = run.and_then(within);
    (file.clone(), file.is_some())
}

/// What is wrong with the file of settings of a folder, where it cannot be read.
pub(crate) fn damaged_settings(folder: &Path) -> Option<ReadError> {
    let (path, _) = file(None, &[folder.to_path_buf()]);
    let path = path?;
    let cause = table_of(&path).err()?;
    let first = cause.lines().next().unwrap_or_default().to_owned();
    Some(ReadErrorKind::Io(io::Error::other(first)).at(&path))
}

/// The settings for a figure in a file. What it says in the section of a figure holds for that figure, the rest for
/// all.
fn of_file(path: &Path, figure: Figure) -> Result<Settings, String> {
    let mut table = with_long_names(table_of(path)?, figure)?;
    let mut own = Table::new();
    for &section_of in Figure::ALL {
        let name = section_of.name();
        let within = |cause: String| format!("[{name}]: {cause}");
        match table.remove(name) {
            None => {}
            Some(Value::Table(section)) => {
                // Also those of other figures must be right, or their mistakes show too late.
                let given = parsed(&section, section_of).map_err(within)?;
                Settings::must_fit(&given, section_of).map_err(within)?;
                if section_of == figure {
                    own = with_long_names(section, figure).map_err(within)?;
                }
            }
            Some(other) => return Err(within(format!("{other} is not a section"))),
        }
    }
    for (key, value) in own {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => below.extend(above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
    let given = parsed(&table, figure)?;
    Settings::must_fit(&given, figure).map_err(|refusal| {
        format!("{refusal}; what is in a section, such as [median], holds for that figure alone")
    })?;
    let mut settings = Settings::from_arg_matches(&given).map_err(|error| in_a_line(&error))?;
    // A path in it is relative to it.
    let folder = path.parent().unwrap_or(Path::new(""));
    settings.with = settings.with.map(|with| folder.join(with));
    Ok(settings)
}

/// The same with each option by its first name: a section is over the rest, whatever name either uses.
fn with_long_names(table: Table, figure: Figure) -> Result<Table, String> {
    let command = Settings::command(figure);
    let mut named = Table::new();
    for (key, value) in table {
        let option = option_of(&command, &key);
        let long = option.and_then(Arg::get_long).unwrap_or(&key).to_owned();
        if named.insert(long.clone(), value).is_some() {
            return Err(format!("'{long}' is set twice, by two names of it"));
        }
    }
    Ok(named)
}

fn parsed(table: &Table, figure: Figure) -> Result<ArgMatches, String> {
    let command = Settings::command(figure);
    let words = arguments_of(table, &command, &format!("plot {}", figure.name()))?;
    let matches = command.try_get_matches_from(words);
    matches.map_err(|error| in_a_line(&error))
}

/// What clap refuses, without what it says around it.
fn in_a_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::options::{Common, Range};
    use crate::plot::{DEFAULT_SIZE, ONE_COLUMN};
    use crate::testing::{Has as _, Refused as _, temporary};

    /// The settings by options, over those of a file where one is named.
    fn of_options(words: &[&str], file: Option<&Path>) -> Result<Settings, String> {
        let figure = Figure::Median;
        let given = Settings::command(figure).try_get_matches_from(words);
        let arguments = PlotArguments {
            figure,
            common: Common {
                from: vec!["nowhere".into()],
                config: file.map(Path::to_owned),
                ..Common::default()
            },
            given: given.map_err(|error| in_a_line(&error))?,
        };
        settings(&arguments, false).map_err(|error| error.to_string())
    }

    fn of_text(name: &str, text: &str, figure: Figure) -> Result<Settings, String> {
        let path = temporary(name);
        std::fs::write(&path, text).unwrap();
        of_file(&path, figure)
    }

    #[test]
    fn values_are_checked() {
        let with = |id: &str, text: &str| of_options(&[&format!("--{id}={text}")], None);
        let usual = of_options(&[], None).unwrap();
        let (size, bins, range) = (usual.sides(), usual.bins(), usual.range);
        assert_eq!((size, bins, range), (DEFAULT_SIZE, 100, None));
        for (text, range) in [
            ("1.5us..2 ms", Range::Given(1500.0, 2e6)),
            ("auto", Range::Auto),
            ("-5..10", Range::Given(-5.0, 10.0)),
        ] {
            assert_eq!(with("range", text).unwrap().range, Some(range));
        }
        assert_eq!(with("size", "1200x800").unwrap().sides(), (1200, 800));
        assert_eq!(with("size", "one-column").unwrap().sides(), ONE_COLUMN);
        let percentiles = with("percentile", "p50, p99.9").unwrap().percentile;
        assert_eq!(percentiles, [MEDIAN, 99.9]);
        for (id, text, told) in [
            ("range", "5", "'5' for '--range"),
            ("range", "9..5", "--range"),
            ("range", "0..5min", "--range"),
            ("range", "0..inf", "--range"),
            ("size", "900", "--size"),
            ("size", "900x20", "300 to 4000"),
            ("size", "90000x900", "--size"),
            ("bins", "0", "--bins"),
            ("bins", "2001", "from 1 to 2000"),
            ("bins", "many", "'many' for '--bins"),
            ("size", "three-columns", "one-column"),
            ("percentile", "p99,99.9", "'99.9' for '--percentile"),
            ("percentile", "p99,p99", "once"),
            ("percentile", "p100", "below p100"),
            ("scale", "root", "linear, log"),
            ("unit", "years", "--unit"),
            ("only", "service", "'service' for '--only"),
            ("label", "=x", "'=x' for '--label"),
        ] {
            with(id, text).refused(&[told]);
        }
    }

    #[test]
    fn a_file_s_sections_are_over_the_rest_and_options_over_both() {
        let text = r#"
            size = "600x400"
            bins = 20
            only = { size_bytes = [8, 16], service = "rc" }
            label = { a = "b", c = "d" }
            order = ["x, y", "z"]
            [median]
            x = "burst"
            size = "500x500"
            only = { service = ["uc", "ud"] }
        "#;
        // Bins are those of a histogram only.
        let path = temporary("settings.toml");
        std::fs::write(&path, text).unwrap();
        of_file(&path, Figure::Median).refused(&["--bins \"20\"", "such as [median]"]);
        std::fs::write(&path, text.replace("bins = 20", "")).unwrap();
        let ecdf = of_file(&path, Figure::Ecdf).unwrap();
        assert_eq!((ecdf.x.as_deref(), ecdf.sides()), (None, (600, 400)));
        assert_eq!(ecdf.only()["service"], ["rc"]);
        let median = of_options(&[], Some(&path)).unwrap();
        let set = (median.x.as_deref(), median.sides());
        assert_eq!(set, (Some("burst"), (500, 500)));
        assert_eq!(median.only()["size_bytes"], ["8", "16"]);
        assert_eq!(median.only()["service"], ["uc", "ud"]);
        assert_eq!(median.order, ["x, y", "z"]);

        // A text of a list has its commas, and one alone is a list.
        let text = "only = { cpus = ['0,1', '2'], size_bytes = '8, 16' }";
        let only = of_text("plot.toml", text, Figure::Median).unwrap().only();
        assert_eq!(only["cpus"], ["0,1", "2"]);
        assert_eq!(only["size_bytes"], ["8", "16"]);
        let typed = of_options(&[r"--only=cpus=0\,1,2"], None).unwrap().only();
        assert_eq!(typed["cpus"], ["0,1", "2"]);

        let typed = "--size=700x700 --label=a=z --only=service=ud --only=service=rc";
        let typed: Vec<&str> = typed.split(' ').collect();
        let both = of_options(&typed, Some(&path)).unwrap();
        let set = (both.x.as_deref(), both.sides());
        assert_eq!(set, (Some("burst"), (700, 700)));
        let labels = [("c", "d"), ("a", "z")].map(|(old, new)| (old.to_owned(), new.to_owned()));
        assert_eq!(both.label, labels);
        let only = both.only();
        assert_eq!(
            (both.file.label, both.file.order),
            (vec!["c".to_owned()], true)
        );
        assert_eq!(only["service"], ["ud", "rc"]);
        assert_eq!(only["size_bytes"], ["8", "16"]);
    }

    #[test]
    fn a_file_of_earlier_versions_reads_as_before() {
        let json = r#"{"size": "600x400", "x_label": "time", "only": {"size_bytes": [8, 16]}, "labels": {"RC, 8": "b"},
                       "order": ["UC"], "histogram": {"bins": 200}}"#;
        let toml = "size = '600x400'\nx-label = 'time'\nonly.size_bytes = '8,16'\nlabel = { 'RC, 8' = 'b' }\n\
                    order = 'UC'\n[histogram]\nbins = 200";
        let both = [("plot.json", json), ("plot.toml", toml)];
        let [old, new] = both.map(|(name, text)| of_text(name, text, Figure::Histogram).unwrap());
        assert_eq!(format!("{old:?}"), format!("{new:?}"));
        assert_eq!(new.bins, Some(200));
        of_text("plot.json", "[1]", Figure::Median).refused(&["expected a map"]);
        of_text("plot.json", "{\"bins\": ", Figure::Median).refused(&["EOF"]);
    }

    #[test]
    fn mistakes_in_a_file_are_errors_wherever_they_stand() {
        for (text, named) in [
            ("colour = 'red'", "'colour' is not an option of plot median"),
            ("out = 'x.svg'", "'out' is not an option of plot median"),
            (
                "[histogram]\nbin = 5",
                "[histogram]: 'bin' is not an option of plot histogram",
            ),
            (
                "[histogram]\nbins = 'many'",
                "[histogram]: invalid value 'many' for '--bins",
            ),
            ("median = 5", "[median]: 5 is not a section"),
            ("size = true", "--size"),
            ("size = { a = 1 }", "not a text, a number or a list"),
            ("only = 'rc'", "'rc' for '--only"),
            ("scale = 'root'", "[possible values: linear, log]"),
            ("bins = ", "TOML"),
        ] {
            of_text("plot.toml", text, Figure::Median).refused(&[named]);
        }
        let path = temporary("plot.toml");
        std::fs::write(&path, "colour = 'red'").unwrap();
        let named = of_options(&[], Some(&path)).unwrap_err();
        named.has(&["plot.toml: 'colour'"]);
    }
}
