//! The clock benchmark: when this machine stops a thread, and whether its time stamp counter can be trusted.

pub mod trust;
