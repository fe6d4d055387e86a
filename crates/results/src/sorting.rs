//! Stable sorting in cold code: compiled once, and not anew for each type and comparison (10 KiB of machine code each).

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Sorts as `sort_by` of a slice does.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order = order_of(items.len(), &mut |one, other| {
        compare(&items[one], &items[other])
    });
    // Items move along each cycle of the permutation.
    for start in 0..order.len() {
        let mut place = start;
        while order[place] != start {
            let from = std::mem::replace(&mut order[place], place);
            items.swap(place, from);
            place = from;
        }
        order[place] = place;
    }
}

/// Sorts as `sort_by_key` of a slice does.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// The distinct items, in order. They are inserted one by one: collecting would compile a sort of their type.
pub fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut found = BTreeSet::new();
    for item in items {
        found.insert(item);
    }
    found
}

/// The places of items in their order.
fn order_of(items: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(keys in prop::collection::vec(0..8_u8, 0..60)) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut sorted = items.clone();
            sorted.sort_by_key(|(key, _)| *key);
            sort_by_key(&mut items, |(key, _)| *key);
            prop_assert_eq!(&items, &sorted);
            sorted.sort_by_key(|it| std::cmp::Reverse(it.0));
            sort_by(&mut items, |one, other| other.0.cmp(&one.0));
            prop_assert_eq!(items, sorted);
        }
    }
}
