//! The caches that a core has for itself, and whether it can hand a line on to the next level by an instruction.

use serde::Serialize;

use super::system_files::SystemFiles;

/// The caches of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CoreCaches {
    /// Bytes of the first-level cache for data; none if sysfs does not report it.
    pub first_level_bytes: Option<u64>,
    /// Whether the processor has the instruction `cldemote`.
    pub can_demote: bool,
}

impl CoreCaches {
    /// Those of the core of a CPU. A guest reports what its hypervisor passes on.
    pub fn of_cpu(cpu: usize) -> Self {
        CoreCaches {
            can_demote: has_cldemote(),
            ..Self::from_files(&SystemFiles::of_this_machine(), cpu)
        }
    }

    fn from_files(files: &SystemFiles, cpu: usize) -> Self {
        let caches = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        let names = files.names(&caches);
        let first_level_bytes = names.iter().find_map(|name| {
            let text = |file: &str| files.optional(&format!("{caches}/{name}/{file}"));
            let is_it = text("level")? == "1" && text("type")? != "Instruction";
            let kibibytes: u64 = text("size")?.strip_suffix('K')?.parse().ok()?;
            is_it.then_some(kibibytes << 10)
        });
        CoreCaches {
            first_level_bytes,
            can_demote: false,
        }
    }
}

/// CPUID leaf 7, ECX bit 25 (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID).
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn has_cldemote() -> bool {
    const CLDEMOTE: u32 = 1 << 25;
    let has_leaf = raw_cpuid::CpuId::new()
        .get_extended_feature_info()
        .is_some();
    has_leaf && raw_cpuid::cpuid!(7, 0).ecx & CLDEMOTE != 0
}

/// Arm has no such instruction, and an interpreter does not know it.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn has_cldemote() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    #[test]
    fn the_first_level_is_that_of_data() {
        let machine = Machine::new(1, 2, 1);
        let files = SystemFiles::below(machine.root());
        assert_eq!(CoreCaches::from_files(&files, 1), CoreCaches::default());
        for (index, level, kind, size) in [
            (0, "1", "Instruction", "32K"),
            (1, "1", "Data", "48K"),
            (2, "2", "Unified", "2048K"),
            (3, "3", "Unified", "32768K"),
        ] {
            let cache = format!("sys/devices/system/cpu/cpu1/cache/index{index}");
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                machine.file(&format!("{cache}/{file}"), text);
            }
        }
        let found = CoreCaches::from_files(&files, 1);
        assert_eq!(found.first_level_bytes, Some(48 << 10));
        assert_eq!(CoreCaches::from_files(&files, 0), CoreCaches::default());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_instruction_is_found_where_the_kernel_lists_it() {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let is_listed = flags
            .split_ascii_whitespace()
            .any(|flag| flag == "cldemote");
        // Older kernels do not know its name.
        assert!(CoreCaches::of_cpu(0).can_demote || !is_listed);
    }
}
