//! The counter's rate by the instruction cpuid.
//!
//! Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID, leaves 15H and 16H; for leaf
//! 4000_0010H the agreement between VMware and others (<https://lwn.net/Articles/301888/>).

use raw_cpuid::{CpuId, CpuIdReader, Hypervisor};

/// The rate by leaf 15H: the crystal's frequency and the counter's ratio to it.
pub(super) fn crystal<R: CpuIdReader>(cpuid: &CpuId<R>) -> Result<f64, String> {
    let leaf = cpuid
        .get_tsc_info()
        .ok_or("the processor has no such leaf")?;
    let (numerator, denominator) = (leaf.numerator(), leaf.denominator());
    if numerator == 0 || denominator == 0 {
        return Err("the leaf gives no ratio to the crystal".to_owned());
    }
    if leaf.nominal_frequency() == 0 {
        return Err(format!(
            "the leaf gives {numerator}/{denominator} of a crystal, and not how fast that is"
        ));
    }
    Ok(f64::from(leaf.nominal_frequency()) * f64::from(numerator) / f64::from(denominator))
}

/// The rate by leaf 16H, in whole megahertz.
pub(super) fn nominal<R: CpuIdReader>(cpuid: &CpuId<R>) -> Result<f64, String> {
    let leaf = cpuid
        .get_processor_frequency_info()
        .ok_or("the processor has no such leaf")?;
    match leaf.processor_base_frequency() {
        0 => Err("the leaf is zero".to_owned()),
        megahertz => Ok(f64::from(megahertz) * 1e6),
    }
}

/// The rate by the hypervisor's leaf 4000_0010H.
pub(super) fn by_hypervisor<R: CpuIdReader>(cpuid: &CpuId<R>) -> Result<f64, String> {
    let told = cpuid
        .get_hypervisor_info()
        .ok_or("no hypervisor shows itself")?;
    // Hyper-V and Xen give these numbers to other things.
    if matches!(told.identify(), Hypervisor::HyperV | Hypervisor::Xen) {
        return Err("this hypervisor reports it in another way".to_owned());
    }
    match told.tsc_frequency() {
        None => Err("the hypervisor has no leaf 40000010H".to_owned()),
        Some(0) => Err("the hypervisor's leaf 40000010H is zero".to_owned()),
        Some(kilohertz) => Ok(f64::from(kilohertz) * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use raw_cpuid::CpuIdResult;

    use super::*;

    const INTEL: [u32; 3] = [0x756e_6547, 0x6c65_746e, 0x4965_6e69];
    const KVM: [u32; 3] = [0x4b4d_564b, 0x564b_4d56, 0x4d];
    const HYPER_V: [u32; 3] = [0x7263_694d, 0x666f_736f, 0x7648_2074];

    fn processor(
        leaves: &[(u32, [u32; 4])],
    ) -> CpuId<impl Fn(u32, u32) -> CpuIdResult + Clone + use<>> {
        let leaves = leaves.to_vec();
        CpuId::with_cpuid_fn(move |leaf, _subleaf| {
            let basic = (0, [0x16, INTEL[0], INTEL[2], INTEL[1]]);
            let extended = (0x8000_0000, [0x8000_0008, 0, 0, 0]);
            let [eax, ebx, ecx, edx] = leaves
                .iter()
                .chain([&basic, &extended])
                .find(|(number, _)| *number == leaf)
                .map_or([0; 4], |(_, registers)| *registers);
            CpuIdResult { eax, ebx, ecx, edx }
        })
    }

    fn guest_of(maker: [u32; 3], highest: u32, kilohertz: u32) -> [(u32, [u32; 4]); 3] {
        [
            (1, [0, 0, 1 << 31, 0]),
            (0x4000_0000, [highest, maker[0], maker[1], maker[2]]),
            (0x4000_0010, [kilohertz, 0, 0, 0]),
        ]
    }

    #[test]
    fn each_leaf_gives_a_rate_or_says_why_not() {
        let old = (0, [0x0d, INTEL[0], INTEL[2], INTEL[1]]);
        let ratio = |registers| [(0x15, registers)];
        let cases: [(&[_], Result<f64, &str>); 7] = [
            (&ratio([2, 168, 25_000_000, 0]), Ok(2_100_000_000.0)),
            (&ratio([3, 250, 19_200_000, 0]), Ok(1_600_000_000.0)),
            // A ratio that does not divide is not cut to whole hertz.
            (&ratio([7, 500, 19_200_000, 0]), Ok(9_600_000_000.0 / 7.0)),
            (&ratio([2, 168, 0, 0]), Err("168/2 of a crystal")),
            (&ratio([0, 168, 25_000_000, 0]), Err("no ratio")),
            (&[], Err("no ratio")),
            (&[old], Err("no such leaf")),
        ];
        for (leaves, rate) in cases {
            check(crystal(&processor(leaves)), rate);
        }
        check(
            nominal(&processor(&[(0x16, [2100, 3500, 100, 0])])),
            Ok(2.1e9),
        );
        check(nominal(&processor(&[])), Err("zero"));
        check(nominal(&processor(&[old])), Err("no such leaf"));
        for (maker, highest, kilohertz, rate) in [
            (KVM, 0x4000_0010, 2_300_001, Ok(2_300_001_000.0)),
            (KVM, 0x4000_0001, 2_300_001, Err("no leaf")),
            (KVM, 0x4000_0010, 0, Err("zero")),
            (HYPER_V, 0x4000_0010, 5, Err("another way")),
        ] {
            let guest = guest_of(maker, highest, kilohertz);
            check(by_hypervisor(&processor(&guest)), rate);
        }
        check(by_hypervisor(&processor(&[])), Err("no hypervisor"));
    }

    fn check(found: Result<f64, String>, expected: Result<f64, &str>) {
        match (&found, expected) {
            (Err(reason), Err(part)) => assert!(reason.contains(part), "{reason}"),
            _ => assert_eq!(found.as_ref().ok(), expected.as_ref().ok(), "{found:?}"),
        }
    }
}
