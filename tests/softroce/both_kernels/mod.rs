//! What connects queue pairs: `ci/test` runs it on kernel 6.12 as well.

mod direct;
mod operations;
mod uc_routes;
