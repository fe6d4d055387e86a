//! A report as one HTML file: nothing in it comes from elsewhere, so it can be sent, kept and printed.
//!
//! It is made from plain data and knows no benchmark. All text is escaped. The tables can be sorted by a click where
//! the small script in the page runs, and are whole where it does not; a policy in the page keeps a browser from
//! fetching anything, with any text in a label. Light or dark is the reader's choice.

use std::io::Write as _;
use std::path::Path;

use crate::results::durable;
use crate::results::error::ReportError;
use crate::results::text::printable;

/// What is on the page, in its order. Empty parts are left out.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub title: String,
    /// What it says, in a few sentences, of which any may be empty.
    pub opening: [String; 3],
    /// What was measured where and when: label and text.
    pub facts: Vec<(String, String)>,
    /// Why the results are not whole.
    pub incomplete: Vec<String>,
    /// What to know before a figure is believed.
    pub warnings: Vec<String>,
    /// The summary: a row a point.
    pub summary: Sheet,
    /// Further tables behind it, each with its title.
    pub tables: Vec<(String, Sheet)>,
    pub figures: Vec<Figure>,
    /// What there is to say about the figures.
    pub notes: Vec<String>,
    /// What the instrument itself costs.
    pub instrument: Sheet,
    /// How to read it: what is meant, and its explanation.
    pub reading: Vec<(String, String)>,
    /// What else there is, folded up: title and sheet.
    pub more: Vec<(String, Sheet)>,
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
    /// How to read it.
    pub caption: String,
    /// Whether there are others that say about the same: a print leaves it out.
    pub is_more: bool,
}

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
        for sentence in self.opening.iter().filter(|sentence| !sentence.is_empty()) {
            html += &format!("<p class=\"opening\">{}</p>\n", escaped(sentence));
        }
        html += &definitions(&self.facts, "facts");
        html += &notices("Incomplete", "incomplete", &self.incomplete);
        html += &notices("Warnings", "warnings", &self.warnings);
        html += &section("Summary", &self.summary.html("Summary"));
        for (title, sheet) in &self.tables {
            html += &section(&escaped(title), &sheet.html(title));
        }
        let figures: String = self.figures.iter().map(Figure::html).collect();
        let mut figures = match figures.as_str() {
            "" => String::new(),
            figures => format!("<div class=\"figures\">\n{figures}</div>\n"),
        };
        for note in &self.notes {
            figures += &format!("<p class=\"note\">{}</p>\n", escaped(note));
        }
        html += &section("Figures", &figures);
        let instrument = "The instrument itself";
        html += &section(instrument, &self.instrument.html(instrument));
        html += &section("How to read it", &definitions(&self.reading, "reading"));
        for (title, sheet) in &self.more {
            let (title, table) = (escaped(title), sheet.html(title));
            if !table.is_empty() {
                html += &format!("<details>\n<summary>{title}</summary>\n{table}</details>\n");
            }
        }
        let version = env!("CARGO_PKG_VERSION");
        html + &format!(
            "</main>\n<footer>Made by hcabench {version}.</footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

/// A part of the page with its title; nothing, if nothing is in it.
fn section(title: &str, body: &str) -> String {
    match body {
        "" => String::new(),
        body => format!("<section>\n<h2>{title}</h2>\n{body}</section>\n"),
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

fn notices(title: &str, class: &str, texts: &[String]) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let mut html = format!("<section class=\"notice {class}\">\n<h2>{title}</h2>\n<ul>\n");
    for text in texts {
        html += &format!("<li>{}</li>\n", escaped(text));
    }
    html + "</ul>\n</section>\n"
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

    /// A column that holds nothing but numbers is one of numbers.
    fn class(&self, column: usize) -> &'static str {
        let mut cells = self.rows.iter().map(|row| &row[column]);
        match cells.all(|cell| cell.is_empty() || cell.parse::<f64>().is_ok()) {
            true => " class=\"number\"",
            false => "",
        }
    }
}

impl Figure {
    fn html(&self) -> String {
        // What stands before the root element belongs to a file of its own.
        let root = self.svg.split_once("<svg").map_or("", |(_, root)| root);
        let (root, title) = (root.trim_end(), escaped(&self.title));
        let caption = escaped(&self.caption);
        let more = if self.is_more { " class=\"more\"" } else { "" };
        format!(
            "<figure{more}>\n<div class=\"drawing\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\">\n\
             <svg aria-label=\"{title}\"{root}\n</div>\n<figcaption>{caption}</figcaption>\n</figure>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    fn page() -> Page {
        let rows = [["rc", "12.5"], ["<b>uc</b>", "9"]];
        let summary = Sheet {
            columns: vec![("service".to_owned(), ""), ("p50".to_owned(), "us")],
            rows: rows.map(|row| row.map(str::to_owned).to_vec()).to_vec(),
        };
        let svg =
            "<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 1 1\" role=\"img\"><text>x</text></svg>\n";
        Page {
            title: "A \"run\" & more".to_owned(),
            opening: ["", "12 <i>µs</i>\u{202e}\u{1b}[2J", ""].map(str::to_owned),
            warnings: vec!["</li><script>alert(1)</script>".to_owned()],
            facts: vec![("device".to_owned(), "mlx5_<0>'\u{1}".to_owned())],
            summary,
            figures: vec![Figure {
                title: "median \"of\" all".to_owned(),
                svg: svg.to_owned(),
                caption: "a < b".to_owned(),
                is_more: false,
            }],
            ..Page::default()
        }
    }

    #[test]
    fn all_text_is_escaped() {
        let html = page().html();
        html.has(&["<title>A &quot;run&quot; &amp; more</title>", "<li>&lt;/li&gt;&lt;script&gt;alert(1)&lt;/script&gt;</li>", "<p class=\"opening\">12 &lt;i&gt;µs&lt;/i&gt;\\u{202e}\\u{1b}[2J</p>", "<dd>mlx5_&lt;0&gt;&#39;\\u{1}</dd>", "<td>&lt;b&gt;uc&lt;/b&gt;</td><td class=\"number\">9</td>", "<figcaption>a &lt; b</figcaption>", "<svg aria-label=\"median &quot;of&quot; all\" viewBox=\"0 0 1 1\" role=\"img\"><text>x</text></svg>"]);
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
        html.lacks(&["<h2>", "<table>", "<figure>", "<details>", "<dl"]);
    }
}
