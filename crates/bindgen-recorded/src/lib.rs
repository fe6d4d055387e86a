//! The part of bindgen's interface that the build script of `rdma-sys` calls, without libclang.
//!
//! bindgen 0.59.2 generated `bindings.rs` from the headers of rdma-core, with the options in `options.txt`. [`Builder`]
//! compares the options of the build script with these, and [`Bindings`] writes `bindings.rs`. Other options are an
//! error, and a method that is missing here does not compile: the bindings are always those that `rdma-sys` requests.
//! `ci/check-bindings` generates both files and compares them.

use std::fmt;
use std::path::Path;
use std::{env, fs, io};

const BINDINGS: &str = include_str!("../bindings.rs");
const OPTIONS: &str = include_str!("../options.txt");

/// Collects options, one a line: the method's name and its value.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    options: Vec<String>,
}

macro_rules! options_with_text {
    ($($name:ident)*) => {$(
        #[doc = concat!("Records the option `", stringify!($name), "`.")]
        pub fn $name<T: AsRef<str>>(self, value: T) -> Self {
            self.record(stringify!($name), value.as_ref())
        }
    )*};
}

macro_rules! options_with_switch {
    ($($name:ident)*) => {$(
        #[doc = concat!("Records the option `", stringify!($name), "`.")]
        pub fn $name(self, value: bool) -> Self {
            self.record(stringify!($name), if value { "true" } else { "false" })
        }
    )*};
}

impl Builder {
    options_with_text! {
        allowlist_function allowlist_type bitfield_enum blocklist_type constified_enum_module header opaque_type
        rustified_enum
    }

    options_with_switch! {
        derive_copy derive_debug derive_default generate_comments prepend_enum_name rustfmt_bindings size_t_is_usize
    }

    /// Records the option `disable_untagged_union`.
    pub fn disable_untagged_union(self) -> Self {
        self.record("disable_untagged_union", "")
    }

    /// Ignores arguments of clang: they are the folders of the headers, and no headers are read.
    pub fn clang_args<I>(self, _arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self
    }

    /// Compares the options, the package and its header with what was recorded. Leaves a copy in `OUT_DIR`, for
    /// `ci/check-bindings --update`.
    pub fn generate(self) -> Result<Bindings, Error> {
        let variable = |name| env::var(name).unwrap_or_default();
        let package = format!(
            "{} {}",
            variable("CARGO_PKG_NAME"),
            variable("CARGO_PKG_VERSION")
        );
        supports(
            &variable("CARGO_CFG_TARGET_ARCH"),
            &variable("CARGO_CFG_TARGET_OS"),
            &variable("CARGO_CFG_TARGET_POINTER_WIDTH"),
        )?;
        let requested = self.list(&package, |path| fs::read_to_string(path))?;
        if let Some(folder) = env::var_os("OUT_DIR") {
            let copy = Path::new(&folder).join("options.txt");
            fs::write(&copy, &requested)
                .map_err(|error| Error(format!("cannot write {}: {error}", copy.display())))?;
        }
        compare(&package, &requested, OPTIONS)?;
        Ok(Bindings(()))
    }

    fn record(mut self, name: &str, value: &str) -> Self {
        self.options
            .push(format!("{name} {value}").trim_end().to_owned());
        self
    }

    /// The package, its options, and below each header the lines in it.
    fn list(
        &self,
        package: &str,
        read: impl Fn(&str) -> io::Result<String>,
    ) -> Result<String, Error> {
        let mut list = format!("package {package}\n");
        for option in &self.options {
            list.push_str(&format!("{option}\n"));
            if let Some(path) = option.strip_prefix("header ") {
                let text = read(path)
                    .map_err(|error| Error(format!("cannot read the header {path}: {error}")))?;
                text.lines()
                    .for_each(|line| list.push_str(&format!("    {line}\n")));
            }
        }
        Ok(list)
    }
}

/// The recorded bindings.
#[derive(Debug)]
pub struct Bindings(());

impl Bindings {
    /// Writes the bindings to that file.
    pub fn write_to_file<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        fs::write(path, BINDINGS)
    }
}

/// The reason why the recorded bindings cannot be used: problem, cause and fix.
pub struct Error(String);

/// As the text is written: build scripts print errors by `expect`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn supports(architecture: &str, system: &str, pointer_width: &str) -> Result<(), Error> {
    if matches!(architecture, "x86_64" | "aarch64") && system == "linux" && pointer_width == "64" {
        return Ok(());
    }
    Err(Error(format!(
        "no recorded bindings for this target\n  \
         cause: it is {architecture} {system} with pointers of {pointer_width} bits, and the bindings are verified for \
         x86_64 and aarch64 Linux with 64 bits\n  \
         fix: install libclang, and remove [patch.crates-io] from hcabench's Cargo.toml: bindgen then generates them"
    )))
}

fn compare(package: &str, requested: &str, recorded: &str) -> Result<(), Error> {
    if requested == recorded {
        return Ok(());
    }
    let only_in = |text: &str, other: &str| -> Vec<String> {
        let others: Vec<_> = other.lines().collect();
        text.lines()
            .filter(|line| !others.contains(line))
            .map(|line| line.trim().to_owned())
            .collect()
    };
    let mut causes = Vec::new();
    for (what, lines) in [
        ("requested only", only_in(requested, recorded)),
        ("recorded only", only_in(recorded, requested)),
    ] {
        if !lines.is_empty() {
            causes.push(format!("{what}: {}", lines.join(", ")));
        }
    }
    if causes.is_empty() {
        causes.push("the same options, in another order or number".to_owned());
    }
    Err(Error(format!(
        "the recorded bindings are not those that {package} requests\n  \
         cause: {}\n  \
         fix: put the version of rdma-sys into tests/bindings/Cargo.toml, run `ci/check-bindings --update` and commit \
         what it writes",
        causes.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Builder {
        Builder::default()
            .clang_args(["-I/usr/include"])
            .header("src/a.h")
            .allowlist_type("ibv_.*")
            .derive_copy(true)
            .disable_untagged_union()
    }

    const LIST: &str = "package rdma-sys 0.3.0\nheader src/a.h\n    #include <b.h>\nallowlist_type ibv_.*\nderive_copy true\n\
                        disable_untagged_union\n";

    fn list(builder: Builder) -> String {
        builder
            .list("rdma-sys 0.3.0", |_| Ok("#include <b.h>\n".to_owned()))
            .unwrap()
    }

    #[test]
    fn a_list_has_all_options_but_the_folders_of_headers() {
        assert_eq!(list(options()), LIST);
        compare("rdma-sys 0.3.0", LIST, LIST).unwrap();
    }

    #[test]
    fn other_options_are_an_error_that_names_them() {
        for (requested, cause) in [
            (
                list(options().allowlist_type("mlx5.*")),
                "cause: requested only: allowlist_type mlx5.*\n",
            ),
            (
                LIST.replace("copy true", "copy false"),
                "requested only: derive_copy false; recorded only: derive_copy true\n",
            ),
            (
                LIST.replace("<b.h>", "<c.h>"),
                "requested only: #include <c.h>; recorded only: #include <b.h>\n",
            ),
            (
                LIST.replace("0.3.0", "0.3.1"),
                "recorded only: package rdma-sys 0.3.0\n",
            ),
            (list(options().derive_copy(true)), "another order or number"),
        ] {
            let text = compare("rdma-sys", &requested, LIST)
                .unwrap_err()
                .to_string();
            assert!(
                text.contains(cause) && text.contains("fix: "),
                "{cause}: {text}"
            );
        }
    }

    #[test]
    fn a_header_that_cannot_be_read_is_named() {
        let missing = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
        let text = options().list("rdma-sys", missing).unwrap_err().to_string();
        assert!(text.contains("src/a.h"), "{text}");
    }

    #[test]
    fn targets_of_other_layouts_are_refused() {
        for architecture in ["x86_64", "aarch64"] {
            supports(architecture, "linux", "64").unwrap();
            supports(architecture, "linux", "32").unwrap_err();
            supports(architecture, "freebsd", "64").unwrap_err();
        }
        let text = supports("riscv64", "linux", "64").unwrap_err().to_string();
        assert!(text.contains("riscv64 linux"), "{text}");
    }
}
