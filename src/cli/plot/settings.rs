//! Settings in words: in labels, subtitles and on axes.

use crate::plot::scale::{duration, plain};
use crate::results::units;

/// What follows from another setting and is not told for itself.
const DERIVED: [&str; 4] = ["ends", "written", "measure_failed", "saturation_per_s"];

/// Whether a setting is worth telling.
pub(super) fn is_told(name: &str, text: &str) -> bool {
    let nothing = name.ends_with("jitter_percent") && text.parse() == Ok(0.0);
    !text.is_empty() && !nothing && !DERIVED.contains(&name)
}

/// A setting with its value, short, for people.
pub(super) fn in_words(name: &str, text: &str) -> String {
    let number: Option<f64> = text.parse().ok();
    match (name, number) {
        ("size_bytes" | "size", Some(number)) => units::bytes(number as u64),
        ("payload_bytes" | "payload", Some(number)) => {
            format!("elements of {}", units::bytes(number as u64))
        }
        ("service", _) => text.to_uppercase(),
        ("operation" | "queue", _) => text.to_owned(),
        ("clock", _) => format!("clock {text}"),
        ("cpu", _) => format!("CPU {text}"),
        ("cores", _) => format!("cores {text}"),
        ("pause_ns", Some(0.0)) => "no pause".to_owned(),
        ("percent_of_saturation", Some(number)) => format!("{} % of saturation", plain(number)),
        ("rate_per_s", Some(number)) => units::rate(number),
        ("measure", _) => format!("measures {text}"),
        (_, Some(number)) if name.ends_with("_ns") => {
            format!("{} {}", words_of(name), duration(number))
        }
        (_, Some(number)) if name.ends_with("_per_s") => {
            format!("{} {}", words_of(name), units::rate(number))
        }
        (_, Some(number)) if name.ends_with("_percent") => {
            format!("{} {} %", words_of(name), plain(number))
        }
        (_, Some(number)) if name.ends_with("_bytes") => {
            format!("{} {}", words_of(name), units::bytes(number as u64))
        }
        _ => format!("{} {text}", words_of(name)),
    }
}

/// Whether two texts of a setting are different settings: not the same number in other digits.
fn differ(one: &str, two: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    one != two && (number(one).is_none() || number(one) != number(two))
}

/// A setting in the words that `of` makes; or as it stands in the file, where another of its texts would read the same.
pub(super) fn apart<'a>(
    of: impl Fn(&str, &str) -> String,
    name: &str,
    text: &str,
    others: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let words = of(name, text);
    let mistaken = |other: &str| differ(text, other) && of(name, other) == words;
    (!others.into_iter().any(mistaken)).then_some(words)
}

/// The value of a setting on an axis.
pub(super) fn tick(name: &str, text: &str) -> String {
    let number: Option<f64> = text.parse().ok();
    match number {
        Some(number) if name.ends_with("_bytes") => units::bytes(number as u64),
        Some(number) if name.ends_with("_ns") => duration(number),
        Some(number) => plain(number),
        None if name == "service" => text.to_uppercase(),
        None => text.to_owned(),
    }
}

/// A setting on an axis.
pub(super) fn axis(name: &str) -> String {
    match name {
        "size_bytes" => "message size".to_owned(),
        "payload_bytes" => "size of an element".to_owned(),
        "burst" => "messages in a burst".to_owned(),
        "pause_ns" => "pause between messages".to_owned(),
        "percent_of_saturation" => "offered rate (% of saturation)".to_owned(),
        "rate_per_s" => "offered rate (per s)".to_owned(),
        "capacity" => "capacity (elements)".to_owned(),
        _ => words_of(name),
    }
}

/// A column's name without its unit.
fn words_of(name: &str) -> String {
    let units = ["_per_s", "_ns", "_us", "_percent", "_bytes"];
    let plain = units
        .iter()
        .find_map(|unit| name.strip_suffix(unit))
        .unwrap_or(name);
    plain.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_not_rounded_to_the_same_word() {
        let texts = ["1000100.000", "1000200.000", "2000000.000"];
        let told = |name, text| apart(in_words, name, text, texts);
        assert_eq!(told("rate_per_s", texts[2]), Some("2.00 M/s".to_owned()));
        assert_eq!(told("rate_per_s", texts[0]), None);
        // The same number, written otherwise.
        assert_eq!(
            apart(tick, "pause_ns", "50", ["50", "50.0"]),
            Some("50 ns".to_owned())
        );
    }

    #[test]
    fn settings_read_as_people_say_them() {
        let cases = [
            ("service", "rc", "RC"),
            ("size_bytes", "4096", "4 KiB"),
            ("burst", "64", "burst 64"),
            ("inline", "on", "inline on"),
            ("poll_recv", "busy", "poll recv busy"),
            ("pause_ns", "50000", "pause 50 µs"),
            ("pause_ns", "0", "no pause"),
            ("rate_per_s", "1000000.000", "1.00 M/s"),
            ("receiver_wait_ns", "100", "receiver wait 100 ns"),
            ("capacity", "1024", "capacity 1024"),
        ];
        for (name, text, words) in cases {
            assert_eq!(in_words(name, text), words);
        }
        assert!(
            !is_told("wait_ns", "")
                && !is_told("jitter_percent", "0.00")
                && is_told("jitter_percent", "5.00")
        );
        assert_eq!(
            (
                tick("size_bytes", "8"),
                tick("burst", "8192"),
                axis("poll_recv")
            ),
            ("8 B".into(), "8192".into(), "poll recv".into())
        );
    }
}
