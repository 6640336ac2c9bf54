//! What stands on both sides of an operator.

use minijinja::machinery::ast::{BinOpKind, Compare, CompareOpKind, Expr, UnaryOpKind};

use super::Walker;
use crate::prompt::FieldPath;
use crate::prompt::edit::place;
use crate::prompt::engine::Use;

impl Walker<'_, '_> {
    pub(super) fn binary(&mut self, op: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) {
        self.expr(left);
        match op {
            BinOpKind::ScAnd | BinOpKind::ScOr => {
                let guards = self.guards_of(left, matches!(op, BinOpKind::ScAnd));
                self.branch(guards, |walker| walker.expr(right));
                return;
            }
            _ => self.expr(right),
        }
        let number = is_number(left) || is_number(right);
        let operands = match op {
            BinOpKind::Concat => {
                self.textual(left);
                self.textual(right);
                return;
            }
            BinOpKind::In if is_number(left) => return self.operand(right, Use::Searched),
            BinOpKind::In => return self.operand(left, Use::Compared),
            BinOpKind::Eq | BinOpKind::Ne if number => Use::EqualToNumber,
            BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte if number => Use::OrderedByNumber,
            BinOpKind::Eq
            | BinOpKind::Ne
            | BinOpKind::Lt
            | BinOpKind::Lte
            | BinOpKind::Gt
            | BinOpKind::Gte => Use::Compared,
            _ if number => Use::CalculatedWithNumber,
            _ => Use::Calculated,
        };
        self.operand(left, operands);
        self.operand(right, operands);
    }

    pub(super) fn comparison(&mut self, chain: &Compare<'_>) {
        let number = is_number(&chain.expr) || chain.ops.iter().any(|step| is_number(&step.expr));
        let equal = |op| matches!(op, CompareOpKind::Eq | CompareOpKind::Ne);
        let used = if !number
            || chain.ops.iter().any(|step| matches!(step.op, CompareOpKind::In | CompareOpKind::NotIn))
        {
            Use::Compared
        } else if chain.ops.iter().all(|step| equal(step.op)) {
            Use::EqualToNumber
        } else {
            Use::OrderedByNumber
        };
        for operand in std::iter::once(&chain.expr).chain(chain.ops.iter().map(|step| &step.expr)) {
            self.expr(operand);
            self.operand(operand, used);
        }
    }

    /// Makes an operand say when it is a number that was not passed through `|int` or `|float`.
    pub(super) fn operand(&mut self, expr: &Expr<'_>, used: Use) {
        match expr {
            Expr::IfExpr(it) => {
                self.operand(&it.true_expr, used);
                it.false_expr.iter().for_each(|expr| self.operand(expr, used));
                return;
            }
            Expr::BinOp(it) if matches!(it.op, BinOpKind::ScAnd | BinOpKind::ScOr) => {
                self.operand(&it.left, used);
                self.operand(&it.right, used);
                return;
            }
            Expr::Filter(it) if is_number(expr) || it.expr.is_none() => return,
            Expr::Filter(it) if is_default(it.name) => {
                it.expr.iter().for_each(|expr| self.operand(expr, used));
                return;
            }
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) if !is_number(expr) => {
                if let Some(path) = self.path(expr).and_then(FieldPath::of) {
                    // It was noted as needed before; this adds how it is used.
                    let asked = self.needs.iter().any(|need| need.path == path && need.optional);
                    self.need(path, asked, Some(used));
                }
            }
            Expr::Filter(_) | Expr::Call(_) => {}
            _ => return,
        }
        if let Some((start, end)) = place(self.source, expr) {
            let label = self.source.get(start..end).unwrap_or_default();
            let filter = self.engine.operand(label, used);
            self.edits.wrap((start, end), &filter);
        }
    }

    /// Makes an operand of `~` print as it prints elsewhere.
    fn textual(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::Const(_) => return,
            Expr::BinOp(it) if matches!(it.op, BinOpKind::Concat) => return,
            // Without `else` it may be nothing, which prints as nothing.
            Expr::IfExpr(it) => {
                self.textual(&it.true_expr);
                if let Some(expr) = &it.false_expr {
                    self.textual(expr);
                }
                return;
            }
            _ => {}
        }
        if let Some(place) = place(self.source, expr) {
            self.edits.wrap(place, "verify_text");
        }
    }
}

pub(super) fn is_default(filter: &str) -> bool {
    matches!(filter, "default" | "d")
}

/// Whether an expression is a number of the template, not one of the row.
fn is_number(expr: &Expr<'_>) -> bool {
    match expr {
        Expr::Const(it) => it.value.is_number(),
        Expr::UnaryOp(it) => matches!(it.op, UnaryOpKind::Neg) && is_number(&it.expr),
        Expr::Filter(it) => matches!(it.name, "int" | "float" | "length" | "count" | "round" | "abs" | "sum"),
        Expr::GetAttr(it) => {
            let counts = ["index", "index0", "revindex", "revindex0", "length", "depth", "depth0"];
            matches!(&it.expr, Expr::Var(var) if var.id == "loop") && counts.contains(&it.name)
        }
        Expr::BinOp(it) => match it.op {
            BinOpKind::Add | BinOpKind::Mul => is_number(&it.left) || is_number(&it.right),
            BinOpKind::Sub | BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem | BinOpKind::Pow => true,
            _ => false,
        },
        _ => false,
    }
}
