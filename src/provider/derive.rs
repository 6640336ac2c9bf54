//! Schemas within the restrictions of a provider.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// What a provider's structured output takes.
#[derive(Debug)]
pub(super) struct Rules {
    /// Whether every property must be required. An optional one then becomes a required one, if it may be null.
    pub(super) all_required: bool,
    /// Whether a schema may refer to itself.
    pub(super) recursion: bool,
    /// Values of `format`.
    pub(super) formats: &'static [&'static str],
    /// Whether a bound is taken with this value.
    pub(super) takes: fn(&str, &Value) -> bool,
}

/// A schema that a provider takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Derived {
    /// The schema.
    pub(super) schema: Value,
    /// Whether it allows what the original forbids, because a bound had to go.
    pub(super) is_looser: bool,
    /// Properties that may be absent.
    pub(super) optional: usize,
    /// Places where several types or schemas may stand.
    pub(super) unions: usize,
}

/// The schema within these rules; `None` where that cannot be done without asking for answers that the original
/// rejects as a rule. Objects are closed, `oneOf` becomes `anyOf`, a type is added where the values tell it, and a
/// bound that is not taken moves into the description, as JSON, where the model still reads it.
///
/// Whatever comes back is checked against the original: an answer is never accepted because this schema was weaker.
pub(super) fn derive(schema: &Value, rules: &Rules) -> Option<Derived> {
    let mut walk =
        Walk { rules, root: schema, is_looser: false, optional: 0, unions: 0, edges: HashMap::new() };
    let derived = walk.schema(schema, "#", true)?;
    if !rules.recursion && walk.is_recursive() {
        return None;
    }
    Some(Derived { schema: derived, is_looser: walk.is_looser, optional: walk.optional, unions: walk.unions })
}

/// Says something to people only, or what cannot be said to a provider and means nothing to an answer.
const ANNOTATIONS: [&str; 6] = ["$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"];
/// Narrow a value of one type; an answer without them keeps its shape.
const BOUNDS: [&str; 12] = [
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
];

struct Walk<'s> {
    rules: &'s Rules,
    root: &'s Value,
    is_looser: bool,
    optional: usize,
    unions: usize,
    /// Which definitions each definition refers to.
    edges: HashMap<String, Vec<String>>,
}

impl Walk<'_> {
    /// `owner` is the definition that the schema stands in.
    fn schema(&mut self, schema: &Value, owner: &str, is_root: bool) -> Option<Value> {
        let members = schema.as_object()?;
        if let Some(reference) = members.get("$ref") {
            return self.reference(reference.as_str()?, members, owner);
        }
        let mut derived = Map::new();
        let mut noted = Map::new();
        for (name, value) in members {
            let value = match name.as_str() {
                "type" => is_type(value).then(|| value.clone()),
                "title" | "description" => value.is_string().then(|| value.clone()),
                "enum" => value.as_array().filter(|values| are_scalars(values)).map(|_| value.clone()),
                "const" => are_scalars(std::slice::from_ref(value)).then(|| value.clone()),
                "properties" => self.each(value, |walk, _, property| walk.schema(property, owner, false)),
                "$defs" | "definitions" if is_root => {
                    self.each(value, |walk, at, one| walk.schema(one, &format!("#/{name}/{at}"), false))
                }
                "items" => self.schema(value, owner, false),
                "anyOf" => self.options(value, owner),
                "oneOf" if !members.contains_key("anyOf") => {
                    derived.insert("anyOf".to_owned(), self.options(value, owner)?);
                    continue;
                }
                "required" => value.is_array().then(|| value.clone()),
                "additionalProperties" => (*value == Value::Bool(false)).then(|| value.clone()),
                "$schema" | "$id" if is_root => continue,
                name if ANNOTATIONS.contains(&name) => continue,
                name if BOUNDS.contains(&name) => {
                    if !self.takes(name, value) {
                        noted.insert(name.to_owned(), value.clone());
                        continue;
                    }
                    Some(value.clone())
                }
                _ => None,
            };
            derived.insert(name.clone(), value?);
        }
        self.finish(members, derived, noted)
    }

    fn finish(
        &mut self,
        members: &Map<String, Value>,
        mut derived: Map<String, Value>,
        noted: Map<String, Value>,
    ) -> Option<Value> {
        if !derived.contains_key("type")
            && let Some(kind) = type_of_values(&derived)
        {
            derived.insert("type".to_owned(), kind);
        }
        let is_union = derived.get("type").is_some_and(Value::is_array) || derived.contains_key("anyOf");
        self.unions += usize::from(is_union);
        if !derived.contains_key("type") && !derived.contains_key("anyOf") {
            return None;
        }
        if has_type(&derived, "object") {
            self.close(members, &mut derived)?;
        } else if derived.contains_key("properties") || derived.contains_key("required") {
            return None;
        }
        if has_type(&derived, "array") && !derived.contains_key("items") {
            return None;
        }
        if !noted.is_empty() {
            self.is_looser = true;
            let before = derived.get("description").and_then(Value::as_str);
            let note = Value::Object(noted).to_string();
            let text = before.map_or_else(|| note.clone(), |before| format!("{before}\n\n{note}"));
            derived.insert("description".to_owned(), Value::String(text));
        }
        Some(Value::Object(derived))
    }

    /// An object with just its listed properties. One that lists none is there to be open, and stays no schema of
    /// ours.
    fn close(&mut self, members: &Map<String, Value>, derived: &mut Map<String, Value>) -> Option<()> {
        let properties =
            members.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
        let required = members.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if !required.iter().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name))) {
            return None;
        }
        let optional =
            || properties.iter().filter(|(name, _)| !required.iter().any(|have| have == name.as_str()));
        if self.rules.all_required {
            if !optional().all(|(_, property)| accepts_null(property)) {
                return None;
            }
            let names = properties.keys().map(|name| Value::String(name.clone())).collect();
            derived.insert("required".to_owned(), Value::Array(names));
        } else {
            self.optional += optional().count();
        }
        derived.insert("additionalProperties".to_owned(), Value::Bool(false));
        Some(())
    }

    fn each(
        &mut self,
        value: &Value,
        mut derive: impl FnMut(&mut Self, &str, &Value) -> Option<Value>,
    ) -> Option<Value> {
        let members = value.as_object()?.iter();
        let derived = members.map(|(name, one)| Some((name.clone(), derive(self, name, one)?)));
        derived.collect::<Option<Map<String, Value>>>().map(Value::Object)
    }

    fn options(&mut self, value: &Value, owner: &str) -> Option<Value> {
        let options = value.as_array().filter(|options| !options.is_empty())?;
        let derived = options.iter().map(|option| self.schema(option, owner, false));
        derived.collect::<Option<Vec<Value>>>().map(Value::Array)
    }

    /// A reference within the document, alone but for annotations.
    fn reference(&mut self, target: &str, members: &Map<String, Value>, owner: &str) -> Option<Value> {
        let plain = |name: &String| {
            matches!(name.as_str(), "$ref" | "title" | "description") || ANNOTATIONS.contains(&&**name)
        };
        let is_definition = ["#/$defs/", "#/definitions/"].iter().any(|start| target.starts_with(start));
        let exists = target == "#" || (is_definition && self.root.pointer(&target[1..]).is_some());
        if !exists || !members.keys().all(plain) {
            return None;
        }
        self.edges.entry(owner.to_owned()).or_default().push(target.to_owned());
        Some(serde_json::json!({ "$ref": target }))
    }

    fn takes(&self, name: &str, value: &Value) -> bool {
        match name {
            "format" => value.as_str().is_some_and(|format| self.rules.formats.contains(&format)),
            _ => (self.rules.takes)(name, value),
        }
    }

    /// Whether a definition, or the whole schema, reaches itself.
    fn is_recursive(&self) -> bool {
        self.edges.keys().any(|start| {
            let mut seen = vec![start.as_str()];
            let mut open = vec![start.as_str()];
            while let Some(here) = open.pop() {
                for next in self.edges.get(here).into_iter().flatten() {
                    if next == start {
                        return true;
                    }
                    if !seen.contains(&next.as_str()) {
                        seen.push(next);
                        open.push(next);
                    }
                }
            }
            false
        })
    }
}

fn is_type(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    value.as_array().map_or_else(|| known(value), |kinds| !kinds.is_empty() && kinds.iter().all(known))
}

fn has_type(members: &Map<String, Value>, name: &str) -> bool {
    match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        Some(kind) => kind == name,
        None => false,
    }
}

fn are_scalars(values: &[Value]) -> bool {
    !values.is_empty() && !values.iter().any(|value| value.is_object() || value.is_array())
}

/// The type that listed values have.
fn type_of_values(derived: &Map<String, Value>) -> Option<Value> {
    let values = match (derived.get("enum"), derived.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (None, Some(value)) => std::slice::from_ref(value),
        _ => return None,
    };
    let mut kinds: Vec<&str> = Vec::new();
    for value in values {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::String(_) => "string",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            _ => return None,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds.as_slice() {
        [only] => Some(Value::from(*only)),
        _ => Some(Value::from(kinds)),
    }
}

/// Whether null is surely valid. What cannot be told is not.
fn accepts_null(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    members.iter().all(|(name, value)| match name.as_str() {
        "type" => has_type(members, "null"),
        "enum" => value.as_array().is_some_and(|values| values.contains(&Value::Null)),
        "const" => value.is_null(),
        "anyOf" => value.as_array().is_some_and(|options| options.iter().any(accepts_null)),
        "oneOf" => value
            .as_array()
            .is_some_and(|options| options.iter().filter(|option| accepts_null(option)).count() == 1),
        "title" | "description" | "properties" | "required" | "additionalProperties" | "items" => true,
        name => BOUNDS.contains(&name) || ANNOTATIONS.contains(&name),
    }) && ["type", "enum", "const", "anyOf", "oneOf"].iter().any(|name| members.contains_key(*name))
}

#[cfg(test)]
mod tests;
