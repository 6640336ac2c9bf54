//! Pure deciders: what to send when, how long to wait, which key, when to stop, what a row's answers mean.
//!
//! What it is for: everything that decides over time. Each decider takes `now` as an argument and returns what
//! should happen; [`Scheduler`] joins them into one state machine that a driver polls.
//! It uses `model` and `base` only.
//! What never happens here: a clock is read, a lock is taken, a task awaits, a file or a socket is touched. So whole
//! runs are simulated in virtual time, thousands with different seeds (`tests/simulation.rs`).

mod agreement;
mod breaker;
mod budget;
mod consensus;
mod gate;
mod keys;
mod limiter;
mod retry;
mod review;
mod scheduler;

pub use agreement::{Agreement, BINS, Bin, Confusion, Outcomes};
pub use breaker::{Breaker, BreakerVerdict};
pub use budget::{Budget, BudgetConfig, Ceiling, Claim, Settlement};
pub use consensus::{Decision, SampleState, decide, is_settled, next_needed};
pub use gate::{Exit, ShareError, Signal, StopCause, exit, parse_share};
pub use keys::{FaultRuling, KeyConfig, KeyState, Keys};
pub use limiter::{Aimd, Pace, Pressure, Smoother};
pub use retry::backoff;
pub use review::reviewed;
pub use scheduler::{
    Assignment, Feedback, FinishedRow, Halt, Notice, Outcome, RowPlan, Ruling, SamplePlan, Scheduler,
    SchedulerConfig, Step,
};
