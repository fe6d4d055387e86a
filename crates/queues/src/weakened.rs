//! Atomics for loom of which one ordering can be taken away, to see whether loom finds it missing.
//!
//! An ordering is named by its place: `file:line:column`. Relaxed accesses have none.

use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::{LazyLock, Mutex};

use loom::sync::atomic::Ordering;

/// Names the ordering that is taken away; [`LIST`] has all that are met written to standard output.
pub(super) const ORDERING: &str = "HCABENCH_ORDERING_TAKEN_AWAY";
pub(super) const LIST: &str = "list";
/// What begins a line of the list.
pub(super) const TOLD: &str = "ordering ";

static ASKED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var(ORDERING).ok());
static MET: Mutex<BTreeSet<(&str, u32, u32)>> = Mutex::new(BTreeSet::new());
/// The place that is asked for, once it has been met.
static TAKEN_AWAY: Mutex<Option<(&str, u32, u32)>> = Mutex::new(None);

/// The ordering of an access, as it is or taken away.
#[track_caller]
fn here(ordering: Ordering) -> Ordering {
    let Some(asked) = ASKED.as_ref().filter(|_| ordering != Ordering::Relaxed) else {
        return ordering;
    };
    let place = Location::caller();
    let place = (place.file(), place.line(), place.column());
    if MET.lock().unwrap().insert(place) {
        let name = format!("{}:{}:{}", place.0, place.1, place.2);
        if asked == LIST {
            println!("{TOLD}{name}");
        } else if *asked == name {
            *TAKEN_AWAY.lock().unwrap() = Some(place);
        }
    }
    match *TAKEN_AWAY.lock().unwrap() == Some(place) {
        true => Ordering::Relaxed,
        false => ordering,
    }
}

macro_rules! atomics {
    ($($name:ident: $value:ty;)+) => {$(
        /// That of loom.
        #[derive(Debug)]
        pub struct $name(loom::sync::atomic::$name);

        impl $name {
            #[track_caller]
            pub(crate) fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            #[track_caller]
            pub(crate) fn load(&self, ordering: Ordering) -> $value {
                self.0.load(here(ordering))
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                self.0.store(value, here(ordering));
            }
        }
    )+};
}

atomics! {
    AtomicU64: u64;
    AtomicUsize: usize;
}
