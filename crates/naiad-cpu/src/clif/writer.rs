//! The walk over the ops, and control flow.

use super::frame::Frame;
use super::lanes::{Emit, Lanes, Pool, lane_type, lanes_in_part, part_type};
use super::memory::{ACCESS, Place};
use super::target::Target;
use super::{Error, Report, RuntimeTable, aside, fault};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, AtomicRmwOp, InstBuilder, Signature, StackSlot, StackSlotData, StackSlotKind,
    types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use naiad_ir::scalar::Predicate;
use naiad_ir::thread::{RuntimeFn, Thread, ThreadElem, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::AtomicOp;
use naiad_ir::{Block, Def, Function, Inst, OpInfo, Scalar, Value};
use rustc_hash::{FxHashMap, FxHashSet};
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
        implied: implied(func),
        layout: Frame::new(func),
        frame,
        report,
        result: None,
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
    /// Comparisons that need not be made.
    implied: FxHashSet<Inst>,
    layout: Frame,
    frame: ir::Value,
    report: ir::Value,
    /// Where calls aside put their results.
    result: Option<StackSlot>,
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
        let slot = *self.result.get_or_insert_with(|| {
            e.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3))
        });
        let result = e.b.ins().stack_addr(types::I64, slot, 0);
        let function = e.iconst(types::I64, self.table.address(f) as i64);
        let between = e.iconst(types::I64, aside::address() as i64);
        let args = [args, &[result, function]].concat();
        e.b.ins().call_indirect(signature, between, &args);
        e.b.ins().load(types::I8, ACCESS, result, 0)
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

    /// ```text
    ///   jump test(lower, inits)
    ///   test(iv, carried):  brif iv < upper, inside, exit
    ///   inside:             ...; jump test(iv + step, next)
    /// ```
    ///
    /// The test is in front, so that what is carried is passed on in one place: Cranelift takes loads
    /// into instructions only where nothing above them is used twice. A test behind would cost the
    /// same two jumps a round, since what it passes on has to be moved on the way.
    ///
    /// A loop that counts down is turned round: all bits flipped, it counts up. What is narrower than 64
    /// bits is counted in 64, where bound plus step fits. In 64 bits the induction variable may wrap
    /// before it reaches the bound, so that the rounds are counted instead.
    fn for_loop(
        &mut self,
        bounds: [Value; 3],
        inits: &[Value],
        body: Block,
    ) -> Result<Made, String> {
        let bounds = [self.get(bounds[0])?, self.get(bounds[1])?, self.get(bounds[2])?];
        let inits = self.all(inits)?;
        let (narrow, wide) = (bounds[0].lane, types::I64);
        let bounds = bounds.map(|x| self.emit.resize(&x, 64, true));
        let known = [1, 2].map(|i| bounds[i].known_int());
        let [mut lower, mut upper, step] = bounds.map(|x| self.emit.one(&x));
        let counts_up = known[1].is_some_and(|step| step >= 0);
        let flip = self.emit.b.ins().sshr_imm_u(step, 63);
        let mut size = step;
        if !counts_up {
            let b = &mut self.emit.b;
            [lower, upper] = [lower, upper].map(|x| b.ins().bxor(x, flip));
            size = b.ins().iabs(step);
        }
        let fits = matches!(known, [Some(end), Some(by)] if end.checked_add(by).is_some());
        let rounds = if narrow == wide && !(fits && counts_up) {
            Some(self.rounds(lower, upper, size, known[1].filter(|_| counts_up)))
        } else {
            None
        };

        let [test, inside, exit] = [0; 3].map(|_| self.emit.b.create_block());
        let [at, left] = [0; 2].map(|_| self.emit.b.append_block_param(test, wide));
        let carried = self.block_params(test, &inits);
        let mut enter: Args = SmallVec::from_iter([lower.into(), rounds.unwrap_or(lower).into()]);
        enter.extend(self.block_args(&carried, &inits));
        self.emit.b.ins().jump(test, &enter);
        self.emit.enter(test);
        // The block that is named last is laid out first, which is to be the body.
        let b = &mut self.emit.b;
        let ends = match rounds {
            Some(_) => b.ins().icmp_imm_u(IntCC::Equal, left, 0),
            None => b.ins().icmp(IntCC::SignedGreaterThanOrEqual, at, upper),
        };
        b.ins().brif(ends, exit, &[], inside, &[]);
        self.emit.b.seal_block(inside);
        self.emit.b.seal_block(exit);

        self.emit.enter(inside);
        let iv = if counts_up { at } else { self.emit.b.ins().bxor(at, flip) };
        let iv = self.emit.resize(&Lanes::scalar(wide, iv), narrow.bits(), true);
        let params = self.func.block_params(body);
        self.bind(&params[..1], &[iv]);
        self.bind(&params[1..], &carried);
        self.block(body)?;
        let values = self.yields(body)?;
        let b = &mut self.emit.b;
        let next = b.ins().iadd(at, size);
        let left = if rounds.is_some() { b.ins().iadd_imm_s(left, -1) } else { next };
        let mut back: Args = SmallVec::from_iter([next.into(), left.into()]);
        back.extend(self.block_args(&carried, &values));
        self.emit.b.ins().jump(test, &back);
        self.emit.b.seal_block(test);
        self.emit.enter(exit);
        Ok(carried)
    }

    /// How often a loop that counts up runs. One that never moves on never ends, as far as anybody
    /// can tell.
    fn rounds(
        &mut self,
        lower: ir::Value,
        upper: ir::Value,
        size: ir::Value,
        known: Option<i64>,
    ) -> ir::Value {
        let b = &mut self.emit.b;
        let runs = b.ins().icmp(IntCC::SignedLessThan, lower, upper);
        let distance = b.ins().isub(upper, lower);
        let before_last = b.ins().iadd_imm_s(distance, -1);
        let whole = match known {
            Some(size) if size > 0 && size.count_ones() == 1 => {
                b.ins().ushr_imm_u(before_last, i64::from(size.trailing_zeros()))
            }
            Some(size) if size > 0 => {
                let size = b.ins().iconst(types::I64, size);
                b.ins().udiv(before_last, size)
            }
            _ => {
                let one = b.ins().iconst(types::I64, 1);
                let divisor = b.ins().umax(size, one);
                let whole = b.ins().udiv(before_last, divisor);
                let forever = b.ins().iconst(types::I64, i64::MAX);
                b.ins().select(size, whole, forever)
            }
        };
        let rounds = b.ins().iadd_imm_s(whole, 1);
        let none = b.ins().iconst(types::I64, 0);
        b.ins().select(runs, rounds, none)
    }

    fn while_loop(&mut self, inits: &[Value], before: Block, after: Block) -> Result<Made, String> {
        let inits = self.all(inits)?;
        let [test, inside, exit] = [0; 3].map(|_| self.emit.b.create_block());
        let carried = self.block_params(test, &inits);
        let enter = self.block_args(&carried, &inits);
        self.emit.b.ins().jump(test, &enter);

        self.emit.enter(test);
        self.bind(self.func.block_params(before), &carried);
        self.block(before)?;
        let Some(ThreadOp::Condition { cond, values }) = self.func.terminator(before) else {
            return Err(format!("{before} has no condition"));
        };
        let (cond, passed) = (self.one(*cond)?, self.all(values)?);
        let b = &mut self.emit.b;
        let ends = b.ins().icmp_imm_u(IntCC::Equal, cond, 0);
        b.ins().brif(ends, exit, &[], inside, &[]);
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
