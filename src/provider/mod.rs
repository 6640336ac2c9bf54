//! Codecs of providers: what is asked becomes bytes, what comes back becomes a reply that the rest can read.
//!
//! What it is for: the wire formats, the normal form of an endpoint, the classes of failure, how long a server
//! asks to wait, what a refusal teaches, and what tokens cost. [`Codec`] is the one place that knows which
//! provider speaks which format; a new one gets a folder beside `openai` and `anthropic`, and an arm there.
//! It uses `base` and `model`, and crates that read JSON, URLs and dates.
//! What never happens here: no socket, clock, file or variable is touched; the time is an argument. Nothing decides
//! whether to try again. No reply, however broken, makes it panic.

mod anthropic;
mod body;
mod bound;
mod codec;
mod count;
mod derive;
mod endpoint;
mod errors;
mod failing;
mod headroom;
mod json;
mod kind;
mod ladder;
mod limits;
mod message;
mod model_facts;
mod openai;
mod price;
#[cfg(test)]
mod price_fixtures;
mod price_table;
mod provider_error;
mod quirks;
mod raw;
mod sse;
mod wording;

#[cfg(test)]
mod fixtures;

pub use bound::bound;
pub use codec::Codec;
pub use endpoint::{Endpoint, begins_like_a_key, endpoint, reads_like_a_credential};
pub use headroom::headroom;
pub use kind::infer_provider;
pub use model_facts::{ModelFacts, TableSource, model_facts};
pub use price::{LongContext, Price, Rates, TierRates, Tiers, cost};
pub use price_table::PriceTable;
pub use provider_error::ProviderError;
pub use quirks::learn;
