//! The parameters of the kernel's command line that matter to a measurement, by name.

use serde::{Serialize, Serializer};

/// The parameters that decide who disturbs a measuring thread, and what the clock is.
///
/// Source: `Documentation/admin-guide/kernel-parameters.txt` of Linux.
const NAMES: [&str; 9] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "idle",
    "mitigations",
    "tsc",
    "clocksource",
    "intel_idle.max_cstate",
    "processor.max_cstate",
];

/// What of these was given, serialized by name; null where one was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootParameters([Option<String>; NAMES.len()]);

impl BootParameters {
    pub fn from_command_line(line: &str) -> Self {
        let words = words(line);
        Self(NAMES.map(|name| {
            // The kernel takes the last one, and treats a dash as an underscore in names.
            words.iter().rev().find_map(|word| {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                (key.replace('-', "_") == name).then(|| value.to_owned())
            })
        }))
    }

    /// Each name with the value, if it was given; one without a value has an empty text.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        NAMES.into_iter().zip(self.0.iter().map(Option::as_deref))
    }
}

/// The parameters of a command line, with the values of those that set up the machine. The values of others may
/// be secret, and are left out.
pub fn without_values(line: &str) -> Vec<String> {
    let is_set_up = |name: &str| {
        NAMES.contains(&name.replace('-', "_").as_str())
            || SET_UP.iter().any(|begin| name.starts_with(begin))
    };
    let named = words(line)
        .into_iter()
        .map(|word| match word.split_once('=') {
            Some((name, _)) if !is_set_up(name) => format!("{name}=..."),
            _ => word,
        });
    named.collect()
}

/// The beginnings of the names of parameters that set up memory and PCI Express.
const SET_UP: [&str; 8] = [
    "amd_iommu",
    "default_hugepagesz",
    "hugepage",
    "intel_iommu",
    "iommu",
    "pci",
    "swiotlb",
    "transparent_hugepage",
];

impl Serialize for BootParameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.named())
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

    #[test]
    fn each_is_found_by_its_name() {
        let found = BootParameters::from_command_line(
            "BOOT_IMAGE=/vmlinuz ro quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 idle=poll \
             mitigations=off tsc=reliable clocksource=tsc intel_idle.max_cstate=0 processor.max_cstate=1",
        );
        let values: Vec<&str> = found.named().map(|(_, it)| it.unwrap()).collect();
        let given = "managed_irq,domain,2-3 2-3 2-3 poll off reliable tsc 0 1";
        assert_eq!(values.join(" "), given);
    }

    #[test]
    fn values_that_may_be_secret_are_left_out() {
        let shown = without_values(
            "quiet netroot=iscsi:me:word@10.0.0.1 nohz-full=1 pcie_aspm.policy=performance iommu=pt \
             hugepages=8 ip=10.0.0.2 -- --password word",
        );
        let expected = "quiet netroot=... nohz-full=1 pcie_aspm.policy=performance iommu=pt hugepages=8 ip=...";
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn what_is_not_given_is_absent_and_a_part_of_a_word_is_not_it() {
        let found = BootParameters::from_command_line("quiet notidle=poll xtsc=1 cpuidle.off=1");
        assert_eq!(found, BootParameters::default());
    }

    #[test]
    fn the_line_is_read_as_the_kernel_does() {
        let found = BootParameters::from_command_line(
            "idle=halt nohz-full=1 rcu_nocbs mitigations=\"auto,nosmt\" \"isolcpus=1 2\" idle=poll -- tsc=init idle=nomwait",
        );
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(
            json,
            r#"{"isolcpus":"1 2","nohz_full":"1","rcu_nocbs":"","idle":"poll","mitigations":"auto,nosmt","tsc":null,"clocksource":null,"intel_idle.max_cstate":null,"processor.max_cstate":null}"#
        );
    }
}
