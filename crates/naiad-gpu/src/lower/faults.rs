//! Assertions and guards: what finds fault, and how it is told. What is told stands in `watch.rs`.
//!
//! All threads of a program learn whether any of its elements is at fault. Only then anything is written,
//! so that a kernel that goes well pays for the test and one vote.

use super::{Lower, Registers};
use crate::watch::{FIRST_ADDRESS, record};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, UnaryFn};
use naiad_ir::thread::{Site, ThreadElem, ThreadOp, VoteMode};
use naiad_ir::tile::{AtomicOp, Constant, Scope, Sem};
use naiad_ir::{Inst, Scalar, Value};

impl Lower<'_> {
    /// Parameters for what is told; the record's address comes first.
    pub fn add_watch_params(&mut self) {
        use naiad_ir::thread::Vector;
        let Some(watch) = self.watch else { return };
        self.record = Some(self.b.func.add_param("record", Vector::ADDR.into()));
        for extent in watch.extents() {
            let name = &watch.func.param_names[extent.arg];
            let what = if extent.write { "written" } else { "read" };
            let pair = ["from", "bytes"].map(|end| {
                self.b.func.add_param(format!("{name}_{what}_{end}"), Vector::I64.into())
            });
            self.extents.push(pair);
        }
    }

    /// Ends the program where the condition is false and the mask, if there is one, is true.
    pub fn assert(&mut self, inst: Inst, cond: Value, mask: Option<Value>, values: &[Value]) {
        let Some(site) = self.f.op(inst).site.0 else { return };
        let conds = self.get(cond).clone();
        let masks = mask.map(|m| self.get(m).clone());
        let mut fails = Registers::new();
        for (r, &cond) in conds.iter().enumerate() {
            let wrong = self.b.unary(UnaryFn::Not, cond);
            fails.push(match &masks {
                Some(masks) => self.b.binary(BinaryFn::And, wrong, masks[r]),
                None => wrong,
            });
        }
        let values: Vec<Registers> = values.iter().map(|&v| self.get(v).clone()).collect();
        self.end_where(site, cond, &fails, &values);
    }

    /// Ends the program where an access that is guarded is in no argument's memory, or where it is not known
    /// whose it is in none at all, or lies at no multiple of its size.
    pub fn guard(&mut self, inst: Inst, ptr: Value, mask: Option<Value>, elem: ThreadElem) {
        let Some(site) = self.f.op(inst).site.0 else { return };
        let extents = self.watch.and_then(|watch| watch.extents_of(site));
        let size = elem.size() as i64;
        let (addresses, masks) = (self.get(ptr).clone(), mask.map(|m| self.get(m).clone()));
        let mut fails = Registers::new();
        for (r, &addr) in addresses.iter().enumerate() {
            let addr = self.b.bitcast(addr, Scalar::I64);
            let mut fits = match &extents {
                Some(_) => self.b.bool(false),
                None => self.is_any_memory(addr),
            };
            for &extent in extents.iter().flatten() {
                let inside = self.inside(self.extents[extent], addr, size);
                fits = self.b.binary(BinaryFn::Or, fits, inside);
            }
            if size > 1 {
                let (low, zero) = (self.b.i64(size - 1), self.b.i64(0));
                let rest = self.b.binary(BinaryFn::And, addr, low);
                let aligned = self.b.compare(Predicate::Eq, rest, zero);
                fits = self.b.binary(BinaryFn::And, fits, aligned);
            }
            let wrong = self.b.unary(UnaryFn::Not, fits);
            fails.push(match &masks {
                Some(masks) => self.b.binary(BinaryFn::And, wrong, masks[r]),
                None => wrong,
            });
        }
        self.end_where(site, ptr, &fails, &[addresses]);
    }

    /// Whether there may be memory at an address.
    fn is_any_memory(&mut self, addr: Value) -> Value {
        let first = self.b.i64(FIRST_ADDRESS);
        let [addr, first] = [addr, first].map(|x| self.b.bitcast(x, Scalar::U64));
        self.b.compare(Predicate::Ge, addr, first)
    }

    /// Whether so many bytes at an address lie in memory of which it is known where it begins and how long
    /// it is.
    fn inside(&mut self, [from, bytes]: [Value; 2], addr: Value, size: i64) -> Value {
        let offset = self.b.binary(BinaryFn::Sub, addr, from);
        let size = self.b.i64(size);
        let end = self.b.binary(BinaryFn::Add, offset, size);
        let [offset, end, bytes] = [offset, end, bytes].map(|x| self.b.bitcast(x, Scalar::U64));
        // What lies before the beginning is far behind it as an unsigned number, but for its end.
        let begins = self.b.compare(Predicate::Lt, offset, bytes);
        let ends = self.b.compare(Predicate::Le, end, bytes);
        self.b.binary(BinaryFn::And, begins, ends)
    }

    /// Ends the program where an element of `at` fails, and has that recorded with the element's values.
    fn end_where(&mut self, site: Site, at: Value, fails: &Registers, values: &[Registers]) {
        let Some(record) = self.record else { return };
        let any = fails[1..].iter().fold(fails[0], |a, &b| self.b.binary(BinaryFn::Or, a, b));
        let failed = self.any_of_program(any);
        // Where nothing fails nobody waits.
        let in_use = self.in_use;
        self.where_true(Some(failed), |lower| {
            let first = lower.first_failing(at, fails, values);
            let number = lower.program_number();
            lower.record_fault(record, site, number, &first);
            lower.b.run(ThreadOp::Exit {});
        });
        self.in_use = in_use;
    }

    /// Whether any thread of the program passes true.
    fn any_of_program(&mut self, cond: Value) -> Value {
        let mode = VoteMode::Any;
        if self.sharing.warp_bits == 0 {
            return self.b.op(ThreadOp::WarpVote { mode, cond });
        }
        self.in_use.clear();
        self.b.op(ThreadOp::BlockVote { mode, cond })
    }

    /// Of the elements that this thread owns.
    fn first_failing(&mut self, at: Value, fails: &Registers, values: &[Registers]) -> First {
        let (layout, numel) = (self.layout(at), self.shape(at).numel() as i64);
        let elements = layout.map(|layout| self.elements(&layout, 0));
        let owner = self.owner(layout.as_ref());
        let zero = self.i32(0);
        let nothing = self.b.i64(0);
        let mut first = First { left: zero, count: zero, values: vec![nothing; values.len()] };
        for (r, &fails) in fails.iter().enumerate() {
            if layout.is_some_and(|l| l.without_copies_of(r) != r) {
                continue;
            }
            let fails = self.both(Some(fails), owner).unwrap_or(fails);
            let numel = self.i32(numel);
            let left = match &elements {
                Some(elements) => self.b.binary(BinaryFn::Sub, numel, elements[r]),
                None => numel,
            };
            let further = self.b.compare(Predicate::Gt, left, first.left);
            let is_first = self.b.binary(BinaryFn::And, fails, further);
            first.left = self.b.select(is_first, left, first.left);
            for (value, registers) in first.values.iter_mut().zip(values) {
                let image = self.image(registers[r]);
                *value = self.b.select(is_first, image, *value);
            }
            let one = self.b.cast(fails, Scalar::I32, Rounding::Nearest);
            first.count = self.b.binary(BinaryFn::Add, first.count, one);
        }
        first
    }

    /// A value's bits as an i64.
    fn image(&mut self, value: Value) -> Value {
        let bits = match self.b.vector(value).elem {
            ThreadElem::Scalar(s) if s.is_bool() => value,
            elem => {
                let unsigned = match elem.bits() {
                    8 => Scalar::U8,
                    16 => Scalar::U16,
                    32 => Scalar::U32,
                    _ => return self.b.bitcast(value, Scalar::I64),
                };
                self.b.bitcast(value, unsigned)
            }
        };
        self.b.cast(bits, Scalar::I64, Rounding::Nearest)
    }

    /// The program's number in the grid plus 1.
    fn program_number(&mut self) -> Value {
        let [y, z] = [1, 2].map(|axis| self.b.op(ThreadOp::BlockId { axis }));
        let rows = self.b.op(ThreadOp::NumBlocks { axis: 1 });
        let wide = [self.program, self.programs, y, rows, z];
        let [x, columns, y, rows, z] = wide.map(|v| self.b.cast(v, Scalar::I64, Rounding::Nearest));
        let above = self.b.binary(BinaryFn::Mul, rows, z);
        let row = self.b.binary(BinaryFn::Add, y, above);
        let before = self.b.binary(BinaryFn::Mul, row, columns);
        let number = self.b.binary(BinaryFn::Add, before, x);
        let one = self.b.i64(1);
        self.b.binary(BinaryFn::Add, number, one)
    }

    /// Claims the record for this program, unless another has it, and writes what the first failing
    /// element of all threads is.
    fn record_fault(&mut self, record: Value, site: Site, number: Value, first: &First) {
        let (sem, scope) = (Sem::Relaxed, Scope::Gpu);
        let at = |lower: &mut Self, offset: i64| {
            let offset = lower.b.i64(offset);
            lower.b.addr_add(record, offset)
        };
        let zero = self.i32(0);
        let fails = self.b.compare(Predicate::Gt, first.count, zero);
        self.where_true(Some(fails), |lower| {
            let (addr, none) = (at(lower, record::PROGRAM), lower.b.i64(0));
            let claim = ThreadOp::AtomicCas { addr, compare: none, value: number, sem, scope };
            let before = lower.b.op(claim);
            let free = lower.b.compare(Predicate::Eq, before, none);
            let own = lower.b.compare(Predicate::Eq, before, number);
            let mine = lower.b.binary(BinaryFn::Or, free, own);
            lower.where_true(Some(mine), |lower| {
                for (f, offset, value) in [
                    (AtomicOp::Max, record::LEFT, first.left),
                    (AtomicOp::Add, record::COUNT, first.count),
                ] {
                    let addr = at(lower, offset);
                    lower.b.op(ThreadOp::Atomic { f, addr, value, sem, scope });
                }
            });
        });
        self.sync();
        let load = |lower: &mut Self, offset: i64, elem: Scalar| {
            let addr = at(lower, offset);
            lower.b.op(ThreadOp::AtomicLoad { addr, elem: elem.into(), sem, scope })
        };
        let owner = load(self, record::PROGRAM, Scalar::I64);
        let mine = self.b.compare(Predicate::Eq, owner, number);
        let left = load(self, record::LEFT, Scalar::I32);
        let is_first = self.b.compare(Predicate::Eq, first.left, left);
        let writes = self.b.binary(BinaryFn::And, mine, is_first);
        self.where_true(Some(writes), |lower| {
            for (i, &value) in first.values.iter().enumerate() {
                let addr = at(lower, record::VALUES + 8 * i as i64);
                lower.b.store(addr, 0, value);
            }
            let site = Constant::int(Scalar::I64, i128::from(site.0) + 1);
            let (addr, value) = (at(lower, record::SITE), lower.b.constant(site, 1));
            // Whoever sees the site sees the rest, also the host.
            let (sem, scope) = (Sem::Release, Scope::Sys);
            lower.b.run(ThreadOp::AtomicStore { addr, value, sem, scope });
        });
        if self.watch.is_some_and(|watch| watch.waits) {
            // Others would wait for this program for ever.
            self.sync();
            self.where_true(Some(mine), |lower| lower.b.run(ThreadOp::Trap {}));
        }
    }
}

/// The first failing element of a thread's.
struct First {
    /// Elements of the tile from it on; 0 if there is none.
    left: Value,
    /// How many fail.
    count: Value,
    values: Vec<Value>,
}
