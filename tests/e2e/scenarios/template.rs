//! The Job is what the template says, to the last field, also where nobody here knows the field.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::objects::{cronjob, daily, job_name, minutes};
use crate::picture::Picture;
use crate::stage::Stage;

/// The first place where something in `part` does not stand in `whole`; lists are compared item by item.
fn missing(whole: &Value, part: &Value) -> Option<String> {
    let below = |place: String, rest: String| format!("{place}{rest}");
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().find_map(|(field, value)| {
            let there = whole.get(field).unwrap_or(&Value::Null);
            missing(there, value).map(|rest| below(format!(".{field}"), rest))
        }),
        (Value::Array(whole), Value::Array(part)) if whole.len() == part.len() => {
            let mut pairs = whole.iter().zip(part).enumerate();
            pairs.find_map(|(at, (there, value))| missing(there, value).map(|rest| below(format!("[{at}]"), rest)))
        }
        _ => (whole != part).then(|| format!(": {whole}, not {part}")),
    }
}

fn ensure_contains(what: &str, whole: &Value, part: &Value) -> anyhow::Result<()> {
    missing(whole, part).map_or(Ok(()), |place| Err(anyhow::anyhow!("{what}{place}")))
}

/// Runs `template` once and compares its Job with what the server stored of it.
async fn runs_as_written(stage: &Stage, template: Value) -> anyhow::Result<(Value, Value)> {
    let at = stage.this_minute();
    let mut object = cronjob(stage.api, "c", &daily(at), &json!({}));
    object["spec"]["jobTemplate"] = template;
    stage.create_overdue(object, at - minutes(1440)).await?;
    let name = job_name("c", at);
    let created = stage.api.created(&stage.namespace, "c", &name);
    stage.expect("c", Picture::last(at).running([&name]).said([created])).await?;
    let stored = stage.get(&stage.cronjob_path("c")).await?["spec"]["jobTemplate"].clone();
    let job = stage.get(&stage.job_path(&name)).await?;
    ensure_contains("spec", &job["spec"], &stored["spec"])?;
    ensure_contains("labels", &job["metadata"]["labels"], &stored["metadata"]["labels"])?;
    let mut annotations = job["metadata"]["annotations"].as_object().context("annotations")?.clone();
    annotations.remove(stage.api.annotation);
    ensure!(Value::Object(annotations.clone()) == stored["metadata"]["annotations"], "{annotations:?}");
    Ok((stored, job))
}

pub(crate) async fn kubernetes(stage: &Stage) -> anyhow::Result<()> {
    let template = json!({
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "ümlaut \"quoted\"", "empty": ""}},
        "spec": job_spec(),
    });
    let (stored, _) = runs_as_written(stage, template.clone()).await?;
    ensure_contains("stored", &stored, &template)
}

pub(crate) async fn volcano(stage: &Stage) -> anyhow::Result<()> {
    let mut pod = pod_spec();
    // No server of today knows these.
    let unknown = json!({"deep": [1, 2.5, {"text": "kept", "null": [null]}], "flag": false});
    pod["notYetInvented"] = unknown.clone();
    let template = json!({
        "metadata": {"labels": {"team": "ml"}, "annotations": {"note": "n"}},
        "spec": {
            "minAvailable": 1, "maxRetry": 5, "queue": "research", "ttlSecondsAfterFinished": 600,
            "plugins": {"ssh": ["--no-root"], "svc": [], "env": []},
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}, {"events": ["TaskFailed"], "action": "AbortJob"}],
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
            "volumes": [{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}}],
            "tasks": [
                {"name": "master", "replicas": 1, "minAvailable": 1, "topologyPolicy": "none", "template": {"spec": pod},
                 "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}]},
                {"name": "worker", "replicas": 2, "minAvailable": 0, "dependsOn": {"name": ["master"]}, "maxRetry": 1,
                 "template": {"metadata": {"labels": {"role": "worker"}}, "spec": pod_spec()}},
            ],
        },
    });
    let (stored, job) = runs_as_written(stage, template).await?;
    if !stage.cluster.prunes_pod_templates() {
        ensure!(stored["spec"]["tasks"][0]["template"]["spec"]["notYetInvented"] == unknown, "{stored:#}");
        ensure!(job["spec"] == stored["spec"], "{:#}\nis not {:#}", job["spec"], stored["spec"]);
    }
    Ok(())
}

/// Fields of many releases of Kubernetes, the newest among them.
fn job_spec() -> Value {
    json!({
        "completionMode": "Indexed", "completions": 4, "parallelism": 2, "activeDeadlineSeconds": 3600,
        "backoffLimitPerIndex": 1, "maxFailedIndexes": 2, "ttlSecondsAfterFinished": 900, "managedBy": "e2e.example.com/nobody",
        "podReplacementPolicy": "Failed", "suspend": true,
        "podFailurePolicy": {"rules": [
            {"action": "FailIndex", "onExitCodes": {"containerName": "c", "operator": "In", "values": [3, 7]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]},
        "successPolicy": {"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 2}]},
        "template": {
            "metadata": {"labels": {"app": "c"}, "annotations": {"example.com/a": "1"}},
            "spec": pod_spec(),
        },
    })
}

fn pod_spec() -> Value {
    let mut spec = place();
    for part in [containers(), volumes()] {
        spec.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    }
    spec
}

/// Where and as whom a Pod runs.
fn place() -> Value {
    json!({
        "restartPolicy": "Never", "activeDeadlineSeconds": 600, "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": false, "enableServiceLinks": false, "hostUsers": false, "os": {"name": "linux"},
        "serviceAccountName": "default", "subdomain": "sub", "hostname": "host", "setHostnameAsFQDN": false,
        "shareProcessNamespace": true, "schedulerName": "another", "nodeSelector": {"disk": "ssd"},
        "schedulingGates": [{"name": "example.com/gate"}],
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.53"], "options": [{"name": "ndots", "value": "2"}]},
        "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["one", "two"]}],
        "imagePullSecrets": [{"name": "pull"}],
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch",
            "supplementalGroupsPolicy": "Strict", "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "c"}}, "matchLabelKeys": ["pod-template-hash"],
            "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore",
        }],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 7, "podAffinityTerm": {"topologyKey": "host", "mismatchLabelKeys": ["m"], "labelSelector": {"matchLabels": {"app": "c"}}},
        }]}},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu-template"}],
    })
}

fn containers() -> Value {
    json!({
        "initContainers": [{
            "name": "sidecar", "image": "registry.example.com/s:1", "restartPolicy": "Always",
            "startupProbe": {"grpc": {"port": 9000, "service": "s"}, "periodSeconds": 3},
        }],
        "containers": [{
            "name": "c", "image": "registry.example.com/c@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "command": ["/bin/run"], "args": ["--x=$(X)", ""],
            "env": [
                {"name": "X", "value": "1"},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}},
            ],
            "envFrom": [{"prefix": "P_", "configMapRef": {"name": "m", "optional": true}}],
            "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "250m"}, "claims": [{"name": "gpu", "request": "r"}]},
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            "lifecycle": {"preStop": {"sleep": {"seconds": 2}}},
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "procMount": "Default"},
            "volumeMounts": [
                {"name": "v", "mountPath": "/v", "recursiveReadOnly": "IfPossible", "readOnly": true},
                {"name": "p", "mountPath": "/p", "subPathExpr": "$(X)"},
            ],
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }],
    })
}

fn volumes() -> Value {
    json!({
        "volumes": [
            {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeAttributesClassName": "gold",
            }}}},
            {"name": "p", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "audience": "a", "expirationSeconds": 600}},
            ]}},
            {"name": "i", "image": {"reference": "registry.example.com/data:1", "pullPolicy": "IfNotPresent"}},
        ],
    })
}
