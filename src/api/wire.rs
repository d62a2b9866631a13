//! One row per API: names, versions, annotation and paths; and the paths of Pods.

use super::selector::query_text;
use crate::model::{Flavor, LabelSelector};

/// The constants of one CronJob API and of the Job API it starts Jobs in (both live in the same group and version).
#[derive(Debug, PartialEq, Eq)]
pub struct Wire {
    /// API group.
    pub group: &'static str,
    /// `apiVersion` of CronJobs and of their Jobs.
    pub api_version: &'static str,
    /// How the server's messages name the Job resource, for example `jobs.batch`.
    pub jobs_resource: &'static str,
    /// Annotation on a Job that carries its due instant.
    pub scheduled_annotation: &'static str,
    /// Whether the peer writes the due instant into `metadata.creationTimestamp` of the Job it sends; the server replaces it.
    pub sends_creation_time: bool,
    /// `propagationPolicy` of deletions; without one, custom resources are deleted in the background by default.
    pub propagation: Option<&'static str>,
}

static KUBERNETES: Wire = Wire {
    group: "batch",
    api_version: "batch/v1",
    jobs_resource: "jobs.batch",
    scheduled_annotation: "batch.kubernetes.io/cronjob-scheduled-timestamp",
    sends_creation_time: true,
    propagation: Some("Background"),
};

static VOLCANO: Wire = Wire {
    group: "batch.volcano.sh",
    api_version: "batch.volcano.sh/v1alpha1",
    jobs_resource: "jobs.batch.volcano.sh",
    scheduled_annotation: "volcano.sh/cronjob-scheduled-timestamp",
    sends_creation_time: false,
    propagation: None,
};

/// The row of a flavor.
pub fn wire(flavor: Flavor) -> &'static Wire {
    match flavor {
        Flavor::Kubernetes => &KUBERNETES,
        Flavor::Volcano => &VOLCANO,
    }
}

impl Wire {
    /// Path of all CronJobs, in every namespace or in one: what is listed and watched.
    pub fn cronjobs_path(&self, namespace: Option<&str>) -> String {
        self.collection("cronjobs", namespace)
    }

    /// Path of all Jobs, in every namespace or in one; with a namespace, also where Jobs are created (POST).
    pub fn jobs_path(&self, namespace: Option<&str>) -> String {
        self.collection("jobs", namespace)
    }

    /// Path of one CronJob (GET).
    pub fn cronjob_path(&self, namespace: &str, name: &str) -> String {
        self.object("cronjobs", namespace, name)
    }

    /// Path of the status subresource of one CronJob (PATCH, `application/merge-patch+json`).
    pub fn cronjob_status_path(&self, namespace: &str, name: &str) -> String {
        self.object("cronjobs", namespace, name) + "/status"
    }

    /// Path of the status subresource of one Job (PATCH, `application/merge-patch+json`).
    pub fn job_status_path(&self, namespace: &str, name: &str) -> String {
        self.object("jobs", namespace, name) + "/status"
    }

    /// Path of one Job (GET, DELETE).
    pub fn job_path(&self, namespace: &str, name: &str) -> String {
        self.object("jobs", namespace, name)
    }

    fn collection(&self, plural: &str, namespace: Option<&str>) -> String {
        let api = self.api_version;
        match namespace {
            None => format!("/apis/{api}/{plural}"),
            Some(namespace) => format!("/apis/{api}/namespaces/{}/{plural}", Segment(namespace)),
        }
    }

    fn object(&self, plural: &str, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(plural, Some(namespace)), Segment(name))
    }
}

/// What lists and watches of Pods leave out: whatever a Job starts ends by itself, so the server need not send the Pods of
/// everybody else. (`fieldSelector`, not encoded. The field cannot change.)
pub const PODS_THAT_END: &str = "spec.restartPolicy!=Always";

/// Path of all Pods, in every namespace (list, watch).
pub const ALL_PODS_PATH: &str = "/api/v1/pods";

/// Path of the Pods of a namespace (list, POST).
pub fn pods_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/pods", Segment(namespace))
}

/// Path of one Pod (PATCH, DELETE).
pub fn pod_path(namespace: &str, name: &str) -> String {
    format!("{}/{}", pods_path(namespace), Segment(name))
}

/// Path and query that list the Pods of a namespace that a selector selects, as the server has them (no resource version).
pub fn pods_query(namespace: &str, selector: &LabelSelector) -> String {
    let labels = query_text(selector);
    format!("{}?labelSelector={}&fieldSelector={}", pods_path(namespace), Segment(&labels), Segment(PODS_THAT_END))
}

/// One path segment, percent-encoded: names in a status were written by users and may hold anything.
struct Segment<'a>(&'a str);

impl std::fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A lone dot or two would be swallowed by path normalisation.
        let dots = matches!(self.0, "." | "..");
        for byte in self.0.bytes() {
            match byte {
                b'.' if dots => f.write_str("%2E")?,
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    std::fmt::Write::write_char(f, byte.into())?;
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_both_apis() {
        let k = wire(Flavor::Kubernetes);
        assert_eq!(k.cronjobs_path(None), "/apis/batch/v1/cronjobs");
        assert_eq!(k.jobs_path(Some("prod")), "/apis/batch/v1/namespaces/prod/jobs");
        assert_eq!(k.job_path("prod", "a-1"), "/apis/batch/v1/namespaces/prod/jobs/a-1");
        let v = wire(Flavor::Volcano);
        assert_eq!(
            v.cronjob_status_path("prod", "train"),
            "/apis/batch.volcano.sh/v1alpha1/namespaces/prod/cronjobs/train/status"
        );
    }

    #[test]
    fn a_name_from_a_status_cannot_leave_its_place_in_the_path() {
        let k = wire(Flavor::Kubernetes);
        assert_eq!(k.job_path("..", "../x?y"), "/apis/batch/v1/namespaces/%2E%2E/jobs/..%2Fx%3Fy");
    }
}
