//! All objects of one resource, in the order of their keys, with the log of their changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::log::{Change, Entry, Expired, Log};
use super::object::Object;
use crate::sandbox::resources::Resource;

/// All objects of one resource.
#[derive(Debug)]
pub struct Collection {
    /// The resource in whose form the objects are stored.
    pub resource: &'static Resource,
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    log: Log,
}

impl Collection {
    /// An empty collection whose log keeps `log_limit` changes.
    pub fn new(resource: &'static Resource, log_limit: usize) -> Self {
        Self { resource, objects: BTreeMap::new(), log: Log::new(log_limit) }
    }

    /// The current version of an object.
    pub fn get(&self, key: &str) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The changes.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Objects of a namespace (of all, if empty) in key order, from the first key after `after`.
    pub fn range<'a>(&'a self, namespace: &str, after: Option<&str>) -> impl Iterator<Item = &'a Arc<Object>> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let start = match after {
            Some(key) if key >= prefix.as_str() => Bound::Excluded(key.to_owned()),
            _ => Bound::Included(prefix.clone()),
        };
        self.objects
            .range::<str, _>((start.as_ref().map(String::as_str), Bound::Unbounded))
            .map(|(_, object)| object)
            .take_while(move |object| object.key.starts_with(&prefix))
    }

    /// What [`range`](Self::range) would have given at `revision`.
    ///
    /// # Errors
    /// When the log does not reach back that far.
    pub fn range_at<'a>(
        &'a self,
        revision: u64,
        namespace: &'a str,
        after: Option<&'a str>,
    ) -> Result<impl Iterator<Item = Arc<Object>>, Expired> {
        let changed = self.log.undo_to(revision)?;
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let mut then: Vec<(Arc<str>, Option<Arc<Object>>)> = changed
            .into_iter()
            .filter(|(key, _)| key.starts_with(&prefix) && after.is_none_or(|after| &**key > after))
            .collect();
        then.reverse();
        let mut live = self.range(namespace, after).peekable();
        Ok(std::iter::from_fn(move || {
            loop {
                let changed_first = match (then.last(), live.peek()) {
                    (Some((key, _)), Some(object)) => *key <= object.key,
                    (changed, _) => changed.is_some(),
                };
                if !changed_first {
                    return live.next().cloned();
                }
                let (key, object) = then.pop()?;
                live.next_if(|object| object.key == key);
                if object.is_some() {
                    return object;
                }
            }
        }))
    }

    /// Stores a version and logs it. Answers the version before.
    pub(super) fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let previous = self.objects.insert(object.key.clone(), object.clone());
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        self.log.push(Entry { revision: object.revision, change, object, previous: previous.clone() });
        previous
    }

    /// Removes an object and logs it as of `revision`. Answers the last version.
    pub(super) fn remove(&mut self, key: &str, revision: u64) -> Option<Arc<Object>> {
        let previous = self.objects.remove(key)?;
        let object = Arc::new(previous.restamped(self.resource, revision));
        self.log.push(Entry { revision, change: Change::Deleted, object, previous: Some(previous.clone()) });
        Some(previous)
    }

    /// Forgets all changes at or before `revision`.
    pub(super) fn compact(&mut self, revision: u64) {
        self.log.compact(revision);
    }
}
