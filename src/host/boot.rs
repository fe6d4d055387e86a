//! What the kernel was told at its start that matters to a measurement, by name.

use serde::Serialize;

/// A parameter of the kernel's command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Parameter {
    /// It is not there.
    #[default]
    Absent,
    /// It is there, with its value; without one the text is empty.
    Given(String),
}

impl Parameter {
    /// Its value, if it is there.
    pub fn value(&self) -> Option<&str> {
        match self {
            Parameter::Absent => None,
            Parameter::Given(value) => Some(value),
        }
    }
}

/// The parameters that decide who disturbs a measuring thread, and what the clock is; null where one was not given.
///
/// Source: `Documentation/admin-guide/kernel-parameters.txt` of Linux.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BootParameters {
    /// CPUs kept free of other threads.
    pub isolcpus: Parameter,
    /// CPUs without a tick while one thread runs.
    pub nohz_full: Parameter,
    /// CPUs whose RCU callbacks run elsewhere.
    pub rcu_nocbs: Parameter,
    /// What an idle CPU does.
    pub idle: Parameter,
    /// Mitigations of the processor's flaws.
    pub mitigations: Parameter,
    /// What is taken for granted of the TSC.
    pub tsc: Parameter,
    /// The clock source asked for.
    pub clocksource: Parameter,
    /// The deepest idle state of the driver intel_idle.
    #[serde(rename = "intel_idle.max_cstate")]
    pub intel_idle_max_cstate: Parameter,
    /// The deepest idle state of the driver acpi_idle.
    #[serde(rename = "processor.max_cstate")]
    pub processor_max_cstate: Parameter,
}

impl BootParameters {
    /// Finds them on a kernel's command line.
    pub fn from_command_line(line: &str) -> Self {
        let words = words(line);
        let given = |name: &str| {
            // The kernel takes the last one, and does not tell a dash from an underscore in names.
            let found = words.iter().rev().find_map(|word| {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                (key.replace('-', "_") == name).then(|| Parameter::Given(value.to_owned()))
            });
            found.unwrap_or_default()
        };
        Self {
            isolcpus: given("isolcpus"),
            nohz_full: given("nohz_full"),
            rcu_nocbs: given("rcu_nocbs"),
            idle: given("idle"),
            mitigations: given("mitigations"),
            tsc: given("tsc"),
            clocksource: given("clocksource"),
            intel_idle_max_cstate: given("intel_idle.max_cstate"),
            processor_max_cstate: given("processor.max_cstate"),
        }
    }

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, &Parameter); 9] {
        [
            ("isolcpus", &self.isolcpus),
            ("nohz_full", &self.nohz_full),
            ("rcu_nocbs", &self.rcu_nocbs),
            ("idle", &self.idle),
            ("mitigations", &self.mitigations),
            ("tsc", &self.tsc),
            ("clocksource", &self.clocksource),
            ("intel_idle.max_cstate", &self.intel_idle_max_cstate),
            ("processor.max_cstate", &self.processor_max_cstate),
        ]
    }
}

/// The words of the line, up to those that are for the first process; double quotes keep blanks together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for letter in line.chars().chain([' ']) {
        match letter {
            '"' => quoted = !quoted,
            blank if blank.is_whitespace() && !quoted => {
                if word == "--" {
                    break;
                }
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: &str) -> Parameter {
        Parameter::Given(value.to_owned())
    }

    #[test]
    fn each_is_found_by_its_name() {
        let found = BootParameters::from_command_line(
            "BOOT_IMAGE=/vmlinuz ro quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 idle=poll \
             mitigations=off tsc=reliable clocksource=tsc intel_idle.max_cstate=0 processor.max_cstate=1",
        );
        let values: Vec<_> = found.named().iter().map(|(_, it)| it.value()).collect();
        assert_eq!(
            values,
            [
                Some("managed_irq,domain,2-3"),
                Some("2-3"),
                Some("2-3"),
                Some("poll"),
                Some("off"),
                Some("reliable"),
                Some("tsc"),
                Some("0"),
                Some("1")
            ]
        );
    }

    #[test]
    fn what_is_not_given_is_absent_and_a_part_of_a_word_is_not_it() {
        let found = BootParameters::from_command_line("quiet notidle=poll xtsc=1 cpuidle.off=1");
        assert_eq!(found, BootParameters::default());
        assert!(found.named().iter().all(|(_, it)| it.value().is_none()));
    }

    #[test]
    fn the_line_is_read_as_the_kernel_does() {
        let found = BootParameters::from_command_line(
            "idle=halt nohz-full=1 rcu_nocbs mitigations=\"auto,nosmt\" \"isolcpus=1 2\" idle=poll -- tsc=init idle=nomwait",
        );
        assert_eq!(found.idle, given("poll"));
        assert_eq!(found.nohz_full, given("1"));
        assert_eq!(found.rcu_nocbs, given(""));
        assert_eq!(found.mitigations, given("auto,nosmt"));
        assert_eq!(found.isolcpus, given("1 2"));
        assert_eq!(found.tsc, Parameter::Absent);
        assert_eq!(
            serde_json::to_value(&found).unwrap()["tsc"],
            serde_json::Value::Null
        );
    }
}
