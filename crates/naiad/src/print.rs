//! What kernels print, as text.
//!
//! Two layouts. `tile` shows each call of each program as one block: a head line and the values in rows
//! and columns. `lines` writes a line for each element, as Triton does, for tools that read those.
//! Which programs and which elements are shown is up to [`PrintOptions`], whose text form is that of the
//! environment variable `NAIAD_PRINT`.

use crate::{Error, Result};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::{Operand, Printed};
use naiad_ir::scalar::{Rounding, cast_bits, show};
use naiad_ir::tile::print_label;
use naiad_ir::{Elem, Kind, Scalar, Type};
use std::fmt::Write as _;
use std::io::Write as _;
use std::str::FromStr;
use std::sync::Arc;

/// How prints are laid out.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum PrintLayout {
    /// A block for each call.
    #[default]
    Tile,
    /// A line for each element.
    Lines,
    /// Not at all.
    Off,
}

/// What of a kernel's prints is shown, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PrintOptions {
    pub layout: PrintLayout,
    /// Coordinates of the programs that are shown; none for any along that axis.
    pub program: [Option<u32>; 3],
    /// For each axis, the first one first, the indices `start..end` that are shown; none for all. Axes
    /// beyond the list are shown whole.
    pub lanes: Vec<Option<(usize, usize)>>,
}

/// Prints go to a function, one call of it for each print.
#[derive(Clone)]
pub struct Printer {
    options: PrintOptions,
    out: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Printer {
    pub fn new(options: PrintOptions, out: impl Fn(&str) + Send + Sync + 'static) -> Printer {
        Printer { options, out: Arc::new(out) }
    }

    /// Prints to the process's standard output.
    pub fn stdout(options: PrintOptions) -> Printer {
        // A reader that closed the pipe has seen enough.
        Printer::new(options, |text| drop(std::io::stdout().lock().write_all(text.as_bytes())))
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn options(&self) -> &PrintOptions {
        &self.options
    }

    /// What [`naiad_interp::LaunchOptions`] wants as its sink.
    pub fn print(&self, printed: &Printed<'_>) {
        if let Some(text) = self.options.format(printed) {
            (self.out)(&text);
        }
    }
}

impl std::fmt::Debug for Printer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer").field("options", &self.options).finish_non_exhaustive()
    }
}

const HELP: &str = "settings are `layout=tile`, `layout=lines` or `layout=off`, `program=0,*,*` and \
                    `lanes=0:4,2`, joined by `;`";

impl FromStr for PrintOptions {
    type Err = Error;

    /// `layout=lines;program=0,*,*;lanes=0:4`
    fn from_str(text: &str) -> Result<PrintOptions> {
        let mut options = PrintOptions::default();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            let bad = |why: String| {
                Error::from(Diagnostic::new(Id::BadLaunch, format!("`{part}`: {why}")).help(HELP))
            };
            let (key, value) =
                part.split_once('=').map_or((part, ""), |(k, v)| (k.trim(), v.trim()));
            match key {
                "layout" => {
                    options.layout = match value {
                        "tile" => PrintLayout::Tile,
                        "lines" => PrintLayout::Lines,
                        "off" => PrintLayout::Off,
                        _ => return Err(bad(format!("there is no layout `{value}`"))),
                    };
                }
                "program" => {
                    let items: Vec<&str> = value.split(',').map(str::trim).collect();
                    if items.len() > 3 {
                        return Err(bad("a grid has at most three axes".to_string()));
                    }
                    for (slot, item) in options.program.iter_mut().zip(items) {
                        *slot = match item {
                            "*" => None,
                            item => Some(item.parse().map_err(|_| {
                                bad(format!("`{item}` is neither a coordinate nor `*`"))
                            })?),
                        };
                    }
                }
                "lanes" => {
                    let axis = |item: &str| {
                        range(item.trim()).ok_or_else(|| {
                            bad(format!("`{item}` is no index, no range such as `0:4` and not `*`"))
                        })
                    };
                    options.lanes = value.split(',').map(axis).collect::<Result<_>>()?;
                }
                _ => return Err(bad(format!("printing has no setting `{key}`"))),
            }
        }
        Ok(options)
    }
}

/// `*`, `3`, `0:4`, `:4`, `4:`
fn range(text: &str) -> Option<Option<(usize, usize)>> {
    if text == "*" {
        return Some(None);
    }
    let Some((start, end)) = text.split_once(':') else {
        let at: usize = text.parse().ok()?;
        return Some(Some((at, at.saturating_add(1))));
    };
    let bound = |text: &str, default| match text.trim() {
        "" => Some(default),
        text => text.parse().ok(),
    };
    Some(Some((bound(start, 0)?, bound(end, usize::MAX)?)))
}

impl PrintOptions {
    /// The text of one print, with its last line break; none if it is not to be shown.
    pub fn format(&self, printed: &Printed<'_>) -> Option<String> {
        let mut pairs = self.program.iter().zip(printed.program);
        if self.layout == PrintLayout::Off || !pairs.all(|(w, p)| w.is_none_or(|w| w == p)) {
            return None;
        }
        let text = match self.layout {
            PrintLayout::Lines => self.lines(printed),
            PrintLayout::Tile | PrintLayout::Off => self.block(printed),
        };
        (!text.is_empty()).then_some(text)
    }

    /// What a GPU is to show; nothing in particular where that is all. Its layout is that of lines.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&self) -> Option<naiad_gpu::Prints> {
        let all = naiad_gpu::Prints::default();
        let prints = match self.layout {
            PrintLayout::Off => naiad_gpu::Prints { off: true, ..all.clone() },
            PrintLayout::Tile | PrintLayout::Lines => {
                naiad_gpu::Prints { program: self.program, lanes: self.lanes.clone(), off: false }
            }
        };
        (prints != all).then_some(prints)
    }

    /// The indices that are shown along each axis.
    fn window(&self, ty: &Type) -> Vec<(usize, usize)> {
        let axis = |(d, n): (usize, usize)| match self.lanes.get(d) {
            Some(Some((start, end))) => ((*start).min(n), (*end).min(n)),
            _ => (0, n),
        };
        ty.shape.dims().enumerate().map(axis).collect()
    }

    fn lines(&self, p: &Printed<'_>) -> String {
        let [x, y, z] = p.program;
        let prefix = print_label(p.prefix, p.operands.len());
        let head = format!("pid ({x}, {y}, {z})");
        if p.operands.is_empty() {
            return format!("{head}{prefix}\n");
        }
        let mut out = String::new();
        for (k, operand) in p.operands.iter().enumerate() {
            let which =
                if p.operands.len() > 1 { format!("(operand {k}) ") } else { String::new() };
            let images = operand.images();
            let digits: Vec<usize> = operand.ty.shape.dims().map(|n| n.to_string().len()).collect();
            each(&self.window(&operand.ty), &mut |index| {
                let places = index.iter().zip(&digits);
                let places: Vec<String> = places.map(|(i, w)| format!("{i:w$}")).collect();
                let value = plain(operand.ty.elem, images[flat(&operand.ty, index)], p.hex);
                let _ = writeln!(out, "{head} idx ({}){prefix}{which}{value}", places.join(", "));
            });
        }
        out
    }

    fn block(&self, p: &Printed<'_>) -> String {
        let [x, y, z] = p.program;
        let mut out = format!("{} program ({x}, {y}, {z})", p.kernel);
        let prefix = p.prefix.trim();
        let mut label = prefix.to_string();
        if let [operand] = p.operands {
            if !label.is_empty() && !label.ends_with([':', '=']) {
                label.push(':');
            }
            if !label.is_empty() {
                label.push(' ');
            }
            let _ = write!(out, "  {label}");
            self.value(&mut out, operand, p.hex);
            return out;
        }
        if !label.is_empty() {
            let _ = write!(out, "  {label}");
        }
        out.push('\n');
        for (k, operand) in p.operands.iter().enumerate() {
            let _ = write!(out, "operand {k}: ");
            self.value(&mut out, operand, p.hex);
        }
        out
    }

    /// A scalar with its type on this line; of a tile the type here and the values on the next lines.
    fn value(&self, out: &mut String, operand: &Operand<'_>, hex: bool) {
        let ty = operand.ty;
        let name = match ty.elem {
            Elem::Scalar(s) => s.triton_name().to_string(),
            Elem::Pointer(p) => format!("pointer<{}>", p.pointee.triton_name()),
        };
        if ty.is_scalar() {
            let image = operand.images().first().copied().unwrap_or(0);
            let _ = writeln!(out, "{} ({name})", element(ty.elem, image, hex));
            return;
        }
        let dims: Vec<String> = ty.shape.dims().map(|n| n.to_string()).collect();
        let _ = write!(out, "{name}[{}]", dims.join(", "));
        let window = self.window(&ty);
        if !window.iter().zip(ty.shape.dims()).all(|(&w, n)| w == (0, n)) {
            let parts: Vec<String> = window.iter().map(|(a, b)| format!("{a}:{b}")).collect();
            let _ = write!(out, " lanes [{}]", parts.join(", "));
        }
        out.push('\n');
        if window.iter().all(|(a, b)| a < b) {
            Grid::new(operand, &window, hex).rows(out);
        }
    }
}

/// Elements of a tile beyond which the middle of each axis is left out, and how many are kept at either
/// end of an axis then.
const WHOLE: usize = 1000;
const EDGE: usize = 3;
/// Columns of text after which a row goes on in the next line.
const WIDTH: usize = 100;

/// A tile's values laid out in brackets.
struct Grid {
    /// For each axis the indices that are shown; none where some are left out.
    axes: Vec<Vec<Option<usize>>>,
    /// In row-major order of the shown indices.
    cells: std::vec::IntoIter<String>,
    width: usize,
}

impl Grid {
    fn new(operand: &Operand<'_>, window: &[(usize, usize)], hex: bool) -> Grid {
        let total: usize = window.iter().map(|(a, b)| b - a).product();
        let axis = |&(a, b): &(usize, usize)| -> Vec<Option<usize>> {
            if total <= WHOLE || b - a <= 2 * EDGE {
                return (a..b).map(Some).collect();
            }
            let ends = (a..a + EDGE).map(Some).chain([None]);
            ends.chain((b - EDGE..b).map(Some)).collect()
        };
        let axes: Vec<Vec<Option<usize>>> = window.iter().map(axis).collect();
        let images = operand.images();
        let mut cells = Vec::new();
        let positions: Vec<(usize, usize)> = axes.iter().map(|a| (0, a.len())).collect();
        each(&positions, &mut |at| {
            let index: Option<Vec<usize>> = at.iter().zip(&axes).map(|(&i, a)| a[i]).collect();
            if let Some(index) = index {
                cells.push(element(operand.ty.elem, images[flat(&operand.ty, &index)], hex));
            }
        });
        let width = cells.iter().map(String::len).max().unwrap_or(0);
        Grid { axes, cells: cells.into_iter(), width }
    }

    fn rows(mut self, out: &mut String) {
        self.part(out, 0);
        out.push('\n');
    }

    /// What lies behind one index of the axes before `depth`.
    fn part(&mut self, out: &mut String, depth: usize) {
        let axis = self.axes[depth].clone();
        out.push('[');
        if depth + 1 == self.axes.len() {
            let mut column = depth + 1;
            for (i, index) in axis.iter().enumerate() {
                let cell = match index {
                    Some(_) => format!("{:>1$}", self.cells.next().unwrap_or_default(), self.width),
                    None => "...".to_string(),
                };
                if i > 0 && column + 1 + cell.len() > WIDTH {
                    let _ = write!(out, "\n{:1$}", "", depth + 1);
                    column = depth + 1;
                } else if i > 0 {
                    out.push(' ');
                    column += 1;
                }
                column += cell.len();
                out.push_str(&cell);
            }
        } else {
            for (i, index) in axis.iter().enumerate() {
                if i > 0 {
                    // A blank line between planes.
                    let blank = if depth + 2 < self.axes.len() { "\n" } else { "" };
                    let _ = write!(out, "{blank}\n{:1$}", "", depth + 1);
                }
                match index {
                    Some(_) => self.part(out, depth + 1),
                    None => out.push_str("..."),
                }
            }
        }
        out.push(']');
    }
}

/// Calls `f` with each index of a box, in row-major order.
fn each(window: &[(usize, usize)], f: &mut dyn FnMut(&[usize])) {
    if window.iter().any(|(a, b)| a >= b) {
        return;
    }
    let mut index: Vec<usize> = window.iter().map(|w| w.0).collect();
    loop {
        f(&index);
        let Some(d) = (0..index.len()).rev().find(|&d| index[d] + 1 < window[d].1) else { return };
        index[d] += 1;
        for (i, w) in index.iter_mut().zip(window).skip(d + 1) {
            *i = w.0;
        }
    }
}

fn flat(ty: &Type, index: &[usize]) -> usize {
    ty.shape.strides().zip(index).map(|(s, i)| s * i).sum()
}

fn hexadecimal(elem: Elem, image: u64) -> String {
    let bits = elem.scalar().map_or(64, Scalar::bits);
    format!("0x{image:00$x}", bits.div_ceil(4) as usize)
}

/// With as many digits as tell the number from others of its type.
fn element(elem: Elem, image: u64, hex: bool) -> String {
    match elem {
        Elem::Scalar(ty) if !hex => show(ty, image),
        Elem::Pointer(_) if !hex => format!("{image:#x}"),
        elem => hexadecimal(elem, image),
    }
}

/// As C prints it: floats with six digits behind the point.
fn plain(elem: Elem, image: u64, hex: bool) -> String {
    match elem {
        Elem::Scalar(ty) if !hex => match ty.kind() {
            Kind::Bool => image.to_string(),
            Kind::Float => {
                let bits = cast_bits(ty, Scalar::F64, Rounding::Nearest, image);
                let x = f64::from_bits(bits);
                if x.is_nan() { "nan".to_string() } else { format!("{x:.6}") }
            }
            Kind::Unsigned | Kind::Signed => show(ty, image),
        },
        elem => element(elem, image, hex),
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_told_what_is_left_out() {
        let on_gpu = |text: &str| text.parse::<PrintOptions>().unwrap().on_gpu();
        assert_eq!([on_gpu(""), on_gpu("layout=lines"), on_gpu("program=*")], [None, None, None]);
        let off = on_gpu("layout=off;program=3").unwrap();
        assert_eq!((off.off, off.program), (true, [None; 3]), "one code for all that is off");
        let some = on_gpu("program=*,2;lanes=1:3,*").unwrap();
        assert_eq!((some.off, some.program), (false, [None, Some(2), None]));
        assert_eq!(some.lanes, [Some((1, 3)), None]);
    }
}
