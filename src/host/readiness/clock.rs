//! What a time stamp is taken from.

use super::{Facts, Judge, Judged};

pub(super) fn source(facts: &Facts) -> Judged {
    let Some(source) = &facts.fingerprint.clock.source else {
        return "the kernel does not tell"
            .advise("look at dmesg for what it takes as clock source");
    };
    let found = source.as_str();
    match found {
        // Read by the processor itself: x86, Arm, POWER, z, RISC-V.
        "tsc" | "arch_sys_counter" | "timebase" | "tod" | "riscv_clocksource" => found.good(),
        // Read in user space too, through a page the hypervisor keeps up to date.
        "kvm-clock" | "hyperv_clocksource_tsc_page" => found.advise(
            "each stamp goes through a page of the hypervisor: where the host's TSC is invariant, boot with tsc=reliable \
             clocksource=tsc",
        ),
        _ => found.spoils(
            "each stamp costs a system call, up to a microsecond: \
             echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource as root, or boot with tsc=reliable \
             clocksource=tsc (dmesg tells why the kernel gave the TSC up)",
        ),
    }
}

/// None where there is no TSC.
pub(super) fn tsc(facts: &Facts) -> Judged {
    let clock = &facts.fingerprint.clock;
    let flags = [
        ("constant", clock.constant_tsc),
        ("nonstop", clock.nonstop_tsc),
        ("invariant", clock.invariant_tsc),
    ];
    if flags.iter().all(|(_, flag)| flag.is_none()) {
        return None;
    }
    let named = |wanted: bool| -> Vec<&str> {
        let found = flags.iter().filter(|(_, flag)| *flag == Some(wanted));
        found.map(|(name, _)| *name).collect()
    };
    let (has, lacks) = (named(true), named(false));
    if lacks.is_empty() {
        return has.join(", ").good();
    }
    format!("not {}", lacks.join(", not "))
        .advise("its rate may change, or it may stop in an idle core: do not use --clock tsc here")
}
