//! Calls of loops that are written beside Cranelift.

use super::lanes::Lanes;
use super::memory::{ACCESS, Place};
use super::writer::{Made, Writer};
use crate::wide::{Input, Other, PASSED, When, Wide};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, ExtFuncData, ExternalName, InstBuilder, Signature, UserExternalName, types,
};
use cranelift_codegen::isa::CallConv;
use naiad_ir::{Block, Value};
use smallvec::SmallVec;

impl Writer<'_, '_> {
    /// Runs the loop's rounds, if there are any, by a call of the function that was written for it.
    ///
    /// ```text
    ///   brif lower < upper, call, exit(inits)
    ///   call:   the body's scalars at `lower`; inputs to the block; end = rounds * step; call
    ///           jump exit(results from the block)
    /// ```
    pub fn wide_loop(
        &mut self,
        wide: Wide,
        bounds: [Value; 3],
        inits: &[Value],
        body: Block,
    ) -> Result<Made, String> {
        let (lower, upper) = (self.one(bounds[0])?, self.one(bounds[1])?);
        let inits = self.all(inits)?;
        let [call, exit] = [0; 2].map(|_| self.emit.b.create_block());
        let results = self.block_params(exit, &inits);
        let leave = self.block_args(&results, &inits);
        let b = &mut self.emit.b;
        let runs = b.ins().icmp(IntCC::SignedLessThan, lower, upper);
        b.ins().brif(runs, call, &[], exit, &leave);
        b.seal_block(call);

        self.emit.enter(call);
        self.scalars_at(&wide, body, lower)?;
        let block = self.wide_block(wide.block_bytes);
        let place = |at: u32| Place { addr: block, disp: at.into() };
        for &(input, at) in &wide.inputs {
            let (Input::Scalar(v) | Input::Vector(v)) = input;
            let (elem, lanes) = (self.vector(v)?.elem, self.get(v)?);
            self.emit.store(elem, &lanes, place(at), None);
        }
        let b = &mut self.emit.b;
        let distance = b.ins().isub(upper, lower);
        let before_last = b.ins().iadd_imm_s(distance, -1);
        let whole = b.ins().band_imm_s(before_last, -wide.step);
        let end = b.ins().iadd_imm_s(whole, wide.step);
        let mut args: SmallVec<[ir::Value; 8]> = SmallVec::from_slice(&[block, end]);
        let mut starts: SmallVec<[ir::Value; 8]> = SmallVec::new();
        for stream in &wide.streams {
            let start = self.one(stream.start)?;
            starts.push(start);
            match stream.at {
                None => args.push(start),
                Some(at) => {
                    self.emit.b.ins().store(ACCESS, start, block, at as i32);
                }
            }
        }
        if wide.streams.iter().any(|s| s.moves.is_some()) {
            // A round further on.
            let next = self.emit.b.ins().iadd_imm_s(lower, wide.step);
            self.scalars_at(&wide, body, next)?;
            for (stream, &start) in wide.streams.iter().zip(&starts) {
                if let Some(at) = stream.moves {
                    let next = self.one(stream.start)?;
                    let moves = self.emit.b.ins().isub(next, start);
                    self.emit.b.ins().store(ACCESS, moves, block, at as i32);
                }
            }
        }
        self.call_loop(wide.bytes, wide.other, &args, &starts)?;
        let params = self.func.block_params(body)[1..].iter().zip(&wide.results);
        let made = params
            .map(|(&v, &at)| {
                let of = self.vector(v)?;
                Ok(self.emit.load(of.elem, of.lanes, place(at), None))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let args = self.block_args(&results, &made);
        self.emit.b.ins().jump(exit, &args);
        self.emit.b.seal_block(exit);
        self.emit.enter(exit);
        Ok(results)
    }

    /// Computes the scalars of the body that the loop wants, with this induction variable.
    fn scalars_at(&mut self, wide: &Wide, body: Block, iv: ir::Value) -> Result<(), String> {
        self.bind(&self.func.block_params(body)[..1], &[Lanes::scalar(types::I64, iv)]);
        wide.scalars.iter().try_for_each(|&inst| self.inst(inst))
    }

    /// The block of memory that loops are given: one for all, behind scratch memory.
    fn wide_block(&mut self, bytes: u32) -> ir::Value {
        self.block_bytes = self.block_bytes.max(bytes as usize);
        let at = self.layout.bytes as i64;
        self.emit.b.ins().iadd_imm_s(self.frame, at)
    }

    /// Calls the loop, or the other one where the launch goes beyond the cache.
    fn call_loop(
        &mut self,
        bytes: Vec<u8>,
        other: Option<Other>,
        args: &[ir::Value],
        starts: &[ir::Value],
    ) -> Result<(), String> {
        let flag = other.as_ref().and_then(|other| match other.when {
            When::Writes { .. } => self.past_cache,
            When::Reads => self.far,
        });
        let (Some(other), Some(flag)) = (other, flag) else {
            self.call_wide(bytes, args);
            return Ok(());
        };
        let flag = self.one(flag)?;
        let b = &mut self.emit.b;
        let mut wanted = b.ins().icmp_imm_u(IntCC::NotEqual, flag, 0);
        if let When::Writes { aligned, least } = &other.when {
            let mut all = b.ins().iconst(types::I64, 0);
            for &stream in aligned {
                all = b.ins().bor(all, starts[stream]);
            }
            let off = b.ins().band_imm_u(all, 63);
            let aligned = b.ins().icmp_imm_u(IntCC::Equal, off, 0);
            wanted = b.ins().band(wanted, aligned);
            let long = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, args[1], *least);
            wanted = b.ins().band(wanted, long);
        }
        let [beyond, within, done] = [0; 3].map(|_| b.create_block());
        b.ins().brif(wanted, beyond, &[], within, &[]);
        for (block, bytes) in [(beyond, other.bytes), (within, bytes)] {
            self.emit.b.seal_block(block);
            self.emit.enter(block);
            self.call_wide(bytes, args);
            self.emit.b.ins().jump(done, &[]);
        }
        self.emit.b.seal_block(done);
        self.emit.enter(done);
        Ok(())
    }

    fn call_wide(&mut self, bytes: Vec<u8>, args: &[ir::Value]) {
        debug_assert!(args.len() <= 2 + PASSED);
        let index = self.beside.len() as u32;
        self.beside.push(bytes);
        let b = &mut self.emit.b;
        let mut signature = Signature::new(CallConv::SystemV);
        signature.params.extend(args.iter().map(|_| AbiParam::new(types::I64)));
        let signature = b.import_signature(signature);
        let name = b.func.declare_imported_user_function(UserExternalName::new(0, index));
        let name = ExternalName::user(name);
        let f =
            b.import_function(ExtFuncData { name, signature, colocated: true, patchable: false });
        b.ins().call(f, args);
    }
}
