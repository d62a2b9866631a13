//! What a new Pod has beyond its template, as data: whoever makes the body adds it to the template's bytes.

use super::names::{
    API_VERSION, COMPLETION_INDEX, COMPLETION_INDEX_VARIABLE, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, KIND,
    TRACKING_FINALIZER,
};
use super::per_index::IndexFailures;
use crate::model::{BatchJob, OwnerReference};

/// The longest `generateName` of a Pod with an index: the server appends five characters, and a label has 63.
const MAX_GENERATE_NAME: usize = 58;
/// The longest `generateName` that passes as a name.
const MAX_NAME: usize = 253;

/// Additions to the template's labels, annotations, finalizers and spec. Of the template's metadata only these three are taken
/// over. Where a name is in the template already, the addition wins, but for the variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodAdditions {
    /// `metadata.generateName`.
    pub generate_name: Box<str>,
    /// The one owner reference, with `controller` and `blockOwnerDeletion` true.
    pub owner: OwnerReference,
    /// To be in `metadata.finalizers`, once.
    pub finalizer: &'static str,
    /// What a Pod with an index has.
    pub index: Option<IndexAdditions>,
}

/// Additions to the Pod of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexAdditions {
    /// The index.
    pub index: i32,
    /// `spec.hostname`.
    pub hostname: Box<str>,
    /// Where indexes fail by themselves: the failures before this Pod.
    pub failures: Option<IndexFailures>,
}

impl PodAdditions {
    /// For a Pod of the Job, of an index with the failures before it or of none.
    pub fn new(job: &BatchJob, index: Option<(i32, Option<IndexFailures>)>) -> Self {
        let name = &*job.key.name;
        let additions =
            |(index, failures)| IndexAdditions { index, hostname: format!("{name}-{index}").into(), failures };
        Self {
            generate_name: generate_name(name, index.map(|(index, _)| index)).into(),
            owner: OwnerReference {
                api_version: API_VERSION.into(),
                kind: KIND.into(),
                name: name.into(),
                uid: job.uid.clone(),
            },
            finalizer: TRACKING_FINALIZER,
            index: index.map(additions),
        }
    }

    /// The index, if the Pod has one.
    pub fn completion_index(&self) -> Option<i32> {
        self.index.as_ref().map(|additions| additions.index)
    }
}

impl IndexAdditions {
    /// Names and values of added labels.
    pub fn labels(&self) -> Vec<(&'static str, String)> {
        vec![(COMPLETION_INDEX, self.index.to_string())]
    }

    /// Names and values of added annotations.
    pub fn annotations(&self) -> Vec<(&'static str, String)> {
        let mut annotations = vec![(COMPLETION_INDEX, self.index.to_string())];
        if let Some(IndexFailures { counted, ignored }) = self.failures {
            annotations.push((INDEX_FAILURE_COUNT, counted.to_string()));
            if ignored > 0 {
                annotations.push((INDEX_IGNORED_FAILURE_COUNT, ignored.to_string()));
            }
        }
        annotations
    }

    /// Name of the variable that each container and init container gets unless it has it, and the field that it shows.
    pub fn variable() -> (&'static str, String) {
        (COMPLETION_INDEX_VARIABLE, format!("metadata.labels['{COMPLETION_INDEX}']"))
    }
}

fn generate_name(job: &str, index: Option<i32>) -> String {
    match index {
        None if job.len() < MAX_NAME => format!("{job}-"),
        None => job.to_owned(),
        Some(index) => {
            let suffix = format!("-{index}-");
            // Names are ASCII; a cut within a character would only ever shorten more.
            let room = MAX_GENERATE_NAME.saturating_sub(suffix.len()).min(job.len());
            let kept = (0..=room).rev().find_map(|length| job.get(..length)).unwrap_or_default();
            format!("{kept}{suffix}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::job;

    #[test]
    fn names_are_cut_so_that_the_server_can_append_to_them() {
        assert_eq!(generate_name("train", None), "train-");
        assert_eq!(generate_name(&"x".repeat(252), None).len(), 253);
        assert_eq!(generate_name(&"x".repeat(253), None), "x".repeat(253));
        assert_eq!(generate_name("train", Some(7)), "train-7-");
        let long = "x".repeat(63);
        for (index, kept) in [(0, 55), (10, 54), (99_999, 51)] {
            let name = generate_name(&long, Some(index));
            assert_eq!((name.len(), name.strip_suffix(&format!("-{index}-")).map(str::len)), (58, Some(kept)));
        }
        assert_eq!(generate_name(&"ü".repeat(40), Some(0)), format!("{}-0-", "ü".repeat(27)));
    }

    #[test]
    fn a_pod_of_an_index_has_label_annotations_hostname_and_variable() {
        let failures = Some(IndexFailures { counted: 2, ignored: 1 });
        let additions = PodAdditions::new(&job(), Some((3, failures)));
        let index = additions.index.clone().unwrap();
        assert_eq!((&*index.hostname, additions.completion_index()), ("job-3", Some(3)));
        assert_eq!(index.labels(), [(COMPLETION_INDEX, "3".to_owned())]);
        let expected = [(COMPLETION_INDEX, "3"), (INDEX_FAILURE_COUNT, "2"), (INDEX_IGNORED_FAILURE_COUNT, "1")];
        assert_eq!(index.annotations(), expected.map(|(name, value)| (name, value.to_owned())));
        let first = IndexAdditions { failures: Some(IndexFailures::default()), ..index };
        assert_eq!(first.annotations().len(), 2);
        assert_eq!(IndexAdditions { failures: None, ..first }.annotations().len(), 1);
        assert_eq!(IndexAdditions::variable().1, "metadata.labels['batch.kubernetes.io/job-completion-index']");
    }

    #[test]
    fn every_pod_belongs_to_its_job_and_is_tracked() {
        let additions = PodAdditions::new(&job(), None);
        assert_eq!((additions.finalizer, additions.index), (TRACKING_FINALIZER, None));
        let OwnerReference { api_version, kind, name, uid } = additions.owner;
        assert_eq!([&*api_version, &*kind, &*name, uid.as_str()], ["batch/v1", "Job", "job", "job-uid"]);
    }
}
