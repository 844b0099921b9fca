//! Statements, apart from control flow.

use super::{Lower, Operand};
use crate::lower::operator::Operator;
use crate::source::{Result, is_constexpr_text};
use crate::value::{Const, Val};
use naiad_diag::Id;
use naiad_ir::Value;
use naiad_ir::tile::TileOp;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::rc::Rc;

/// Where control is after a statement.
pub(crate) enum Flow {
    /// At the next statement.
    Next,
    /// Out of the function, with this value.
    Returned(Val),
    /// Out of the function with this value where the flag is true, else at the next statement.
    Maybe { flag: Value, val: Val },
}

impl Lower<'_> {
    /// The kernel itself: what it returns must be nothing.
    pub fn kernel_body(&mut self, parsed: &Rc<crate::source::Parsed>) -> Result<()> {
        let flow = self.block(&parsed.def.body)?;
        if let Flow::Returned(val) | Flow::Maybe { val, .. } = &flow
            && !val.is_none()
        {
            let what = self.describe(val);
            let range = parsed.def.name.range();
            let e = self.error(
                Id::BadReturn,
                format!("the kernel returns {what}"),
                range,
                "a kernel returns nothing",
            );
            return Err(Box::new((*e).help("store the result through a pointer argument")));
        }
        self.b.ops(TileOp::Return {})?;
        Ok(())
    }

    pub fn block(&mut self, stmts: &[Stmt]) -> Result<Flow> {
        for (i, stmt) in stmts.iter().enumerate() {
            // Blocks nest, and each level is a few frames of this walk.
            match stacker::maybe_grow(128 << 10, 4 << 20, || self.stmt(stmt))? {
                Flow::Next => {}
                returned @ Flow::Returned(_) => return Ok(returned),
                Flow::Maybe { flag, val } => {
                    let rest = &stmts[i + 1..];
                    if rest.is_empty() {
                        return Ok(Flow::Maybe { flag, val });
                    }
                    return self.rest_unless_returned(flag, val, rest, stmt.range());
                }
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow> {
        self.check_size(stmt.range())?;
        self.b.loc = self.loc(stmt.range());
        match stmt {
            Stmt::Assign(s) => self.assign(s)?,
            Stmt::AugAssign(s) => self.aug_assign(s)?,
            Stmt::AnnAssign(s) => self.ann_assign(s)?,
            Stmt::Expr(s) => {
                if !matches!(&*s.value, Expr::StringLiteral(_) | Expr::EllipsisLiteral(_)) {
                    let val = self.eval(&s.value)?;
                    if let (Val::Window(_), Expr::Call(_)) = (&val, &*s.value) {
                        return Err(self.unused_window(&val, s.range()));
                    }
                }
            }
            Stmt::Pass(_) => {}
            Stmt::Return(s) => return self.ret(s),
            Stmt::If(s) => return self.if_stmt(s),
            Stmt::For(s) => self.for_stmt(s)?,
            Stmt::While(s) => self.while_stmt(s)?,
            Stmt::Assert(s) => self.assert(s)?,
            other => return Err(self.unsupported_stmt(other)),
        }
        Ok(Flow::Next)
    }

    fn ret(&mut self, s: &ast::StmtReturn) -> Result<Flow> {
        if self.frame().loops > 0 {
            let e = self.error(
                Id::BadReturn,
                "Cannot have `return` statements inside a loop",
                s.range(),
                "",
            );
            return Err(Box::new((*e)
                .help("keep the result in a variable, guard the rest of the body with an `if`, and return after the loop")));
        }
        let val = match &s.value {
            Some(e) => self.eval(e)?,
            None => Val::NONE,
        };
        Ok(Flow::Returned(val))
    }

    fn assign(&mut self, s: &ast::StmtAssign) -> Result<()> {
        if let [_, second, ..] = s.targets.as_slice() {
            let e = self.error(
                Id::UnsupportedPython,
                "a value cannot be assigned to several targets at once",
                second.range(),
                "",
            );
            return Err(Box::new((*e).help("write one assignment for each name")));
        }
        let val = self.eval(&s.value)?;
        for target in &s.targets {
            self.assign_to(target, val.clone(), s.value.range())?;
        }
        Ok(())
    }

    pub fn assign_to(&mut self, target: &Expr, val: Val, value_range: TextRange) -> Result<()> {
        match target {
            Expr::Name(name) => {
                let declared = &mut self.frame_mut().declared_constexpr;
                let known = declared.iter().position(|n| **n == *name.id.as_str());
                let val = match known {
                    Some(i) => {
                        declared.swap_remove(i);
                        val
                    }
                    None => self.decay(val)?,
                };
                let place = self.place(target.range());
                self.bind(name.id.as_str(), val, place);
                Ok(())
            }
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                let Val::Tuple(t) = &val else {
                    let what = self.describe(&val);
                    return Err(self.error(
                        Id::TypeMismatch,
                        format!("cannot unpack {what}"),
                        value_range,
                        "this is no tuple",
                    ));
                };
                if let Some(star) = elts.iter().find(|e| e.is_starred_expr()) {
                    return Err(self.error(
                        Id::UnsupportedPython,
                        "`*` cannot stand in an assignment's target",
                        star.range(),
                        "",
                    ));
                }
                if t.items.len() != elts.len() {
                    let which = if t.items.len() > elts.len() {
                        "too many values to unpack"
                    } else {
                        "not enough values to unpack"
                    };
                    let message =
                        format!("{which}: {} names, {} values", elts.len(), t.items.len());
                    return Err(self.error(Id::TypeMismatch, message, target.range(), ""));
                }
                for (target, item) in elts.iter().zip(&t.items) {
                    self.assign_to(target, item.clone(), value_range)?;
                }
                Ok(())
            }
            Expr::Subscript(_) => {
                let e = self.error(
                    Id::UnsupportedPython,
                    "an element of a tile cannot be assigned",
                    target.range(),
                    "tiles are values, not memory",
                );
                Err(Box::new((*e).help("build the new tile with `tl.where(condition, new, old)`, or store through a pointer")))
            }
            other => Err(self.error(
                Id::UnsupportedPython,
                "only names and tuples of names can be assigned",
                other.range(),
                "",
            )),
        }
    }

    fn aug_assign(&mut self, s: &ast::StmtAugAssign) -> Result<()> {
        let Expr::Name(_) = &*s.target else {
            return self.assign_to(&s.target, Val::NONE, s.value.range());
        };
        let target = self.eval(&s.target)?;
        let value = self.eval(&s.value)?;
        self.b.loc = self.loc(s.range());
        let val = self.binary(
            Operator::from_ast(s.op),
            Operand::new(target, s.target.range()),
            Operand::new(value, s.value.range()),
            s.range(),
        )?;
        self.assign_to(&s.target, val, s.range())
    }

    fn ann_assign(&mut self, s: &ast::StmtAnnAssign) -> Result<()> {
        let text = self.frame().parsed.annotation_text(&s.annotation);
        let Some(value) = &s.value else {
            if let (Expr::Name(name), true) = (&*s.target, is_constexpr_text(&text)) {
                let name: Rc<str> = name.id.as_str().into();
                self.frame_mut().declared_constexpr.push(name);
            }
            return Ok(());
        };
        let val = self.eval(value)?;
        match &*s.target {
            // As in Triton, a value of the running kernel stays one under this annotation; where a
            // constexpr is wanted of the name, it is refused.
            Expr::Name(name) if is_constexpr_text(&text) => {
                let place = self.place(s.target.range());
                self.bind(name.id.as_str(), val, place);
                Ok(())
            }
            target => self.assign_to(target, val, value.range()),
        }
    }

    /// As `tl.device_assert`: without effect but in debug mode. Then one on constexprs is decided now.
    fn assert(&mut self, s: &ast::StmtAssert) -> Result<()> {
        let test = self.eval(&s.test)?;
        let message = match &s.msg {
            Some(m) => match self.eval(m)? {
                Val::Const(Const::Str(text)) => text,
                _ => "".into(),
            },
            None => "".into(),
        };
        match &test {
            _ if !self.options.debug => Ok(()),
            Val::Tensor(_) => {
                let cond = Operand::new(test, s.test.range());
                crate::builtins::debug::assert_that(self, &cond, &message, None, s.range())
            }
            Val::Const(c) if !c.truthy() => {
                let message = match &*message {
                    "" => "assertion failed".to_string(),
                    text => format!("assertion failed: {text}"),
                };
                let label = "false at compile time";
                Err(self.error(Id::StaticAssert, message, s.test.range(), label))
            }
            _ => Ok(()),
        }
    }

    /// Older kernels took `tl.advance` for something that moves a pointer in place.
    fn unused_window(&mut self, val: &Val, range: TextRange) -> Box<naiad_diag::Diagnostic> {
        let what = self.describe(val);
        let message = format!("this makes {what}, which nothing uses");
        let e = self.error(Id::BadCall, message, range, "the result is dropped");
        Box::new(
            (*e).help("nothing moves in place: assign it, as in `p = tl.advance(p, (0, BLOCK))`"),
        )
    }

    fn unsupported_stmt(&mut self, stmt: &Stmt) -> Box<naiad_diag::Diagnostic> {
        let (what, help) = match stmt {
            Stmt::Break(_) => (
                "`break`",
                "end the loop by its condition: `while` with a flag, or guard the body with an `if`",
            ),
            Stmt::Continue(_) => ("`continue`", "guard the rest of the body with an `if`"),
            Stmt::FunctionDef(_) => (
                "a nested function",
                "define it at module level under `@triton.jit`; it will be inlined",
            ),
            Stmt::ClassDef(_) => ("a class", "define it outside the kernel"),
            Stmt::Delete(_) => ("`del`", "values are freed after their last use by themselves"),
            Stmt::With(_) => (
                "`with`",
                "only special context managers of Triton may stand here, and Naiad supports none yet",
            ),
            Stmt::Raise(_) => {
                ("`raise`", "use `tl.static_assert` for what is known at compile time")
            }
            Stmt::Try(_) => ("`try`", "kernels have no exceptions"),
            Stmt::Import(_) | Stmt::ImportFrom(_) => ("`import`", "import at module level"),
            Stmt::Global(_) | Stmt::Nonlocal(_) => {
                ("`global` and `nonlocal`", "pass values as arguments and return them")
            }
            Stmt::Match(_) => ("`match`", "use `if` and `elif`"),
            _ => (
                "this statement",
                "kernels hold assignments, expressions, `if`, `for`, `while`, `return` and `assert`",
            ),
        };
        let e = self.error(
            Id::UnsupportedPython,
            format!("{what} is not supported in a kernel"),
            first_line(stmt),
            "",
        );
        Box::new((*e).help(help))
    }
}

/// The keyword's part of a statement that has a body: pointing at the whole body says less.
fn first_line(stmt: &Stmt) -> TextRange {
    match stmt {
        Stmt::FunctionDef(f) => f.name.range(),
        Stmt::ClassDef(c) => c.name.range(),
        other => other.range(),
    }
}
