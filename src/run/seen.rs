//! Which requests an execution has fed already, in a megabyte.

/// Words of the filter: 2^23 bits, a megabyte.
const WORDS: usize = 1 << 17;

/// A Bloom filter of request digests. It may take a new request for a known one and then costs a lookup in vain (one
/// in fifty at a million requests); it never takes a known one for new, so that nothing is bought twice. Its size is
/// fixed: memory does not grow with the number of rows.
#[derive(Debug)]
pub(super) struct SeenRequests {
    words: Vec<u64>,
}

impl Default for SeenRequests {
    fn default() -> Self {
        Self { words: vec![0; WORDS] }
    }
}

impl SeenRequests {
    /// Notes a request. Returns whether it may have been noted before.
    pub(super) fn insert(&mut self, hash: &[u8; 16]) -> bool {
        let mut seen = true;
        // A digest is four independent places.
        for part in hash.as_chunks::<4>().0 {
            let place = u32::from_le_bytes(*part);
            let bit = 1_u64 << (place % 64);
            if let Some(word) = usize::try_from(place / 64).ok().and_then(|at| self.words.get_mut(at % WORDS))
            {
                seen &= *word & bit != 0;
                *word |= bit;
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Digest;

    fn hash(number: u32) -> [u8; 16] {
        Digest::of(&number.to_le_bytes()).short()
    }

    #[test]
    fn a_known_request_is_never_taken_for_new() {
        let mut seen = SeenRequests::default();
        let wrong = (0..20_000).filter(|number| seen.insert(&hash(*number))).count();
        assert!(wrong < 20, "{wrong} new requests were taken for known ones");
        assert!((0..20_000).all(|number| seen.insert(&hash(number))));
    }
}
