//! What was made of the first text of its kind.

use std::sync::OnceLock;

/// Keeps what was made of the first text that it sees. All requests of a job carry the same schema and system text,
/// so that this spares nearly all of the work, and a stream of different texts cannot make it grow.
#[derive(Debug, Clone)]
pub(super) struct First<T>(OnceLock<(Box<str>, T)>);

impl<T> First<T> {
    /// Nothing yet.
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// What `value_of` makes of `text`, if it is the first text; `None` for any other.
    pub(super) fn get(&self, text: &str, value_of: impl FnOnce(&str) -> T) -> Option<&T> {
        let (first, made) = self.0.get_or_init(|| (text.into(), value_of(text)));
        (**first == *text).then_some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_text_is_kept() {
        let first = First::new();
        assert_eq!(first.get("a", str::len), Some(&1));
        assert_eq!(first.get("bb", str::len), None);
        assert_eq!(first.get("a", |_| 7), Some(&1));
    }
}
