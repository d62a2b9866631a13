//! The Lease as a record: the few fields that an election reads and writes, inside the whole object as the server sent it.
//!
//! Invariant: whatever else stands in the object (labels, `strategy`, `preferredHolder`, fields of later versions) is sent back
//! as it came.

use std::time::Duration;

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};

use crate::model::{ApiFailure, ObjectReference, Uid, WallTime};

pub(super) const API_VERSION: &str = "coordination.k8s.io/v1";

/// A Lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lease {
    /// The object but for its `spec`.
    rest: Map<String, Value>,
    /// The record.
    spec: Map<String, Value>,
}

impl Lease {
    /// Reads the server's form.
    ///
    /// # Errors
    /// The body is no JSON object; the failure counts as no answer.
    pub(super) fn parse(body: &[u8]) -> Result<Self, ApiFailure> {
        let read: Result<Map<String, Value>, _> = serde_json::from_slice(body);
        let mut rest = read.map_err(|error| unreadable(&error.to_string()))?;
        let spec = match rest.remove("spec") {
            Some(Value::Object(spec)) => spec,
            _ => Map::new(),
        };
        Ok(Self { rest, spec })
    }

    /// A Lease that the server does not have yet.
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        let fields = [
            ("apiVersion", json!(API_VERSION)),
            ("kind", json!("Lease")),
            ("metadata", json!({"namespace": namespace, "name": name})),
        ];
        Self { rest: fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(), spec: Map::new() }
    }

    /// Who holds it; empty when nobody does.
    pub(super) fn holder(&self) -> &str {
        self.spec.get("holderIdentity").and_then(Value::as_str).unwrap_or_default()
    }

    /// How long it is valid after its last renewal; zero when it does not say.
    pub(super) fn duration(&self) -> Duration {
        let seconds = self.spec.get("leaseDurationSeconds").and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or_default())
    }

    /// How often it went to another holder.
    pub(super) fn transitions(&self) -> i64 {
        self.spec.get("leaseTransitions").and_then(Value::as_i64).unwrap_or_default()
    }

    /// `metadata.resourceVersion`.
    pub(super) fn version(&self) -> &str {
        self.metadata("resourceVersion")
    }

    /// Whether the record, not only the object around it, is another than that of `before`.
    pub(super) fn differs_from(&self, before: &Self) -> bool {
        self.spec != before.spec
    }

    /// The same Lease, held and renewed by `identity`. Who holds it already keeps its acquireTime and its transitions.
    pub(super) fn claimed(&self, identity: &str, duration: Duration, now: WallTime) -> Self {
        let is_new = self.version().is_empty();
        let goes_over = self.holder() != identity;
        let transitions = self.transitions().saturating_add(i64::from(goes_over && !is_new)).clamp(0, i32::MAX.into());
        let mut claimed = self.clone();
        let spec = &mut claimed.spec;
        spec.insert("holderIdentity".into(), json!(identity));
        spec.insert("leaseDurationSeconds".into(), json!(duration.as_secs()));
        spec.insert("renewTime".into(), micros(now));
        spec.insert("leaseTransitions".into(), json!(transitions));
        if goes_over {
            spec.insert("acquireTime".into(), micros(now));
        }
        claimed
    }

    /// The same Lease without a holder, for anybody to take at once.
    pub(super) fn released(&self, now: WallTime) -> Self {
        let mut released = self.clone();
        let spec = &mut released.spec;
        spec.insert("holderIdentity".into(), json!(""));
        // The server takes no zero.
        spec.insert("leaseDurationSeconds".into(), json!(1));
        spec.insert("renewTime".into(), micros(now));
        spec.insert("acquireTime".into(), micros(now));
        released
    }

    /// The body of a request.
    pub(super) fn body(&self) -> Vec<u8> {
        let mut object = self.rest.clone();
        object.insert("spec".into(), Value::Object(self.spec.clone()));
        Value::Object(object).to_string().into_bytes()
    }

    /// What an event about it names.
    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            kind: "Lease".into(),
            api_version: API_VERSION.into(),
            namespace: self.metadata("namespace").into(),
            name: self.metadata("name").into(),
            uid: Uid::from(self.metadata("uid")),
            resource_version: self.version().into(),
            field_path: Box::default(),
        }
    }

    fn metadata(&self, field: &str) -> &str {
        let metadata = self.rest.get("metadata");
        metadata.and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A MicroTime.
fn micros(at: WallTime) -> Value {
    json!(at.to_rfc3339_opts(SecondsFormat::Micros, true))
}

fn unreadable(why: &str) -> ApiFailure {
    ApiFailure { message: format!("the Lease cannot be read: {why}").into(), ..ApiFailure::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;

    fn noon() -> WallTime {
        chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap() + chrono::TimeDelta::microseconds(7)
    }

    fn lease(spec: &Value) -> Lease {
        let metadata = json!({"name": "l", "namespace": "n", "resourceVersion": "5", "labels": {"team": "a"}});
        let object =
            json!({"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec, "later": 1});
        Lease::parse(object.to_string().as_bytes()).unwrap()
    }

    fn spec_of(lease: &Lease) -> Value {
        serde_json::from_slice::<Value>(&lease.body()).unwrap()["spec"].clone()
    }

    const FIFTEEN: Duration = Duration::from_secs(15);

    #[test]
    fn a_claim_writes_the_peers_record() {
        let claimed = Lease::new("n", "l").claimed("me", FIFTEEN, noon());
        let at = "2026-03-08T12:00:00.000007Z";
        assert_eq!(
            spec_of(&claimed),
            json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": at, "renewTime": at, "leaseTransitions": 0})
        );
    }

    #[test]
    fn a_renewal_keeps_acquire_time_and_transitions_and_a_take_over_counts() {
        let held = lease(
            &json!({"holderIdentity": "me", "leaseDurationSeconds": 3, "acquireTime": "then", "leaseTransitions": 4}),
        );
        let renewed = spec_of(&held.claimed("me", FIFTEEN, noon()));
        assert_eq!((&renewed["acquireTime"], &renewed["leaseTransitions"]), (&json!("then"), &json!(4)));
        let taken = spec_of(&held.claimed("other", FIFTEEN, noon()));
        assert_eq!((&taken["acquireTime"], &taken["leaseTransitions"]), (&taken["renewTime"], &json!(5)));
    }

    #[test]
    fn what_we_do_not_know_survives() {
        let mut held =
            lease(&json!({"holderIdentity": "x", "strategy": "OldestEmulationVersion", "preferredHolder": "y"}));
        held = held.claimed("me", FIFTEEN, noon()).released(noon());
        let object: Value = serde_json::from_slice(&held.body()).unwrap();
        assert_eq!(object["metadata"]["labels"], json!({"team": "a"}));
        assert_eq!(object["later"], 1);
        assert_eq!(
            (&object["spec"]["strategy"], &object["spec"]["preferredHolder"]),
            (&json!("OldestEmulationVersion"), &json!("y"))
        );
        assert_eq!((held.holder(), held.duration(), held.transitions()), ("", Duration::from_secs(1), 1));
    }

    #[test]
    fn a_record_without_anything_is_free_and_can_be_claimed() {
        for spec in [json!({}), Value::Null, json!("x"), json!({"holderIdentity": null, "leaseDurationSeconds": -1})] {
            let empty = lease(&spec);
            assert_eq!((empty.holder(), empty.duration()), ("", Duration::ZERO));
            assert_eq!(empty.claimed("me", FIFTEEN, noon()).transitions(), 1);
        }
        assert!(Lease::parse(b"[]").unwrap_err().is_ambiguous());
        assert!(Lease::parse(b"<html>").unwrap_err().is_ambiguous());
    }

    #[test]
    fn a_record_differs_only_by_its_spec() {
        let (a, b) = (lease(&json!({"holderIdentity": "x"})), lease(&json!({"holderIdentity": "y"})));
        assert!(a.differs_from(&b) && !a.differs_from(&a.clone()));
    }

    #[test]
    fn transitions_stay_in_the_range_of_the_field() {
        let held = lease(&json!({"holderIdentity": "x", "leaseTransitions": i32::MAX}));
        assert_eq!(held.claimed("me", FIFTEEN, noon()).transitions(), i64::from(i32::MAX));
    }
}
