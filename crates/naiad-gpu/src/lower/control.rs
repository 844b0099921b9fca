//! Control flow, and regions over elements.

use super::room::InUse;
use super::{Lower, Lowered, Registers};
use crate::placed::{PlacedOp, What};
use naiad_ir::scalar::Predicate;
use naiad_ir::thread::ThreadOp;
use naiad_ir::tile::{Text, TileOp};
use naiad_ir::{Block, Inst, Scalar, Value};

impl Lower<'_> {
    pub fn block(&mut self, block: Block) -> Lowered<()> {
        for &inst in self.f.insts(block) {
            self.inst(inst)?;
        }
        Ok(())
    }

    /// The registers of all the values that a block passes on, one after the other.
    fn passed(&self, block: Block) -> Vec<Value> {
        match self.f.terminator(block) {
            Some(PlacedOp {
                what: What::Tile(TileOp::Yield { values } | TileOp::Condition { values, .. }),
                ..
            }) => self.flat(values),
            _ => Vec::new(),
        }
    }

    fn flat(&self, values: &[Value]) -> Vec<Value> {
        values.iter().flat_map(|&v| self.get(v).iter().copied()).collect()
    }

    fn count(&self, value: Value) -> usize {
        self.layout(value).map_or(1, |l| l.count())
    }

    /// Gives values their registers out of a list of all.
    fn bind(&mut self, values: &[Value], all: &[Value]) {
        let mut rest = all;
        for &v in values {
            let (own, others) = rest.split_at(self.count(v));
            self.known().insert(v, own.to_vec());
            rest = others;
        }
    }

    fn results(&mut self, inst: Inst, all: &[Value]) -> Vec<Registers> {
        let results = self.f.results(inst).to_vec();
        self.bind(&results, all);
        results.iter().map(|&r| self.get(r).clone()).collect()
    }

    pub fn control(&mut self, inst: Inst, op: &TileOp) -> Lowered<Vec<Registers>> {
        match op {
            TileOp::For { lower, upper, step, inits, body, .. } => {
                let bounds = [*lower, *upper, *step].map(|v| self.one(v));
                let inits = self.flat(inits);
                // An earlier round may still be reading.
                let in_use = std::mem::replace(&mut self.in_use, InUse::ALL);
                let l = self.b.begin_for(bounds, inits);
                let params = self.f.block_params(*body);
                self.known().insert(params[0], vec![l.iv]);
                let carried = l.carried.clone();
                self.bind(&params[1..], &carried);
                self.block(*body)?;
                let next = self.passed(*body);
                let all = self.b.end_for(l, next);
                self.in_use = self.in_use.or(in_use);
                Ok(self.results(inst, &all))
            }
            TileOp::While { inits, before, after } => {
                let inits = self.flat(inits);
                self.in_use = InUse::ALL;
                let blocks = [*before, *after].map(|from| {
                    let new = self.b.func.new_block();
                    let params = self.f.block_params(from).to_vec();
                    let mut all = Vec::new();
                    for &p in &params {
                        let ty = naiad_ir::thread::Vector::of(self.elem(p), 1);
                        for _ in 0..self.count(p) {
                            all.push(self.b.func.add_block_param(new, ty.into()));
                        }
                    }
                    self.bind(&params, &all);
                    new
                });
                let outer = self.b.enter(blocks[0]);
                self.block(*before)?;
                let values = self.passed(*before);
                if let Some(PlacedOp { what: What::Tile(TileOp::Condition { cond, .. }), .. }) =
                    self.f.terminator(*before)
                {
                    let cond = self.one(*cond);
                    self.b.run(ThreadOp::Condition { cond, values });
                }
                // The loop ends here, with what the test has left.
                let tested = self.in_use;
                self.b.enter(blocks[1]);
                self.in_use = InUse::ALL;
                self.block(*after)?;
                let values = self.passed(*after);
                self.b.run(ThreadOp::Yield { values });
                self.b.enter(outer);
                self.in_use = tested;
                let [before, after] = blocks;
                let all = self.b.ops(ThreadOp::While { inits, before, after });
                Ok(self.results(inst, &all))
            }
            TileOp::If { cond, then, otherwise } => {
                let cond = self.one(*cond);
                let in_use = self.in_use;
                let mut after = in_use;
                let blocks = [*then, *otherwise].map(|from| -> Lowered<Block> {
                    self.in_use = in_use;
                    let branch = self.b.begin_branch();
                    self.block(from)?;
                    after = after.or(self.in_use);
                    let values = self.passed(from);
                    Ok(self.b.end_branch(branch, values))
                });
                let [then, otherwise] = blocks;
                let op = ThreadOp::If { cond, then: then?, otherwise: otherwise? };
                self.in_use = after;
                let all = self.b.ops(op);
                Ok(self.results(inst, &all))
            }
            _ => self.unsupported("control flow of another kind"),
        }
    }

    /// A region's function of scalars.
    pub fn call(&mut self, body: Block, args: &[Value]) -> Lowered<Vec<Value>> {
        for (&param, &arg) in self.f.block_params(body).iter().zip(args) {
            self.known().insert(param, vec![arg]);
        }
        self.block(body)?;
        Ok(self.passed(body))
    }

    pub fn map(
        &mut self,
        inputs: &[Value],
        results: &[Value],
        pack: usize,
        body: Block,
    ) -> Lowered<Vec<Registers>> {
        let all: Vec<Registers> = inputs.iter().map(|&v| self.get(v).clone()).collect();
        let mut out: Vec<Registers> = vec![all[0].clone(); results.len()];
        for group in self.packs(results[0], pack)? {
            let args: Vec<Value> =
                all.iter().flat_map(|registers| group.iter().map(|&r| registers[r])).collect();
            let values = self.call(body, &args)?;
            for (result, values) in out.iter_mut().zip(values.chunks(pack)) {
                for (&r, &value) in group.iter().zip(values) {
                    result[r] = value;
                }
            }
        }
        Ok(out)
    }

    /// The registers that hold each `pack` consecutive elements.
    fn packs(&self, result: Value, pack: usize) -> Lowered<Vec<Vec<usize>>> {
        let Some(layout) = self.layout(result) else { return Ok(vec![vec![0; pack.min(1)]]) };
        let bits = layout.neighbours(0, pack.trailing_zeros());
        if bits.len() != pack.trailing_zeros() as usize || !pack.is_power_of_two() {
            return self.unsupported("elements that go together in different threads");
        }
        let leads = |r: &usize| bits.iter().all(|b| r >> b & 1 == 0);
        let member = |r: usize, i: usize| {
            r | bits.iter().enumerate().map(|(at, b)| (i >> at & 1) << b).sum::<usize>()
        };
        let leaders = (0..layout.count()).filter(leads);
        Ok(leaders.map(|r| (0..pack).map(|i| member(r, i)).collect()).collect())
    }

    pub fn inline_asm(&mut self, op: &TileOp, results: &[Value]) -> Lowered<Vec<Registers>> {
        let TileOp::InlineAsm { text, constraints, args, results: types, is_pure, pack, .. } = op
        else {
            return self.unsupported("assembly of another kind");
        };
        let all: Vec<Registers> = args.iter().map(|&v| self.get(v).clone()).collect();
        let arg_types: Vec<Scalar> =
            args.iter().map(|&v| self.scalar_of(v).unwrap_or(Scalar::U64)).collect();
        let count = self.layout(results[0]).map_or(1, |l| l.count());
        let zero = self.i32(0);
        let mut out: Vec<Registers> = vec![vec![zero; count]; results.len()];
        let groups = match self.layout(results[0]) {
            Some(_) => self.packs(results[0], *pack)?,
            // Of a scalar there is one element, whatever goes together.
            None => vec![vec![0; *pack]],
        };
        for group in groups {
            let mut operands = Vec::new();
            for (registers, &ty) in all.iter().zip(&arg_types) {
                let elements: Vec<Value> = group.iter().map(|&r| registers[r]).collect();
                operands.extend(self.words(&elements, ty));
            }
            let words: Vec<Scalar> = types
                .iter()
                .flat_map(|&ty| {
                    let (word, n) = word_of(ty, *pack);
                    std::iter::repeat_n(word, n)
                })
                .collect();
            let made = self.b.ops(ThreadOp::Asm {
                text: Text(text.0.clone()),
                constraints: Text(constraints.0.clone()),
                args: operands,
                results: words.into_iter().collect(),
                is_pure: *is_pure,
            });
            let mut rest = &made[..];
            for (result, &ty) in out.iter_mut().zip(types) {
                let (own, others) = rest.split_at(word_of(ty, *pack).1);
                let elements = self.elements_of(own, ty, *pack);
                for (&r, value) in group.iter().zip(elements) {
                    result[r] = value;
                }
                rest = others;
            }
        }
        Ok(out)
    }

    /// Narrow elements that go together fill 32-bit words, the first lowest.
    fn words(&mut self, elements: &[Value], ty: Scalar) -> Vec<Value> {
        let (word, n) = word_of(ty, elements.len());
        if word == ty {
            return elements.to_vec();
        }
        let each = elements.len() / n;
        let chunks = elements.chunks(each);
        chunks.map(|chunk| self.word(chunk, ty)).collect()
    }

    /// Elements of 1, 8 or 16 bits as one i32, the first lowest.
    pub fn word(&mut self, elements: &[Value], ty: Scalar) -> Value {
        if let Some(&word) = self.words.get(elements) {
            return word;
        }
        use naiad_ir::scalar::{BinaryFn, Rounding};
        let bits = i64::from(ty.bits());
        let unsigned = if bits == 8 { Scalar::U8 } else { Scalar::U16 };
        let mut word = None;
        for (i, &element) in elements.iter().enumerate() {
            let raw = match ty {
                Scalar::I1 => element,
                _ => self.b.bitcast(element, unsigned),
            };
            let wide = self.b.cast(raw, Scalar::I32, Rounding::Nearest);
            let moved = self.shift_left(wide, i as i64 * bits);
            word = Some(match word {
                Some(word) => self.b.binary(BinaryFn::Or, word, moved),
                None => moved,
            });
        }
        word.unwrap_or_else(|| self.i32(0))
    }

    fn elements_of(&mut self, words: &[Value], ty: Scalar, pack: usize) -> Vec<Value> {
        use naiad_ir::scalar::Rounding;
        let (word, n) = word_of(ty, pack);
        if word == ty {
            return words.to_vec();
        }
        let bits = i64::from(ty.bits());
        let unsigned = if bits == 8 { Scalar::U8 } else { Scalar::U16 };
        let mut out = Vec::new();
        for &word in words {
            for i in 0..pack / n {
                let moved = self.shift_right(word, i as i64 * bits);
                if ty == Scalar::I1 {
                    let (bit, zero) = (self.and(moved, 1), self.i32(0));
                    out.push(self.b.compare(Predicate::Ne, bit, zero));
                    continue;
                }
                let raw = self.b.cast(moved, unsigned, Rounding::Nearest);
                out.push(self.b.bitcast(raw, ty));
            }
        }
        out
    }
}

/// The register type that elements of inline assembly travel in, and how many of them `pack` take.
fn word_of(ty: Scalar, pack: usize) -> (Scalar, usize) {
    let each = (32 / ty.bits() as usize).max(1).min(pack);
    if each > 1 { (Scalar::I32, pack / each) } else { (ty, pack) }
}
