//! The lines of a file of switches or groups, as Slurm reads its own: a `#` begins a comment unless it is escaped, a
//! backslash at the end continues a line, and `Include FILE` is in place of the lines of that file.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::TierError;
use crate::results::durable::open_regular;

/// Files may include others to this depth.
const DEEPEST: usize = 8;

/// Where a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePlace {
    /// From 1.
    pub line: usize,
    /// The file, if it is an included one.
    pub file: Option<Rc<Path>>,
}

impl From<usize> for LinePlace {
    fn from(line: usize) -> Self {
        LinePlace { line, file: None }
    }
}

impl fmt::Display for LinePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}", self.line)?;
        match &self.file {
            Some(file) => write!(formatter, " of {}", file.display()),
            None => Ok(()),
        }
    }
}

pub(super) fn wrong(place: impl Into<LinePlace>, reason: impl Into<String>) -> TierError {
    let (place, reason) = (place.into(), reason.into());
    TierError::Line { place, reason }
}

/// What is before a comment: a `#` behind an odd number of backslashes begins none.
fn uncommented(line: &str) -> &str {
    let mut escapes = 0;
    for (at, letter) in line.char_indices() {
        match letter {
            '#' if escapes % 2 == 0 => return &line[..at],
            '\\' => escapes += 1,
            _ => escapes = 0,
        }
    }
    line
}

/// What is before the backslash of a line that the next one continues: one that no other escapes.
fn continued(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let escapes = line.len() - line.trim_end_matches('\\').len();
    (escapes % 2 == 1).then(|| &line[..line.len() - 1])
}

/// Without backslashes that escape.
fn unescaped(line: &str) -> String {
    let mut letters = line.chars();
    let next = || match letters.next()? {
        '\\' => letters.next(),
        letter => Some(letter),
    };
    let text: String = std::iter::from_fn(next).collect();
    text.trim().to_owned()
}

/// Lines without comments, with their numbers; empty ones are left out.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut all = (1..).zip(text.lines().map(uncommented));
    let joined = std::iter::from_fn(move || {
        let (number, first) = all.next()?;
        let mut line = first.to_owned();
        while let Some(begun) = continued(&line) {
            line = format!("{begun}{}", all.next().map_or("", |(_, next)| next));
        }
        Some((number, unescaped(&line)))
    });
    joined.filter(|(_, line)| !line.is_empty())
}

/// The lines of a text and of the files that it includes, in order. The path of a file is relative to the folder of the
/// one that includes it.
pub(super) fn with_included(
    text: &str,
    path: &Path,
) -> Result<Vec<(LinePlace, String)>, TierError> {
    let mut all = Vec::new();
    Including {
        within: path.canonicalize().into_iter().collect(),
        all: &mut all,
    }
    .take(text, path, None)?;
    Ok(all)
}

/// Files that are being read.
struct Including<'a> {
    /// Each includes the next one.
    within: Vec<PathBuf>,
    all: &'a mut Vec<(LinePlace, String)>,
}

impl Including<'_> {
    fn take(&mut self, text: &str, path: &Path, file: Option<Rc<Path>>) -> Result<(), TierError> {
        for (line, text) in lines(text) {
            let place = LinePlace {
                line,
                file: file.clone(),
            };
            match included(&text) {
                Some(name) => self.include(name, path, &place)?,
                None => self.all.push((place, text)),
            }
        }
        Ok(())
    }

    fn include(&mut self, name: &str, by: &Path, place: &LinePlace) -> Result<(), TierError> {
        let refused = |reason: String| wrong(place.clone(), format!("Include {name}: {reason}"));
        if name.is_empty() || name.contains(char::is_whitespace) {
            let reason = "the path of one file is needed, without blanks";
            return Err(refused(reason.to_owned()));
        }
        let path = by.parent().unwrap_or(Path::new("")).join(name);
        let failed = |error: std::io::Error| refused(format!("{}: {error}", path.display()));
        let canonical = path.canonicalize().map_err(failed)?;
        if self.within.contains(&canonical) {
            let reason = "it includes itself, by itself or by others: remove one of the Include";
            return Err(refused(reason.to_owned()));
        }
        if self.within.len() > DEEPEST {
            let reason = format!("files include others to a depth of {DEEPEST} at the most");
            return Err(refused(reason));
        }
        let mut text = String::new();
        let mut file = open_regular(&path).map_err(failed)?;
        file.read_to_string(&mut text).map_err(failed)?;
        self.within.push(canonical);
        self.take(&text, &path, Some(path.as_path().into()))?;
        self.within.pop();
        Ok(())
    }
}

/// The path behind `Include`.
fn included(line: &str) -> Option<&str> {
    let word = line
        .get(..7)
        .filter(|it| it.eq_ignore_ascii_case("include"))?;
    let rest = &line[word.len()..];
    let is_word = rest.is_empty() || rest.starts_with(char::is_whitespace);
    is_word.then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::{Has as _, temporary};

    fn read(text: &str) -> Vec<(usize, String)> {
        lines(text).collect()
    }

    #[test]
    fn comments_escapes_and_ends_of_lines_are_those_of_slurm() {
        for (text, expected) in [
            ("a # b\n", "a"),
            (r"a\#b # c", "a#b"),
            (r"a\\# b", r"a\"),
            (r"a\\\#b", r"a\#b"),
            (r"a\b\ c", "ab c"),
            ("a,\\\n b", "a, b"),
            ("a\\\\\nb", r"a\"),
            ("\\", ""),
        ] {
            let found = read(text);
            let first = found.first().map_or("", |(_, line)| line.as_str());
            assert_eq!(first, expected, "{text:?}");
        }
        let numbers = read("\n# a\na \\\nb\n\nc");
        assert_eq!(numbers, [(3, "a b".to_owned()), (6, "c".to_owned())]);
    }

    #[test]
    fn included_files_are_read_in_place() {
        let folder = temporary("");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        fs::create_dir(folder.join("below")).unwrap();
        write("below/one.conf", "b\nINCLUDE two.conf # beside it\n");
        write("below/two.conf", "c\n\nd\n");
        let main = folder.join("main.conf");
        let all = with_included("a\nInclude below/one.conf\ne\nIncluded=1\n", &main).unwrap();
        let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d", "e", "Included=1"]);
        let places: Vec<String> = all.iter().map(|(place, _)| place.to_string()).collect();
        assert_eq!((&*places[0], &*places[4]), ("line 1", "line 3"));
        places[3].has(&["line 3 of ", "below/two.conf"]);
        // Twice is no circle.
        let twice = with_included("Include below/two.conf\nInclude below/two.conf", &main);
        assert_eq!(twice.unwrap().len(), 4);
    }

    #[test]
    fn what_cannot_be_included_is_refused_with_its_line() {
        let folder = temporary("");
        let main = folder.join("main.conf");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("main.conf", "Include a.conf\n");
        write("a.conf", "\nInclude b.conf\n");
        write("b.conf", "Include main.conf\n");
        for depth in 0..=DEEPEST {
            write(&format!("{depth}"), &format!("Include {}\n", depth + 1));
        }
        let refused = |text: &str| with_included(text, &main).unwrap_err().to_string();
        refused("Include a.conf").has(&[
            "line 1 of ",
            "b.conf: Include main.conf: it includes itself",
        ]);
        refused("x\nInclude main.conf").has(&["line 2: Include main.conf: it includes itself"]);
        refused("Include 0").has(&["depth of 8 at the most", "line 1 of "]);
        refused("Include nothing").has(&["line 1: Include nothing: ", "No such file"]);
        refused("Include .").has(&["line 1: Include .: "]);
        refused("Include").has(&["the path of one file is needed"]);
        refused("include a b").has(&["the path of one file is needed"]);
    }
}
