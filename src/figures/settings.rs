//! Settings in words: in labels, subtitles and on axes.

use crate::bench::presentation::Presentation;
use crate::plot::scale::{duration, plain};
use crate::results::schema::{clock, hca, memory, node, queue, split_unit};
use crate::results::units;
use crate::terminal::output::heading_of;

/// What follows from another setting and is not told for itself.
const DERIVED: [&str; 9] = [
    // Whole bursts.
    hca::WARMUP.name,
    queue::ENDS.name,
    queue::WRITTEN.name,
    queue::MEASURE_FAILED.name,
    queue::WARMUP.name,
    node::SAMPLE.name,
    node::DISTRIBUTED_BY.name,
    // Of --duration, at each rate.
    node::STEPS.name,
    // As many as are listed.
    memory::GENERATOR_COUNT.name,
];

/// Whether a setting is worth telling.
pub(crate) fn is_told(name: &str, text: &str) -> bool {
    let is_jitter = name == queue::JITTER.name || name == queue::RECEIVER_JITTER.name;
    let is_no_jitter = is_jitter && text.parse() == Ok(0.0);
    let says_something = !text.is_empty() || name == memory::PAUSE.name;
    says_something && !is_no_jitter && !DERIVED.contains(&name)
}

/// Whether the same at all points is not worth telling.
pub(crate) fn goes_without_saying(name: &str, text: &str) -> bool {
    let usual = match name {
        _ if [
            hca::QUEUE_PAIRS,
            node::PUBLISHERS,
            node::SUBSCRIBERS,
            node::VECTORIZE,
        ]
        .iter()
        .any(|column| column.name == name) =>
        {
            1.0
        }
        // How it was measured, and not what.
        _ if [
            memory::CHASE_CPU,
            memory::WINDOWS,
            memory::SETTLE,
            memory::OUTLIERS,
        ]
        .iter()
        .any(|column| column.name == name) =>
        {
            return true;
        }
        _ if [hca::RECEIVER_PAUSE, hca::BACKGROUND, hca::MEMORY_LOAD]
            .iter()
            .any(|column| column.name == name) =>
        {
            0.0
        }
        _ => return false,
    };
    text.parse() == Ok(usual)
}

/// A setting with its value, short, for people.
pub(crate) fn in_words(name: &str, text: &str) -> String {
    let (words, unit) = heading_of(name);
    let Ok(number) = text.parse::<f64>() else {
        return match name {
            _ if name == hca::SERVICE.name => text.to_uppercase(),
            _ if name == memory::ISA.name => text.to_owned(),
            _ if name == memory::STORE.name => format!("{text} stores"),
            _ if name == memory::SMOOTH.name && text != "none" => format!("smoothed by {text}"),
            _ if name == memory::PAUSE.name => "no generators".to_owned(),
            _ if [hca::OPERATION, queue::QUEUE, node::TYPE, node::SCENARIO]
                .iter()
                .any(|column| column.name == name) =>
            {
                text.to_owned()
            }
            _ if name == queue::MEASURE.name => format!("measures {text}"),
            _ => format!("{words} {text}"),
        };
    };
    let bytes = units::bytes(number as u64);
    match unit {
        "B" if name == hca::SIZE.name => bytes,
        "B" if name == queue::PAYLOAD.name => format!("elements of {bytes}"),
        "B" => format!("{words} {bytes}"),
        "ns" if number == 0.0 => format!("no {words}"),
        "ns" => format!("{words} {}", duration(number)),
        "1/s" if name == queue::RATE.name => units::rate(number),
        "1/s" => format!("{words} {}", units::rate(number)),
        "%" if name == memory::READ_SHARE.name => format!("{} % reads", plain(number)),
        "nops" if number == 0.0 => "no pause".to_owned(),
        "nops" => format!("{words} {text} nops"),
        "%" => format!("{words} {} %", plain(number)),
        _ if name == queue::PERCENT_OF_SATURATION.name => {
            format!("{} % of saturation", plain(number))
        }
        _ if name == clock::CPU.name => format!("CPU {text}"),
        _ => format!("{words} {text}"),
    }
}

/// A text that begins as a sentence does.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Whether two texts are the same value of a setting: as texts or as numbers.
pub(super) fn same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    one.eq_ignore_ascii_case(other) || number(one).is_some_and(|one| number(other) == Some(one))
}

/// A setting in the words that `of` makes; or as it stands in the file, where another of its texts would read the same.
pub(crate) fn apart<'a>(
    of: impl Fn(&str, &str) -> String,
    name: &str,
    text: &str,
    others: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let words = of(name, text);
    let mistaken = |other: &str| !same(text, other) && of(name, other) == words;
    (!others.into_iter().any(mistaken)).then_some(words)
}

/// The value of a setting on an axis.
pub(crate) fn tick(name: &str, text: &str) -> String {
    let number: Option<f64> = text.parse().ok();
    match (number, split_unit(name).1) {
        (Some(number), "B") => units::bytes(number as u64),
        (Some(number), "ns") => duration(number),
        (Some(number), "%") => format!("{} %", plain(number)),
        (Some(number), _) => plain(number),
        (None, _) if name == hca::SERVICE.name => text.to_uppercase(),
        (None, _) => text.to_owned(),
    }
}

pub(crate) fn axis(presentation: &Presentation, name: &str) -> String {
    const TITLES: [(&str, &str); 11] = [
        (hca::SIZE.name, "message size"),
        (queue::PAYLOAD.name, "size of an element"),
        (hca::BURST.name, "messages in a burst"),
        (hca::PAUSE.name, "pause between messages"),
        (
            queue::PERCENT_OF_SATURATION.name,
            "offered rate (% of saturation)",
        ),
        (queue::RATE.name, "offered rate (per s)"),
        (
            queue::MEMORY_LOAD.name,
            "memory load (% of the generators' peak)",
        ),
        (queue::CAPACITY.name, "capacity (elements)"),
        (node::VALUES.name, "values of a sample"),
        (memory::READ_SHARE.name, "share of reads"),
        (memory::PAUSE.name, "pause (nops)"),
    ];
    let mut titles = presentation.axes.iter().chain(&TITLES);
    let title = titles.find(|(column, _)| *column == name);
    title.map_or_else(|| heading_of(name).0, |(_, title)| (*title).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::presentation_of;

    #[test]
    fn what_differs_is_not_rounded_to_the_same_word() {
        let texts = ["1000100.000", "1000200.000", "2000000.000"];
        let told = |name, text| apart(in_words, name, text, texts);
        assert_eq!(told("rate_per_s", texts[2]), Some("2.00 M/s".to_owned()));
        assert_eq!(told("rate_per_s", texts[0]), None);
        // The same number, written otherwise.
        let told = apart(tick, "pause_ns", "50", ["50", "50.0"]);
        assert_eq!(told, Some("50 ns".to_owned()));
    }

    #[test]
    fn settings_read_as_people_say_them() {
        for (name, text, words) in [
            ("service", "rc", "RC"),
            ("size_bytes", "4096", "4 KiB"),
            ("burst", "64", "burst 64"),
            ("inline", "on", "inline on"),
            ("poll_recv", "busy", "poll recv busy"),
            ("pause_ns", "50000", "pause 50 µs"),
            ("pause_ns", "0", "no pause"),
            ("receiver_pause_ns", "0", "no receiver pause"),
            ("receiver_pause_ns", "20000", "receiver pause 20 µs"),
            ("rate_per_s", "1000000.000", "1.00 M/s"),
            ("receiver_wait_ns", "100", "receiver wait 100 ns"),
            ("capacity", "1024", "capacity 1024"),
        ] {
            assert_eq!(in_words(name, text), words);
        }
        assert!(!is_told("wait_ns", "") && !is_told("jitter_percent", "0.00"));
        assert!(is_told("jitter_percent", "5.00"));
        let ticks = [tick("size_bytes", "8"), tick("burst", "8192")];
        assert_eq!(ticks, ["8 B", "8192"]);
        let of_hca = presentation_of(&hca::SCHEMA);
        assert_eq!(axis(of_hca, "poll_recv"), "poll recv");
    }
}
