//! Query parameters of a request, and the rules that the server has for them before it looks at anything else.

use axum::extract::Query;
use http::Uri;

use super::admission::FieldValidation;
use super::call::Verb;
use super::status::{Cause, Refusal};

/// Query parameters that the server reads; others are ignored, as the real server does.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `labelSelector`.
    pub label_selector: String,
    /// `fieldSelector`.
    pub field_selector: String,
    /// `limit`; 0 means no limit.
    pub limit: usize,
    /// `continue`.
    pub continue_token: String,
    /// `resourceVersion`; empty if not sent.
    pub resource_version: String,
    /// `resourceVersionMatch`; empty if not sent.
    pub resource_version_match: String,
    /// `timeoutSeconds`.
    pub timeout_s: Option<u64>,
    /// `watch`.
    pub watch: bool,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`; `None` if not sent.
    pub initial_events: Option<bool>,
    /// `dryRun`, every one of them.
    pub dry_run: Vec<String>,
    /// `fieldValidation`; empty if not sent.
    pub field_validation: String,
    /// `propagationPolicy`; empty if not sent.
    pub propagation_policy: String,
    /// `gracePeriodSeconds`; `None` if not sent.
    pub grace_period_s: Option<i64>,
    /// `includeObject` of Tables.
    pub include_object: String,
    /// `container` of logs.
    pub container: String,
}

impl Options {
    /// Reads the query.
    ///
    /// # Errors
    /// 400 for numbers that are none.
    pub fn parse(uri: &Uri) -> Result<Self, Refusal> {
        let mut options = Self::default();
        if uri.query().is_none() {
            return Ok(options);
        }
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Refusal::bad_request(error.to_string()))?;
        for (key, value) in pairs {
            match key.as_str() {
                "labelSelector" => options.label_selector = value,
                "fieldSelector" => options.field_selector = value,
                // Less than nothing is no limit.
                "limit" => options.limit = usize::try_from(number(&value)?).unwrap_or_default(),
                "continue" => options.continue_token = value,
                "resourceVersion" => options.resource_version = value,
                "resourceVersionMatch" => options.resource_version_match = value,
                "timeoutSeconds" => options.timeout_s = u64::try_from(number(&value)?).ok(),
                "watch" => options.watch = truthy(&value),
                "allowWatchBookmarks" => options.bookmarks = truthy(&value),
                "sendInitialEvents" => options.initial_events = Some(truthy(&value)),
                "dryRun" => options.dry_run.push(value),
                "fieldValidation" => options.field_validation = value,
                "propagationPolicy" => options.propagation_policy = value,
                "gracePeriodSeconds" => options.grace_period_s = Some(number(&value)?),
                "includeObject" => options.include_object = value,
                "container" => options.container = value,
                _ => {}
            }
        }
        Ok(options)
    }

    /// Whether nothing is to be stored.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.iter().any(|part| part == "All")
    }

    /// What becomes of unknown fields.
    pub fn field_validation(&self) -> FieldValidation {
        FieldValidation::parse(&self.field_validation).unwrap_or_default()
    }

    /// Whether the options make sense for the verb.
    ///
    /// # Errors
    /// 422 with every rule that is broken, 400 for a version beside a token.
    pub fn check(&self, verb: Verb) -> Result<(), Refusal> {
        let (kind, causes) = match verb {
            Verb::Get => return Ok(()),
            Verb::List => ("ListOptions", self.broken_by_list()),
            Verb::Watch => ("ListOptions", self.broken_by_watch()),
            Verb::Create => ("CreateOptions", self.broken_by_write()),
            Verb::Update => ("UpdateOptions", self.broken_by_write()),
            Verb::Patch => ("PatchOptions", self.broken_by_write()),
            Verb::Delete | Verb::DeleteCollection => ("DeleteOptions", self.broken_by_write()),
        };
        if !causes.is_empty() {
            return Err(Refusal::invalid_options(kind, causes));
        }
        if verb == Verb::List && !self.continue_token.is_empty() && !matches!(&*self.resource_version, "" | "0") {
            return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
        }
        Ok(())
    }

    fn broken_by_list(&self) -> Vec<Cause> {
        if self.initial_events.is_some() {
            return vec![Cause::of("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")];
        }
        let field = "resourceVersionMatch";
        let mut causes = Vec::new();
        if self.resource_version_match.is_empty() {
            return causes;
        }
        if self.resource_version.is_empty() {
            causes.push(Cause::of(
                field,
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !self.continue_token.is_empty() {
            causes.push(Cause::of(field, "Forbidden: resourceVersionMatch is forbidden when continue is provided"));
        }
        match (self.resource_version_match.as_str(), self.resource_version.as_str()) {
            ("Exact", "0") => causes.push(Cause::of(
                field,
                "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            )),
            ("Exact" | "NotOlderThan", _) => {}
            (other, _) => {
                let supported = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
                causes.push(Cause::of(field, &format!("Unsupported value: \"{other}\": {supported}")));
            }
        }
        causes
    }

    /// The rules of KEP-3157.
    fn broken_by_watch(&self) -> Vec<Cause> {
        let field = "resourceVersionMatch";
        let mut causes = Vec::new();
        match (self.initial_events, self.resource_version_match.as_str()) {
            (Some(_), "NotOlderThan") | (None, "") => {}
            (None, _) => causes.push(Cause::of(
                field,
                "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )),
            (Some(_), other) => {
                let why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                causes.push(Cause::of(field, why));
                if !other.is_empty() {
                    let why = format!("Unsupported value: \"{other}\": supported values: \"NotOlderThan\"");
                    causes.push(Cause::of(field, &why));
                }
            }
        }
        causes
    }

    fn broken_by_write(&self) -> Vec<Cause> {
        let mut causes = Vec::new();
        causes.extend(unsupported_dry_run(&self.dry_run));
        if FieldValidation::parse(&self.field_validation).is_none() {
            let supported = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
            let why = format!("Unsupported value: \"{}\": {supported}", self.field_validation);
            causes.push(Cause::of("fieldValidation", &why));
        }
        causes
    }
}

/// What is wrong with a `dryRun`, in the query or in a body of options.
pub(super) fn unsupported_dry_run(parts: &[String]) -> Option<Cause> {
    let bad = parts.iter().any(|part| !part.is_empty() && part != "All");
    bad.then(|| {
        let given = serde_json::Value::from(parts).to_string();
        Cause::of("dryRun", &format!("Unsupported value: {given}: supported values: \"All\""))
    })
}

fn truthy(text: &str) -> bool {
    matches!(text, "" | "1" | "true" | "True")
}

fn number(text: &str) -> Result<i64, Refusal> {
    text.parse().map_err(|_| Refusal::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax")))
}
