//! The store: every run, every attempt and what they taught, in one `SQLite` file.
//!
//! What it is for: an attempt is on disk before its row counts as done, an answer is bought once, and a run that
//! was killed goes on where it stopped. [`Store`] opens the file and keeps the runs, [`Writer`] is the one thread
//! that adds attempts, many to a commit, and [`Reader`] looks things up beside it. `docs/store.md` is the format.
//!
//! It uses `base`, `model` and `SQLite`. Times are arguments: no clock is read here.
//!
//! What never happens here: nothing decides what a row becomes (a status is computed from attempts, above), no
//! credential has a column (keys are labels, replies arrive redacted), and nothing is reported as kept before the
//! disk has it.

mod batch;
mod carrier;
mod connection;
mod decisions;
mod disk;
mod entry;
mod error;
mod folder;
mod history;
mod ledger;
mod migrate;
mod open;
mod reader;
mod record;
mod removal;
mod runs;
mod writer;

#[cfg(test)]
mod samples;

pub use entry::Entry;
pub use error::StoreError;
pub use folder::prepare_folder;
pub use history::{Replayed, RowHistory};
pub use ledger::{Book, Lease};
pub use open::Store;
pub use reader::Reader;
pub use runs::{NewRun, RunRecord};
pub use writer::{OnCommit, Writer, Written};
