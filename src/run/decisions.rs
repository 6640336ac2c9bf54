//! What people have decided about rows, found by what the rows ask.

use std::sync::Arc;

use serde_json::Value;

use crate::base::{Digest, DigestBuilder};
use crate::model::{Header, InputRow, PersonDecision, Prompt, RowContent};
use crate::prompt::Template;
use crate::run::identity::{content_digest, content_prefix};
use crate::store::{Reader, Store, StoreError};

/// Finds decisions by content: the rendered prompts and the schema, whatever model or server answers. So a decision
/// survives another model, and is void for a row whose content has changed.
#[derive(Debug)]
pub struct Decisions {
    reader: Reader,
    template: Arc<Template>,
    prefix: DigestBuilder,
}

impl Decisions {
    /// The decisions in a store about rows that are asked with this template and schema.
    pub fn new(store: &Store, template: &Arc<Template>, schema: Option<&Value>) -> Result<Self, StoreError> {
        let template = Arc::clone(template);
        Ok(Self { reader: store.reader()?, template, prefix: content_prefix(schema) })
    }

    /// The same; `None` where nobody has decided anything, so that no row need be looked at.
    pub fn any(
        store: &Store,
        template: &Arc<Template>,
        schema: Option<&Value>,
    ) -> Result<Option<Self>, StoreError> {
        let decisions = Self::new(store, template, schema)?;
        Ok(decisions.reader.has_decisions()?.then_some(decisions))
    }

    /// What a row asks; `None` for one that cannot be asked about.
    pub fn prompt(&self, row: &InputRow, header: Option<&Header>) -> Option<Prompt> {
        match row.content {
            RowContent::Bad { .. } => None,
            RowContent::Fields(_) | RowContent::Object(_) => self.template.render(row, header).ok(),
        }
    }

    /// The digest of a content.
    pub fn content(&self, prompt: &Prompt) -> Digest {
        content_digest(&self.prefix, prompt)
    }

    /// The newest decision about a content.
    pub fn on(&self, content: &Digest) -> Result<Option<PersonDecision>, StoreError> {
        self.reader.decision(content)
    }

    /// All decisions about a content, the oldest first.
    pub fn history(&self, content: &Digest) -> Result<Vec<PersonDecision>, StoreError> {
        self.reader.decisions(content)
    }

    /// Whether a row passes by what a person has decided, if one has.
    pub(super) fn on_row(&self, row: &InputRow, header: Option<&Header>) -> Result<Option<bool>, StoreError> {
        self.prompt(row, header).map_or(Ok(None), |prompt| self.on_prompt(&prompt))
    }

    /// The same for a prompt.
    pub(super) fn on_prompt(&self, prompt: &Prompt) -> Result<Option<bool>, StoreError> {
        Ok(self.on(&self.content(prompt))?.map(|decision| decision.positive))
    }
}
