//! The text of a part of a JSON text, as it stands there: numbers keep their digits, members their order.

use std::collections::HashMap;

use serde_json::value::RawValue;

/// A step into a JSON value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'s> {
    /// The member of this name; the last of several.
    Member(&'s str),
    /// The item at this place.
    Item(usize),
}

/// The part that the steps lead to; `None` if there is none.
pub(super) fn part<'t>(text: &'t str, steps: &[Step<'_>]) -> Option<&'t str> {
    steps.iter().try_fold(text, |here, step| match step {
        Step::Member(name) => {
            let members: HashMap<String, &'t RawValue> = serde_json::from_str(here).ok()?;
            members.get(*name).map(|raw| raw.get())
        }
        Step::Item(at) => {
            let items: Vec<&'t RawValue> = serde_json::from_str(here).ok()?;
            items.get(*at).map(|raw| raw.get())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_text() {
        let text =
            r#"{"a":1,"c":[{"x":{"n":1.50, "n":1e2}}], "c":[0,{"x":{"m":2.0,"a":12345678901234567890123}}]}"#;
        let steps = [Step::Member("c"), Step::Item(1), Step::Member("x")];
        assert_eq!(part(text, &steps), Some(r#"{"m":2.0,"a":12345678901234567890123}"#));
        assert_eq!(part(text, &[Step::Member("b")]), None);
        assert_eq!(part(text, &[Step::Item(0)]), None);
        assert_eq!(part("", &[Step::Item(0)]), None);
    }
}
