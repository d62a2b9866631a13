use super::*;
use crate::sandbox::resources::find;
use chrono::TimeZone;

fn now() -> WallTime {
    chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap()
}

fn row(group: &str, version: &str, plural: &str, object: Value) -> Vec<String> {
    let resource = find(group, version, plural).unwrap();
    let table = render(resource, &[object], Some("7"), "", now());
    assert_eq!(table["metadata"]["resourceVersion"], "7");
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), table["columnDefinitions"].as_array().unwrap().len());
    cells.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)).collect()
}

#[test]
fn a_cronjob_shows_schedule_zone_suspension_active_jobs_and_its_last_run() {
    let object = json!({
        "metadata": {"name": "etl", "creationTimestamp": "2026-03-08T09:00:00Z"},
        "spec": {"schedule": "30 2 * * *", "timeZone": "Asia/Shanghai", "suspend": false, "jobTemplate": {"spec": {"template":
            {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}]}}}}},
        "status": {"active": [{}, {}], "lastScheduleTime": "2026-03-08T11:57:30Z"}
    });
    assert_eq!(
        row("batch", "v1", "cronjobs", object),
        ["etl", "30 2 * * *", "Asia/Shanghai", "False", "2", "2m30s", "3h", "a,b", "x:1,y", "<none>"]
    );
    let bare = json!({"metadata": {"name": "x"}, "spec": {"schedule": "* * * * *"}});
    assert_eq!(
        row("batch", "v1", "cronjobs", bare),
        ["x", "* * * * *", "<none>", "<unset>", "0", "<none>", "<unknown>", "", "", "<none>"]
    );
}

#[test]
fn a_jobs_status_is_the_first_condition_of_upstreams_order_that_holds() {
    let job = |conditions: Value, status: Value| {
        let mut status = status;
        status["conditions"] = conditions;
        let object = json!({"metadata": {"name": "j"}, "spec": {"completions": 1, "parallelism": 1,
            "selector": {"matchLabels": {"u": "1"}}}, "status": status});
        row("batch", "v1", "jobs", object)
    };
    let holds = |kind: &str| json!({"type": kind, "status": "True"});
    let done = json!({"startTime": "2026-03-08T11:00:00Z", "completionTime": "2026-03-08T11:01:30Z", "succeeded": 1});
    assert_eq!(
        job(json!([holds("SuccessCriteriaMet"), holds("Complete")]), done),
        ["j", "Complete", "1/1", "90s", "<unknown>", "", "", "u=1"]
    );
    let running = job(json!([]), json!({"startTime": "2026-03-08T11:50:00Z"}));
    assert_eq!(running[1..4], ["Running", "0/1", "10m"]);
    assert_eq!(job(json!([holds("FailureTarget")]), json!({}))[1], "FailureTarget");
    assert_eq!(job(json!([{"type": "Suspended", "status": "False"}]), json!({}))[1..4], ["Running", "0/1", ""]);
}

#[test]
fn an_event_reads_the_same_in_both_views() {
    let core = json!({"metadata": {"name": "e"}, "type": "Normal", "reason": "SuccessfulCreate", "message": "Created job x ",
        "involvedObject": {"kind": "CronJob", "name": "etl"}, "source": {"component": "cronjob-controller"},
        "firstTimestamp": "2026-03-08T11:00:00Z", "lastTimestamp": "2026-03-08T11:59:00Z", "count": 3});
    let new = json!({"metadata": {"name": "e"}, "type": "Normal", "reason": "SuccessfulCreate", "note": "Created job x",
        "regarding": {"kind": "CronJob", "name": "etl"}, "reportingController": "cronjob-controller",
        "eventTime": "2026-03-08T11:00:00Z", "series": {"count": 3, "lastObservedTime": "2026-03-08T11:59:00Z"}});
    let expected = [
        "60s",
        "Normal",
        "SuccessfulCreate",
        "cronjob/etl",
        "",
        "cronjob-controller",
        "Created job x",
        "60m",
        "3",
        "e",
    ];
    assert_eq!(row("", "v1", "events", core), expected);
    assert_eq!(row("events.k8s.io", "v1", "events", new), expected);
}

#[test]
fn a_pods_container_says_more_than_its_phase() {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Failed",
        "containerStatuses": [{"ready": false, "restartCount": 2, "state": {"terminated": {"reason": "Error"}}}]}});
    assert_eq!(row("", "v1", "pods", pod)[..4], ["p", "0/1", "Error", "2"]);
}

#[test]
fn a_volcano_job_has_the_columns_of_its_definition_and_a_volcano_cronjob_none_of_its_own() {
    let job = json!({"metadata": {"name": "v", "creationTimestamp": "2026-03-08T11:59:55Z"}, "spec": {"queue": "default"},
        "status": {"state": {"phase": "Running"}, "minAvailable": 1, "running": 2}});
    assert_eq!(row("batch.volcano.sh", "v1alpha1", "jobs", job), ["v", "Running", "1", "2", "5s", "default"]);
    let cronjob = json!({"metadata": {"name": "c", "creationTimestamp": "2026-03-08T11:59:55Z"}});
    assert_eq!(row("batch.volcano.sh", "v1alpha1", "cronjobs", cronjob), ["c", "5s"]);
}

#[test]
fn the_object_of_a_row_is_what_was_asked_for() {
    let resource = find("batch", "v1", "jobs").unwrap();
    let object = json!({"kind": "Job", "metadata": {"name": "j", "resourceVersion": "3"}, "spec": {}});
    let included =
        |include| render(resource, std::slice::from_ref(&object), None, include, now())["rows"][0]["object"].clone();
    assert_eq!(included("")["kind"], "PartialObjectMetadata");
    assert_eq!(included("")["metadata"]["name"], "j");
    assert_eq!(included("Object"), object);
    assert_eq!(included("None"), Value::Null);
    assert_eq!(render(resource, std::slice::from_ref(&object), None, "", now())["metadata"]["resourceVersion"], "3");
}
