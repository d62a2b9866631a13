//! `podFailurePolicy`: what a failed Pod's exit codes and conditions mean. The first rule that matches decides; without one the
//! failure counts.

use crate::model::{BatchJob, ExitCodeOperator, ExitCodes, Pod, PodConditionPattern, PodFailureAction, PodFailureRule};

/// What the policy says about a failed Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureMatch {
    /// The rule's action; `None` when no rule matched.
    pub action: Option<PodFailureAction>,
    /// For FailJob: the message of the Job's condition.
    pub message: Option<String>,
}

impl FailureMatch {
    /// Whether the failure counts.
    pub fn counts(&self) -> bool {
        self.action != Some(PodFailureAction::Ignore)
    }
}

/// What the Job's policy says about a failed Pod; without a policy, that it counts.
pub fn judge(pod: &Pod, job: &BatchJob) -> FailureMatch {
    let rules = job.spec.pod_failure_policy.as_deref().unwrap_or_default();
    let known = rules.iter().enumerate().filter(|(_, rule)| rule.action != PodFailureAction::Unknown);
    let mut matches = known.filter_map(|(at, rule)| Some((at, rule.action, what_matches(rule, pod)?)));
    let Some((at, action, what)) = matches.next() else { return FailureMatch { action: None, message: None } };
    let message = (action == PodFailureAction::FailJob).then(|| format!("{what} matching FailJob rule at index {at}"));
    FailureMatch { action: Some(action), message }
}

/// What of the Pod a rule matches, in the words of the peer's message.
fn what_matches(rule: &PodFailureRule, pod: &Pod) -> Option<String> {
    match &rule.on_exit_codes {
        Some(codes) => exit_code(codes, pod),
        None => rule.on_pod_conditions.iter().find_map(|pattern| condition(pattern, pod)),
    }
}

fn exit_code(codes: &ExitCodes, pod: &Pod) -> Option<String> {
    let statuses = pod.containers.iter().chain(&pod.init_containers);
    let mut named = statuses.filter(|status| codes.container.as_ref().is_none_or(|name| *name == status.name));
    named.find_map(|status| {
        let code = status.terminated?.exit_code;
        let listed = codes.values.contains(&code);
        let fits = match codes.operator {
            ExitCodeOperator::In => listed,
            ExitCodeOperator::NotIn => !listed,
            ExitCodeOperator::Unknown => false,
        };
        (code != 0 && fits)
            .then(|| format!("Container {} for pod {} failed with exit code {code}", status.name, pod.key))
    })
}

fn condition(pattern: &PodConditionPattern, pod: &Pod) -> Option<String> {
    let same = |found: &&crate::model::PodCondition| {
        found.condition_type == pattern.condition_type && found.status == pattern.status
    };
    let found = pod.conditions.iter().find(same)?;
    Some(format!("Pod {} has condition {}", pod.key, found.condition_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::{job, pod};
    use crate::model::{ConditionStatus, ContainerStatus, PodCondition, Termination};
    use ConditionStatus::{False, True, Unknown};
    use PodFailureAction::{Count, FailIndex, FailJob, Ignore};

    fn codes(container: Option<&str>, operator: ExitCodeOperator, values: &[i32]) -> PodFailureRule {
        let on_exit_codes = Some(ExitCodes { container: container.map(Into::into), operator, values: values.to_vec() });
        PodFailureRule { action: FailJob, on_exit_codes, on_pod_conditions: Vec::new() }
    }

    fn conditions(patterns: &[(&str, ConditionStatus)]) -> PodFailureRule {
        let pattern = |(name, status): &(&str, ConditionStatus)| PodConditionPattern {
            condition_type: (*name).into(),
            status: *status,
        };
        let on_pod_conditions = patterns.iter().map(pattern).collect();
        PodFailureRule { action: FailJob, on_exit_codes: None, on_pod_conditions }
    }

    fn ended_with(main: i32, init: i32) -> Pod {
        let status = |name: &str, exit_code| ContainerStatus {
            name: name.into(),
            terminated: Some(Termination { exit_code, finished_at: None }),
            ..ContainerStatus::default()
        };
        Pod { containers: vec![status("main", main)], init_containers: vec![status("init", init)], ..pod("a") }
    }

    fn judged(rules: &[PodFailureRule], pod: &Pod) -> FailureMatch {
        let mut job = job();
        job.spec.pod_failure_policy = Some(rules.to_vec());
        judge(pod, &job)
    }

    #[test]
    fn exit_codes_match_by_operator_and_container() {
        use ExitCodeOperator::{In, NotIn, Unknown};
        for (container, operator, values, main, init, expected) in [
            (None, In, &[2, 5][..], 5, 0, Some("main")),
            (None, In, &[2, 5], 3, 0, None),
            (None, In, &[-1], -1, 0, Some("main")),
            (None, NotIn, &[5], 3, 0, Some("main")),
            (None, NotIn, &[5], 5, 0, None),
            (None, NotIn, &[5], 0, 0, None),
            (None, In, &[0], 0, 0, None),
            (None, In, &[7], 0, 7, Some("init")),
            (Some("init"), In, &[7], 7, 0, None),
            (Some("init"), In, &[7], 7, 7, Some("init")),
            (None, Unknown, &[7], 7, 7, None),
        ] {
            let found = judged(&[codes(container, operator, values)], &ended_with(main, init));
            let code = if expected == Some("init") { init } else { main };
            let message = expected.map(|name| {
                format!("Container {name} for pod ns/a failed with exit code {code} matching FailJob rule at index 0")
            });
            assert_eq!(found.message, message, "{container:?} {operator:?} {values:?} {main} {init}");
        }
    }

    #[test]
    fn conditions_match_by_type_and_status() {
        let has = |name: &str, status| Pod {
            conditions: vec![PodCondition { condition_type: name.into(), status, last_transition_time: None }],
            ..pod("a")
        };
        for (name, status, matches) in
            [("Disrupted", True, true), ("Disrupted", False, false), ("Lost", Unknown, true), ("Other", True, false)]
        {
            let rule = conditions(&[("Disrupted", True), ("Lost", Unknown)]);
            let message = matches.then(|| format!("Pod ns/a has condition {name} matching FailJob rule at index 0"));
            assert_eq!(judged(&[rule], &has(name, status)).message, message, "{name} {status:?}");
        }
    }

    #[test]
    fn the_first_matching_rule_decides_and_unknown_actions_are_passed_over() {
        let rule = |action, value| PodFailureRule { action, ..codes(None, ExitCodeOperator::In, &[value]) };
        for (actions, expected, counts) in [
            (&[(Ignore, 1), (FailJob, 1)][..], Some(Ignore), false),
            (&[(Count, 2), (FailIndex, 1)], Some(FailIndex), true),
            (&[(PodFailureAction::Unknown, 1), (Count, 1)], Some(Count), true),
            (&[(FailJob, 2)], None, true),
        ] {
            let rules: Vec<PodFailureRule> = actions.iter().map(|(action, value)| rule(*action, *value)).collect();
            let found = judged(&rules, &ended_with(1, 0));
            assert_eq!((found.action, found.counts()), (expected, counts), "{actions:?}");
        }
        let second = [rule(Count, 2), rule(FailJob, 1)];
        assert!(judged(&second, &ended_with(1, 0)).message.unwrap().ends_with("rule at index 1"));
        assert!(judge(&ended_with(1, 0), &job()).counts());
    }
}
