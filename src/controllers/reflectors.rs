//! How CronJobs, Jobs and Pods are watched; the same for every controller.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::Deps;
use crate::api::{ALL_PODS_PATH, PODS_THAT_END, decode_batch_job, decode_cronjob, decode_job, decode_pod, wire};
use crate::clock::Clock;
use crate::cluster::{Reflector, ReflectorMetrics, ReflectorOptions, Sink, Store};
use crate::model::{BatchJob, CronJob, Flavor, Job, Pod, PodTemplate};

/// What reflectors are made from.
pub(super) struct Source<'a> {
    /// For lists and watches.
    pub(super) watches: &'a kube::Client,
    pub(super) clock: &'a Clock,
    pub(super) seed: u64,
    pub(super) metrics: &'a ReflectorMetrics,
}

impl<'a> Source<'a> {
    pub(super) fn of(deps: &'a Deps) -> Self {
        let Deps { watches, clock, seed, metrics, .. } = deps;
        Source { watches, clock, seed: *seed, metrics: &metrics.reflectors }
    }

    /// The reflector of CronJobs in all namespaces: fills `store` and tells `sink`.
    pub(super) fn cronjobs<S: Sink<CronJob>>(
        &self,
        flavor: Flavor,
        store: &Store<CronJob>,
        sink: S,
    ) -> Reflector<CronJob, S> {
        let resource = format!("cronjobs.{}", wire(flavor).group);
        let options = ReflectorOptions::new(wire(flavor).cronjobs_path(None), resource, self.seed);
        let decode = move |raw: &RawValue| decode_cronjob(flavor, raw.get()).map_err(|error| error.told());
        Reflector::new(self.watches.clone(), self.clock.clone(), options, decode, sink, self.metrics)
            .filling(store.clone())
    }

    /// The reflector of Jobs in all namespaces: fills `store` and tells `sink`.
    pub(super) fn jobs<S: Sink<Job>>(&self, flavor: Flavor, store: &Store<Job>, sink: S) -> Reflector<Job, S> {
        let seed = self.seed.wrapping_add(1);
        let options = ReflectorOptions::new(wire(flavor).jobs_path(None), wire(flavor).jobs_resource, seed);
        let decode = move |raw: &RawValue| decode_job(flavor, raw.get()).map_err(|error| error.told());
        Reflector::new(self.watches.clone(), self.clock.clone(), options, decode, sink, self.metrics)
            .filling(store.clone())
    }

    /// The reflector of `batch/v1` Jobs in full, in all namespaces: fills `store` and tells `sink`. `controller` tells its metrics from
    /// those of other caches of Jobs. A Job that `has_a_use` for no template is kept without one.
    pub(super) fn batch_jobs<S: Sink<BatchJob>>(
        &self,
        controller: &str,
        has_a_use: impl Fn(&BatchJob) -> bool + Send + Sync + 'static,
        store: &Store<BatchJob>,
        sink: S,
    ) -> Reflector<BatchJob, S> {
        let wire = wire(Flavor::Kubernetes);
        let resource = format!("{} of {controller}", wire.jobs_resource);
        let options = ReflectorOptions::new(wire.jobs_path(None), resource, self.seed.wrapping_add(2));
        let none = Arc::new(PodTemplate::default());
        let decode = move |raw: &RawValue| {
            let mut job = decode_batch_job(raw.get()).map_err(|error| error.told())?;
            if !has_a_use(&job) {
                job.spec.template = none.clone();
            }
            Ok::<_, String>(job)
        };
        Reflector::new(self.watches.clone(), self.clock.clone(), options, decode, sink, self.metrics)
            .filling(store.clone())
    }

    /// The reflector of the Pods of all namespaces that end by themselves, as those of Jobs do: fills `store` and tells `sink`.
    pub(super) fn pods<S: Sink<Pod>>(&self, store: &Store<Pod>, sink: S) -> Reflector<Pod, S> {
        let options = ReflectorOptions {
            field_selector: Some(PODS_THAT_END.to_owned()),
            ..ReflectorOptions::new(ALL_PODS_PATH, "pods", self.seed.wrapping_add(3))
        };
        let decode = |raw: &RawValue| decode_pod(raw.get()).map_err(|error| error.told());
        Reflector::new(self.watches.clone(), self.clock.clone(), options, decode, sink, self.metrics)
            .filling(store.clone())
    }
}
