//! Answers that a careless model would give.

use serde_json::Value;

use crate::base::Dice;

/// What becomes of a good answer when the dice say that it is a bad one: a member is missing or of the wrong type,
/// the text stops in the middle, or there is no JSON at all. Only for a schema that allows anything may it be valid.
pub(super) fn spoilt(good: &str, schema: &Value, dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => broken_rule(good, schema).unwrap_or_else(|| prose(dice)),
        1 => cut(good).unwrap_or_else(|| prose(dice)),
        _ => prose(dice),
    }
}

/// The object without its first required member, or with a first member of another type.
fn broken_rule(good: &str, schema: &Value) -> Option<String> {
    let mut object: serde_json::Map<String, Value> = serde_json::from_str(good).ok()?;
    let typed = schema.get("properties").and_then(Value::as_object).and_then(|properties| {
        properties.iter().find_map(|(name, schema)| {
            let wrong = match schema.get("type")?.as_str()? {
                "string" => Value::from(17),
                _ => Value::from("not so"),
            };
            object.contains_key(name).then(|| (name.clone(), wrong))
        })
    });
    if let Some((name, wrong)) = typed {
        object.insert(name, wrong);
    } else {
        let required = schema.get("required")?.as_array()?.first()?.as_str()?;
        object.shift_remove(required)?;
    }
    serde_json::to_string(&object).ok()
}

/// The first two thirds of an object or a list.
fn cut(good: &str) -> Option<String> {
    if !good.starts_with(['{', '[']) {
        return None;
    }
    let mut end = good.len() * 2 / 3;
    while !good.is_char_boundary(end) {
        end -= 1;
    }
    (end > 0).then(|| good[..end].to_owned())
}

fn prose(dice: &mut Dice) -> String {
    const SENTENCES: [&str; 3] = [
        "I would need more context to answer this.",
        "Certainly! The short answer is that it depends.",
        "This cannot be said from what is given.",
    ];
    let at = usize::try_from(dice.below(SENTENCES.len() as u64)).unwrap_or(0);
    SENTENCES[at].to_owned()
}
