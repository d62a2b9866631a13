//! `successPolicy`: when an Indexed Job has succeeded before all its indexes have.

use super::index_set::IndexSet;
use crate::model::{BatchJob, SuccessRule};

/// The place of the first rule that the completed indexes meet. None does while no index is completed.
pub fn matching_rule(job: &BatchJob, completed: &IndexSet) -> Option<usize> {
    if completed.is_empty() {
        return None;
    }
    let rules = job.spec.success_policy.as_deref()?;
    rules.iter().position(|rule| is_met(rule, completed, job.indexes()))
}

fn is_met(rule: &SuccessRule, completed: &IndexSet, indexes: i32) -> bool {
    let Some(text) = &rule.succeeded_indexes else {
        return rule.succeeded_count.is_some_and(|count| completed.len() >= count);
    };
    let wanted = IndexSet::parse(text, indexes);
    // A text without a readable index asks for nothing that could be met.
    !wanted.is_empty() && completed.overlap(&wanted) >= rule.succeeded_count.unwrap_or(i32::MAX).min(wanted.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::indexed;

    #[test]
    fn rules_ask_for_indexes_for_a_count_or_for_a_count_of_indexes() {
        for (indexes, count, completed, met) in [
            (Some("1,3"), None, "1,3-5", true),
            (Some("1,3"), None, "1,4", false),
            (None, Some(2), "1,4", true),
            (None, Some(2), "1", false),
            (None, Some(0), "", false),
            (None, Some(0), "7", true),
            (Some("0-5"), Some(2), "4-9", true),
            (Some("0-5"), Some(3), "4-9", false),
            (Some("0,1"), Some(9), "0,1", true),
            (Some("x"), None, "0,1", false),
            (Some(""), Some(1), "0,1", false),
            (None, None, "0", false),
        ] {
            let mut job = indexed(10);
            let rule = SuccessRule { succeeded_indexes: indexes.map(Into::into), succeeded_count: count };
            job.spec.success_policy = Some(vec![rule]);
            let found = matching_rule(&job, &IndexSet::parse(completed, 10));
            assert_eq!(found.is_some(), met, "{indexes:?} {count:?} {completed}");
        }
    }

    #[test]
    fn the_first_rule_met_is_named() {
        let mut job = indexed(10);
        let of = |count| SuccessRule { succeeded_indexes: None, succeeded_count: Some(count) };
        job.spec.success_policy = Some(vec![of(5), of(2), of(1)]);
        assert_eq!(matching_rule(&job, &IndexSet::parse("0-2", 10)), Some(1));
        assert_eq!(matching_rule(&indexed(10), &IndexSet::parse("0-2", 10)), None);
    }
}
