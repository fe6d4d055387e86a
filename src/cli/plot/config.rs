//! Settings of a figure: from options, and from a file `plot.json` of which options take precedence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Options;
use super::options::{Figure, Setting};
use crate::cli::UsageError;
use crate::plot::scale::Kind as Scale;
use crate::plot::{DEFAULT_SIZE, SIDES};

/// The file in a folder of results.
pub(super) const FILE: &str = "plot.json";
/// Settings, as they stand in the file and, but for lists, on the command line.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    pub metric: Option<Words>,
    pub only: BTreeMap<String, Words>,
    pub range: Option<String>,
    pub size: Option<String>,
    pub title: Option<String>,
    pub x_label: Option<String>,
    pub y_label: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub order: Option<Words>,
    pub bins: Option<u32>,
    pub x: Option<String>,
    pub y: Option<String>,
    pub scale: Option<String>,
    pub unit: Option<String>,
}

/// One word or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "OneOrMore")]
pub(super) struct Words(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(Word),
    More(Vec<Word>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Number(serde_json::Number),
}

impl From<OneOrMore> for Words {
    fn from(words: OneOrMore) -> Self {
        let text = |word: Word| match word {
            Word::Text(text) => text,
            Word::Number(number) => number.to_string(),
        };
        Words(match words {
            OneOrMore::One(word) => vec![text(word)],
            OneOrMore::More(words) => words.into_iter().map(text).collect(),
        })
    }
}

fn list(text: &str) -> Words {
    Words(text.split(',').map(|word| word.trim().to_owned()).collect())
}

/// Settings that were found to be right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Checked {
    pub metric: Vec<String>,
    pub only: BTreeMap<String, Words>,
    pub range: Range,
    pub size: (u32, u32),
    pub title: Option<String>,
    pub x_label: Option<String>,
    pub y_label: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub order: Vec<String>,
    pub bins: usize,
    pub x: Option<String>,
    pub y: Option<String>,
    pub scale: Option<Scale>,
    pub unit: Option<String>,
    pub nanoseconds_per_unit: f64,
    pub origin: Origin,
}

/// Where settings come from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Origin {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The settings that the file decides.
    pub of_file: Vec<&'static str>,
    /// Lines of the legend that options have other names for.
    pub labels_of_options: Vec<String>,
    /// Settings of which options choose the values.
    pub only_of_options: Vec<String>,
    /// Whether the file speaks of more than this figure: it lies in the run of which a point is drawn, or the program
    /// chose what is in the figure.
    pub wider: bool,
}

impl Checked {
    /// A setting as whoever gave it wrote it: an option, or a key of a file.
    pub fn named(&self, id: &str) -> String {
        let setting = Setting::of(id).expect("a setting of the table");
        match &self.origin.file {
            Some(path) if self.origin.of_file.contains(&setting.id) => {
                format!("{}: {:?}", path.display(), setting.key)
            }
            _ => setting.option(),
        }
    }

    /// The choice of the values of a setting, as whoever made it wrote it.
    pub fn named_only(&self, name: &str) -> String {
        let of_options = self.origin.only_of_options.iter().any(|it| it == name);
        match &self.origin.file {
            Some(path) if !of_options => format!("{}: \"only\"", path.display()),
            _ => "--only".to_owned(),
        }
    }
}

/// The range of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Range {
    /// Not asked for.
    Usual,
    /// From the data.
    Auto,
    /// These, in nanoseconds.
    Given(f64, f64),
}

impl Range {
    /// The given one.
    pub fn given(self) -> Option<(f64, f64)> {
        match self {
            Range::Given(low, high) => Some((low, high)),
            _ => None,
        }
    }
}

impl Settings {
    /// Those of the options.
    fn of(options: &Options) -> Result<Self, UsageError> {
        let pair = |option: &str, text: &str| match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(UsageError(format!(
                "{option} {text:?}: a name and a value with = between them are needed"
            ))),
        };
        let mut only: BTreeMap<String, Words> = BTreeMap::new();
        for text in &options.only {
            let (name, values) = pair("--only", text)?;
            only.entry(name)
                .or_insert(Words(Vec::new()))
                .0
                .extend(list(&values).0);
        }
        let labels = options
            .label
            .iter()
            .map(|text| pair("--label", text))
            .collect::<Result<_, _>>()?;
        Ok(Settings {
            metric: options.metric.as_deref().map(list),
            only,
            range: options.range.clone(),
            size: options.size.clone(),
            title: options.title.clone(),
            x_label: options.x_label.clone(),
            y_label: options.y_label.clone(),
            labels,
            order: (!options.order.is_empty()).then(|| Words(options.order.clone())),
            bins: options.bins,
            x: options.x.clone(),
            y: options.y.clone(),
            scale: options.scale.clone(),
            unit: options.unit.clone(),
        })
    }

    /// The settings that say something, each with its id and its value.
    fn given(&self) -> Vec<(&'static str, String)> {
        // Taken apart, so that a new one is not forgotten.
        let Settings {
            metric,
            only,
            range,
            size,
            title,
            x_label,
            y_label,
            labels,
            order,
            bins,
            x,
            y,
            scale,
            unit,
        } = self;
        let words = |words: &Option<Words>| words.as_ref().map(|words| words.0.join(","));
        let pairs = |pairs: Vec<String>| (!pairs.is_empty()).then(|| pairs.join(" "));
        let only = only
            .iter()
            .map(|(name, values)| format!("{name}={}", values.0.join(",")));
        let labels = labels.iter().map(|(old, new)| format!("{old}={new}"));
        [
            ("metric", words(metric)),
            ("only", pairs(only.collect())),
            ("range", range.clone()),
            ("bins", bins.map(|bins| bins.to_string())),
            ("x", x.clone()),
            ("y", y.clone()),
            ("scale", scale.clone()),
            ("unit", unit.clone()),
            ("size", size.clone()),
            ("title", title.clone()),
            ("x_label", x_label.clone()),
            ("y_label", y_label.clone()),
            ("label", pairs(labels.collect())),
            ("order", words(order)),
        ]
        .into_iter()
        .filter_map(|(id, value)| Some((id, value?)))
        .collect()
    }

    /// The first setting that has no effect in a figure, with its value.
    fn foreign(&self, figure: Figure) -> Option<(&'static Setting, String)> {
        self.given().into_iter().find_map(|(id, value)| {
            let setting = Setting::of(id)?;
            (!setting.goes_with(figure)).then_some((setting, value))
        })
    }

    /// These, and the others where these say nothing.
    pub fn over(self, below: Settings) -> Settings {
        let (mut labels, mut only) = (below.labels, below.only);
        labels.extend(self.labels);
        only.extend(self.only);
        Settings {
            metric: self.metric.or(below.metric),
            only,
            range: self.range.or(below.range),
            size: self.size.or(below.size),
            title: self.title.or(below.title),
            x_label: self.x_label.or(below.x_label),
            y_label: self.y_label.or(below.y_label),
            labels,
            order: self.order.or(below.order),
            bins: self.bins.or(below.bins),
            x: self.x.or(below.x),
            y: self.y.or(below.y),
            scale: self.scale.or(below.scale),
            unit: self.unit.or(below.unit),
        }
    }

    /// Finds out whether all values are allowed. Settings are called what `named` makes of them.
    fn checked(self, named: impl Fn(&Setting) -> String) -> Result<Checked, UsageError> {
        let wrong = |id: &str, text: &str, allowed: &str| {
            let name = Setting::of(id).map(&named).unwrap_or_default();
            UsageError(format!("{name} {text:?}: {allowed}"))
        };
        let size = match &self.size {
            None => DEFAULT_SIZE,
            Some(text) => size(text).ok_or_else(|| {
                let (least, most) = (SIDES.start(), SIDES.end());
                wrong(
                    "size",
                    text,
                    &format!("WxH is needed, {least} to {most} each, such as 900x560"),
                )
            })?,
        };
        let range = match self.range.as_deref() {
            None => Range::Usual,
            Some("auto") => Range::Auto,
            Some(text) => range(text).ok_or_else(|| {
                wrong("range", text, "auto or LO..HI is needed, in ns or with unit, the second above the first, such as 0..50us")
            })?,
        };
        let bins = self.bins.unwrap_or(100);
        if !(1..=2000).contains(&bins) {
            return Err(wrong("bins", &bins.to_string(), "1 to 2000 are possible"));
        }
        let scale = match self.scale.as_deref() {
            None => None,
            Some("linear") => Some(Scale::Linear),
            Some("log") => Some(Scale::Log),
            Some(text) => return Err(wrong("scale", text, "it is one of linear, log")),
        };
        let unit = self.unit.as_deref().unwrap_or("us");
        let nanoseconds_per_unit = unit_of(unit)
            .filter(|_| !unit.is_empty())
            .ok_or_else(|| wrong("unit", unit, "it is one of ns, us, ms, s"))?;
        Ok(Checked {
            metric: self.metric.map_or_else(Vec::new, |words| words.0),
            only: self.only,
            range,
            size,
            title: self.title,
            x_label: self.x_label,
            y_label: self.y_label,
            labels: self.labels,
            order: self.order.map_or_else(Vec::new, |words| words.0),
            bins: bins as usize,
            x: self.x,
            y: self.y,
            scale,
            nanoseconds_per_unit,
            unit: self.unit,
            origin: Origin::default(),
        })
    }
}

fn size(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once('x')?;
    let side = |text: &str| text.trim().parse().ok().filter(|side| SIDES.contains(side));
    Some((side(width)?, side(height)?))
}

fn unit_of(text: &str) -> Option<f64> {
    Some(match text {
        "" | "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    })
}

fn nanoseconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text
        .find(|c: char| c.is_alphabetic() || c == 'µ')
        .unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().ok()?;
    let value = number * unit_of(&text[end..])?;
    value.is_finite().then_some(value)
}

fn range(text: &str) -> Option<Range> {
    let (low, high) = text.split_once("..")?;
    let (low, high) = (nanoseconds(low)?, nanoseconds(high)?);
    (low < high).then_some(Range::Given(low, high))
}

/// The settings of a figure: its options, and those of a file where the options say nothing. `chosen_here` where the
/// program chose the options.
///
/// # Errors
/// Values that are not allowed, and settings that have no effect in this figure.
pub(super) fn settings(
    options: &Options,
    figure: Figure,
    chosen_here: bool,
) -> Result<Checked, UsageError> {
    let above = Settings::of(options)?;
    if let Some((setting, value)) = above.foreign(figure) {
        let (option, refusal) = (setting.option(), setting.refusal(figure, Setting::option));
        return Err(UsageError(format!("{option} {value:?}: {refusal}")));
    }
    let (file, wider) = file(options.config.as_deref(), &options.from);
    let below = match &file {
        None => Settings::default(),
        Some(path) => {
            let wrong = |what: String| UsageError(format!("{}: {what}", path.display()));
            let text = std::fs::read_to_string(path)
                .map_err(|cause| wrong(format!("cannot be read: {cause}")))?;
            of_text(&text, figure).map_err(wrong)?
        }
    };
    let ids = |settings: &Settings| settings.given().into_iter().map(|(id, _)| id);
    let origin = Origin {
        file,
        of_file: ids(&below)
            .filter(|id| !ids(&above).any(|over| over == *id))
            .collect(),
        labels_of_options: above.labels.keys().cloned().collect(),
        only_of_options: above.only.keys().cloned().collect(),
        wider: wider || chosen_here,
    };
    let checked = above.over(below).checked(Setting::option)?;
    Ok(Checked { origin, ..checked })
}

/// The file that was named, or the one in the first folder, or none; and whether it is that of the run around the folder.
fn file(named: Option<&Path>, from: &[PathBuf]) -> (Option<PathBuf>, bool) {
    if let Some(path) = named {
        return (Some(path.to_path_buf()), false);
    }
    let Some(folder) = from.first() else {
        return (None, false);
    };
    let own = folder.join(FILE);
    if own.is_file() {
        return (Some(own), false);
    }
    // That of a run holds for its points.
    let full = folder.canonicalize().ok();
    let above = full.as_deref().and_then(Path::parent);
    let run = above
        .filter(|run| !folder.join("summary.csv").exists() && run.join("summary.csv").exists());
    let file = run.map(|run| run.join(FILE)).filter(|path| path.is_file());
    let wider = file.is_some();
    (file, wider)
}

fn key(setting: &Setting) -> String {
    format!("{:?}", setting.key)
}

/// The settings for a figure in the text of a file. What it says under the name of a figure holds for that figure, the
/// rest for all.
fn of_text(text: &str, figure: Figure) -> Result<Settings, String> {
    let mut document: Map<String, Value> =
        serde_json::from_str(text).map_err(|cause| format!("is no JSON object: {cause}"))?;
    let names = Figure::ALL.map(Figure::name).join(", ");
    let mut own = Settings::default();
    for section_of in Figure::ALL {
        let name = section_of.name();
        let Some(section) = document.shift_remove(name) else {
            continue;
        };
        // Also those of other figures must be right, or their mistakes show too late.
        let section: Settings =
            serde_json::from_value(section).map_err(|cause| format!("in {name}: {cause}"))?;
        if let Some((setting, value)) = section.foreign(section_of) {
            let refusal = setting.refusal(section_of, key);
            return Err(format!("in {name}: {:?} {value:?}: {refusal}", setting.key));
        }
        let checked = section.clone().checked(key);
        checked.map_err(|cause| format!("in {name}: {cause}"))?;
        if section_of == figure {
            own = section;
        }
    }
    let shared: Settings = serde_json::from_value(document.into()).map_err(|cause| {
        let cause = cause.to_string();
        let sections = if cause.contains("unknown field") {
            format!("; or a figure: {names}")
        } else {
            String::new()
        };
        format!("{cause}{sections}")
    })?;
    if let Some((setting, value)) = shared.foreign(figure) {
        let refusal = setting.refusal(figure, key);
        let section = setting.figures[0].name();
        return Err(format!(
            "{:?} {value:?}: {refusal}: put it into a section of its figure, {{{section:?}: {{{:?}: ...}}}}",
            setting.key, setting.key
        ));
    }
    shared
        .clone()
        .checked(key)
        .map_err(|cause| cause.to_string())?;
    Ok(own.over(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        let with = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.checked(Setting::option)
        };
        let usual = with(|_| ()).unwrap();
        assert_eq!(
            (usual.size, usual.bins, usual.range),
            ((900, 560), 100, Range::Usual)
        );
        let given = with(|it| it.range = Some("1.5us..2 ms".into())).unwrap();
        assert_eq!(given.range, Range::Given(1500.0, 2e6));
        assert_eq!(
            with(|it| it.range = Some("auto".into())).unwrap().range,
            Range::Auto
        );
        assert_eq!(
            with(|it| it.range = Some("-5..10".into())).unwrap().range,
            Range::Given(-5.0, 10.0)
        );
        assert_eq!(
            with(|it| it.size = Some("1200x800".into())).unwrap().size,
            (1200, 800)
        );
        for (error, option) in [
            (with(|it| it.range = Some("5".into())), "--range \"5\""),
            (with(|it| it.range = Some("9..5".into())), "--range"),
            (with(|it| it.range = Some("0..5min".into())), "--range"),
            (with(|it| it.range = Some("0..inf".into())), "--range"),
            (with(|it| it.size = Some("900".into())), "--size"),
            (with(|it| it.size = Some("900x20".into())), "300 to 4000"),
            (with(|it| it.size = Some("90000x900".into())), "--size"),
            (with(|it| it.bins = Some(0)), "--bins"),
            (with(|it| it.scale = Some("root".into())), "linear, log"),
            (with(|it| it.unit = Some("years".into())), "--unit"),
        ] {
            assert!(error.unwrap_err().0.contains(option), "{option}");
        }
    }

    #[test]
    fn each_setting_stands_in_the_table_once() {
        let text = r#"{"metric": "a", "only": {"a": "b"}, "range": "a", "bins": 1, "x": "a", "y": "a", "scale": "a", "unit": "a",
            "size": "a", "title": "a", "x_label": "a", "y_label": "a", "labels": {"a": "b"}, "order": "a"}"#;
        let all: Settings = serde_json::from_str(text).unwrap();
        let given: Vec<&str> = all.given().into_iter().map(|(id, _)| id).collect();
        let table: Vec<&str> = super::super::options::SETTINGS
            .iter()
            .map(|it| it.id)
            .collect();
        assert_eq!(given, table);
    }

    #[test]
    fn unknown_keys_are_errors_wherever_they_stand() {
        let text = r#"{"size": "600x400", "only": {"size_bytes": [8, 16], "service": "rc"}, "median": {"x": "burst", "size": "500x500"}}"#;
        let median = of_text(text, Figure::Median).unwrap();
        assert_eq!(
            (median.x.as_deref(), median.size.as_deref()),
            (Some("burst"), Some("500x500"))
        );
        assert_eq!(median.only["size_bytes"].0, ["8", "16"]);
        let ecdf = of_text(text, Figure::Ecdf).unwrap();
        assert_eq!((ecdf.x, ecdf.size.as_deref()), (None, Some("600x400")));
        for (text, named) in [
            (r#"{"colour": "red"}"#, "unknown field `colour`"),
            (r#"{"colour": "red"}"#, "or a figure: histogram"),
            (
                r#"{"histogram": {"bin": 5}}"#,
                "in histogram: unknown field `bin`",
            ),
            (r#"{"bins": "many"}"#, "invalid type: string \"many\""),
            (r#"[1]"#, "no JSON object"),
            (r#"{"bins": "#, "no JSON object"),
        ] {
            let error = of_text(text, Figure::Median).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn options_are_over_the_file() {
        let below = of_text(
            r#"{"title": "below", "bins": 7, "labels": {"a": "b", "c": "d"}, "only": {"burst": 8, "size_bytes": 8}}"#,
            Figure::Histogram,
        )
        .unwrap();
        let above = Settings {
            title: Some("above".into()),
            labels: [("a".into(), "z".into())].into(),
            only: [("burst".into(), Words(vec!["16".into()]))].into(),
            ..Settings::default()
        };
        let both = above.over(below);
        assert_eq!((both.title.as_deref(), both.bins), (Some("above"), Some(7)));
        assert_eq!(
            (
                &both.only["burst"].0[0][..],
                &both.only["size_bytes"].0[0][..]
            ),
            ("16", "8")
        );
        assert_eq!(
            (both.labels["a"].as_str(), both.labels["c"].as_str()),
            ("z", "d")
        );
    }
}
