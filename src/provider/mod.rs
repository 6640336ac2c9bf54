//! Codecs of providers: what is asked becomes bytes, what comes back becomes a reply that the rest can read.
//!
//! What it is for: the wire formats, the normal form of an endpoint, the classes of failure, how long a server
//! asks to wait, what a refusal teaches, and what tokens cost. [`Codec`] is the one place that knows which
//! provider speaks which format; a new one gets a folder beside `openai` and an arm there.
//! It uses `base` and `model`, and crates that read JSON, URLs and dates.
//! What never happens here: no socket, clock, file or variable is touched; the time is an argument. Nothing decides
//! whether to try again. No reply, however broken, makes it panic.

mod bound;
mod codec;
mod endpoint;
mod errors;
mod headroom;
mod kind;
mod limits;
mod message;
mod openai;
mod price;
mod price_table;
mod provider_error;
mod quirks;

pub use bound::bound;
pub use codec::Codec;
pub use endpoint::{Endpoint, endpoint};
pub use headroom::headroom;
pub use kind::infer_provider;
pub use price::{LongContext, Price, Rates, cost};
pub use price_table::PriceTable;
pub use provider_error::ProviderError;
pub use quirks::learn;
