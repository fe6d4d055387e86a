//! What a CPU sinks into when it has nothing to do (C-states), and how long it takes to come back.

use serde::Serialize;

use super::cpu_set::CpuSet;
use super::system_files::SystemFiles;

/// The idle states of a machine; fields are null where the kernel has no idle driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IdleStates {
    pub driver: Option<String>,
    /// Who chooses among the states.
    pub governor: Option<String>,
    /// The states, the lightest first.
    pub states: Option<Vec<IdleState>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdleState {
    pub name: String,
    /// How long it takes to leave it, in microseconds.
    pub latency_us: Option<u64>,
    /// How long a CPU must stay for it to be worth it, in microseconds.
    pub residency_us: Option<u64>,
    pub cpus: CpuSet,
    /// Those of them that may not use it.
    pub disabled_on: CpuSet,
}

impl IdleStates {
    pub(crate) fn from_files(files: &SystemFiles) -> Self {
        const CPUS: &str = "sys/devices/system/cpu";
        let mut states: Vec<(usize, IdleState)> = Vec::new();
        for name in files.names(CPUS) {
            let Some(cpu) = numbered(&name, "cpu") else {
                continue;
            };
            for state in files.names(&format!("{CPUS}/{name}/cpuidle")) {
                let folder = format!("{CPUS}/{name}/cpuidle/{state}");
                let (Some(number), Some(title)) = (
                    numbered(&state, "state"),
                    files.optional(&format!("{folder}/name")),
                ) else {
                    continue;
                };
                let found = IdleState {
                    name: title,
                    latency_us: files.number(&format!("{folder}/latency")),
                    residency_us: files.number(&format!("{folder}/residency")),
                    cpus: CpuSet::new(),
                    disabled_on: CpuSet::new(),
                };
                let known = states
                    .iter()
                    .position(|(place, it)| *place == number && it.is_like(&found));
                let place = known.unwrap_or_else(|| {
                    states.push((number, found));
                    states.len() - 1
                });
                let state = &mut states[place].1;
                state.cpus.insert(cpu);
                if files
                    .number::<u32>(&format!("{folder}/disable"))
                    .is_some_and(|it| it != 0)
                {
                    state.disabled_on.insert(cpu);
                }
            }
        }
        states.sort_by_key(|(number, _)| *number);
        let states: Vec<IdleState> = states.into_iter().map(|(_, state)| state).collect();
        Self {
            driver: files.optional(&format!("{CPUS}/cpuidle/current_driver")),
            governor: files
                .optional(&format!("{CPUS}/cpuidle/current_governor"))
                .or_else(|| files.optional(&format!("{CPUS}/cpuidle/current_governor_ro"))),
            states: Some(states).filter(|states| !states.is_empty()),
        }
    }
}

impl IdleState {
    /// Whether the two differ in nothing but the CPUs.
    fn is_like(&self, other: &Self) -> bool {
        (&self.name, self.latency_us, self.residency_us)
            == (&other.name, other.latency_us, other.residency_us)
    }
}

fn numbered(name: &str, before: &str) -> Option<usize> {
    name.strip_prefix(before)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    fn of(machine: &Machine) -> IdleStates {
        IdleStates::from_files(&SystemFiles::below(machine.root()))
    }

    #[test]
    fn states_are_gathered_over_the_cpus() {
        let machine = Machine::new(1, 4, 1);
        for cpu in 0..4 {
            machine
                .idle_state(cpu, 0, "POLL", 0, 0)
                .idle_state(cpu, 2, "C6", 133, u32::from(cpu > 1))
                .idle_state(cpu, 10, "C10", 600, 1);
        }
        let folder = "sys/devices/system/cpu/cpuidle";
        machine
            .file(&format!("{folder}/current_driver"), "intel_idle")
            .file(&format!("{folder}/current_governor_ro"), "menu");
        let found = of(&machine);
        assert_eq!(found.driver.as_deref(), Some("intel_idle"));
        assert_eq!(found.governor.as_deref(), Some("menu"));
        let states = found.states.unwrap();
        let told = |it: &IdleState| format!("{} {:?} {}", it.name, it.latency_us, it.disabled_on);
        let told: Vec<String> = states.iter().map(told).collect();
        let expected = ["POLL Some(0) ", "C6 Some(133) 2-3", "C10 Some(600) 0-3"];
        assert_eq!(told, expected);
        assert_eq!(states[1].residency_us, Some(266));
    }

    #[test]
    fn cpus_of_two_kinds_keep_their_own_states() {
        let machine = Machine::new(1, 2, 1);
        machine
            .idle_state(0, 1, "C1", 2, 0)
            .idle_state(1, 1, "C1", 5, 0);
        let states = of(&machine).states.unwrap();
        let cpus: Vec<_> = states.iter().map(|it| it.cpus.to_string()).collect();
        assert_eq!(cpus, ["0", "1"]);
    }

    #[test]
    fn without_a_driver_there_is_nothing() {
        assert_eq!(of(&Machine::new(1, 2, 1)), IdleStates::default());
    }
}
