//! What the threads of a warp do together, and copies that go on meanwhile.

use crate::emit::{Class, Emit, Lanes, Operand, tuple};
use crate::memory::{Place, address};
use naiad_ir::Scalar;
use naiad_ir::thread::{MmaKind, ShuffleMode, ThreadElem, VoteMode};

/// All threads of a warp.
const ALL: &str = "0xffffffff";

impl Emit {
    /// The value of another thread, as words.
    pub fn warp_shuffle(
        &mut self,
        mode: ShuffleMode,
        elem: ThreadElem,
        x: Operand,
        lane: Operand,
    ) -> Operand {
        match elem.bits() {
            1 => {
                let word = self.select(x, Operand::word(1), Operand::word(0));
                let word = self.shuffle_word(mode, word, lane);
                self.setp("setp.ne.u32", word, Operand::word(0))
            }
            16 => {
                let x = self.reg(x);
                let word = self.ins("cvt.u32.u16", Class::Word, [x]);
                let word = self.shuffle_word(mode, word, lane);
                self.ins("cvt.u16.u32", Class::Half, [word])
            }
            64 => {
                let x = self.reg(x);
                let words = [self.fresh(Class::Word), self.fresh(Class::Word)];
                self.line(format_args!("mov.b64 {}, {x}", tuple(&words)));
                let words = words.map(|w| self.shuffle_word(mode, w, lane));
                let whole = self.fresh(Class::Double);
                self.line(format_args!("mov.b64 {whole}, {}", tuple(&words)));
                whole
            }
            _ => self.shuffle_word(mode, x, lane),
        }
    }

    fn shuffle_word(&mut self, mode: ShuffleMode, x: Operand, lane: Operand) -> Operand {
        // The last operand bounds the lanes that are read: from above, or for `up` from below. A thread
        // whose partner is outside gets its own value.
        let (name, bound) = match mode {
            ShuffleMode::Index => ("idx", 31),
            ShuffleMode::Xor => ("bfly", 31),
            ShuffleMode::Up => ("up", 0),
            ShuffleMode::Down => ("down", 31),
        };
        let (x, dst) = (self.reg(x), self.fresh(Class::Word));
        self.line(format_args!("shfl.sync.{name}.b32 {dst}, {x}, {lane}, {bound}, {ALL}"));
        dst
    }

    pub fn warp_vote(&mut self, mode: VoteMode, cond: Operand) -> Operand {
        let (cond, dst) = (self.reg(cond), self.fresh(Class::Pred));
        self.line(format_args!("vote.sync.{}.pred {dst}, {cond}, {ALL}", mode.name()));
        dst
    }

    pub fn block_vote(&mut self, mode: VoteMode, cond: Operand) -> Operand {
        let (cond, dst) = (self.reg(cond), self.fresh(Class::Pred));
        let name = match mode {
            VoteMode::Any => "or",
            VoteMode::All => "and",
        };
        self.line(format_args!("bar.red.{name}.pred {dst}, 0, {cond}"));
        dst
    }

    pub fn warp_barrier(&mut self) {
        self.line(format_args!("bar.warp.sync {ALL}"));
    }

    pub fn load_matrix(&mut self, place: Place, count: u32, transposed: bool) -> Lanes {
        let place = self.reachable(place);
        let words: Lanes = (0..count).map(|_| self.fresh(Class::Word)).collect();
        let trans = if transposed { ".trans" } else { "" };
        let (targets, address) = (tuple(&words), address(place));
        self.line(format_args!(
            "ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {targets}, {address}"
        ));
        words
    }

    pub fn mma(
        &mut self,
        kind: MmaKind,
        a: &[Operand],
        b: &[Operand],
        c: &[Operand],
    ) -> Result<Lanes, String> {
        let is_fp8 = matches!(kind, MmaKind::E4m3 | MmaKind::E5m2);
        if is_fp8 && self.target.capability < 89 {
            return Err(format!(
                "matrix units multiply {} from sm_89 on, and the target is sm_{}",
                kind.name(),
                self.target.capability
            ));
        }
        if is_fp8 {
            self.needs(84);
        }
        let [m, n, k] = kind.extents();
        let ty = kind.name();
        let sum = if kind.sum() == Scalar::I32 { "s32" } else { "f32" };
        let dst: Lanes = c.iter().map(|_| self.fresh(Class::Word)).collect();
        let [a, b, c] = [a, b, c].map(|x| {
            let x: Lanes = x.iter().map(|&x| self.reg(x)).collect();
            tuple(&x)
        });
        let d = tuple(&dst);
        self.line(format_args!(
            "mma.sync.aligned.m{m}n{n}k{k}.row.col.{sum}.{ty}.{ty}.{sum} {d}, {a}, {b}, {c}"
        ));
        Ok(dst)
    }

    /// Bytes of which none are read are zeros.
    pub fn async_copy(&mut self, to: Place, from: Place, bytes: u32, mask: Option<Operand>) {
        let (to, from) = (self.reachable(to), self.reachable(from));
        // Only copies of 16 bytes can go past the first cache.
        let cache = if bytes == 16 { "cg" } else { "ca" };
        let (to, from) = (address(to), address(from));
        let read = mask.filter(|m| m.known() != Some(1)).map(|m| {
            let read = self.select(m, Operand::word(bytes.into()), Operand::word(0));
            format!(", {read}")
        });
        let read = read.unwrap_or_default();
        self.line(format_args!("cp.async.{cache}.shared.global {to}, {from}, {bytes}{read}"));
    }
}
