//! The order of hand-out: classes by urgency, tenants in turn inside a class, first come first served inside a tenant.
//!
//! Invariant: a tenant stands in its class's ring exactly once if and only if it has a lane there. A lane may be empty
//! after a removal; it goes when its turn comes.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxBuildHasher;

use super::Class;

/// All waiting keys in the order of their turns.
pub(super) struct Turns<K> {
    /// Which tenant a key belongs to; must always answer the same for the same key.
    tenant_of: fn(&K) -> u64,
    due: Ring<K>,
    listed: Ring<K>,
    /// Number of the next key to enter; gives first come first served.
    next_seq: u64,
    len: usize,
}

/// The tenants of one class.
struct Ring<K> {
    /// Tenants in the order of their turns.
    order: VecDeque<u64>,
    /// Each tenant's keys with the numbers under which they entered, which rise.
    lanes: HashMap<u64, VecDeque<(u64, K)>, FxBuildHasher>,
}

impl<K> Turns<K> {
    pub(super) fn new(tenant_of: fn(&K) -> u64) -> Self {
        Self { tenant_of, due: Ring::new(), listed: Ring::new(), next_seq: 0, len: 0 }
    }

    /// How many keys wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Puts `key`, which must not wait yet, behind its tenant's other keys of this class; its number there.
    pub(super) fn push(&mut self, key: K, class: Class) -> u64 {
        let (tenant, seq) = ((self.tenant_of)(&key), self.next_seq);
        self.next_seq += 1;
        self.len += 1;
        self.ring(class).push(tenant, seq, key);
        seq
    }

    /// The key whose turn it is.
    pub(super) fn pop(&mut self) -> Option<K> {
        let key = self.due.pop().or_else(|| self.listed.pop())?;
        self.len -= 1;
        Some(key)
    }

    /// Takes a waiting key out, by the class and the number under which it entered, and hands it back.
    pub(super) fn remove(&mut self, key: &K, class: Class, seq: u64) -> Option<K> {
        let tenant = (self.tenant_of)(key);
        let lane = self.ring(class).lanes.get_mut(&tenant)?;
        let at = lane.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
        let (_, key) = lane.remove(at)?;
        self.len -= 1;
        Some(key)
    }

    fn ring(&mut self, class: Class) -> &mut Ring<K> {
        match class {
            Class::Due => &mut self.due,
            Class::Listed => &mut self.listed,
        }
    }
}

impl<K> Ring<K> {
    fn new() -> Self {
        Self { order: VecDeque::new(), lanes: HashMap::default() }
    }

    fn push(&mut self, tenant: u64, seq: u64, key: K) {
        let order = &mut self.order;
        let lane = self.lanes.entry(tenant).or_insert_with(|| {
            order.push_back(tenant);
            VecDeque::new()
        });
        lane.push_back((seq, key));
    }

    /// The next key of the tenant whose turn it is; a tenant with more goes to the end of the ring.
    fn pop(&mut self) -> Option<K> {
        while let Some(tenant) = self.order.pop_front() {
            let Some(lane) = self.lanes.get_mut(&tenant) else { continue };
            let key = lane.pop_front().map(|(_, key)| key);
            if lane.is_empty() {
                self.lanes.remove(&tenant);
            } else {
                self.order.push_back(tenant);
            }
            if key.is_some() {
                return key;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> Turns<(u64, u32)> {
        Turns::new(|key| key.0)
    }

    fn drain(turns: &mut Turns<(u64, u32)>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| turns.pop()).collect()
    }

    #[test]
    fn tenants_take_turns_and_each_is_first_come_first_served() {
        let mut turns = turns();
        for key in [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (3, 1)] {
            turns.push(key, Class::Due);
        }
        assert_eq!(drain(&mut turns), [(1, 0), (2, 0), (3, 0), (1, 1), (3, 1), (1, 2)]);
    }

    #[test]
    fn ten_thousand_keys_of_one_tenant_do_not_hold_back_the_one_of_another() {
        let mut turns = turns();
        for n in 0..10_000 {
            turns.push((1, n), Class::Due);
        }
        turns.push((2, 0), Class::Due);
        assert_eq!(turns.pop(), Some((1, 0)));
        assert_eq!(turns.pop(), Some((2, 0)));
    }

    #[test]
    fn the_due_go_before_the_listed() {
        let mut turns = turns();
        turns.push((1, 0), Class::Listed);
        turns.push((1, 1), Class::Due);
        assert_eq!(drain(&mut turns), [(1, 1), (1, 0)]);
    }

    #[test]
    fn a_removed_key_is_gone_and_its_tenant_keeps_a_single_turn() {
        let mut turns = turns();
        let seq = turns.push((1, 0), Class::Listed);
        assert_eq!(turns.remove(&(1, 0), Class::Listed, seq), Some((1, 0)));
        assert_eq!(turns.remove(&(1, 0), Class::Listed, seq), None);
        for key in [(1, 1), (1, 2), (2, 0)] {
            turns.push(key, Class::Listed);
        }
        assert_eq!(turns.len(), 3);
        assert_eq!(drain(&mut turns), [(1, 1), (2, 0), (1, 2)]);
        assert!(turns.listed.order.is_empty() && turns.listed.lanes.is_empty());
    }
}
