//! Settings of a figure: from options, and from a file `plot.json` of which options take precedence.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::options::{Figure, Given, PlotArguments, SETTINGS, Setting};
use crate::arguments::UsageError;
use crate::compare::figures::Kind;
use crate::plot::palette::StyleNumber;
use crate::plot::scale::ScaleKind;
use crate::plot::{Chart, DEFAULT_SIZE, FigureTexts, ONE_COLUMN, SIDES, TWO_COLUMNS};
use crate::results::folder::SUMMARY;
use crate::results::text::printable_path;

/// The file in a folder of results.
pub(super) const FILE: &str = "plot.json";

/// The percentile that is drawn where none is asked for.
pub(super) const MEDIAN: f64 = 50.0;

/// Settings that were found to be right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Checked {
    pub given: Given,
    pub range: Range,
    pub size: (u32, u32),
    pub bins: usize,
    /// What is drawn of each point, above 0 and below 100.
    pub percentiles: Vec<f64>,
    scale: Option<ScaleKind>,
    pub nanoseconds_per_unit: f64,
    file: Option<PathBuf>,
    /// Whether the file speaks of more than this figure: it lies in the run of which a point is drawn, or the program
    /// chose what is in the figure.
    pub wider: bool,
}

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
    pub(crate) fn given(self) -> Option<(f64, f64)> {
        match self {
            Range::Given(low, high) => Some((low, high)),
            _ => None,
        }
    }
}

impl Checked {
    pub(crate) fn text(&self, id: &'static str) -> Option<&str> {
        self.given.text(id)
    }

    /// A setting as it is called in the file, or as an option.
    pub(crate) fn called(&self, id: &str, of_file: bool) -> String {
        let setting = Setting::of(id);
        match &self.file {
            Some(path) if of_file => format!("{}: {}", printable_path(path), setting.quoted()),
            _ => setting.option(),
        }
    }

    /// A setting as whoever gave it wrote it.
    pub(crate) fn named(&self, id: &'static str) -> String {
        self.called(id, self.given.is_of_file(id, ""))
    }

    /// The choice of the values of a setting, as whoever made it wrote it.
    pub(crate) fn named_only(&self, name: &str) -> String {
        self.called("only", self.given.is_of_file("only", name))
    }

    /// A setting that is a path; a relative one in a file is relative to that file.
    pub(crate) fn path(&self, id: &'static str) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(id)?);
        let folder = self.file.as_ref().and_then(|file| file.parent());
        match folder.filter(|_| self.given.is_of_file(id, "")) {
            Some(folder) => Some(folder.join(path)),
            None => Some(path),
        }
    }

    /// Why the value of a setting is refused.
    pub(crate) fn refused(&self, id: &'static str, value: &str, why: &str) -> UsageError {
        UsageError(format!("{} {value:?}: {why}", self.named(id)))
    }

    /// Why all values of a setting together are refused.
    pub(crate) fn refused_all(&self, id: &'static str, why: &str) -> UsageError {
        self.refused(id, &self.given.texts(id).join(","), why)
    }

    /// Why a choice of the values of a setting is refused.
    pub(crate) fn refused_only(&self, name: &str, value: &str, why: &str) -> UsageError {
        UsageError(format!("{} {value:?}: {why}", self.named_only(name)))
    }

    /// Whether only the width was asked for.
    pub(crate) fn may_grow(&self) -> bool {
        self.text("size")
            .is_some_and(|size| size.contains("column"))
    }

    /// What is drawn of each point, in words; of several, what they are of.
    pub(crate) fn percentile_of(&self, value: &str) -> String {
        match self.percentiles[..] {
            [MEDIAN] => format!("median {value}"),
            [percent] => format!("p{percent} of {value}"),
            _ => value.to_owned(),
        }
    }

    /// The words around a figure, its axes by their usual labels.
    pub(crate) fn chart(
        &self,
        words: FigureTexts,
        x: impl Into<String>,
        y: impl Into<String>,
        looks: Vec<StyleNumber>,
    ) -> Chart {
        let label = |id, usual: String| self.text(id).map_or(usual, str::to_owned);
        Chart {
            words,
            x: label("x-label", x.into()),
            y: label("y-label", y.into()),
            range: self.range.given(),
            scale: self.scale,
            looks,
        }
    }
}

/// Finds out whether all values are allowed. Settings are called what `named` makes of them.
fn checked(given: Given, named: impl Fn(&Setting) -> String) -> Result<Checked, UsageError> {
    let wrong = |id: &str, text: &str, allowed: &str| {
        UsageError(format!("{} {text:?}: {allowed}", named(Setting::of(id))))
    };
    let size = match given.text("size") {
        None => DEFAULT_SIZE,
        Some(text) => size(text).ok_or_else(|| {
            let (least, most) = (SIDES.start(), SIDES.end());
            let allowed = format!(
                "one-column, two-columns or WxH is needed, {least} to {most} each, such as 900x560"
            );
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
    let mut percentiles: Vec<f64> = Vec::new();
    for text in given.texts("percentile") {
        let Ok(Kind::Percentile(percent)) = text.parse() else {
            return Err(wrong(
                "percentile",
                text,
                "one above p0 and below p100 is needed, such as p99.9",
            ));
        };
        if percentiles.contains(&percent) {
            return Err(wrong("percentile", text, "name it once"));
        }
        percentiles.push(percent);
    }
    if percentiles.is_empty() {
        percentiles.push(MEDIAN);
    }
    let bins = given.text("bins").unwrap_or("100");
    let bins = (bins.parse().ok().filter(|bins| (1..=2000).contains(bins)))
        .ok_or_else(|| wrong("bins", bins, "1 to 2000 are possible"))?;
    let scale = match given.text("scale") {
        None => None,
        Some("linear") => Some(ScaleKind::Linear),
        Some("log") => Some(ScaleKind::Log),
        Some(text) => return Err(wrong("scale", text, "it is one of linear, log")),
    };
    let unit = given.text("unit").unwrap_or("ns");
    let nanoseconds_per_unit = unit_of(unit)
        .filter(|_| !unit.is_empty())
        .ok_or_else(|| wrong("unit", unit, "it is one of ns, us, ms, s"))?;
    Ok(Checked {
        range,
        size,
        bins,
        percentiles,
        scale,
        nanoseconds_per_unit,
        file: None,
        wider: false,
        given,
    })
}

fn size(text: &str) -> Option<(u32, u32)> {
    let presets = [("one-column", ONE_COLUMN), ("two-columns", TWO_COLUMNS)];
    if let Some((_, size)) = presets.iter().find(|(name, _)| *name == text) {
        return Some(*size);
    }
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
pub(super) fn settings(
    arguments: &PlotArguments,
    chosen_here: bool,
) -> Result<Checked, UsageError> {
    let (figure, common) = (arguments.figure, &arguments.common);
    let mut options = Given::default();
    for (setting, words) in &arguments.words {
        options.add(setting, setting.of_words(words)?, false);
    }
    if common.no_subtitle {
        let setting = Setting::of("subtitle");
        options.add(setting, setting.of_words(&[String::new()])?, false);
    }
    let fits = options.must_fit(figure, Setting::option);
    fits.map_err(|(_, refusal)| UsageError(refusal))?;
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
    Ok(Checked {
        file,
        wider: wider || chosen_here,
        ..checked(options.over(below), Setting::option)?
    })
}

/// The file that was named, or the one in the first folder, or none; and whether it is that of the run around the
/// folder.
fn file(named: Option<&Path>, from: &[PathBuf]) -> (Option<PathBuf>, bool) {
    if let Some(path) = named {
        return (Some(path.to_path_buf()), false);
    }
    let folder = &from[0];
    let own = folder.join(FILE);
    if own.is_file() {
        return (Some(own), false);
    }
    // That of a run holds for its points.
    let full = folder.canonicalize().ok();
    let above = full.as_deref().and_then(Path::parent);
    let run = above.filter(|run| !folder.join(SUMMARY).exists() && run.join(SUMMARY).exists());
    let file = run.map(|run| run.join(FILE)).filter(|path| path.is_file());
    (file.clone(), file.is_some())
}

/// What a document or a section of it sets.
fn given(document: &Map<String, Value>) -> Result<Given, String> {
    let mut given = Given::default();
    for (key, value) in document {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
            let keys: Vec<String> = SETTINGS.iter().map(Setting::quoted).collect();
            return Err(format!("unknown field `{key}`, only {}", keys.join(", ")));
        };
        given.add(setting, setting.of_json(value)?, true);
    }
    Ok(given)
}

/// The settings for a figure in the text of a file. What it says under the name of a figure holds for that figure, the
/// rest for all.
fn of_text(text: &str, figure: Figure) -> Result<Given, String> {
    let mut document: Map<String, Value> =
        serde_json::from_str(text).map_err(|cause| format!("is not a JSON object: {cause}"))?;
    let right = |given: &Given| {
        let checked = checked(given.clone(), Setting::quoted);
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
        let fits = section.must_fit(section_of, Setting::quoted);
        fits.map_err(|(_, refusal)| within(refusal))?;
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
    let fits = shared.must_fit(figure, Setting::quoted);
    fits.map_err(|(setting, refusal)| {
        let (key, mut figures) = (setting.quoted(), setting.figures());
        let section = figures.next().map_or("", Figure::name);
        format!("{refusal}: put it into a section of its figure, {{{section:?}: {{{key}: ...}}}}")
    })?;
    right(&shared)?;
    Ok(own.over(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_options(options: &[(&str, &str)]) -> Result<Given, UsageError> {
        let mut given = Given::default();
        for (id, word) in options {
            let setting = Setting::of(id);
            given.add(setting, setting.of_words(&[(*word).to_owned()])?, false);
        }
        Ok(given)
    }

    #[test]
    fn values_are_checked() {
        let with = |id, text| checked(of_options(&[(id, text)])?, Setting::option);
        let usual = checked(Given::default(), Setting::option).unwrap();
        let (size, bins, range) = (usual.size, usual.bins, usual.range);
        assert_eq!((size, bins, range), ((900, 560), 100, Range::Usual));
        for (text, range) in [
            ("1.5us..2 ms", Range::Given(1500.0, 2e6)),
            ("auto", Range::Auto),
            ("-5..10", Range::Given(-5.0, 10.0)),
        ] {
            assert_eq!(with("range", text).unwrap().range, range);
        }
        assert_eq!(with("size", "1200x800").unwrap().size, (1200, 800));
        assert_eq!(with("size", "one-column").unwrap().size, ONE_COLUMN);
        assert_eq!(
            with("percentile", "p50, p99.9").unwrap().percentiles,
            [MEDIAN, 99.9]
        );
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
            ("size", "three-columns", "one-column"),
            ("percentile", "p99,99.9", "--percentile \"99.9\""),
            ("percentile", "p99,p99", "once"),
            ("percentile", "p100", "below p100"),
            ("scale", "root", "linear, log"),
            ("unit", "years", "--unit"),
            ("only", "service", "--only \"service\""),
            ("label", "=x", "--label \"=x\""),
        ] {
            assert!(with(id, text).unwrap_err().0.contains(told), "{told}");
        }
    }

    #[test]
    fn a_file_s_sections_are_over_the_rest_and_options_over_both() {
        let text = r#"{"size": "600x400", "only": {"size_bytes": [8, 16], "service": "rc"}, "labels": {"a": "b", "c": "d"},
                       "median": {"x": "burst", "size": "500x500"}}"#;
        let median = of_text(text, Figure::Median).unwrap();
        let set = [median.text("x"), median.text("size")];
        assert_eq!(set, [Some("burst"), Some("500x500")]);
        assert_eq!(median.names("only")["size_bytes"], ["8", "16"]);
        let below = of_text(text, Figure::Ecdf).unwrap();
        let expected = [None, Some("600x400")];
        assert_eq!([below.text("x"), below.text("size")], expected);
        let options = [
            ("size", "700x700"),
            ("label", "a=z"),
            ("only", "service=ud"),
        ];
        let both = of_options(&options).unwrap().over(below);
        assert_eq!(both.text("size"), Some("700x700"));
        assert!(both.is_of_file("label", "c") && !both.is_of_file("label", "a"));
        let [labels, only] = ["label", "only"].map(|id| both.names(id));
        assert_eq!([&labels["a"], &labels["c"]], [&["z"], &["d"]]);
        assert_eq!(only["service"], ["ud"]);
        assert_eq!(only["size_bytes"], ["8", "16"]);
    }

    #[test]
    fn mistakes_in_a_file_are_errors_wherever_they_stand() {
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
            (r#"[1]"#, "not a JSON object"),
            (r#"{"bins": "#, "not a JSON object"),
        ] {
            let error = of_text(text, Figure::Median).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
