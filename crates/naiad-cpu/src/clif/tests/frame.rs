//! Where scratch buffers lie.

use crate::clif::frame::Frame;
use naiad_diag::Source;
use naiad_ir::Function;
use naiad_ir::thread::{Thread, ThreadOp};

/// Checks offsets of the buffers, in the order of their ops, and the size of the frame.
fn check(body: &str, offsets: &[usize], bytes: usize) {
    let text = format!("thread @f(%p p: addr, %x x: fp32, %n n: i64) {{\n{body}\n  return\n}}");
    let func: Function<Thread> = match naiad_ir::text::parse(&Source::new("frame", &*text)) {
        Ok(func) => func,
        Err(e) => panic!("{}: {}\n{text}", e.message, e.place().map_or("", |p| p.text())),
    };
    naiad_ir::verify(&func).unwrap_or_else(|e| panic!("{}\n{text}", e.message));
    let frame = Frame::new(&func);
    let mut found = Vec::new();
    func.walk(&mut |inst| {
        if matches!(func.op(inst), ThreadOp::Scratch { .. }) {
            found.push(frame.offset(inst));
        }
    });
    assert_eq!((found.as_slice(), frame.bytes), (offsets, bytes), "{text}");
}

#[test]
fn no_scratch_no_frame() {
    check("store %p, %x disp=0", &[], 0);
}

#[test]
fn buffers_that_live_together_lie_apart() {
    let body = "
  %a = scratch bytes=100 align=64 : addr
  %b = scratch bytes=40 align=8 : addr
  store %a, %x disp=0
  store %b, %x disp=0
  %y = load %a disp=0 elem=fp32 : fp32";
    check(body, &[0, 104], 192);
}

#[test]
fn a_buffer_whose_last_use_is_past_gives_its_place() {
    let body = "
  %a = scratch bytes=64 align=64 : addr
  store %a, %x disp=0
  %b = scratch bytes=64 align=64 : addr
  store %b, %x disp=0";
    check(body, &[0, 0], 64);
}

#[test]
fn uses_of_computed_addresses_count() {
    let body = "
  %a = scratch bytes=64 align=64 : addr
  %c = addr_add %a, %n : addr
  %b = scratch bytes=64 align=64 : addr
  store %b, %x disp=0
  store %c, %x disp=0";
    check(body, &[0, 64], 128);
}

#[test]
fn an_address_that_is_stored_lives_to_the_end_of_the_block() {
    let body = "
  %a = scratch bytes=64 align=64 : addr
  store %p, %a disp=0
  %b = scratch bytes=64 align=64 : addr
  store %b, %x disp=0";
    check(body, &[0, 64], 128);
}

#[test]
fn a_loop_keeps_what_it_uses_for_all_its_rounds() {
    // `a` is used at the loop's beginning, and again in its next round; `b` and `c` are not alive
    // together.
    let body = "
  %one = const value=1:i64 : i64
  %a = scratch bytes=64 align=64 : addr
  for %one, %n, %one {
  ^(%i: i64):
    store %a, %x disp=0
    %b = scratch bytes=32 align=64 : addr
    store %b, %x disp=0
    %c = scratch bytes=32 align=64 : addr
    store %c, %x disp=0
    yield
  }";
    check(body, &[0, 64, 64], 128);
}

#[test]
fn branches_share() {
    let body = "
  %c = compare.lt %n, %n : i1
  if %c {
    %a = scratch bytes=128 align=64 : addr
    store %a, %x disp=0
    yield
  } {
    %b = scratch bytes=192 align=64 : addr
    store %b, %x disp=0
    yield
  }
  %d = scratch bytes=64 align=64 : addr
  store %d, %x disp=0";
    check(body, &[0, 0, 0], 192);
}

#[test]
fn an_address_carried_round_a_loop_is_lost_sight_of() {
    let body = "
  %one = const value=1:i64 : i64
  %a = scratch bytes=64 align=64 : addr
  %e = for %one, %n, %one inits=[%a] {
  ^(%i: i64, %q: addr):
    store %q, %x disp=0
    yield values=[%q]
  } : addr
  %b = scratch bytes=64 align=64 : addr
  store %b, %x disp=0
  store %e, %x disp=0";
    check(body, &[0, 64], 128);
}
