//! Faults on demand, between the wire and the store: what networks, proxies and busy servers do to a client.
//!
//! Invariants
//! - A fault never changes what the store may hold, only whether, when and how often a request reaches it and what of its
//!   effects is seen.
//! - Everything is drawn from one seed, in the order of requests, so a run with faults repeats.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

use super::call::{Call, Subresource, Verb};
use super::resources::{Resource, stored_as};
use super::status::Refusal;

/// One rule: which requests, how often, and what happens to them.
#[derive(Debug, Clone)]
pub struct Fault {
    verbs: Vec<Verb>,
    resource: Option<(String, String)>,
    subresource: Option<Subresource>,
    namespace: Option<String>,
    name: Option<String>,
    client: Option<String>,
    /// Chance that a matching request is hit, 0 to 1.
    probability: f64,
    /// Matching requests to let pass first.
    skip: u32,
    /// Hits left; `None` for no end.
    times: Option<u32>,
    action: Action,
}

/// What happens to a request that is hit.
#[derive(Debug, Clone)]
pub enum Action {
    /// It is refused and not applied.
    Refuse(Refusal),
    /// It is lost on the way: not applied, the connection breaks.
    LostRequest,
    /// It is applied, but the answer is lost: the connection breaks.
    LostAnswer,
    /// It waits before it is applied.
    Delay(Duration),
    /// It is applied at once, the answer waits.
    DelayAnswer(Duration),
    /// It is applied twice; the client sees the second answer.
    Duplicate,
    /// It is applied and answered, but watches of its resource do not show this write nor any later one until the release.
    StaleCache(Hold),
    /// A watch ends, without an error, this long after it began.
    CutWatch(Duration),
    /// A watch opens and then sends nothing, until it ends.
    StallWatch,
    /// A watch answers that its revision is too old.
    ExpireWatch,
}

/// How long a cache is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// What releases it.
    pub until: Release,
    /// Whether lists are answered from the held state too.
    pub lists: bool,
}

/// What releases a held cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Time, from the write that began it.
    After(Duration),
    /// Further writes to the resource.
    Writes(u32),
    /// Only [`crate::sandbox::Sandbox::release_cache`] or [`Faults::clear`].
    Told,
}

/// Names an installed fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultId(u64);

impl Fault {
    /// A fault that hits every request until it is narrowed.
    pub fn new(action: Action) -> Self {
        Self {
            verbs: Vec::new(),
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            client: None,
            probability: 1.0,
            skip: 0,
            times: None,
            action,
        }
    }

    /// Refused with a code; `retry_after_s` becomes the header `Retry-After`.
    pub fn refuse(code: u16, retry_after_s: Option<u32>) -> Self {
        let (reason, message) = match code {
            409 => (
                "Conflict",
                "the object has been modified; please apply your changes to the latest version and try again",
            ),
            410 => ("Expired", "the provided resource version is too old"),
            429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
            500 => ("InternalError", "an error on the server has prevented the request from succeeding"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => (
                "Timeout",
                "the server was unable to return a response in the time allotted, but may still be processing the request",
            ),
            _ => ("", "injected fault"),
        };
        Self::new(Action::Refuse(Refusal { retry_after_s, ..Refusal::new(code, reason, message) }))
    }

    /// Applied but the answer was lost.
    pub fn lost_answer() -> Self {
        Self::new(Action::LostAnswer)
    }

    /// Stale cache after own write.
    pub fn stale_cache(until: Release) -> Self {
        Self::new(Action::StaleCache(Hold { until, lists: false }))
    }

    /// Only requests with this verb (or one of several, if said again).
    #[must_use]
    pub fn on(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Only requests on this resource; core has the empty group.
    #[must_use]
    pub fn resource(mut self, group: &str, plural: &str) -> Self {
        self.resource = Some((group.to_owned(), plural.to_owned()));
        self
    }

    /// Only requests on this part of objects; by default on any.
    #[must_use]
    pub fn subresource(mut self, subresource: Subresource) -> Self {
        self.subresource = Some(subresource);
        self
    }

    /// Only requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only requests on this object; of a create, the name in its body.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only requests of this client; see [`super::Sandbox::service_of`].
    #[must_use]
    pub fn client(mut self, client: &str) -> Self {
        self.client = Some(client.to_owned());
        self
    }

    /// Hits each matching request with this chance, 0 to 1.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = probability.clamp(0.0, 1.0);
        self
    }

    /// Lets the first matching requests pass.
    #[must_use]
    pub fn skip(mut self, requests: u32) -> Self {
        self.skip = requests;
        self
    }

    /// Ends after this many hits.
    #[must_use]
    pub fn times(mut self, hits: u32) -> Self {
        self.times = Some(hits);
        self
    }

    fn matches(&self, call: &Call, name: &str, client: &str) -> bool {
        let equal = |wanted: &Option<String>, given: &str| wanted.as_ref().is_none_or(|wanted| wanted == given);
        let (group, plural) = (call.resource.group, call.resource.plural);
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && self.resource.as_ref().is_none_or(|(g, p)| g == group && p == plural)
            && self.subresource.is_none_or(|subresource| subresource == call.subresource)
            && equal(&self.namespace, &call.namespace)
            && equal(&self.name, name)
            && equal(&self.client, client)
    }

    fn is_spent(&self) -> bool {
        self.times == Some(0)
    }

    /// Counts a matching request; whether it is hit.
    fn hits(&mut self, rng: &mut StdRng) -> bool {
        if self.is_spent() {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let hit = self.probability >= 1.0 || rng.random_bool(self.probability);
        if hit && let Some(times) = &mut self.times {
            *times -= 1;
        }
        hit
    }
}

/// A cache that is held back: nothing after `ceiling` is shown.
#[derive(Debug)]
struct Held {
    resource: &'static Resource,
    ceiling: u64,
    until: Until,
    lists: bool,
}

#[derive(Debug)]
enum Until {
    At(Instant),
    Writes(u32),
    Told,
}

/// What of a resource may be seen now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visible {
    /// The last revision that watches show.
    pub(super) ceiling: u64,
    /// When to ask again.
    pub(super) until: Option<Instant>,
}

/// The installed faults. Takes effect with the next request; open watches notice holds and cuts at once.
#[derive(Debug)]
pub struct Faults {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    rng: StdRng,
    next_id: u64,
    rules: Vec<(FaultId, Fault)>,
    held: Vec<Held>,
    /// Counts [`Faults::cut_watches`]; a watch that sees another number than at its start ends.
    cuts: u64,
    /// How often a fault hit a request.
    hits: u64,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self { inner: Mutex::new(Inner { rng, next_id: 0, rules: Vec::new(), held: Vec::new(), cuts: 0, hits: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a fault has hit a request so far; a request hit by two counts twice.
    pub fn hits(&self) -> u64 {
        self.lock().hits
    }

    /// Installs a fault. Of several that hit one request, all act.
    pub fn install(&self, fault: Fault) -> FaultId {
        let mut inner = self.lock();
        inner.next_id += 1;
        let id = FaultId(inner.next_id);
        inner.rules.push((id, fault));
        id
    }

    /// Removes one fault; a cache that it holds back stays held.
    pub fn remove(&self, id: FaultId) {
        self.lock().rules.retain(|(known, _)| *known != id);
    }

    /// Removes every fault. Held caches are released by [`super::Sandbox::heal`], which calls this.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.rules.clear();
        inner.held.clear();
    }

    /// What happens to this request, in the order of installation.
    pub(super) fn decide(&self, call: &Call, client: &str) -> Vec<Action> {
        let Inner { rng, rules, hits, .. } = &mut *self.lock();
        if rules.is_empty() {
            return Vec::new();
        }
        let name = name_of(call);
        let act = |(_, rule): &mut (FaultId, Fault)| {
            (rule.matches(call, &name, client) && rule.hits(rng)).then(|| rule.action.clone())
        };
        let actions: Vec<Action> = rules.iter_mut().filter_map(act).collect();
        *hits += actions.len() as u64;
        rules.retain(|(_, rule)| !rule.is_spent());
        actions
    }

    /// Holds the caches of a resource back at `ceiling`; a hold that is there already stays.
    pub(super) fn hold(&self, resource: &'static Resource, ceiling: u64, hold: Hold, now: Instant) {
        let resource = stored_as(resource);
        let mut inner = self.lock();
        if inner.held.iter().any(|held| std::ptr::eq(held.resource, resource)) {
            return;
        }
        let until = match hold.until {
            Release::After(duration) => Until::At(now + duration),
            Release::Writes(writes) => Until::Writes(writes),
            Release::Told => Until::Told,
        };
        inner.held.push(Held { resource, ceiling, until, lists: hold.lists });
    }

    /// Counts a write to a resource against holds that wait for writes.
    pub(super) fn on_write(&self, resource: &'static Resource) {
        let mut inner = self.lock();
        inner.held.retain_mut(|held| match &mut held.until {
            Until::Writes(left) if std::ptr::eq(held.resource, stored_as(resource)) => {
                *left = left.saturating_sub(1);
                *left > 0
            }
            _ => true,
        });
    }

    /// Releases the caches of a resource.
    pub(super) fn release(&self, resource: &'static Resource) {
        self.lock().held.retain(|held| !std::ptr::eq(held.resource, stored_as(resource)));
    }

    /// What watches of a resource may show at `now`.
    pub(super) fn visible(&self, resource: &'static Resource, now: Instant) -> Visible {
        let mut inner = self.lock();
        inner.held.retain(|held| !matches!(held.until, Until::At(at) if at <= now));
        let held = inner.held.iter().find(|held| std::ptr::eq(held.resource, stored_as(resource)));
        match held {
            None => Visible { ceiling: u64::MAX, until: None },
            Some(Held { ceiling, until: Until::At(at), .. }) => Visible { ceiling: *ceiling, until: Some(*at) },
            Some(Held { ceiling, .. }) => Visible { ceiling: *ceiling, until: None },
        }
    }

    /// The revision at which lists of a resource are answered, if held back.
    pub(super) fn list_ceiling(&self, resource: &'static Resource, now: Instant) -> Option<u64> {
        let visible = self.visible(resource, now).ceiling;
        let inner = self.lock();
        let mut lists = inner.held.iter().filter(|held| held.lists);
        lists.any(|held| std::ptr::eq(held.resource, stored_as(resource))).then_some(visible)
    }

    pub(super) fn cut_watches(&self) {
        self.lock().cuts += 1;
    }

    pub(super) fn cuts(&self) -> u64 {
        self.lock().cuts
    }
}

/// The object a request is about: of a create, the name in its body.
fn name_of(call: &Call) -> String {
    if call.verb != Verb::Create {
        return call.name.clone();
    }
    #[derive(Default, serde::Deserialize)]
    struct Shell {
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Default, serde::Deserialize)]
    struct Metadata {
        #[serde(default)]
        name: String,
    }
    serde_json::from_slice::<Shell>(&call.body).map(|shell| shell.metadata.name).unwrap_or_default()
}
