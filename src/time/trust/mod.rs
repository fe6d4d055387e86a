//! What speaks for and against the time stamp counter, as far as it takes no threads.
//!
//! Which rate does each source give, and how far apart are they: `frequency`, `cpuid`.
//!
//! Left out: threads, pinning and the kernel's files; `bench::clock::trust` brings them together and judges.

#[cfg(target_arch = "x86_64")]
pub(crate) mod cpuid;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod frequency;
