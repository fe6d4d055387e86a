//! The functions of x86-64: loops over the lines of a group, with a bit for each line that is set where it is read.
//!
//! There is one load of a line in a function and one store, as in a loop of a compiled program. Fifty of each, one behind
//! the other, draw up to a fifth less on processors whose prefetchers know a stream by the address of its instruction.

use super::{AccessFunction, Accesses, GROUP, InstructionSet, Store};

/// The functions of an instruction set and a kind of store, by the number of lines that are read.
pub(super) fn of(accesses: &Accesses) -> &'static [AccessFunction; GROUP + 1] {
    match (accesses.instruction_set, accesses.store) {
        (InstructionSet::Sse2, Store::Regular) => &sse2_regular::ALL,
        (InstructionSet::Sse2, Store::NonTemporal) => &sse2_non_temporal::ALL,
        (InstructionSet::Avx2, Store::Regular) => &avx2_regular::ALL,
        (InstructionSet::Avx2, Store::NonTemporal) => &avx2_non_temporal::ALL,
        (InstructionSet::Avx512, Store::Regular) => &avx512_regular::ALL,
        (InstructionSet::Avx512, Store::NonTemporal) => &avx512_non_temporal::ALL,
        (InstructionSet::Neon | InstructionSet::Sve, _) => {
            unreachable!("instruction sets that are not there have no functions")
        }
    }
}

/// `MODULE: a load of a line, a store of a line, what ends the function; its functions`.
macro_rules! functions {
    ($module:ident: $load:expr, $store:expr, $end:literal; $($name:ident = $reads:literal)+) => {
        mod $module {
            use super::super::{AccessFunction, GROUP};

            pub(super) const ALL: [AccessFunction; GROUP + 1] = [$($name),+];

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
                        pattern = const super::super::pattern($reads),
                        lines = const GROUP,
                        options(att_syntax)
                    )
                }
            )+
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
