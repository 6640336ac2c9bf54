//! Texts without meaning: words, sentences and the string formats of JSON Schema.

use crate::base::Dice;

const WORDS: [&str; 32] = [
    "the", "record", "matches", "its", "source", "and", "names", "every", "part", "of", "a", "known", "item",
    "with", "clear", "evidence", "from", "both", "sides", "so", "no", "doubt", "remains", "about", "value",
    "unit", "order", "or", "date", "that", "was", "given",
];

/// Words with single spaces, `count` of them.
pub(super) fn words(dice: &mut Dice, count: u64) -> String {
    let mut text = String::new();
    for _ in 0..count {
        if !text.is_empty() {
            text.push(' ');
        }
        let at = usize::try_from(dice.below(WORDS.len() as u64)).unwrap_or(0);
        text.push_str(WORDS[at]);
    }
    text
}

/// One sentence.
pub(super) fn sentence(dice: &mut Dice) -> String {
    let count = 5 + dice.below(8);
    let mut text = words(dice, count);
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text.push('.');
    text
}

/// Words of `least..=most` characters.
pub(super) fn sized(dice: &mut Dice, least: usize, most: usize) -> String {
    let count = 2 + dice.below(5);
    let mut text = words(dice, count);
    while text.len() < least {
        text.push(' ');
        text.push_str(&words(dice, 8));
    }
    // All words are ASCII, so that bytes are characters.
    text.truncate(most);
    if text.ends_with(' ') {
        text.pop();
        text.push('s');
    }
    text
}

/// A text of a format; `None` for a format that is not known here.
pub(super) fn formatted(dice: &mut Dice, format: &str) -> Option<String> {
    let date = |dice: &mut Dice| format!("2026-{:02}-{:02}", 1 + dice.below(12), 1 + dice.below(28));
    let time =
        |dice: &mut Dice| format!("{:02}:{:02}:{:02}Z", dice.below(24), dice.below(60), dice.below(60));
    Some(match format {
        "date" => date(dice),
        "time" => time(dice),
        "date-time" => format!("{}T{}", date(dice), time(dice)),
        "duration" => format!("PT{}M", 1 + dice.below(59)),
        "email" | "idn-email" => format!("{}{}@example.com", words(dice, 1), dice.below(1_000)),
        "hostname" | "idn-hostname" => format!("{}{}.example.com", words(dice, 1), dice.below(1_000)),
        "uri" | "iri" | "uri-reference" | "iri-reference" => {
            format!("https://example.com/{}/{}", words(dice, 1), dice.below(1_000))
        }
        "ipv4" => format!("192.0.2.{}", 1 + dice.below(254)),
        "ipv6" => format!("2001:db8::{:x}", 1 + dice.below(0xfffe)),
        "uuid" => {
            let (high, low) = (dice.next_u64(), dice.next_u64());
            format!(
                "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
                high >> 32,
                high >> 16 & 0xffff,
                high & 0xfff,
                low >> 48 & 0xfff,
                low & 0xffff_ffff_ffff
            )
        }
        _ => return None,
    })
}
