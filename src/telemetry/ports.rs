//! The metrics of the secure port. They exist at zero also where it is off, so that what is exported does not depend on flags.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::Registry;

type Label = (&'static str, &'static str);

/// Counts of the secure port. Cheap to clone; clones count together.
#[derive(Clone, Debug)]
pub struct PortMetrics {
    reviews: Family<[Label; 2], Counter>,
    loads: Family<[Label; 1], Counter>,
}

impl PortMetrics {
    /// Registers the metrics.
    pub fn register(registry: &Registry) -> Self {
        let metrics = Self { reviews: Family::default(), loads: Family::default() };
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
}
