//! Ops on memory.

use super::{Evaluator, Lanes};
use crate::engine::{read_image, write_image};
use naiad_ir::op::OpInfo;
use naiad_ir::thread::{ThreadElem, ThreadOp};
use naiad_ir::{Scalar, Value};
use smallvec::smallvec;

/// A buffer of scratch memory, aligned to 64 bytes, and to no more: who wants more finds out.
pub struct Buffer {
    memory: Vec<Line>,
}

#[repr(C, align(64))]
#[derive(Copy, Clone)]
struct Line([u8; 64]);

impl Buffer {
    /// What it holds at first is no number that anybody would expect.
    pub fn new(bytes: usize) -> Buffer {
        Buffer { memory: vec![Line([0xa5; 64]); bytes.div_ceil(64).max(1)] }
    }

    pub fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }
}

impl Evaluator<'_> {
    /// The result of an op that reads or writes memory.
    pub fn access(&mut self, op: &ThreadOp) -> Option<Lanes> {
        match op {
            ThreadOp::Load { addr, disp, elem, lanes, mask, hints: _ } => {
                let at = self.one(*addr).wrapping_add_signed(*disp);
                let lane = |i: u64| {
                    let place = at.wrapping_add(i * elem.size() as u64);
                    if self.wanted(mask, i as usize) { read(place, *elem) } else { 0 }
                };
                Some((0..u64::from(lanes.0)).map(lane).collect())
            }
            ThreadOp::Store { addr, value, disp, mask, hints: _ } => {
                let at = self.one(*addr).wrapping_add_signed(*disp);
                let elem = self.vector(*value).elem;
                for (i, &x) in self.get(*value).iter().enumerate() {
                    if self.wanted(mask, i) {
                        write(at.wrapping_add((i * elem.size()) as u64), elem, x);
                    }
                }
                None
            }
            ThreadOp::Gather { addr, elem, mask } => {
                let lanes = self.get(*addr).iter().enumerate();
                let lane = |(i, &at)| if self.wanted(mask, i) { read(at, *elem) } else { 0 };
                Some(lanes.map(lane).collect())
            }
            ThreadOp::Scatter { addr, value, mask } => {
                let elem = self.vector(*value).elem;
                for (i, (&at, &x)) in self.get(*addr).iter().zip(self.get(*value)).enumerate() {
                    if self.wanted(mask, i) {
                        write(at, elem, x);
                    }
                }
                None
            }
            ThreadOp::Atomic { f, addr, value, .. } => {
                let ty = self.scalar(*value);
                let value = self.one(*value);
                Some(self.replace(*addr, ty, |old| f.eval(ty, old, value)))
            }
            ThreadOp::AtomicCas { addr, compare, value, .. } => {
                let (compare, new) = (self.one(*compare), self.one(*value));
                let ty = self.scalar(*value);
                Some(self.replace(*addr, ty, |old| if old == compare { new } else { old }))
            }
            ThreadOp::AtomicLoad { addr, elem, .. } => {
                Some(smallvec![read(self.one(*addr), *elem)])
            }
            ThreadOp::AtomicStore { addr, value, .. } => {
                write(self.one(*addr), self.vector(*value).elem, self.one(*value));
                None
            }
            other => panic!("`{}` is no access", other.name()),
        }
    }

    fn wanted(&self, mask: &Option<Value>, lane: usize) -> bool {
        mask.is_none_or(|m| self.get(m)[lane] != 0)
    }

    /// One thread is alone, so that reading and then writing is atomic.
    fn replace(&self, addr: Value, ty: Scalar, next: impl FnOnce(u64) -> u64) -> Lanes {
        let (at, elem) = (self.one(addr), ThreadElem::Scalar(ty));
        let old = read(at, elem);
        write(at, elem, next(old));
        smallvec![old]
    }
}

fn read(at: u64, elem: ThreadElem) -> u64 {
    // SAFETY: the promise of whoever runs the function.
    let image = unsafe { read_image(at as *const u8, elem.size()) };
    if elem == ThreadElem::Scalar(Scalar::I1) { u64::from(image != 0) } else { image }
}

fn write(at: u64, elem: ThreadElem, image: u64) {
    // SAFETY: the promise of whoever runs the function.
    unsafe { write_image(at as *mut u8, elem.size(), image) };
}
