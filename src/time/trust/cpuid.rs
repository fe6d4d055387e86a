//! What the instruction cpuid says of the counter's rate.
//!
//! Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID, leaves 15H and 16H; for leaf
//! 4000_0010H the agreement between VMware and others (<https://lwn.net/Articles/301888/>).

use raw_cpuid::{CpuId, CpuIdReader, Hypervisor};

use super::frequency::{Frequency, FrequencySource};

/// The rate by leaf 15H, by leaf 16H and by the hypervisor's leaf.
pub fn frequencies<R: CpuIdReader>(cpuid: &CpuId<R>) -> [Frequency; 3] {
    [
        Frequency::of(FrequencySource::CpuidCrystal, crystal(cpuid)),
        Frequency::of(FrequencySource::CpuidNominal, nominal(cpuid))
            .noted("in whole MHz, nominal only"),
        Frequency::of(FrequencySource::Hypervisor, by_hypervisor(cpuid)),
    ]
}

/// Whether the processor calls its counter invariant: CPUID 8000_0007H, EDX bit 8.
pub fn is_invariant<R: CpuIdReader>(cpuid: &CpuId<R>) -> bool {
    cpuid
        .get_advanced_power_mgmt_info()
        .is_some_and(|power| power.has_invariant_tsc())
}

/// Whether the processor has the instruction rdtscp: CPUID 8000_0001H, EDX bit 27.
pub fn has_rdtscp<R: CpuIdReader>(cpuid: &CpuId<R>) -> bool {
    cpuid
        .get_extended_processor_and_feature_identifiers()
        .is_some_and(|features| features.has_rdtscp())
}

fn crystal<R: CpuIdReader>(cpuid: &CpuId<R>) -> Result<f64, String> {
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

fn nominal<R: CpuIdReader>(cpuid: &CpuId<R>) -> Result<f64, String> {
    let leaf = cpuid
        .get_processor_frequency_info()
        .ok_or("the processor has no such leaf")?;
    match leaf.processor_base_frequency() {
        0 => Err("the leaf is zero".to_owned()),
        megahertz => Ok(f64::from(megahertz) * 1e6),
    }
}

fn by_hypervisor<R: CpuIdReader>(cpuid: &CpuId<R>) -> Result<f64, String> {
    let told = cpuid
        .get_hypervisor_info()
        .ok_or("no hypervisor shows itself")?;
    // Hyper-V and Xen give these numbers to other things.
    if matches!(told.identify(), Hypervisor::HyperV | Hypervisor::Xen) {
        return Err("this hypervisor tells it in another way".to_owned());
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

    /// A processor that answers the leaves given, and zero to all others.
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

    fn guest_of(
        signature: [u32; 3],
        highest: u32,
        kilohertz: u32,
    ) -> CpuId<impl Fn(u32, u32) -> CpuIdResult + Clone> {
        processor(&[
            (1, [0, 0, 1 << 31, 0]),
            (
                0x4000_0000,
                [highest, signature[0], signature[1], signature[2]],
            ),
            (0x4000_0010, [kilohertz, 0, 0, 0]),
        ])
    }

    #[test]
    fn the_crystal_times_its_ratio_is_the_rate() {
        let found = frequencies(&processor(&[
            (0x15, [2, 168, 25_000_000, 0]),
            (0x16, [2100, 3500, 100, 0]),
        ]));
        assert_eq!(found[0].hertz, Some(2_100_000_000.0));
        assert_eq!(found[1].hertz, Some(2_100_000_000.0));
        assert!(found[1].source.is_nominal() && found[1].note.is_some());
        assert_eq!(
            found[2].missing.as_deref(),
            Some("no hypervisor shows itself")
        );
        // A ratio that does not divide is not cut to whole hertz.
        let found = frequencies(&processor(&[(0x15, [3, 250, 19_200_000, 0])]));
        assert_eq!(found[0].hertz, Some(1_600_000_000.0));
        let found = frequencies(&processor(&[(0x15, [7, 500, 19_200_000, 0])]));
        assert_eq!(found[0].hertz, Some(9_600_000_000.0 / 7.0));
    }

    #[test]
    fn zeros_are_missing_and_each_says_why() {
        let reason = |leaves: &[_], which: usize| {
            let found = frequencies(&processor(leaves))[which].clone();
            assert_eq!(found.hertz, None);
            found.missing.unwrap()
        };
        assert!(reason(&[], 0).contains("no ratio"));
        assert!(reason(&[(0x15, [2, 168, 0, 0])], 0).contains("168/2 of a crystal"));
        assert!(reason(&[(0x15, [0, 168, 25_000_000, 0])], 0).contains("no ratio"));
        assert!(reason(&[], 1).contains("zero"));
        let old = (0, [0x0d, INTEL[0], INTEL[2], INTEL[1]]);
        assert!(reason(&[old], 0).contains("no such leaf"));
        assert!(reason(&[old], 1).contains("no such leaf"));
    }

    #[test]
    fn a_hypervisor_tells_in_kilohertz_if_it_tells() {
        let told = |cpuid: &_| frequencies(cpuid)[2].clone();
        assert_eq!(
            told(&guest_of(KVM, 0x4000_0010, 2_300_001)).hertz,
            Some(2_300_001_000.0)
        );
        let silent = told(&guest_of(KVM, 0x4000_0001, 2_300_001));
        assert!(silent.missing.unwrap().contains("no leaf"));
        let zero = told(&guest_of(KVM, 0x4000_0010, 0));
        assert!(zero.missing.unwrap().contains("zero"));
        let other = told(&guest_of(HYPER_V, 0x4000_0010, 5));
        assert!(other.missing.unwrap().contains("another way"));
    }

    #[test]
    fn flags_are_read_from_their_bits() {
        let with = processor(&[
            (0x8000_0007, [0, 0, 0, 1 << 8]),
            (0x8000_0001, [0, 0, 0, 1 << 27]),
        ]);
        assert!(is_invariant(&with) && has_rdtscp(&with));
        let without = processor(&[
            (0x8000_0007, [0, 0, 0, !(1 << 8)]),
            (0x8000_0001, [0, 0, 0, !(1 << 27)]),
        ]);
        assert!(!is_invariant(&without) && !has_rdtscp(&without));
    }
}
