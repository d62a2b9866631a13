//! Whole objects through [`decode`] and [`admit`], with the messages that users read.

use super::*;
use crate::sandbox::resources::find;
use serde_json::json;

fn batch(plural: &str) -> &'static Resource {
    find("batch", "v1", plural).unwrap()
}

fn volcano(plural: &str) -> &'static Resource {
    find("batch.volcano.sh", "v1alpha1", plural).unwrap()
}

fn cronjob(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "etl", "namespace": "default", "uid": "u"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}}}}
    });
    merge(&mut object["spec"], spec);
    object
}

fn job(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default", "uid": "u-1"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]}}}
    });
    merge(&mut object["spec"], spec);
    object
}

fn vc_cronjob(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "train", "namespace": "default"},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"tasks": [{"replicas": 2, "template": {"spec": {
            "containers": [{"name": "c", "image": "x"}]}}}]}}}
    });
    merge(&mut object["spec"], spec);
    object
}

fn merge(target: &mut Value, patch: Value) {
    json_patch::merge(target, &patch);
}

fn created(resource: &'static Resource, mut object: Value) -> Result<Value, Invalid> {
    admit(resource, Operation::Create, &mut object, None).map(|_| object)
}

fn refused(resource: &'static Resource, object: Value) -> Invalid {
    created(resource, object).unwrap_err()
}

/// The messages of the causes, `field: message`.
fn causes(invalid: &Invalid) -> Vec<String> {
    invalid.causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

#[test]
fn a_cronjob_gets_its_defaults_and_its_job_template_only_those_of_pods() {
    let object = created(batch("cronjobs"), cronjob(json!({}))).unwrap();
    let spec = &object["spec"];
    assert_eq!(spec["concurrencyPolicy"], "Allow");
    assert_eq!(spec["suspend"], false);
    assert_eq!((&spec["successfulJobsHistoryLimit"], &spec["failedJobsHistoryLimit"]), (&json!(3), &json!(1)));
    let job = &spec["jobTemplate"]["spec"];
    assert_eq!(job.get("completions"), None);
    assert_eq!(
        job["template"]["spec"],
        json!({
            "restartPolicy": "Never", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "c", "image": "busybox", "imagePullPolicy": "Always", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}]
        })
    );
}

#[test]
fn an_invalid_cronjob_is_refused_in_upstreams_words() {
    let one = |spec| refused(batch("cronjobs"), cronjob(spec)).to_string();
    assert_eq!(
        one(json!({"schedule": "x"})),
        r#"CronJob.batch "etl" is invalid: spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]"#
    );
    assert_eq!(
        one(json!({"schedule": "61 * * * *"})),
        r#"CronJob.batch "etl" is invalid: spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61"#
    );
    assert_eq!(one(json!({"schedule": ""})), r#"CronJob.batch "etl" is invalid: spec.schedule: Required value"#);
    assert_eq!(
        one(json!({"concurrencyPolicy": "Never"})),
        r#"CronJob.batch "etl" is invalid: spec.concurrencyPolicy: Unsupported value: "Never": supported values: "Allow", "Forbid", "Replace""#
    );
    let invalid =
        refused(batch("cronjobs"), cronjob(json!({"startingDeadlineSeconds": -1, "successfulJobsHistoryLimit": -2})));
    assert_eq!((invalid.code, invalid.reason), (422, "Invalid"));
    assert_eq!(
        invalid.to_string(),
        r#"CronJob.batch "etl" is invalid: [spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0, spec.successfulJobsHistoryLimit: Invalid value: -2: must be greater than or equal to 0]"#
    );
    assert_eq!(invalid.causes[0].reason, "FieldValueInvalid");
}

#[test]
fn a_zone_in_the_schedule_is_refused_unless_it_was_there_before() {
    let with_zone = cronjob(json!({"schedule": "TZ=UTC 0 * * * *"}));
    assert_eq!(
        causes(&refused(batch("cronjobs"), with_zone.clone())),
        [
            r#"spec.schedule: Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead"#
        ]
    );
    let mut update = cronjob(json!({"schedule": "TZ=UTC 5 * * * *"}));
    let warnings = admit(batch("cronjobs"), Operation::Update, &mut update, Some(&with_zone)).unwrap();
    assert!(warnings[0].starts_with("cannot use TZ or CRON_TZ in spec.spec.schedule"));
    let mut both = cronjob(json!({"schedule": "TZ=UTC 5 * * * *", "timeZone": "UTC"}));
    let invalid = admit(batch("cronjobs"), Operation::Update, &mut both, Some(&with_zone)).unwrap_err();
    assert!(invalid.to_string().ends_with("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
}

#[test]
fn time_zones_are_checked_when_they_are_new() {
    let of = |zone: &str| causes(&refused(batch("cronjobs"), cronjob(json!({"timeZone": zone}))));
    assert_eq!(of(""), [r#"spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string"#]);
    assert_eq!(of("a//b"), [r#"spec.timeZone: Invalid value: "a//b": unknown time zone a//b"#]);
    assert_eq!(of("Mars/Base"), [r#"spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base"#]);
    assert_eq!(of("Local").len(), 1);
    assert_eq!(of("LOCAL").len(), 2);
    let old = cronjob(json!({"timeZone": "Mars/Base"}));
    let mut same = old.clone();
    admit(batch("cronjobs"), Operation::Update, &mut same, Some(&old)).unwrap();
}

#[test]
fn the_length_of_a_cronjobs_name_counts_only_on_create() {
    let mut long = cronjob(json!({}));
    long["metadata"]["name"] = "a".repeat(53).into();
    let invalid = refused(batch("cronjobs"), long.clone());
    assert!(invalid.to_string().ends_with("must be no more than 52 characters"), "{invalid}");
    admit(batch("cronjobs"), Operation::Update, &mut long.clone(), Some(&long)).unwrap();
    let mut dotted = cronjob(json!({}));
    dotted["metadata"]["name"] = "a.b".into();
    let warnings = admit(batch("cronjobs"), Operation::Create, &mut dotted, None).unwrap();
    assert!(warnings[0].contains("a DNS label is recommended: [must not contain dots]"), "{warnings:?}");
}

#[test]
fn a_job_template_needs_containers_a_restart_policy_and_no_selector() {
    let template = |spec: Value| json!({"jobTemplate": {"spec": spec}});
    let of = |spec| causes(&refused(batch("cronjobs"), cronjob(template(spec))));
    assert_eq!(
        of(json!({"template": {"spec": {"restartPolicy": "Always"}}})),
        [r#"spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#]
    );
    assert_eq!(
        of(json!({"template": {"spec": {"containers": []}}})),
        ["spec.jobTemplate.spec.template.spec.containers: Required value"]
    );
    assert_eq!(
        of(json!({"template": {"spec": {"containers": [{"name": "A"}]}}})).last().unwrap(),
        "spec.jobTemplate.spec.template.spec.containers[0].image: Required value"
    );
    assert_eq!(
        of(json!({"selector": {}, "manualSelector": true})),
        [
            "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
            r#"spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false""#
        ]
    );
}

#[test]
fn a_job_gets_defaults_generated_labels_and_a_selector() {
    let object = created(batch("jobs"), job(json!({}))).unwrap();
    let spec = &object["spec"];
    for (field, value) in [
        ("completions", json!(1)),
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ("selector", json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}})),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    let labels = json!({"batch.kubernetes.io/controller-uid": "u-1", "controller-uid": "u-1",
        "batch.kubernetes.io/job-name": "j", "job-name": "j"});
    assert_eq!(spec["template"]["metadata"]["labels"], labels);
    assert_eq!(object["metadata"]["labels"], labels);
    assert_eq!(spec["template"]["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    let queue = created(batch("jobs"), job(json!({"parallelism": 2}))).unwrap();
    assert_eq!(queue["spec"].get("completions"), None);
}

#[test]
fn what_a_job_is_made_of_never_changes() {
    let old = created(batch("jobs"), job(json!({}))).unwrap();
    let update = |patch: Value| {
        let mut new = old.clone();
        merge(&mut new, patch);
        admit(batch("jobs"), Operation::Update, &mut new, Some(&old)).map_err(|invalid| causes(&invalid))
    };
    update(json!({"spec": {"parallelism": 3, "suspend": true, "backoffLimit": 1}})).unwrap();
    assert_eq!(
        update(json!({"spec": {"completions": 2}})).unwrap_err(),
        ["spec.completions: Invalid value: 2: field is immutable"]
    );
    let template = update(json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}})).unwrap_err();
    assert!(template[0].starts_with("spec.template: Invalid value: {"), "{template:?}");
    assert!(template[0].ends_with(": field is immutable"));
}

#[test]
fn a_suspended_job_that_has_not_started_may_be_aimed_elsewhere() {
    let old = created(batch("jobs"), job(json!({"suspend": true}))).unwrap();
    let update = |patch: Value| {
        let mut new = old.clone();
        merge(&mut new, patch);
        admit(batch("jobs"), Operation::Update, &mut new, Some(&old))
    };
    let aim = json!({"nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {"x": []}}});
    update(json!({"spec": {"suspend": false, "template": {"spec": aim}}})).unwrap();
    let resources = json!([{"name": "c", "image": "busybox:1", "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "resources": {"limits": {"cpu": "2"}}}]);
    update(json!({"spec": {"template": {"spec": {"containers": resources}}}})).unwrap();
    update(json!({"spec": {"template": {"spec": {"priorityClassName": "p"}}}})).unwrap_err();
}

#[test]
fn a_job_needs_indexes_where_they_count() {
    let of = |spec| causes(&refused(batch("jobs"), job(spec)));
    assert_eq!(
        of(json!({"completionMode": "Indexed", "parallelism": 1})),
        ["spec.completions: Required value: when completion mode is Indexed"]
    );
    assert_eq!(
        of(json!({"backoffLimitPerIndex": 1})),
        ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]
    );
}

#[test]
fn a_volcano_cronjob_is_defaulted_by_its_schema() {
    let object = created(volcano("cronjobs"), vc_cronjob(json!({"timeZone": null}))).unwrap();
    let spec = &object["spec"];
    assert_eq!((&spec["concurrencyPolicy"], &spec["suspend"]), (&json!("Allow"), &json!(false)));
    assert_eq!((&spec["successfulJobsHistoryLimit"], &spec["failedJobsHistoryLimit"]), (&json!(3), &json!(1)));
    let job = &spec["jobTemplate"]["spec"];
    assert_eq!((&job["maxRetry"], &job["queue"]), (&json!(3), &json!("default")));
    assert_eq!(spec.get("timeZone"), None);
}

#[test]
fn a_volcano_cronjob_is_validated_by_its_schema_before_the_webhook() {
    let of = |spec| refused(volcano("cronjobs"), vc_cronjob(spec)).to_string();
    assert_eq!(
        of(json!({"startingDeadlineSeconds": -1})),
        r#"CronJob.batch.volcano.sh "train" is invalid: spec.startingDeadlineSeconds: Invalid value: -1: spec.startingDeadlineSeconds in body should be greater than or equal to 0"#
    );
    assert_eq!(
        of(json!({"concurrencyPolicy": "X"})),
        r#"CronJob.batch.volcano.sh "train" is invalid: spec.concurrencyPolicy: Unsupported value: "X": supported values: "Allow", "Forbid", "Replace""#
    );
    assert_eq!(
        of(json!({"suspend": "no"})),
        r#"CronJob.batch.volcano.sh "train" is invalid: spec.suspend: Invalid value: "string": spec.suspend in body must be of type boolean: "string""#
    );
    assert!(of(json!({"schedule": null})).ends_with("spec.schedule: Required value"));
}

#[test]
fn volcanos_webhook_refuses_in_its_own_words() {
    let of = |spec| refused(volcano("cronjobs"), vc_cronjob(spec)).to_string();
    let denied = |why: &str| format!("admission webhook \"validatecronjob.volcano.sh\" denied the request: {why}");
    assert_eq!(of(json!({"schedule": ""})), denied("schedule is required, but got empty"));
    assert_eq!(
        of(json!({"schedule": "TZ=UTC * * * * *"})),
        denied("schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field")
    );
    assert_eq!(
        of(json!({"schedule": "x", "timeZone": "a b/c d"})),
        denied("schedule is not a valid cron expression unknown timeZone unknown timeZone invalid timeZone")
    );
    assert_eq!(of(json!({"timeZone": ""})), denied("timeZone must be nil or non-empty string, got empty string"));
    assert_eq!(
        of(json!({"timeZone": "local"})),
        denied("timeZone can't be Local, and must be defined in https://www.iana.org/time-zones")
    );
    let mut long = vc_cronjob(json!({"schedule": "x"}));
    long["metadata"]["name"] = "a".repeat(53).into();
    let invalid = refused(volcano("cronjobs"), long);
    assert_eq!(
        invalid.to_string(),
        denied(
            "schedule is not a valid cron expression; cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)"
        )
    );
    assert_eq!((invalid.code, invalid.reason), (400, ""));
}

#[test]
fn a_volcano_job_is_filled_in_by_the_mutating_webhook_and_needs_tasks() {
    let job = |spec: Value| json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec});
    let object =
        created(volcano("jobs"), job(json!({"tasks": [{"replicas": 2}, {"name": "w", "replicas": 1}]}))).unwrap();
    let spec = &object["spec"];
    assert_eq!((&spec["maxRetry"], &spec["queue"], &spec["minAvailable"]), (&json!(3), &json!("default"), &json!(3)));
    assert_eq!((&spec["schedulerName"], &spec["tasks"][0]["name"]), (&json!("volcano"), &json!("default0")));
    assert_eq!(
        refused(volcano("jobs"), job(json!({}))).to_string(),
        "admission webhook \"validatejob.volcano.sh\" denied the request: No task specified in job spec"
    );
}

#[test]
fn a_status_write_does_not_meet_the_webhook_but_does_meet_the_schema() {
    let mut object = vc_cronjob(json!({"schedule": "x"}));
    object["status"] = json!({"active": [], "lastSuccessfulTime": null});
    let old = object.clone();
    admit(volcano("cronjobs"), Operation::UpdateStatus, &mut object, Some(&old)).unwrap();
    assert_eq!(object["status"], json!({"active": []}));
    object["status"]["active"] = json!("none");
    admit(volcano("cronjobs"), Operation::UpdateStatus, &mut object, Some(&old)).unwrap_err();
}

#[test]
fn unknown_fields_are_dropped_told_or_refused() {
    let object = cronjob(json!({"foo": 1, "jobTemplate": {"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": "x", "imagee": "y"}], "bar": {}}}}}}));
    let mut dropped = object.clone();
    let warnings = decode(batch("cronjobs"), FieldValidation::Warn, &[], &mut dropped).unwrap();
    assert_eq!(
        warnings,
        [
            r#"unknown field "spec.foo""#,
            r#"unknown field "spec.jobTemplate.spec.template.spec.bar""#,
            r#"unknown field "spec.jobTemplate.spec.template.spec.containers[0].imagee""#
        ]
    );
    assert_eq!(dropped["spec"].get("foo"), None);
    assert_eq!(dropped["spec"]["schedule"], "*/5 * * * *");
    assert_eq!(decode(batch("cronjobs"), FieldValidation::Ignore, &[], &mut object.clone()), Ok(Vec::new()));
    let refused = decode(batch("cronjobs"), FieldValidation::Strict, &[], &mut cronjob(json!({"foo": 1}))).unwrap_err();
    assert_eq!(refused.to_string(), r#"strict decoding error: unknown field "spec.foo""#);
    let twice = ["spec.schedule".to_owned()];
    let warned = decode(batch("cronjobs"), FieldValidation::Warn, &twice, &mut cronjob(json!({})));
    assert_eq!(warned, Ok(vec![r#"duplicate field "spec.schedule""#.to_owned()]));
}

#[test]
fn known_fields_nulls_and_wrong_types_are_told_apart() {
    let mut object = cronjob(json!({}));
    object["metadata"]["creationTimestamp"] = Value::Null;
    object["metadata"]["annotations"] = json!({"any/key": "v"});
    assert_eq!(decode(batch("cronjobs"), FieldValidation::Strict, &[], &mut object), Ok(Vec::new()));
    assert_eq!(object["metadata"].get("creationTimestamp"), None);
    let wrong =
        decode(batch("cronjobs"), FieldValidation::Ignore, &[], &mut cronjob(json!({"suspend": "no"}))).unwrap_err();
    assert!(wrong.to_string().contains("expected a boolean"), "{wrong}");
}

#[test]
fn a_volcano_object_is_pruned_by_its_schema() {
    let mut object = vc_cronjob(json!({"foo": 1, "jobTemplate": {"metadata": {"name": "n", "generateName": "g"}}}));
    object["metadata"]["bar"] = json!(1);
    let warnings = decode(volcano("cronjobs"), FieldValidation::Warn, &[], &mut object).unwrap();
    assert_eq!(
        warnings,
        [
            r#"unknown field "metadata.bar""#,
            r#"unknown field "spec.foo""#,
            r#"unknown field "spec.jobTemplate.metadata.generateName""#
        ]
    );
    assert_eq!(object["spec"]["jobTemplate"]["metadata"], json!({"name": "n"}));
}

#[test]
fn names_labels_and_events_are_checked_for_every_kind() {
    let lease = find("coordination.k8s.io", "v1", "leases").unwrap();
    let invalid = refused(lease, json!({"metadata": {"name": "A_b", "labels": {"a b": "x", "ok": "no way!"}}}));
    assert_eq!(invalid.causes.len(), 3);
    assert!(invalid.causes[0].message.starts_with(r#"Invalid value: "A_b": a lowercase RFC 1123 subdomain must"#));
    assert!(invalid.to_string().starts_with(r#"Lease.coordination.k8s.io "A_b" is invalid: [metadata.name: "#));
    let event = find("", "v1", "events").unwrap();
    let about = |namespace: &str| json!({"metadata": {"name": "e", "namespace": "a"}, "involvedObject": {"namespace": namespace}});
    created(event, about("a")).unwrap();
    assert_eq!(
        causes(&refused(event, about("b"))),
        [r#"involvedObject.namespace: Invalid value: "b": does not match event.namespace"#]
    );
}
