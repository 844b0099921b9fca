//! Loops: which names one carries, and that their types stay.

use super::form::{Cond, Form};
use super::{Binding, Env, Lower};
use crate::source::Result;
use crate::value::{Const, Iter, Val};
use naiad_diag::{Diagnostic, Id, Place};
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Elem, Scalar, Value};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{self as ast, Expr, ExprContext, Stmt};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Iterations past which an unrolled loop is refused.
const MAX_UNROLLED: i128 = 100_000;

impl Lower<'_> {
    pub fn for_stmt(&mut self, s: &ast::StmtFor) -> Result<()> {
        if let Some(first) = s.orelse.first() {
            return Err(self.error(
                Id::UnsupportedPython,
                "a loop in a kernel has no `else`",
                first.range(),
                "",
            ));
        }
        let Expr::Name(target) = &*s.target else {
            return Err(self.error(
                Id::UnsupportedPython,
                "a loop in a kernel has one name as its variable",
                s.target.range(),
                "",
            ));
        };
        let iter = match self.eval(&s.iter)? {
            Val::Iter(iter) => iter,
            other => {
                let what = self.describe(&other);
                let e = self.error(
                    Id::TypeMismatch,
                    format!("a loop cannot run over {what}"),
                    s.iter.range(),
                    "",
                );
                return Err(Box::new(
                    (*e).help("use `range`, `tl.range` or, to unroll it, `tl.static_range`"),
                ));
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
                    return Err(self.error(
                        Id::NotConstexpr,
                        message,
                        s.iter.range(),
                        format!("one is {what}"),
                    ));
                }
            }
        }
        let [lower, upper, step] = bounds;
        if step == 0 {
            return Err(self.error(
                Id::BadArgument,
                "the step of a range must not be 0",
                s.iter.range(),
                "",
            ));
        }
        // Iterations of an unrolled loop; far too many where the bounds overflow.
        let span = if step > 0 { upper.checked_sub(lower) } else { lower.checked_sub(upper) };
        let count = span.map_or(i128::MAX, |span| {
            let step = step.unsigned_abs().min(i128::MAX as u128) as i128;
            if span <= 0 { 0 } else { (span - 1) / step + 1 }
        });
        if count > MAX_UNROLLED {
            let message = format!("this loop would be unrolled {count} times");
            return Err(self.error(
                Id::TooLarge,
                message,
                s.iter.range(),
                format!("at most {MAX_UNROLLED}"),
            ));
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
        let results =
            self.b.ops(TileOp::For { lower, upper, step, inits, hints: iter.hints, body })?;
        self.leave_loop(before, carried, results);
        self.undefine(
            target.id.as_str(),
            "a loop's variable has no value after the loop",
            target.range(),
        );
        self.undefine_locals(&s.body, "it is assigned only inside the loop");
        Ok(())
    }

    pub fn while_stmt(&mut self, s: &ast::StmtWhile) -> Result<()> {
        if let Some(first) = s.orelse.first() {
            return Err(self.error(
                Id::UnsupportedPython,
                "a loop in a kernel has no `else`",
                first.range(),
                "",
            ));
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
                let e = self.error(
                    Id::UnsupportedPython,
                    "this loop never ends",
                    s.test.range(),
                    "always true",
                );
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
            let this =
                self.runtime_type(bound).filter(|t| t.is_scalar()).and_then(|t| t.elem.scalar());
            let Some(this) = this.filter(|t| t.is_int()) else {
                let what = self.describe(bound);
                return Err(self.error(
                    Id::TypeMismatch,
                    "the bounds of a loop must be integers",
                    range,
                    format!("one is {what}"),
                ));
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
            return Err(self.error(
                Id::BadArgument,
                "the step of a range must not be 0",
                range,
                "",
            ));
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
    fn carried(
        &mut self,
        body: &[Stmt],
        test: Option<&Expr>,
        target: Option<&str>,
    ) -> Result<Vec<Carried>> {
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
            out.push(Carried {
                name,
                form,
                init,
                place: binding.place.clone(),
                first: binding.place,
            });
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
                Diagnostic::new(
                    Id::LoopTypeChange,
                    format!("`{name}` has no value at the end of the loop's body: {why}"),
                )
                .primary(new.place.clone(), "assigned here")
                .secondary(c.first.clone(), "carried through the loop from here"),
            );
        }
        let old = before.get(name).map_or("another type".to_string(), |b| self.describe(&b.val));
        let now = self.describe(&new.val);
        let mut d = Diagnostic::new(
            Id::LoopTypeChange,
            format!("`{name}` is {old} before the loop and {now} after an iteration"),
        )
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
