//! The schemas of Volcano's two CustomResourceDefinitions, as far as their clients can tell.

use super::schema::{COUNT, Field, INTEGER, Pattern, Schema, TEXT, field};

/// The schema of one kind of `batch.volcano.sh`, by its plural name.
pub(super) fn root(plural: &str) -> Schema {
    if plural == "cronjobs" { Schema::Object(CRONJOB) } else { Schema::Object(JOB) }
}

const SUBDOMAIN: Schema = Schema::Text { max: 253, pattern: Pattern::Subdomain };
const TEXTS: Schema = Schema::List { items: &TEXT, min: 0 };
const ANY_LIST: Schema = Schema::List { items: &Schema::Any, min: 0 };

const CRONJOB: &[Field] = &[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Schema::Any),
    field("spec", Schema::Object(CRONJOB_SPEC)),
    field("status", Schema::Object(CRONJOB_STATUS)),
];

const CRONJOB_SPEC: &[Field] = &[
    field("schedule", TEXT).required(),
    field("timeZone", TEXT),
    field("startingDeadlineSeconds", COUNT),
    field("concurrencyPolicy", Schema::Enum(&["Allow", "Forbid", "Replace"])).or_text("Allow"),
    field("suspend", Schema::Boolean).or_bool(false),
    field("successfulJobsHistoryLimit", COUNT).or_integer(3),
    field("failedJobsHistoryLimit", COUNT).or_integer(1),
    field("jobTemplate", Schema::Object(JOB_TEMPLATE)).required(),
];

const CRONJOB_STATUS: &[Field] = &[
    field("active", Schema::List { items: &Schema::Object(REFERENCE), min: 0 }),
    field("lastScheduleTime", Schema::Instant),
    field("lastSuccessfulTime", Schema::Instant),
];

const REFERENCE: &[Field] = &[
    field("apiVersion", TEXT),
    field("fieldPath", TEXT),
    field("kind", TEXT),
    field("name", TEXT),
    field("namespace", TEXT),
    field("resourceVersion", TEXT),
    field("uid", TEXT),
];

const JOB_TEMPLATE: &[Field] =
    &[field("metadata", Schema::Object(TEMPLATE_METADATA)), field("spec", Schema::Object(JOB_SPEC))];

const TEMPLATE_METADATA: &[Field] = &[
    field("annotations", Schema::Map(&TEXT)),
    field("finalizers", TEXTS),
    field("labels", Schema::Map(&TEXT)),
    field("name", TEXT),
    field("namespace", TEXT),
];

const JOB: &[Field] = &[
    field("apiVersion", TEXT),
    field("kind", TEXT),
    field("metadata", Schema::Any),
    field("spec", Schema::Object(JOB_SPEC)),
    field("status", Schema::Object(JOB_STATUS)),
];

const JOB_SPEC: &[Field] = &[
    field("maxRetry", COUNT).or_integer(3),
    field("minAvailable", COUNT),
    field("minSuccess", Schema::Integer { min: 1 }),
    field("networkTopology", Schema::Object(NETWORK_TOPOLOGY)),
    field("plugins", Schema::Map(&TEXTS)),
    field("policies", POLICIES),
    field("priorityClassName", SUBDOMAIN),
    field("queue", SUBDOMAIN).or_text("default"),
    field("runningEstimate", TEXT),
    field("schedulerName", Schema::Text { max: 63, pattern: Pattern::Free }),
    field("tasks", Schema::List { items: &Schema::Object(TASK), min: 1 }),
    field("ttlSecondsAfterFinished", COUNT),
    field("volumes", Schema::List { items: &Schema::Object(VOLUME), min: 0 }),
];

const NETWORK_TOPOLOGY: &[Field] = &[
    field("highestTierAllowed", INTEGER),
    field("highestTierName", TEXT),
    field("mode", Schema::Enum(&["hard", "soft"])).or_text("hard"),
];

const POLICIES: Schema = Schema::List { items: &Schema::Object(POLICY), min: 0 };

const EVENT: Schema = Schema::Enum(&[
    "*",
    "PodPending",
    "PodRunning",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "OutOfSync",
    "CommandIssued",
    "JobUpdated",
    "TaskFailed",
]);

const POLICY: &[Field] = &[
    field("action", TEXT),
    field("event", EVENT),
    field("events", Schema::List { items: &EVENT, min: 0 }),
    field("exitCode", INTEGER),
    field("timeout", TEXT),
];

const TASK: &[Field] = &[
    field("dependsOn", Schema::Object(&[field("iteration", TEXT), field("name", TEXTS)])),
    field("maxRetry", INTEGER),
    field("minAvailable", COUNT),
    field("name", Schema::Text { max: 63, pattern: Pattern::Label }),
    field("partitionPolicy", Schema::Any),
    field("policies", POLICIES),
    field("replicas", COUNT),
    field("template", Schema::PodTemplate),
    field("topologyPolicy", Schema::Enum(&["none", "best-effort", "restricted", "single-numa-node"])),
];

const VOLUME: &[Field] = &[
    field("mountPath", Schema::Text { max: 0, pattern: Pattern::NoColon }).required(),
    field("volumeClaim", Schema::Any),
    field("volumeClaimName", TEXT),
];

const JOB_STATUS: &[Field] = &[
    field("conditions", ANY_LIST),
    field("controlledResources", Schema::Map(&TEXT)),
    field("failed", COUNT),
    field("minAvailable", COUNT),
    field("pending", COUNT),
    field("retryCount", COUNT),
    field("running", COUNT),
    field("runningDuration", TEXT),
    field("state", Schema::Object(STATE)),
    field("succeeded", COUNT),
    field("taskStatusCount", Schema::Map(&Schema::Any)),
    field("terminating", COUNT),
    field("unknown", COUNT),
    field("version", INTEGER),
];

const STATE: &[Field] = &[
    field("lastTransitionTime", Schema::Instant),
    field("message", TEXT),
    field("phase", TEXT),
    field("reason", TEXT),
];
