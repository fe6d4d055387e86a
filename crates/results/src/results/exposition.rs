//! Gauges as text that is both OpenMetrics 1.0 and the older format of Prometheus, which the textfile collector of its
//! node exporter reads: to that one the lines of unit and end are comments.

use std::fmt::Write as _;

use super::schema::split_unit;

/// A text of gauges, one metric after the other.
#[derive(Debug)]
pub struct MetricsText {
    text: String,
    /// What is before the name of each metric.
    prefix: String,
    metric: String,
}

impl MetricsText {
    /// Without a metric yet.
    pub fn new(prefix: &str) -> Self {
        MetricsText {
            text: String::new(),
            prefix: prefix.to_owned(),
            metric: String::new(),
        }
    }

    /// Begins a metric: all of its samples must follow. Its unit is the end of its name. `help` has no quotes, which the
    /// two formats escape in different ways.
    pub fn metric(&mut self, name: &str, help: &str) {
        self.metric = format!("{}{name}", self.prefix);
        let (metric, help) = (&self.metric, help.replace(['"', '\n'], " "));
        let _ = writeln!(self.text, "# HELP {metric} {help}\n# TYPE {metric} gauge");
        let unit = UNITS.iter().find(|unit| {
            let stem = metric.strip_suffix(**unit);
            stem.is_some_and(|stem| stem.ends_with('_'))
        });
        if let Some(unit) = unit {
            let _ = writeln!(self.text, "# UNIT {metric} {unit}");
        }
    }

    /// A sample; nothing of what was not measured.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: Option<f64>) {
        let Some(value) = value else { return };
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, text)| format!("{name}=\"{}\"", escaped(text)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.text, "{}{labels} {value}", self.metric);
    }

    /// The text, with its end.
    pub fn into_text(self) -> String {
        self.text + "# EOF\n"
    }
}

/// What a column of results is as a gauge: without prefixes of units, as the format wants it.
#[derive(Debug, Clone)]
pub struct Gauge {
    /// Its name, with its unit at the end.
    pub metric: String,
    /// Its value by that of the column.
    pub value_of: fn(f64) -> f64,
}

impl Gauge {
    /// The gauge of a column of that name.
    pub fn of(column: &str) -> Self {
        let (stem, unit) = split_unit(column);
        // A division by a power of ten gives the digits of a whole number, a product others.
        let (end, value_of): (&str, fn(f64) -> f64) = match unit {
            "B" => ("_bytes", |it| it),
            "ns" => ("_seconds", |it| it / 1e9),
            "us" => ("_seconds", |it| it / 1e6),
            "1/s" => ("_per_second", |it| it),
            "B/s" => ("_bytes_per_second", |it| it),
            "MB/s" => ("_bytes_per_second", |it| it * 1e6),
            "%" => ("_ratio", |it| it / 100.0),
            "ppm" => ("_ratio", |it| it / 1e6),
            "Hz" => ("_hertz", |it| it),
            "kHz" => ("_hertz", |it| it * 1e3),
            _ => (&column[stem.len()..], |it| it),
        };
        Gauge {
            metric: format!("{stem}{end}"),
            value_of,
        }
    }
}

/// Ends of names that are units; of two that fit the longer one is first.
const UNITS: [&str; 6] = [
    "bytes_per_second",
    "per_second",
    "seconds",
    "bytes",
    "hertz",
    "ratio",
];

/// 1 or 0.
pub fn flag(flag: bool) -> f64 {
    f64::from(u8::from(flag))
}

/// The value of a label, escaped as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_a_gauge_in_base_units() {
        for (column, metric, value) in [
            ("latency_p50_ns", "latency_p50_seconds", 12.345e-6),
            ("latency_p50_low_ns", "latency_p50_low_seconds", 12.345e-6),
            ("size_bytes", "size_bytes", 12_345.0),
            ("rate_per_s", "rate_per_second", 12_345.0),
            ("read_bytes_per_s", "read_bytes_per_second", 12_345.0),
            ("read_mb_s", "read_bytes_per_second", 12_345e6),
            ("busy_percent", "busy_ratio", 123.45),
            ("tsc_khz", "tsc_hertz", 12_345e3),
            ("messages_lost", "messages_lost", 12_345.0),
        ] {
            let gauge = Gauge::of(column);
            assert_eq!(
                (gauge.metric.as_str(), (gauge.value_of)(12_345.0)),
                (metric, value)
            );
        }
    }

    #[test]
    fn a_metric_has_its_unit_and_the_text_its_end() {
        let mut text = MetricsText::new("hcabench_made_up_");
        text.metric("wait_seconds", "How long it waits.");
        text.sample(&[("point", "a\"b\\c\nd")], Some(1.5e-6));
        text.sample(&[], None);
        text.metric("rate_per_second", "How many a second.");
        text.sample(&[], Some(flag(true)));
        text.metric("pairs", "How many.");
        assert_eq!(
            text.into_text(),
            "# HELP hcabench_made_up_wait_seconds How long it waits.\n\
             # TYPE hcabench_made_up_wait_seconds gauge\n\
             # UNIT hcabench_made_up_wait_seconds seconds\n\
             hcabench_made_up_wait_seconds{point=\"a\\\"b\\\\c\\nd\"} 0.0000015\n\
             # HELP hcabench_made_up_rate_per_second How many a second.\n\
             # TYPE hcabench_made_up_rate_per_second gauge\n\
             # UNIT hcabench_made_up_rate_per_second per_second\n\
             hcabench_made_up_rate_per_second 1\n\
             # HELP hcabench_made_up_pairs How many.\n\
             # TYPE hcabench_made_up_pairs gauge\n\
             # EOF\n"
        );
    }
}
