//! A row as the template engine sees it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr, Value};
use minijinja::{Error, ErrorKind};

use crate::model::{Header, InputRow, RowContent};
use crate::prompt::json;

/// Names of a template: the fields of the record, and `row` for the record itself.
#[derive(Debug)]
pub(super) struct Names {
    record: Value,
}

impl Names {
    /// `None` for a malformed record.
    pub(super) fn of(row: &InputRow, header: Option<&Header>) -> Option<Value> {
        let record = match &row.content {
            RowContent::Fields(fields) => {
                let header = header.cloned().unwrap_or_else(|| Arc::from([]));
                let fields = fields.iter().map(|field| Value::from(&**field)).collect();
                Value::from_object(CsvRecord { header, fields })
            }
            RowContent::Object(text) => value_of(&Arc::from(&**text), 0..text.len()),
            RowContent::Bad { .. } => return None,
        };
        Some(Value::from_object(Self { record }))
    }
}

impl Object for Names {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if key == "row" { Some(self.record.clone()) } else { self.record.as_object()?.get_value_by_str(key) }
    }
}

/// A CSV record: its columns by name.
#[derive(Debug)]
struct CsvRecord {
    header: Header,
    fields: Vec<Value>,
}

impl Object for CsvRecord {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let at = self.header.iter().position(|name| name == key)?;
        self.fields.get(at).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.header.iter().map(|name| Value::from(name.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, field)) in self.header.iter().zip(&self.fields).enumerate() {
            let (name, field) = (serde_json::Value::from(name.as_str()), field.as_str().unwrap_or_default());
            write!(f, "{}{name}:{}", if at == 0 { "{" } else { "," }, serde_json::Value::from(field))?;
        }
        f.write_str(if self.header.is_empty() { "{}" } else { "}" })
    }
}

/// The value of a part of a document.
fn value_of(document: &Arc<str>, part: Range<usize>) -> Value {
    let raw = document.get(part.clone()).unwrap_or_default();
    match raw.as_bytes().first() {
        Some(b'"') => match json::text(raw) {
            Some(text) => Value::from(&*text),
            None => Value::from(Error::new(
                ErrorKind::BadEscape,
                "a string of this row holds a lone surrogate escape, which is no text",
            )),
        },
        Some(b'{' | b'[') => Value::from_object(JsonNode::new(document.clone(), part)),
        Some(b't') => Value::from(true),
        Some(b'f') => Value::from(false),
        Some(b'n') => Value::from(()),
        Some(_) => Value::from_object(JsonNumber(Box::from(raw))),
        None => Value::UNDEFINED,
    }
}

/// A number of the input, which prints as it was written and cannot be compared or calculated with.
#[derive(Debug)]
pub(super) struct JsonNumber(Box<str>);

impl JsonNumber {
    /// The number in a value.
    pub(super) fn of(value: &Value) -> Option<&Self> {
        value.downcast_object_ref()
    }

    /// The number as it was written.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl Object for JsonNumber {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        let digits = self.0.split(['e', 'E']).next().unwrap_or_default();
        digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
    }

    /// For sorting lists of numbers, and for finding equal ones.
    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        let other = other.downcast_ref::<Self>()?;
        if let (Ok(one), Ok(other)) = (self.0.parse::<i128>(), other.0.parse::<i128>()) {
            return Some(one.cmp(&other));
        }
        let (one, two): (f64, f64) = (self.0.parse().ok()?, other.0.parse().ok()?);
        Some(one.total_cmp(&two))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An object or an array of the input, looked into when the template does.
pub(super) struct JsonNode {
    document: Arc<str>,
    part: Range<usize>,
    content: OnceLock<Content>,
}

enum Content {
    Members { names: Vec<Value>, parts: Vec<Range<usize>>, places: HashMap<Box<str>, usize> },
    Elements(Vec<Range<usize>>),
}

impl JsonNode {
    fn new(document: Arc<str>, part: Range<usize>) -> Self {
        Self { document, part, content: OnceLock::new() }
    }

    /// Its JSON text as in the input.
    pub(super) fn text(&self) -> &str {
        self.document.get(self.part.clone()).unwrap_or_default()
    }

    fn is_array(&self) -> bool {
        self.text().starts_with('[')
    }

    fn content(&self) -> &Content {
        self.content.get_or_init(|| {
            let text = self.text();
            // The parts are slices of the text, so their places follow from their addresses.
            let place = |part: &str| {
                let start = self.part.start + (part.as_ptr().addr() - text.as_ptr().addr());
                start..start + part.len()
            };
            if self.is_array() {
                return Content::Elements(json::elements(text).map(place).collect());
            }
            let (mut names, mut parts, mut places) = (Vec::new(), Vec::new(), HashMap::new());
            for (raw, value) in json::members(text) {
                // A name with a lone surrogate can be reached by no template.
                let Some(name) = json::text(raw) else { continue };
                if let Some(&at) = places.get(&*name) {
                    if let Some(part) = parts.get_mut::<usize>(at) {
                        *part = place(value);
                    }
                } else {
                    names.push(Value::from(&*name));
                    places.insert(Box::from(&*name), parts.len());
                    parts.push(place(value));
                }
            }
            Content::Members { names, parts, places }
        })
    }
}

impl fmt::Debug for JsonNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Object for JsonNode {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.is_array() { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match self.content() {
            Content::Members { .. } => self.get_value_by_str(key.as_str()?),
            Content::Elements(parts) => Some(value_of(&self.document, parts.get(key.as_usize()?)?.clone())),
        }
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match self.content() {
            Content::Members { parts, places, .. } => {
                Some(value_of(&self.document, parts.get(*places.get(key)?)?.clone()))
            }
            Content::Elements(_) => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.content() {
            Content::Members { names, .. } => Enumerator::Values(names.clone()),
            Content::Elements(parts) => Enumerator::Seq(parts.len()),
        }
    }

    /// By text, so that no depth of nesting overflows the stack.
    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        Some(self.text().cmp(other.downcast_ref::<Self>()?.text()))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
