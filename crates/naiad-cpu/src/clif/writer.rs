//! The walk over the ops, and control flow.

use super::frame::Frame;
use super::lanes::{Emit, Lanes, Pool, lane_type, lanes_in_part, part_type};
use super::memory::{ACCESS, Place};
use super::target::Target;
use super::{Error, Report, RuntimeTable, fault};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, AtomicRmwOp, InstBuilder, Signature, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use naiad_ir::scalar::Predicate;
use naiad_ir::thread::{RuntimeFn, Thread, ThreadElem, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::AtomicOp;
use naiad_ir::{Block, Function, Inst, OpInfo, Scalar, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::mem::offset_of;

/// What a function needs besides its code.
pub struct Needs {
    pub frame_bytes: usize,
    pub constants: Vec<u128>,
}

/// Writes a function.
pub fn write(
    target: &Target,
    func: &Function<Thread>,
    table: &RuntimeTable,
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

    let mut writer = Writer {
        func,
        table,
        emit: Emit {
            b,
            target,
            pool: Pool::default(),
            pool_address,
            nowhere: None,
            masks: FxHashMap::default(),
        },
        values: vec![None; func.num_values()],
        regs: Vec::new(),
        layout: Frame::new(func),
        frame,
        report,
        failures: Vec::new(),
    };
    for (i, &param) in func.params().iter().enumerate() {
        writer.param(slots, i, param).map_err(|why| fault(&func.name, why))?;
    }
    writer.block(func.entry()).map_err(|why| fault(&func.name, why))?;
    writer.failures();
    let Writer { emit, layout, .. } = writer;
    emit.b.finalize(target.isa.frontend_config());
    Ok(Needs { frame_bytes: layout.bytes, constants: emit.pool.constants })
}

type Written = Result<(), String>;

struct Writer<'f, 'b> {
    func: &'f Function<Thread>,
    table: &'f RuntimeTable,
    emit: Emit<'b>,
    values: Vec<Option<Lanes>>,
    /// Arrays of registers: the value, what a register holds, and the variables of each.
    regs: Vec<(Value, Vector, Vec<Variable>)>,
    layout: Frame,
    frame: ir::Value,
    report: ir::Value,
    /// Guards, whose failing is written behind everything else.
    failures: Vec<(ir::Block, u32, Vec<ir::Value>)>,
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

    fn vector(&self, v: Value) -> Result<Vector, String> {
        match self.func.ty(v) {
            ThreadType::Vector(v) => Ok(v),
            ThreadType::Regs { .. } => Err(format!("{v} is an array of registers")),
        }
    }

    fn get(&self, v: Value) -> Result<Lanes, String> {
        self.values[v.index()].clone().ok_or_else(|| format!("{v} is used before it is made"))
    }

    /// The one value of a scalar.
    fn one(&mut self, v: Value) -> Result<ir::Value, String> {
        let x = self.get(v)?;
        Ok(self.emit.one(&x))
    }

    fn all(&self, values: &[Value]) -> Result<Vec<Lanes>, String> {
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
    fn block(&mut self, block: Block) -> Written {
        for &inst in self.func.insts(block) {
            self.inst(inst)?;
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Written {
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
            ThreadOp::Load { addr, disp, elem, lanes, mask, hints } => {
                let p = Place { addr: self.one(*addr)?, disp: *disp };
                let mask = self.mask(mask)?;
                self.fence(hints.volatile);
                let value = self.emit.load(*elem, lanes.0, p, mask.as_ref());
                self.fence(hints.volatile);
                value
            }
            ThreadOp::Store { addr, value, disp, mask, hints } => {
                let p = Place { addr: self.one(*addr)?, disp: *disp };
                let (elem, mask) = (self.vector(*value)?.elem, self.mask(mask)?);
                let value = self.get(*value)?;
                self.fence(hints.volatile);
                self.emit.store(elem, &value, p, mask.as_ref());
                self.fence(hints.volatile);
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
            ThreadOp::Atomic { f, addr, value, sem: _ } => self.atomic(*f, *addr, *value)?,
            ThreadOp::AtomicCas { addr, compare, value, sem: _ } => {
                let (addr, lane) = (self.one(*addr)?, self.get(*value)?.lane);
                let (old, new) = (self.image(*compare)?, self.image(*value)?);
                let seen = self.emit.b.ins().atomic_cas(ACCESS, addr, old, new);
                Lanes::scalar(lane, self.emit.bitcast(lane, seen))
            }
            ThreadOp::AtomicLoad { addr, elem, sem: _ } => {
                let (addr, lane) = (self.one(*addr)?, lane_type(*elem));
                let image = self.emit.b.ins().atomic_load(int_of(lane), ACCESS, addr);
                let raw = Lanes::scalar(lane, self.emit.bitcast(lane, image));
                self.emit.from_memory(*elem, raw)
            }
            ThreadOp::AtomicStore { addr, value, sem: _ } => {
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
                let offset = self.layout.offset(inst) as i64;
                Lanes::scalar(types::I64, e.b.ins().iadd_imm_s(self.frame, offset))
            }
            ThreadOp::RuntimeCall { f, args } => return self.runtime_call(*f, args),
            ThreadOp::Guard { cond, site, values } => {
                self.guard(*cond, site.0, values)?;
                return Ok(Made::new());
            }
            ThreadOp::For { lower, upper, step, inits, body } => {
                return self.for_loop([*lower, *upper, *step], inits, *body);
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
                return Ok(self.emit.from_lanes(x.lane, &lanes));
            }
            let bytes = self.emit.from_lanes(types::I8, &lanes);
            return Ok(self.emit.from_memory(Scalar::I1.into(), bytes));
        }
        let mut parts = self.emit.parts(&x);
        parts.extend(self.emit.parts(&y));
        // A vector that fills no part is followed by the other all the same.
        let each = x.lanes_used();
        Ok(self.emit.shuffle(x.lane, &parts, each, order))
    }

    fn select(&mut self, cond: Value, yes: Value, no: Value) -> Result<Lanes, String> {
        let (x, y) = (self.get(yes)?, self.get(no)?);
        let of = self.vector(yes)?.elem;
        // The machine's minimum and maximum of floats are just such choices.
        if matches!(of, ThreadElem::Scalar(Scalar::F32 | Scalar::F64))
            && let Some(ThreadOp::Compare { p: p @ (Predicate::Lt | Predicate::Gt), a, b }) =
                self.func.defining_op(cond)
        {
            let less = *p == Predicate::Lt;
            if (*a, *b) == (yes, no) {
                return Ok(self.emit.by_part(x.lane, [&x, &y], |e, [x, y]| e.extreme(!less, x, y)));
            }
            if (*b, *a) == (yes, no) {
                return Ok(self.emit.by_part(x.lane, [&x, &y], |e, [x, y]| e.extreme(less, x, y)));
            }
        }
        let mask = self.get(cond)?;
        if of == ThreadElem::Scalar(Scalar::I1) && !x.is_scalar() {
            let bits =
                [&x, &y, &mask].into_iter().find(|m| !m.uniform).unwrap_or(&mask).lane.bits();
            let [x, y, mask] = [x, y, mask].map(|m| self.emit.mask_of(&m, bits));
            return Ok(self.emit.select(&mask, &x, &y));
        }
        Ok(self.emit.select(&mask, &x, &y))
    }

    /// What the optimizer must not move accesses across, and no instruction.
    fn fence(&mut self, volatile: bool) {
        if volatile {
            self.emit.b.ins().sequence_point();
        }
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

    fn guard(&mut self, cond: Value, site: u32, values: &[Value]) -> Written {
        let cond = self.one(cond)?;
        let values = values.iter().map(|&v| self.one(v)).collect::<Result<Vec<_>, _>>()?;
        let b = &mut self.emit.b;
        let (on, failed) = (b.create_block(), b.create_block());
        b.set_cold_block(failed);
        b.ins().brif(cond, on, &[], failed, &[]);
        b.seal_block(failed);
        b.seal_block(on);
        self.emit.enter(on);
        self.failures.push((failed, site, values));
        Ok(())
    }

    fn failures(&mut self) {
        for (block, site, values) in std::mem::take(&mut self.failures) {
            let e = &mut self.emit;
            e.enter(block);
            let site = e.iconst(types::I32, i64::from(site));
            e.b.ins().store(ACCESS, site, self.report, offset_of!(Report, site) as i32);
            let count = values.len().min(MAX_VALUES);
            let count = e.iconst(types::I32, count as i64);
            e.b.ins().store(ACCESS, count, self.report, offset_of!(Report, count) as i32);
            for (i, v) in values.into_iter().take(MAX_VALUES).enumerate() {
                let at = offset_of!(Report, values) + 8 * i;
                e.b.ins().store(ACCESS, v, self.report, at as i32);
            }
            let failed = e.iconst(types::I8, 0);
            e.b.ins().return_(&[failed]);
        }
    }

    /// The op that ends a block, as its values.
    fn yields(&self, block: Block) -> Result<Vec<Lanes>, String> {
        match self.func.terminator(block) {
            Some(ThreadOp::Yield { values }) => self.all(values),
            _ => Err(format!("{block} does not yield")),
        }
    }

    /// Parameters of a Cranelift block that take values like these.
    fn block_params(&mut self, block: ir::Block, like: &[Lanes]) -> Made {
        like.iter()
            .map(|x| {
                let ty = part_type(x.lane, x.count);
                let parts =
                    (0..x.num_parts()).map(|_| self.emit.b.append_block_param(block, ty)).collect();
                Lanes::vector(x.lane, x.count, parts)
            })
            .collect()
    }

    /// Arguments for parameters that were made by [`Writer::block_params`]: masks take their width.
    fn block_args(&mut self, params: &[Lanes], values: &[Lanes]) -> Args {
        let mut args = Args::new();
        for (param, value) in params.iter().zip(values) {
            let value = if param.lane == value.lane {
                value.clone()
            } else {
                self.emit.mask_of(value, param.lane.bits())
            };
            args.extend(self.emit.parts(&value).into_iter().map(ir::BlockArg::from));
        }
        args
    }

    fn bind(&mut self, params: &[Value], values: &[Lanes]) {
        for (&p, v) in params.iter().zip(values) {
            self.values[p.index()] = Some(v.clone());
        }
    }

    /// The test stands at the end of the body, and before the loop for the first time.
    ///
    /// Whether another round comes is asked of the induction variable as it is, against the bound
    /// less a step: the next one may wrap where the bound is near the greatest number. The bound less a
    /// step is clamped to the type. Where the step is negative both sides are flipped.
    fn for_loop(
        &mut self,
        bounds: [Value; 3],
        inits: &[Value],
        body: Block,
    ) -> Result<Made, String> {
        let bounds = [self.get(bounds[0])?, self.get(bounds[1])?, self.get(bounds[2])?];
        let inits = self.all(inits)?;
        let ty = bounds[0].lane;
        let known = bounds.each_ref().map(Lanes::known_int);
        let [lower, upper, step] = bounds.map(|b| self.emit.one(&b));
        let flip = match known[2] {
            Some(step) if step >= 0 => None,
            _ => Some(self.emit.b.ins().sshr_imm_u(step, i64::from(ty.bits() - 1))),
        };
        let flipped = |b: &mut FunctionBuilder<'_>, x| match flip {
            None => x,
            Some(flip) => b.ins().bxor(x, flip),
        };
        let least = i64::MIN >> (64 - ty.bits());
        let last = match known {
            [_, Some(upper), Some(step)] if step >= 0 => {
                self.emit.iconst(ty, upper.saturating_sub(step).max(least))
            }
            _ => {
                let least = self.emit.iconst(ty, least);
                let b = &mut self.emit.b;
                let end = flipped(b, upper);
                let size = if flip.is_none() { step } else { b.ins().iabs(step) };
                let room = b.ins().isub(end, least);
                let fits = b.ins().icmp(IntCC::UnsignedLessThanOrEqual, size, room);
                let before = b.ins().isub(end, size);
                b.ins().select(fits, before, least)
            }
        };

        let (inside, exit) = (self.emit.b.create_block(), self.emit.b.create_block());
        let iv = self.emit.b.append_block_param(inside, ty);
        let carried = self.block_params(inside, &inits);
        let results = self.block_params(exit, &inits);
        let mut enter: Args = SmallVec::from_iter([lower.into()]);
        enter.extend(self.block_args(&carried, &inits));
        if matches!(known, [Some(lower), Some(upper), Some(step)] if step >= 0 && lower < upper) {
            self.emit.b.ins().jump(inside, &enter);
        } else {
            let leave = self.block_args(&results, &inits);
            let b = &mut self.emit.b;
            let (end, first) = (flipped(b, upper), flipped(b, lower));
            let enters = b.ins().icmp(IntCC::SignedLessThan, first, end);
            b.ins().brif(enters, inside, &enter, exit, &leave);
        }

        self.emit.enter(inside);
        let params = self.func.block_params(body);
        self.bind(&params[..1], &[Lanes::scalar(ty, iv)]);
        self.bind(&params[1..], &carried);
        self.block(body)?;
        let values = self.yields(body)?;
        let leave = self.block_args(&results, &values);
        let back = self.block_args(&carried, &values);
        let b = &mut self.emit.b;
        let next = b.ins().iadd(iv, step);
        let at = flipped(b, iv);
        let again = b.ins().icmp(IntCC::SignedLessThan, at, last);
        let mut args: Args = SmallVec::from_iter([next.into()]);
        args.extend(back);
        b.ins().brif(again, inside, &args, exit, &leave);
        b.seal_block(inside);
        b.seal_block(exit);
        self.emit.enter(exit);
        Ok(results)
    }

    /// A short test is written twice, before the loop and at its end, so that a round has one branch.
    fn while_loop(&mut self, inits: &[Value], before: Block, after: Block) -> Result<Made, String> {
        let inits = self.all(inits)?;
        if self.is_short(before) {
            return self.rotated(&inits, before, after);
        }
        let test = self.emit.b.create_block();
        let carried = self.block_params(test, &inits);
        let enter = self.block_args(&carried, &inits);
        self.emit.b.ins().jump(test, &enter);

        self.emit.enter(test);
        let (cond, passed) = self.test(before, &carried)?;
        let (inside, exit) = (self.emit.b.create_block(), self.emit.b.create_block());
        self.emit.b.ins().brif(cond, inside, &[], exit, &[]);
        self.emit.b.seal_block(inside);
        self.emit.b.seal_block(exit);

        self.emit.enter(inside);
        self.bind(self.func.block_params(after), &passed);
        self.block(after)?;
        let values = self.yields(after)?;
        let back = self.block_args(&carried, &values);
        self.emit.b.ins().jump(test, &back);
        self.emit.b.seal_block(test);
        self.emit.enter(exit);
        Ok(passed.into())
    }

    fn rotated(&mut self, inits: &[Lanes], before: Block, after: Block) -> Result<Made, String> {
        let (cond, passed) = self.test(before, inits)?;
        let (inside, exit) = (self.emit.b.create_block(), self.emit.b.create_block());
        let params = self.block_params(inside, &passed);
        let results = self.block_params(exit, &passed);
        let [enter, leave] = [&params, &results].map(|p| self.block_args(p, &passed));
        self.emit.b.ins().brif(cond, inside, &enter, exit, &leave);

        self.emit.enter(inside);
        self.bind(self.func.block_params(after), &params);
        self.block(after)?;
        let values = self.yields(after)?;
        let (cond, passed) = self.test(before, &values)?;
        let [back, leave] = [&params, &results].map(|p| self.block_args(p, &passed));
        self.emit.b.ins().brif(cond, inside, &back, exit, &leave);
        self.emit.b.seal_block(inside);
        self.emit.b.seal_block(exit);
        self.emit.enter(exit);
        Ok(results)
    }

    /// Whether a block is worth writing twice.
    fn is_short(&self, block: Block) -> bool {
        let insts = self.func.insts(block);
        let mut straight = true;
        for &inst in insts {
            self.func.op(inst).each_block(&mut |_| straight = false);
        }
        straight && insts.len() <= 8
    }

    /// Writes a loop's test; gives its condition and what it passes on.
    fn test(&mut self, before: Block, args: &[Lanes]) -> Result<(ir::Value, Vec<Lanes>), String> {
        self.bind(self.func.block_params(before), args);
        self.block(before)?;
        match self.func.terminator(before) {
            Some(ThreadOp::Condition { cond, values }) => Ok((self.one(*cond)?, self.all(values)?)),
            _ => Err(format!("{before} has no condition")),
        }
    }

    fn if_else(&mut self, cond: Value, then: Block, otherwise: Block) -> Result<Made, String> {
        let cond = self.one(cond)?;
        let b = &mut self.emit.b;
        let (yes, no, join) = (b.create_block(), b.create_block(), b.create_block());
        b.ins().brif(cond, yes, &[], no, &[]);
        b.seal_block(yes);
        b.seal_block(no);

        self.emit.enter(yes);
        self.block(then)?;
        let values = self.yields(then)?;
        let results = self.block_params(join, &values);
        let args = self.block_args(&results, &values);
        self.emit.b.ins().jump(join, &args);

        self.emit.enter(no);
        self.block(otherwise)?;
        let values = self.yields(otherwise)?;
        let args = self.block_args(&results, &values);
        self.emit.b.ins().jump(join, &args);
        self.emit.b.seal_block(join);
        self.emit.enter(join);
        Ok(results)
    }
}

/// Values of a report.
const MAX_VALUES: usize = 4;

/// What a jump passes on.
type Args = SmallVec<[ir::BlockArg; 8]>;

/// The values that an op makes.
type Made = SmallVec<[Lanes; 1]>;

fn int_of(lane: ir::Type) -> ir::Type {
    super::lanes::int_type(lane.bits())
}

/// How a scalar is passed to the runtime.
fn abi_type(ty: ThreadType) -> ir::Type {
    ty.vector().map_or(types::INVALID, |v| lane_type(v.elem))
}
