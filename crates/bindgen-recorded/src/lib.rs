//! What the build script of rdma-sys asks of bindgen, answered from a record.
//!
//! `bindings.rs` was made by bindgen for the one version of rdma-sys named here, whose build script says by which
//! options; a published version never changes. The options are therefore not looked at.

use std::path::Path;

/// The bindings of both architectures: that the two are the same is checked by `ci/check-bindings`.
const BINDINGS: &str = include_str!("bindings.rs");
/// What they were made for.
const MADE_FOR: (&str, &str) = ("rdma-sys", "0.3.0");
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// Takes the options and forgets them.
#[derive(Debug, Default)]
pub struct Builder(());

macro_rules! options {
    ($($name:ident: $value:ty;)+) => {
        impl Builder {$(
            /// bindgen's option of this name.
            #[must_use]
            pub fn $name(self, _value: $value) -> Self {
                self
            }
        )+}
    };
}

options! {
    header: &str;
    allowlist_function: &str;
    allowlist_type: &str;
    blocklist_type: &str;
    opaque_type: &str;
    bitfield_enum: &str;
    constified_enum_module: &str;
    rustified_enum: &str;
    derive_copy: bool;
    derive_debug: bool;
    derive_default: bool;
    generate_comments: bool;
    prepend_enum_name: bool;
    rustfmt_bindings: bool;
    size_t_is_usize: bool;
}

impl Builder {
    /// bindgen's option of this name.
    #[must_use]
    pub fn clang_args(self, _arguments: impl IntoIterator<Item = String>) -> Self {
        self
    }

    /// bindgen's option of this name.
    #[must_use]
    pub fn disable_untagged_union(self) -> Self {
        self
    }

    /// The recorded bindings.
    ///
    /// # Errors
    /// When they were made for another crate, another version of it, or another architecture than is built.
    pub fn generate(self) -> Result<Bindings, String> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let built_for = (variable("CARGO_PKG_NAME"), variable("CARGO_PKG_VERSION"));
        if (built_for.0.as_str(), built_for.1.as_str()) != MADE_FOR {
            return Err(format!(
                "the recorded bindings are of {} {}, and {} {} is built; record them anew by ci/check-bindings --update",
                MADE_FOR.0, MADE_FOR.1, built_for.0, built_for.1
            ));
        }
        let architecture = variable("CARGO_CFG_TARGET_ARCH");
        if !ARCHITECTURES.contains(&architecture.as_str()) {
            return Err(format!(
                "there are no recorded bindings for {architecture}, only for {}; build with bindgen itself: take the \
                 line of bindgen out of [patch.crates-io] in Cargo.toml, and install libclang",
                ARCHITECTURES.join(" and ")
            ));
        }
        Ok(Bindings(()))
    }
}

/// The bindings.
#[derive(Debug)]
pub struct Bindings(());

impl Bindings {
    /// Writes them to a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_to_file(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        std::fs::write(path, BINDINGS)
    }
}
