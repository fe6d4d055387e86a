//! Which CPUs serve an interrupt of a device.

use super::cpu_set::CpuSet;
use super::system_files::SystemFiles;

/// The CPUs that the interrupt of this name in /proc/interrupts goes to; `None` where there is no such one, or the
/// kernel does not report it (proc_interrupts(5), Documentation/core-api/irq/irq-affinity.rst of the kernel).
pub fn cpus_of_interrupt(name: &str) -> Option<CpuSet> {
    cpus_from(&SystemFiles::of_this_machine(), name)
}

fn cpus_from(files: &SystemFiles, name: &str) -> Option<CpuSet> {
    let lines = files.optional("proc/interrupts")?;
    let number = lines.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        // The names of all drivers that share it are last, with commas between them.
        let mut words = rest.split([' ', ',']);
        words.any(|word| word == name).then(|| number.trim())
    })?;
    let list = |file: &str| {
        let found = files.cpu_list(&format!("proc/irq/{number}/{file}"));
        found.ok().flatten().filter(|cpus| !cpus.is_empty())
    };
    list("effective_affinity_list").or_else(|| list("smp_affinity_list"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    #[test]
    fn the_cpus_are_those_of_the_interrupt_of_that_name() {
        let machine = Machine::new(1, 4, 1);
        let cpus = |name| {
            let found = cpus_from(&SystemFiles::below(machine.root()), name);
            found.map(|cpus| cpus.to_string())
        };
        assert_eq!(cpus("mlx5_comp1@pci:0000:3b:00.0"), None);
        machine
            .file(
                "proc/interrupts",
                "           CPU0       CPU1\n  9:   0   0  IO-APIC   9-fasteoi   acpi, usb1\n\
                 \x20120:   7   0  PCI-MSIX-0000:3b:00.0   1-edge   mlx5_comp1@pci:0000:3b:00.0\n\
                 \x20121:   0   9  PCI-MSIX-0000:3b:00.0   11-edge   mlx5_comp11@pci:0000:3b:00.0\n\
                 NMI:   0   0   Non-maskable interrupts",
            )
            .file("proc/irq/120/effective_affinity_list", "3")
            .file("proc/irq/120/smp_affinity_list", "0-3")
            .file("proc/irq/9/smp_affinity_list", "0-1");
        assert_eq!(cpus("mlx5_comp1@pci:0000:3b:00.0").as_deref(), Some("3"));
        // Another device, and a number of which the kernel tells nothing.
        assert_eq!(cpus("mlx5_comp1@pci:0000:5e:00.0"), None);
        assert_eq!(cpus("mlx5_comp11@pci:0000:3b:00.0"), None);
        assert_eq!(cpus("usb1").as_deref(), Some("0-1"));
    }
}
