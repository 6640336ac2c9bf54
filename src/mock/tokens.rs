//! Tokens as the provider bills them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most pieces whose tokens are remembered: some megabytes.
const MOST_PIECES: usize = 32_768;
/// The longest piece that is remembered, in bytes. Most are words.
const LONGEST_PIECE: usize = 32;

/// Counts by the encoding `o200k_base`. It splits a text into pieces, nearly all of them words, and each into tokens; how
/// many tokens a word has is remembered.
pub(super) struct Tokens {
    tokenizer: &'static bpe_openai::Tokenizer,
    known: Mutex<HashMap<Box<str>, usize>>,
}

impl Tokens {
    /// Loads the tokenizer if nobody has.
    pub(super) fn new() -> Self {
        Self { tokenizer: bpe_openai::o200k_base(), known: Mutex::default() }
    }

    /// The tokens of a text.
    pub(super) fn count(&self, text: &str) -> u64 {
        let text = self.tokenizer.normalize(text);
        // Each count is whole, so a panic of a holder has broken nothing.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |piece: &str| {
            if let Some(count) = known.get(piece) {
                return *count;
            }
            let count = self.tokenizer.bpe.count(piece.as_bytes());
            if piece.len() <= LONGEST_PIECE && known.len() < MOST_PIECES {
                known.insert(piece.into(), count);
            }
            count
        };
        self.tokenizer.split(text.as_str()).map(count).sum::<usize>() as u64
    }

    /// The first `count` tokens of a text; fewer where the last one ends within a character.
    pub(super) fn first(&self, text: &str, count: u64) -> String {
        let mut tokens = self.tokenizer.encode(text);
        tokens.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        loop {
            match self.tokenizer.decode(&tokens) {
                Some(text) => return text,
                None if tokens.pop().is_none() => return String::new(),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_that_ends_within_a_character_is_left_out() {
        let tokens = Tokens::new();
        assert_eq!(tokens.first("hello world", 1), "hello");
        assert_eq!(tokens.first("hello", 9), "hello");
        let rare = "\u{1f9ff}";
        assert!(tokens.count(rare) > 1);
        assert_eq!(tokens.first(rare, 1), "");
    }

    proptest! {
        #[test]
        fn what_is_remembered_changes_no_count(texts in proptest::collection::vec("(\\PC| the| was|\n|  ){0,40}", 1..8)) {
            let tokens = Tokens::new();
            for text in texts.iter().chain(&texts) {
                prop_assert_eq!(tokens.count(text), bpe_openai::o200k_base().count(text.as_str()) as u64);
            }
        }
    }
}
