//! The functions, in the assembler's own loops.
//!
//! Line `i` of a group with `r` reads is read where `(i + 1) r / 50` is larger than `i r / 50` in whole numbers, which
//! spreads reads and stores evenly.

use super::{Accesses, Function, GROUP, InstructionSet, Store};

/// The functions of an instruction set and a kind of store, by the number of lines that are read.
pub(super) fn of(accesses: &Accesses) -> &'static [Function; GROUP + 1] {
    match (accesses.instruction_set, accesses.store) {
        (InstructionSet::Sse2, Store::Regular) => &sse2_regular::ALL,
        (InstructionSet::Sse2, Store::NonTemporal) => &sse2_non_temporal::ALL,
        (InstructionSet::Avx2, Store::Regular) => &avx2_regular::ALL,
        (InstructionSet::Avx2, Store::NonTemporal) => &avx2_non_temporal::ALL,
        (InstructionSet::Avx512, Store::Regular) => &avx512_regular::ALL,
        (InstructionSet::Avx512, Store::NonTemporal) => &avx512_non_temporal::ALL,
    }
}

/// `MODULE: a load of a line, a store of a line, what ends the function; its functions`.
macro_rules! functions {
    ($module:ident: $load:expr, $store:expr, $end:literal; $($name:ident = $reads:literal)+) => {
        mod $module {
            use super::super::{Function, GROUP};

            pub(super) const ALL: [Function; GROUP + 1] = [$($name),+];

            $(
                /// # Safety
                /// As many lines as are read, and stored to, must be there, on lines' boundaries, and the processor must
                /// have the instruction set.
                #[unsafe(naked)]
                unsafe extern "C" fn $name(_read: *const u8, _stored: *mut u8) {
                    core::arch::naked_asm!(
                        ".set .Lline, 0",
                        ".set .Lread, 0",
                        ".set .Lstored, 0",
                        ".rept 50",
                        concat!(".if (.Lline + 1) * ", $reads, " / 50 > .Lline * ", $reads, " / 50"),
                        $load,
                        ".set .Lread, .Lread + 64",
                        ".else",
                        $store,
                        ".set .Lstored, .Lstored + 64",
                        ".endif",
                        ".set .Lline, .Lline + 1",
                        ".endr",
                        $end,
                        "ret",
                        options(att_syntax)
                    )
                }
            )+
        }
    };
}

/// The same with a function for each number of reads, whose names tell the share of reads in percent.
macro_rules! all_shares {
    ($($begin:tt)*) => {
        functions! {
            $($begin)*
            reads_0 = 0 reads_2 = 1 reads_4 = 2 reads_6 = 3 reads_8 = 4 reads_10 = 5 reads_12 = 6 reads_14 = 7
            reads_16 = 8 reads_18 = 9 reads_20 = 10 reads_22 = 11 reads_24 = 12 reads_26 = 13 reads_28 = 14
            reads_30 = 15 reads_32 = 16 reads_34 = 17 reads_36 = 18 reads_38 = 19 reads_40 = 20 reads_42 = 21
            reads_44 = 22 reads_46 = 23 reads_48 = 24 reads_50 = 25 reads_52 = 26 reads_54 = 27 reads_56 = 28
            reads_58 = 29 reads_60 = 30 reads_62 = 31 reads_64 = 32 reads_66 = 33 reads_68 = 34 reads_70 = 35
            reads_72 = 36 reads_74 = 37 reads_76 = 38 reads_78 = 39 reads_80 = 40 reads_82 = 41 reads_84 = 42
            reads_86 = 43 reads_88 = 44 reads_90 = 45 reads_92 = 46 reads_94 = 47 reads_96 = 48 reads_98 = 49
            reads_100 = 50
        }
    };
}

/// A line in four parts.
macro_rules! sse2_load {
    () => {
        "movaps .Lread(%rdi), %xmm0
         movaps .Lread + 16(%rdi), %xmm1
         movaps .Lread + 32(%rdi), %xmm2
         movaps .Lread + 48(%rdi), %xmm3"
    };
}
/// The same of a store.
macro_rules! sse2_store {
    ($move:literal) => {
        concat!(
            $move,
            " %xmm0, .Lstored(%rsi)\n",
            $move,
            " %xmm0, .Lstored + 16(%rsi)\n",
            $move,
            " %xmm0, .Lstored + 32(%rsi)\n",
            $move,
            " %xmm0, .Lstored + 48(%rsi)"
        )
    };
}
/// A line in two parts.
macro_rules! avx2_load {
    () => {
        "vmovaps .Lread(%rdi), %ymm0
         vmovaps .Lread + 32(%rdi), %ymm1"
    };
}
/// The same of a store.
macro_rules! avx2_store {
    ($move:literal) => {
        concat!(
            $move,
            " %ymm0, .Lstored(%rsi)\n",
            $move,
            " %ymm0, .Lstored + 32(%rsi)"
        )
    };
}

// What is stored is what happens to be in the register.
all_shares!(sse2_regular: sse2_load!(), sse2_store!("movaps"), "";);
all_shares!(sse2_non_temporal: sse2_load!(), sse2_store!("movntps"), "";);
all_shares!(avx2_regular: avx2_load!(), avx2_store!("vmovaps"), "vzeroupper";);
all_shares!(avx2_non_temporal: avx2_load!(), avx2_store!("vmovntps"), "vzeroupper";);
all_shares!(avx512_regular: "vmovaps .Lread(%rdi), %zmm0", "vmovaps %zmm0, .Lstored(%rsi)", "vzeroupper";);
all_shares!(avx512_non_temporal: "vmovaps .Lread(%rdi), %zmm0", "vmovntps %zmm0, .Lstored(%rsi)", "vzeroupper";);
