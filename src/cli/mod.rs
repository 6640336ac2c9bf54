//! (page to be written)

pub mod commands;
