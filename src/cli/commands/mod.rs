//! One file a command: what it takes and what it does.
//!
//! What it is for: each command reads its arguments, calls the rooms beneath and says what came of it.
//! It uses every floor beneath `cli`.
//! What never happens here: a command of one file reaches into another file's command.

mod agreement;
mod assets;
mod check;
mod check_command;
mod context;
mod dispatch;
mod estimate;
mod export;
mod log;
mod mock;
mod models;
mod pipeline;
mod record;
mod review;
mod run;
mod runs;
mod show;
mod source;
mod stand;
mod status;
mod stored_path;

pub(crate) use context::Context;
pub(crate) use dispatch::dispatch;
pub(crate) use mock::MockArgs;
