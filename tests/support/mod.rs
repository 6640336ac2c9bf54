//! What the integration tests are written with: a scripted provider, the binary, the mock provider.
//!
//! Each test file says `mod support;` and takes what it needs. A test file is a program of its own, so that what it
//! does not use is dead code there; the expectation below covers it, and [`always_unused`] keeps the expectation true
//! in a file that uses everything. No test needs a lint attribute for that.
#![expect(dead_code, reason = "each test file is a program of its own and uses a part of this")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic, read the clock and write files"
)]

pub(crate) mod command;
pub(crate) mod http;
pub(crate) mod job;
pub(crate) mod mock;
pub(crate) mod opinions;
pub(crate) mod provider;

/// Makes the expectation of dead code true in every test file.
fn always_unused() {}
