//! The walk over the ops, and control flow.

use super::emit::{Emit, Pool};
use super::frame::Frame;
use super::lanes::{Lanes, int_type, lane_type, lanes_in_part, part_type};
use super::memory::{ACCESS, Place};
use super::target::Target;
use super::{Error, RuntimeTable, aside, fault};
use crate::wide;
use cranelift_codegen::ir::{self, AbiParam, AtomicRmwOp, InstBuilder, Signature, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use naiad_ir::scalar::Predicate;
use naiad_ir::thread::{RuntimeFn, Thread, ThreadElem, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::AtomicOp;
use naiad_ir::{Block, Def, Function, Inst, OpInfo, Scalar, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// What a function needs besides its code.
pub struct Needs {
    pub frame_bytes: usize,
    pub constants: Vec<u128>,
    /// Functions beside this one, by the numbers in the names by which it calls them.
    pub beside: Vec<Vec<u8>>,
}

/// Writes a function; `flags` are the parameters that say whether stores may go past the cache, and
/// whether what is read is beyond it.
pub fn write(
    target: &Target,
    func: &Function<Thread>,
    table: &RuntimeTable,
    flags: [Option<usize>; 2],
    out: &mut ir::Function,
    context: &mut FunctionBuilderContext,
) -> Result<Needs, Error> {
    let mut signature = Signature::new(target.isa.default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 4]);
    signature.returns.push(AbiParam::new(types::I8));
    out.signature = signature;

    let mut b = FunctionBuilder::new(out, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let [slots, frame, report, pool_address] = [0, 1, 2, 3].map(|i| b.block_params(entry)[i]);

    let [past_cache, far] = flags.map(|flag| flag.map(|i| func.params()[i]));
    let mut writer = Writer {
        func,
        table,
        emit: Emit {
            b,
            target,
            pool: Pool::default(),
            pool_address,
            stack: None,
            masks: FxHashMap::default(),
        },
        values: vec![None; func.num_values()],
        regs: Vec::new(),
        implied: implied(func),
        layout: Frame::new(func),
        frame,
        report,
        failures: Vec::new(),
        beside: Vec::new(),
        block_bytes: 0,
        past_cache,
        far,
    };
    for (i, &param) in func.params().iter().enumerate() {
        writer.param(slots, i, param).map_err(|why| fault(&func.name, why))?;
    }
    writer.block(func.entry()).map_err(|why| fault(&func.name, why))?;
    writer.failures();
    let Writer { emit, layout, beside, block_bytes, .. } = writer;
    emit.b.finalize(target.isa.frontend_config());
    let frame_bytes = layout.bytes + block_bytes;
    Ok(Needs { frame_bytes, constants: emit.pool.constants, beside })
}

pub type Written = Result<(), String>;

pub struct Writer<'f, 'b> {
    pub func: &'f Function<Thread>,
    table: &'f RuntimeTable,
    pub emit: Emit<'b>,
    pub values: Vec<Option<Lanes>>,
    /// Arrays of registers: the value, what a register holds, and the variables of each.
    regs: Vec<(Value, Vector, Vec<Variable>)>,
    /// Comparisons that need not be made.
    implied: FxHashSet<Inst>,
    pub layout: Frame,
    pub frame: ir::Value,
    pub report: ir::Value,
    /// Guards, whose failing is written behind everything else.
    pub failures: Vec<(ir::Block, u32, Vec<ir::Value>)>,
    pub beside: Vec<Vec<u8>>,
    /// The size of the memory behind scratch that loops beside Cranelift's code are given.
    pub block_bytes: usize,
    /// Not 0 where stores may go past the cache.
    pub past_cache: Option<Value>,
    /// Not 0 where what is read is beyond it.
    pub far: Option<Value>,
}

impl Writer<'_, '_> {
    fn param(&mut self, slots: ir::Value, index: usize, param: Value) -> Written {
        let v = self.vector(param)?;
        if !v.is_scalar() {
            return Err(format!("parameter {param} is no scalar"));
        }
        let p = Place { addr: slots, disp: 8 * index as i64 };
        let value = self.emit.load(v.elem, 1, p, None);
        self.values[param.index()] = Some(value);
        Ok(())
    }

    pub fn vector(&self, v: Value) -> Result<Vector, String> {
        match self.func.ty(v) {
            ThreadType::Vector(v) => Ok(v),
            ThreadType::Regs { .. } => Err(format!("{v} is an array of registers")),
        }
    }

    pub fn get(&self, v: Value) -> Result<Lanes, String> {
        self.values[v.index()].clone().ok_or_else(|| format!("{v} is used before it is made"))
    }

    /// The one value of a scalar.
    pub fn one(&mut self, v: Value) -> Result<ir::Value, String> {
        let x = self.get(v)?;
        Ok(self.emit.one(&x))
    }

    pub fn all(&self, values: &[Value]) -> Result<Vec<Lanes>, String> {
        values.iter().map(|&v| self.get(v)).collect()
    }

    fn scalar(&self, v: Value) -> Result<Scalar, String> {
        let v = self.vector(v)?;
        v.elem.scalar().ok_or_else(|| format!("{v} is no number"))
    }

    fn mask(&self, mask: &Option<Value>) -> Result<Option<Lanes>, String> {
        mask.map(|m| self.get(m)).transpose()
    }

    /// Writes the ops of a block; those that end it are for the caller, but for `return`.
    pub fn block(&mut self, block: Block) -> Written {
        for &inst in self.func.insts(block) {
            self.inst(inst)?;
        }
        Ok(())
    }

    pub fn inst(&mut self, inst: Inst) -> Written {
        let op = self.func.op(inst);
        let made = self.op(inst, op)?;
        let results = self.func.results(inst);
        if made.len() != results.len() {
            return Err(format!("`{}` made {} values", op.name(), made.len()));
        }
        for (&result, value) in results.iter().zip(made) {
            self.values[result.index()] = Some(value);
        }
        Ok(())
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn op(&mut self, inst: Inst, op: &ThreadOp) -> Result<Made, String> {
        let e = &mut self.emit;
        let value = match op {
            ThreadOp::Const { value, lanes } if value.ty.is_bool() && lanes.0 > 1 => {
                let image = if value.bits == 0 { 0 } else { u64::MAX };
                Lanes::constant(types::I8, lanes.0, image)
            }
            ThreadOp::Const { value, lanes } => {
                Lanes::constant(lane_type(value.ty.into()), lanes.0, value.bits)
            }
            ThreadOp::Iota { elem: ThreadElem::Scalar(Scalar::I1), lanes } if lanes.0 > 1 => {
                Lanes::of(types::I8, lanes.0, |i| if i % 2 == 1 { u64::MAX } else { 0 })
            }
            ThreadOp::Iota { elem, lanes } => Lanes::of(lane_type(*elem), lanes.0, u64::from),
            ThreadOp::Splat { src, lanes } => {
                let (x, is_bool) = (self.one(*src)?, self.is_bool(*src));
                let e = &mut self.emit;
                if is_bool && lanes.0 > 1 { e.splat_mask(x, lanes.0) } else { e.splat(x, lanes.0) }
            }
            ThreadOp::Extract { src, lane } => {
                let (x, is_bool) = (self.get(*src)?, self.is_bool(*src));
                let e = &mut self.emit;
                let lane_value =
                    if is_bool { e.extract_bool(&x, *lane) } else { e.extract(&x, *lane) };
                Lanes::scalar(if is_bool { types::I8 } else { x.lane }, lane_value)
            }
            ThreadOp::Shuffle { a, b, order } => self.shuffle(*a, *b, &order.0)?,
            ThreadOp::Any { mask } => {
                let mask = self.get(*mask)?;
                Lanes::scalar(types::I8, self.emit.any(&mask))
            }
            ThreadOp::All { mask } => {
                let mask = self.get(*mask)?;
                Lanes::scalar(types::I8, self.emit.all(&mask))
            }
            ThreadOp::Unary { f, x } => {
                let (of, x) = (self.scalar(*x)?, self.get(*x)?);
                self.emit.unary(*f, of, &x)?
            }
            ThreadOp::Binary { f, a, b } => {
                let (of, x, y) = (self.scalar(*a)?, self.get(*a)?, self.get(*b)?);
                self.emit.binary(*f, of, &x, &y)?
            }
            ThreadOp::Ternary { f, a, b, c } => {
                let (of, x, y, z) = (self.scalar(*a)?, self.get(*a)?, self.get(*b)?, self.get(*c)?);
                self.emit.ternary(*f, of, [&x, &y, &z])?
            }
            // What only chooses the smaller or the greater of its operands is part of the choice.
            ThreadOp::Compare { a, .. } if self.implied.contains(&inst) => self.get(*a)?,
            ThreadOp::Compare { p, a, b } => {
                let (of, x, y) = (self.vector(*a)?.elem, self.get(*a)?, self.get(*b)?);
                self.emit.compare(*p, of, &x, &y)
            }
            ThreadOp::Select { cond, yes, no } => self.select(*cond, *yes, *no)?,
            ThreadOp::Cast { src, to, rounding } => {
                let (from, x) = (self.scalar(*src)?, self.get(*src)?);
                self.emit.cast(from, *to, *rounding, &x)
            }
            ThreadOp::Bitcast { src, to } => {
                let x = self.get(*src)?;
                if self.is_bool(*src) { x } else { self.emit.recast(&x, lane_type(*to)) }
            }
            ThreadOp::AddrAdd { addr, offset } => {
                let (x, y) = (self.get(*addr)?, self.get(*offset)?);
                self.emit.by_part(types::I64, [&x, &y], |e, [x, y]| e.b.ins().iadd(x, y))
            }
            // Cranelift, as it is asked here, leaves every access as it is, volatile or not.
            ThreadOp::Load { addr, disp, elem, lanes, mask, hints: _ } => {
                let p = Place { addr: self.one(*addr)?, disp: *disp };
                let mask = self.mask(mask)?;
                self.emit.load(*elem, lanes.0, p, mask.as_ref())
            }
            ThreadOp::Store { addr, value, disp, mask, hints: _ } => {
                let p = Place { addr: self.one(*addr)?, disp: *disp };
                let (elem, mask) = (self.vector(*value)?.elem, self.mask(mask)?);
                let value = self.get(*value)?;
                self.emit.store(elem, &value, p, mask.as_ref());
                return Ok(Made::new());
            }
            ThreadOp::Gather { addr, elem, mask } => {
                let (addr, mask) = (self.get(*addr)?, self.mask(mask)?);
                self.emit.gather(*elem, &addr, mask.as_ref())
            }
            ThreadOp::Scatter { addr, value, mask } => {
                let (elem, mask) = (self.vector(*value)?.elem, self.mask(mask)?);
                let (value, addr) = (self.get(*value)?, self.get(*addr)?);
                self.emit.scatter(elem, &value, &addr, mask.as_ref());
                return Ok(Made::new());
            }
            ThreadOp::Atomic { f, addr, value, .. } => self.atomic(*f, *addr, *value)?,
            ThreadOp::AtomicCas { addr, compare, value, .. } => {
                let (addr, lane) = (self.one(*addr)?, self.get(*value)?.lane);
                let (old, new) = (self.image(*compare)?, self.image(*value)?);
                let seen = self.emit.b.ins().atomic_cas(ACCESS, addr, old, new);
                Lanes::scalar(lane, self.emit.bitcast(lane, seen))
            }
            ThreadOp::AtomicLoad { addr, elem, .. } => {
                let (addr, lane) = (self.one(*addr)?, lane_type(*elem));
                let image = self.emit.b.ins().atomic_load(int_of(lane), ACCESS, addr);
                let raw = Lanes::scalar(lane, self.emit.bitcast(lane, image));
                self.emit.loaded(*elem, raw)
            }
            ThreadOp::AtomicStore { addr, value, .. } => {
                let (addr, image) = (self.one(*addr)?, self.image(*value)?);
                self.emit.b.ins().atomic_store(ACCESS, image, addr);
                return Ok(Made::new());
            }
            ThreadOp::Regs { elem, lanes, count } => {
                self.declare(self.func.results(inst)[0], Vector::of(*elem, lanes.0), *count);
                // The value itself is never asked for.
                Lanes::scalar(types::I64, self.frame)
            }
            ThreadOp::RegsGet { regs, index } => self.register(*regs, *index)?,
            ThreadOp::RegsSet { regs, value, index } => {
                let value = self.get(*value)?;
                self.set_register(*regs, *index, &value)?;
                return Ok(Made::new());
            }
            ThreadOp::Scratch { .. } => {
                let p = Place { addr: self.frame, disp: self.layout.offset(inst) as i64 };
                Lanes::scalar(types::I64, e.address(p, 0))
            }
            ThreadOp::RuntimeCall { f, args } => return self.runtime_call(*f, args),
            ThreadOp::Guard { cond, site, values } => {
                self.guard(*cond, site.0, values)?;
                return Ok(Made::new());
            }
            ThreadOp::For { lower, upper, step, inits, body } => {
                let bounds = [*lower, *upper, *step];
                if let Some(level) = self.emit.target.wide
                    && let Some(wide) = wide::write(self.func, op, level)
                {
                    return self.wide_loop(wide, bounds, inits, *body);
                }
                return self.for_loop(bounds, inits, *body);
            }
            ThreadOp::While { inits, before, after } => {
                return self.while_loop(inits, *before, *after);
            }
            ThreadOp::If { cond, then, otherwise } => {
                return self.if_else(*cond, *then, *otherwise);
            }
            ThreadOp::Return {} => {
                let ended = e.iconst(types::I8, 1);
                e.b.ins().return_(&[ended]);
                return Ok(Made::new());
            }
            naiad_ir::gpu_op!() => return Err(format!("a CPU has no `{}`", op.name())),
            // These belong to the op around them.
            ThreadOp::Yield { .. } | ThreadOp::Condition { .. } => return Ok(Made::new()),
        };
        Ok(SmallVec::from_iter([value]))
    }

    fn is_bool(&self, v: Value) -> bool {
        self.func.ty(v).vector().is_some_and(|v| v.elem == ThreadElem::Scalar(Scalar::I1))
    }

    fn shuffle(&mut self, a: Value, b: Value, order: &[u32]) -> Result<Lanes, String> {
        let is_bool = self.is_bool(a);
        let (mut x, mut y) = (self.get(a)?, self.get(b)?);
        if is_bool && !x.is_scalar() {
            let bits = if x.uniform { y.lane.bits() } else { x.lane.bits() };
            (x, y) = (self.emit.mask_of(&x, bits), self.emit.mask_of(&y, bits));
        }
        if let &[one] = order {
            let (src, lane) = if one < x.count { (&x, one) } else { (&y, one - x.count) };
            let e = &mut self.emit;
            let value = if is_bool { e.extract_bool(src, lane) } else { e.extract(src, lane) };
            return Ok(Lanes::scalar(if is_bool { types::I8 } else { x.lane }, value));
        }
        if x.is_scalar() {
            let lanes: Vec<ir::Value> =
                order.iter().map(|&i| self.emit.one(if i == 0 { &x } else { &y })).collect();
            if !is_bool {
                return Ok(self.emit.vector_of(x.lane, &lanes));
            }
            let bytes = self.emit.vector_of(types::I8, &lanes);
            return Ok(self.emit.loaded(Scalar::I1.into(), bytes));
        }
        let mut parts = self.emit.parts(&x);
        parts.extend(self.emit.parts(&y));
        // A vector that fills no part is followed by the other all the same.
        let each = x.lanes_used();
        Ok(self.emit.shuffle(x.lane, &parts, each, order))
    }

    fn select(&mut self, cond: Value, yes: Value, no: Value) -> Result<Lanes, String> {
        let (x, y) = (self.get(yes)?, self.get(no)?);
        if let Some(greater) = extreme(self.func, cond, yes, no) {
            return Ok(self.emit.by_part(x.lane, [&x, &y], |e, [x, y]| e.extreme(greater, x, y)));
        }
        let mask = self.get(cond)?;
        if self.is_bool(yes) && !x.is_scalar() {
            let bits =
                [&x, &y, &mask].into_iter().find(|m| !m.uniform).unwrap_or(&mask).lane.bits();
            let [x, y, mask] = [x, y, mask].map(|m| self.emit.mask_of(&m, bits));
            return Ok(self.emit.select(&mask, &x, &y));
        }
        Ok(self.emit.select(&mask, &x, &y))
    }

    /// A scalar's bits as an integer.
    fn image(&mut self, v: Value) -> Result<ir::Value, String> {
        let x = self.get(v)?;
        let one = self.emit.one(&x);
        Ok(self.emit.bitcast(int_of(x.lane), one))
    }

    fn atomic(&mut self, f: AtomicOp, addr: Value, value: Value) -> Result<Lanes, String> {
        let of = self.scalar(value)?;
        let lane = self.get(value)?.lane;
        let (place, image) = (self.one(addr)?, self.image(value)?);
        let native = match f {
            AtomicOp::Xchg => Some(AtomicRmwOp::Xchg),
            _ if of.is_float() => None,
            AtomicOp::Add => Some(AtomicRmwOp::Add),
            AtomicOp::And => Some(AtomicRmwOp::And),
            AtomicOp::Or => Some(AtomicRmwOp::Or),
            AtomicOp::Xor => Some(AtomicRmwOp::Xor),
            AtomicOp::Max if of.is_signed() => Some(AtomicRmwOp::Smax),
            AtomicOp::Min if of.is_signed() => Some(AtomicRmwOp::Smin),
            AtomicOp::Max => Some(AtomicRmwOp::Umax),
            AtomicOp::Min => Some(AtomicRmwOp::Umin),
        };
        if let Some(op) = native {
            let old = self.emit.b.ins().atomic_rmw(int_of(lane), ACCESS, op, place, image);
            return Ok(Lanes::scalar(lane, self.emit.bitcast(lane, old)));
        }
        let position = |found: Option<usize>| found.map_or(-1, |i| i as i64);
        let ty = position(Scalar::ALL.iter().position(|&s| s == of));
        let op = position(AtomicOp::ALL.iter().position(|&o| o == f));
        let e = &mut self.emit;
        let wide = if lane.bits() < 64 { e.b.ins().uextend(types::I64, image) } else { image };
        let args = [place, e.iconst(types::I64, ty), e.iconst(types::I64, op), wide];
        let old = self.call(RuntimeFn::AtomicRmw, &args)[0];
        let e = &mut self.emit;
        let image = if lane.bits() < 64 { e.b.ins().ireduce(int_of(lane), old) } else { old };
        Ok(Lanes::scalar(lane, e.bitcast(lane, image)))
    }

    fn declare(&mut self, value: Value, of: Vector, count: u32) {
        let b = &mut self.emit.b;
        // Masks have lanes of a byte here, so that all writes agree.
        let lane = lane_type(of.elem);
        let ty = part_type(lane, of.lanes);
        let parts = if of.lanes == 1 { 1 } else { of.lanes.div_ceil(lanes_in_part(lane)) };
        let variables = (0..count * parts).map(|_| b.declare_var(ty)).collect::<Vec<_>>();
        let zero = self.emit.part(&Lanes::constant(lane, of.lanes, 0), 0);
        for &v in &variables {
            self.emit.b.def_var(v, zero);
        }
        self.regs.push((value, of, variables));
    }

    fn variables(
        &self,
        regs: Value,
        index: u32,
    ) -> Result<(Vector, SmallVec<[Variable; 4]>), String> {
        let found = self.regs.iter().rev().find(|(v, ..)| *v == regs);
        let (_, of, variables) = found.ok_or_else(|| format!("{regs} is not declared"))?;
        let parts =
            if of.lanes == 1 { 1 } else { of.lanes.div_ceil(lanes_in_part(lane_type(of.elem))) };
        let first = (index * parts) as usize;
        Ok((*of, variables[first..first + parts as usize].into()))
    }

    fn register(&mut self, regs: Value, index: u32) -> Result<Lanes, String> {
        let (of, variables) = self.variables(regs, index)?;
        let parts = variables.iter().map(|&v| self.emit.b.use_var(v)).collect();
        let lane = lane_type(of.elem);
        Ok(Lanes::vector(lane, of.lanes, parts))
    }

    fn set_register(&mut self, regs: Value, index: u32, value: &Lanes) -> Written {
        let (of, variables) = self.variables(regs, index)?;
        let value = if of.elem == ThreadElem::Scalar(Scalar::I1) {
            self.emit.mask_of(value, 8)
        } else {
            value.clone()
        };
        let parts = self.emit.parts(&value);
        for (&v, &part) in variables.iter().zip(&parts) {
            self.emit.b.def_var(v, part);
        }
        Ok(())
    }

    fn runtime_call(&mut self, f: RuntimeFn, args: &[Value]) -> Result<Made, String> {
        let args = args.iter().map(|&a| self.one(a)).collect::<Result<Vec<_>, _>>()?;
        let results = self.call(f, &args);
        let types = f.signature().1;
        Ok(results.into_iter().zip(types).map(|(v, ty)| Lanes::scalar(abi_type(*ty), v)).collect())
    }

    fn call(&mut self, f: RuntimeFn, args: &[ir::Value]) -> SmallVec<[ir::Value; 1]> {
        // Called rarely, or never, in the middle of loops over vectors.
        if aside::AVAILABLE && matches!(f, RuntimeFn::MayAccess | RuntimeFn::Host) {
            return SmallVec::from_iter([self.call_aside(f, args)]);
        }
        let e = &mut self.emit;
        let (params, results) = f.signature();
        let mut signature = Signature::new(e.target.isa.default_call_conv());
        signature.params.extend(params.iter().map(|&t| AbiParam::new(abi_type(t))));
        signature.returns.extend(results.iter().map(|&t| AbiParam::new(abi_type(t))));
        let signature = e.b.import_signature(signature);
        let address = e.iconst(types::I64, self.table.address(f) as i64);
        let call = e.b.ins().call_indirect(signature, address, args);
        e.b.inst_results(call).into()
    }

    /// A call of a function of four arguments that gives a boolean, by which no register is lost.
    fn call_aside(&mut self, f: RuntimeFn, args: &[ir::Value]) -> ir::Value {
        let e = &mut self.emit;
        let mut signature = Signature::new(aside::CONVENTION);
        signature.params.extend([AbiParam::new(types::I64); 6]);
        let signature = e.b.import_signature(signature);
        let result = e.on_stack(8);
        let function = e.iconst(types::I64, self.table.address(f) as i64);
        let between = e.iconst(types::I64, aside::address() as i64);
        let args = [args, &[result, function]].concat();
        e.b.ins().call_indirect(signature, between, &args);
        e.b.ins().load(types::I8, ACCESS, result, 0)
    }
}

/// Whether a choice of floats is that of the greater operand of its comparison, or of the smaller: the
/// machine has these in one instruction, which gives the second where the operands are not ordered.
fn extreme(func: &Function<Thread>, cond: Value, yes: Value, no: Value) -> Option<bool> {
    let Some(ThreadOp::Compare { p, a, b }) = func.defining_op(cond) else { return None };
    if !func.ty(yes).vector()?.elem.scalar()?.is_float() {
        return None;
    }
    let (a, b) = match p {
        Predicate::Lt => (*a, *b),
        Predicate::Gt => (*b, *a),
        Predicate::Eq | Predicate::Ne | Predicate::Le | Predicate::Ge => return None,
    };
    ((a, b) == (yes, no) || (b, a) == (yes, no)).then_some((b, a) == (yes, no))
}

/// The comparisons that only such choices use.
fn implied(func: &Function<Thread>) -> FxHashSet<Inst> {
    let mut uses: FxHashMap<Value, (u32, u32)> = FxHashMap::default();
    func.walk(&mut |inst| {
        let op = func.op(inst);
        if let ThreadOp::Select { cond, yes, no } = op
            && extreme(func, *cond, *yes, *no).is_some()
        {
            uses.entry(*cond).or_default().0 += 1;
        }
        op.each_value(&mut |v| {
            if matches!(func.defining_op(v), Some(ThreadOp::Compare { .. })) {
                uses.entry(v).or_default().1 += 1;
            }
        });
    });
    let implied = uses.into_iter().filter(|(_, (choices, all))| choices == all);
    implied
        .filter_map(|(v, _)| match func.def(v) {
            Def::Result(inst, _) => Some(inst),
            Def::Param(..) => None,
        })
        .collect()
}

/// The values that an op makes.
pub type Made = SmallVec<[Lanes; 1]>;

fn int_of(lane: ir::Type) -> ir::Type {
    int_type(lane.bits())
}

/// How a scalar is passed to the runtime.
fn abi_type(ty: ThreadType) -> ir::Type {
    ty.vector().map_or(types::INVALID, |v| lane_type(v.elem))
}
