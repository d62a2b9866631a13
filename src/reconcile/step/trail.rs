//! Searches that follow each other through a list.

use std::cell::Cell;

/// Where the last search in a list ended. Children and the entries of `active` stand in nearly the same order, so that a search which begins
/// there ends at once: thousands of active Jobs must not cost their square in each step.
#[derive(Debug, Default)]
pub(super) struct Trail(Cell<usize>);

impl Trail {
    /// Whether something in the list is what is sought, wherever it stands.
    pub(super) fn finds<T>(&self, list: &[T], is: impl Fn(&T) -> bool) -> bool {
        let (before, behind) = list.split_at(self.0.get().min(list.len()));
        let found = behind.iter().position(&is).map(|at| before.len() + at).or_else(|| before.iter().position(&is));
        if let Some(at) = found {
            self.0.set(at + 1);
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 2_000;

    #[test]
    fn searches_in_the_order_of_the_list_look_at_each_entry_once() {
        let (list, looks, trail) = ((0..SIZE).collect::<Vec<_>>(), Cell::new(0), Trail::default());
        for sought in 0..SIZE {
            assert!(trail.finds(&list, |entry| {
                looks.set(looks.get() + 1);
                *entry == sought
            }));
        }
        assert_eq!(looks.get(), SIZE);
    }

    #[test]
    fn whatever_the_order_what_is_there_is_found_and_nothing_else() {
        let trail = Trail::default();
        for (list, sought, there) in [
            (&[1, 2, 3][..], 3, true),
            (&[1, 2, 3], 1, true),
            (&[1, 2, 3], 1, true),
            (&[1, 2, 3], 4, false),
            (&[5], 5, true),
            (&[], 5, false),
            (&[6, 5, 4], 6, true),
        ] {
            assert_eq!(trail.finds(list, |entry| *entry == sought), there, "{sought} in {list:?}");
        }
    }
}
