//! What a time stamp is taken from.

use super::{Assessment, Facts, ToAssessment};

pub(super) fn source(facts: &Facts) -> Assessment {
    let Some(source) = &facts.fingerprint.clock.source else {
        return "not reported by the kernel".advise("check dmesg for its clock source");
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
            "each stamp costs a system call, up to a microsecond: echo tsc > \
             /sys/devices/system/clocksource/clocksource0/current_clocksource as root, or boot with tsc=reliable \
             clocksource=tsc (dmesg reports why the kernel gave the TSC up)",
        ),
    }
}

/// None where there is no generic timer.
pub(super) fn generic_timer(facts: &Facts) -> Assessment {
    let timer = facts.fingerprint.clock.generic_timer?;
    let Some(count_ns) = timer.count_ns() else {
        return "CNTFRQ_EL0 is 0".spoils(
            "firmware does not report its rate: do not use --clock counter on this machine",
        );
    };
    let has = |what: &str, it: bool| format!("{}{what}", if it { "" } else { "no " });
    let megahertz = 1e3 / count_ns;
    let found = format!(
        "{megahertz:.1} MHz, {count_ns:.1} ns a count, {}, {}",
        has("WFE event stream", timer.event_stream),
        has("CNTVCTSS", timer.self_synchronised),
    );
    if count_ns > COARSE_COUNT_NS {
        return found.advise(
            "stamps are no finer than a count (column clock_resolution_ns): compare medians of many messages only where \
             they differ by more",
        );
    }
    found.good()
}

/// Counts that are longer than this show in a latency, in nanoseconds.
const COARSE_COUNT_NS: f64 = 10.0;

/// None where there is no TSC.
pub(super) fn tsc(facts: &Facts) -> Assessment {
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
