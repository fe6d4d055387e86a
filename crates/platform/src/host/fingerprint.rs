//! The facts about a machine that distinguish a result from one of another machine, or of the same one set up
//! otherwise.
//!
//! Each field is reported by the machine. A fact that is not reported is null, never a guess. Left out: the RDMA
//! devices (they are in a result by themselves), and what changes from second to second; the virtual machines that run
//! beside are in all the same, since they change what a figure means.

use super::boot::BootParameters;
use super::cpu_set::CpuSet;
use super::huge_pages::{HugePages, transparent_huge_pages};
use super::idle_states::IdleStates;
use super::limits::Limits;
use super::memory_lock::MemoryLock;
use super::memory_modules::MemoryModules;
use super::system_files::SystemFiles;
use super::topology::Topology;
use super::virtual_machines;
use crate::time::GenericTimer;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A machine and its set-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fingerprint {
    pub hostname: Option<String>,
    /// The distribution, as os-release names it for people.
    pub distribution: Option<String>,
    /// The kernel's release (`uname -r`).
    pub kernel_release: Option<String>,
    /// The kernel's build (`uname -v`).
    pub kernel_version: Option<String>,
    pub kernel_command_line: Option<String>,
    /// What of that matters to a measurement, by name; null where it cannot be read.
    pub boot: Option<BootParameters>,
    pub firmware: Firmware,
    pub processor: Processor,
    pub clock: ClockFacts,
    /// What idle CPUs sink into.
    pub idle: IdleStates,
    pub virtualisation: Virtualisation,
    /// How many virtual machines run here, by the program that carries them; null where no process shows.
    pub virtual_machines: Option<BTreeMap<String, usize>>,
    pub memory: Memory,
    /// What limits this process: control groups, as those of containers, and ulimits.
    pub limits: Limits,
}

/// The firmware, by DMI; null where there is no DMI or it may not be read.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Firmware {
    pub vendor: Option<String>,
    pub version: Option<String>,
    /// Its date, as the maker writes it.
    pub date: Option<String>,
}

/// The processor, and how it is run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Processor {
    pub name: Option<String>,
    /// Its maker, as cpuid spells it.
    pub vendor: Option<String>,
    pub family: Option<u32>,
    pub model: Option<u32>,
    pub stepping: Option<u32>,
    pub microcode: Option<String>,
    /// CPUs online.
    pub cpus: Option<usize>,
    /// Physical cores online.
    pub cores: Option<usize>,
    /// Packages (sockets).
    pub packages: Option<usize>,
    /// NUMA nodes with CPUs.
    pub numa_nodes: Option<usize>,
    /// Whether a core runs more than one thread at a time.
    pub smt: Option<bool>,
    pub frequency_driver: Option<String>,
    /// The frequency governors in use, over all CPUs; null where the kernel sets no frequency.
    pub governors: Option<BTreeSet<String>>,
    /// The CPUs the scheduler keeps other threads off.
    pub isolated: Option<CpuSet>,
    /// The CPUs on which the tick stops while one thread runs.
    pub nohz_full: Option<CpuSet>,
}

/// The kernel's clock, and what the processor's counter promises.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClockFacts {
    pub source: Option<String>,
    /// All clock sources that the kernel would take.
    pub available: Option<Vec<String>>,
    /// Whether the TSC has one frequency at all speeds of the core, as the kernel found; null where there is no TSC.
    pub constant_tsc: Option<bool>,
    /// Whether the TSC goes on in idle states, as the kernel found.
    pub nonstop_tsc: Option<bool>,
    /// Whether cpuid promises both.
    pub invariant_tsc: Option<bool>,
    /// Whether the kernel got the TSC's frequency and did not have to measure it.
    pub tsc_known_freq: Option<bool>,
    /// Whether the kernel was started to trust the TSC without watching it.
    pub tsc_reliable: Option<bool>,
    /// Arm's counter; null where there is another one.
    pub generic_timer: Option<GenericTimer>,
}

/// The layer between the kernel and the hardware.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Virtualisation {
    pub guest: Option<bool>,
    pub hypervisor: Option<String>,
    /// Whether the processor is emulated in software.
    pub emulated: Option<bool>,
    /// The maker of the machine (DMI).
    pub vendor: Option<String>,
    /// The product name of the machine (DMI).
    pub product: Option<String>,
}

/// The memory, and how much of it can be allocated in which way.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Memory {
    /// All that the kernel has, in bytes.
    pub total_bytes: Option<u64>,
    pub huge_pages: Option<HugePages>,
    pub transparent_huge_pages: Option<String>,
    pub memory_lock: Option<MemoryLock>,
    /// What is in its sockets.
    pub modules: MemoryModules,
}

impl Fingerprint {
    pub fn collect() -> Self {
        let files = SystemFiles::of_this_machine();
        Self::from_files(&files, &Cpuid::read(), MemoryLock::read().ok())
    }

    /// The machine in a line.
    pub fn in_words(&self) -> String {
        let kernel = self.kernel_release.as_ref();
        let parts = [
            self.hostname.clone(),
            self.processor.name.clone(),
            kernel.map(|release| format!("Linux {release}")),
            self.distribution.clone(),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" | ")
    }

    pub(crate) fn from_files(
        files: &SystemFiles,
        cpuid: &Cpuid,
        memory_lock: Option<MemoryLock>,
    ) -> Self {
        let command_line = files.optional("proc/cmdline");
        let firmware = |field: &str| files.optional(&format!("sys/class/dmi/id/bios_{field}"));
        Self {
            hostname: files.optional("proc/sys/kernel/hostname"),
            distribution: files
                .field("etc/os-release", "PRETTY_NAME", '=')
                .or_else(|| files.field("usr/lib/os-release", "PRETTY_NAME", '=')),
            kernel_release: files.optional("proc/sys/kernel/osrelease"),
            kernel_version: files.optional("proc/sys/kernel/version"),
            boot: command_line
                .as_deref()
                .map(BootParameters::from_command_line),
            kernel_command_line: command_line,
            firmware: Firmware {
                vendor: firmware("vendor"),
                version: firmware("version"),
                date: firmware("date"),
            },
            processor: Processor::from_files(files),
            clock: ClockFacts::from_files(files, cpuid),
            idle: IdleStates::from_files(files),
            virtualisation: Virtualisation::from_files(files, cpuid),
            virtual_machines: virtual_machines::running(files),
            memory: Memory {
                total_bytes: files.kibibytes("proc/meminfo", "MemTotal"),
                huge_pages: HugePages::from_files(files),
                transparent_huge_pages: transparent_huge_pages(files),
                memory_lock,
                modules: MemoryModules::from_files(files),
            },
            limits: Limits::from_files(files),
        }
    }
}

impl Processor {
    fn from_files(files: &SystemFiles) -> Self {
        // The first processor's; on a hybrid they differ in little but the microcode's target.
        let info = |key: &str| files.field("proc/cpuinfo", key, ':');
        let number = |key: &str| info(key)?.parse().ok();
        const CPUS: &str = "sys/devices/system/cpu";
        let cpus = |name: &str| files.cpu_list(&format!("{CPUS}/{name}")).ok().flatten();
        let frequency = |name: &str| -> BTreeSet<String> {
            let folders = files.names(CPUS).into_iter();
            let files = folders.map(|cpu| files.optional(&format!("{CPUS}/{cpu}/cpufreq/{name}")));
            files.flatten().collect()
        };
        let topology = Topology::from_files(files, &CpuSet::new()).ok();
        let of = topology.as_ref();
        Self {
            name: info("model name"),
            vendor: info("vendor_id"),
            family: number("cpu family"),
            model: number("model"),
            stepping: number("stepping"),
            microcode: info("microcode"),
            cpus: of.map(|topology| topology.cpus.len()),
            cores: of.map(|topology| topology.cores().len()),
            packages: of.and_then(Topology::packages),
            numa_nodes: of
                .map(|topology| topology.numa_nodes().len())
                .filter(|nodes| *nodes > 0),
            smt: of.map(Topology::has_smt),
            frequency_driver: frequency("scaling_driver").pop_first(),
            governors: Some(frequency("scaling_governor"))
                .filter(|governors| !governors.is_empty()),
            isolated: cpus("isolated"),
            nohz_full: cpus("nohz_full"),
        }
    }
}

impl ClockFacts {
    fn from_files(files: &SystemFiles, cpuid: &Cpuid) -> Self {
        let flags = files.field("proc/cpuinfo", "flags", ':');
        let has = |flag: &str| {
            let mut flags = flags.as_ref()?.split_whitespace();
            // Without the flag `tsc` the line may be of an architecture that has none.
            let has_one = flags.clone().any(|it| it == "tsc");
            has_one.then(|| flags.any(|it| it == flag))
        };
        Self {
            source: files
                .optional("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            available: files
                .optional("sys/devices/system/clocksource/clocksource0/available_clocksource")
                .map(|list| list.split_whitespace().map(str::to_owned).collect()),
            constant_tsc: has("constant_tsc"),
            nonstop_tsc: has("nonstop_tsc"),
            invariant_tsc: cpuid.invariant_tsc,
            tsc_known_freq: has("tsc_known_freq"),
            tsc_reliable: has("tsc_reliable"),
            generic_timer: cpuid.generic_timer,
        }
    }
}

impl Virtualisation {
    fn from_files(files: &SystemFiles, cpuid: &Cpuid) -> Self {
        let vendor = files.optional("sys/class/dmi/id/sys_vendor");
        // Without cpuid, Xen and QEMU are recognised in other ways; that none is recognised proves nothing.
        let told = files
            .optional("sys/hypervisor/type")
            .or_else(|| vendor.clone().filter(|it| it == "QEMU"))
            .or_else(|| {
                // The machine that QEMU makes up for a kernel that gets a device tree.
                let model = files.optional("sys/firmware/devicetree/base/model");
                model
                    .filter(|it| it.trim_end_matches('\0') == "linux,dummy-virt")
                    .map(|_| "QEMU".to_owned())
            });
        Self {
            guest: cpuid.hypervisor_present.or(told.as_ref().map(|_| true)),
            hypervisor: cpuid.hypervisor.clone().or(told),
            emulated: cpuid.emulated,
            vendor,
            product: files.optional("sys/class/dmi/id/product_name"),
        }
    }
}

/// The facts that the processor itself reports: by the instruction cpuid, or by Arm's registers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cpuid {
    pub invariant_tsc: Option<bool>,
    pub(crate) hypervisor_present: Option<bool>,
    pub hypervisor: Option<String>,
    pub emulated: Option<bool>,
    pub generic_timer: Option<GenericTimer>,
}

impl Cpuid {
    #[cfg(target_arch = "x86_64")]
    fn read() -> Self {
        use raw_cpuid::{CpuId, Hypervisor};
        let cpuid = CpuId::new();
        let features = cpuid.get_feature_info();
        let present = features.map(|features| features.has_hypervisor());
        // Without the bit, the leaf may return anything.
        let leaf = cpuid
            .get_hypervisor_info()
            .filter(|_| present == Some(true));
        let identity = leaf.map(|it| it.identify());
        let power = cpuid.get_advanced_power_mgmt_info();
        Self {
            generic_timer: None,
            invariant_tsc: Some(power.is_some_and(|power| power.has_invariant_tsc())),
            hypervisor_present: present,
            emulated: match (present, &identity) {
                (Some(true), Some(identity)) => Some(*identity == Hypervisor::QEMU),
                (Some(false), _) => Some(false),
                _ => None,
            },
            hypervisor: identity.map(|identity| match identity {
                Hypervisor::HyperV => "Hyper-V".to_owned(),
                // Signs so only without KVM or another accelerator.
                Hypervisor::QEMU => "QEMU TCG".to_owned(),
                Hypervisor::Bhyve => "bhyve".to_owned(),
                Hypervisor::Unknown(ebx, ecx, edx) => {
                    let signature = [ebx, ecx, edx].map(u32::to_le_bytes).concat();
                    let signature = String::from_utf8_lossy(&signature);
                    signature.trim_matches(['\0', ' ']).to_owned()
                }
                // Xen, VMware, KVM, QNX and ACRN.
                named => format!("{named:?}"),
            }),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn read() -> Self {
        Self {
            generic_timer: GenericTimer::find(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::made_up::Machine;
    use crate::testing::Has as _;
    use serde_json::json;

    fn of(machine: &Machine, cpuid: &Cpuid) -> Fingerprint {
        Fingerprint::from_files(&SystemFiles::below(machine.root()), cpuid, None)
    }

    #[test]
    fn what_the_machine_says() {
        let machine = Machine::new(2, 4, 2);
        machine
            .isolate("2-3")
            .file("proc/sys/kernel/hostname", "probe")
            .file("proc/cmdline", "quiet isolcpus=2-3")
            .file("etc/os-release", "NAME=\"Some\"\nPRETTY_NAME=\"Some Linux 12\"")
            .file(
                "proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
                 model name\t: A Processor\nstepping\t: 8\nmicrocode\t: 0x2b\nflags\t\t: fpu tsc constant_tsc\n\n\
                 processor\t: 1\nmodel name\t: Another",
            )
            .file("proc/meminfo", "MemTotal:       16309748 kB\nMemFree:  1 kB")
            .file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
            .file("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave")
            .file("sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "intel_pstate")
            .file("sys/class/dmi/id/product_name", "Box 7")
            .file("sys/class/dmi/id/bios_vendor", "Maker")
            .file("sys/class/dmi/id/bios_date", "04/01/2024")
            .file("proc/7/comm", "firecracker");
        let cpuid = Cpuid {
            hypervisor_present: Some(false),
            ..Cpuid::default()
        };
        let found = serde_json::to_value(of(&machine, &cpuid)).unwrap();
        for (place, told) in [
            ("/hostname", json!("probe")),
            ("/distribution", json!("Some Linux 12")),
            ("/kernel_command_line", json!("quiet isolcpus=2-3")),
            ("/boot/isolcpus", json!("2-3")),
            ("/firmware/vendor", json!("Maker")),
            ("/firmware/version", json!(null)),
            ("/firmware/date", json!("04/01/2024")),
            ("/virtual_machines", json!({"firecracker": 1})),
            ("/processor/name", json!("A Processor")),
            ("/processor/family", json!(6)),
            ("/processor/model", json!(143)),
            ("/processor/stepping", json!(8)),
            ("/processor/microcode", json!("0x2b")),
            ("/processor/cpus", json!(16)),
            ("/processor/cores", json!(8)),
            ("/processor/packages", json!(2)),
            ("/processor/numa_nodes", json!(2)),
            ("/processor/smt", json!(true)),
            ("/processor/governors", json!(["performance", "powersave"])),
            ("/processor/frequency_driver", json!("intel_pstate")),
            ("/processor/isolated", json!("2-3")),
            ("/clock/constant_tsc", json!(true)),
            ("/clock/nonstop_tsc", json!(false)),
            ("/virtualisation/guest", json!(false)),
            ("/virtualisation/product", json!("Box 7")),
            ("/memory/total_bytes", json!(16_309_748_u64 * 1024)),
        ] {
            assert_eq!(found.pointer(place), Some(&told), "{place}");
        }
    }

    #[test]
    fn what_it_does_not_say_is_null() {
        let machine = Machine::new(1, 1, 1);
        machine.without("sys/devices");
        let mut found = serde_json::to_value(of(&machine, &Cpuid::default())).unwrap();
        // Of a limit it is stated, as null could be read as no limit.
        let limits = found.as_object_mut().unwrap().remove("limits").unwrap();
        assert_eq!(limits["pids"], "unknown");
        let modules = found["memory"].as_object_mut().unwrap().remove("modules");
        modules.unwrap()["unknown"]
            .as_str()
            .unwrap()
            .has(&["no DMI table"]);
        fn leaves(value: &serde_json::Value) -> Vec<&serde_json::Value> {
            match value {
                serde_json::Value::Object(fields) => fields.values().flat_map(leaves).collect(),
                leaf => vec![leaf],
            }
        }
        let leaves = leaves(&found);
        let is_null = leaves.iter().all(|leaf| leaf.is_null());
        assert!(leaves.len() > 25 && is_null, "{found}");
    }

    #[test]
    fn this_machine_names_its_kernel() {
        let found = Fingerprint::collect();
        let uname = std::process::Command::new("uname").arg("-r").output();
        let release = String::from_utf8(uname.unwrap().stdout).unwrap();
        assert_eq!(found.kernel_release.as_deref(), Some(release.trim()));
        assert!(found.processor.cpus.unwrap() >= found.processor.cores.unwrap());
        assert!(found.memory.total_bytes.unwrap() > 1 << 20);
    }
}
