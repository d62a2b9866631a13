//! What the server says no to, and how.

use serde_json::{Value, json};

use crate::common::*;

#[tokio::test(start_paused = true)]
async fn every_refusal_is_a_status() {
    let sandbox = sandbox();
    post(&sandbox, JOBS, &job("a")).await;
    let cases = [
        ("GET", "/apis/batch/v1/namespaces/default/jobs/gone", 404, "NotFound"),
        ("GET", "/apis/batch/v1/namespaces/default/pumpkins", 404, "NotFound"),
        ("GET", "/apis/batch/v1/namespaces/default/jobs/a/scale", 404, "NotFound"),
        ("GET", "/apis/batch/v7/pumpkins", 404, "NotFound"),
        ("POST", "/apis/batch/v1/namespaces/default/jobs/a", 405, "MethodNotAllowed"),
        ("POST", "/apis/batch/v1/jobs", 405, "MethodNotAllowed"),
        ("PUT", "/apis/batch/v1/namespaces/default/jobs", 405, "MethodNotAllowed"),
        ("GET", "/apis/batch/v1/jobs?limit=many", 400, "BadRequest"),
        ("GET", "/apis/batch/v1/jobs?continue=rubbish", 400, "BadRequest"),
        ("GET", "/apis/batch/v1/jobs?resourceVersion=x", 400, "BadRequest"),
        ("GET", "/apis/batch/v1/jobs?labelSelector=a%20b", 400, "BadRequest"),
        ("GET", "/apis/batch/v1/jobs?watch=1&sendInitialEvents=true", 422, "Invalid"),
        ("POST", "/apis/batch/v1/namespaces/default/jobs?fieldValidation=Maybe", 422, "Invalid"),
    ];
    for (method, path, code, reason) in cases {
        let reply = try_send(&sandbox, request(method, path, "application/json", "{}")).await.unwrap();
        assert_eq!((reply.code, reply.text("/reason")), (code, reason), "{method} {path}: {}", reply.body);
        assert_eq!((reply.text("/kind"), reply.text("/status")), ("Status", "Failure"), "{method} {path}");
        assert_eq!(reply.body["code"], code);
        assert_eq!(reply.headers["content-type"], "application/json");
    }
    let nowhere = get(&sandbox, "/nowhere").await;
    assert_eq!((nowhere.code, nowhere.body), (404, "404 page not found\n".into()), "outside of every group it is text");
}

#[tokio::test(start_paused = true)]
async fn the_texts_are_those_of_the_real_server() {
    let sandbox = sandbox();
    let gone = get(&sandbox, &format!("{CRONJOBS}/x")).await;
    assert_eq!(gone.text("/message"), "cronjobs.batch \"x\" not found");
    let core = get(&sandbox, &format!("{CONFIGMAPS}/x")).await;
    assert_eq!(core.text("/message"), "configmaps \"x\" not found");
    let field = get(&sandbox, &format!("{JOBS}?fieldSelector=spec.foo%3D1")).await;
    assert_eq!((field.code, field.text("/message")), (400, "field label \"spec.foo\" not supported for Job"));
    let ahead = get(&sandbox, &format!("{JOBS}?resourceVersion=99999")).await;
    assert_eq!((ahead.code, ahead.text("/reason")), (504, "Timeout"));
    assert_eq!(ahead.text("/details/causes/0/reason"), "ResourceVersionTooLarge");
    assert_eq!(
        (&ahead.body["details"]["retryAfterSeconds"], &ahead.headers["retry-after"]),
        (&json!(1), &"1".parse().unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn bodies_must_be_json_of_the_right_kind_at_the_right_place() {
    let sandbox = sandbox();
    let protobuf = request("POST", JOBS, "application/vnd.kubernetes.protobuf", "k8s");
    assert_eq!(try_send(&sandbox, protobuf).await.unwrap().code, 415);
    let mut wanted = request("GET", JOBS, "application/json", "");
    wanted.headers_mut().insert("accept", "application/cbor".parse().unwrap());
    assert_eq!(try_send(&sandbox, wanted).await.unwrap().code, 406);
    let with = |pointer: &str, value: Value| {
        let mut object = job("a");
        object["kind"] = "Job".into();
        object["apiVersion"] = "batch/v1".into();
        object["metadata"]["namespace"] = "default".into();
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    assert_eq!(post(&sandbox, JOBS, &json!([])).await.code, 400);
    assert_eq!(post(&sandbox, JOBS, &with("/kind", "Pod".into())).await.code, 400);
    assert_eq!(post(&sandbox, JOBS, &with("/apiVersion", "v1".into())).await.code, 400);
    assert_eq!(post(&sandbox, JOBS, &with("/metadata/namespace", "other".into())).await.code, 400);
    assert_eq!(post(&sandbox, JOBS, &with("/metadata/name", "".into())).await.code, 422);
    assert_eq!(post(&sandbox, JOBS, &with("/kind", "Job".into())).await.code, 201);
    assert_eq!(put(&sandbox, &format!("{JOBS}/a"), &with("/metadata/name", "b".into())).await.code, 400);
    assert_eq!(put(&sandbox, &format!("{JOBS}/z"), &with("/metadata/name", "z".into())).await.code, 404);
    let mut versioned = with("/metadata/name", "b".into());
    versioned["metadata"]["resourceVersion"] = "5".into();
    assert_eq!(post(&sandbox, JOBS, &versioned).await.code, 500);
}

#[tokio::test(start_paused = true)]
async fn a_full_quota_refuses_creates_and_counts_what_is_there() {
    let sandbox = sandbox();
    let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "count/jobs.batch": "1" } } });
    assert_eq!(post(&sandbox, "/api/v1/namespaces/default/resourcequotas", &quota).await.code, 201);
    assert_eq!(post(&sandbox, JOBS, &job("a")).await.code, 201);
    let full = post(&sandbox, JOBS, &job("b")).await;
    assert_eq!((full.code, full.text("/reason")), (403, "Forbidden"));
    assert_eq!(
        full.text("/message"),
        "jobs.batch \"b\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, \
         limited: count/jobs.batch=1"
    );
    delete(&sandbox, &format!("{JOBS}/a?propagationPolicy=Background"), &Value::Null).await;
    assert_eq!(post(&sandbox, JOBS, &job("b")).await.code, 201);
}
