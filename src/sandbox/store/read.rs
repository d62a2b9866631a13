//! Get and list, and the forms in which objects are answered.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::collection::Collection;
use super::object::{Object, key_of};
use super::{Answer, Store};
use crate::model::WallTime;
use crate::sandbox::call::{Call, Form};
use crate::sandbox::render::View;
use crate::sandbox::selector::Selector;
use crate::sandbox::status::Refusal;

/// As of when a list that does not say so is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSource {
    /// The newest state.
    Current,
    /// The state at a revision: a cache that lags.
    At(u64),
}

/// What a continue token says: opaque to clients.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    /// Revision of the first page; all pages are of that moment.
    rv: u64,
    /// Last key of the page before.
    after: String,
    /// Objects that were left then; unknown with selectors.
    left: Option<usize>,
}

/// One page of a list.
struct Page {
    objects: Vec<Arc<Object>>,
    /// There is more.
    more: bool,
    left: Option<usize>,
}

impl Store {
    pub(super) fn read(&self, call: &Call, now: WallTime) -> Result<Answer, Refusal> {
        self.check_not_ahead(revision_of(&call.options.resource_version).map_err(Refusal::internal)?)?;
        let object = self.find(call)?;
        self.answer(200, call, &object, now, Vec::new())
    }

    /// Answers with one object in the form the client asked for.
    pub(super) fn answer(
        &self,
        code: u16,
        call: &Call,
        object: &Object,
        now: WallTime,
        warnings: Vec<String>,
    ) -> Result<Answer, Refusal> {
        let view = View::of(call, now);
        if call.form == Form::MetadataList {
            return Err(Refusal::not_a_list(call.resource));
        }
        Ok(Answer { warnings, ..Answer::json(code, view.one(object)) })
    }

    /// Answers a list.
    ///
    /// # Errors
    /// 400 for bad selectors and tokens, 410 for a token or an exact revision that the log no longer reaches, 504 for a
    /// revision that is not written yet.
    pub fn list(&self, call: &Call, source: &ListSource, now: WallTime) -> Result<Answer, Refusal> {
        let (objects, metadata, revision) = self.select(call, *source)?;
        let view = View::of(call, now);
        Ok(Answer::json(200, view.many(&objects, &metadata, revision)))
    }

    /// The objects that a call on a collection means, the `metadata` of their list, and as of which revision.
    pub(super) fn select(
        &self,
        call: &Call,
        source: ListSource,
    ) -> Result<(Vec<Arc<Object>>, serde_json::Value, u64), Refusal> {
        let options = &call.options;
        let selector = Selector::parse(call.resource, &options.label_selector, &options.field_selector)?;
        let collection = self.collection(call.resource).ok_or_else(Refusal::no_such_path)?;
        let token =
            (!options.continue_token.is_empty()).then(|| Continue::decode(&options.continue_token)).transpose()?;
        let revision = match &token {
            Some(token) => token.rv,
            None => self.list_revision(call, source)?,
        };
        let page = page(collection, call, &selector, revision, token.as_ref())
            .map_err(|expired| Refusal::expired(revision, expired.trimmed))?;
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if call.resource.custom && call.form == Form::Object {
            // Lists of custom kinds always say it.
            metadata["continue"] = "".into();
        }
        if let (true, Some(last)) = (page.more, page.objects.last()) {
            let token = Continue { rv: revision, after: last.key.to_string(), left: page.left };
            metadata["continue"] = token.encode().into();
            if let Some(left) = page.left {
                metadata["remainingItemCount"] = left.into();
            }
        }
        Ok((page.objects, metadata, revision))
    }

    fn list_revision(&self, call: &Call, source: ListSource) -> Result<u64, Refusal> {
        let asked = revision_of(&call.options.resource_version)
            .map_err(|error| Refusal::bad_request(format!("invalid resource version: {error}")))?;
        self.check_not_ahead(asked)?;
        Ok(match (source, call.options.resource_version_match.as_str()) {
            (_, "Exact") if asked > 0 => asked,
            (ListSource::At(revision), _) => revision.max(asked).min(self.revision),
            (ListSource::Current, _) => self.revision,
        })
    }

    fn check_not_ahead(&self, asked: u64) -> Result<(), Refusal> {
        if asked > self.revision { Err(Refusal::ahead(asked, self.revision)) } else { Ok(()) }
    }

    pub(super) fn read_pod_log(&self, call: &Call) -> Result<Answer, Refusal> {
        self.find(call)?;
        let containers = self.pod_logs.get(&key_of(&call.namespace, &call.name));
        let wanted = &call.options.container;
        let text = containers.and_then(|containers| match wanted.is_empty() {
            true => containers.values().next(),
            false => containers.get(wanted),
        });
        let body = Bytes::from(text.cloned().unwrap_or_default());
        Ok(Answer { content_type: "text/plain", ..Answer::json(200, body) })
    }
}

/// A `resourceVersion` of a request; empty counts as 0.
///
/// # Errors
/// The server's own text for anything that is not a number; the code that it comes with depends on the verb.
pub fn revision_of(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let why = format!("strconv.ParseUint: parsing \"{text}\": invalid syntax");
    text.parse().map_err(|_| format!("resourceVersion: Invalid value: \"{text}\": {why}"))
}

fn page(
    collection: &Collection,
    call: &Call,
    selector: &Selector,
    revision: u64,
    token: Option<&Continue>,
) -> Result<Page, super::Expired> {
    let after = token.map(|token| token.after.as_str());
    let everything = selector.is_everything();
    let mut rest = collection
        .range_at(revision, &call.namespace, after)?
        .filter(|object| everything || selector.matches(object))
        .peekable();
    let limit = if call.options.limit == 0 { usize::MAX } else { call.options.limit };
    let mut objects = Vec::new();
    while objects.len() < limit
        && let Some(object) = rest.next()
    {
        objects.push(object);
    }
    let more = rest.peek().is_some();
    // Counting the rest once per list, not once per page.
    let left = match token.map(|token| token.left) {
        _ if !more || !everything => None,
        Some(before) => before.map(|before| before.saturating_sub(objects.len())),
        None => Some(rest.count()),
    };
    Ok(Page { objects, more, left })
}

impl Continue {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self, Refusal> {
        let bad =
            |why: String| Refusal::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| bad(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))
    }
}
