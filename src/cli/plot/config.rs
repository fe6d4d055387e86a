//! Settings of a figure: from options, and from a file `plot.json` of which options take precedence.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::options::{Common, Figure, Given, SETTINGS, Setting, Values};
use crate::cli::UsageError;
use crate::plot::scale::Kind as Scale;
use crate::plot::{DEFAULT_SIZE, SIDES};
use crate::results::folder::SUMMARY;
use crate::results::text::printable_path;

/// The file in a folder of results.
pub(super) const FILE: &str = "plot.json";

/// Settings that were found to be right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Checked {
    pub metric: Vec<String>,
    pub only: Values,
    pub range: Range,
    pub size: (u32, u32),
    pub title: Option<String>,
    pub subtitle: Option<String>,
    x_label: Option<String>,
    y_label: Option<String>,
    pub labels: Values,
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
    /// What the options say.
    pub options: Given,
    /// What the file says.
    pub below: Given,
    /// Whether the file speaks of more than this figure: it lies in the run of which a point is drawn, or the program
    /// chose what is in the figure.
    pub wider: bool,
}

impl Checked {
    /// Whether a setting without names is as the file says.
    pub fn is_of_file(&self, id: &str) -> bool {
        !self.origin.options.0.contains_key(id) && self.origin.below.0.contains_key(id)
    }

    /// A setting as whoever gave it wrote it: an option, or a key of a file.
    pub fn named(&self, id: &str) -> String {
        match &self.origin.file {
            Some(path) if self.is_of_file(id) => {
                format!("{}: {}", printable_path(path), Setting::of(id).quoted())
            }
            _ => Setting::of(id).option(),
        }
    }

    /// The choice of the values of a setting, as whoever made it wrote it.
    pub fn named_only(&self, name: &str) -> String {
        let of_options = self.origin.options.has_name("only", name);
        match &self.origin.file {
            Some(path) if !of_options => format!("{}: \"only\"", printable_path(path)),
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

impl Checked {
    /// The label of the horizontal axis, or the usual one.
    pub fn x_label(&self, usual: impl Into<String>) -> String {
        self.x_label.clone().unwrap_or_else(|| usual.into())
    }

    /// The label of the vertical axis, or the usual one.
    pub fn y_label(&self, usual: impl Into<String>) -> String {
        self.y_label.clone().unwrap_or_else(|| usual.into())
    }
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

/// Finds out whether all values are allowed. Settings are called what `named` makes of them.
fn checked(given: &Given, named: impl Fn(&Setting) -> String) -> Result<Checked, UsageError> {
    let wrong = |id: &str, text: &str, allowed: &str| {
        UsageError(format!("{} {text:?}: {allowed}", named(Setting::of(id))))
    };
    let size = match given.text("size") {
        None => DEFAULT_SIZE,
        Some(text) => size(text).ok_or_else(|| {
            let (least, most) = (SIDES.start(), SIDES.end());
            let allowed = format!("WxH is needed, {least} to {most} each, such as 900x560");
            wrong("size", text, &allowed)
        })?,
    };
    let range = match given.text("range") {
        None => Range::Usual,
        Some("auto") => Range::Auto,
        Some(text) => range(text).ok_or_else(|| {
            wrong("range", text, "auto or LO..HI is needed, in ns or with unit, the second above the first, such as 0..50us")
        })?,
    };
    let bins = given.text("bins").unwrap_or("100");
    let bins = (bins.parse().ok().filter(|bins| (1..=2000).contains(bins)))
        .ok_or_else(|| wrong("bins", bins, "1 to 2000 are possible"))?;
    let scale = match given.text("scale") {
        None => None,
        Some("linear") => Some(Scale::Linear),
        Some("log") => Some(Scale::Log),
        Some(text) => return Err(wrong("scale", text, "it is one of linear, log")),
    };
    let unit = given.text("unit").unwrap_or("ns");
    let nanoseconds_per_unit = unit_of(unit)
        .filter(|_| !unit.is_empty())
        .ok_or_else(|| wrong("unit", unit, "it is one of ns, us, ms, s"))?;
    let text = |id: &str| given.text(id).map(str::to_owned);
    Ok(Checked {
        metric: given.texts("metric").to_vec(),
        only: given.names("only"),
        range,
        size,
        title: text("title"),
        subtitle: text("subtitle"),
        x_label: text("x-label"),
        y_label: text("y-label"),
        labels: given.names("label"),
        order: given.texts("order").to_vec(),
        bins,
        x: text("x"),
        y: text("y"),
        scale,
        nanoseconds_per_unit,
        unit: text("unit"),
        origin: Origin::default(),
    })
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

/// The settings of a figure: the words of its options, and those of a file where the options say nothing. `chosen_here`
/// where the program chose the options.
///
/// # Errors
/// Values that are not allowed, and settings that have no effect in this figure.
pub(super) fn settings(
    common: &Common,
    words: &[(&'static Setting, Vec<String>)],
    figure: Figure,
    chosen_here: bool,
) -> Result<Checked, UsageError> {
    let mut options = Given::default();
    for (setting, words) in words {
        options.0.insert(setting.id, setting.of_words(words)?);
    }
    if let Some((setting, value)) = options.foreign(figure) {
        let (option, refusal) = (setting.option(), setting.refusal(figure, Setting::option));
        return Err(UsageError(format!("{option} {value:?}: {refusal}")));
    }
    let (file, wider) = file(common.config.as_deref(), &common.from);
    let below = match &file {
        None => Given::default(),
        Some(path) => {
            let wrong = |what: String| UsageError(format!("{}: {what}", printable_path(path)));
            let text = std::fs::read_to_string(path)
                .map_err(|cause| wrong(format!("cannot be read: {cause}")))?;
            of_text(&text, figure).map_err(wrong)?
        }
    };
    let checked = checked(&options.over(&below), Setting::option)?;
    let origin = Origin {
        file,
        options,
        below,
        wider: wider || chosen_here,
    };
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
    let run = above.filter(|run| !folder.join(SUMMARY).exists() && run.join(SUMMARY).exists());
    let file = run.map(|run| run.join(FILE)).filter(|path| path.is_file());
    let wider = file.is_some();
    (file, wider)
}

/// What a document or a section of it sets.
fn given(document: &Map<String, Value>) -> Result<Given, String> {
    let mut given = Given::default();
    for (key, value) in document {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
            let keys: Vec<String> = SETTINGS.iter().map(Setting::quoted).collect();
            return Err(format!("unknown field `{key}`, only {}", keys.join(", ")));
        };
        given.0.insert(setting.id, setting.of_json(value)?);
    }
    Ok(given)
}

/// The settings for a figure in the text of a file. What it says under the name of a figure holds for that figure, the
/// rest for all.
fn of_text(text: &str, figure: Figure) -> Result<Given, String> {
    let mut document: Map<String, Value> =
        serde_json::from_str(text).map_err(|cause| format!("is no JSON object: {cause}"))?;
    let right = |given: &Given| {
        let checked = checked(given, Setting::quoted);
        checked.map(drop).map_err(|cause| cause.to_string())
    };
    let mut own = Given::default();
    for section_of in Figure::ALL {
        let name = section_of.name();
        let Some(section) = document.shift_remove(name) else {
            continue;
        };
        // Also those of other figures must be right, or their mistakes show too late.
        let within = |cause: String| format!("in {name}: {cause}");
        let section = section
            .as_object()
            .ok_or_else(|| within("no object".to_owned()))?;
        let section = given(section).map_err(within)?;
        if let Some((setting, value)) = section.foreign(section_of) {
            let refusal = setting.refusal(section_of, Setting::quoted);
            return Err(within(format!("{} {value:?}: {refusal}", setting.quoted())));
        }
        right(&section).map_err(within)?;
        if section_of == figure {
            own = section;
        }
    }
    let names = Figure::ALL.map(Figure::name).join(", ");
    let shared = given(&document).map_err(|cause| match cause.starts_with("unknown field") {
        true => format!("{cause}; or a figure: {names}"),
        false => cause,
    })?;
    if let Some((setting, value)) = shared.foreign(figure) {
        let (refusal, key) = (setting.refusal(figure, Setting::quoted), setting.quoted());
        let section = setting.figures[0].name();
        return Err(format!(
            "{key} {value:?}: {refusal}: put it into a section of its figure, {{{section:?}: {{{key}: ...}}}}",
        ));
    }
    right(&shared)?;
    Ok(own.over(&shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(id: &'static str, text: &str) -> Result<Checked, UsageError> {
        let mut given = Given::default();
        given
            .0
            .insert(id, Setting::of(id).of_words(&[text.to_owned()])?);
        checked(&given, Setting::option)
    }

    #[test]
    fn values_are_checked() {
        let usual = checked(&Given::default(), Setting::option).unwrap();
        assert_eq!(
            (usual.size, usual.bins, usual.range),
            ((900, 560), 100, Range::Usual)
        );
        for (text, range) in [
            ("1.5us..2 ms", Range::Given(1500.0, 2e6)),
            ("auto", Range::Auto),
            ("-5..10", Range::Given(-5.0, 10.0)),
        ] {
            assert_eq!(with("range", text).unwrap().range, range);
        }
        assert_eq!(with("size", "1200x800").unwrap().size, (1200, 800));
        for (id, text, told) in [
            ("range", "5", "--range \"5\""),
            ("range", "9..5", "--range"),
            ("range", "0..5min", "--range"),
            ("range", "0..inf", "--range"),
            ("size", "900", "--size"),
            ("size", "900x20", "300 to 4000"),
            ("size", "90000x900", "--size"),
            ("bins", "0", "--bins"),
            ("bins", "many", "--bins \"many\""),
            ("scale", "root", "linear, log"),
            ("unit", "years", "--unit"),
            ("only", "service", "--only \"service\""),
            ("label", "=x", "--label \"=x\""),
        ] {
            assert!(with(id, text).unwrap_err().0.contains(told), "{told}");
        }
    }

    #[test]
    fn unknown_keys_are_errors_wherever_they_stand() {
        let text = r#"{"size": "600x400", "only": {"size_bytes": [8, 16], "service": "rc"}, "median": {"x": "burst", "size": "500x500"}}"#;
        let median = of_text(text, Figure::Median).unwrap();
        assert_eq!(
            (median.text("x"), median.text("size")),
            (Some("burst"), Some("500x500"))
        );
        assert_eq!(median.names("only")["size_bytes"], ["8", "16"]);
        let ecdf = of_text(text, Figure::Ecdf).unwrap();
        assert_eq!((ecdf.text("x"), ecdf.text("size")), (None, Some("600x400")));
        for (text, named) in [
            (r#"{"colour": "red"}"#, "unknown field `colour`"),
            (r#"{"colour": "red"}"#, "or a figure: histogram"),
            (
                r#"{"histogram": {"bin": 5}}"#,
                "in histogram: unknown field `bin`",
            ),
            (r#"{"median": 5}"#, "in median: no object"),
            (r#"{"bins": "many"}"#, "\"bins\" \"many\""),
            (r#"{"size": true}"#, "\"size\": invalid value: true"),
            (r#"{"only": "rc"}"#, "\"only\": invalid value: \"rc\""),
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
        let mut above = Given::default();
        for (id, word) in [("title", "above"), ("label", "a=z"), ("only", "burst=16")] {
            let values = Setting::of(id).of_words(&[word.to_owned()]).unwrap();
            above.0.insert(id, values);
        }
        let both = checked(&above.over(&below), Setting::option).unwrap();
        assert_eq!((both.title.as_deref(), both.bins), (Some("above"), 7));
        assert_eq!(
            (&both.only["burst"][0][..], &both.only["size_bytes"][0][..]),
            ("16", "8")
        );
        assert_eq!(
            (&both.labels["a"][0][..], &both.labels["c"][0][..]),
            ("z", "d")
        );
    }
}
