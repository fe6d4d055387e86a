//! A report as one HTML file: nothing in it comes from elsewhere, so it can be sent, kept and printed.
//!
//! It is made from plain data and knows no benchmark. All text is escaped. The tables can be sorted by a click where
//! the small script in the page runs, and are whole where it does not; a policy in the page keeps a browser from
//! fetching anything, with any text in a label. Light or dark is the reader's choice.

use std::io::Write as _;
use std::path::Path;

use crate::results::durable;
use crate::results::error::ReportError;
use crate::results::finding::Severity;
use crate::results::text::printable;

/// What is on the page, in its order. Empty parts are left out.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub title: String,
    pub verdict: Verdict,
    /// What was measured, and what was found.
    pub opening: String,
    /// The settings that all points share.
    pub same: String,
    /// The headline figures.
    pub answer: Answer,
    /// All points, folded up: title and sheet.
    pub points: (String, Sheet),
    /// The first is beside the headline figures.
    pub figures: Vec<Figure>,
    /// What there is to say about the figures.
    pub notes: Vec<String>,
    /// Further tables, each with its title.
    pub tables: Vec<(String, Sheet)>,
    /// What to know before a figure is believed, the most severe first.
    pub findings: Vec<Notice>,
    /// What speaks for the figures.
    pub sound: String,
    /// What was measured where and when: label and text.
    pub facts: Vec<(String, String)>,
    /// What the instrument itself costs.
    pub instrument: Sheet,
    /// How to read it: what is meant, and its explanation.
    pub reading: Vec<(String, String)>,
    /// What else there is, folded up: title and sheet.
    pub more: Vec<(String, Sheet)>,
}

/// Whether the figures can be used.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    pub text: String,
    /// The reservations that the text does not name.
    pub also: String,
    /// That of the most severe finding; `None` where nothing speaks against the figures.
    pub severity: Option<Severity>,
}

/// The headline figures.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub title: String,
    pub sheet: Sheet,
    /// What is not in it, and what its marks mean.
    pub note: String,
}

/// A finding.
#[derive(Debug, Clone)]
pub struct Notice {
    pub severity: Severity,
    /// One line.
    pub line: String,
    /// Cause and fix, and where; folded up.
    pub more: Vec<String>,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    /// The title of each column, and the unit of its numbers, which may be empty.
    pub columns: Vec<(String, &'static str)>,
    /// The rows, a text for each column.
    pub rows: Vec<Vec<String>>,
}

/// A figure.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    pub title: String,
    /// Whole and well-formed SVG, whose root says that it is an image (`role="img"`).
    pub svg: String,
    /// The same for a narrow screen; may be empty.
    pub narrow: String,
    /// How to read it.
    pub caption: String,
    /// Whether there are others that say about the same: it is folded up, and a print leaves it out.
    pub is_more: bool,
}

/// Behind a number with a reservation of its own.
pub const MARK: &str = " *";

/// Writes a page; the file is whole or was not touched.
///
/// # Errors
/// [`ReportError`] when it cannot be written.
pub fn write(path: &Path, page: &Page) -> Result<(), ReportError> {
    let text = page.html();
    durable::replace(path, |out| out.write_all(text.as_bytes()))
}

/// Text as it may stand in an element or a quoted attribute.
fn escaped(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("sort.js");

impl Page {
    /// The whole file.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        html += &self.verdict.html(self.findings.len());
        for (class, text) in [("opening", &self.opening), ("same", &self.same)] {
            if !text.is_empty() {
                html += &format!("<p class=\"{class}\">{}</p>\n", escaped(text));
            }
        }
        html += &self.answer_html();
        let (title, points) = &self.points;
        html += &folded("points", title, &points.html(title));
        html += &section("Figures", "", &self.figures_html());
        for (title, sheet) in &self.tables {
            html += &section(title, "", &sheet.html(title));
        }
        html += &section("Findings", "findings", &self.findings_html());
        html += &section(
            "Machine and run",
            "machine",
            &definitions(&self.facts, "facts"),
        );
        let instrument = "The instrument itself";
        html += &section(instrument, "", &self.instrument.html(instrument));
        html += &folded(
            "reading",
            "How to read it",
            &definitions(&self.reading, "reading"),
        );
        for (title, sheet) in &self.more {
            html += &folded("file", title, &sheet.html(title));
        }
        let version = env!("CARGO_PKG_VERSION");
        html + &format!(
            "</main>\n<footer>Made by hcabench {version}.</footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

impl Page {
    /// The headline figures, with the first figure beside them.
    fn answer_html(&self) -> String {
        let Answer { title, sheet, note } = &self.answer;
        let mut lines = sheet.html(title);
        if !lines.is_empty() {
            lines = format!("<h2>{}</h2>\n{lines}", escaped(title));
            lines += &note_html(note);
            lines = format!("<div class=\"lines\">\n{lines}</div>\n");
        }
        let figure = self.figures.first().map(Figure::html).unwrap_or_default();
        match lines + &figure {
            answer if answer.is_empty() => answer,
            answer => format!("<section class=\"answer\">\n{answer}</section>\n"),
        }
    }

    /// The other figures: those that say about the same as others are folded up.
    fn figures_html(&self) -> String {
        let html_of = |is_more: bool| -> String {
            let figures = self.figures.iter().skip(1);
            let figures = figures.filter(|figure| figure.is_more == is_more);
            figures.map(Figure::html).collect()
        };
        let grid = |figures: String| match figures.as_str() {
            "" => String::new(),
            figures => format!("<div class=\"figures\">\n{figures}</div>\n"),
        };
        let mut html = grid(html_of(false));
        let more = self.figures.iter().skip(1).filter(|figure| figure.is_more);
        let title = match more.count() {
            1 => "1 more figure of the same kinds".to_owned(),
            count => format!("{count} more figures of the same kinds"),
        };
        html += &folded("file", &title, &grid(html_of(true)));
        html + &self
            .notes
            .iter()
            .map(|note| note_html(note))
            .collect::<String>()
    }

    /// The findings by severity; those beyond a few are folded up.
    fn findings_html(&self) -> String {
        let (first, rest) = self
            .findings
            .split_at(self.findings.len().min(MOST_FINDINGS));
        let mut html = grouped(first);
        let title = match rest.len() {
            1 => "1 more finding".to_owned(),
            count => format!("{count} more findings"),
        };
        html += &folded("rest", &title, &grouped(rest));
        if !self.sound.is_empty() {
            html += &format!("<p class=\"sound\">{}</p>\n", escaped(&self.sound));
        }
        html
    }
}

/// So many findings are shown before the reader asks for more.
const MOST_FINDINGS: usize = 12;

/// What the findings of a severity mean for the figures.
fn meaning(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalid => "Why the figures cannot be used",
        Severity::Reservation => "Reservations to keep in mind",
        Severity::Advice => "Advice for the next run",
    }
}

/// What is read in style sheets.
fn class_of(severity: Option<Severity>) -> &'static str {
    match severity {
        None | Some(Severity::Advice) => "good",
        Some(Severity::Reservation) => "doubtful",
        Some(Severity::Invalid) => "bad",
    }
}

fn grouped(notices: &[Notice]) -> String {
    let groups = notices.chunk_by(|one, other| one.severity == other.severity);
    let group = |notices: &[Notice]| {
        let severity = notices[0].severity;
        let (class, title) = (class_of(Some(severity)), meaning(severity));
        let items: String = notices.iter().map(Notice::html).collect();
        format!("<h3 class=\"{class}\">{title}</h3>\n<ul>\n{items}</ul>\n")
    };
    groups.map(group).collect()
}

impl Notice {
    fn html(&self) -> String {
        let line = escaped(&self.line);
        let more = self.more.iter().filter(|text| !text.is_empty());
        let more: String = more
            .map(|text| format!("<p>{}</p>", escaped(text)))
            .collect();
        match more.as_str() {
            "" => format!("<li><p class=\"finding\">{line}</p></li>\n"),
            more => {
                // What to do about the worst is not folded up.
                let open = match self.severity {
                    Severity::Invalid => " open",
                    _ => "",
                };
                format!(
                    "<li><details class=\"finding\"{open}><summary>{line}</summary>{more}</details></li>\n"
                )
            }
        }
    }
}

impl Verdict {
    fn html(&self, findings: usize) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let (class, mut text) = (class_of(self.severity), escaped(&self.text));
        if !self.also.is_empty() {
            text += &format!(
                " <span class=\"also\">Also: {}.</span>",
                escaped(&self.also)
            );
        }
        let link = match findings {
            0 => String::new(),
            1 => " <a href=\"#findings\">1 finding</a>".to_owned(),
            count => format!(" <a href=\"#findings\">{count} findings</a>"),
        };
        format!("<p class=\"verdict {class}\"><strong>Verdict:</strong> {text}{link}</p>\n")
    }
}

fn note_html(note: &str) -> String {
    match note {
        "" => String::new(),
        note => format!("<p class=\"note\">{}</p>\n", escaped(note)),
    }
}

/// A part of the page with its title; nothing, if nothing is in it.
fn section(title: &str, id: &str, body: &str) -> String {
    let title = escaped(title);
    let id = match id {
        "" => String::new(),
        id => format!(" id=\"{id}\""),
    };
    match body {
        "" => String::new(),
        body => format!("<section{id}>\n<h2>{title}</h2>\n{body}</section>\n"),
    }
}

/// A part that is folded up.
fn folded(class: &str, title: &str, body: &str) -> String {
    let title = escaped(title);
    match body {
        "" => String::new(),
        body => {
            format!("<details class=\"{class}\">\n<summary>{title}</summary>\n{body}</details>\n")
        }
    }
}

fn definitions(pairs: &[(String, String)], class: &str) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let mut html = format!("<dl class=\"{class}\">\n");
    for (label, text) in pairs {
        let (label, text) = (escaped(label), escaped(text));
        html += &format!("<dt>{label}</dt><dd>{text}</dd>\n");
    }
    html + "</dl>\n"
}

impl Sheet {
    /// The table in a frame that scrolls where it is too large, also by the keyboard; nothing without rows.
    fn html(&self, label: &str) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut html = format!(
            "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n<thead>\n<tr>",
            escaped(label)
        );
        let any_unit = self.columns.iter().any(|(_, unit)| !unit.is_empty());
        let classes: Vec<&str> = (0..self.columns.len()).map(|it| self.class(it)).collect();
        for ((title, unit), class) in self.columns.iter().zip(&classes) {
            // As in figures; terminals get plain ASCII.
            let unit = if *unit == "us" { "µs" } else { unit };
            let unit = match any_unit {
                true => format!("<span class=\"unit\">{}</span>", escaped(unit)),
                false => String::new(),
            };
            let title = escaped(title);
            html += &format!(
                "<th scope=\"col\"{class}><span class=\"title\">{title}</span>{unit}</th>"
            );
        }
        html += "</tr>\n</thead>\n<tbody>\n";
        for row in &self.rows {
            html += "<tr>";
            for (cell, class) in row.iter().zip(&classes) {
                html += &format!("<td{class}>{}</td>", escaped(cell));
            }
            html += "</tr>\n";
        }
        html + "</tbody>\n</table>\n</div>\n"
    }

    /// A column that holds nothing but numbers, several in a cell with ` / ` between them, is one of numbers.
    fn class(&self, column: usize) -> &'static str {
        let is_number = |text: &str| text.trim_end_matches(MARK).parse::<f64>().is_ok();
        let mut cells = self.rows.iter().map(|row| &row[column]);
        match cells.all(|cell| cell.is_empty() || cell.split(" / ").all(is_number)) {
            true => " class=\"number\"",
            false => "",
        }
    }
}

impl Figure {
    fn html(&self) -> String {
        let caption = escaped(&self.caption);
        let drawings = match self.narrow.as_str() {
            "" => self.drawing(&self.svg, ""),
            narrow => self.drawing(&self.svg, " broad") + &self.drawing(narrow, " narrow"),
        };
        let more = if self.is_more { " class=\"more\"" } else { "" };
        format!("<figure{more}>\n{drawings}<figcaption>{caption}</figcaption>\n</figure>\n")
    }

    fn drawing(&self, svg: &str, class: &str) -> String {
        // What stands before the root element belongs to a file of its own.
        let root = svg.split_once("<svg").map_or("", |(_, root)| root);
        let (root, title) = (root.trim_end(), escaped(&self.title));
        format!(
            "<div class=\"drawing{class}\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\">\n\
             <svg aria-label=\"{title}\"{root}\n</div>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    fn page() -> Page {
        let rows = [["rc", "12.5"], ["<b>uc</b>", "9"]];
        let sheet = Sheet {
            columns: vec![("service".to_owned(), ""), ("p50".to_owned(), "us")],
            rows: rows.map(|row| row.map(str::to_owned).to_vec()).to_vec(),
        };
        let svg =
            "<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 1 1\" role=\"img\"><text>x</text></svg>\n";
        Page {
            title: "A \"run\" & more".to_owned(),
            verdict: Verdict {
                text: "<u>usable</u>".to_owned(),
                also: "a & b".to_owned(),
                severity: Some(Severity::Reservation),
            },
            opening: "12 <i>µs</i>\u{202e}\u{1b}[2J".to_owned(),
            findings: vec![Notice {
                severity: Severity::Reservation,
                line: "</li><script>alert(1)</script>".to_owned(),
                more: vec!["a <b>".to_owned(), String::new()],
            }],
            facts: vec![("device".to_owned(), "mlx5_<0>'\u{1}".to_owned())],
            answer: Answer {
                title: "p50 <of> all".to_owned(),
                sheet,
                note: String::new(),
            },
            figures: vec![Figure {
                title: "median \"of\" all".to_owned(),
                svg: svg.to_owned(),
                narrow: svg.replace("0 0 1 1", "0 0 1 2"),
                caption: "a < b".to_owned(),
                is_more: false,
            }],
            ..Page::default()
        }
    }

    #[test]
    fn all_text_is_escaped() {
        let html = page().html();
        html.has(&[
            "<title>A &quot;run&quot; &amp; more</title>",
            "<summary>&lt;/li&gt;&lt;script&gt;alert(1)&lt;/script&gt;</summary><p>a &lt;b&gt;</p></details></li>",
            "<p class=\"verdict doubtful\"><strong>Verdict:</strong> &lt;u&gt;usable&lt;/u&gt; \
             <span class=\"also\">Also: a &amp; b.</span> <a href=\"#findings\">1 finding</a></p>",
            "<h2>p50 &lt;of&gt; all</h2>",
            "<p class=\"opening\">12 &lt;i&gt;µs&lt;/i&gt;\\u{202e}\\u{1b}[2J</p>",
            "<dd>mlx5_&lt;0&gt;&#39;\\u{1}</dd>",
            "<td>&lt;b&gt;uc&lt;/b&gt;</td><td class=\"number\">9</td>",
            "<figcaption>a &lt; b</figcaption>",
            "<svg aria-label=\"median &quot;of&quot; all\" viewBox=\"0 0 1 1\" role=\"img\"><text>x</text></svg>",
            "<div class=\"drawing narrow\"",
        ]);
        assert_eq!(html.matches("<script").count(), 1, "only its own");
        assert!(!html.contains("<?xml") && html.contains("default-src 'none'"));
    }

    #[test]
    fn elements_are_closed_in_their_order() {
        let html = page().html();
        let mut open: Vec<&str> = Vec::new();
        let body = html.replace(STYLE, "").replace(SCRIPT, "");
        for piece in body.split('<').skip(1) {
            let tag = piece.split('>').next().unwrap();
            let name = tag.split_whitespace().next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{html}"),
                None if ["!DOCTYPE", "meta"].contains(&name) => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn empty_parts_are_left_out() {
        let html = Page::default().html();
        html.lacks(&[
            "<h2>", "<table>", "<figure>", "<details", "<dl", "<p class", "<section",
        ]);
    }

    #[test]
    fn findings_are_grouped_and_those_beyond_a_dozen_are_folded_up() {
        let notice = |number: usize| Notice {
            severity: match number {
                0..3 => Severity::Invalid,
                3..8 => Severity::Reservation,
                _ => Severity::Advice,
            },
            line: format!("line {number}."),
            more: Vec::new(),
        };
        let page = Page {
            findings: (0..20).map(notice).collect(),
            ..Page::default()
        };
        let html = page.html();
        let (shown, rest) = html
            .split_once("<summary>8 more findings</summary>")
            .unwrap();
        assert_eq!(shown.matches("class=\"finding\"").count(), 12);
        assert_eq!(shown.matches("<h3").count(), 3);
        assert_eq!(rest.matches("class=\"finding\"").count(), 8);
        rest.has(&["Advice for the next run", "line 19."]);
    }

    #[test]
    fn a_column_of_numbers_may_have_two_in_a_cell_and_a_mark() {
        let sheet = |cells: &[&str]| Sheet {
            columns: vec![("x".to_owned(), "")],
            rows: cells.iter().map(|cell| vec![(*cell).to_owned()]).collect(),
        };
        for (cells, is_number) in [
            (&["1", "", "2.5 / 3.5 *"][..], true),
            (&["1", "2 B"], false),
            (&["1 / x"], false),
        ] {
            assert_eq!(!sheet(cells).class(0).is_empty(), is_number, "{cells:?}");
        }
    }
}
