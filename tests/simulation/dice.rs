//! Random numbers of one purpose, from the seed and the purpose's name: what one part draws does not change what another draws.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Draws for one purpose.
pub(crate) struct Dice(StdRng);

impl Dice {
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a; any fixed hash will do.
        let hash = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(StdRng::seed_from_u64(seed ^ hash))
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    /// Both ends included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high.max(low))
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.0.random_range(0..from.len())]
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0.random()
    }
}
