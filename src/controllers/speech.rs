//! How a controller tells users something about an object: as an Event, to whoever observes it in this process, and in the log.

use std::sync::Arc;

use super::{Deps, Observer};
use crate::clock::Clock;
use crate::cluster::EventRecorder;
use crate::model::{EventType, Happening, ObjectKey, ObjectReference, Uid};

/// Speaks for one controller about objects of one kind. Cheap to clone.
#[derive(Clone)]
pub(super) struct Speaker {
    /// Name of the controller.
    pub(super) controller: &'static str,
    /// `source.component` of the peer's events.
    component: &'static str,
    api_version: &'static str,
    kind: &'static str,
    recorder: EventRecorder,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
}

impl Speaker {
    /// `component` is the peer's name in its events.
    pub(super) fn new(
        controller: &'static str,
        component: &'static str,
        (api_version, kind): (&'static str, &'static str),
        deps: &Deps,
    ) -> Self {
        let (recorder, clock, observer) = (deps.recorder.clone(), deps.clock.clone(), deps.observer.clone());
        Self { controller, component, api_version, kind, recorder, clock, observer }
    }

    /// Tells what happened to the object of this version.
    pub(super) fn say(&self, key: &ObjectKey, uid: Uid, resource_version: Box<str>, happening: Happening) {
        let Happening { reason, message, .. } = &happening;
        tracing::debug!(controller = self.controller, object = %key, reason, message, "event");
        if let Some(observer) = &self.observer {
            observer.on_happening(self.controller, key, self.clock.wall(), &happening);
        }
        let about = ObjectReference {
            kind: self.kind.into(),
            api_version: self.api_version.into(),
            namespace: (&*key.namespace).into(),
            name: (&*key.name).into(),
            uid,
            resource_version,
            field_path: Box::default(),
        };
        self.recorder.record(self.component, about, happening);
    }

    /// Tells of an object that cannot be read what is wrong with it. The peers' API clients cannot even see such objects.
    pub(super) fn say_unreadable(&self, key: &ObjectKey, uid: Uid, error: String) {
        let (event_type, reason) = (EventType::Warning, "UnreadableObject");
        self.say(key, uid, Box::default(), Happening { event_type, reason, message: error, due_minutes: None });
    }
}
