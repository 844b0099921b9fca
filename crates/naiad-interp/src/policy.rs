//! What is judged while a kernel runs.
//!
//! A policy is a type, so that what a plain run does not do costs it nothing. Values carry the policy's
//! `Lanes`: under a plain run nothing, under the checked one what each lane is owed to. The executor
//! calls the policy at a few moments of a program's life; everything else is the policy's own business.

use crate::check::Overlay;
use crate::exec::{Exec, Program, Vals};
use crate::fault::Fault;
use crate::ops::Results;
use naiad_ir::tile::TileOp;
use naiad_ir::{Inst, Value};
use smallvec::SmallVec;

/// What is known of an op's results besides their numbers.
pub type Known<P> = SmallVec<[<P as Policy>::Lanes; 1]>;

pub trait Policy: Sync + Sized + 'static {
    /// What is known of a value's lanes besides their numbers.
    type Lanes: Clone + Default;

    /// What is kept for each program.
    type State: Default;

    /// Whether the moments below are of interest at all.
    const CHECKED: bool;

    /// A program begins.
    fn begins(exec: &Exec<'_, Self>, p: &mut Program<Self>);

    /// An op that computes has given its results, and its operands are still there.
    fn computed(
        exec: &mut Exec<'_, Self>,
        p: &mut Program<Self>,
        inst: Inst,
        results: &mut Results,
    ) -> Result<Known<Self>, Fault>;

    /// A scalar decides where the program goes on.
    fn branches(exec: &mut Exec<'_, Self>, p: &mut Program<Self>, inst: Inst, cond: Value);

    /// An op that has an effect is about to have it.
    fn touches(
        exec: &mut Exec<'_, Self>,
        p: &mut Program<Self>,
        inst: Inst,
        op: &TileOp,
    ) -> Result<(), Fault>;

    /// It has had it, and these are its results. `changed` tells of an atomic op that it wrote.
    fn touched(
        exec: &mut Exec<'_, Self>,
        p: &mut Program<Self>,
        inst: Inst,
        op: &TileOp,
        results: &mut Vals<Self>,
        changed: bool,
    );

    /// What a private run keeps to itself; none for one that counts.
    fn overlay(p: &Program<Self>) -> Option<Overlay>;
}

/// Values, and accesses within storage.
pub struct Plain;

impl Policy for Plain {
    type Lanes = ();
    type State = ();
    const CHECKED: bool = false;

    #[inline(always)]
    fn begins(_: &Exec<'_, Plain>, _: &mut Program<Plain>) {}

    #[inline(always)]
    fn computed(
        _: &mut Exec<'_, Plain>,
        _: &mut Program<Plain>,
        _: Inst,
        _: &mut Results,
    ) -> Result<Known<Plain>, Fault> {
        Ok(SmallVec::new())
    }

    #[inline(always)]
    fn branches(_: &mut Exec<'_, Plain>, _: &mut Program<Plain>, _: Inst, _: Value) {}

    #[inline(always)]
    fn touches(
        _: &mut Exec<'_, Plain>,
        _: &mut Program<Plain>,
        _: Inst,
        _: &TileOp,
    ) -> Result<(), Fault> {
        Ok(())
    }

    #[inline(always)]
    fn touched(
        _: &mut Exec<'_, Plain>,
        _: &mut Program<Plain>,
        _: Inst,
        _: &TileOp,
        _: &mut Vals<Plain>,
        _: bool,
    ) {
    }

    #[inline(always)]
    fn overlay(_: &Program<Plain>) -> Option<Overlay> {
        None
    }
}
