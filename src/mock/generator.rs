//! JSON made up for a schema.

use serde_json::{Map, Value};

use crate::base::Dice;
use crate::mock::{merge, number, pattern, words};

/// Nested deeper than this, a schema gets its smallest value: only required members, fewest items, null if allowed.
const DEEP: u32 = 6;
/// Nested deeper than this, it gets null, valid or not.
const DEEPEST: u32 = 40;
/// The most values in one answer.
const MOST_VALUES: u32 = 20_000;
/// How often a sample says something else than its prompt suggests.
const CONTRARY: f64 = 0.04;

/// Writes one JSON value for a schema.
///
/// Each place in the answer has dice of its own, seeded by its path, so that a schema that differs in one place
/// (servers allow different keywords) changes the answer in that place only. Booleans, integers and choices follow
/// the prompt and differ between samples in one of 25 cases; numbers and texts differ from sample to sample.
///
/// Understood: `type` (also lists, `nullable`), `enum`, `const`, `properties`, `required`, `items`, `prefixItems`,
/// `minItems`, `maxItems`, `uniqueItems`, the bounds of numbers and texts, `multipleOf`, `format`, simple `pattern`s,
/// `allOf`, `anyOf`, `oneOf` and references within the document. Other keywords are not looked at.
#[derive(Debug)]
pub(super) struct Generator<'s> {
    root: &'s Value,
    seed: u64,
    prompt: u64,
    sample: u64,
    left: u32,
    out: String,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
struct Place<'n> {
    path: u64,
    name: &'n str,
    depth: u32,
}

impl<'n> Place<'n> {
    fn below(self, name: &'n str, salt: u64) -> Self {
        // FNV-1a over the path so far and the name.
        let mut path = self.path ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for byte in name.bytes() {
            path = (path ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self { path: path.wrapping_mul(0x0100_0000_01b3), name, depth: self.depth + 1 }
    }

    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn is_confidence(self) -> bool {
        self.name == "confidence"
    }
}

impl<'s> Generator<'s> {
    /// A generator for one answer.
    pub(super) fn new(root: &'s Value, seed: u64, prompt: u64, sample: u16) -> Self {
        let out = String::with_capacity(256);
        Self { root, seed, prompt, sample: u64::from(sample), left: MOST_VALUES, out }
    }

    /// The JSON text.
    pub(super) fn write(mut self) -> String {
        self.value(self.root, Place { path: 0xcbf2_9ce4_8422_2325, name: "", depth: 0 });
        self.out
    }

    /// The prompt's dice, or in one of 25 cases the sample's own.
    fn leaning(&self, place: Place<'_>) -> Dice {
        let mut own = self.own(place);
        if own.fraction() < CONTRARY { own } else { Dice::new(self.seed, &[self.prompt, place.path]) }
    }

    fn own(&self, place: Place<'_>) -> Dice {
        Dice::new(self.seed, &[self.prompt, place.path, self.sample])
    }

    fn value(&mut self, schema: &Value, place: Place<'_>) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || place.depth > DEEPEST {
            self.out.push_str("null");
            return;
        }
        let Value::Object(schema) = schema else {
            return self.text(&Map::new(), place);
        };
        if let Some(only) = schema.get("const") {
            return self.json(only);
        }
        if let Some(Value::Array(options)) = schema.get("enum")
            && !options.is_empty()
        {
            let chosen = choose(options, schema, &mut self.leaning(place));
            return self.json(chosen);
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            return self.reference(reference, schema, place);
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            let mut whole = schema.clone();
            whole.shift_remove("allOf");
            for part in parts {
                merge::merge(&mut whole, self.dereferenced(part, 0));
            }
            return self.value(&Value::Object(whole), place.deeper());
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(Value::Array(options)) = schema.get(word)
                && !options.is_empty()
            {
                return self.option(word, options, schema, place);
            }
        }
        self.typed(schema, place);
    }

    fn reference(&mut self, reference: &str, schema: &Map<String, Value>, place: Place<'_>) {
        let Some(target) = merge::resolve(self.root, reference) else {
            return self.text(&Map::new(), place);
        };
        let says_more = schema.keys().any(|name| {
            !name.starts_with('$') && !matches!(name.as_str(), "title" | "description" | "default")
        });
        if !says_more {
            return self.value(target, place.deeper());
        }
        let mut whole = schema.clone();
        whole.shift_remove("$ref");
        merge::merge(&mut whole, target);
        self.value(&Value::Object(whole), place.deeper());
    }

    /// The schema itself, or what it refers to where it is only a reference.
    fn dereferenced<'v>(&self, schema: &'v Value, depth: u32) -> &'v Value
    where
        's: 'v,
    {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) if depth < DEEP => match merge::resolve(self.root, reference) {
                Some(target) => self.dereferenced(target, depth + 1),
                None => schema,
            },
            _ => schema,
        }
    }

    fn option(&mut self, word: &str, options: &[Value], schema: &Map<String, Value>, place: Place<'_>) {
        let mut dice = self.leaning(place);
        let is_null = |option: &&Value| option.get("type").and_then(Value::as_str) == Some("null");
        let null = options.iter().find(is_null);
        let others: Vec<&Value> = options.iter().filter(|option| !is_null(option)).collect();
        let say_null = null.is_some()
            && !place.is_confidence()
            && (others.is_empty() || place.depth >= DEEP || dice.below(10) == 0);
        let chosen = if say_null {
            null
        } else if place.depth >= DEEP {
            others.iter().copied().find(|option| is_flat(option)).or(others.first().copied())
        } else {
            usize::try_from(dice.below(others.len() as u64)).ok().and_then(|at| others.get(at).copied())
        };
        let Some(chosen) = chosen else { return self.out.push_str("null") };
        if schema.len() == 1 {
            return self.value(chosen, place.deeper());
        }
        let mut whole = schema.clone();
        whole.shift_remove(word);
        merge::merge(&mut whole, self.dereferenced(chosen, 0));
        self.value(&Value::Object(whole), place.deeper());
    }

    fn typed(&mut self, schema: &Map<String, Value>, place: Place<'_>) {
        match self.kind(schema, place) {
            "object" => self.object(schema, place),
            "array" => self.array(schema, place),
            "number" => {
                let text = number::number(schema, &mut self.own(place), place.is_confidence());
                self.out.push_str(&text);
            }
            "integer" => {
                let text = number::integer(schema, &mut self.leaning(place));
                self.out.push_str(&text);
            }
            "boolean" => {
                let said = self.leaning(place).fraction() < 0.92;
                self.out.push_str(if said { "true" } else { "false" });
            }
            "null" => self.out.push_str("null"),
            _ => self.text(schema, place),
        }
    }

    /// The type to write: the one that is given, one of the list, or the one that the other keywords speak of.
    fn kind<'v>(&self, schema: &'v Map<String, Value>, place: Place<'_>) -> &'v str {
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        let mut dice = self.leaning(place);
        match schema.get("type") {
            Some(Value::String(kind)) if nullable => or_null(kind, place, &mut dice),
            Some(Value::String(kind)) => kind,
            Some(Value::Array(kinds)) => {
                let mut some = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
                let has_null = kinds.iter().any(|kind| kind == "null");
                match some.next() {
                    Some(kind) if has_null => or_null(kind, place, &mut dice),
                    Some(kind) => kind,
                    None => "null",
                }
            }
            _ => {
                let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
                if has(&["properties", "required", "additionalProperties"]) {
                    "object"
                } else if has(&["items", "prefixItems", "minItems", "maxItems"]) {
                    "array"
                } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
                    "number"
                } else {
                    "string"
                }
            }
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, place: Place<'_>) {
        let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_required = |name: &str| required.iter().any(|have| have == name);
        let mut written = 0_usize;
        self.out.push('{');
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if *property == Value::Bool(false) || (place.depth >= DEEP && !is_required(name)) {
                continue;
            }
            self.member(name, property, written, place);
            written += 1;
        }
        let open = Value::Bool(true);
        let further = schema.get("additionalProperties").unwrap_or(&open);
        for name in required.iter().filter_map(Value::as_str) {
            if !properties.is_some_and(|properties| properties.contains_key(name)) {
                self.member(name, further, written, place);
                written += 1;
            }
        }
        self.out.push('}');
    }

    fn member(&mut self, name: &str, schema: &Value, before: usize, place: Place<'_>) {
        if before > 0 {
            self.out.push(',');
        }
        self.string(name);
        self.out.push(':');
        self.value(schema, place.below(name, 1));
    }

    fn array(&mut self, schema: &Map<String, Value>, place: Place<'_>) {
        const MOST_ITEMS: u64 = 1_000;
        let number = |name: &str| schema.get(name).and_then(Value::as_u64).map(|count| count.min(MOST_ITEMS));
        let listed = |name: &str| schema.get(name).and_then(Value::as_array);
        let first = listed("prefixItems").or_else(|| listed("items")).map_or(&[][..], Vec::as_slice);
        let rest = match schema.get("items") {
            Some(Value::Array(_)) => schema.get("additionalItems"),
            rest => rest,
        };
        let closed = rest.map_or(!first.is_empty(), |rest| *rest == Value::Bool(false));
        let least = number("minItems").unwrap_or(0);
        let prefix = first.len() as u64;
        let count = if place.depth >= DEEP {
            least
        } else {
            let low = least.max(1);
            let high = number("maxItems").unwrap_or(low + 2).min(low + 2);
            low.min(high) + self.own(place).below(high.saturating_sub(low) + 1)
        };
        let count = if closed { count.max(least).min(prefix) } else { count };
        let count = if place.depth < DEEP { count.max(prefix) } else { count };
        let count = count.min(number("maxItems").unwrap_or(MOST_ITEMS));
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let open = Value::Bool(true);
        let mut seen: Vec<String> = Vec::new();
        let mut written = 0_u64;
        self.out.push('[');
        for index in 0..count {
            let item = usize::try_from(index).ok().and_then(|at| first.get(at)).or(rest).unwrap_or(&open);
            let start = self.out.len();
            if written > 0 {
                self.out.push(',');
            }
            let from = self.out.len();
            let mut fits = false;
            for turn in 0..if unique { 12 } else { 1 } {
                self.out.truncate(from);
                self.value(item, place.below("", 2 + index + turn * MOST_ITEMS));
                fits = !unique || !seen.iter().any(|have| *have == self.out[from..]);
                if fits {
                    break;
                }
            }
            if fits {
                written += 1;
                if unique {
                    seen.push(self.out[from..].to_owned());
                }
            } else {
                self.out.truncate(start);
            }
        }
        self.out.push(']');
    }

    fn text(&mut self, schema: &Map<String, Value>, place: Place<'_>) {
        const LONGEST: u64 = 100_000;
        let length = |name: &str| {
            schema
                .get(name)
                .and_then(Value::as_u64)
                .and_then(|count| usize::try_from(count.min(LONGEST)).ok())
        };
        let (least, most) = (length("minLength").unwrap_or(0), length("maxLength").unwrap_or(usize::MAX));
        let mut dice = self.own(place);
        let fits = |text: &String| (least..=most).contains(&text.chars().count());
        let text = |name: &str| schema.get(name).and_then(Value::as_str);
        let made = text("pattern")
            .and_then(|pattern| pattern::matching(pattern, &mut dice, least))
            .filter(fits)
            .or_else(|| text("format").and_then(|format| words::formatted(&mut dice, format)).filter(fits))
            .unwrap_or_else(|| words::sized(&mut dice, least, most));
        self.string(&made);
    }

    fn string(&mut self, text: &str) {
        if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.out.push('"');
            self.out.push_str(text);
            self.out.push('"');
        } else {
            self.json(&Value::String(text.to_owned()));
        }
    }

    fn json(&mut self, value: &Value) {
        self.out.push_str(&value.to_string());
    }
}

fn or_null<'v>(kind: &'v str, place: Place<'_>, dice: &mut Dice) -> &'v str {
    let say_null = !place.is_confidence() && (place.depth >= DEEP || dice.below(10) == 0);
    if say_null { "null" } else { kind }
}

/// Whether a schema needs no further nesting.
fn is_flat(schema: &Value) -> bool {
    ["$ref", "properties", "items", "prefixItems", "allOf", "anyOf", "oneOf"]
        .iter()
        .all(|word| schema.get(word).is_none())
}

/// A value of an `enum` that has the schema's type; one that means yes is said in most cases.
fn choose<'v>(options: &'v [Value], schema: &Map<String, Value>, dice: &mut Dice) -> &'v Value {
    const POSITIVE: [&str; 6] = ["pass", "yes", "true", "ok", "correct", "match"];
    let allowed = |option: &&Value| match schema.get("type") {
        Some(Value::String(kind)) => has_type(option, kind),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).any(|kind| has_type(option, kind))
        }
        _ => true,
    };
    let positive = options.iter().find(|option| {
        **option == Value::Bool(true) || option.as_str().is_some_and(|word| POSITIVE.contains(&word))
    });
    if let Some(positive) = positive.filter(allowed)
        && dice.fraction() < 0.85
    {
        return positive;
    }
    let fitting: Vec<&Value> = options.iter().filter(allowed).collect();
    usize::try_from(dice.below(fitting.len() as u64))
        .ok()
        .and_then(|at| fitting.get(at).copied())
        .unwrap_or(&options[0])
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
