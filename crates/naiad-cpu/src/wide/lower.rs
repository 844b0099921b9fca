//! From ops to instructions, op by op. What is not here makes the loop fall back to Cranelift.
//!
//! A vector is parts of at most a register; if it is narrower than 128 bits, it lies in the low lanes.
//! A mask is, on AVX-512, mask registers with as many lanes each as what made it had in a register;
//! on AVX2, vectors with lanes of ones or zeros, as wide as what made it had them. Converting is left
//! to where a mask meets another width.

use super::code::{Carried, Code, Stream};
use super::machine::{Addr, Class, Inst as Instruction, Level, Op, Reg, Width};
use super::select::{Form, Loop, Step};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{ThreadElem, ThreadOp, Vector};
use naiad_ir::tile::{Eviction, MemHints};
use naiad_ir::{Inst, Scalar, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

pub type Parts = SmallVec<[Reg; 4]>;

/// A vector or a mask.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// Bits of a lane; of a mask in mask registers 1.
    pub bits: u32,
    pub count: u32,
    /// Lanes in each part.
    pub each: u32,
    pub parts: Parts,
}

pub struct Lower<'f> {
    pub l: &'f Loop<'f>,
    pub code: Code,
    values: FxHashMap<Value, Lanes>,
    /// Streams that exist: where they start but for the constant, and that.
    streams: Vec<(Form, i64)>,
}

/// The loop as instructions; none if it has something that is not written here.
pub fn lower(l: &Loop<'_>, level: Level) -> Option<Code> {
    let mut lower = Lower {
        l,
        code: Code::new(level, l.step),
        values: FxHashMap::default(),
        streams: Vec::new(),
    };
    let mut carried: Vec<(Lanes, Lanes)> = Vec::new();
    for (&param, &init) in l.params.iter().zip(l.inits) {
        let init = lower.get(init)?;
        let of = l.func.ty(param).vector()?;
        if is_bool(of) {
            return None;
        }
        let parts = init.parts.iter();
        let class = Class::Vector;
        let parts =
            parts.map(|&r| lower.code.reg(class, lower.code.info(r).width, false)).collect();
        let lanes = Lanes { parts, ..init.clone() };
        lower.values.insert(param, lanes.clone());
        carried.push((lanes, init));
    }
    for &inst in &l.ops {
        lower.inst(inst)?;
    }
    for ((param, init), &next) in carried.into_iter().zip(l.yields) {
        let next = lower.get(next)?;
        let width = lower.width(param.bits, param.count);
        let at = lower.code.room((param.parts.len() as u32 * width.bytes()).max(16));
        lower.code.results.push(at);
        for (i, &param) in param.parts.iter().enumerate() {
            let out = Some(at + i as u32 * width.bytes());
            let (init, next) = (init.parts[i], next.parts[i]);
            lower.code.carried.push(Carried { param, init, next, out });
        }
    }
    lower.code.sweep();
    lower.read_ahead();
    Some(lower.code)
}

/// How far ahead a loop asks for what it will read, in bytes, and one of so few instructions for each line
/// that the machine itself looks far ahead.
const AHEAD: i32 = 4096;
const AHEAD_OF_FEW: i32 = 2048;
const FEW: usize = 7;

/// Bytes of a line of cache.
const LINE: i32 = 64;

pub fn is_bool(of: Vector) -> bool {
    of.elem == ThreadElem::Scalar(Scalar::I1)
}

impl Lower<'_> {
    pub fn level(&self) -> Level {
        self.code.level
    }

    pub fn avx512(&self) -> bool {
        self.code.level == Level::Avx512
    }

    /// The width of a part of a vector.
    pub fn width(&self, bits: u32, count: u32) -> Width {
        Width::of((bits * count / 8).min(self.level().bytes()))
    }

    /// Lanes in each part of a vector.
    pub fn each(&self, bits: u32, count: u32) -> u32 {
        count.min(self.level().bytes() * 8 / bits)
    }

    pub fn vector(&self, bits: u32, count: u32, parts: Parts) -> Lanes {
        let each = self.each(bits, count);
        debug_assert_eq!(parts.len() as u32, count / each);
        Lanes { bits, count, each, parts }
    }

    pub fn ty(&self, v: Value) -> Option<Vector> {
        self.l.func.ty(v).vector()
    }

    pub fn scalar_of(&self, v: Value) -> Option<Scalar> {
        self.ty(v)?.elem.scalar()
    }

    /// The constant that a value is.
    pub fn known(&self, v: Value) -> Option<u64> {
        match self.l.func.defining_op(v)? {
            ThreadOp::Const { value, .. } => Some(value.bits),
            ThreadOp::Splat { src, .. } => self.known(*src),
            _ => None,
        }
    }

    /// The registers of a vector.
    pub fn get(&mut self, v: Value) -> Option<Lanes> {
        if let Some(lanes) = self.values.get(&v) {
            return Some(lanes.clone());
        }
        let of = self.ty(v)?;
        if of.is_scalar() {
            return None;
        }
        // Made outside, or of scalars.
        let lanes = match self.l.func.defining_op(v) {
            Some(ThreadOp::Const { value, .. }) => self.constant(of, value.bits)?,
            Some(ThreadOp::Splat { src, .. }) => self.splat(*src, of)?,
            Some(ThreadOp::Iota { .. }) => self.iota(of)?,
            _ if self.l.is_inside(v) => return None,
            _ => self.live_in(v, of)?,
        };
        self.values.insert(v, lanes.clone());
        Some(lanes)
    }

    pub fn constant(&mut self, of: Vector, image: u64) -> Option<Lanes> {
        if is_bool(of) {
            let bytes = self.constant(Vector::of(Scalar::U8.into(), of.lanes), image)?;
            return self.bytes_to_mask(&bytes);
        }
        let bits = of.elem.size() as u32 * 8;
        let width = self.width(bits, of.lanes);
        let part = self.code.splat(width, bits, image);
        Some(self.repeat(bits, of.lanes, part))
    }

    pub fn repeat(&self, bits: u32, count: u32, part: Reg) -> Lanes {
        let each = self.each(bits, count);
        Lanes { bits, count, each, parts: smallvec![part; (count / each) as usize] }
    }

    fn splat(&mut self, src: Value, of: Vector) -> Option<Lanes> {
        let form = self.l.form(src)?;
        let bits = of.elem.size() as u32 * 8;
        let width = self.width(bits, of.lanes);
        let start = self.code.scalar(width, bits, src);
        let step = match form.step {
            Step::Known(0) => {
                let all = self.repeat(bits, of.lanes, start);
                return if is_bool(of) { self.bytes_to_mask(&all) } else { Some(all) };
            }
            Step::Known(step) => step.wrapping_mul(self.l.step) as u64,
            Step::Unknown => return None,
        };
        let add = sized(bits, [Some(Op::AddB), Some(Op::AddW), Some(Op::AddD), Some(Op::AddQ)])?;
        let param = self.code.reg(Class::Vector, width, false);
        let by = self.code.splat(width, bits, step & (u64::MAX >> (64 - bits)));
        let next = self.code.op(add, width, &[param, by]);
        self.code.carried.push(Carried { param, init: start, next, out: None });
        Some(self.repeat(bits, of.lanes, param))
    }

    fn iota(&mut self, of: Vector) -> Option<Lanes> {
        let size = of.elem.size();
        let width = self.width(size as u32 * 8, of.lanes);
        let each = self.each(size as u32 * 8, of.lanes);
        let parts = (0..of.lanes / each)
            .map(|p| {
                let mut bytes = vec![0; width.bytes() as usize];
                for (i, lane) in bytes.chunks_exact_mut(size).enumerate() {
                    let number = u64::from(p * each) + i as u64;
                    lane.copy_from_slice(&number.to_le_bytes()[..size]);
                }
                self.code.constant(width, &bytes, None)
            })
            .collect();
        Some(self.vector(size as u32 * 8, of.lanes, parts))
    }

    fn live_in(&mut self, v: Value, of: Vector) -> Option<Lanes> {
        let (size, width) =
            (of.elem.size() as u32, self.width(of.elem.size() as u32 * 8, of.lanes));
        let parts = self.code.vector(v, size * of.lanes, width);
        let raw = self.vector(size * 8, of.lanes, parts);
        if is_bool(of) { self.bytes_to_mask(&raw) } else { Some(raw) }
    }

    /// An instruction for each part.
    pub fn by_part<const N: usize>(&mut self, op: Op, args: [&Lanes; N]) -> Lanes {
        self.by_part_imm(op, args, None)
    }

    pub fn by_part_imm<const N: usize>(
        &mut self,
        op: Op,
        args: [&Lanes; N],
        imm: Option<u8>,
    ) -> Lanes {
        let first = args[0];
        let width = self.width(first.bits, first.count);
        let parts = (0..first.parts.len())
            .map(|i| self.code.full(op, width, width, &args.map(|a| a.parts[i]), None, imm))
            .collect();
        Lanes { parts, ..first.clone() }
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn inst(&mut self, inst: Inst) -> Option<()> {
        let op = self.l.func.op(inst);
        let lanes = match op {
            // Made where they are used.
            ThreadOp::Const { .. } | ThreadOp::Iota { .. } | ThreadOp::Splat { .. } => {
                return Some(());
            }
            ThreadOp::Unary { f, x } => self.unary(*f, *x)?,
            ThreadOp::Binary { f, a, b } => self.binary(*f, *a, *b)?,
            ThreadOp::Ternary { f, a, b, c } => self.ternary(*f, *a, *b, *c)?,
            ThreadOp::Compare { p, a, b } => self.compare(*p, *a, *b)?,
            ThreadOp::Select { cond, yes, no } => self.select(*cond, *yes, *no)?,
            ThreadOp::Cast { src, to, rounding } => self.cast(*src, *to, *rounding)?,
            ThreadOp::Bitcast { src, .. } => self.get(*src)?,
            ThreadOp::AddrAdd { addr, offset } => self.binary(BinaryFn::Add, *addr, *offset)?,
            ThreadOp::Load { addr, disp, elem, lanes, mask, hints } => {
                self.load(*addr, *disp, Vector::of(*elem, lanes.0), *mask, hints)?
            }
            ThreadOp::Store { addr, value, disp, mask, hints } => {
                return self.store(*addr, *value, *disp, *mask, hints);
            }
            ThreadOp::Extract { .. }
            | ThreadOp::Shuffle { .. }
            | ThreadOp::Any { .. }
            | ThreadOp::All { .. }
            | ThreadOp::Gather { .. }
            | ThreadOp::Scatter { .. }
            | ThreadOp::Atomic { .. }
            | ThreadOp::AtomicCas { .. }
            | ThreadOp::AtomicLoad { .. }
            | ThreadOp::AtomicStore { .. }
            | ThreadOp::Regs { .. }
            | ThreadOp::RegsGet { .. }
            | ThreadOp::RegsSet { .. }
            | ThreadOp::Scratch { .. }
            | ThreadOp::RuntimeCall { .. }
            | ThreadOp::Guard { .. }
            | ThreadOp::For { .. }
            | ThreadOp::While { .. }
            | ThreadOp::If { .. }
            | ThreadOp::Yield { .. }
            | ThreadOp::Condition { .. }
            | ThreadOp::Return { .. }
            | naiad_ir::gpu_op!() => return None,
        };
        self.values.insert(self.l.func.results(inst)[0], lanes);
        Some(())
    }

    fn select(&mut self, cond: Value, yes: Value, no: Value) -> Option<Lanes> {
        let of = self.ty(yes)?;
        // The machine's minimum and maximum of floats are just such choices.
        if let ThreadElem::Scalar(Scalar::F32 | Scalar::F64) = of.elem
            && let Some(ThreadOp::Compare { p: p @ (Predicate::Lt | Predicate::Gt), a, b }) =
                self.l.func.defining_op(cond)
            && ((*a, *b) == (yes, no) || (*b, *a) == (yes, no))
        {
            let least = (*p == Predicate::Lt) == ((*a, *b) == (yes, no));
            let op = match (least, of.elem.bits()) {
                (true, 32) => Op::MinPs,
                (true, _) => Op::MinPd,
                (false, 32) => Op::MaxPs,
                (false, _) => Op::MaxPd,
            };
            let (x, y) = (self.get(yes)?, self.get(no)?);
            return Some(self.by_part(op, [&x, &y]));
        }
        let (mask, x, y) = (self.get(cond)?, self.get(yes)?, self.get(no)?);
        if is_bool(of) {
            return self.select_mask(&mask, &x, &y);
        }
        self.choose(&mask, &x, &y)
    }

    /// Lane by lane one or the other.
    pub fn choose(&mut self, mask: &Lanes, yes: &Lanes, no: &Lanes) -> Option<Lanes> {
        let mask = self.mask_for(mask, yes.bits, yes.each);
        let width = self.width(yes.bits, yes.count);
        let parts = (0..yes.parts.len()).map(|i| {
            let (m, y, n) = (mask.parts[i], yes.parts[i], no.parts[i]);
            if self.avx512() {
                let blend = [Op::BlendB, Op::BlendW, Op::BlendD, Op::BlendQ].map(Some);
                let op = sized(yes.bits, blend)?;
                return Some(self.code.full(op, width, width, &[n, y], Some(m), None));
            }
            let op = match yes.bits {
                32 => Op::BlendvPs,
                64 => Op::BlendvPd,
                _ => Op::BlendvB,
            };
            Some(self.code.op(op, width, &[n, y, m]))
        });
        let parts = parts.collect::<Option<Parts>>()?;
        Some(Lanes { parts, ..yes.clone() })
    }

    /// The place of an access: a stream, and how far from it.
    fn place(&mut self, addr: Value, disp: i64) -> Option<(u32, i64)> {
        let form = self.l.form(addr)?;
        let plus = form.plus.wrapping_add(disp);
        let key = Form { plus: 0, ..form };
        let known = self.streams.iter().position(|(have, _)| *have == key);
        let stream = known.unwrap_or_else(|| {
            let step = match key.step {
                Step::Known(step) => Some(step),
                Step::Unknown => None,
            };
            self.code.streams.push(Stream { start: addr, step });
            self.streams.push((key, plus.wrapping_sub(disp)));
            self.streams.len() - 1
        });
        Some((stream as u32, plus.wrapping_sub(self.streams[stream].1)))
    }

    /// Lets a loop that also goes through scratch memory ask ahead for the other memory that it reads.
    ///
    /// The machine itself looks ahead as far as its queues of loads and stores reach, and those of scratch
    /// memory fill them: sums of rows in far memory, kept in a tile of 8 KiB, took 5.1 ms without and 3.2
    /// to 4.2 with this. Half as far ahead they take 0.75 to 0.85 of that, but two sums 1.4 times, and maxima
    /// on AVX2 1.3: the more is done for a line, the less far the machine looks by itself. A loop that only
    /// reads has no need of it, and in near memory what is asked for twice takes longer: see
    /// [`When::Reads`](super::When).
    fn read_ahead(&mut self) {
        let is_scratch = |l: &Loop<'_>, form: &Form| {
            let scratch = |&(v, _): &(Value, i64)| {
                matches!(l.func.defining_op(v), Some(ThreadOp::Scratch { .. }))
            };
            form.terms.iter().any(scratch)
        };
        let scratch: Vec<bool> =
            self.streams.iter().map(|(form, _)| is_scratch(self.l, form)).collect();
        if !scratch.contains(&true) {
            return;
        }
        let step = self.l.step;
        let near = |s: &Stream| {
            let round = s.step.and_then(|s| s.checked_mul(step));
            round.is_some_and(|round| (1..=i64::from(AHEAD)).contains(&round))
        };
        let line = |inst: &Instruction| match (inst.op, inst.mem) {
            (Op::Load, Some(Addr::Stream { stream, disp }))
                if !scratch[stream as usize]
                    && near(&self.code.streams[stream as usize])
                    && disp % LINE == 0 =>
            {
                Some((stream, disp))
            }
            _ => None,
        };
        let lines = self.code.body.iter().filter(|inst| line(inst).is_some()).count();
        let few = self.code.body.len() <= FEW * lines;
        let ahead = if few { AHEAD_OF_FEW } else { AHEAD };
        let mut body = Vec::with_capacity(self.code.body.len() + lines);
        for inst in std::mem::take(&mut self.code.body) {
            if let Some((stream, disp)) = line(&inst) {
                let mem = Some(Addr::Stream { stream, disp: disp + ahead });
                body.push(Instruction { op: Op::Ahead, dst: None, mem, ..inst.clone() });
            }
            body.push(inst);
        }
        self.code.body = body;
    }

    /// Whether the place is aligned to a vector in every round if the stream starts at a line of cache.
    fn is_aligned(&self, (stream, disp): (u32, i64), width: Width) -> bool {
        let round = self.code.streams[stream as usize].step.map(|s| s.wrapping_mul(self.l.step));
        let whole = |bytes: i64| bytes % i64::from(width.bytes()) == 0;
        round.is_some_and(whole) && whole(disp)
    }

    fn at(&self, (stream, disp): (u32, i64), plus: u32) -> Option<Addr> {
        // Room for what unrolling adds.
        let disp = i32::try_from(disp.checked_add(plus.into())?).ok()?;
        (disp.unsigned_abs() < 1 << 30).then_some(Addr::Stream { stream, disp })
    }

    fn load(
        &mut self,
        addr: Value,
        disp: i64,
        of: Vector,
        mask: Option<Value>,
        hints: &MemHints,
    ) -> Option<Lanes> {
        if hints.volatile || of.is_scalar() {
            return None;
        }
        let place = self.place(addr, disp)?;
        let (bits, bytes) = (of.elem.size() as u32 * 8, of.elem.size() as u32 * of.lanes);
        let (width, each) = (self.width(bits, of.lanes), self.each(bits, of.lanes));
        let mask = match mask {
            Some(m) => Some(self.access_mask(m, bits, bytes, each)?),
            None => None,
        };
        let parts = (0..of.lanes / each)
            .map(|i| {
                let at = self.at(place, i * width.bytes())?;
                let (op, src, mask) = match &mask {
                    None => (load_of(bytes)?, None, None),
                    Some(m) if self.avx512() => {
                        let ops =
                            [Op::LoadMaskB, Op::LoadMaskW, Op::LoadMaskD, Op::LoadMaskQ].map(Some);
                        (sized(bits, ops)?, None, Some(m.parts[i as usize]))
                    }
                    Some(m) => {
                        let ops = [None, None, Some(Op::LoadSignD), Some(Op::LoadSignQ)];
                        (sized(bits, ops)?, Some(m.parts[i as usize]), None)
                    }
                };
                Some(self.code.load(op, width, src.as_slice(), at, mask))
            })
            .collect::<Option<Parts>>()?;
        let raw = self.vector(bits, of.lanes, parts);
        if is_bool(of) { self.bytes_to_mask(&raw) } else { Some(raw) }
    }

    fn store(
        &mut self,
        addr: Value,
        value: Value,
        disp: i64,
        mask: Option<Value>,
        hints: &MemHints,
    ) -> Option<()> {
        let of = self.ty(value)?;
        if hints.volatile || of.is_scalar() {
            return None;
        }
        let place = self.place(addr, disp)?;
        let mut raw = self.get(value)?;
        if is_bool(of) {
            raw = self.mask_to_bytes(&raw)?;
        }
        let (bits, bytes) = (raw.bits, raw.bits / 8 * raw.count);
        let width = self.width(bits, raw.count);
        let mask = match mask {
            Some(m) => Some(self.access_mask(m, bits, bytes, raw.each)?),
            None => None,
        };
        let past = hints.evict == Eviction::First && bytes >= 16 && self.is_aligned(place, width);
        for (i, &part) in raw.parts.iter().enumerate() {
            let at = self.at(place, i as u32 * width.bytes())?;
            match &mask {
                None if past => self.code.store(Op::StorePast, width, &[part], at, None, None),
                None => self.code.store(store_of(bytes)?, width, &[part], at, None, None),
                Some(m) if self.avx512() => {
                    let ops =
                        [Op::StoreMaskB, Op::StoreMaskW, Op::StoreMaskD, Op::StoreMaskQ].map(Some);
                    self.code.store(sized(bits, ops)?, width, &[part], at, Some(m.parts[i]), None);
                }
                Some(m) => {
                    let ops = [None, None, Some(Op::StoreSignD), Some(Op::StoreSignQ)];
                    self.code.store(sized(bits, ops)?, width, &[m.parts[i], part], at, None, None);
                }
            }
        }
        Some(())
    }

    /// A mask of consecutive lanes in memory. Lanes that a narrow vector does not have would be
    /// written.
    fn access_mask(&mut self, mask: Value, bits: u32, bytes: u32, each: u32) -> Option<Lanes> {
        if bytes < 16 {
            return None;
        }
        let mask = self.get(mask)?;
        Some(self.mask_for(&mask, bits, each))
    }
}

/// By the bits of a lane.
pub fn sized(bits: u32, [b, w, d, q]: [Option<Op>; 4]) -> Option<Op> {
    match bits {
        8 => b,
        16 => w,
        32 => d,
        64 => q,
        _ => None,
    }
}

fn load_of(bytes: u32) -> Option<Op> {
    match bytes {
        16.. => Some(Op::Load),
        8 => Some(Op::LoadQ),
        4 => Some(Op::LoadD),
        _ => None,
    }
}

fn store_of(bytes: u32) -> Option<Op> {
    match bytes {
        16.. => Some(Op::Store),
        8 => Some(Op::StoreQ),
        4 => Some(Op::StoreD),
        _ => None,
    }
}
