//! What the lanes that a mask turns off hold where lanes meet.
//!
//! ```text
//! x = load(p, mask=cols < n, other=0)      where cols >= n: 0
//! d = x - mean                             ... a number that only a run can tell
//! tl.sum(d * d)                            ... and it is added to the others
//! ```
//!
//! For each bound of a mask a value is followed: what it is in lanes that the bound turns off. That may be
//! a known number, or one that was shifted by something of the row's, its mean say; of all else nothing is
//! said. Where lanes meet, a number that the function does not leave data unchanged by is reported.

use super::Lint;
use super::masks::{Bound, axis_behind, bounds};
use crate::canonical::uniform_constant;
use naiad_diag::text::{argument, call, fill_of, mask_of, names};
use naiad_diag::{Diagnostic, Id, Severity};
use naiad_ir::function::Def;
use naiad_ir::scalar::{BinaryFn, UnaryFn, cast_bits, show};
use naiad_ir::tile::{Constant, TileOp, one_function};
use naiad_ir::{Block, Inst, OpInfo, Scalar, Value};
use smallvec::SmallVec;

/// What a value is in the lanes that a bound turns off.
#[derive(Clone, Debug)]
pub struct Fill {
    bound: Bound,
    /// The number, where it is known. Otherwise it is another number for each row, by which a known one
    /// was shifted.
    value: Option<Constant>,
    /// It was left undefined by a load without `other`.
    undefined: bool,
    /// The load, or the op that made a mask a number.
    source: Inst,
    /// Arithmetic has been at it since.
    computed: bool,
}

/// What is known of a value.
#[derive(Clone, Default, Debug)]
pub struct Known {
    fills: Vec<Fill>,
    /// It is owed to memory.
    data: bool,
    /// Axes along which it is the same, as bits.
    uniform: u32,
    /// It is this number in every lane.
    constant: Option<Constant>,
    /// It is a sum of as many lanes, of which a mask had turned some off.
    summed: Option<usize>,
}

pub struct Padding<'l, 'f> {
    lint: &'l mut Lint<'f>,
    known: Vec<Known>,
    /// Whether a value is made from what changes in a loop.
    changes: Vec<bool>,
    /// Loads of which it was said that they leave lanes undefined: once is enough.
    said: Vec<Inst>,
}

pub fn check(lint: &mut Lint<'_>) {
    let n = lint.func.num_values();
    let mut walk = Padding {
        lint,
        known: vec![Known::default(); n],
        changes: vec![false; n],
        said: Vec::new(),
    };
    for &param in walk.lint.func.params() {
        walk.known[param.index()].uniform = u32::MAX;
    }
    walk.block(walk.lint.func.entry());
}

/// Numbers beyond this are put in by hand so that a maximum, or an exponential, passes them by.
const HUGE: f64 = 1e4;

fn is_huge(c: Constant) -> bool {
    c.ty.is_float() && c.as_f64().abs() >= HUGE
}

impl Padding<'_, '_> {
    fn block(&mut self, block: Block) {
        let func = self.lint.func;
        for &inst in func.insts(block) {
            let op = func.op(inst);
            let mut changes = false;
            op.each_value(&mut |v| changes |= self.changes[v.index()]);
            match op {
                TileOp::For { body, .. } => {
                    for &param in func.block_params(*body) {
                        self.changes[param.index()] = true;
                        // What comes round is taken for data, unless it is a number.
                        let is_scalar = func.ty(param).is_scalar();
                        let uniform = if is_scalar { u32::MAX } else { 0 };
                        self.known[param.index()] =
                            Known { data: !is_scalar, uniform, ..Known::default() };
                    }
                    self.block(*body);
                    self.recurrences(*body);
                }
                // What comes round these is taken for data.
                TileOp::While { before, after, .. } => {
                    for block in [before, after] {
                        for &param in func.block_params(*block) {
                            self.changes[param.index()] = true;
                            self.known[param.index()].data = true;
                        }
                        self.block(*block);
                    }
                }
                TileOp::If { then, otherwise, .. } => {
                    self.block(*then);
                    self.block(*otherwise);
                }
                _ => {}
            }
            let known = self.result(inst, op);
            for &result in func.results(inst) {
                self.known[result.index()] = known.clone();
                self.changes[result.index()] = changes;
            }
        }
    }

    fn result(&mut self, inst: Inst, op: &TileOp) -> Known {
        let func = self.lint.func;
        let Some(&result) = func.results(inst).first() else { return Known::default() };
        let ty = func.ty(result);
        let mut data = false;
        op.each_value(&mut |v| data |= self.known[v.index()].data);
        let uniform = self.uniform(op, result);
        let mut summed = None;
        let fills = match op {
            TileOp::Load { mask, other, .. } => {
                data = true;
                mask.map_or(Vec::new(), |mask| self.loaded(inst, mask, *other, ty.elem.scalar()))
            }
            TileOp::AtomicRmw { .. } | TileOp::AtomicCas { .. } | TileOp::AtomicLoad { .. } => {
                data = true;
                Vec::new()
            }
            TileOp::Reduce { inputs, axis, body } => {
                summed = self.reduced(inst, inputs, *axis, *body);
                self.left(inputs, *axis, *body)
            }
            TileOp::Dot { a, b, .. } => {
                data = true;
                self.multiplied(inst, *a, *b);
                Vec::new()
            }
            TileOp::Select { cond, yes, no } => self.selected(*cond, *yes, *no),
            TileOp::Compare { .. } | TileOp::Binary { f: BinaryFn::And, .. }
                if ty.elem.scalar() == Some(Scalar::I1) =>
            {
                self.masked(inst, op, result)
            }
            op if axis_behind(func, op, ty.shape).is_some() => {
                match axis_behind(func, op, ty.shape) {
                    Some((src, to)) => {
                        let fills = self.known[src.index()].fills.clone().into_iter();
                        let moved =
                            |fill: Fill| Some(Fill { bound: fill.bound.moved(&to)?, ..fill });
                        fills.filter_map(moved).collect()
                    }
                    None => Vec::new(),
                }
            }
            op if op.is_lanewise() && ty.elem.scalar().is_some() => {
                match op {
                    TileOp::Cast { src, .. } => summed = self.known[src.index()].summed,
                    TileOp::Binary { f: BinaryFn::Div | BinaryFn::DivRn, a, b } => {
                        self.divided(inst, *a, *b);
                    }
                    _ => {}
                }
                self.lanewise(op)
            }
            TileOp::For { .. } | TileOp::While { .. } | TileOp::If { .. } => {
                data = true;
                Vec::new()
            }
            _ => Vec::new(),
        };
        let constant = self.constant(op, result);
        Known { fills, data, uniform, constant, summed }
    }

    /// What rows that hold nothing but padding come to.
    fn left(&self, inputs: &[Value], axis: usize, body: Block) -> Vec<Fill> {
        let (&[input], Some(f)) = (inputs, one_function(self.lint.func, body)) else {
            return Vec::new();
        };
        let past = |d: usize| Some(if d > axis { d - 1 } else { d });
        let fills = self.known[input.index()].fills.clone().into_iter();
        fills
            .filter(|fill| !fill.bound.varies(axis))
            .filter_map(|fill| {
                let same = fill.value.filter(|&c| {
                    is_zero(c) || !matches!(f, BinaryFn::Add | BinaryFn::Mul | BinaryFn::Xor)
                });
                let bound = fill.bound.moved(past)?;
                same.map(|_| Fill { bound, value: same, computed: true, ..fill })
            })
            .collect()
    }

    fn constant(&self, op: &TileOp, result: Value) -> Option<Constant> {
        let func = self.lint.func;
        if let TileOp::Const { value } = op {
            return Some(*value);
        }
        if let Some((src, _)) = axis_behind(func, op, func.ty(result).shape) {
            return self.known[src.index()].constant;
        }
        let mut all: Option<SmallVec<[Constant; 3]>> = Some(SmallVec::new());
        op.each_value(&mut |v| {
            let known = self.known[v.index()].constant;
            all = all.take().zip(known).map(|(mut all, c)| {
                all.push(c);
                all
            });
        });
        evaluated(op, &all?)
    }

    fn uniform(&self, op: &TileOp, result: Value) -> u32 {
        let func = self.lint.func;
        let of = |v: &Value| self.known[v.index()].uniform;
        let shape = func.ty(result).shape;
        if shape.is_scalar() {
            return u32::MAX;
        }
        let ones = (0..shape.rank()).filter(|&d| shape.dim(d) == 1).fold(0, |a, d| a | 1 << d);
        let found = match op {
            TileOp::Splat { .. } => u32::MAX,
            TileOp::Broadcast { src, .. } => {
                let from = func.ty(*src).shape;
                let grown = (0..shape.rank()).filter(|&d| from.dim(d) != shape.dim(d));
                grown.fold(0, |a, d| a | 1 << d)
                    | of(src)
                        & !(0..shape.rank())
                            .filter(|&d| from.dim(d) == 1)
                            .fold(0, |a, d| a | 1 << d)
            }
            TileOp::Reduce { inputs, axis, .. } => {
                let all = inputs.iter().fold(u32::MAX, |a, v| a & of(v));
                let low = (1u32 << axis) - 1;
                all & low | all >> 1 & !low
            }
            op => match axis_behind(func, op, shape) {
                Some((src, to)) => (0..func.ty(src).shape.rank())
                    .filter(|&d| of(&src) >> d & 1 != 0)
                    .filter_map(to)
                    .fold(0, |a, d| a | 1 << d),
                None if op.is_lanewise() => {
                    let mut all = u32::MAX;
                    op.each_value(&mut |v| all &= of(&v));
                    all
                }
                None => 0,
            },
        };
        found | ones
    }

    fn loaded(
        &self,
        inst: Inst,
        mask: Value,
        other: Option<Value>,
        ty: Option<Scalar>,
    ) -> Vec<Fill> {
        let value = match other {
            // What has a name may be another number in another launch.
            Some(other) if self.is_literal(inst) => self.known[other.index()].constant,
            Some(_) => None,
            None => ty.map(|ty| Constant { ty, bits: 0 }),
        };
        if value.is_none() {
            return Vec::new();
        }
        let undefined = other.is_none();
        bounds(self.lint.func, mask)
            .into_iter()
            .filter(|bound| self.is_index(bound))
            .map(|bound| Fill { bound, value, undefined, source: inst, computed: false })
            .collect()
    }

    /// Whether a load's `other` is written out.
    fn is_literal(&self, load: Inst) -> bool {
        let Some(text) = self.lint.text(load) else { return true };
        let Some((_, args)) = call(&text) else { return false };
        let other = argument(&args, "other", 2);
        // Padding of a block pointer's is.
        other.is_none_or(|text| names(text).all(|name| ["float", "tl", "float32"].contains(&name)))
    }

    /// Whether a bound is of indices: one made from data chooses lanes by what they hold, and what it
    /// turns off is no padding.
    fn is_index(&self, bound: &Bound) -> bool {
        let made_of_data =
            |v: Value| self.known[v.index()].data && !self.lint.func.ty(v).is_scalar();
        !bound.is_scalar() && !bound.values().into_iter().any(made_of_data)
    }

    /// `where(mask, x, c)`: lanes that the mask turns off hold `c` from here on.
    fn selected(&self, cond: Value, yes: Value, no: Value) -> Vec<Fill> {
        let conds = bounds(self.lint.func, cond);
        let fills = self.known[yes.index()].fills.clone().into_iter();
        let value = self.known[no.index()].constant;
        fills
            .filter_map(|fill| {
                if conds.contains(&fill.bound) {
                    let undefined = false;
                    return value.map(|v| Fill {
                        value: Some(v),
                        undefined,
                        computed: false,
                        ..fill
                    });
                }
                // Another condition along the same axis may turn off the same lanes.
                (!conds.iter().any(|c| c.meets(&fill.bound))).then_some(fill)
            })
            .collect()
    }

    /// A mask is false where it turns lanes off.
    fn masked(&self, inst: Inst, op: &TileOp, mask: Value) -> Vec<Fill> {
        let value = Some(Constant::bool(false));
        let own = bounds(self.lint.func, mask).into_iter().filter(|bound| self.is_index(bound));
        let mut fills: Vec<Fill> = own
            .map(|bound| Fill { bound, value, undefined: false, source: inst, computed: false })
            .collect();
        for fill in self.lanewise(op) {
            if fills.iter().all(|own| own.bound != fill.bound) {
                fills.push(fill);
            }
        }
        fills
    }

    /// An op on lanes, bound by bound.
    fn lanewise(&self, op: &TileOp) -> Vec<Fill> {
        let mut operands: SmallVec<[Value; 3]> = SmallVec::new();
        op.each_value(&mut |v| operands.push(v));
        let mut seen: Vec<Fill> = Vec::new();
        for &v in &operands {
            for fill in &self.known[v.index()].fills {
                match seen.iter_mut().find(|s| s.bound == fill.bound) {
                    // The one to tell of is the one that nobody defined.
                    Some(s) if fill.undefined && !s.undefined => *s = fill.clone(),
                    Some(_) => {}
                    None => seen.push(fill.clone()),
                }
            }
        }
        seen.into_iter().filter_map(|fill| self.combined(op, &operands, fill)).collect()
    }

    /// What an op gives in the lanes that a bound turns off; none where that is data.
    fn combined(&self, op: &TileOp, operands: &[Value], first: Fill) -> Option<Fill> {
        let mut numbers: SmallVec<[Option<Constant>; 3]> = SmallVec::new();
        let (mut data, mut undefined) = (false, false);
        for &v in operands {
            if let Some(c) = self.known[v.index()].constant {
                numbers.push(Some(c));
                continue;
            }
            let known = &self.known[v.index()];
            if let Some(fill) = known.fills.iter().find(|f| f.bound == first.bound) {
                undefined |= fill.undefined;
                numbers.push(fill.value);
                continue;
            }
            // The same along the bound's axes: one number for all of a row's lanes.
            let same = first.bound.axes().iter().all(|&axis| known.uniform >> axis & 1 != 0);
            // A mask of another kind along these axes may have put in zeros.
            let masked = known.fills.iter().any(|f| f.bound.meets(&first.bound));
            data |= known.data && !same || masked;
            numbers.push(None);
        }
        if absorbs_zero(op) && numbers.iter().flatten().any(|&c| is_zero(c)) {
            // Nothing is left of the other operand, not even that it was undefined.
            let defined = |v: &Value| {
                let fills = &self.known[v.index()].fills;
                let fill = fills.iter().find(|f| f.bound == first.bound);
                fill.is_some_and(|f| f.value.is_some_and(is_zero) && !f.undefined)
            };
            let undefined = undefined && !operands.iter().any(defined);
            let zero = numbers.iter().flatten().copied().find(|&c| is_zero(c));
            return Some(Fill { value: zero, undefined, computed: true, ..first });
        }
        if data {
            return None;
        }
        let all = numbers.iter().copied().collect::<Option<SmallVec<[Constant; 3]>>>();
        let value = match all {
            Some(all) => Some(evaluated(op, &all)?),
            None => Self::absorbing(op, &numbers),
        };
        // Of numbers that are not known those alone are followed that a shift made.
        let was_shifted = operands.iter().any(|v| {
            let fills = &self.known[v.index()].fills;
            fills.iter().any(|f| f.bound == first.bound && f.value.is_none())
        });
        (value.is_some() || was_shifted || is_shift(op)).then_some(Fill {
            value,
            undefined,
            computed: true,
            ..first
        })
    }

    /// What an op gives though an operand is unknown: infinities, and what stands for them, stay.
    fn absorbing(op: &TileOp, numbers: &[Option<Constant>]) -> Option<Constant> {
        let huge = |i: usize| numbers.get(i).copied().flatten().filter(|&c| is_huge(c));
        match op {
            TileOp::Binary { f: BinaryFn::Add | BinaryFn::Mul, .. } => huge(0).or_else(|| huge(1)),
            TileOp::Binary { f: BinaryFn::Sub, .. } => huge(0),
            TileOp::Binary {
                f:
                    BinaryFn::Div
                    | BinaryFn::DivRn
                    | BinaryFn::Idiv
                    | BinaryFn::Rem
                    | BinaryFn::Shl
                    | BinaryFn::Shr,
                ..
            } => huge(0).or(numbers.first().copied().flatten().filter(|&c| is_zero(c))),
            _ => None,
        }
    }

    /// Lanes meet along an axis. Gives how many they are, if they are added and a mask has turned some
    /// off.
    fn reduced(&mut self, inst: Inst, inputs: &[Value], axis: usize, body: Block) -> Option<usize> {
        let &input = inputs.first()?;
        let ty = self.lint.func.ty(input).elem.scalar()?;
        let f = one_function(self.lint.func, body);
        let fills = self.known[input.index()].fills.clone();
        for fill in fills.iter().filter(|fill| fill.bound.varies(axis)) {
            // Of several values together only what was left undefined is looked at.
            match f {
                Some(f) => self.meets(inst, f, ty, fill, Some(input)),
                None if fill.undefined => self.undefined(inst, fill, None),
                None => {}
            }
        }
        // A bound that is a constant may be the number of lanes itself.
        let open = |v: Value| self.known[v.index()].constant.is_none();
        let some_off = fills.iter().any(|fill| {
            fill.bound.varies(axis) && fill.bound.values().get(1).is_some_and(|&v| open(v))
        });
        let n = self.lint.func.ty(input).shape.dim(axis);
        (some_off && f == Some(BinaryFn::Add)).then_some(n)
    }

    /// A sum of the lanes that a mask leaves, divided by the number of all lanes: by the same name that
    /// the lanes were made by, since a number alone may be anything.
    fn divided(&mut self, inst: Inst, sum: Value, by: Value) {
        let Some(n) = self.known[sum.index()].summed else { return };
        let func = self.lint.func;
        if self.known[by.index()].constant.is_none_or(|c| c.as_f64() != n as f64) {
            return;
        }
        let Some(place) = self.lint.place(inst) else { return };
        let Some((_, divisor)) = place.text().rsplit_once('/') else { return };
        let divisor = divisor.trim();
        let code: String = super::function_text(&place).chars().filter(|&c| c != ' ').collect();
        if names(divisor).next() != Some(divisor) || !code.contains(&format!("arange(0,{divisor})"))
        {
            return;
        }
        let message = format!(
            "kernel `{}` divides a sum of the lanes that a mask leaves by the number of all lanes",
            func.name
        );
        let label = format!("`{divisor}` counts the lanes that are masked off too");
        let d = self.lint.at(inst, Id::BlockDivisor, message, &label);
        self.lint.found(d.help("divide by the number that the mask compares with"));
    }

    /// ... or a value of each step of a loop, lane by lane.
    fn recurrences(&mut self, body: Block) {
        let func = self.lint.func;
        let Some(TileOp::Yield { values }) = func.terminator(body) else { return };
        for (&next, &param) in values.iter().zip(func.block_params(body).iter().skip(1)) {
            let Def::Result(inst, _) = func.def(next) else { continue };
            let &TileOp::Binary { f, a, b } = func.op(inst) else { continue };
            let t = match (a == param, b == param) {
                (true, false) => b,
                (false, true) => a,
                _ => continue,
            };
            let Some(ty) = func.ty(t).elem.scalar() else { continue };
            for fill in self.known[t.index()].fills.clone() {
                // A bound that is the same in every step keeps padding in lanes of its own.
                if fill.bound.values().iter().any(|v| self.changes[v.index()]) {
                    self.meets(inst, f, ty, &fill, Some(t));
                }
            }
        }
    }

    /// ... or the products along the axis that two factors share.
    fn multiplied(&mut self, inst: Inst, a: Value, b: Value) {
        let rank = self.lint.func.ty(a).shape.rank();
        let along = |known: &Known, axis: usize| -> Option<Fill> {
            known.fills.iter().find(|fill| fill.bound.varies(axis)).cloned()
        };
        let x = along(&self.known[a.index()], rank - 1);
        let y = along(&self.known[b.index()], rank - 2);
        let zero = |f: &Option<Fill>| f.as_ref().is_some_and(|f| f.value.is_some_and(is_zero));
        let defined = |f: &Option<Fill>| f.as_ref().is_some_and(|f| !f.undefined);
        // Zeros on one side take the other along.
        if zero(&x) && defined(&x) || zero(&y) && defined(&y) {
            return;
        }
        for fill in [x, y].into_iter().flatten() {
            if fill.undefined {
                self.undefined(inst, &fill, Some(BinaryFn::Add));
            } else if let Some(ty) = fill.value.map(|c| c.ty) {
                self.padded(inst, &fill, BinaryFn::Add, ty);
            }
        }
    }

    fn meets(&mut self, inst: Inst, f: BinaryFn, ty: Scalar, fill: &Fill, of: Option<Value>) {
        let harmless = match fill.value {
            Some(c) => {
                is_neutral(f, c)
                    || matches!(f, BinaryFn::Max | BinaryFn::MaxNan)
                        && is_zero(c)
                        && of.is_some_and(|v| is_non_negative(self.lint, v, 8))
            }
            // Integers are shifted for many reasons.
            None => !ty.is_float() || f.identity(ty).is_none(),
        };
        match (fill.undefined, harmless) {
            (true, true) => self.undefined(inst, fill, Some(f)),
            (true, false) if !fill.computed => self.undefined(inst, fill, None),
            (false, true) => {}
            (_, false) => self.padded(inst, fill, f, ty),
        }
    }

    /// Lanes that a load left undefined; `f` is given where the 0 that NVIDIA GPUs read is right.
    fn undefined(&mut self, inst: Inst, fill: &Fill, f: Option<BinaryFn>) {
        if f.is_some() && self.said.contains(&fill.source) {
            return;
        }
        self.said.push(fill.source);
        let point = self.lint.point(inst);
        let message = format!(
            "kernel `{}`: lanes that a masked load leaves undefined may reach {point}",
            self.lint.func.name
        );
        let label = match f {
            Some(_) => "the 0 that NVIDIA GPUs read there changes nothing here",
            None => "the 0 that NVIDIA GPUs read there may change the result here",
        };
        let d = self.lint.at(inst, Id::UndefinedReduced, message, label);
        let given = fill_of(&self.lint.text(fill.source).unwrap_or_default());
        let left = format!("without `{given}` lanes that are not read are undefined");
        let d = self.lint.also(d, fill.source, &left);
        let d = match f {
            Some(_) if given == "padding_option" => {
                d.help("say so: give the load `padding_option=\"zero\"`")
            }
            Some(_) => d.help("say so: give the load `other=0`"),
            None => d.help(format!("give the load `{given}=` what the result does not depend on")),
        };
        let severity = if f.is_some() { Severity::Note } else { Severity::Warning };
        self.lint.found(Diagnostic { severity, ..d });
    }

    fn padded(&mut self, inst: Inst, fill: &Fill, f: BinaryFn, ty: Scalar) {
        let point = self.lint.point(inst);
        let name = &self.lint.func.name;
        let holds = match fill.value {
            Some(c) => show(c.ty, c.bits),
            None => "what was added to their fill, or taken from it".into(),
        };
        let message =
            format!("kernel `{name}`: padding lanes may reach {point} and change the result");
        let label = format!("where the mask is false these lanes hold {holds}");
        let d = self.lint.at(inst, Id::PaddingReduced, message, &label);
        let mut d = self.lint.also(d, fill.source, "the lanes are masked off here");
        let text = self.lint.text(fill.source);
        if let Some(neutral) = f.identity_text(ty) {
            let (mask, words) = mask_of(text.as_deref());
            d = d.help(format!(
                "set them to {neutral} first: `tl.where({mask}, ..., {neutral})`{words}"
            ));
        }
        // A sum is changed by whatever is added; of a maximum only a run can tell.
        let severity = match f {
            BinaryFn::Add => Severity::Warning,
            _ => Severity::Note,
        };
        self.lint.found(Diagnostic { severity, ..d });
    }
}

fn is_zero(c: Constant) -> bool {
    c.as_f64() == 0.0
}

/// Whether 0 in an operand gives 0 whatever the other is.
fn absorbs_zero(op: &TileOp) -> bool {
    matches!(op, TileOp::Binary { f: BinaryFn::Mul | BinaryFn::And, .. })
}

/// Whether an op shifts floats, as the mean of a row is taken from it.
fn is_shift(op: &TileOp) -> bool {
    matches!(op, TileOp::Binary { f: BinaryFn::Sub | BinaryFn::Add, .. })
}

/// A function of numbers.
fn evaluated(op: &TileOp, x: &[Constant]) -> Option<Constant> {
    let number = |ty: Scalar, bits: Option<u64>| bits.map(|bits| Constant { ty, bits });
    match (op, x) {
        (TileOp::Unary { f, .. }, [x]) => number(x.ty, f.eval(x.ty, x.bits)),
        (TileOp::Binary { f, .. }, [x, y]) => number(x.ty, f.eval(x.ty, x.bits, y.bits)),
        (TileOp::Ternary { f, .. }, [x, y, z]) => {
            number(x.ty, f.eval(x.ty, x.bits, y.bits, z.bits))
        }
        (TileOp::Compare { p, .. }, [x, y]) => p.eval(x.ty, x.bits, y.bits).map(Constant::bool),
        (TileOp::Cast { to, rounding, .. }, [x]) => {
            number(*to, Some(cast_bits(x.ty, *to, *rounding, x.bits)))
        }
        _ => None,
    }
}

fn is_neutral(f: BinaryFn, c: Constant) -> bool {
    let x = c.as_f64();
    match f {
        BinaryFn::Add if c.ty.is_float() => x == 0.0,
        BinaryFn::Max | BinaryFn::MaxNan if c.ty.is_float() => x <= -HUGE,
        BinaryFn::Min | BinaryFn::MinNan if c.ty.is_float() => x >= HUGE,
        // Of integers the ends of other types, and what is near them, are put in by hand as well.
        BinaryFn::Max | BinaryFn::MaxNan => x < 0.0,
        BinaryFn::Min | BinaryFn::MinNan => x >= HUGE,
        f => f.identity(c.ty) == Some(c.bits),
    }
}

/// Whether a value is never negative by what made it.
fn is_non_negative(lint: &Lint<'_>, value: Value, depth: u32) -> bool {
    let func = lint.func;
    if depth == 0 {
        return false;
    }
    if let Some(c) = uniform_constant(func, value) {
        return c.as_f64() >= 0.0;
    }
    let of = |v: Value| is_non_negative(lint, v, depth - 1);
    match func.defining_op(value) {
        Some(TileOp::Unary { f, x }) => match f {
            UnaryFn::Abs | UnaryFn::Exp | UnaryFn::Exp2 | UnaryFn::Sqrt => true,
            _ => of(*x) && matches!(f, UnaryFn::Floor | UnaryFn::Ceil),
        },
        Some(TileOp::Binary { f: BinaryFn::Mul, a, b }) => a == b || of(*a) && of(*b),
        Some(TileOp::Binary {
            f: BinaryFn::Add | BinaryFn::Div | BinaryFn::DivRn | BinaryFn::Min,
            a,
            b,
        }) => of(*a) && of(*b),
        Some(TileOp::Binary { f: BinaryFn::Max, a, b }) => of(*a) || of(*b),
        Some(TileOp::Cast { src, .. }) => {
            func.ty(*src).elem.scalar().is_some_and(|s| s.is_bool() || s.is_int() && !s.is_signed())
                || of(*src)
        }
        Some(TileOp::Select { yes, no, .. }) => of(*yes) && of(*no),
        Some(op) => axis_behind(func, op, func.ty(value).shape).is_some_and(|(src, _)| of(src)),
        None => false,
    }
}
