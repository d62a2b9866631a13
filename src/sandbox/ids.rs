//! What a server draws at random: uids and the suffixes of generated names. All of it from one seed, so that a run repeats.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The alphabet of generated suffixes: no vowels (no words), nothing that looks like another letter.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LEN: usize = 5;

/// Draws uids and suffixes.
#[derive(Debug)]
pub struct Ids {
    rng: StdRng,
}

impl Ids {
    /// The same seed draws the same sequence.
    pub fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed) }
    }

    /// A uid in the form of a version 4 UUID.
    pub fn uid(&mut self) -> String {
        let bits: u128 = self.rng.random();
        let versioned = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{versioned:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The five characters that the server appends to `metadata.generateName`.
    pub fn suffix(&mut self) -> String {
        (0..SUFFIX_LEN).map(|_| char::from(SUFFIX_ALPHABET[self.rng.random_range(0..SUFFIX_ALPHABET.len())])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_have_the_form_of_version_4_and_follow_from_the_seed() {
        let (mut a, mut b) = (Ids::new(7), Ids::new(7));
        for _ in 0..100 {
            let uid = a.uid();
            assert_eq!(uid.len(), 36);
            assert_eq!(&uid[14..15], "4");
            assert!("89ab".contains(&uid[19..20]), "{uid}");
            assert_eq!(uid, b.uid());
        }
        assert_eq!(a.suffix(), b.suffix());
        assert_ne!(a.uid(), Ids::new(8).uid());
    }
}
