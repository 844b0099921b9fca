//! Placed IR, once it is decided where everything is.

use super::Context;
use super::wanted::Wanted;
use crate::Unsupported;
use crate::layout::Layout;
use crate::placed::{Extra, Placed, PlacedOp, PlacedType, Run, Watched, What};
use naiad_ir::op::{Effects, OpInfo};
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Function, Inst, Value};
use rustc_hash::FxHashMap;

pub fn emit(context: &Context<'_>, wanted: &Wanted) -> Result<Function<Placed>, Unsupported> {
    let from = context.func;
    let mut to = Function::new(&from.name);
    to.places = from.places.clone();
    let mut emit =
        Emit { context, wanted, to, scalars: FxHashMap::default(), tiles: FxHashMap::default() };
    for (&param, name) in from.params().iter().zip(&from.param_names) {
        let value = emit.to.add_param(name, PlacedType::scalar(from.ty(param)));
        emit.scalars.insert(param, value);
    }
    let entry = emit.to.entry();
    emit.block(from.entry(), entry, None)?;
    Ok(emit.to)
}

struct Emit<'a> {
    context: &'a Context<'a>,
    wanted: &'a Wanted,
    to: Function<Placed>,
    scalars: FxHashMap<Value, Value>,
    tiles: FxHashMap<(Value, Layout), Value>,
}

type Emitted<T> = Result<T, Unsupported>;

impl Emit<'_> {
    /// A block's ops; `passed` says what its terminator's values become.
    fn block(&mut self, from: Block, to: Block, passed: Option<&[Value]>) -> Emitted<()> {
        for &inst in self.context.func.insts(from) {
            self.inst(inst, to, passed)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        block: Block,
        inst: Inst,
        what: What,
        results: Vec<PlacedType>,
    ) -> Emitted<Inst> {
        let loc = self.context.func.loc(inst);
        let run = match &what {
            What::Tile(_) => self.context.known_run(inst),
            What::Extra(_) => Run::NONE,
        };
        let site = match &what {
            What::Tile(_) => self.context.watch.and_then(|watch| watch.site_of(inst)),
            What::Extra(_) => None,
        };
        self.to
            .push(block, PlacedOp { what, results, run, site: Watched(site) }, loc)
            .map_err(|why| Unsupported { what: why, loc: Some(loc) })
    }

    /// A value in a layout; scalars have none.
    fn get(&self, value: Value, layout: Option<&Layout>) -> Value {
        let found = match layout.filter(|_| self.context.is_tile(value)) {
            Some(layout) => self.tiles.get(&(value, *layout)),
            None => self.scalars.get(&value),
        };
        match found {
            Some(&v) => v,
            None => panic!("{value} was not placed in {layout:?}\n{}", self.context.func),
        }
    }

    /// The values that control flow passes on, in the layouts of what they become.
    fn passed(&self, from: &[Value], to: &[Value]) -> Vec<Value> {
        let layouts = to.iter().map(|&v| self.wanted.carried(v));
        from.iter().zip(layouts).map(|(&v, layout)| self.get(v, layout.as_ref())).collect()
    }

    fn ty(&self, value: Value, layout: Option<Layout>) -> PlacedType {
        let ty = self.context.func.ty(value);
        match layout.filter(|_| !ty.is_scalar()) {
            Some(layout) => PlacedType::spread(ty, layout),
            None => PlacedType::scalar(ty),
        }
    }

    /// Notes a value, and brings it into all the layouts that it is asked for in.
    fn define(&mut self, block: Block, inst: Inst, old: Value, new: Value) -> Emitted<()> {
        let Some(home) = self.to.ty(new).layout() else {
            self.scalars.insert(old, new);
            return Ok(());
        };
        self.tiles.insert((old, home), new);
        for layout in self.wanted.asked[old.index()].clone() {
            if !self.tiles.contains_key(&(old, layout)) {
                let ty = self.ty(old, Some(layout));
                let convert =
                    self.push(block, inst, Extra::Convert { src: new }.into(), vec![ty])?;
                self.tiles.insert((old, layout), self.to.results(convert)[0]);
            }
        }
        Ok(())
    }

    fn params(&mut self, from: Block, to: Block, inst: Inst) -> Emitted<()> {
        let old = self.context.func.block_params(from).to_vec();
        let mut new = Vec::new();
        for &p in &old {
            let ty = self.ty(p, self.wanted.carried(p));
            new.push(self.to.add_block_param(to, ty));
        }
        for (old, new) in old.into_iter().zip(new) {
            self.define(to, inst, old, new)?;
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst, block: Block, passed: Option<&[Value]>) -> Emitted<()> {
        let func = self.context.func;
        let results = func.results(inst);
        let op = func.op(inst);
        let carried = |emit: &Self| -> Vec<PlacedType> {
            results.iter().map(|&r| emit.ty(r, emit.wanted.carried(r))).collect()
        };
        match op {
            TileOp::For { lower, upper, step, inits, hints, body } => {
                let inits = self.passed(inits, &func.block_params(*body)[1..]);
                let [lower, upper, step] = [lower, upper, step].map(|v| self.get(*v, None));
                let new = self.to.new_block();
                self.params(*body, new, inst)?;
                self.block(*body, new, Some(&func.block_params(*body)[1..]))?;
                let hints = *hints;
                let op = TileOp::For { lower, upper, step, inits, hints, body: new };
                let types = carried(self);
                return self.finish(block, inst, op, types);
            }
            TileOp::While { inits, before, after } => {
                let (tested, given) = (func.block_params(*before), func.block_params(*after));
                let inits = self.passed(inits, tested);
                let news = [self.to.new_block(), self.to.new_block()];
                self.params(*before, news[0], inst)?;
                self.block(*before, news[0], Some(given))?;
                self.params(*after, news[1], inst)?;
                self.block(*after, news[1], Some(tested))?;
                let op = TileOp::While { inits, before: news[0], after: news[1] };
                let types = carried(self);
                return self.finish(block, inst, op, types);
            }
            TileOp::If { cond, then, otherwise } => {
                let cond = self.get(*cond, None);
                let news = [self.to.new_block(), self.to.new_block()];
                self.block(*then, news[0], Some(results))?;
                self.block(*otherwise, news[1], Some(results))?;
                let op = TileOp::If { cond, then: news[0], otherwise: news[1] };
                let types = carried(self);
                return self.finish(block, inst, op, types);
            }
            TileOp::Yield { values } => {
                let values = match passed {
                    Some(to) => self.passed(values, to),
                    None => values.iter().map(|&v| self.get(v, None)).collect(),
                };
                self.push(block, inst, TileOp::Yield { values }.into(), vec![])?;
                return Ok(());
            }
            TileOp::Condition { cond, values } => {
                let values = self.passed(values, passed.unwrap_or(&[]));
                let cond = self.get(*cond, None);
                self.push(block, inst, TileOp::Condition { cond, values }.into(), vec![])?;
                return Ok(());
            }
            _ => {}
        }
        if !results.first().is_some_and(|&r| self.context.is_tile(r)) {
            let asks = self.wanted.asks(self.context, inst, None);
            let types = results.iter().map(|&r| self.ty(r, None)).collect();
            let op = self.with_operands(inst, &asks)?;
            return self.finish(block, inst, op, types);
        }
        let home = self.wanted.home[results[0].index()];
        let asked = self.wanted.asked[results[0].index()].clone();
        // What nobody asks for and does nothing is left out.
        let layouts = match home {
            Some(home) if !asked.is_empty() || op.effects() != Effects::Pure => vec![home],
            Some(home) if results.len() > 1 => vec![home],
            Some(_) => vec![],
            None => asked.to_vec(),
        };
        for layout in layouts {
            let asks = self.wanted.asks(self.context, inst, Some(&layout));
            let types = results.iter().map(|&r| self.ty(r, Some(layout))).collect();
            let op = self.with_operands(inst, &asks)?;
            if home.is_some() {
                self.finish(block, inst, op, types)?;
            } else {
                let made = self.push(block, inst, op.into(), types)?;
                for (i, &r) in results.iter().enumerate() {
                    self.tiles.insert((r, layout), self.to.results(made)[i]);
                }
            }
        }
        Ok(())
    }

    fn finish(
        &mut self,
        block: Block,
        inst: Inst,
        op: TileOp,
        types: Vec<PlacedType>,
    ) -> Emitted<()> {
        let made = self.push(block, inst, op.into(), types)?;
        let new = self.to.results(made).to_vec();
        for (&old, new) in self.context.func.results(inst).iter().zip(new) {
            self.define(block, inst, old, new)?;
        }
        Ok(())
    }

    /// The op on placed operands, its region copied.
    fn with_operands(&mut self, inst: Inst, asks: &[(Value, Layout)]) -> Emitted<TileOp> {
        let mut op = self.context.func.op(inst).clone();
        let mut asks = asks.iter();
        op.each_value_mut(&mut |v| {
            let is_tile = self.context.is_tile(*v);
            let layout = if is_tile { asks.next() } else { None };
            *v = self.get(*v, layout.map(|(_, layout)| layout));
        });
        if let TileOp::Reduce { body, .. } | TileOp::Scan { body, .. } | TileOp::Map { body, .. } =
            &mut op
        {
            let new = self.to.new_block();
            self.region(*body, new)?;
            *body = new;
        }
        Ok(op)
    }

    /// A region over scalars, which may branch and loop.
    fn region(&mut self, from: Block, to: Block) -> Emitted<()> {
        for &p in self.context.func.block_params(from) {
            let new = self.to.add_block_param(to, PlacedType::scalar(self.context.func.ty(p)));
            self.scalars.insert(p, new);
        }
        self.block(from, to, None)
    }
}
