//! Libraries of the system that are loaded when they are first needed: the program runs where they are not installed.

use std::io;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::remedies::remedy;

/// Loads a library by the name of its file.
pub fn open(name: &str) -> Result<Library, libloading::Error> {
    // SAFETY: what a library does when it is loaded is what it does in each program that is linked to it.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }
}

/// What the loader reports.
pub fn reason(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

/// What to do where a library is not loaded for this reason, if a limit is reached: it may be installed.
pub fn remedy_of_limit(reason: &str) -> Option<String> {
    let texts = [
        ("Too many open files", libc::EMFILE),
        ("failed to map", libc::ENOMEM),
        ("annot allocate memory", libc::ENOMEM),
    ];
    let (_, errno) = texts.iter().find(|(text, _)| reason.contains(text))?;
    remedy(&io::Error::from_raw_os_error(*errno))
}

/// A table of functions of a library, and each of them as a function that calls the one in the table. The types must
/// be those of the library's header.
#[doc(hidden)]
#[macro_export]
macro_rules! library_functions {
    ($table:ident of $where:expr;
     $($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        struct $table {
            $($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)+
        }

        impl $table {
            fn of(library: &libloading::os::unix::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those of the library's header, which keeps them.
                $(let $name = unsafe { *library.get(concat!(stringify!($name), "\0").as_bytes())? };)+
                Ok($table { $($name,)+ })
            }
        }

        $(
            #[doc = concat!("`", stringify!($name), "(3)`.")]
            ///
            /// # Safety
            /// What its manual page asks for.
            pub unsafe fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: the caller vouches for it.
                unsafe { ($where.$name)($($argument),*) }
            }
        )+
    };
}

pub use crate::library_functions as functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_a_limit_keeps_out_may_be_installed() {
        let files =
            remedy_of_limit("libx.so.1: cannot open shared object file: Too many open files");
        assert!(files.unwrap().contains("ulimit -n"));
        assert!(remedy_of_limit("libx.so.1: failed to map segment from shared object").is_some());
        let missing = "libx.so.1: cannot open shared object file: No such file or directory";
        assert_eq!(remedy_of_limit(missing), None);
    }
}
