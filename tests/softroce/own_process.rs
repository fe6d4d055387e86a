//! Each in a process of its own: librdmacm keeps a device open until that ends, and so the kernel keeps it.

use std::path::Path;
use std::time::Duration;

use crate::program::Program;

const LIMIT: Duration = Duration::from_secs(120);
/// Tells the process that it is the one.
const VARIABLE: &str = "HCABENCH_SOFTROCE_TEST";

macro_rules! library_tests {
    ($($(#[$attribute:meta])* fn $name:ident() $body:block)+) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            $crate::own_process::run(concat!(module_path!(), "::", stringify!($name)), || $body);
        }
    )+};
}

pub(crate) fn is_inner() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

pub(crate) fn run(path: &str, work: fn()) {
    run_with(path, &[], work);
}

/// The same with further variables in the environment of that process, each as `NAME=VALUE`.
pub(crate) fn run_with(path: &str, environment: &[&str], work: fn()) {
    let (_, name) = path
        .split_once("::")
        .expect("the path begins with the crate");
    if std::env::var(VARIABLE).is_ok_and(|chosen| chosen == name) {
        return work();
    }
    let this = std::env::current_exe().unwrap();
    let arguments = format!("{name} --exact --nocapture --test-threads=1");
    let chosen = format!("{VARIABLE}={name}");
    let starter = [&["env", &chosen], environment].concat();
    let ended = Program::under(&starter, Path::new(&this), &arguments)
        .start()
        .wait(LIMIT);
    assert!(
        ended.status.success() && ended.stdout.contains("1 passed; 0 failed; 0 ignored"),
        "{}\n{}\n{}",
        ended.status,
        ended.stdout,
        ended.stderr
    );
}
