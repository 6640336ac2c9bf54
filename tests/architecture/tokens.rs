//! Sources as words: just enough of Rust to find paths in it.

/// As much of Rust's words as paths need: comments are left out, literals are one token without content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    Sign(String),
    Literal,
}

impl Token {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Sign(text) => text,
            Self::Literal => "\"\"",
        }
    }
}

pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if let Some(length) = comment(rest) {
            length
        } else if let Some(length) = literal(rest) {
            found.push(Token::Literal);
            length
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            found.push(Token::Word(rest[..end].to_owned()));
            end
        } else if rest.starts_with("::") {
            found.push(Token::Sign("::".to_owned()));
            2
        } else {
            if !first.is_whitespace() {
                found.push(Token::Sign(first.to_string()));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// The length of the comment that the text begins with. Block comments nest.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The length of the string or character that the text begins with; a lifetime is none.
fn literal(text: &str) -> Option<usize> {
    let plain = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - plain.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = plain.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let content = raw[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = content.find(&close).map_or(content.len(), |at| at + close.len());
        return Some(text.len() - content.len() + end);
    }
    let quote = plain.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let content = &plain[1..];
    if quote == '\'' && !content.starts_with('\\') && content.chars().nth(1) != Some('\'') {
        return None;
    }
    let mut escaped = false;
    let end = content.char_indices().find_map(|(at, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at + 1)
    });
    Some(prefix + 1 + end.unwrap_or(content.len()))
}
