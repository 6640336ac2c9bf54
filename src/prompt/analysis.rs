//! What a template needs, read from its syntax tree.

mod depth;
mod operands;

use std::collections::HashSet;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt, UnaryOpKind};
use minijinja::machinery::{Span, parse};

use self::operands::is_default;
use crate::prompt::edit::{Edits, place};
use crate::prompt::engine::{Engine, Use};
use crate::prompt::field::Step;
use crate::prompt::{FieldPath, PromptError};

/// A field that a template uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    /// The field.
    pub(super) path: FieldPath,
    /// Whether it is used only where the template has asked whether it is defined.
    pub(super) optional: bool,
    /// Whether it is used only inside of branches and loops.
    pub(super) conditional: bool,
    /// How it is compared or calculated with, if it is.
    pub(super) compared: Option<Use>,
}

/// A part of a template that needs no engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// Text as it stands.
    Text(String),
    /// The value at these keys.
    Field(FieldPath),
}

/// What a template's syntax tree says.
#[derive(Debug)]
pub(super) struct Analysis {
    /// Its fields in the order of their first use.
    pub(super) needs: Vec<Need>,
    /// The source to compile, with operands wrapped.
    pub(super) source: String,
    /// The whole template, if it is made of text and plain fields.
    pub(super) segments: Option<Vec<Segment>>,
}

/// Reads a template. `which` is `system` or `user`.
pub(super) fn analyse(
    which: &'static str,
    source: &str,
    engine: &mut Engine,
) -> Result<Analysis, PromptError> {
    if let Some(line) = depth::too_deep(source) {
        let why = "too many operators, filters or branches hang together: write it in parts with {% set %}"
            .to_owned();
        return Err(PromptError::Refused { which, line, why });
    }
    let tree = parse(source, which, minijinja::syntax::SyntaxConfig::default())
        .map_err(|error| syntax_error(which, source, &error))?;
    let mut walker = Walker {
        which,
        source,
        engine,
        scopes: vec![HashSet::new()],
        guards: Vec::new(),
        branches: 0,
        needs: Vec::new(),
        edits: Edits::default(),
        refused: None,
    };
    walker.statement(&tree);
    if let Some(refused) = walker.refused {
        return Err(refused);
    }
    let segments = segments(&tree);
    Ok(Analysis { needs: walker.needs, source: walker.edits.apply(source), segments })
}

/// An error of the parser with the line and a mark under the place.
pub(super) fn syntax_error(which: &'static str, source: &str, error: &minijinja::Error) -> PromptError {
    let line = error.line().unwrap_or(1);
    let text = source.split('\n').nth(line - 1).unwrap_or_default().trim_end();
    let start = error.range().map_or(0, |range| range.start);
    let before = source.get(..start).unwrap_or_default();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let shown: String = text.chars().take(160).collect();
    let caret = format!("{}^", " ".repeat(column.min(shown.chars().count())));
    let mut why = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    if text.chars().nth(column).is_some_and(|letter| !letter.is_ascii()) {
        why.push_str(" (a field whose name is not made of plain letters is written as row[\"…\"])");
    }
    PromptError::Syntax { which, line, why, text: shown, caret }
}

struct Walker<'s, 'e> {
    which: &'static str,
    source: &'s str,
    engine: &'e mut Engine,
    /// Names that the template itself defines.
    scopes: Vec<HashSet<String>>,
    /// Fields that are known to be defined here.
    guards: Vec<FieldPath>,
    branches: usize,
    needs: Vec<Need>,
    edits: Edits,
    refused: Option<PromptError>,
}

impl Walker<'_, '_> {
    fn refuse(&mut self, span: Span, why: String) {
        let error = PromptError::Refused { which: self.which, line: span.start_line.max(1).into(), why };
        self.refused.get_or_insert(error);
    }

    fn is_own(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains(name))
    }

    fn define(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(it) => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(it.id.to_owned());
                }
            }
            Expr::List(it) => it.items.iter().for_each(|item| self.define(item)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.define(item)),
            _ => {}
        }
    }

    fn define_name(&mut self, name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned());
        }
    }

    /// What is used with the guards that `add` finds, inside of a branch.
    fn branch(&mut self, guards: Vec<FieldPath>, inside: impl FnOnce(&mut Self)) {
        let before = self.guards.len();
        self.guards.extend(guards);
        self.branches += 1;
        inside(self);
        self.branches -= 1;
        self.guards.truncate(before);
    }

    fn scope(&mut self, inside: impl FnOnce(&mut Self)) {
        self.scopes.push(HashSet::new());
        inside(self);
        self.scopes.pop();
    }

    fn all(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(it) => self.all(&it.children),
            Stmt::EmitExpr(it) => self.expr(&it.expr),
            Stmt::EmitRaw(_) => {}
            Stmt::ForLoop(it) => {
                self.expr(&it.iter);
                self.branch(Vec::new(), |walker| {
                    walker.scope(|walker| {
                        walker.define_name("loop");
                        walker.define(&it.target);
                        it.filter_expr.iter().for_each(|filter| walker.expr(filter));
                        walker.all(&it.body);
                    });
                    walker.scope(|walker| walker.all(&it.else_body));
                });
            }
            Stmt::IfCond(it) => {
                self.expr(&it.expr);
                let (yes, no) = (self.guards_of(&it.expr, true), self.guards_of(&it.expr, false));
                self.branch(yes, |walker| walker.all(&it.true_body));
                self.branch(no, |walker| walker.all(&it.false_body));
            }
            Stmt::WithBlock(it) => self.scope(|walker| {
                for (target, expr) in &it.assignments {
                    walker.expr(expr);
                    walker.define(target);
                }
                walker.all(&it.body);
            }),
            Stmt::Set(it) => {
                self.expr(&it.expr);
                self.define(&it.target);
            }
            Stmt::SetBlock(it) => {
                it.filter.iter().for_each(|filter| self.expr(filter));
                self.scope(|walker| walker.all(&it.body));
                self.define(&it.target);
            }
            Stmt::AutoEscape(it) => {
                self.expr(&it.enabled);
                self.all(&it.body);
            }
            Stmt::FilterBlock(it) => {
                self.expr(&it.filter);
                self.scope(|walker| walker.all(&it.body));
            }
            Stmt::Block(it) => self.scope(|walker| walker.all(&it.body)),
            Stmt::Macro(it) => {
                self.define_name(it.name);
                self.macro_body(&it.args, &it.defaults, &it.body);
            }
            Stmt::CallBlock(it) => {
                self.call(&it.call.expr, &it.call.args, it.call.span());
                self.macro_body(&it.macro_decl.args, &it.macro_decl.defaults, &it.macro_decl.body);
            }
            Stmt::Do(it) => self.call(&it.call.expr, &it.call.args, it.call.span()),
            Stmt::Import(it) => self.refuse(it.span(), "a template cannot import another one".to_owned()),
            Stmt::FromImport(it) => self.refuse(it.span(), "a template cannot import another one".to_owned()),
            Stmt::Extends(it) => self.refuse(it.span(), "a template cannot extend another one".to_owned()),
            Stmt::Include(it) => self.refuse(it.span(), "a template cannot include a file".to_owned()),
        }
    }

    fn macro_body(&mut self, args: &[Expr<'_>], defaults: &[Expr<'_>], body: &[Stmt<'_>]) {
        self.branch(Vec::new(), |walker| {
            walker.scope(|walker| {
                walker.define_name("caller");
                for arg in args {
                    walker.define(arg);
                }
                for expr in defaults {
                    walker.expr(expr);
                }
                walker.all(body);
            });
        });
    }

    fn expr(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::Const(_) => {}
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.chain(expr, false, None),
            Expr::Slice(it) => {
                self.expr(&it.expr);
                [&it.start, &it.stop, &it.step].into_iter().flatten().for_each(|part| self.expr(part));
            }
            Expr::UnaryOp(it) => {
                self.expr(&it.expr);
                if matches!(it.op, UnaryOpKind::Neg) {
                    self.operand(&it.expr, Use::Calculated);
                }
            }
            Expr::BinOp(it) => self.binary(it.op, &it.left, &it.right),
            Expr::Compare(it) => self.comparison(it),
            Expr::IfExpr(it) => {
                self.expr(&it.test_expr);
                let (yes, no) = (self.guards_of(&it.test_expr, true), self.guards_of(&it.test_expr, false));
                self.branch(yes, |walker| walker.expr(&it.true_expr));
                self.branch(no, |walker| it.false_expr.iter().for_each(|expr| walker.expr(expr)));
            }
            Expr::Filter(it) => {
                if !self.engine.has_filter(it.name) {
                    self.refuse(it.span(), format!("there is no filter `{}`", it.name));
                }
                match &it.expr {
                    Some(expr) if is_default(it.name) => self.chain(expr, true, None),
                    expr => expr.iter().for_each(|expr| self.expr(expr)),
                }
                self.args(&it.args);
            }
            Expr::Test(it) => {
                if !self.engine.has_test(it.name) {
                    self.refuse(it.span(), format!("there is no test `{}`", it.name));
                }
                self.chain(&it.expr, matches!(it.name, "defined" | "undefined"), None);
                self.args(&it.args);
            }
            Expr::Call(it) => self.call(&it.expr, &it.args, it.span()),
            Expr::List(it) => it.items.iter().for_each(|item| self.expr(item)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.expr(item)),
            Expr::Map(it) => it.keys.iter().chain(&it.values).for_each(|item| self.expr(item)),
        }
    }

    fn args(&mut self, args: &[CallArg<'_>]) {
        for arg in args {
            match arg {
                CallArg::Pos(expr)
                | CallArg::Kwarg(_, expr)
                | CallArg::PosSplat(expr)
                | CallArg::KwargSplat(expr) => self.expr(expr),
            }
        }
    }

    fn call(&mut self, callee: &Expr<'_>, args: &[CallArg<'_>], span: Span) {
        match callee {
            Expr::Var(it) if self.is_own(it.id) || self.engine.has_function(it.id) => {}
            Expr::Var(it) => self.refuse(span, format!("there is no function `{}`", it.id)),
            Expr::GetAttr(it) => self.expr(&it.expr),
            callee => self.expr(callee),
        }
        self.args(args);
    }

    /// A variable with attributes and items behind it. `asked`: whether the template asks if it is defined.
    fn chain(&mut self, expr: &Expr<'_>, asked: bool, compared: Option<Use>) {
        let (inner, subscript) = match expr {
            Expr::Var(_) => (None, None),
            Expr::GetAttr(it) => (Some(&it.expr), None),
            Expr::GetItem(it) => (Some(&it.expr), Some(&it.subscript_expr)),
            other => return self.expr(other),
        };
        // What is asked for may lack more than its last step.
        if asked && let Some(inner) = inner {
            self.soften(inner);
        }
        match (self.path(expr), inner) {
            (Some(path), _) => {
                if let Some(path) = FieldPath::of(path) {
                    self.need(path, asked, compared);
                }
            }
            (None, Some(inner)) => {
                self.chain(inner, asked, None);
                if let Some(subscript) = subscript {
                    self.expr(subscript);
                }
            }
            (None, None) => {}
        }
    }

    fn soften(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::GetAttr(it) => self.soften(&it.expr),
            Expr::GetItem(it) => self.soften(&it.expr),
            Expr::Var(_) => {}
            _ => return,
        }
        if let Some(place) = place(self.source, expr) {
            self.edits.wrap(place, "verify_soft");
        }
    }

    /// The steps from the record down to the value of an expression; `None` if it is no plain field.
    fn path(&self, expr: &Expr<'_>) -> Option<Vec<Step>> {
        let (inner, step) = match expr {
            Expr::Var(it) if self.is_own(it.id) => return None,
            Expr::Var(it) if it.id == "row" => return Some(Vec::new()),
            Expr::Var(it) => return Some(vec![Step::Key(it.id.to_owned())]),
            Expr::GetAttr(it) => (&it.expr, Step::Key(it.name.to_owned())),
            Expr::GetItem(it) => {
                let key = it.subscript_expr.as_const()?;
                let step = match key.as_str() {
                    Some(name) => Step::Key(name.to_owned()),
                    None => Step::Index(key.as_i64()?),
                };
                (&it.expr, step)
            }
            _ => return None,
        };
        let mut path = self.path(inner)?;
        path.push(step);
        Some(path)
    }

    fn need(&mut self, path: FieldPath, asked: bool, compared: Option<Use>) {
        let optional = asked || self.guards.iter().any(|guard| guard.leads_to(&path));
        let conditional = self.branches > 0;
        match self.needs.iter_mut().find(|need| need.path == path) {
            Some(need) => {
                need.optional &= optional;
                need.conditional &= conditional;
                need.compared = need.compared.or(compared);
            }
            None => self.needs.push(Need { path, optional, conditional, compared }),
        }
    }

    /// Fields that are defined where a condition has this outcome.
    fn guards_of(&self, condition: &Expr<'_>, outcome: bool) -> Vec<FieldPath> {
        match condition {
            Expr::Test(it) if it.name == if outcome { "defined" } else { "undefined" } => {
                self.path(&it.expr).and_then(FieldPath::of).into_iter().collect()
            }
            Expr::UnaryOp(it) if matches!(it.op, UnaryOpKind::Not) => self.guards_of(&it.expr, !outcome),
            Expr::BinOp(it) => match (it.op, outcome) {
                (BinOpKind::ScAnd, true) | (BinOpKind::ScOr, false) => {
                    let mut guards = self.guards_of(&it.left, outcome);
                    guards.extend(self.guards_of(&it.right, outcome));
                    guards
                }
                (BinOpKind::In, true) => self.member_guard(&it.left, &it.right).into_iter().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// `"name" in row`.
    fn member_guard(&self, name: &Expr<'_>, object: &Expr<'_>) -> Option<FieldPath> {
        let Expr::Const(name) = name else { return None };
        let mut path = self.path(object)?;
        path.push(Step::Key(name.value.as_str()?.to_owned()));
        FieldPath::of(path)
    }
}

fn segments(tree: &Stmt<'_>) -> Option<Vec<Segment>> {
    fn path(expr: &Expr<'_>) -> Option<Vec<Step>> {
        let (inner, name) = match expr {
            Expr::Var(it) if it.id == "row" => return Some(Vec::new()),
            Expr::Var(it) => return Some(vec![Step::Key(it.id.to_owned())]),
            Expr::GetAttr(it) => (&it.expr, it.name),
            Expr::GetItem(it) => match &it.subscript_expr {
                Expr::Const(key) => (&it.expr, key.value.as_str()?),
                _ => return None,
            },
            _ => return None,
        };
        let mut path = path(inner)?;
        path.push(Step::Key(name.to_owned()));
        Some(path)
    }
    let Stmt::Template(template) = tree else { return None };
    let segment = |statement: &Stmt<'_>| match statement {
        Stmt::EmitRaw(it) => Some(Segment::Text(it.raw.to_owned())),
        Stmt::EmitExpr(it) => path(&it.expr).and_then(FieldPath::of).map(Segment::Field),
        _ => None,
    };
    template.children.iter().map(segment).collect()
}

#[cfg(test)]
mod tests;
