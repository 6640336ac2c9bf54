//! A run: the only place where rooms meet and time passes.
//!
//! What it is for: [`execute`] joins input, prompt, provider, answer, store and output around the scheduler. The
//! feed reads, renders and looks stored answers up on a thread of its own; the driver owns the scheduler and does
//! as it says; workers make one attempt each; the join reads the input again and writes what the store says of it, at the end
//! of an execution or for an [`export`].
//! It uses every floor beneath. What a person typed and what a person reads is `cli`'s.
//! What never happens here: a policy. When to send, how long to wait, what a row becomes and when to stop is asked
//! of `policy`; text for people is made from facts by `report` and `cli`.

mod credentials;
mod decisions;
mod distinct;
mod draws;
mod driven;
mod driver;
mod earlier;
mod error;
mod execute;
mod export;
mod feed;
mod finish;
mod follow;
mod forecast;
mod histories;
mod history;
mod identity;
mod join;
mod joined;
mod live;
mod lock;
mod observed;
mod past;
mod rater;
mod reading;
mod result;
mod resume;
mod seen;
mod stop;
mod worker;

pub use credentials::{Credential, Credentials};
pub use decisions::Decisions;
pub use error::{RunError, chain};
pub use execute::{Choice, Ended, Hooks, Plan, execute};
pub use export::{Export, Exported, export};
pub use forecast::{Counting, forecast};
pub use history::{Retry, RowJudge};
pub use identity::{job_key, request_prefix};
pub use join::EachRow;
pub use live::Observer;
pub use lock::JobLock;
pub use past::{Past, PastPlan, PastRow, PastSample};
pub use rater::quick_likely;
pub use result::RowFacts;
pub use resume::left_by_the_dead;
pub use stop::{StopSender, StopSignal, Stops, stops};
