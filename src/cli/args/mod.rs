//! The command line, as `clap` sees it.
//!
//! What it is for: commands, flags, help. The keys of the configuration come from `cli/keys`, so that a key has its
//! flag by being in that table.
//! It uses `clap` and `cli/keys`.
//! What never happens here: a value is interpreted beyond its form.

mod assets;
mod check;
mod export;
mod job;
mod models;
mod program;
mod read;
mod review;
mod run;
mod runs;

pub(crate) use check::CheckArgs;
pub(crate) use export::ExportArgs;
pub(crate) use job::JobArgs;
pub(crate) use models::ModelsArgs;
pub(crate) use program::command;
pub(crate) use read::{ReadArgs, ShowArgs};
pub(crate) use review::{AgreementArgs, ReviewArgs, ReviewStep};
pub(crate) use run::RunArgs;
pub(crate) use runs::{RunsArgs, Which};
