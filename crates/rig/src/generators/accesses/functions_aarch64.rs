//! The functions of aarch64: as those of x86-64, loops over the lines of a group, with a bit for each line that is set
//! where it is read, and one load of a line in a function and one store.
//!
//! Sources: Arm Architecture Reference Manual for A-profile, STNP (a hint that what is stored is not soon needed again)
//! and the SVE instructions LD1B, ST1B and STNT1B. A call may change vector registers 0 to 7 and predicate 0 (Procedure
//! Call Standard for the Arm 64-bit Architecture).

use super::{AccessFunction, Accesses, GROUP, InstructionSet, Store};

/// The functions of an instruction set and a kind of store, by the number of lines that are read.
pub(super) fn of(accesses: &Accesses) -> &'static [AccessFunction; GROUP + 1] {
    match (accesses.instruction_set, accesses.store) {
        (InstructionSet::Sve, Store::Regular) => match vector_bytes() {
            16 => &sve16_regular::ALL,
            32 => &sve32_regular::ALL,
            _ => &sve64_regular::ALL,
        },
        (InstructionSet::Sve, Store::NonTemporal) => match vector_bytes() {
            16 => &sve16_non_temporal::ALL,
            32 => &sve32_non_temporal::ALL,
            _ => &sve64_non_temporal::ALL,
        },
        // What is not there has no functions: the caller has looked.
        (_, Store::Regular) => &neon_regular::ALL,
        (_, Store::NonTemporal) => &neon_non_temporal::ALL,
    }
}

/// Bytes of a vector of this thread.
fn vector_bytes() -> i32 {
    // `PR_SVE_GET_VL` and `PR_SVE_VL_LEN_MASK` of the kernel's `linux/prctl.h`.
    const GET_LENGTH: i32 = 51;
    const LENGTH: i32 = 0xffff;
    // SAFETY: it asks for a number; it fails where there is no SVE.
    unsafe { libc::prctl(GET_LENGTH) & LENGTH }
}

/// Whether there are functions for this thread's vectors: not for lengths such as 48 bytes, which an early SVE may have.
pub(super) fn has_functions_for_sve() -> bool {
    vector_bytes().count_ones() == 1
}

/// `MODULE: what begins the function, a load of a line, a store of a line, what ends it; its functions`.
macro_rules! functions {
    ($module:ident: $begin:expr, $load:expr, $store:expr, $end:expr; $($name:ident = $reads:literal)+) => {
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
                        $begin,
                        "movz x9, #{lowest}",
                        "movk x9, #{low}, lsl #16",
                        "movk x9, #{high}, lsl #32",
                        "movk x9, #{highest}, lsl #48",
                        "mov w10, #{lines}",
                        "2: tbz x9, #0, 3f",
                        "lsr x9, x9, #1",
                        $load,
                        "add x0, x0, #64",
                        "subs w10, w10, #1",
                        "b.ne 2b",
                        "ret",
                        "3: lsr x9, x9, #1",
                        $store,
                        "add x1, x1, #64",
                        "subs w10, w10, #1",
                        "b.ne 2b",
                        "ret",
                        $end,
                        lowest = const super::super::pattern($reads) & 0xffff,
                        low = const super::super::pattern($reads) >> 16 & 0xffff,
                        high = const super::super::pattern($reads) >> 32 & 0xffff,
                        highest = const super::super::pattern($reads) >> 48,
                        lines = const GROUP,
                    )
                }
            )+
        }
    };
}

/// A line in two pairs.
macro_rules! neon_load {
    () => {
        "ldp q0, q1, [x0]
         ldp q2, q3, [x0, #32]"
    };
}
/// The same of a store.
macro_rules! neon_store {
    ($store:literal) => {
        concat!($store, " q0, q1, [x1]\n", $store, " q0, q1, [x1, #32]")
    };
}
/// SVE is enabled in the assembler, and the predicate has this many bytes.
macro_rules! sve {
    ($bytes:literal) => {
        concat!(".arch_extension sve\nmov z0.b, #0\nptrue p0.b, vl", $bytes)
    };
}
/// What follows the function is assembled as before.
macro_rules! sve_end {
    () => {
        ".arch_extension nosve"
    };
}
/// A vector of a line.
macro_rules! sve_load {
    ($register:literal, $place:literal) => {
        concat!(
            "ld1b {{z",
            $register,
            ".b}}, p0/z, [x0, #",
            $place,
            ", mul vl]\n"
        )
    };
}
/// The same of a store.
macro_rules! sve_store {
    ($store:literal, $place:literal) => {
        concat!($store, " {{z0.b}}, p0, [x1, #", $place, ", mul vl]\n")
    };
}
macro_rules! sve_loads {
    (16) => {
        concat!(
            sve_load!(0, 0),
            sve_load!(1, 1),
            sve_load!(2, 2),
            sve_load!(3, 3)
        )
    };
    (32) => {
        concat!(sve_load!(0, 0), sve_load!(1, 1))
    };
    (64) => {
        sve_load!(0, 0)
    };
}
macro_rules! sve_stores {
    (16, $store:literal) => {
        concat!(
            sve_store!($store, 0),
            sve_store!($store, 1),
            sve_store!($store, 2),
            sve_store!($store, 3)
        )
    };
    (32, $store:literal) => {
        concat!(sve_store!($store, 0), sve_store!($store, 1))
    };
    (64, $store:literal) => {
        sve_store!($store, 0)
    };
}

// What is stored is zero, or a line that was read.
all_shares!(neon_regular: "movi v0.2d, #0\nmovi v1.2d, #0", neon_load!(), neon_store!("stp"), "";);
all_shares!(neon_non_temporal: "movi v0.2d, #0\nmovi v1.2d, #0", neon_load!(), neon_store!("stnp"), "";);
all_shares!(sve16_regular: sve!(16), sve_loads!(16), sve_stores!(16, "st1b"), sve_end!(););
all_shares!(sve16_non_temporal: sve!(16), sve_loads!(16), sve_stores!(16, "stnt1b"), sve_end!(););
all_shares!(sve32_regular: sve!(32), sve_loads!(32), sve_stores!(32, "st1b"), sve_end!(););
all_shares!(sve32_non_temporal: sve!(32), sve_loads!(32), sve_stores!(32, "stnt1b"), sve_end!(););
all_shares!(sve64_regular: sve!(64), sve_loads!(64), sve_stores!(64, "st1b"), sve_end!(););
all_shares!(sve64_non_temporal: sve!(64), sve_loads!(64), sve_stores!(64, "stnt1b"), sve_end!(););
