//! The one state machine that decides what is sent when.
//!
//! What it is for: it owns the window of loaded rows and asks for more, hands out tickets with keys, rules on every
//! outcome, shares answers among rows with equal requests, and knows when to stop. A driver polls it and does as it
//! says; a simulation does the same in virtual time.
//! It uses the other deciders of `policy`.
//! What never happens here: it never waits, and it never holds more rows than its window.

mod machine;
mod money;
mod outcome;
mod plan;
mod settle;
mod sharing;
mod window;

pub use machine::Scheduler;
pub use plan::{
    Assignment, Feedback, FinishedRow, Halt, Notice, Outcome, RowPlan, Ruling, SamplePlan, SchedulerConfig,
    Step,
};
