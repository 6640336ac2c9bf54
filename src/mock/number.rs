//! Numbers that satisfy the bounds of a schema.

use serde_json::{Map, Value};

use crate::base::Dice;

/// Bounds of a number, inclusive where the flag says so.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    low: Option<(f64, bool)>,
    high: Option<(f64, bool)>,
}

impl Bounds {
    fn read(schema: &Map<String, Value>) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        // Draft 4 writes `exclusiveMinimum: true` beside `minimum`.
        let open = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let mut low = number("minimum").map(|value| (value, !open("exclusiveMinimum")));
        let mut high = number("maximum").map(|value| (value, !open("exclusiveMaximum")));
        if let Some(value) = number("exclusiveMinimum")
            && low.is_none_or(|(have, _)| value >= have)
        {
            low = Some((value, false));
        }
        if let Some(value) = number("exclusiveMaximum")
            && high.is_none_or(|(have, _)| value <= have)
        {
            high = Some((value, false));
        }
        Self { low, high }
    }

    /// The range in which to draw, `span` wide where one side is open.
    fn range(self, span: f64) -> (f64, f64) {
        match (self.low, self.high) {
            (Some((low, _)), Some((high, _))) => (low, high.max(low)),
            (Some((low, _)), None) => (low, low + span),
            (None, Some((high, _))) => (if high > 0.0 { 0.0 } else { high - span }, high),
            (None, None) => (1.0, span),
        }
    }
}

/// An integer as JSON text.
pub(super) fn integer(schema: &Map<String, Value>, dice: &mut Dice) -> String {
    let step = schema.get("multipleOf").and_then(Value::as_f64).filter(|step| *step >= 1.0).unwrap_or(1.0);
    multiple(schema, dice, step, 0, 100.0, 0.0)
}

/// A number as JSON text; `high_part` draws from the upper fifth of its range, 0 to 1 where it has none.
pub(super) fn number(schema: &Map<String, Value>, dice: &mut Dice, high_part: bool) -> String {
    let (span, from) = if high_part { (1.0, 0.8) } else { (100.0, 0.0) };
    if let Some(step) = schema.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0) {
        let places = (0..12_i32).find(|&places| {
            let scaled = step * 10_f64.powi(places);
            (scaled - scaled.round()).abs() < 1e-9 * scaled.abs().max(1.0)
        });
        return multiple(schema, dice, step, places.unwrap_or(12), span, from);
    }
    let (low, high) = ranged(schema, span, high_part);
    let places = (2..12_i32).find(|&places| high - low >= 10_f64.powi(1 - places)).unwrap_or(12);
    multiple(schema, dice, 10_f64.powi(-places), places, span, from)
}

fn ranged(schema: &Map<String, Value>, span: f64, from_zero: bool) -> (f64, f64) {
    let bounds = Bounds::read(schema);
    if from_zero && bounds.low.is_none() && bounds.high.is_none() { (0.0, span) } else { bounds.range(span) }
}

/// A multiple of `step` in the upper part of the range that begins at the share `from` of it.
fn multiple(
    schema: &Map<String, Value>,
    dice: &mut Dice,
    step: f64,
    places: i32,
    span: f64,
    from: f64,
) -> String {
    let bounds = Bounds::read(schema);
    let (low, high) = ranged(schema, span.max(step * 10.0), from > 0.0);
    let near = 1e-9;
    let mut first = (low / step - near).ceil();
    let mut last = (high / step + near).floor();
    if bounds.low.is_some_and(|(low, closed)| !closed && first * step <= low) {
        first += 1.0;
    }
    if bounds.high.is_some_and(|(high, closed)| !closed && last * step >= high) {
        last -= 1.0;
    }
    if last < first {
        last = first;
    }
    let start = (first + (last - first) * from - near).ceil().max(first);
    let drawn = (start + (dice.fraction() * (last - start + 1.0)).floor()).min(last);
    let value = drawn * step;
    if !value.is_finite() {
        return "0".to_owned();
    }
    let places = usize::try_from(places).unwrap_or(0);
    let text = format!("{value:.places$}");
    let text = if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
