//! What the reference executor says and does, for executors that run the same kernel in another way: its
//! words for a fault that they found, and its doing of ops that they leave to it.

use crate::args::Arg;
use crate::code::Code;
use crate::debug::{Failed, Printed, assertion};
use crate::exec::{Exec, Program, Shared};
use crate::fault::{Access, Fault, Findings, Lane, Site};
use crate::memory::{Memory, Origin};
use crate::policy::Plain;
use crate::slab::Slab;
use crate::tile::{Dense, Tile, stored};
use naiad_diag::Diagnostic;
use naiad_ir::tile::{Tile as TileIr, TileOp};
use naiad_ir::{Elem, Function, Inst, OpInfo, Type, Value};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// One launch, seen by the reference executor.
pub struct Oracle<'a> {
    code: &'a Code,
    grid: [u32; 3],
    memory: Memory<'a>,
    findings: Findings,
    arguments: Vec<(u64, Origin)>,
    print: Option<&'a (dyn Fn(&Printed<'_>) + Sync)>,
    clock: Option<&'a (dyn Fn() -> u64 + Sync)>,
    clock_reads: AtomicU64,
}

impl<'a> Oracle<'a> {
    /// `exposed`, `print` and `clock` are those of [`LaunchOptions`](crate::LaunchOptions).
    pub fn new(
        code: &'a Code,
        grid: [u32; 3],
        args: &'a [Arg],
        exposed: &[Range<usize>],
        print: Option<&'a (dyn Fn(&Printed<'_>) + Sync)>,
        clock: Option<&'a (dyn Fn() -> u64 + Sync)>,
    ) -> Result<Oracle<'a>, Box<Diagnostic>> {
        Ok(Oracle {
            code,
            grid,
            memory: Memory::new(&code.func.param_names, args, code.reachable(exposed)),
            findings: Findings::default(),
            arguments: crate::bind(&code.func, args)?,
            print,
            clock,
            clock_reads: AtomicU64::new(0),
        })
    }

    fn func(&self) -> &Function<TileIr> {
        &self.code.func
    }

    fn coordinates(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|c| c as u32)
    }

    fn site(&self, inst: Inst, number: u64) -> Site<'_> {
        Site { func: self.func(), inst, program: self.coordinates(number), number }
    }

    /// The fault of an access to an address in this lane, where `pointer` is the argument that the
    /// pointer was made from, if only one can be.
    pub fn access(
        &self,
        inst: Inst,
        number: u64,
        lane: usize,
        address: u64,
        pointer: Option<usize>,
    ) -> Box<Diagnostic> {
        self.at_lane(inst, lane, address, pointer, |lane| {
            let site = self.site(inst, number);
            let (lo, hi) = (i128::from(lane.address), i128::from(lane.address));
            let hi = hi + lane.elem.size() as i128;
            match self.memory.find(lane.origin, lo, hi, lane.access.writes()) {
                Some(tensor) if lane.access.writes() && !tensor.writable => {
                    site.read_only(tensor, lane)
                }
                _ => site.out_of_bounds(&self.memory, lane),
            }
        })
    }

    /// The fault of an atomic access to an address that is not aligned.
    pub fn misaligned(
        &self,
        inst: Inst,
        number: u64,
        lane: usize,
        address: u64,
        pointer: Option<usize>,
    ) -> Box<Diagnostic> {
        self.at_lane(inst, lane, address, pointer, |lane| {
            let site = self.site(inst, number);
            let (lo, hi) = (i128::from(lane.address), i128::from(lane.address));
            let hi = hi + lane.elem.size() as i128;
            match self.memory.find(lane.origin, lo, hi, lane.access.writes()) {
                Some(tensor) => site.misaligned(tensor, lane),
                None => site.out_of_bounds(&self.memory, lane),
            }
        })
    }

    /// The fault of an access by a pointer that was made of a number, of which is known that no memory can
    /// be there.
    pub fn no_memory(&self, inst: Inst, number: u64, lane: usize, address: u64) -> Box<Diagnostic> {
        let report = |lane: &Lane<'_>| self.site(inst, number).no_memory(lane);
        self.at_lane(inst, lane, address, None, report)
    }

    fn at_lane(
        &self,
        inst: Inst,
        lane: usize,
        address: u64,
        pointer: Option<usize>,
        report: impl FnOnce(&Lane<'_>) -> Fault,
    ) -> Fault {
        let func = self.func();
        let (access, ptr, masked) = match func.op(inst) {
            TileOp::Load { ptr, mask, .. } => (Access::Load, *ptr, mask.is_some()),
            TileOp::Store { ptr, mask, .. } => (Access::Store, *ptr, mask.is_some()),
            TileOp::AtomicRmw { ptr, mask, .. } => (Access::Atomic, *ptr, mask.is_some()),
            TileOp::AtomicCas { ptr, .. } => (Access::Atomic, *ptr, false),
            TileOp::AtomicLoad { ptr, mask, .. } => (Access::AtomicLoad, *ptr, mask.is_some()),
            TileOp::AtomicStore { ptr, mask, .. } => (Access::AtomicStore, *ptr, mask.is_some()),
            op => return crate::ops::internal(op),
        };
        let ty = func.ty(ptr);
        let Some(pointer_type) = ty.elem.pointer() else {
            return crate::ops::internal(func.op(inst));
        };
        report(&Lane {
            access,
            shape: &ty.shape,
            lane,
            address: address as i64,
            elem: pointer_type.pointee,
            masked,
            origin: pointer.map_or(Origin::Unknown, |i| Origin::Arg(i as u32)),
        })
    }

    /// The fault of an assertion that fails in `count` lanes, `lane` the first of them; `images` are the
    /// bits that the assertion's values have there.
    pub fn assertion(
        &self,
        inst: Inst,
        number: u64,
        (lane, count): (usize, usize),
        images: &[u64],
    ) -> Box<Diagnostic> {
        let func = self.func();
        let TileOp::Assert { cond, message, values, names, .. } = func.op(inst) else {
            return crate::ops::internal(func.op(inst));
        };
        let failed = Failed { shape: func.ty(*cond).shape, lane, count };
        let shown = values.iter().zip(names).zip(images);
        let shown: Vec<(&str, Elem, u64)> =
            shown.map(|((&v, name), &image)| (&*name.0, func.ty(v).elem, image)).collect();
        assertion(&self.site(inst, number), &message.0, &failed, &shown)
    }

    /// The fault of a loop whose step is 0.
    pub fn zero_step(&self, inst: Inst, number: u64) -> Box<Diagnostic> {
        self.site(inst, number).zero_step()
    }

    /// The fault of programs that wait forever, each at an op; in the order of their numbers.
    pub fn deadlock(&self, waiting: &[(u64, Inst)]) -> Box<Diagnostic> {
        let waits = |&(number, inst): &(u64, Inst)| (number, self.coordinates(number), Some(inst));
        crate::schedule::deadlock(self.func(), &waiting.iter().map(waits).collect::<Vec<_>>())
    }

    /// Does an op of a program that has an effect other than on memory. `buffers` hold its operands, and
    /// then take its results: elements in row-major order, an `i1` as a byte.
    ///
    /// # Safety
    ///
    /// Each buffer is valid for a tile of its value's type.
    pub unsafe fn effect(
        &self,
        inst: Inst,
        number: u64,
        worker: usize,
        buffers: &[*mut u8],
    ) -> Result<(), Box<Diagnostic>> {
        let shared = Shared {
            code: self.code,
            memory: &self.memory,
            findings: &self.findings,
            check: None,
            grid: self.grid,
            arguments: &self.arguments,
            naive: false,
            in_order: None,
            print: self.print,
            clock: self.clock,
            clock_reads: &self.clock_reads,
            stopped: &|_| false,
        };
        let func = self.func();
        let op = func.op(inst);
        let mut operands: Vec<Value> = Vec::new();
        op.each_value(&mut |v| operands.push(v));
        let mut exec = Exec::<Plain>::new(&shared, worker);
        let mut program = Program::default();
        exec.start(&mut program, number);
        for (&v, &buffer) in operands.iter().zip(buffers) {
            // SAFETY: the caller's promise.
            let tile = unsafe { read(func.ty(v), buffer) };
            program.set_register(self.code.register(v), tile);
        }
        exec.effect(&mut program, inst, op)?;
        for (&v, &buffer) in func.results(inst).iter().zip(&buffers[operands.len()..]) {
            if let Some(register) = self.code.target(v) {
                // SAFETY: the caller's promise.
                unsafe { write(program.register(register), func.ty(v), buffer) };
            }
        }
        Ok(())
    }
}

/// # Safety
///
/// The buffer holds a tile of the type.
unsafe fn read(ty: Type, buffer: *const u8) -> Tile {
    let elem = stored(ty.elem);
    if ty.is_scalar() {
        // SAFETY: the caller's promise.
        return Tile::Uniform(unsafe { crate::engine::read_image(buffer, elem.size()) });
    }
    let bytes = ty.shape.numel() * elem.size();
    let slab = Slab::new(bytes);
    // SAFETY: the buffer has so many bytes by the caller's promise, and the slab was made with them.
    unsafe { std::ptr::copy_nonoverlapping(buffer, slab.as_mut_ptr(), bytes) };
    Tile::Dense(Dense::new(slab))
}

/// # Safety
///
/// The buffer has room for a tile of the type.
unsafe fn write(tile: &Tile, ty: Type, buffer: *mut u8) {
    let elem = stored(ty.elem);
    // SAFETY: the caller's promise.
    unsafe { tile.fill(elem, &ty.shape, 0, ty.shape.numel(), buffer) };
}
