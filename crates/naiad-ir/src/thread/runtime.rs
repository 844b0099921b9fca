//! What compiled code may call.
//!
//! Arguments are integers of 64 bits and addresses. Lengths count elements, strides bytes. A type is
//! its position in [`Scalar::ALL`](crate::Scalar::ALL).

use super::types::ThreadType;
use crate::op::attr_enum;

attr_enum! {
    /// A function of the runtime.
    pub enum RuntimeFn [suffix] {
        /// `(dst, dst_s0, dst_s1, src, src_s0, src_s1, n0, n1, size, hints)`: copies a box of elements of
        /// `size` bytes. Hints are bits: 1 to store past the caches, 2 and 4 if the next call will read
        /// the box that follows along axis 0 or 1, which is then asked for in advance.
        Copy2d = "copy2d",
        /// `(a, a_s0, a_s1, b, b_s0, b_s1, c, c_s0, m, n, k, a_type, b_type, c_type)`: adds the product of
        /// an `m x k` and a `k x n` matrix to an `m x n` one with contiguous rows. Hints are added to the
        /// last type, as to `copy2d`'s `stream`; the runtime says which there are. With 256 added to
        /// `c_type`, what follows along `k` in both is asked for in advance.
        Dot = "dot",
        /// `(dst, src, rows, n, type, descending)`: sorts rows.
        Sort = "sort",
        /// `(dst, src, rows, n, k, type, descending)`: the first `k` of each sorted row.
        TopK = "topk",
        /// `(dst, src, mask or 0, count, bins, type)`: counts into i32.
        Histogram = "histogram",
        /// `(context, site, address, lane)`: whether the access of this site may touch the element at
        /// the address.
        MayAccess = "may_access",
        /// `(context, site, program, operands)`: what the host does for an op (printing, assertions,
        /// inline assembly, facts of the machine); `operands` are addresses of buffers, one for each
        /// operand and then for each result. Whether to go on.
        Host = "host",
        /// `(address, type, op, value)`: an atomic update of a type that has no instruction for it; the
        /// op is its position in [`AtomicOp::ALL`](crate::tile::AtomicOp::ALL). Gives the old bits.
        AtomicRmw = "atomic_rmw",
        /// `(address, bytes, compare, value)`: an atomic exchange if equal. Gives the old bits.
        AtomicCas = "atomic_cas",
        /// `(context, site, same)`: a round of a loop that may wait for other programs is over; `same` is 0
        /// if what the loop carries has changed. Lets other programs run. Whether to go on.
        Wait = "wait",
    }
}

const A: ThreadType = ThreadType::ADDR;
const I: ThreadType = ThreadType::I64;
const B: ThreadType = ThreadType::BOOL;

impl RuntimeFn {
    /// Types of the arguments and of the results.
    pub const fn signature(self) -> (&'static [ThreadType], &'static [ThreadType]) {
        match self {
            RuntimeFn::Copy2d => (&[A, I, I, A, I, I, I, I, I, I], &[]),
            RuntimeFn::Dot => (&[A, I, I, A, I, I, A, I, I, I, I, I, I, I], &[]),
            RuntimeFn::Sort => (&[A, A, I, I, I, I], &[]),
            RuntimeFn::TopK => (&[A, A, I, I, I, I, I], &[]),
            RuntimeFn::Histogram => (&[A, A, A, I, I, I], &[]),
            RuntimeFn::MayAccess => (&[A, I, A, I], &[B]),
            RuntimeFn::Host => (&[A, I, I, A], &[B]),
            RuntimeFn::AtomicRmw => (&[A, I, I, I], &[I]),
            RuntimeFn::AtomicCas => (&[A, I, I, I], &[I]),
            RuntimeFn::Wait => (&[A, I, I], &[B]),
        }
    }
}
