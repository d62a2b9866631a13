//! Labels and the selectors of objects that carry them.

use std::collections::BTreeMap;

/// `metadata.labels`.
pub type Labels = BTreeMap<Box<str>, Box<str>>;

/// A `metav1.LabelSelector`. All its terms must hold; one without terms selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    /// `matchLabels`.
    pub match_labels: Labels,
    /// `matchExpressions`.
    pub match_expressions: Vec<LabelRequirement>,
}

/// An entry of `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelRequirement {
    /// `key`.
    pub key: Box<str>,
    /// `operator`.
    pub operator: LabelOperator,
    /// `values`; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<Box<str>>,
}

/// `operator` of a [`LabelRequirement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelOperator {
    /// The label has one of the values.
    In,
    /// It has none of them, or is missing.
    NotIn,
    /// The label is there.
    Exists,
    /// It is not.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }
}

impl LabelRequirement {
    fn holds(&self, labels: &Labels) -> bool {
        let found = labels.get(&self.key);
        match self.operator {
            LabelOperator::In => found.is_some_and(|value| self.values.contains(value)),
            LabelOperator::NotIn => found.is_none_or(|value| !self.values.contains(value)),
            LabelOperator::Exists => found.is_some(),
            LabelOperator::DoesNotExist => found.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn requires(operator: LabelOperator, values: &[&str]) -> LabelSelector {
        let values = values.iter().map(|value| (*value).into()).collect();
        let requirement = LabelRequirement { key: "a".into(), operator, values };
        LabelSelector { match_expressions: vec![requirement], ..LabelSelector::default() }
    }

    #[test]
    fn every_term_must_hold() {
        let both = LabelSelector { match_labels: labels(&[("a", "1"), ("b", "2")]), ..LabelSelector::default() };
        assert!(both.matches(&labels(&[("a", "1"), ("b", "2"), ("c", "3")])));
        assert!(!both.matches(&labels(&[("a", "1")])));
        assert!(LabelSelector::default().matches(&labels(&[])));
    }

    #[test]
    fn operators_differ_on_other_values_and_on_missing_labels() {
        use LabelOperator::{DoesNotExist, Exists, In, NotIn};
        for (operator, values, same, other, missing) in [
            (In, &["1"][..], true, false, false),
            (NotIn, &["1"][..], false, true, true),
            (Exists, &[][..], true, true, false),
            (DoesNotExist, &[][..], false, false, true),
        ] {
            let selector = requires(operator, values);
            let found = [&[("a", "1")][..], &[("a", "2")], &[]].map(|pairs| selector.matches(&labels(pairs)));
            assert_eq!(found, [same, other, missing], "{operator:?}");
        }
    }
}
