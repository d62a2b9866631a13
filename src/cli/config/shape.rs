//! The shape of the configuration file: which fields there are, of which type, and which flag each one sets (`x-flag`).
//!
//! Invariants
//! - Nothing here has a default, a range or an explanation: those are the flag's, and the schema takes them from there.
//! - Each flag of `run` but `--config` has one field; a test compares them.
//! - What is absent or null is not set.

#![expect(dead_code, reason = "these types are read as a schema; values go from the file straight to the flags")]

use std::collections::BTreeMap;

use schemars::JsonSchema;

/// The file.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(description = "Configuration of `cronjob-controller run`. Flags and environment variables go before it.")]
pub(super) struct ControllerConfiguration {
    api_version: ApiVersion,
    kind: Kind,
    client_connection: Option<ClientConnection>,
    controllers: Option<Controllers>,
    #[schemars(extend("x-flag" = "feature-gates"))]
    feature_gates: Option<BTreeMap<String, bool>>,
    health: Option<Health>,
    leader_election: Option<LeaderElection>,
    logging: Option<Logging>,
    metrics: Option<Metrics>,
    shadow: Option<Shadow>,
    #[schemars(extend("x-flag" = "shutdown-budget"))]
    shutdown_budget: Option<String>,
}

#[derive(JsonSchema)]
enum ApiVersion {
    #[schemars(rename = "cronjob-controller.config/v1alpha1")]
    V1Alpha1,
}

#[derive(JsonSchema)]
enum Kind {
    ControllerConfiguration,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct ClientConnection {
    #[schemars(extend("x-flag" = "kubeconfig"))]
    kubeconfig: Option<String>,
    #[schemars(extend("x-flag" = "master"))]
    master: Option<String>,
    #[schemars(extend("x-flag" = "kube-api-qps"))]
    qps: Option<f64>,
    #[schemars(extend("x-flag" = "kube-api-burst"))]
    burst: Option<i64>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct Controllers {
    #[schemars(extend("x-flag" = "controllers"))]
    enabled: Option<Vec<String>>,
    #[schemars(extend("x-flag" = "concurrent-cron-job-syncs"))]
    concurrent_cron_job_syncs: Option<i64>,
    #[schemars(extend("x-flag" = "concurrent-job-syncs"))]
    concurrent_job_syncs: Option<i64>,
    #[schemars(extend("x-flag" = "default-time-zone"))]
    default_time_zone: Option<String>,
    #[schemars(extend("x-flag" = "job-controller"))]
    job_controller: Option<String>,
    #[schemars(extend("x-flag" = "job-controller-name"))]
    job_controller_name: Option<String>,
    #[schemars(extend("x-flag" = "job-managed-by"))]
    job_managed_by: Option<String>,
    #[schemars(extend("x-flag" = "queue-rate-limiter"))]
    queue_rate_limiter: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct Health {
    #[schemars(extend("x-flag" = "health-probe-bind-address"))]
    bind_address: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct LeaderElection {
    #[schemars(extend("x-flag" = "leader-elect"))]
    leader_elect: Option<bool>,
    #[schemars(extend("x-flag" = "leader-elect-lease-duration"))]
    lease_duration: Option<String>,
    #[schemars(extend("x-flag" = "leader-elect-renew-deadline"))]
    renew_deadline: Option<String>,
    #[schemars(extend("x-flag" = "leader-elect-resource-name"))]
    resource_name: Option<String>,
    #[schemars(extend("x-flag" = "leader-elect-resource-namespace"))]
    resource_namespace: Option<String>,
    #[schemars(extend("x-flag" = "leader-elect-retry-period"))]
    retry_period: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct Logging {
    #[schemars(extend("x-flag" = "log-level"))]
    level: Option<String>,
    #[schemars(extend("x-flag" = "logging-format"))]
    format: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct Shadow {
    #[schemars(extend("x-flag" = "shadow"))]
    enabled: Option<bool>,
    #[schemars(extend("x-flag" = "shadow-report"))]
    report: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct Metrics {
    #[schemars(extend("x-flag" = "metrics-bind-address"))]
    bind_address: Option<String>,
    #[schemars(extend("x-flag" = "metrics-secure"))]
    secure: Option<bool>,
    #[schemars(extend("x-flag" = "tls-cert-file"))]
    tls_cert_file: Option<String>,
    #[schemars(extend("x-flag" = "tls-private-key-file"))]
    tls_private_key_file: Option<String>,
}
