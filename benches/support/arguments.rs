//! The command line of a bench.

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// The sizes of the targets, which decide the exit code.
    Full,
    /// Seconds, to see that the bench works. Nothing is judged: starting up weighs too much.
    Smoke,
}

/// Reads `--smoke`. Without `--bench`, which `cargo bench` adds, there is nothing to do: `cargo test --all-targets`
/// runs this program too, and a debug build says nothing about speed.
pub(crate) fn size() -> Option<Size> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|have| have == word);
    has("--bench").then(|| if has("--smoke") { Size::Smoke } else { Size::Full })
}
