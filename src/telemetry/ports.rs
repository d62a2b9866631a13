//! The metrics of the secure port. They exist at zero also where it is off, so that what is exported does not depend on flags.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::Registry;
use crate::model::WallTime;

type Label = (&'static str, &'static str);

/// Counts of the secure port. Cheap to clone; clones count together.
#[derive(Clone, Debug)]
pub struct PortMetrics {
    reviews: Family<[Label; 2], Counter>,
    loads: Family<[Label; 1], Counter>,
    expiry_s: Gauge,
}

impl PortMetrics {
    /// Registers the metrics.
    pub fn register(registry: &Registry) -> Self {
        let metrics = Self { reviews: Family::default(), loads: Family::default(), expiry_s: Gauge::default() };
        for review in ["token", "access"] {
            for result in ["yes", "no", "error"] {
                let _at_zero = metrics.reviews.get_or_create(&[("review", review), ("result", result)]);
            }
        }
        for result in ["loaded", "broken"] {
            let _at_zero = metrics.loads.get_or_create(&[("result", result)]);
        }
        let all = metrics.clone();
        registry.register(|to| {
            let help = "Questions to the API server about who reads the secure port, by answer";
            to.register("cronjob_controller_access_reviews", help, all.reviews);
            let help = "Changed certificates of the secure port by whether they could be used";
            to.register("cronjob_controller_tls_certificate_loads", help, all.loads);
            let help =
                "End of the certificate that the secure port shows, in seconds since the Unix epoch; 0 without one";
            to.register("cronjob_controller_tls_certificate_expiry_timestamp_seconds", help, all.expiry_s);
        });
        metrics
    }

    /// Counts a question about a token or an access.
    pub(super) fn on_review(&self, review: &'static str, result: &'static str) {
        self.reviews.get_or_create(&[("review", review), ("result", result)]).inc();
    }

    /// Counts a changed certificate.
    pub(super) fn on_load(&self, usable: bool) {
        self.loads.get_or_create(&[("result", if usable { "loaded" } else { "broken" })]).inc();
    }

    /// Tells when the certificate in use ends.
    pub(super) fn on_expiry(&self, at: Option<WallTime>) {
        self.expiry_s.set(at.map_or(0, |at| at.timestamp()));
    }
}
