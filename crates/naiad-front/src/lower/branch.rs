//! `if`, and returns in the middle of a function.
//!
//! A `return` under a run-time `if` becomes a flag: the statements after it are compiled under
//! `if not flag`. Values that a returning branch does not have are zeros that nobody reads.

use super::form::{Cond, Form};
use super::stmt::Flow;
use super::{Binding, Env, Lower};
use crate::source::Result;
use crate::value::Val;
use naiad_diag::{Diagnostic, Id, Place};
use naiad_ir::scalar::UnaryFn;
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Scalar, Value};
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::rc::Rc;

/// One way through an `if`, compiled and still open at its end.
struct Branch {
    block: Block,
    env: Env,
    flow: Flow,
}

impl Branch {
    fn is_dead(&self) -> bool {
        matches!(self.flow, Flow::Returned(_))
    }
}

impl Lower<'_> {
    pub fn if_stmt(&mut self, s: &ast::StmtIf) -> Result<Flow> {
        self.if_chain(&s.test, &s.body, &s.elif_else_clauses)
    }

    fn if_chain(
        &mut self,
        test: &Expr,
        body: &[Stmt],
        clauses: &[ast::ElifElseClause],
    ) -> Result<Flow> {
        let cond = self.eval(test)?;
        match self.condition(&cond, test.range())? {
            Cond::Known(true) => self.chosen(|l| l.block(body)),
            Cond::Known(false) => self.chosen(|l| l.else_part(clauses)),
            Cond::Runtime(c) => {
                self.branch(c, test.range(), false, |l| l.block(body), |l| l.else_part(clauses))
            }
        }
    }

    /// The side of an `if` that a constexpr chose. What follows the `if` reads its variables, also
    /// behind a return in it.
    fn chosen(&mut self, side: impl FnOnce(&mut Self) -> Result<Flow>) -> Result<Flow> {
        self.frame_mut().branches += 1;
        let flow = side(self)?;
        self.frame_mut().branches -= 1;
        Ok(flow)
    }

    fn else_part(&mut self, clauses: &[ast::ElifElseClause]) -> Result<Flow> {
        match clauses {
            [] => Ok(Flow::Next),
            [first, rest @ ..] => match &first.test {
                Some(test) => stacker::maybe_grow(128 << 10, 4 << 20, || {
                    self.if_chain(test, &first.body, rest)
                }),
                None => self.block(&first.body),
            },
        }
    }

    /// The statements after one that may have returned.
    pub fn rest_unless_returned(
        &mut self,
        flag: Value,
        val: Val,
        rest: &[Stmt],
        range: TextRange,
    ) -> Result<Flow> {
        // At the function's own level nothing follows these statements, so no variable outlives them.
        let last = self.frame().branches == 0;
        self.branch(flag, range, last, |_| Ok(Flow::Returned(val)), |l| l.block(rest))
    }

    /// `a if c else b` with a run-time `c`.
    pub fn conditional(&mut self, c: Value, e: &ast::ExprIf) -> Result<Val> {
        const NAME: &str = "the conditional expression";
        self.branch(
            c,
            e.test.range(),
            false,
            |l| l.bind_eval(NAME, &e.body),
            |l| l.bind_eval(NAME, &e.orelse),
        )?;
        match self.frame_mut().env.remove(NAME) {
            Some(Binding { val: Val::Undefined(_), .. }) | None => {
                let message = "both values of a conditional expression must exist at run time";
                Err(self.error(
                    Id::BranchTypeMismatch,
                    message,
                    e.range(),
                    "the condition is known only at run time",
                ))
            }
            Some(binding) => Ok(binding.val),
        }
    }

    fn bind_eval(&mut self, name: &str, e: &Expr) -> Result<Flow> {
        let val = self.eval(e)?;
        let place = self.place(e.range());
        self.bind(name, val, place);
        Ok(Flow::Next)
    }

    /// Compiles both ways and joins them. `last` says that no variable is read afterwards.
    fn branch(
        &mut self,
        cond: Value,
        range: TextRange,
        last: bool,
        then: impl FnOnce(&mut Self) -> Result<Flow>,
        otherwise: impl FnOnce(&mut Self) -> Result<Flow>,
    ) -> Result<Flow> {
        let before = self.frame().env.clone();
        let back = self.b.block();
        let a = self.open_branch(before.clone(), then)?;
        let b = self.open_branch(before.clone(), otherwise)?;
        self.b.enter(back);
        self.b.loc = self.loc(range);

        let joined = self.join_flows(&a, &b, range)?;
        let unread = last || (a.is_dead() && b.is_dead());
        let names = if unread { Vec::new() } else { self.join_envs(&before, &a, &b)? };
        if unread {
            self.frame_mut().env = before;
        }

        // Both branches yield: the flag where it has to travel, the returned value, the variables.
        let mut yields = [Vec::new(), Vec::new()];
        for (side, branch) in [&a, &b].into_iter().enumerate() {
            self.b.enter(branch.block);
            let out = &mut yields[side];
            if joined.flag_travels {
                out.push(self.flag_of(&branch.flow)?);
            }
            if let Some(form) = &joined.form {
                match &branch.flow {
                    Flow::Returned(val) | Flow::Maybe { val, .. } => {
                        self.flatten(val, form, out)?
                    }
                    Flow::Next => self.zeros(form, out)?,
                }
            }
            for (name, form, _) in &names {
                match branch.env.get(name) {
                    Some(binding) if !branch.is_dead() => self.flatten(&binding.val, form, out)?,
                    _ => self.zeros(form, out)?,
                }
            }
            self.b.ops(TileOp::Yield { values: out.clone() })?;
        }
        self.b.enter(back);
        let empty =
            [&a, &b].iter().all(|s| self.b.func.insts(s.block).len() == 1) && yields[0].is_empty();
        let results = if empty {
            Vec::new()
        } else {
            self.b.ops(TileOp::If { cond, then: a.block, otherwise: b.block })?
        };
        let mut results = results.into_iter();

        let travelled = if joined.flag_travels { results.next() } else { None };
        let returned = joined.form.as_ref().map_or(Val::NONE, |f| f.rebuild(&mut results));
        // Undefined names were put into the environment by join_envs; the rest joins here.
        for (name, form, place) in names {
            let val = form.rebuild(&mut results);
            self.bind(&name, val, place);
        }
        Ok(match joined.kind {
            Joined::Next => Flow::Next,
            Joined::Returned => Flow::Returned(returned),
            Joined::FlagIsCond => Flow::Maybe { flag: cond, val: returned },
            Joined::FlagIsNotCond => {
                Flow::Maybe { flag: self.b.unary(UnaryFn::Not, cond)?, val: returned }
            }
            Joined::Maybe => match travelled {
                Some(flag) => Flow::Maybe { flag, val: returned },
                None => Flow::Next,
            },
        })
    }

    fn open_branch(
        &mut self,
        env: Env,
        body: impl FnOnce(&mut Self) -> Result<Flow>,
    ) -> Result<Branch> {
        let block = self.b.func.new_block();
        self.b.enter(block);
        self.frame_mut().env = env;
        self.frame_mut().branches += 1;
        let flow = body(self)?;
        self.frame_mut().branches -= 1;
        Ok(Branch { block, env: std::mem::take(&mut self.frame_mut().env), flow })
    }

    fn flag_of(&mut self, flow: &Flow) -> Result<Value> {
        match flow {
            Flow::Next => Ok(self.b.int(Scalar::I1, 0)?),
            Flow::Returned(_) => Ok(self.b.int(Scalar::I1, 1)?),
            Flow::Maybe { flag, .. } => Ok(*flag),
        }
    }

    fn join_flows(&mut self, a: &Branch, b: &Branch, range: TextRange) -> Result<JoinedFlow> {
        let kind = match (&a.flow, &b.flow) {
            (Flow::Next, Flow::Next) => Joined::Next,
            (Flow::Returned(_), Flow::Returned(_)) => Joined::Returned,
            (Flow::Returned(_), Flow::Next) => Joined::FlagIsCond,
            (Flow::Next, Flow::Returned(_)) => Joined::FlagIsNotCond,
            _ => Joined::Maybe,
        };
        let value = |flow: &Flow| match flow {
            Flow::Next => None,
            Flow::Returned(val) | Flow::Maybe { val, .. } => Some(val.clone()),
        };
        let form = match (value(&a.flow), value(&b.flow)) {
            (None, None) => None,
            (Some(v), None) | (None, Some(v)) => Some(self.form(&v)),
            (Some(x), Some(y)) => match self.join(&x, &y) {
                Some(form) => Some(form),
                None => {
                    let (x, y) = (self.describe(&x), self.describe(&y));
                    let message =
                        format!("the function returns {x} on one path and {y} on another");
                    return Err(self.error(
                        Id::BadReturn,
                        message,
                        range,
                        "depending on this condition",
                    ));
                }
            },
        };
        let flag_travels = matches!(kind, Joined::Maybe);
        Ok(JoinedFlow { kind, form, flag_travels })
    }

    /// The names that differ after the branches, with their joint form. The frame's environment
    /// becomes what holds afterwards, apart from these.
    fn join_envs(
        &mut self,
        before: &Env,
        a: &Branch,
        b: &Branch,
    ) -> Result<Vec<(Rc<str>, Form, Place)>> {
        let changed = |env: &Env, name: &Rc<str>| {
            env.get(name).map(|b| b.version) != before.get(name).map(|b| b.version)
        };
        let mut names: Vec<Rc<str>> = a.env.keys().chain(b.env.keys()).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|n| changed(&a.env, n) || changed(&b.env, n));

        self.frame_mut().env = before.clone();
        let mut out = Vec::new();
        for name in names {
            let live = |branch: &Branch| {
                let binding = branch.env.get(&name).filter(|b| !matches!(b.val, Val::Undefined(_)));
                (!branch.is_dead()).then_some(binding.cloned())
            };
            let (x, y) = match (live(a), live(b)) {
                (Some(Some(x)), Some(Some(y))) => (x, y),
                (Some(Some(x)), None) | (None, Some(Some(x))) => {
                    let form = self.form(&x.val);
                    out.push((name, form, x.place));
                    continue;
                }
                (Some(x), Some(y)) => {
                    if let Some(only) = x.or(y) {
                        let why = "it is assigned in one branch of an `if` only";
                        self.bind(&name, Val::Undefined(why.into()), only.place);
                    }
                    continue;
                }
                _ => continue,
            };
            let place = if changed(&a.env, &name) { x.place.clone() } else { y.place.clone() };
            if let Some(form) = self.join(&x.val, &y.val) {
                out.push((name, form, place));
            } else if self.is_run_time(&x.val) && self.is_run_time(&y.val) {
                return Err(self.branch_mismatch(&name, &x, &y, before.get(&name)));
            } else {
                let why = "its value after the `if` is not known at compile time";
                self.bind(&name, Val::Undefined(why.into()), place);
            }
        }
        Ok(out)
    }

    fn branch_mismatch(
        &mut self,
        name: &str,
        x: &Binding,
        y: &Binding,
        before: Option<&Binding>,
    ) -> Box<Diagnostic> {
        let (tx, ty) = (self.describe(&x.val), self.describe(&y.val));
        let message = format!("`{name}` is {tx} in one branch and {ty} in the other");
        let label = |b: &Binding, what: &str| {
            let old = before.is_some_and(|o| o.version == b.version);
            if old { format!("{what} before the `if`") } else { format!("{what} here") }
        };
        // The primary place is an assignment in a branch; the other may be the one before.
        let (first, second, t1, t2) = if before.is_some_and(|o| o.version == x.version) {
            (y, x, ty, tx)
        } else {
            (x, y, tx, ty)
        };
        Box::new(
            Diagnostic::new(Id::BranchTypeMismatch, message)
                .primary(first.place.clone(), label(first, &t1))
                .secondary(second.place.clone(), label(second, &t2))
                .note("the condition is known only at run time, so a variable has one type after both branches")
                .help("cast with `.to(...)`, or start with a value of the final type, such as `tl.zeros`"),
        )
    }
}

struct JoinedFlow {
    kind: Joined,
    form: Option<Form>,
    /// Whether the branches must yield the flag, since the condition does not tell it.
    flag_travels: bool,
}

enum Joined {
    Next,
    Returned,
    FlagIsCond,
    FlagIsNotCond,
    Maybe,
}
