//! Enums whose values have names.

/// An enum whose variants have these names, on the command line and in results.
#[macro_export]
macro_rules! names {
    ($(#[$outer:meta])* $kind:ident { $($(#[$inner:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $kind {
            $($(#[$inner])* #[serde(rename = $name)] $variant,)+
        }
        impl $kind {
            /// All of them, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$($kind::$variant,)+];

            /// Its name on the command line and in results.
            pub const fn name(self) -> &'static str {
                match self { $($kind::$variant => $name,)+ }
            }
        }
    };
}

pub use names;
