//! How deep a template may nest before it is parsed.
//!
//! The parser bounds brackets and blocks, but not chains: each operator, filter, attribute and `elif` wraps what stands
//! before it, and a long enough chain is a tree whose depth no stack holds.

use minijinja::machinery::{Token, tokenize};

/// The most links of one tag, and the most `elif` of a template. A prompt has a few dozen.
const MOST_LINKS: usize = 400;

/// The line of the first tag with more links than a tree may have levels; `None` where all is well. What cannot be read
/// as tokens is left to the parser.
pub(super) fn too_deep(source: &str) -> Option<usize> {
    let (mut links, mut elifs) = (0, 0);
    let mut begins = false;
    for (token, span) in
        tokenize(source, false, minijinja::syntax::SyntaxConfig::default()).map_while(Result::ok)
    {
        match token {
            Token::VariableStart | Token::BlockStart => links = 0,
            Token::Ident("elif") if begins => elifs += 1,
            ref token if is_link(token) => links += 1,
            _ => {}
        }
        begins = matches!(token, Token::BlockStart);
        if links > MOST_LINKS || elifs > MOST_LINKS {
            return Some(span.start_line.max(1).into());
        }
    }
    None
}

/// Whether a token may wrap what stands beside it. Commas and colons do not: a list may be long.
fn is_link(token: &Token<'_>) -> bool {
    match token {
        Token::Ident(word) => matches!(*word, "not" | "and" | "or" | "if" | "else" | "is" | "in"),
        Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::FloorDiv
        | Token::Pow
        | Token::Mod
        | Token::Dot
        | Token::Tilde
        | Token::Pipe
        | Token::Eq
        | Token::Ne
        | Token::Gt
        | Token::Gte
        | Token::Lt
        | Token::Lte
        | Token::BracketOpen
        | Token::ParenOpen
        | Token::BraceOpen => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_counted_a_tag_and_elif_a_template() {
        assert_eq!(too_deep(&format!("a\n{{{{ x{} }}}}", "|upper".repeat(401))), Some(2));
        assert_eq!(too_deep(&"{% if a %}{% elif b %}{% endif %}".repeat(401)), Some(1));
        assert_eq!(too_deep(&"{{ a.b|upper }}".repeat(5_000)), None);
        assert_eq!(too_deep(&format!("{{% set a = [{}] %}}", "'x', ".repeat(5_000))), None);
        assert_eq!(too_deep("{{ \"open"), None);
    }
}
