//! Texts that match a simple regular expression.

use std::iter::Peekable;
use std::str::Chars;

use crate::base::Dice;

/// The most repeats of one part, whatever the expression asks for.
const MOST_REPEATS: u64 = 1_000;
/// The longest text, in bytes; a part is not begun beyond it.
const LONGEST: usize = 10_000;
/// The deepest nesting of groups.
const DEEPEST: u32 = 16;

/// A part of an expression.
#[derive(Debug)]
enum Part {
    /// One of these characters.
    OneOf(Vec<(char, char)>),
    /// One of these sequences.
    Group(Vec<Vec<Repeated>>),
}

#[derive(Debug)]
struct Repeated {
    part: Part,
    least: u64,
    most: u64,
    open: bool,
}

/// A text that matches `pattern` and has at least `length` characters if an open repeat can give them. `None` where
/// the expression uses more than literals, classes, groups, alternatives, repeats and anchors at its ends.
pub(super) fn matching(pattern: &str, dice: &mut Dice, length: usize) -> Option<String> {
    let body = pattern.strip_prefix('^').unwrap_or(pattern);
    let anchored = body.ends_with('$') && !body.ends_with("\\$");
    let body = if anchored { &body[..body.len() - 1] } else { body };
    let mut rest = body.chars().peekable();
    let options = alternatives(&mut rest, 0)?;
    if rest.next().is_some() {
        return None;
    }
    let mut text = String::new();
    write_group(&options, dice, length, &mut text);
    (text.len() < LONGEST).then_some(text)
}

fn alternatives(rest: &mut Peekable<Chars<'_>>, depth: u32) -> Option<Vec<Vec<Repeated>>> {
    if depth > DEEPEST {
        return None;
    }
    let mut options = vec![Vec::new()];
    while let Some(&next) = rest.peek() {
        if next == ')' {
            break;
        }
        rest.next();
        if next == '|' {
            options.push(Vec::new());
            continue;
        }
        let part = match next {
            '(' => {
                if rest.next_if_eq(&'?').is_some() && rest.next() != Some(':') {
                    return None;
                }
                let inner = alternatives(rest, depth + 1)?;
                rest.next_if_eq(&')')?;
                Part::Group(inner)
            }
            '[' => Part::OneOf(class(rest)?),
            '.' => Part::OneOf(vec![('a', 'z')]),
            '\\' => Part::OneOf(escape(rest)?),
            '^' | '$' | '*' | '+' | '?' | '{' => return None,
            literal => Part::OneOf(vec![(literal, literal)]),
        };
        let (least, most, open) = repeats(rest)?;
        options.last_mut()?.push(Repeated { part, least, most, open });
    }
    Some(options)
}

fn repeats(rest: &mut Peekable<Chars<'_>>) -> Option<(u64, u64, bool)> {
    let found = match rest.peek() {
        Some('?') => (0, 1, false),
        Some('*') => (0, 4, true),
        Some('+') => (1, 5, true),
        Some('{') => {
            rest.next();
            let inner: String = std::iter::from_fn(|| rest.next_if(|next| *next != '}')).collect();
            let number = |text: &str| text.parse::<u64>().ok().map(|count| count.min(MOST_REPEATS));
            match inner.split_once(',') {
                None => (number(&inner)?, number(&inner)?, false),
                Some((least, "")) => (number(least)?, number(least)? + 4, true),
                Some((least, most)) => (number(least)?, number(most)?, false),
            }
        }
        _ => return Some((1, 1, false)),
    };
    rest.next();
    rest.next_if_eq(&'?');
    (found.0 <= found.1).then_some(found)
}

fn escape(rest: &mut Peekable<Chars<'_>>) -> Option<Vec<(char, char)>> {
    Some(match rest.next()? {
        'd' => vec![('0', '9')],
        'w' => vec![('a', 'z'), ('A', 'Z'), ('0', '9')],
        's' => vec![(' ', ' ')],
        't' => vec![('\t', '\t')],
        'n' => vec![('\n', '\n')],
        other if other.is_ascii_alphanumeric() => return None,
        literal => vec![(literal, literal)],
    })
}

fn class(rest: &mut Peekable<Chars<'_>>) -> Option<Vec<(char, char)>> {
    let negated = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        match rest.next()? {
            ']' if !ranges.is_empty() => break,
            '[' => return None,
            '\\' => ranges.extend(escape(rest)?),
            first => {
                let mut ahead = rest.clone();
                let range = (ahead.next() == Some('-')).then(|| ahead.next()).flatten();
                match range {
                    Some(last) if last != ']' && last != '\\' && last >= first => {
                        ranges.push((first, last));
                        *rest = ahead;
                    }
                    _ => ranges.push((first, first)),
                }
            }
        }
    }
    if !negated {
        return Some(ranges);
    }
    let outside = |place: &char| !ranges.iter().any(|(low, high)| (low..=high).contains(&place));
    let free: Vec<_> =
        ('a'..='z').chain('0'..='9').chain(' '..='/').filter(outside).map(|c| (c, c)).collect();
    (!free.is_empty()).then_some(free)
}

fn write_group(options: &[Vec<Repeated>], dice: &mut Dice, length: usize, text: &mut String) {
    let at = usize::try_from(dice.below(options.len() as u64)).unwrap_or(0);
    for repeated in options.get(at).into_iter().flatten() {
        let mut count = repeated.least + dice.below(repeated.most - repeated.least + 1);
        let mut written = 0;
        while written < count && text.len() < LONGEST {
            match &repeated.part {
                Part::OneOf(ranges) => text.push(one_of(ranges, dice)),
                Part::Group(inner) => write_group(inner, dice, 0, text),
            }
            written += 1;
            if repeated.open && written == count && text.chars().count() < length && count < MOST_REPEATS {
                count += 1;
            }
        }
    }
}

fn one_of(ranges: &[(char, char)], dice: &mut Dice) -> char {
    let range = usize::try_from(dice.below(ranges.len() as u64)).ok().and_then(|at| ranges.get(at));
    let (low, high) = range.copied().unwrap_or(('a', 'a'));
    let drawn = u64::from(low) + dice.below(u64::from(high) - u64::from(low) + 1);
    u32::try_from(drawn).ok().and_then(char::from_u32).unwrap_or(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_their_patterns() {
        for pattern in [
            "^[A-Z]{2}-\\d{4}$",
            "^(red|green|blue)$",
            "^\\w+@[a-z]+\\.(com|org)$",
            "[^a-y]x?y*z",
            "^a{2,}(?:b|c[0-9]){1,3}$",
            "^[-+]?[0-9]+(\\.[0-9]{1,2})?$",
        ] {
            let schema = serde_json::json!({"type": "string", "pattern": pattern});
            let validator = jsonschema::validator_for(&schema).unwrap();
            for seed in 0..50 {
                let text = matching(pattern, &mut Dice::new(seed, &[]), 0).unwrap();
                assert!(validator.is_valid(&serde_json::Value::String(text.clone())), "{pattern}: {text}");
            }
        }
    }

    #[test]
    fn an_open_repeat_fills_the_least_length() {
        let text = matching("^[a-c]+$", &mut Dice::new(1, &[]), 40).unwrap();
        assert!(text.len() >= 40);
    }

    #[test]
    fn what_is_not_simple_is_left_alone() {
        let deep = "(".repeat(10_000);
        for pattern in
            ["(?=a)b", "a\\b", "\\p{L}", "[", "(", "a{3,1}", "[[:alpha:]]", "(a{1000}){1000}", &*deep]
        {
            assert_eq!(
                matching(pattern, &mut Dice::new(1, &[]), 0),
                None,
                "{}",
                &pattern[..4.min(pattern.len())]
            );
        }
    }
}
