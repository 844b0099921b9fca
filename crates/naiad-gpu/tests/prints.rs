//! Which elements a GPU's threads print: each once, and those alone that are to be shown.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "common/lockstep.rs"]
mod lockstep;

use common::kernel;
use lockstep::{Machine, Refused};
use naiad_gpu::{Options, Prints};
use naiad_interp::lockstep::Element;
use naiad_opt::ranges::Inputs;
use std::sync::Arc;

const KERNEL: &str = "tile @f() {
  %x = program_id axis=0 : i32
  %y = program_id axis=1 : i32
  %rows = arange start=0 end=8 : <8xi32>
  %cols = arange start=0 end=16 : <16xi32>
  %rows2 = reshape %rows shape=(8, 1) : <8x1xi32>
  %cols2 = reshape %cols shape=(1, 16) : <1x16xi32>
  %down = broadcast %rows2 shape=(8, 16) : <8x16xi32>
  %across = broadcast %cols2 shape=(8, 16) : <8x16xi32>
  %v = binary.mul %down, %across : <8x16xi32>
  print prefix=\"v\" args=[%v, %y]
  print prefix=\"rows\" args=[%rows]
  print prefix=\"end\"
  return
}";

const GRID: [u32; 3] = [5, 2, 1];

fn printed(num_warps: u32, prints: Option<Prints>) -> Vec<Element> {
    let options = Options {
        capability: 90,
        num_warps,
        num_stages: 3,
        precise: true,
        guarded: false,
        few_programs: false,
        prints: prints.map(Arc::new),
    };
    match Machine::with(&kernel(KERNEL), &Inputs::default(), &options) {
        Ok(machine) => machine.prints(GRID, &[]),
        Err(Refused::Unsupported(why) | Refused::Wrong(why)) => panic!("{why}"),
    }
}

#[test]
fn each_element_is_printed_once() {
    for warps in [1, 4] {
        let said = printed(warps, None);
        assert_eq!(said.len(), 10 * (8 * 16 + 1 + 8 + 1));
        assert!(said.windows(2).all(|pair| pair[0] < pair[1]));
        let value = |e: &Element| e.value == Some(u64::from(e.index[0] * e.index[1]));
        assert!(said.iter().filter(|e| e.index.len() == 2).all(value));
    }
}

#[test]
fn what_is_to_be_shown_is_printed() {
    let lanes = |axes: &[Option<(usize, usize)>]| axes.to_vec();
    let wanted = [
        Prints { off: true, ..Prints::default() },
        Prints { program: [Some(3), None, None], ..Prints::default() },
        Prints { program: [None, Some(1), Some(0)], ..Prints::default() },
        Prints { program: [None, None, Some(1)], ..Prints::default() },
        Prints { program: [Some(u32::MAX), None, None], ..Prints::default() },
        Prints { lanes: lanes(&[Some((2, 5))]), ..Prints::default() },
        Prints { lanes: lanes(&[None, Some((15, usize::MAX))]), ..Prints::default() },
        Prints { lanes: lanes(&[Some((0, 8)), Some((3, 4)), Some((0, 0))]), ..Prints::default() },
        Prints { lanes: lanes(&[Some((5, 2))]), ..Prints::default() },
        Prints { lanes: lanes(&[Some((8, 9))]), ..Prints::default() },
        Prints {
            program: [Some(4), Some(0), None],
            lanes: lanes(&[Some((7, 8)), Some((0, 2))]),
            ..Prints::default()
        },
    ];
    for warps in [1, 4] {
        let all = printed(warps, None);
        for prints in &wanted {
            let mut want = all.clone();
            want.retain(|e| {
                let program = prints.program.iter().zip(e.program);
                let mut lanes = prints.lanes.iter().zip(&e.index);
                !prints.off
                    && program.into_iter().all(|(want, at)| want.is_none_or(|want| want == at))
                    && lanes.all(|(range, &at)| {
                        range.is_none_or(|(start, end)| (start..end).contains(&(at as usize)))
                    })
            });
            assert_eq!(printed(warps, Some(prints.clone())), want, "{prints:?}");
        }
    }
}
