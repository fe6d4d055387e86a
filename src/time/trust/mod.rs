//! What speaks for and against the time stamp counter, as far as it takes no threads.
//!
//! | question | module |
//! | --- | --- |
//! | what vouches for it, before it is used as a clock | `voucher` |
//! | which rate does each source give, and how far apart are they | [`frequency`], `cpuid` |
//! | how far apart are the counters of two CPUs | [`offset`] |
//! | does time ever go backwards | [`monotony`] |
//!
//! Left out: threads, pinning and the kernel's files; [`crate::bench::clock::trust`] brings them together and judges.

#[cfg(target_arch = "x86_64")]
pub mod cpuid;
pub mod frequency;
pub mod monotony;
pub mod offset;
#[cfg(target_arch = "x86_64")]
pub mod voucher;
