//! Full lists, page by page.

use tokio::time::timeout_at;

use super::run::Trouble;
use super::wire::Page;
use super::{Cached, Phase, Reflector, Sink};
use crate::cluster::exchange::exchange;
use crate::cluster::failure::too_late;

impl<T: Cached, S: Sink<T>> Reflector<T, S> {
    /// Takes in a full list, one page after the other; each page is decoded into pruned objects and forgotten.
    pub(super) async fn list_by_pages(&mut self) -> Result<(), Trouble> {
        self.begin_list();
        let mut next: Option<String> = None;
        loop {
            let request = self.requests.page(next.as_deref()).map_err(|e| Trouble::Anew(e.to_string()))?;
            let until = self.clock.mono() + self.options.patience;
            let answer = timeout_at(until, exchange(&self.client, request)).await;
            let (_, body) = answer.unwrap_or_else(|_late| Err(too_late(self.options.patience))).map_err(Trouble::of)?;
            let page: Page<'_> =
                serde_json::from_slice(&body).map_err(|e| Trouble::Anew(format!("unreadable list: {e}")))?;
            for item in page.items.iter().flatten() {
                self.take_in(item);
            }
            self.health.on_progress(Phase::Listing, self.clock.mono());
            match page.metadata.next.filter(|token| !token.is_empty()) {
                Some(token) => next = Some(token),
                None => {
                    self.end_list(page.metadata.resource_version);
                    return Ok(());
                }
            }
        }
    }

    pub(super) fn begin_list(&mut self) {
        self.metrics.lists.inc();
        self.store.begin_list();
    }
}
