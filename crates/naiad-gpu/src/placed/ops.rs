//! Ops of Placed IR: those of Tile IR, and a few of its own.

use super::{Placed, PlacedType};
use naiad_ir::op::{Attr, Effects, Field, OpInfo, RawOp, Types};
use naiad_ir::thread::Site;
use naiad_ir::tile::{MemHints, TileOp};
use naiad_ir::{Block, Function, Value};

/// An op with the types of its results.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlacedOp {
    pub what: What,
    pub results: Vec<PlacedType>,
    /// Of an op on memory how memory lies; of a comparison which results are alike.
    pub run: Run,
    /// What a report of a fault that the op finds speaks of.
    pub site: Watched,
}

/// The site of an op that may find fault, of others none. In text `site=3`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Watched(pub Option<Site>);

impl Attr for Watched {
    fn to_word(&self) -> String {
        self.0.map_or_else(String::new, |site| site.to_word())
    }

    fn from_word(word: &str) -> Option<Watched> {
        Site::from_word(word).map(|site| Watched(Some(site)))
    }

    fn omitted() -> Option<Watched> {
        Some(Watched(None))
    }
}

/// What is known of the addresses and of the mask of an access: along `axis`, each aligned group of
/// `together` elements lies together in memory; each of `vector` does and is aligned to its size; and
/// each of `mask` is masked alike. In text `run=1:64:4:16`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Run {
    pub axis: u32,
    pub together: u32,
    pub vector: u32,
    pub mask: u32,
}

impl Run {
    /// Nothing is known.
    pub const NONE: Run = Run { axis: 0, together: 1, vector: 1, mask: 1 };
}

impl Attr for Run {
    fn to_word(&self) -> String {
        format!("{}:{}:{}:{}", self.axis, self.together, self.vector, self.mask)
    }

    fn from_word(word: &str) -> Option<Run> {
        let parts: Option<Vec<u32>> = word.split(':').map(|p| p.parse().ok()).collect();
        let [axis, together, vector, mask] = parts?.try_into().ok()?;
        Some(Run { axis, together, vector, mask })
    }

    fn omitted() -> Option<Run> {
        Some(Run::NONE)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// What Tile IR has an op for.
    Tile(TileOp),
    Extra(Extra),
}

/// What tiles that have a place can do besides.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Extra {
    /// The same tile in another layout.
    Convert { src: Value },
    /// Shared memory for tiles.
    Alloc,
    /// Takes a tile out of a slot.
    Read { buffer: Value, slot: Value },
    /// Begins to copy from memory into a slot.
    CopyAsync { buffer: Value, slot: Value, ptr: Value, mask: Option<Value>, hints: MemHints },
    /// Closes a group of copies.
    Commit,
    /// Waits until at most so many groups are not done.
    Wait { pending: u32 },
    /// Ends the life of shared memory, of what was allotted last.
    Free { buffer: Value },
}

impl From<TileOp> for What {
    fn from(op: TileOp) -> What {
        What::Tile(op)
    }
}

impl From<Extra> for What {
    fn from(op: Extra) -> What {
        What::Extra(op)
    }
}

impl Extra {
    const NAMES: [&'static str; 7] =
        ["convert", "alloc", "read", "copy_async", "commit", "wait", "free"];

    fn number(&self) -> usize {
        match self {
            Extra::Convert { .. } => 0,
            Extra::Alloc => 1,
            Extra::Read { .. } => 2,
            Extra::CopyAsync { .. } => 3,
            Extra::Commit => 4,
            Extra::Wait { .. } => 5,
            Extra::Free { .. } => 6,
        }
    }

    fn values(&self) -> Vec<Value> {
        match *self {
            Extra::Convert { src } => vec![src],
            Extra::Alloc | Extra::Commit | Extra::Wait { .. } => vec![],
            Extra::Free { buffer } => vec![buffer],
            Extra::Read { buffer, slot } => vec![buffer, slot],
            Extra::CopyAsync { buffer, slot, ptr, mask, .. } => {
                [buffer, slot, ptr].into_iter().chain(mask).collect()
            }
        }
    }
}

impl OpInfo<Placed> for PlacedOp {
    fn name(&self) -> &'static str {
        match &self.what {
            What::Tile(op) => op.name(),
            What::Extra(op) => Extra::NAMES[op.number()],
        }
    }

    fn effects(&self) -> Effects {
        match &self.what {
            What::Tile(op) => op.effects(),
            What::Extra(Extra::Convert { .. }) => Effects::Pure,
            What::Extra(Extra::Alloc | Extra::Free { .. }) => Effects::Stays,
            What::Extra(_) => Effects::Writes,
        }
    }

    fn each_value(&self, f: &mut dyn FnMut(Value)) {
        match &self.what {
            What::Tile(op) => op.each_value(f),
            What::Extra(op) => op.values().into_iter().for_each(f),
        }
    }

    fn each_value_mut(&mut self, f: &mut dyn FnMut(&mut Value)) {
        match &mut self.what {
            What::Tile(op) => op.each_value_mut(f),
            What::Extra(op) => match op {
                Extra::Convert { src } => f(src),
                Extra::Alloc | Extra::Commit | Extra::Wait { .. } => {}
                Extra::Free { buffer } => f(buffer),
                Extra::Read { buffer, slot } => [buffer, slot].into_iter().for_each(f),
                Extra::CopyAsync { buffer, slot, ptr, mask, .. } => {
                    [buffer, slot, ptr].into_iter().chain(mask).for_each(f);
                }
            },
        }
    }

    fn each_block(&self, f: &mut dyn FnMut(Block)) {
        if let What::Tile(op) = &self.what {
            op.each_block(f);
        }
    }

    fn infer(&self, _: &Function<Placed>) -> Result<Types<Placed>, String> {
        Ok(self.results.iter().copied().collect())
    }

    fn to_raw(&self) -> RawOp {
        let op = match &self.what {
            What::Tile(op) => {
                let mut raw = op.to_raw();
                self.run.put("run", &mut raw);
                self.site.put("site", &mut raw);
                return raw;
            }
            What::Extra(op) => op,
        };
        let mut raw = RawOp::new(Extra::NAMES[op.number()]);
        self.run.put("run", &mut raw);
        self.site.put("site", &mut raw);
        match op {
            Extra::Convert { .. } | Extra::Alloc | Extra::Commit => {}
            Extra::Read { .. } | Extra::Free { .. } => {}
            Extra::CopyAsync { mask, hints, .. } => {
                mask.put("mask", &mut raw);
                hints.put("hints", &mut raw);
            }
            Extra::Wait { pending } => pending.put("pending", &mut raw),
        }
        let operands = match op {
            Extra::CopyAsync { buffer, slot, ptr, .. } => vec![*buffer, *slot, *ptr],
            op => op.values(),
        };
        raw.operands = operands;
        raw
    }

    fn from_raw(mut raw: RawOp) -> Result<PlacedOp, String> {
        let results = raw.types.iter().map(|t| t.parse()).collect::<Result<_, String>>()?;
        let run = Field::take("run", &mut raw)?;
        let site = Field::take("site", &mut raw)?;
        let Some(number) = Extra::NAMES.iter().position(|&n| n == raw.name) else {
            return Ok(PlacedOp { what: TileOp::from_raw(raw)?.into(), results, run, site });
        };
        let r = &mut raw;
        let op = match number {
            0 => Extra::Convert { src: Field::take("src", r)? },
            1 => Extra::Alloc,
            2 => Extra::Read { buffer: Field::take("buffer", r)?, slot: Field::take("slot", r)? },
            3 => Extra::CopyAsync {
                buffer: Field::take("buffer", r)?,
                slot: Field::take("slot", r)?,
                ptr: Field::take("ptr", r)?,
                mask: Field::take("mask", r)?,
                hints: Field::take("hints", r)?,
            },
            4 => Extra::Commit,
            5 => Extra::Wait { pending: Field::take("pending", r)? },
            _ => Extra::Free { buffer: Field::take("buffer", r)? },
        };
        raw.finish()?;
        Ok(PlacedOp { what: op.into(), results, run, site })
    }

    fn is_lanewise(&self) -> bool {
        matches!(&self.what, What::Tile(op) if op.is_lanewise())
    }

    fn is_isolated(&self) -> bool {
        matches!(&self.what, What::Tile(op) if op.is_isolated())
    }
}
