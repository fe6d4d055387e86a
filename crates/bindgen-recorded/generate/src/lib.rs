//! Nothing: its dependency is built for what its build script writes.
