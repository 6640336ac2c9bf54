//! From what was typed, set and written to one resolved configuration.
//!
//! What it is for: three layers (flags, environment, file) over the defaults, each value with its origin; the
//! result is [`crate::model::Settings`]. It uses `cli/keys` for the names and the rooms below for their own texts
//! (columns, shares, endpoints).
//! What never happens here: a credential is read (only its name is), or a request is made.

mod answer;
mod effective;
mod error;
mod file;
mod keys;
mod layers;
mod price;
mod resolve;
mod values;
mod wrong;

pub(crate) use effective::{Effective, effective};
pub(crate) use error::SettingsError;
pub(crate) use file::{ConfigFile, closest};
pub(crate) use layers::Layers;
pub(crate) use resolve::{Invocation, Resolved, resolve};
