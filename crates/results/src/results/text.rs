//! Text that others wrote (paths, names, reasons, cells), made fit to be shown.

use std::borrow::Cow;
use std::path::Path;

/// The text with everything escaped that would move the cursor, colour, or turn the direction of a terminal: control
/// characters (C0, DEL, C1), line separators, and marks of direction. `\n` for a line feed, `\u{1b}` for an escape.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if steers(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// A path as [`printable`] text; bytes that are no UTF-8 are replaced.
pub fn printable_path(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        for (text, shown) in [
            ("a\x1b[2Jb", "a\\u{1b}[2Jb"),
            ("one\ntwo\r\t", "one\\ntwo\\r\\t"),
            ("\x7f\u{9b}31m\0", "\\u{7f}\\u{9b}31m\\u{0}"),
            ("\u{202e}gpj.exe\u{2069}", "\\u{202e}gpj.exe\\u{2069}"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert!(matches!(printable("Grün, 10 µs \\u{1b}"), Cow::Borrowed(_)));
    }
}
