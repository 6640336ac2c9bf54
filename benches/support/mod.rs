//! What both benches are made of: an input, processes that are measured, a provider, a verdict.
#![expect(dead_code, reason = "each bench is a program of its own and uses a part of this")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock, waits and writes files")]

pub(crate) mod arguments;
pub(crate) mod compare;
pub(crate) mod input;
pub(crate) mod process;
pub(crate) mod provider;
pub(crate) mod verdict;

/// Why a bench could not be made.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;
