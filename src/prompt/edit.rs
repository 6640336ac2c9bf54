//! Wrapping parts of a template's source in filters of ours.
//!
//! The engine compares a value of ours with a number without asking us, and gives no hook for it. So an operand `x`
//! becomes `((x)|filter)` in the source before it is compiled. Line numbers stay as they are.

use minijinja::machinery::ast::Expr;

/// Insertions into a source.
#[derive(Debug, Default)]
pub(super) struct Edits {
    inserted: Vec<(usize, String)>,
}

impl Edits {
    /// Wraps the part from `start` to `end` in a filter. An inner part must be wrapped before an outer one.
    pub(super) fn wrap(&mut self, (start, end): (usize, usize), filter: &str) {
        self.inserted.push((start, "((".to_owned()));
        self.inserted.push((end, format!(")|{filter})")));
    }

    /// The source with everything inserted.
    pub(super) fn apply(mut self, source: &str) -> String {
        self.inserted.sort_by_key(|(at, _)| *at);
        let mut edited = String::with_capacity(source.len() + 32 * self.inserted.len());
        let mut from = 0;
        for (at, text) in &self.inserted {
            edited.push_str(source.get(from..*at).unwrap_or_default());
            edited.push_str(text);
            from = *at;
        }
        edited.push_str(source.get(from..).unwrap_or_default());
        edited
    }
}

/// Where an expression stands in the source. `None` if it cannot be told.
///
/// The parser's spans end right, but begin at the last operator, and they leave out parentheses. So the beginning is
/// that of the leftmost part, moved left over the parentheses that are closed inside.
pub(super) fn place(source: &str, expr: &Expr<'_>) -> Option<(usize, usize)> {
    let end = usize::try_from(expr.span().end_offset).ok()?;
    let mut start = leftmost(expr)?;
    for _ in 0..unopened(source.get(start..end)?) {
        let before = source.get(..start)?.trim_end();
        start = before.len().checked_sub(1)?;
        if !before.ends_with('(') {
            return None;
        }
    }
    Some((start, end))
}

fn leftmost(expr: &Expr<'_>) -> Option<usize> {
    match expr {
        Expr::GetAttr(it) => leftmost(&it.expr),
        Expr::GetItem(it) => leftmost(&it.expr),
        Expr::Slice(it) => leftmost(&it.expr),
        Expr::Call(it) => leftmost(&it.expr),
        Expr::Filter(it) => leftmost(it.expr.as_ref()?),
        Expr::Test(it) => leftmost(&it.expr),
        Expr::BinOp(it) => leftmost(&it.left),
        Expr::Compare(it) => leftmost(&it.expr),
        Expr::IfExpr(it) => leftmost(&it.true_expr),
        // `x is not y` is a negation whose span begins at `y`.
        Expr::UnaryOp(it) => leftmost(&it.expr).map(|inner| inner.min(start_of(expr))),
        Expr::Var(_) | Expr::Const(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => Some(start_of(expr)),
    }
}

fn start_of(expr: &Expr<'_>) -> usize {
    usize::try_from(expr.span().start_offset).unwrap_or(usize::MAX)
}

/// How many parentheses are closed that were not opened, strings left out.
fn unopened(text: &str) -> usize {
    let (mut open, mut unopened) = (0_usize, 0);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '(' => open += 1,
            ')' if open == 0 => unopened += 1,
            ')' => open -= 1,
            '"' | '\'' => {
                while let Some(inside) = letters.next() {
                    if inside == letter {
                        break;
                    }
                    if inside == '\\' {
                        letters.next();
                    }
                }
            }
            _ => {}
        }
    }
    unopened
}
