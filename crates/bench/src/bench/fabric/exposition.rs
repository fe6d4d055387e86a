//! The text format of Prometheus, for files that the textfile collector of its node exporter reads.

use std::fmt::Write as _;

/// A text of gauges, one metric after the other.
#[derive(Debug)]
pub struct Text {
    text: String,
    /// What is before the name of each metric.
    prefix: &'static str,
    metric: &'static str,
}

impl Text {
    /// Without a metric yet.
    pub fn new(prefix: &'static str) -> Self {
        Text {
            text: String::new(),
            prefix,
            metric: "",
        }
    }

    /// Begins a metric: all of its samples must follow.
    pub fn metric(&mut self, name: &'static str, help: &str) {
        let prefix = self.prefix;
        let _ = writeln!(
            self.text,
            "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} gauge"
        );
        self.metric = name;
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
        let _ = writeln!(self.text, "{}{}{labels} {value}", self.prefix, self.metric);
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }
}

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
