//! What is made of the pairs of a fabric: plain data in, plain data out. Nothing here measures or prints.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`matrix`] | a figure of each ordered pair; what is missing is known to be missing |
//! | [`tiers`] | how far apart two nodes are, by the launcher, Slurm's file, the subnet or the user |
//! | [`scores`] | what a figure says of nodes: median polish, robust scores |
//! | [`culprits`] | which nodes are named, and in which direction |
//! | [`suspects`] | which pairs are measured again alone, beside a control set |
//! | [`verdict`] | what is said of a pair |
//! | [`limits`] | what makes a run fail |
//! | [`over_time`] | two runs of one fabric |
//! | [`metrics`] | what runs are judged by over time |
//! | `alignment` | the effects of nodes in several runs, aligned |
//! | [`baseline`] | what several healthy runs have in common |
//! | [`rules`] | rules over runs, as a file has them |
//! | [`against`] | a run judged by rules, against a baseline |
//! | [`history`] | nodes over many runs |
//! | [`rows`] | rows of the tables |
//! | [`prometheus`] | text for the node exporter |
//!
//! Pairs of unequal tiers are never compared: all goes by the distance of a pair from its own tier.

pub mod against;
mod alignment;
pub mod baseline;
pub mod culprits;
pub mod history;
pub mod limits;
pub mod matrix;
pub mod metrics;
pub mod over_time;
pub mod prometheus;
pub mod rows;
pub mod rules;
pub mod scores;
pub mod suspects;
pub mod tiers;
pub mod verdict;

#[cfg(test)]
mod health_trial;
#[cfg(test)]
mod made_up;
#[cfg(test)]
mod sample_trial;
