//! How many requests may be in flight: additive increase, multiplicative decrease.
//!
//! Measured on a real server the best number lies between 16 and 128 and depends on the server's size, which nobody tells
//! us. So the number grows by one after as many timely answers as it is large, while somebody waits for a slot, and is
//! halved when the server refuses for load or does not answer in time. All refusals of requests that were sent before a
//! cut count as that one cut.

/// The bounds of the number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// At start.
    pub start: usize,
    /// Never below.
    pub min: usize,
    /// Never above.
    pub max: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { start: 64, min: 16, max: 128 }
    }
}

/// The number of the moment.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    bounds: Concurrency,
    current: usize,
    /// Counts cuts.
    epoch: u64,
    /// Timely answers since the last change, counted while somebody waited.
    answers: usize,
}

impl Limit {
    pub(crate) fn new(bounds: Concurrency) -> Self {
        let min = bounds.min.max(1);
        let bounds = Concurrency { min, max: bounds.max.max(min), ..bounds };
        Self { current: bounds.start.clamp(bounds.min, bounds.max), bounds, epoch: 0, answers: 0 }
    }

    /// A number that never changes.
    pub(crate) fn fixed(number: usize) -> Self {
        Self::new(Concurrency { start: number, min: number, max: number })
    }

    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// How many of the slots are kept for creations of tenants that have nothing in flight.
    pub(crate) fn kept(&self) -> usize {
        self.current / 8
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A timely answer came; `busy` says whether somebody waits for a slot. Without that the number was not put to the test.
    pub(crate) fn on_answer(&mut self, busy: bool) {
        if !busy {
            return;
        }
        self.answers += 1;
        if self.answers >= self.current {
            self.answers = 0;
            self.current = (self.current + 1).min(self.bounds.max);
        }
    }

    /// The server is overloaded, says a request that was sent in `epoch`.
    pub(crate) fn on_congestion(&mut self, epoch: u64) {
        if epoch == self.epoch {
            self.epoch += 1;
            self.answers = 0;
            self.current = (self.current / 2).max(self.bounds.min);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_one_epoch_halve_the_number_once_and_never_below_the_floor() {
        let mut limit = Limit::new(Concurrency::default());
        let sent = limit.epoch();
        for _ in 0..10 {
            limit.on_congestion(sent);
        }
        assert_eq!(limit.current(), 32);
        for _ in 0..5 {
            limit.on_congestion(limit.epoch());
        }
        assert_eq!(limit.current(), 16);
    }

    #[test]
    fn the_number_grows_by_one_per_round_of_answers_and_only_while_somebody_waits() {
        let mut limit = Limit::new(Concurrency::default());
        (0..1000).for_each(|_| limit.on_answer(false));
        assert_eq!(limit.current(), 64);
        (0..64).for_each(|_| limit.on_answer(true));
        assert_eq!(limit.current(), 65);
        (0..100_000).for_each(|_| limit.on_answer(true));
        assert_eq!(limit.current(), 128);
    }

    #[test]
    fn senseless_bounds_are_made_sensible() {
        assert_eq!(Limit::new(Concurrency { start: 5, min: 0, max: 0 }).current(), 1);
        assert_eq!(Limit::fixed(1).kept(), 0);
    }
}
