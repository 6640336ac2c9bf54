//! The template engine as it is set up here: strict, without escaping, without files, with bounded work.

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, filters};

use crate::prompt::print::{indented, json_of, text_of, write_text};
use crate::prompt::record::{JsonNode, JsonNumber};

/// Work that one template may do for one row. An instruction costs 1, 64 bytes written cost 1, 4 bytes of an object
/// or array cost 1; so a record of 16 MiB can be written twice, and an endless loop ends after about a second.
const FUEL: u64 = 10_000_000;

/// How an operand is used, which says what it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Compared with something that is no number of the template.
    Compared,
    /// Compared for equality with a number.
    EqualToNumber,
    /// Compared by order with a number.
    OrderedByNumber,
    /// Calculated with something that may be a text.
    Calculated,
    /// Calculated with a number.
    CalculatedWithNumber,
    /// A list in which a number is looked for.
    Searched,
}

/// What a value is, as far as a use of it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// A number as the input wrote it.
    Number,
    /// A text that reads like a number.
    NumberText,
    /// Another text.
    Text,
    /// A boolean, or a number of the template.
    Plain,
    /// Null, an object or an array.
    Other,
}

impl Looks {
    /// What a JSON text is.
    pub(super) fn of_json(raw: &str) -> Self {
        match raw.as_bytes().first() {
            Some(b'"') => Self::of_text(raw.trim_matches('"')),
            Some(b't' | b'f') => Self::Plain,
            Some(b'n' | b'{' | b'[') | None => Self::Other,
            Some(_) => Self::Number,
        }
    }

    /// What a text is.
    pub(super) fn of_text(text: &str) -> Self {
        let text = text.trim();
        let begins = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
        let number = begins && text.parse::<f64>().is_ok_and(f64::is_finite);
        if number { Self::NumberText } else { Self::Text }
    }
}

impl Use {
    /// Whether such a value can be used so.
    pub(super) fn allows(self, looks: Looks) -> bool {
        match self {
            Self::Searched => true,
            Self::Compared | Self::Calculated => looks != Looks::Number,
            Self::EqualToNumber => !matches!(looks, Looks::Number | Looks::NumberText),
            Self::OrderedByNumber | Self::CalculatedWithNumber => looks == Looks::Plain,
        }
    }

    /// What is wrong with the operand `label` for this use.
    pub(super) fn complaint(self, label: &str, looks: Looks) -> String {
        let is = match looks {
            Looks::Number => "is a number as written",
            Looks::NumberText | Looks::Text => "is a text",
            Looks::Plain | Looks::Other => "is no number",
        };
        let done = match self {
            Self::Calculated | Self::CalculatedWithNumber => "calculated with",
            _ => "compared",
        };
        format!("`{label}` {is}: pass it through |int or |float before it is {done}")
    }
}

/// The engine of one template pair.
#[derive(Debug)]
pub(super) struct Engine {
    environment: Environment<'static>,
    operands: usize,
}

impl Engine {
    pub(super) fn new() -> Self {
        let mut it = Environment::new();
        it.set_undefined_behavior(UndefinedBehavior::Strict);
        it.set_auto_escape_callback(|_| AutoEscape::None);
        it.set_formatter(|out, _, value| write_text(out, value));
        it.set_fuel(Some(FUEL));
        // It would print what the engine holds.
        it.remove_global("debug");
        it.add_filter("int", int);
        it.add_filter("float", float);
        it.add_filter("tojson", to_json);
        it.add_filter("string", |value: &Value| defined(value).and_then(text_of));
        it.add_filter("join", join);
        it.add_filter("verify_text", |value: &Value| defined(value).and_then(text_of));
        it.add_filter("verify_soft", |value: Value| {
            if value.is_undefined() { Value::from_iter::<[(String, Value); 0]>([]) } else { value }
        });
        add_tests(&mut it);
        Self { environment: it, operands: 0 }
    }

    pub(super) fn has_filter(&self, name: &str) -> bool {
        self.knows("filter", name)
    }

    pub(super) fn has_test(&self, name: &str) -> bool {
        self.knows("test", name)
    }

    fn knows(&self, kind: &str, name: &str) -> bool {
        let name: String = name.chars().filter(|letter| !letter.is_whitespace()).collect();
        self.environment.empty_state().perform_test(kind, &[Value::from(name)]).unwrap_or(false)
    }

    pub(super) fn has_function(&self, name: &str) -> bool {
        self.environment.globals().any(|(have, _)| have == name)
    }

    /// Makes a filter that lets an operand pass if it can be used so. `label` is how the template writes it.
    pub(super) fn operand(&mut self, label: &str, used: Use) -> String {
        let name = format!("verify_operand_{}", self.operands);
        self.operands += 1;
        let label: String = label.chars().take(80).collect();
        self.environment.add_filter(name.clone(), move |value: Value| check(value, used, &label));
        name
    }

    /// Compiles a source under a name.
    pub(super) fn add(&mut self, name: &'static str, source: String) -> Result<(), Error> {
        self.environment.add_template_owned(name, source)
    }

    /// Renders what was added under a name.
    pub(super) fn render(&self, name: &str, names: &Value) -> Result<String, Error> {
        self.environment.get_template(name)?.render(names.clone())
    }
}

fn looks(value: &Value) -> Looks {
    match value.kind() {
        ValueKind::String => Looks::of_text(value.as_str().unwrap_or_default()),
        ValueKind::Bool | ValueKind::Number => Looks::Plain,
        _ if JsonNumber::of(value).is_some() => Looks::Number,
        _ => Looks::Other,
    }
}

fn check(value: Value, used: Use, label: &str) -> Result<Value, Error> {
    // The engine itself says what an undefined value does.
    if value.is_undefined() {
        return Ok(value);
    }
    let looks = looks(&value);
    let numbers = used == Use::Searched
        && value.downcast_object_ref::<JsonNode>().is_some()
        && value.try_iter()?.any(|item| JsonNumber::of(&item).is_some());
    if numbers {
        let why =
            format!("`{label}` holds numbers as written: pass them through |map('int') or |map('float')");
        return Err(Error::new(ErrorKind::InvalidOperation, why));
    }
    if used.allows(looks) {
        return Ok(value);
    }
    Err(Error::new(ErrorKind::InvalidOperation, used.complaint(label, looks)))
}

fn defined(value: &Value) -> Result<&Value, Error> {
    if value.is_undefined() { Err(Error::from(ErrorKind::UndefinedError)) } else { Ok(value) }
}

fn int(
    state: &State,
    value: &Value,
    default: Option<Value>,
    base: Option<u32>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let Some(number) = JsonNumber::of(value) else {
        return filters::int(state, value, default, base, kwargs);
    };
    let text = number.text();
    if let Ok(whole) = text.parse::<i128>() {
        return Ok(Value::from(whole));
    }
    let near: f64 = text.parse().unwrap_or(f64::NAN);
    // Beyond 2^100 a whole number of this form says nothing exact any more.
    if near.abs() < 1.2e30 {
        return filters::int(state, &Value::from(near), default, base, kwargs);
    }
    Err(Error::new(ErrorKind::InvalidOperation, format!("{text} is too large for |int")))
}

fn float(state: &State, value: &Value, default: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let Some(number) = JsonNumber::of(value) else { return filters::float(state, value, default, kwargs) };
    let near: f64 = number.text().parse().unwrap_or(f64::NAN);
    if near.is_finite() {
        return Ok(Value::from(near));
    }
    Err(Error::new(ErrorKind::InvalidOperation, format!("{} is too large for |float", number.text())))
}

#[expect(clippy::needless_pass_by_value, reason = "the engine passes arguments by value")]
fn to_json(value: &Value, indent: Option<usize>, kwargs: Kwargs) -> Result<String, Error> {
    let indent = match indent {
        None => kwargs.get::<Option<usize>>("indent")?,
        given => given,
    };
    kwargs.assert_all_used()?;
    let json = json_of(defined(value)?)?;
    Ok(indent.map_or(json.clone(), |by| indented(&json, by)))
}

fn join(value: &Value, between: Option<&str>) -> Result<String, Error> {
    let mut text = String::new();
    for (at, item) in defined(value)?.try_iter()?.enumerate() {
        if at > 0 {
            text.push_str(between.unwrap_or_default());
        }
        write_text(&mut text, defined(&item)?)?;
    }
    Ok(text)
}

/// The engine's tests that compare, with a word against numbers that were not passed through `|int` or `|float`.
fn add_tests(environment: &mut Environment<'static>) {
    type Comparison = fn(&Value, &Value) -> bool;
    let pairs: [(&[&str], Comparison); 6] = [
        (&["eq", "equalto", "=="], |one, two| one == two),
        (&["ne", "!="], |one, two| one != two),
        (&["lt", "lessthan", "<"], |one, two| one < two),
        (&["le", "<="], |one, two| one <= two),
        (&["gt", "greaterthan", ">"], |one, two| one > two),
        (&["ge", ">="], |one, two| one >= two),
    ];
    for (names, compare) in pairs {
        for name in names {
            let equal = matches!(names.first(), Some(&("eq" | "ne")));
            environment.add_test(*name, move |one: &Value, two: &Value| {
                let with_number = looks(one) == Looks::Plain && one.is_number() || two.is_number();
                let used = match (with_number, equal) {
                    (false, _) => Use::Compared,
                    (true, true) => Use::EqualToNumber,
                    (true, false) => Use::OrderedByNumber,
                };
                for value in [one, two] {
                    check(defined(value)?.clone(), used, "a value in a test")?;
                }
                Ok(compare(one, two))
            });
        }
    }
    environment.add_test("number", |value: &Value| JsonNumber::of(value).is_some() || value.is_number());
    environment.add_test("integer", is_integer);
    environment.add_test("int", is_integer);
    environment.add_test("float", |value: &Value| match JsonNumber::of(value) {
        Some(number) => !is_whole(number.text()),
        None => minijinja::tests::is_float(value),
    });
    for (name, test) in
        [("odd", minijinja::tests::is_odd as fn(Value) -> bool), ("even", minijinja::tests::is_even)]
    {
        environment.add_test(name, move |value: Value| {
            check(value, Use::CalculatedWithNumber, "a value in a test").map(test)
        });
    }
    environment.add_test("divisibleby", |value: Value, by: Value, rest: Rest<Value>| {
        if !rest.is_empty() {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        let number = |value| check(value, Use::CalculatedWithNumber, "a value in a test");
        Ok(minijinja::tests::is_divisibleby(&number(value)?, &number(by)?))
    });
}

fn is_integer(value: &Value) -> bool {
    JsonNumber::of(value).map_or(value.is_integer(), |number| is_whole(number.text()))
}

fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
}
