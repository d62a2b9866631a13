//! The kinds that the sandbox serves. One row here is all that routing, discovery, tables and watches need to know of a kind.

/// One served resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for core.
    pub group: &'static str,
    /// API version inside the group.
    pub version: &'static str,
    /// Plural name, as in paths.
    pub plural: &'static str,
    /// Singular name, as kubectl prints it.
    pub singular: &'static str,
    /// Kind of one object; a list's kind is this plus `List`.
    pub kind: &'static str,
    /// Short names for kubectl.
    pub short_names: &'static [&'static str],
    /// Categories for kubectl (`all`).
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` is a subresource of its own.
    pub status: bool,
    /// Whether the real server serves it from a CustomResourceDefinition: such kinds refuse strategic merge patches (415) and
    /// PUTs without resourceVersion (422), are pruned by schema, and ignore metadata on `/status`.
    pub custom: bool,
}

impl Resource {
    /// `version` for core, `group/version` otherwise.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `plural` for core, `plural.group` otherwise: how messages of the server name a resource.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The kind, with its group after a dot unless it is core: how messages of the server name a kind.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
}

const fn builtin(
    group: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
) -> Resource {
    Resource {
        group,
        version: "v1",
        plural,
        singular,
        kind,
        short_names,
        categories: &[],
        namespaced: true,
        status: false,
        custom: false,
    }
}

/// Every served resource. `events` stands twice: both rows are views of one store.
pub static RESOURCES: &[Resource] = &[
    Resource { namespaced: false, status: true, ..builtin("", "namespaces", "namespace", "Namespace", &["ns"]) },
    Resource { status: true, categories: &["all"], ..builtin("", "pods", "pod", "Pod", &["po"]) },
    builtin("", "configmaps", "configmap", "ConfigMap", &["cm"]),
    builtin("", "serviceaccounts", "serviceaccount", "ServiceAccount", &["sa"]),
    Resource { status: true, ..builtin("", "resourcequotas", "resourcequota", "ResourceQuota", &["quota"]) },
    builtin("", "events", "event", "Event", &["ev"]),
    builtin("events.k8s.io", "events", "event", "Event", &["ev"]),
    builtin("coordination.k8s.io", "leases", "lease", "Lease", &[]),
    Resource { status: true, categories: &["all"], ..builtin("batch", "cronjobs", "cronjob", "CronJob", &["cj"]) },
    Resource { status: true, categories: &["all"], ..builtin("batch", "jobs", "job", "Job", &[]) },
    volcano("cronjobs", "cronjob", "CronJob", &["cronvcjob", "cronvj"]),
    volcano("jobs", "job", "Job", &["vcjob", "vj"]),
];

const fn volcano(
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    short_names: &'static [&'static str],
) -> Resource {
    Resource {
        version: "v1alpha1",
        status: true,
        custom: true,
        ..builtin("batch.volcano.sh", plural, singular, kind, short_names)
    }
}

/// The resource of a path `/apis/GROUP/VERSION/.../PLURAL` (or `/api/v1/...` with an empty group).
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.group == group && r.version == version && r.plural == plural)
}

/// Whether anything of an API group is served.
pub fn has_group(group: &str) -> bool {
    RESOURCES.iter().any(|resource| resource.group == group)
}

/// The resource in whose form objects are stored: core `events` for both views of events, itself otherwise.
pub fn stored_as(resource: &Resource) -> &Resource {
    if resource.group == "events.k8s.io" { find("", "v1", resource.plural).unwrap_or(resource) } else { resource }
}
