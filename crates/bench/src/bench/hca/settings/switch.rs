//! A setting that is off or on.

use crate::rig::named::named;

named! {
    /// A switch that can be swept.
    Switch {
        /// Off.
        Off = "off",
        /// On.
        On = "on",
    }
}

impl Switch {
    /// Whether it is on.
    pub fn is_on(self) -> bool {
        self == Switch::On
    }
}
