//! Names: object keys, uids, resource versions, and the name of a Job.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::WallTime;

/// Which of the two CronJob APIs an object belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flavor {
    /// `batch/v1`.
    Kubernetes,
    /// `batch.volcano.sh/v1alpha1`.
    Volcano,
}

/// Namespace and name of one object; the key of work queues, actors and caches. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    /// `namespace/name`, the form of a work-queue key in the peers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// `metadata.uid`: one incarnation of an object. Cheap to clone; may be empty in objects that never saw a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Arc<str>);

impl Uid {
    /// The text of the uid.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is no uid.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Into<Arc<str>>> From<T> for Uid {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Minutes since the Unix epoch of a due instant, truncated toward zero as the peers do: the suffix of the Job's name.
pub fn unix_minutes(at: WallTime) -> i64 {
    at.timestamp() / 60
}

/// Name of the Job that a CronJob starts for a due instant: `<cronjob>-<unix minutes>`.
pub fn job_name(cronjob: &str, at: WallTime) -> String {
    format!("{cronjob}-{}", unix_minutes(at))
}

/// Orders two resource versions of one resource type (KEP-5504: decimal numbers without leading zero, compared by length,
/// then by digits). `None` when either is not such a number; then nobody may conclude anything from the order.
pub fn newer_version(a: &str, b: &str) -> Option<Ordering> {
    let sound = |v: &str| !v.is_empty() && !v.starts_with('0') && v.bytes().all(|c| c.is_ascii_digit());
    (sound(a) && sound(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;

    #[test]
    fn a_job_is_named_after_the_minutes_since_the_epoch() {
        let at = chrono::Utc.timestamp_opt(1_736_937_000, 0).unwrap();
        assert_eq!(job_name("train", at), "train-28948950");
    }

    #[test]
    fn minutes_before_the_epoch_truncate_toward_zero() {
        assert_eq!(unix_minutes(chrono::Utc.timestamp_opt(-59, 0).unwrap()), 0);
        assert_eq!(unix_minutes(chrono::Utc.timestamp_opt(-61, 0).unwrap()), -1);
    }

    #[test]
    fn versions_compare_as_numbers_of_any_length() {
        assert_eq!(newer_version("9", "10"), Some(Ordering::Less));
        assert_eq!(newer_version("123456789012345678901234567890", "9"), Some(Ordering::Greater));
        assert_eq!(newer_version("7", "7"), Some(Ordering::Equal));
        assert_eq!(newer_version("", "7"), None);
        assert_eq!(newer_version("07", "7"), None);
        assert_eq!(newer_version("a", "7"), None);
    }
}
