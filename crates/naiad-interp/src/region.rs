//! Regions of `reduce`, `scan` and `map`, on scalars or on whole tiles in their place.
//!
//! A region computes and does nothing else, so a branch whose condition differs from lane to lane is
//! taken both ways and the results are chosen. Loops are run only where everything is one scalar.

use crate::assembly;
use crate::code::Code;
use crate::engine::In;
use crate::fault::Fault;
use crate::ops::{self, Env, Read, Reg, Results};
use crate::tile::{number, stored};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Shape, Value};
use smallvec::SmallVec;

struct Regs<'a> {
    code: &'a Code,
    regs: Vec<Reg>,
}

impl Read for Regs<'_> {
    fn reg(&self, value: Value) -> &Reg {
        &self.regs[self.code.register(value)]
    }
}

impl Regs<'_> {
    fn set(&mut self, values: &[Value], regs: Results) {
        for (&value, reg) in values.iter().zip(regs) {
            if let Some(target) = self.code.target(value) {
                self.regs[target] = reg;
            }
        }
    }

    fn all(&self, values: &[Value]) -> Results {
        values.iter().map(|&v| self.reg(v).clone()).collect()
    }
}

/// A region to be called again and again.
pub struct Region<'e, 'a> {
    env: &'e Env<'a>,
    regs: Regs<'a>,
}

impl<'e, 'a> Region<'e, 'a> {
    pub fn new(env: &'e Env<'a>) -> Region<'e, 'a> {
        let regs = Regs { code: env.code, regs: vec![Reg::default(); env.code.registers] };
        Region { env, regs }
    }

    /// What the region yields for these arguments. What an earlier call left in registers is written
    /// before it is read, as the verifier has seen.
    pub fn call(&mut self, body: Block, arguments: &[Reg]) -> Result<Results, Fault> {
        let params = self.env.code.func.block_params(body);
        self.regs.set(params, arguments.iter().cloned().collect());
        block(self.env, body, &mut self.regs).map(|(_, values)| values)
    }
}

/// What the region yields for these arguments, once.
pub fn evaluate(env: &Env<'_>, body: Block, arguments: &[Reg]) -> Result<Results, Fault> {
    Region::new(env).call(body, arguments)
}

/// Runs a block: the condition that it ends in, if it is a loop's test, and what it yields.
///
/// This recurses where regions are nested, which is as deep as the kernel's source, not its data.
fn block(env: &Env<'_>, block_: Block, regs: &mut Regs<'_>) -> Result<(bool, Results), Fault> {
    let func = &*env.code.func;
    for &inst in func.insts(block_) {
        let results = match func.op(inst) {
            TileOp::Yield { values } => return Ok((true, regs.all(values))),
            TileOp::Condition { cond, values } => {
                return Ok((regs.reg(*cond).tile.uniform() != Some(0), regs.all(values)));
            }
            TileOp::If { cond, then, otherwise } => {
                let cond = regs.reg(*cond).tile.clone();
                match cond.uniform() {
                    Some(0) => block(env, *otherwise, regs)?.1,
                    Some(_) => block(env, *then, regs)?.1,
                    None => {
                        // What one branch overwrites the other may need.
                        let saved = regs.regs.clone();
                        let yes = block(env, *then, regs)?.1;
                        regs.regs = saved;
                        let no = block(env, *otherwise, regs)?.1;
                        let both = yes.iter().zip(&no).zip(func.results(inst));
                        both.map(|((yes, no), &v)| {
                            let ty = stored(func.ty(v).elem);
                            ops::choose(env, &cond, yes, no, ty, &env.shape(v))
                        })
                        .collect()
                    }
                }
            }
            TileOp::For { lower, upper, step, inits, body, .. } => {
                let ty = signed(env.code.scalar(*lower));
                let bound = |v: Value| number(ty, regs.reg(v).tile.uniform().unwrap_or(0));
                let (mut at, end, step) = (bound(*lower), bound(*upper), bound(*step));
                if step == 0 {
                    let message = "the step of a range must not be 0";
                    let report = Diagnostic::new(Id::BadArgument, message);
                    return Err(Box::new(report.primary_at(&func.places, func.loc(inst), "")));
                }
                let mut carried = regs.all(inits);
                while if step < 0 { at > end } else { at < end } {
                    poll(env)?;
                    let iv = Reg::from(crate::tile::Tile::Uniform(at as u64 & ty.mask()));
                    let arguments: Results = std::iter::once(iv).chain(carried).collect();
                    regs.set(func.block_params(*body), arguments);
                    carried = block(env, *body, regs)?.1;
                    at += step;
                }
                carried
            }
            TileOp::While { inits, before, after } => {
                let mut carried = regs.all(inits);
                loop {
                    poll(env)?;
                    regs.set(func.block_params(*before), carried);
                    let (go_on, values) = block(env, *before, regs)?;
                    if !go_on {
                        break values;
                    }
                    regs.set(func.block_params(*after), values);
                    carried = block(env, *after, regs)?.1;
                }
            }
            TileOp::InlineAsm { args, pack, .. } => {
                let Some(Ok(program)) = env.code.assembly(inst) else {
                    let message = "this assembly cannot stand in a function of elements";
                    let d = Diagnostic::new(Id::InlineAsm, message);
                    return Err(Box::new(d.primary_at(&func.places, func.loc(inst), "")));
                };
                let operand = |v: &Value| In { tile: &regs.reg(*v).tile, ty: env.code.scalar(*v) };
                let operands: SmallVec<[In<'_>; 4]> = args.iter().map(operand).collect();
                let made = func.results(inst);
                let outs = made.iter().map(|&v| env.code.scalar(v)).collect();
                let shape = made.first().map_or(Shape::SCALAR, |&v| env.shape(v));
                let job = assembly::Job { program, shape, pack: *pack, outs };
                // What reads a clock is not pure, so no time is asked for.
                assembly::run(&job, &operands, &mut || 0).into_iter().map(Reg::from).collect()
            }
            _ => {
                let mut results = Results::new();
                ops::evaluate(env, inst, &*regs, &mut results)?;
                results
            }
        };
        regs.set(func.results(inst), results);
    }
    Ok((true, SmallVec::new()))
}

fn poll(env: &Env<'_>) -> Result<(), Fault> {
    if (env.stopped)() {
        return Err(Box::new(Diagnostic::new(Id::Interrupted, "the launch was interrupted")));
    }
    Ok(())
}

/// Bounds of loops are compared as signed numbers, whatever their type.
pub fn signed(ty: naiad_ir::Scalar) -> naiad_ir::Scalar {
    use naiad_ir::Scalar;
    match ty.bits() {
        8 => Scalar::I8,
        16 => Scalar::I16,
        32 => Scalar::I32,
        64 => Scalar::I64,
        _ => ty,
    }
}
