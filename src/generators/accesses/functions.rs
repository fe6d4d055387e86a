//! The functions: loops over the lines of a group, with a bit for each line that says whether it is read.
//!
//! There is one load of a line in a function and one store, as in a loop of a compiled program. Fifty of each, one behind
//! the other, draw up to a fifth less on processors whose prefetchers know a stream by the address of its instruction.

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

/// A bit for each line of a group, the first one lowest: 1 where it is read, which spreads reads and stores evenly.
const fn pattern(reads: usize) -> u64 {
    let (mut pattern, mut line) = (0, 0);
    while line < GROUP {
        if (line + 1) * reads / GROUP > line * reads / GROUP {
            pattern |= 1 << line;
        }
        line += 1;
    }
    pattern
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
                        "movabsq ${pattern}, %rax",
                        "movl ${lines}, %ecx",
                        "2: shrq $1, %rax",
                        "jnc 3f",
                        $load,
                        "addq $64, %rdi",
                        "decl %ecx",
                        "jnz 2b",
                        $end,
                        "ret",
                        "3:",
                        $store,
                        "addq $64, %rsi",
                        "decl %ecx",
                        "jnz 2b",
                        $end,
                        "ret",
                        pattern = const super::pattern($reads),
                        lines = const GROUP,
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
        "movaps (%rdi), %xmm0
         movaps 16(%rdi), %xmm1
         movaps 32(%rdi), %xmm2
         movaps 48(%rdi), %xmm3"
    };
}
/// The same of a store.
macro_rules! sse2_store {
    ($move:literal) => {
        concat!(
            $move,
            " %xmm0, (%rsi)\n",
            $move,
            " %xmm0, 16(%rsi)\n",
            $move,
            " %xmm0, 32(%rsi)\n",
            $move,
            " %xmm0, 48(%rsi)"
        )
    };
}
/// A line in two parts.
macro_rules! avx2_load {
    () => {
        "vmovaps (%rdi), %ymm0
         vmovaps 32(%rdi), %ymm1"
    };
}
/// The same of a store.
macro_rules! avx2_store {
    ($move:literal) => {
        concat!($move, " %ymm0, (%rsi)\n", $move, " %ymm0, 32(%rsi)")
    };
}

// What is stored is what happens to be in the register.
all_shares!(sse2_regular: sse2_load!(), sse2_store!("movaps"), "";);
all_shares!(sse2_non_temporal: sse2_load!(), sse2_store!("movntps"), "";);
all_shares!(avx2_regular: avx2_load!(), avx2_store!("vmovaps"), "vzeroupper";);
all_shares!(avx2_non_temporal: avx2_load!(), avx2_store!("vmovntps"), "vzeroupper";);
all_shares!(avx512_regular: "vmovaps (%rdi), %zmm0", "vmovaps %zmm0, (%rsi)", "vzeroupper";);
all_shares!(avx512_non_temporal: "vmovaps (%rdi), %zmm0", "vmovntps %zmm0, (%rsi)", "vzeroupper";);
