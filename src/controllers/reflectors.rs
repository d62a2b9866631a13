//! How CronJobs and Jobs are watched; the same for every controller.

use serde_json::value::RawValue;

use crate::api::{decode_cronjob, decode_job, wire};
use crate::clock::Clock;
use crate::cluster::{Reflector, ReflectorMetrics, ReflectorOptions, Sink, Store};
use crate::model::{CronJob, Flavor, Job};

/// What reflectors are made from.
pub(super) struct Source<'a> {
    pub(super) flavor: Flavor,
    /// For lists and watches.
    pub(super) watches: &'a kube::Client,
    pub(super) clock: &'a Clock,
    pub(super) seed: u64,
    pub(super) metrics: &'a ReflectorMetrics,
}

impl Source<'_> {
    /// The reflector of CronJobs in all namespaces: fills `store` and tells `sink`.
    pub(super) fn cronjobs<S: Sink<CronJob>>(&self, store: &Store<CronJob>, sink: S) -> Reflector<CronJob, S> {
        let flavor = self.flavor;
        let resource = format!("cronjobs.{}", wire(flavor).group);
        let options = ReflectorOptions::new(wire(flavor).cronjobs_path(None), resource, self.seed);
        let decode = move |raw: &RawValue| decode_cronjob(flavor, raw.get()).map_err(|error| error.told());
        Reflector::new(self.watches.clone(), self.clock.clone(), options, decode, sink, self.metrics)
            .filling(store.clone())
    }

    /// The reflector of Jobs in all namespaces: fills `store` and tells `sink`.
    pub(super) fn jobs<S: Sink<Job>>(&self, store: &Store<Job>, sink: S) -> Reflector<Job, S> {
        let flavor = self.flavor;
        let seed = self.seed.wrapping_add(1);
        let options = ReflectorOptions::new(wire(flavor).jobs_path(None), wire(flavor).jobs_resource, seed);
        let decode = move |raw: &RawValue| decode_job(flavor, raw.get()).map_err(|error| error.told());
        Reflector::new(self.watches.clone(), self.clock.clone(), options, decode, sink, self.metrics)
            .filling(store.clone())
    }
}
