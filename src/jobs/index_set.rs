//! Sets of completion indexes, and their text in `status.completedIndexes` and `status.failedIndexes`: increasing numbers between
//! commas, a run of three or more as `first-last`.
//!
//! Invariants
//! - Runs are in order, not empty, and at least one index apart; so equal sets have equal runs and equal texts.
//! - Indexes are not negative.

use std::fmt;

/// A set of completion indexes, kept as runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexSet {
    runs: Vec<Run>,
}

/// Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: i32,
    last: i32,
}

impl IndexSet {
    /// Reads a text as leniently as the peer does: parts that cannot be read are passed over, the first part that begins at or
    /// beyond `limit` ends it, and what reaches beyond `limit` is cut off.
    pub fn parse(text: &str, limit: i32) -> Self {
        let mut set = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let Ok(first) = first.parse::<i32>() else { continue };
            if first >= limit {
                break;
            }
            // A third number is nobody's; the peer reads the first two.
            let Ok(last) = last.split('-').next().unwrap_or_default().parse::<i32>() else { continue };
            set.insert_run(first.max(0), last.min(limit - 1));
        }
        set
    }

    /// Adds one index; whether it is new. A negative one never is.
    pub fn insert(&mut self, index: i32) -> bool {
        let new = index >= 0 && !self.contains(index);
        if new {
            self.insert_run(index, index);
        }
        new
    }

    /// Whether the index is in the set.
    pub fn contains(&self, index: i32) -> bool {
        let at = self.runs.partition_point(|run| run.last < index);
        self.runs.get(at).is_some_and(|run| run.first <= index)
    }

    /// How many indexes there are.
    pub fn len(&self) -> i32 {
        self.runs.iter().map(Run::len).fold(0, i32::saturating_add)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many indexes both sets have.
    pub fn overlap(&self, other: &Self) -> i32 {
        let (mut at, mut there, mut shared) = (0, 0, 0_i32);
        while let (Some(ours), Some(theirs)) = (self.runs.get(at), other.runs.get(there)) {
            let (first, last) = (ours.first.max(theirs.first), ours.last.min(theirs.last));
            shared = shared.saturating_add(Run { first, last }.len());
            if ours.last < theirs.last {
                at += 1;
            } else {
                there += 1;
            }
        }
        shared
    }

    /// The indexes of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = Self::default();
        let mut there = 0;
        for run in &self.runs {
            let mut first = run.first;
            while let Some(theirs) = other.runs.get(there).filter(|theirs| theirs.first <= run.last) {
                left.insert_run(first, theirs.first - 1);
                first = first.max(theirs.last.saturating_add(1));
                if theirs.last > run.last {
                    break;
                }
                there += 1;
            }
            left.insert_run(first, run.last);
        }
        left
    }

    /// The indexes in order.
    pub fn iter(&self) -> impl Iterator<Item = i32> + '_ {
        self.runs.iter().flat_map(|run| run.first..=run.last)
    }

    /// The indexes below `limit` that are not in the set, in order.
    pub fn gaps(&self, limit: i32) -> impl Iterator<Item = i32> + '_ {
        let ends = self.runs.iter().map(|run| run.first).chain([limit]);
        let starts = [0].into_iter().chain(self.runs.iter().map(|run| run.last.saturating_add(1)));
        starts.zip(ends).flat_map(move |(from, to)| from..to.min(limit))
    }

    /// Adds all from `first` to `last`; nothing if there are none.
    fn insert_run(&mut self, mut first: i32, mut last: i32) {
        if first > last {
            return;
        }
        let from = self.runs.partition_point(|run| run.last < first.saturating_sub(1));
        let to = self.runs.partition_point(|run| run.first <= last.saturating_add(1));
        if let (Some(left), Some(right)) = (self.runs.get(from), to.checked_sub(1).and_then(|to| self.runs.get(to)))
            && from < to
        {
            (first, last) = (first.min(left.first), last.max(right.last));
        }
        self.runs.splice(from..to, [Run { first, last }]);
    }
}

impl Run {
    fn len(&self) -> i32 {
        self.last.saturating_sub(self.first).saturating_add(1).max(0)
    }
}

impl FromIterator<i32> for IndexSet {
    fn from_iter<T: IntoIterator<Item = i32>>(indexes: T) -> Self {
        let mut set = Self::default();
        for index in indexes {
            set.insert(index);
        }
        set
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Run { first, last }) in self.runs.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_written_as_the_peer_writes_them() {
        for text in ["", "1,3-5,7", "2,4,5,7-9", "0", "0,1", "0-2", "0-599"] {
            assert_eq!(IndexSet::parse(text, 1000).to_string(), text);
        }
    }

    #[test]
    fn reading_is_lenient() {
        for (text, limit, expected) in [
            ("0,1,2", 10, "0-2"),
            ("0-1,2", 10, "0-2"),
            ("x,1", 10, "1"),
            ("1-x,3", 10, "3"),
            ("1-2-9,5", 10, "1,2,5"),
            ("3-1", 10, ""),
            ("-1,2", 10, "2"),
            ("1,3-9", 5, "1,3,4"),
            ("7,1", 5, ""),
            ("1,7,2", 5, "1"),
            ("0-2147483647", i32::MAX, "0-2147483646"),
            ("4", 0, ""),
            (",,1,", 5, "1"),
        ] {
            assert_eq!(IndexSet::parse(text, limit).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn the_widest_set_has_the_widest_length() {
        let all = IndexSet::parse("0-2147483646", i32::MAX);
        assert_eq!(all.len(), i32::MAX);
        assert!(all.contains(2_147_483_646) && !all.contains(i32::MAX));
    }

    fn sets() -> impl Strategy<Value = BTreeSet<i32>> {
        prop::collection::btree_set(0..60, 0..40)
    }

    proptest! {
        #[test]
        fn it_is_a_set(left in sets(), right in sets(), limit in 0..70_i32) {
            let set: IndexSet = left.iter().rev().copied().collect();
            let other: IndexSet = right.iter().copied().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), left.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len() as usize, left.len());
            prop_assert_eq!(set.is_empty(), left.is_empty());
            prop_assert!((-1..70).all(|index| set.contains(index) == left.contains(&index)));
            prop_assert_eq!(set.overlap(&other) as usize, left.intersection(&right).count());
            let without: IndexSet = left.difference(&right).copied().collect();
            prop_assert_eq!(set.without(&other), without);
            let gaps: Vec<i32> = (0..limit).filter(|index| !left.contains(index)).collect();
            prop_assert_eq!(set.gaps(limit).collect::<Vec<_>>(), gaps);
            let below: IndexSet = left.iter().copied().filter(|index| *index < limit).collect();
            prop_assert_eq!(IndexSet::parse(&set.to_string(), limit), below);
        }

        #[test]
        fn insertion_in_any_order_gives_one_text(left in sets(), seed in any::<u64>()) {
            let mut shuffled: Vec<i32> = left.iter().copied().collect();
            shuffled.sort_by_key(|index| (*index as u64).wrapping_mul(seed | 1).rotate_left(17));
            let forward: IndexSet = left.iter().copied().collect();
            prop_assert_eq!(shuffled.into_iter().collect::<IndexSet>().to_string(), forward.to_string());
        }

        #[test]
        fn no_text_is_too_odd(text in "[0-9,x-]{0,30}", limit in 0..100_i32) {
            let set = IndexSet::parse(&text, limit);
            prop_assert!(set.iter().all(|index| (0..limit).contains(&index)));
            prop_assert_eq!(IndexSet::parse(&set.to_string(), limit), set);
        }
    }
}
