//! Control flow: which names a loop carries, what joins after a branch, and returns in the middle.
//!
//! A `return` under a run-time `if` becomes a flag: the statements after it are compiled under
//! `if not flag`. Values that a returning branch does not have are zeros that nobody reads.

use super::stmt::Flow;
use super::{Binding, Env, Lower};
use crate::source::Result;
use crate::value::{Const, Iter, Tuple, Val, type_name};
use naiad_diag::{Diagnostic, Id, Place};
use naiad_ir::scalar::{Predicate, UnaryFn};
use naiad_ir::tile::{BuildError, TileOp};
use naiad_ir::{Block, Elem, Scalar, Shape, Type, Value};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, Stmt};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::FxHashSet;
use std::rc::Rc;
use std::sync::Arc;

/// Iterations past which an unrolled loop is refused.
const MAX_UNROLLED: i128 = 100_000;

/// What a value is made of, as it crosses the edge of a region.
#[derive(Clone)]
enum Form {
    /// Known at compile time, the same on every path.
    Fixed(Val),
    Tensor(Type),
    Tuple(Vec<Form>, Option<Arc<[String]>>),
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        match (self, other) {
            (Form::Fixed(a), Form::Fixed(b)) => a.const_eq(b) == Some(true),
            (Form::Tensor(a), Form::Tensor(b)) => a == b,
            (Form::Tuple(a, _), Form::Tuple(b, _)) => a == b,
            _ => false,
        }
    }
}

impl Form {
    fn types(&self, out: &mut Vec<Type>) {
        match self {
            Form::Fixed(_) => {}
            Form::Tensor(ty) => out.push(*ty),
            Form::Tuple(items, _) => items.iter().for_each(|f| f.types(out)),
        }
    }

    /// The value of this form, its run-time parts taken from `values` in order.
    fn rebuild(&self, values: &mut impl Iterator<Item = Value>) -> Val {
        match self {
            Form::Fixed(v) => v.clone(),
            Form::Tensor(_) => values.next().map_or(Val::NONE, Val::Tensor),
            Form::Tuple(items, names) => {
                let items = items.iter().map(|f| f.rebuild(values)).collect();
                Val::Tuple(Rc::new(Tuple { items, names: names.clone() }))
            }
        }
    }
}

/// A condition, decided now or at run time.
pub(crate) enum Cond {
    Known(bool),
    Runtime(Value),
}

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
    // ---- if -----------------------------------------------------------------------------------

    pub fn if_stmt(&mut self, s: &ast::StmtIf) -> Result<Flow> {
        self.if_chain(&s.test, &s.body, &s.elif_else_clauses)
    }

    fn if_chain(&mut self, test: &Expr, body: &[Stmt], clauses: &[ast::ElifElseClause]) -> Result<Flow> {
        let cond = self.eval(test)?;
        match self.condition(&cond, test.range())? {
            Cond::Known(true) => self.block(body),
            Cond::Known(false) => self.else_part(clauses),
            Cond::Runtime(c) => {
                self.branch(c, test.range(), false, |l| l.block(body), |l| l.else_part(clauses))
            }
        }
    }

    fn else_part(&mut self, clauses: &[ast::ElifElseClause]) -> Result<Flow> {
        match clauses {
            [] => Ok(Flow::Next),
            [first, rest @ ..] => match &first.test {
                Some(test) => self.if_chain(test, &first.body, rest),
                None => self.block(&first.body),
            },
        }
    }

    /// The statements after one that may have returned.
    pub fn rest_unless_returned(&mut self, flag: Value, val: Val, rest: &[Stmt], range: TextRange) -> Result<Flow> {
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
                Err(self.error(Id::BranchTypeMismatch, message, e.range(), "the condition is known only at run time"))
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
                    Flow::Returned(val) | Flow::Maybe { val, .. } => self.flatten(val, form, out)?,
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
        let empty = [&a, &b].iter().all(|s| self.b.func.insts(s.block).len() == 1) && yields[0].is_empty();
        let results = if empty { Vec::new() } else { self.b.ops(TileOp::If { cond, then: a.block, otherwise: b.block })? };
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
            Joined::FlagIsNotCond => Flow::Maybe { flag: self.b.unary(UnaryFn::Not, cond)?, val: returned },
            Joined::Maybe => match travelled {
                Some(flag) => Flow::Maybe { flag, val: returned },
                None => Flow::Next,
            },
        })
    }

    fn open_branch(&mut self, env: Env, body: impl FnOnce(&mut Self) -> Result<Flow>) -> Result<Branch> {
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
                    let message = format!("the function returns {x} on one path and {y} on another");
                    return Err(self.error(Id::BadReturn, message, range, "depending on this condition"));
                }
            },
        };
        let flag_travels = matches!(kind, Joined::Maybe);
        Ok(JoinedFlow { kind, form, flag_travels })
    }

    /// The names that differ after the branches, with their joint form. The frame's environment
    /// becomes what holds afterwards, apart from these.
    fn join_envs(&mut self, before: &Env, a: &Branch, b: &Branch) -> Result<Vec<(Rc<str>, Form, Place)>> {
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
            } else if self.runtime_type(&x.val).is_some() && self.runtime_type(&y.val).is_some() {
                return Err(self.branch_mismatch(&name, &x, &y, before.get(&name)));
            } else {
                let why = "its value after the `if` is not known at compile time";
                self.bind(&name, Val::Undefined(why.into()), place);
            }
        }
        Ok(out)
    }

    fn branch_mismatch(&mut self, name: &str, x: &Binding, y: &Binding, before: Option<&Binding>) -> Box<Diagnostic> {
        let (tx, ty) = (self.describe(&x.val), self.describe(&y.val));
        let message = format!("`{name}` is {tx} in one branch and {ty} in the other");
        let label = |b: &Binding, what: &str| {
            let old = before.is_some_and(|o| o.version == b.version);
            if old { format!("{what} before the `if`") } else { format!("{what} here") }
        };
        // The primary place is an assignment in a branch; the other may be the one before.
        let (first, second, t1, t2) =
            if before.is_some_and(|o| o.version == x.version) { (y, x, ty, tx) } else { (x, y, tx, ty) };
        Box::new(
            Diagnostic::new(Id::BranchTypeMismatch, message)
                .primary(first.place.clone(), label(first, &t1))
                .secondary(second.place.clone(), label(second, &t2))
                .note("the condition is known only at run time, so a variable has one type after both branches")
                .help("cast with `.to(...)`, or start with a value of the final type, such as `tl.zeros`"),
        )
    }

    // ---- loops --------------------------------------------------------------------------------

    pub fn for_stmt(&mut self, s: &ast::StmtFor) -> Result<()> {
        if let Some(first) = s.orelse.first() {
            return Err(self.error(Id::UnsupportedPython, "a loop in a kernel has no `else`", first.range(), ""));
        }
        let Expr::Name(target) = &*s.target else {
            return Err(self.error(Id::UnsupportedPython, "a loop in a kernel has one name as its variable", s.target.range(), ""));
        };
        let iter = match self.eval(&s.iter)? {
            Val::Iter(iter) => iter,
            other => {
                let what = self.describe(&other);
                let e = self.error(Id::UnsupportedPython, format!("a loop cannot run over {what}"), s.iter.range(), "");
                return Err(Box::new((*e).help("use `range`, `tl.range` or, to unroll it, `tl.static_range`")));
            }
        };
        if iter.unrolled { self.unrolled(s, target, &iter) } else { self.counted(s, target, &iter) }
    }

    fn unrolled(&mut self, s: &ast::StmtFor, target: &ast::ExprName, iter: &Iter) -> Result<()> {
        let mut bounds = [0i128; 3];
        for (out, val) in bounds.iter_mut().zip(&iter.bounds) {
            match val {
                Val::Const(c) if matches!(c, Const::Int(_) | Const::Bool(_)) => {
                    *out = if let Const::Int(i) = c { *i } else { c.truthy() as i128 };
                }
                other => {
                    let what = self.describe(other);
                    let message = "the bounds of `tl.static_range` must be constexpr integers";
                    return Err(self.error(Id::NotConstexpr, message, s.iter.range(), format!("one is {what}")));
                }
            }
        }
        let [lower, upper, step] = bounds;
        if step == 0 {
            return Err(self.error(Id::BadArgument, "the step of a range must not be 0", s.iter.range(), ""));
        }
        let count = if step > 0 { (upper - lower + step - 1) / step } else { (lower - upper - step - 1) / -step };
        if count > MAX_UNROLLED {
            let message = format!("this loop would be unrolled {count} times");
            return Err(self.error(Id::TooLarge, message, s.iter.range(), format!("at most {MAX_UNROLLED}")));
        }
        let place = self.place(target.range());
        for i in 0..count.max(0) {
            self.bind(target.id.as_str(), Val::int(lower + i * step), place.clone());
            self.frame_mut().loops += 1;
            self.block(&s.body)?;
            self.frame_mut().loops -= 1;
        }
        Ok(())
    }

    fn counted(&mut self, s: &ast::StmtFor, target: &ast::ExprName, iter: &Iter) -> Result<()> {
        let bounds = self.loop_bounds(iter, s.iter.range())?;
        let mut carried = self.carried(&s.body, None, Some(target.id.as_str()))?;
        let iv_ty = self.ty(bounds[0]);
        let body = self.b.func.new_block();
        let iv = self.b.func.add_block_param(body, iv_ty);
        let before = self.frame().env.clone();
        let back = self.b.enter(body);
        self.enter_carried(body, &carried);
        let place = self.place(target.range());
        self.bind(target.id.as_str(), Val::Tensor(iv), place);

        self.frame_mut().loops += 1;
        self.block(&s.body)?;
        self.frame_mut().loops -= 1;

        let values = self.next_values(&mut carried, &before)?;
        self.b.ops(TileOp::Yield { values })?;
        self.b.enter(back);
        self.b.loc = self.loc(TextRange::new(s.range().start(), s.iter.range().end()));
        let [lower, upper, step] = bounds;
        let inits = carried.iter().flat_map(|c| c.init.clone()).collect();
        let results = self.b.ops(TileOp::For { lower, upper, step, inits, hints: iter.hints, body })?;
        self.leave_loop(before, carried, results);
        self.undefine(target.id.as_str(), "a loop's variable has no value after the loop", target.range());
        self.undefine_locals(&s.body, "it is assigned only inside the loop");
        Ok(())
    }

    pub fn while_stmt(&mut self, s: &ast::StmtWhile) -> Result<()> {
        if let Some(first) = s.orelse.first() {
            return Err(self.error(Id::UnsupportedPython, "a loop in a kernel has no `else`", first.range(), ""));
        }
        let mut carried = self.carried(&s.body, Some(&s.test), None)?;
        let env = self.frame().env.clone();
        let head = self.b.func.new_block();
        let back = self.b.enter(head);
        self.enter_carried(head, &carried);
        let test = self.eval(&s.test)?;
        let cond = match self.condition(&test, s.test.range())? {
            Cond::Runtime(c) => c,
            Cond::Known(false) => {
                // Nothing of the loop is linked.
                self.b.enter(back);
                self.frame_mut().env = env;
                return Ok(());
            }
            Cond::Known(true) => {
                let e = self.error(Id::UnsupportedPython, "this loop never ends", s.test.range(), "always true");
                return Err(Box::new((*e).help("kernels have no `break`: let the condition be a run-time value that the body changes")));
            }
        };
        let values = self.next_values(&mut carried, &env)?;
        self.b.ops(TileOp::Condition { cond, values })?;

        let body = self.b.func.new_block();
        self.b.enter(body);
        self.enter_carried(body, &carried);
        self.frame_mut().loops += 1;
        self.block(&s.body)?;
        self.frame_mut().loops -= 1;
        let values = self.next_values(&mut carried, &env)?;
        self.b.ops(TileOp::Yield { values })?;
        self.b.enter(back);
        self.b.loc = self.loc(TextRange::new(s.range().start(), s.test.range().end()));
        let inits = carried.iter().flat_map(|c| c.init.clone()).collect();
        let results = self.b.ops(TileOp::While { inits, before: head, after: body })?;
        self.leave_loop(env, carried, results);
        self.undefine_locals(&s.body, "it is assigned only inside the loop");
        Ok(())
    }

    /// The bounds as scalars of one integer type.
    fn loop_bounds(&mut self, iter: &Iter, range: TextRange) -> Result<[Value; 3]> {
        let mut ty: Option<Scalar> = None;
        for bound in &iter.bounds {
            let this = self.runtime_type(bound).filter(|t| t.is_scalar()).and_then(|t| t.elem.scalar());
            let Some(this) = this.filter(|t| t.is_int()) else {
                let what = self.describe(bound);
                return Err(self.error(Id::TypeMismatch, "the bounds of a loop must be integers", range, format!("one is {what}")));
            };
            let this = if this.is_bool() { Scalar::I32 } else { this };
            // A literal takes the type of the others where it fits.
            let literal = matches!(bound, Val::Const(_));
            ty = Some(match ty {
                None => this,
                Some(old) if literal && this.bits() <= old.bits() => old,
                Some(old) => super::operator::int_promotion(old, this),
            });
        }
        if let Val::Const(c) = &iter.bounds[2]
            && !c.truthy()
        {
            return Err(self.error(Id::BadArgument, "the step of a range must not be 0", range, ""));
        }
        let ty = ty.unwrap_or(Scalar::I32);
        let mut out = [Value::new(0); 3];
        for (out, bound) in out.iter_mut().zip(&iter.bounds) {
            *out = match bound {
                Val::Const(c) => self.literal(c, ty)?,
                Val::Tensor(v) => self.b.cast(*v, ty)?,
                _ => self.b.int(ty, 0)?,
            };
        }
        Ok(out)
    }

    /// The variables that a loop changes, with their values so far.
    fn carried(&mut self, body: &[Stmt], test: Option<&Expr>, target: Option<&str>) -> Result<Vec<Carried>> {
        let mut out = Vec::new();
        for name in assigned_names(body, test) {
            if Some(&*name) == target {
                continue;
            }
            let Some(binding) = self.frame().env.get(&name).cloned() else { continue };
            if matches!(binding.val, Val::Undefined(_)) {
                continue;
            }
            let val = self.decay(binding.val.clone())?;
            let form = self.form(&val);
            let mut init = Vec::new();
            self.flatten(&val, &form, &mut init)?;
            out.push(Carried { name, form, init, place: binding.place.clone(), first: binding.place });
        }
        Ok(out)
    }

    /// Binds the carried names to new parameters of a loop's block.
    fn enter_carried(&mut self, block: Block, carried: &[Carried]) {
        for c in carried {
            let mut types = Vec::new();
            c.form.types(&mut types);
            let params: Vec<Value> =
                types.into_iter().map(|ty| self.b.func.add_block_param(block, ty)).collect();
            let val = c.form.rebuild(&mut params.into_iter());
            self.bind(&c.name, val, c.place.clone());
        }
    }

    /// The carried names' values at the end of a block, which must still have their forms.
    fn next_values(&mut self, carried: &mut [Carried], before: &Env) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        for c in carried {
            let Some(binding) = self.frame().env.get(&c.name).cloned() else { continue };
            let val = self.decay(binding.val.clone())?;
            if self.form(&val) != c.form {
                return Err(self.loop_mismatch(c, &binding, before));
            }
            c.place = binding.place;
            self.flatten(&val, &c.form.clone(), &mut out)?;
        }
        Ok(out)
    }

    fn loop_mismatch(&mut self, c: &Carried, new: &Binding, before: &Env) -> Box<Diagnostic> {
        let name = &c.name;
        if let Val::Undefined(why) = &new.val {
            return Box::new(
                Diagnostic::new(Id::LoopTypeChange, format!("`{name}` has no value at the end of the loop's body: {why}"))
                    .primary(new.place.clone(), "assigned here")
                    .secondary(c.first.clone(), "carried through the loop from here"),
            );
        }
        let old = before.get(name).map_or("another type".to_string(), |b| self.describe(&b.val));
        let now = self.describe(&new.val);
        let mut d = Diagnostic::new(Id::LoopTypeChange, format!("`{name}` is {old} before the loop and {now} after an iteration"))
            .primary(new.place.clone(), format!("{now} here"))
            .secondary(c.first.clone(), format!("{old} here"))
            .note("a variable that a loop changes keeps one type through all iterations");
        let old_ty = before.get(name).and_then(|b| self.runtime_type(&b.val));
        let new_ty = self.runtime_type(&new.val);
        d = match (old_ty, new_ty) {
            (Some(old), Some(new)) if old.shape == new.shape => match new.elem {
                Elem::Scalar(s) => d.help(format!("start with that type, for example by `.to(tl.{0})` or a `tl.{0}` constant, or cast back at the end of the body", s.triton_name())),
                Elem::Pointer(_) => d,
            },
            (Some(old), Some(new)) if old.is_scalar() => match new.elem.scalar() {
                Some(s) => d.help(format!("start with a tile: `{name} = tl.zeros({}, dtype=tl.{})`", new.shape, s.triton_name())),
                None => d,
            },
            _ => d,
        };
        Box::new(d)
    }

    fn leave_loop(&mut self, before: Env, carried: Vec<Carried>, results: Vec<Value>) {
        self.frame_mut().env = before;
        let mut results = results.into_iter();
        for c in carried {
            let val = c.form.rebuild(&mut results);
            self.bind(&c.name, val, c.place);
        }
    }

    /// Gives names that a loop's body defined a value that explains itself.
    fn undefine_locals(&mut self, body: &[Stmt], why: &str) {
        for name in assigned_names(body, None) {
            if !self.frame().env.contains_key(&name) {
                let range = body.first().map_or(TextRange::default(), |s| s.range());
                self.undefine(&name, why, range);
            }
        }
    }

    fn undefine(&mut self, name: &str, why: &str, range: TextRange) {
        let place = self.place(range);
        self.bind(name, Val::Undefined(why.into()), place);
    }

    // ---- forms --------------------------------------------------------------------------------

    /// The type that the value has, or would have as one of the running kernel.
    pub fn runtime_type(&self, val: &Val) -> Option<Type> {
        match val {
            Val::Tensor(v) => Some(self.ty(*v)),
            Val::Const(c) => c.natural_type().map(Type::scalar),
            _ => None,
        }
    }

    fn form(&self, val: &Val) -> Form {
        match val {
            Val::Tensor(v) => Form::Tensor(self.ty(*v)),
            Val::Tuple(t) => Form::Tuple(t.items.iter().map(|v| self.form(v)).collect(), t.names.clone()),
            other => Form::Fixed(other.clone()),
        }
    }

    /// The form that both values can take; constexprs that differ become run-time scalars.
    fn join(&self, a: &Val, b: &Val) -> Option<Form> {
        if let (Val::Tuple(x), Val::Tuple(y)) = (a, b) {
            if x.items.len() != y.items.len() {
                return None;
            }
            let items = x.items.iter().zip(&y.items).map(|(x, y)| self.join(x, y));
            return Some(Form::Tuple(items.collect::<Option<Vec<_>>>()?, x.names.clone()));
        }
        let (ta, tb) = (self.runtime_type(a), self.runtime_type(b));
        if a.const_eq(b) == Some(true) && ta == tb {
            return Some(Form::Fixed(a.clone()));
        }
        match (ta, tb) {
            (Some(x), Some(y)) if x == y => Some(Form::Tensor(x)),
            _ => None,
        }
    }

    fn flatten(&mut self, val: &Val, form: &Form, out: &mut Vec<Value>) -> Result<()> {
        match (form, val) {
            (Form::Fixed(_), _) => Ok(()),
            (Form::Tensor(_), _) => {
                let value = self.to_tensor(val)?;
                out.push(value.ok_or_else(|| BuildError("a value without a run-time form".to_string()))?);
                Ok(())
            }
            (Form::Tuple(forms, _), Val::Tuple(t)) => {
                for (form, item) in forms.iter().zip(&t.items) {
                    self.flatten(item, form, out)?;
                }
                Ok(())
            }
            (Form::Tuple(..), _) => Err(BuildError("no tuple where one was".to_string()).into()),
        }
    }

    /// Values for a path on which nobody reads them.
    fn zeros(&mut self, form: &Form, out: &mut Vec<Value>) -> Result<()> {
        let mut types = Vec::new();
        form.types(&mut types);
        for ty in types {
            out.push(self.b.full(ty, 0)?);
        }
        Ok(())
    }

    // ---- conditions ---------------------------------------------------------------------------

    /// The truth of a value: of a compile-time one by Python's rules, of a run-time scalar by
    /// comparing it with 0.
    pub fn condition(&mut self, val: &Val, range: TextRange) -> Result<Cond> {
        let value = match val {
            Val::Tensor(v) => *v,
            Val::Const(c) => return Ok(Cond::Known(c.truthy())),
            Val::Tuple(t) => return Ok(Cond::Known(!t.items.is_empty())),
            _ => return Ok(Cond::Known(true)),
        };
        let ty = self.ty(value);
        if ty.shape.numel() != 1 {
            let what = type_name(ty);
            let e = self.error(
                Id::AmbiguousCondition,
                "Boolean value of Tensor with more than one value is ambiguous: a condition must be a scalar",
                range,
                format!("this is a {what}"),
            );
            return Err(Box::new((*e).help("choose lane by lane with `tl.where(condition, a, b)`, or reduce it with `tl.max` or `tl.sum` first")));
        }
        let mut scalar = value;
        if !ty.is_scalar() {
            scalar = self.b.op(TileOp::Reshape { src: value, shape: Shape::SCALAR })?;
        }
        if ty.is_pointer() {
            scalar = self.b.op(TileOp::Bitcast { src: scalar, to: Elem::Scalar(Scalar::I64) })?;
        }
        Ok(Cond::Runtime(self.nonzero(scalar)?))
    }

    /// Lane by lane `x != 0`; of i1 the value itself.
    pub fn nonzero(&mut self, x: Value) -> Result<Value> {
        let ty = self.ty(x);
        if ty.elem == Elem::Scalar(Scalar::I1) {
            return Ok(x);
        }
        let zero = self.b.full(ty, 0)?;
        Ok(self.b.compare(Predicate::Ne, x, zero)?)
    }
}

/// A variable on its way through a loop.
struct Carried {
    name: Rc<str>,
    form: Form,
    init: Vec<Value>,
    /// Last assignment seen.
    place: Place,
    /// The assignment before the loop.
    first: Place,
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

/// The names that statements (and an expression) may assign, in the order of their first assignment.
fn assigned_names(body: &[Stmt], test: Option<&Expr>) -> Vec<Rc<str>> {
    #[derive(Default)]
    struct Stores {
        seen: FxHashSet<Rc<str>>,
        names: Vec<Rc<str>>,
    }
    impl<'a> Visitor<'a> for Stores {
        fn visit_expr(&mut self, e: &'a Expr) {
            if let Expr::Name(name) = e
                && name.ctx == ExprContext::Store
            {
                let name: Rc<str> = name.id.as_str().into();
                if self.seen.insert(name.clone()) {
                    self.names.push(name);
                }
            }
            visitor::walk_expr(self, e);
        }
    }
    let mut stores = Stores::default();
    if let Some(test) = test {
        stores.visit_expr(test);
    }
    for stmt in body {
        stores.visit_stmt(stmt);
    }
    stores.names
}
