//! The same seed and the same requests give the same bytes, faults included.

use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::Fault;
use cronjob_controller::sandbox::{Options, Sandbox};
use http_body_util::BodyExt;
use serde_json::json;
use tower::Service;

use crate::common::*;

/// Everything that comes back in a longer script, as bytes.
async fn transcript(sandbox: &Sandbox) -> Vec<u8> {
    sandbox.faults().install(Fault::refuse(503, Some(1)).on(Verb::Create).probability(0.3));
    let path = format!("{JOBS}?watch=true&resourceVersion=0&timeoutSeconds=3000&allowWatchBookmarks=true");
    let mut script = vec![request("GET", &path, "application/json", "")];
    for number in 0..40 {
        let mut object = job("x");
        object["metadata"] = json!({ "generateName": format!("run-{}-", number % 7) });
        script.push(request("POST", JOBS, "application/json", &object.to_string()));
        script.push(request("GET", &format!("{JOBS}?limit=5"), "application/json", ""));
    }
    script.push(request("DELETE", &format!("{JOBS}?propagationPolicy=Background"), "application/json", ""));
    let mut bodies = Vec::new();
    for request in script {
        tokio::time::sleep(std::time::Duration::from_secs(17)).await;
        if let Ok(response) = sandbox.service().call(request).await {
            bodies.push(response.into_body());
        }
    }
    let mut out = Vec::new();
    for body in bodies {
        out.extend_from_slice(&body.collect().await.unwrap().to_bytes());
    }
    out
}

#[tokio::test(start_paused = true)]
async fn a_script_run_twice_gives_the_same_bytes() {
    let first = transcript(&sandbox()).await;
    let second = transcript(&sandbox()).await;
    assert!(first.len() > 20_000, "{}", first.len());
    assert!(first == second);
    let other_seed = sandbox_with(8, Options::default());
    assert!(first != transcript(&other_seed).await);
}
