//! Conditions of a Job. A type stands in the list once, at the place where it first appeared.

use crate::model::{ConditionStatus, JobCondition, WallTime};

/// Sets the condition of a type; whether that changed anything. One that would be False is not added to a list that lacks it. (Rule
/// `condition-set-by-type`: further entries of the type, which somebody else put there, go.)
pub fn set(
    conditions: &mut Vec<JobCondition>,
    condition_type: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
    now: WallTime,
) -> bool {
    let new = || JobCondition {
        condition_type: condition_type.into(),
        status,
        reason: reason.into(),
        message: message.into(),
        last_probe_time: Some(now),
        last_transition_time: Some(now),
    };
    let is_of_type = |condition: &JobCondition| &*condition.condition_type == condition_type;
    let Some(place) = conditions.iter().position(is_of_type) else {
        let adds = status != ConditionStatus::False;
        if adds {
            conditions.push(new());
        }
        return adds;
    };
    let length = conditions.len();
    let mut at = 0..length;
    conditions.retain(|condition| at.next() == Some(place) || !is_of_type(condition));
    let mut changed = conditions.len() != length;
    if let Some(old) = conditions.get_mut(place)
        && (old.status != status || &*old.reason != reason || &*old.message != message)
    {
        *old = new();
        changed = true;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::at;
    use ConditionStatus::{False, True};

    fn texts(conditions: &[JobCondition]) -> Vec<String> {
        let text = |c: &JobCondition| format!("{} {:?} {} {}", c.condition_type, c.status, c.reason, c.message);
        conditions.iter().map(text).collect()
    }

    #[test]
    fn a_condition_is_added_changed_or_left() {
        let mut conditions = Vec::new();
        assert!(!set(&mut conditions, "Suspended", False, "JobResumed", "", at(0)));
        assert!(set(&mut conditions, "Other", True, "", "", at(0)));
        assert!(set(&mut conditions, "Suspended", True, "JobSuspended", "m", at(1)));
        assert!(!set(&mut conditions, "Suspended", True, "JobSuspended", "m", at(2)));
        assert_eq!(conditions[1].last_transition_time, Some(at(1)));
        assert!(set(&mut conditions, "Suspended", True, "JobSuspended", "n", at(3)));
        assert!(set(&mut conditions, "Suspended", False, "JobResumed", "r", at(4)));
        assert_eq!(texts(&conditions), ["Other True  ", "Suspended False JobResumed r"]);
        assert_eq!((conditions[1].last_transition_time, conditions[1].last_probe_time), (Some(at(4)), Some(at(4))));
    }

    #[test]
    fn a_type_stands_once() {
        let mut conditions = Vec::new();
        for name in ["A", "B"] {
            set(&mut conditions, name, True, "", "", at(0));
        }
        conditions.push(JobCondition { status: False, ..conditions[0].clone() });
        assert!(set(&mut conditions, "A", True, "", "", at(1)));
        assert_eq!(texts(&conditions), ["A True  ", "B True  "]);
    }
}
