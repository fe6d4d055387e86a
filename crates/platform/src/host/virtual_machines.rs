//! Virtual machines that run on this one, by the names of the processes that carry them.

use std::collections::BTreeMap;

use super::system_files::SystemFiles;

/// Programs that carry a virtual machine each.
const MONITORS: [&str; 10] = [
    "qemu-system-",
    "qemu-kvm",
    "kvm",
    "firecracker",
    "cloud-hypervisor",
    "crosvm",
    "lkvm",
    "VBoxHeadless",
    "VirtualBoxVM",
    "vmware-vmx",
];

/// What the kernel keeps of a process's name, in bytes.
const KEPT: usize = 15;

/// How many of each program run; `None` if no process shows. Processes of others may be hidden (`hidepid`).
pub(super) fn running(files: &SystemFiles) -> Option<BTreeMap<String, usize>> {
    let mut found = BTreeMap::new();
    let mut processes = files.processes().peekable();
    processes.peek()?;
    for name in processes {
        if let Some(monitor) = MONITORS.into_iter().find(|monitor| is(&name, monitor)) {
            let title = match monitor.strip_suffix('-') {
                Some(_) => name,
                None => monitor.to_owned(),
            };
            *found.entry(title).or_insert(0) += 1;
        }
    }
    Some(found)
}

/// Whether the name of a process, which may be cut off, is that of the program; one that ends in a dash stands for all
/// that begin so.
fn is(name: &str, program: &str) -> bool {
    if program.ends_with('-') {
        name.starts_with(program)
    } else {
        name == &program[..program.len().min(KEPT)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;

    fn of(names: &str) -> Option<String> {
        let machine = Machine::new(1, 1, 1);
        machine.file("proc/loadavg", "0");
        for (number, name) in names.split_whitespace().enumerate() {
            machine.file(&format!("proc/{}/comm", number + 1), name);
        }
        let found = running(&SystemFiles::below(machine.root()))?;
        let told = found.iter().map(|(name, count)| format!("{count} {name}"));
        Some(told.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn each_kind_is_counted_by_its_name_even_if_that_is_cut() {
        // The last three are not the machines themselves.
        let found = of(
            "systemd qemu-system-x86 qemu-system-x86 qemu-system-aar firecracker cloud-hyperviso \
                        VBoxHeadless vmware-vmx kvm kvm-nx-lpage-re qemu-img cloud-init",
        );
        let expected = "1 VBoxHeadless, 1 cloud-hypervisor, 1 firecracker, 1 kvm, 1 qemu-system-aar, \
                        2 qemu-system-x86, 1 vmware-vmx";
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn none_is_told_from_not_known() {
        assert_eq!(of("systemd").as_deref(), Some(""));
        assert_eq!(of(""), None);
    }
}
