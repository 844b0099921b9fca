//! The walk over the ops.

use crate::atomics::Order;
use crate::emit::{Class, Emit, Lanes, Operand};
use crate::lines::Lines;
use crate::memory::{Place, Space};
use crate::print::Prints;
use crate::{Error, Kernel, Target};
use naiad_ir::scalar::Rounding;
use naiad_ir::thread::{Thread, ThreadElem, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::{Constant, MachineFact, MemHints};
use naiad_ir::{Block, Function, Inst, OpInfo, Scalar, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// The values that an op makes.
pub type Made = SmallVec<[Lanes; 1]>;

pub type Written = Result<(), String>;

/// What a kernel's body comes to.
pub struct Body {
    pub emit: Emit,
    pub params: Vec<&'static str>,
    pub uses_shared: bool,
    pub prints: Prints,
    pub lines: Option<Lines>,
}

/// Writes the ops of a function that has native ones only.
pub fn write(
    kernel: &Kernel<'_>,
    func: &Function<Thread>,
    [name, shared]: [&str; 2],
    target: Target,
) -> Result<Body, Error> {
    let mut writer = Writer {
        func,
        name,
        shared,
        shared_bytes: kernel.shared_bytes,
        emit: Emit::new(target),
        values: vec![None; func.num_values()],
        regs: FxHashMap::default(),
        uses_shared: false,
        prints: Prints::default(),
        lines: kernel.lines.then(Lines::default),
        at: "a parameter",
    };
    let written = writer.params().and_then(|params| {
        writer.block(func.entry())?;
        Ok(params)
    });
    match written {
        Ok(params) => {
            let Writer { emit, uses_shared, prints, lines, .. } = writer;
            Ok(Body { params, uses_shared, prints, lines, emit })
        }
        Err(why) => Err(Error { kernel: func.name.clone(), op: writer.at, why }),
    }
}

pub struct Writer<'f> {
    pub func: &'f Function<Thread>,
    /// The name of the entry.
    pub name: &'f str,
    /// The name of the block's shared memory.
    shared: &'f str,
    shared_bytes: u32,
    pub emit: Emit,
    values: Vec<Option<Lanes>>,
    /// Arrays of registers.
    regs: FxHashMap<Value, Vec<Lanes>>,
    uses_shared: bool,
    pub prints: Prints,
    /// The kernel's lines, if the text is to show them.
    lines: Option<Lines>,
    /// The name of the op that is being written.
    at: &'static str,
}

impl Writer<'_> {
    /// Reads the parameters; gives their types in PTX.
    fn params(&mut self) -> Result<Vec<&'static str>, String> {
        let mut types = Vec::new();
        for (i, &param) in self.func.params().iter().enumerate() {
            let v = self.vector(param)?;
            if !v.is_scalar() {
                return Err(format!("parameter {i} is a vector, {v}"));
            }
            let class = Class::of(v.elem);
            let ty = match v.elem.bits() {
                1 | 8 if v.elem.scalar().is_some_and(Scalar::is_signed) => "s8",
                1 | 8 => "u8",
                _ => class.ty(),
            };
            types.push(ty);
            let loaded = if class == Class::Pred { Class::Word } else { class };
            let dst = self.emit.fresh(loaded);
            self.emit.line(format_args!("ld.param.{ty} {dst}, [param_{i}]"));
            let value = match v.elem {
                ThreadElem::Addr => self.emit.ins("cvta.to.global.u64", Class::Double, [dst]),
                _ if class == Class::Pred => self.emit.setp("setp.ne.u32", dst, Operand::word(0)),
                _ => dst,
            };
            self.set(param, smallvec![value]);
        }
        Ok(types)
    }

    pub fn vector(&self, v: Value) -> Result<Vector, String> {
        match self.func.ty(v) {
            ThreadType::Vector(v) => Ok(v),
            ThreadType::Regs { .. } => Err(format!("{v} is an array of registers")),
        }
    }

    pub fn scalar(&self, v: Value) -> Result<Scalar, String> {
        let v = self.vector(v)?;
        v.elem.scalar().ok_or_else(|| format!("{v} is no number"))
    }

    pub fn get(&self, v: Value) -> Result<Lanes, String> {
        self.values[v.index()].clone().ok_or_else(|| format!("{v} is used before it is made"))
    }

    /// The one lane of a scalar.
    pub fn one(&self, v: Value) -> Result<Operand, String> {
        match self.get(v)?.as_slice() {
            &[one] => Ok(one),
            _ => Err(format!("{v} is no scalar")),
        }
    }

    pub fn all(&self, values: &[Value]) -> Result<Made, String> {
        values.iter().map(|&v| self.get(v)).collect()
    }

    fn scalars(&self, values: &[Value]) -> Result<Lanes, String> {
        values.iter().map(|&v| self.one(v)).collect()
    }

    fn mask(&self, mask: &Option<Value>) -> Result<Option<Lanes>, String> {
        mask.map(|m| self.get(m)).transpose()
    }

    pub fn set(&mut self, v: Value, lanes: Lanes) {
        self.values[v.index()] = Some(lanes);
    }

    pub fn set_all(&mut self, to: &[Value], values: Made) {
        for (&v, lanes) in to.iter().zip(values) {
            self.set(v, lanes);
        }
    }

    /// Writes the ops of a block; those that end it are for the caller, but for `return`.
    pub fn block(&mut self, block: Block) -> Written {
        for &inst in self.func.insts(block) {
            self.inst(inst)?;
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Written {
        let op = self.func.op(inst);
        self.at = op.name();
        if let Some(lines) = &mut self.lines
            && let Some(line) = lines.of(self.func, inst)
        {
            self.emit.line_of = Some(line);
        }
        let made = self.op(inst, op)?;
        let results = self.func.results(inst);
        if made.len() != results.len() {
            return Err(format!("{} values were made", made.len()));
        }
        self.set_all(results, made);
        Ok(())
    }

    /// The same of every lane.
    fn lanewise<const N: usize>(
        &mut self,
        values: [Value; N],
        mut f: impl FnMut(&mut Emit, [Operand; N]) -> Result<Operand, String>,
    ) -> Result<Lanes, String> {
        let all = self.all(&values)?;
        let count = all.first().map_or(0, |lanes| lanes.len());
        (0..count).map(|i| f(&mut self.emit, std::array::from_fn(|j| all[j][i]))).collect()
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn op(&mut self, inst: Inst, op: &ThreadOp) -> Result<Made, String> {
        let value = match op {
            ThreadOp::Const { value, lanes } => {
                let lane = constant(*value);
                (0..lanes.0).map(|_| lane).collect()
            }
            ThreadOp::Iota { elem, lanes } => {
                let of = elem.scalar().unwrap_or(Scalar::I32);
                (0..lanes.0).map(|i| constant(Constant::int(of, i.into()))).collect()
            }
            ThreadOp::Splat { src, lanes } => {
                let lane = self.one(*src)?;
                (0..lanes.0).map(|_| lane).collect()
            }
            ThreadOp::Extract { src, lane } => smallvec![self.get(*src)?[*lane as usize]],
            ThreadOp::Shuffle { a, b, order } => {
                let lanes = [self.get(*a)?, self.get(*b)?].concat();
                order.0.iter().map(|&i| lanes[i as usize]).collect()
            }
            ThreadOp::Pack { lanes } => self.scalars(lanes)?,
            ThreadOp::Any { mask } => {
                let none = Operand::Imm(Class::Pred, 0);
                let lanes = self.get(*mask)?;
                smallvec![lanes.iter().fold(none, |any, &x| self.emit.or(any, x))]
            }
            ThreadOp::All { mask } => {
                let every = Operand::Imm(Class::Pred, 1);
                let lanes = self.get(*mask)?;
                smallvec![lanes.iter().fold(every, |all, &x| self.emit.and(all, x))]
            }
            ThreadOp::Unary { f, x } => {
                let of = self.scalar(*x)?;
                self.lanewise([*x], |e, [x]| e.unary(*f, of, x))?
            }
            ThreadOp::Binary { f, a, b } => {
                let of = self.scalar(*a)?;
                self.lanewise([*a, *b], |e, [x, y]| e.binary(*f, of, x, y))?
            }
            ThreadOp::Ternary { f, a, b, c } => {
                let of = self.scalar(*a)?;
                self.lanewise([*a, *b, *c], |e, args| e.ternary(*f, of, args))?
            }
            ThreadOp::Compare { p, a, b } => {
                let of = self.vector(*a)?.elem;
                self.lanewise([*a, *b], |e, [x, y]| Ok(e.compare(*p, of, x, y)))?
            }
            ThreadOp::Select { cond, yes, no } => {
                self.lanewise([*cond, *yes, *no], |e, [c, x, y]| Ok(e.select(c, x, y)))?
            }
            ThreadOp::Cast { src, to, rounding } => {
                let (from, x) = (self.scalar(*src)?, self.get(*src)?);
                self.emit.cast(from, *to, *rounding, &x)
            }
            ThreadOp::Bitcast { src, to } => {
                let from = self.vector(*src)?.elem;
                self.lanewise([*src], |e, [x]| Ok(e.bitcast(from, *to, x)))?
            }
            ThreadOp::AddrAdd { addr, offset } => {
                self.lanewise([*addr, *offset], |e, xy| Ok(e.ins("add.s64", Class::Double, xy)))?
            }
            ThreadOp::Load { addr, disp, elem, lanes, mask, hints } => {
                let place = self.place(Space::Global, *addr, *disp)?;
                let mask = self.mask(mask)?;
                self.emit.load(*elem, lanes.0 as usize, place, mask.as_deref(), *hints)
            }
            ThreadOp::SharedLoad { at, disp, elem, lanes, mask } => {
                let place = self.place(Space::Shared, *at, *disp)?;
                let (mask, hints) = (self.mask(mask)?, MemHints::default());
                self.emit.load(*elem, lanes.0 as usize, place, mask.as_deref(), hints)
            }
            ThreadOp::Store { addr, value, disp, mask, hints } => {
                let place = self.place(Space::Global, *addr, *disp)?;
                let (elem, mask) = (self.vector(*value)?.elem, self.mask(mask)?);
                let value = self.get(*value)?;
                self.emit.store(elem, &value, place, mask.as_deref(), *hints);
                return Ok(Made::new());
            }
            ThreadOp::SharedStore { at, value, disp, mask } => {
                let place = self.place(Space::Shared, *at, *disp)?;
                let (elem, mask) = (self.vector(*value)?.elem, self.mask(mask)?);
                let value = self.get(*value)?;
                self.emit.store(elem, &value, place, mask.as_deref(), MemHints::default());
                return Ok(Made::new());
            }
            ThreadOp::Gather { addr, elem, mask } => {
                let (at, mask) = (self.get(*addr)?, self.mask(mask)?);
                self.emit.gather(*elem, &at, mask.as_deref())
            }
            ThreadOp::Scatter { addr, value, mask } => {
                let (elem, mask) = (self.vector(*value)?.elem, self.mask(mask)?);
                let (at, value) = (self.get(*addr)?, self.get(*value)?);
                self.emit.scatter(elem, &value, &at, mask.as_deref());
                return Ok(Made::new());
            }
            ThreadOp::Atomic { f, addr, value, sem, scope } => {
                let place = self.place(Space::Global, *addr, 0)?;
                let order = Order { sem: *sem, scope: *scope };
                let (of, x) = (self.scalar(*value)?, self.one(*value)?);
                smallvec![self.emit.atomic(*f, of, place, x, order)?]
            }
            ThreadOp::SharedAtomic { f, at, value } => {
                let place = self.place(Space::Shared, *at, 0)?;
                let (of, x) = (self.scalar(*value)?, self.one(*value)?);
                smallvec![self.emit.atomic(*f, of, place, x, Order::SHARED)?]
            }
            ThreadOp::AtomicCas { addr, compare, value, sem, scope } => {
                let place = self.place(Space::Global, *addr, 0)?;
                let of = self.scalar(*value)?;
                let (old, new) = (self.one(*compare)?, self.one(*value)?);
                let order = Order { sem: *sem, scope: *scope };
                smallvec![self.emit.swap(of, place, old, new, order)]
            }
            ThreadOp::AtomicLoad { addr, elem, sem, scope } => {
                let (base, order) = (self.one(*addr)?, Order { sem: *sem, scope: *scope });
                smallvec![self.emit.atomic_load(*elem, base, order)]
            }
            ThreadOp::AtomicStore { addr, value, sem, scope } => {
                let (elem, order) = (self.vector(*value)?.elem, Order { sem: *sem, scope: *scope });
                let (base, value) = (self.one(*addr)?, self.one(*value)?);
                self.emit.atomic_store(elem, base, value, order);
                return Ok(Made::new());
            }
            ThreadOp::Regs { elem, lanes, count } => {
                let class = Class::of(*elem);
                let mut register = || -> Lanes {
                    let zero = Operand::Imm(class, 0);
                    (0..lanes.0).map(|_| self.emit.copy(zero)).collect()
                };
                let array = (0..*count).map(|_| register()).collect();
                self.regs.insert(self.func.results(inst)[0], array);
                // The value itself is never asked for.
                Lanes::new()
            }
            ThreadOp::RegsGet { regs, index } => {
                // A copy: the register may be written to while the value is still read.
                let register = self.register(*regs, *index)?;
                register.iter().map(|&x| self.emit.copy(x)).collect()
            }
            ThreadOp::RegsSet { regs, value, index } => {
                let (register, value) = (self.register(*regs, *index)?, self.get(*value)?);
                for (&target, &x) in register.iter().zip(&value) {
                    self.emit.mov(target, x);
                }
                return Ok(Made::new());
            }
            ThreadOp::ThreadId {} => smallvec![self.special("%tid.x")],
            ThreadOp::BlockId { axis } => {
                smallvec![self.special(["%ctaid.x", "%ctaid.y", "%ctaid.z"][*axis as usize % 3])]
            }
            ThreadOp::NumBlocks { axis } => {
                smallvec![self.special(["%nctaid.x", "%nctaid.y", "%nctaid.z"][*axis as usize % 3])]
            }
            ThreadOp::SharedBase {} => {
                if self.shared_bytes == 0 {
                    return Err("the kernel has no shared memory".to_string());
                }
                self.uses_shared = true;
                smallvec![self.special(self.shared)]
            }
            ThreadOp::Barrier {} => return self.statement("bar.sync 0"),
            ThreadOp::BlockVote { mode, cond } => {
                let cond = self.one(*cond)?;
                smallvec![self.emit.block_vote(*mode, cond)]
            }
            ThreadOp::WarpBarrier {} => {
                self.emit.warp_barrier();
                return Ok(Made::new());
            }
            ThreadOp::AsyncCopy { at, addr, disp, bytes, mask } => {
                let to = self.place(Space::Shared, *at, 0)?;
                let from = self.place(Space::Global, *addr, *disp)?;
                let mask = mask.map(|m| self.one(m)).transpose()?;
                self.emit.async_copy(to, from, *bytes, mask);
                return Ok(Made::new());
            }
            ThreadOp::AsyncCommit {} => return self.statement("cp.async.commit_group"),
            ThreadOp::AsyncWait { pending } => {
                return self.statement(&format!("cp.async.wait_group {pending}"));
            }
            ThreadOp::WarpShuffle { mode, src, lane } => {
                let (elem, x, lane) = (self.vector(*src)?.elem, self.one(*src)?, self.one(*lane)?);
                smallvec![self.emit.warp_shuffle(*mode, elem, x, lane)]
            }
            ThreadOp::WarpVote { mode, cond } => {
                let cond = self.one(*cond)?;
                smallvec![self.emit.warp_vote(*mode, cond)]
            }
            ThreadOp::LoadMatrix { at, disp, count, transposed } => {
                let place = self.place(Space::Shared, *at, *disp)?;
                let words = self.emit.load_matrix(place, *count, *transposed);
                return Ok(words.into_iter().map(|w| smallvec![w]).collect());
            }
            ThreadOp::Mma { kind, a, b, c } => {
                let (a, b, c) = (self.scalars(a)?, self.scalars(b)?, self.scalars(c)?);
                let words = self.emit.mma(*kind, &a, &b, &c)?;
                return Ok(words.into_iter().map(|w| smallvec![w]).collect());
            }
            ThreadOp::Native { f, args } => {
                let args = self.all(args)?;
                let count = args.first().map_or(0, |lanes| lanes.len());
                let lane = |i| {
                    let args: Lanes = args.iter().map(|lanes| lanes[i]).collect();
                    self.emit.native(*f, &args)
                };
                (0..count).map(lane).collect()
            }
            ThreadOp::Machine { what: MachineFact::GlobalTimer } => {
                let dst = self.emit.fresh(Class::Double);
                self.emit.line(format_args!("mov.u64 {dst}, %globaltimer"));
                smallvec![dst]
            }
            ThreadOp::Machine { what: MachineFact::Smid } => smallvec![self.special("%smid")],
            ThreadOp::Asm { text, constraints, args, results, is_pure: _ } => {
                let args = args
                    .iter()
                    .map(|&v| Ok((self.vector(v)?.elem, self.one(v)?)))
                    .collect::<Result<Vec<_>, String>>()?;
                return Ok(self.emit.assembly(&text.0, &constraints.0, &args, results)?.into());
            }
            ThreadOp::Print { .. } => return self.print(op),
            ThreadOp::Exit {} => return self.statement("exit"),
            ThreadOp::Trap {} => return self.statement("trap"),
            ThreadOp::For { lower, upper, step, inits, body } => {
                return self.for_loop([*lower, *upper, *step], inits, *body);
            }
            ThreadOp::While { inits, before, after } => {
                return self.while_loop(inits, *before, *after);
            }
            ThreadOp::If { cond, then, otherwise } => {
                return self.if_else(*cond, *then, *otherwise);
            }
            ThreadOp::Return {} => return self.statement("ret"),
            ThreadOp::Scratch { .. } | ThreadOp::RuntimeCall { .. } | ThreadOp::Guard { .. } => {
                return Err("only a CPU has it".to_string());
            }
            // These belong to the op around them.
            ThreadOp::Yield { .. } | ThreadOp::Condition { .. } => return Ok(Made::new()),
        };
        Ok(SmallVec::from_iter([value]))
    }

    fn statement(&mut self, text: &str) -> Result<Made, String> {
        self.emit.line(format_args!("{text}"));
        Ok(Made::new())
    }

    /// A special register, or the address of a variable, as a word.
    fn special(&mut self, name: &str) -> Operand {
        let dst = self.emit.fresh(Class::Word);
        self.emit.line(format_args!("mov.u32 {dst}, {name}"));
        dst
    }

    fn place(&mut self, space: Space, base: Value, disp: i64) -> Result<Place, String> {
        Ok(Place { space, base: self.one(base)?, disp })
    }

    fn register(&self, regs: Value, index: u32) -> Result<Lanes, String> {
        let array = self.regs.get(&regs).ok_or_else(|| format!("{regs} is not declared"))?;
        array.get(index as usize).cloned().ok_or_else(|| format!("no register {index}"))
    }
}

impl Emit {
    /// The same bits as another element.
    pub fn bitcast(&mut self, from: ThreadElem, to: ThreadElem, x: Operand) -> Operand {
        let signed = |elem: ThreadElem| elem.scalar().is_some_and(Scalar::is_signed);
        if to.bits() == 8 && signed(from) != signed(to) { self.extend_byte(to, x) } else { x }
    }

    /// An integer of a counted loop, with its sign whatever its type, as a word or double.
    pub fn counter(&mut self, of: Scalar, x: Operand) -> Operand {
        let signed = match of.bits() {
            8 => Scalar::I8,
            16 => Scalar::I16,
            _ => return x,
        };
        if let Some(value) = x.known_int() {
            return Operand::word(if of.bits() == 8 { value as i8 as i64 } else { value });
        }
        let x = self.bitcast(of.into(), signed.into(), x);
        self.cast(signed, Scalar::I32, Rounding::Nearest, &[x])[0]
    }
}

/// A constant in the form in which its type is held.
fn constant(value: Constant) -> Operand {
    let class = Class::of(value.ty.into());
    match value.as_int() {
        Some(int) if value.ty.bits() == 8 => Operand::imm(class, int as i64),
        _ => Operand::Imm(class, value.bits),
    }
}
