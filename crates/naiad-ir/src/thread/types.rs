//! Types of Thread IR.

use crate::types::Scalar;
use std::fmt;
use std::str::FromStr;

/// What a lane holds.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ThreadElem {
    Scalar(Scalar),
    /// An address in bytes, of 64 bits.
    Addr,
}

/// Lanes of one kind; one lane is a scalar.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Vector {
    pub elem: ThreadElem,
    pub lanes: u32,
}

/// The type of a value. In text: `fp32`, `fp32x4`, `i1x8`, `addr`, `<8*fp32x4>`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ThreadType {
    Vector(Vector),
    /// An array of registers.
    Regs {
        of: Vector,
        count: u32,
    },
}

/// Lanes of a value that a writer may be asked to split.
pub const MAX_LANES: u32 = 64;

impl Vector {
    pub const ADDR: Vector = Vector { elem: ThreadElem::Addr, lanes: 1 };
    pub const BOOL: Vector = Vector::scalar(Scalar::I1);
    pub const I32: Vector = Vector::scalar(Scalar::I32);
    pub const I64: Vector = Vector::scalar(Scalar::I64);

    pub const fn scalar(of: Scalar) -> Vector {
        Vector { elem: ThreadElem::Scalar(of), lanes: 1 }
    }

    pub const fn of(elem: ThreadElem, lanes: u32) -> Vector {
        Vector { elem, lanes }
    }

    pub const fn with_elem(self, elem: ThreadElem) -> Vector {
        Vector { elem, lanes: self.lanes }
    }

    pub const fn with_lanes(self, lanes: u32) -> Vector {
        Vector { elem: self.elem, lanes }
    }

    pub const fn is_scalar(self) -> bool {
        self.lanes == 1
    }
}

impl ThreadElem {
    pub const fn scalar(self) -> Option<Scalar> {
        match self {
            ThreadElem::Scalar(s) => Some(s),
            ThreadElem::Addr => None,
        }
    }

    /// Bytes that a lane takes in memory.
    pub const fn size(self) -> usize {
        match self {
            ThreadElem::Scalar(s) => s.size(),
            ThreadElem::Addr => 8,
        }
    }

    pub const fn bits(self) -> u32 {
        match self {
            ThreadElem::Scalar(s) => s.bits(),
            ThreadElem::Addr => 64,
        }
    }
}

impl ThreadType {
    pub const ADDR: ThreadType = ThreadType::Vector(Vector::ADDR);
    pub const BOOL: ThreadType = ThreadType::Vector(Vector::BOOL);
    pub const I32: ThreadType = ThreadType::Vector(Vector::I32);
    pub const I64: ThreadType = ThreadType::Vector(Vector::I64);

    pub const fn vector(self) -> Option<Vector> {
        match self {
            ThreadType::Vector(v) => Some(v),
            ThreadType::Regs { .. } => None,
        }
    }
}

impl From<Vector> for ThreadType {
    fn from(v: Vector) -> ThreadType {
        ThreadType::Vector(v)
    }
}

impl From<Scalar> for ThreadElem {
    fn from(s: Scalar) -> ThreadElem {
        ThreadElem::Scalar(s)
    }
}

impl fmt::Display for ThreadElem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadElem::Scalar(s) => write!(f, "{s}"),
            ThreadElem::Addr => f.write_str("addr"),
        }
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => write!(f, "{}", self.elem),
            n => write!(f, "{}x{n}", self.elem),
        }
    }
}

impl fmt::Display for ThreadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadType::Vector(v) => write!(f, "{v}"),
            ThreadType::Regs { of, count } => write!(f, "<{count}*{of}>"),
        }
    }
}

impl FromStr for ThreadElem {
    type Err = String;

    fn from_str(text: &str) -> Result<ThreadElem, String> {
        if text == "addr" {
            return Ok(ThreadElem::Addr);
        }
        let scalar = Scalar::from_name(text).ok_or_else(|| format!("`{text}` is no element"))?;
        Ok(ThreadElem::Scalar(scalar))
    }
}

impl FromStr for Vector {
    type Err = String;

    fn from_str(text: &str) -> Result<Vector, String> {
        let Some((elem, lanes)) = text.rsplit_once('x') else {
            return Ok(Vector { elem: text.parse()?, lanes: 1 });
        };
        let lanes = lanes.parse().map_err(|_| format!("`{lanes}` is no number of lanes"))?;
        let legal = (2..=MAX_LANES).contains(&lanes) && u32::is_power_of_two(lanes);
        if !legal {
            return Err(format!("a vector has 2 to {MAX_LANES} lanes, a power of 2, not {lanes}"));
        }
        Ok(Vector { elem: elem.parse()?, lanes })
    }
}

impl FromStr for ThreadType {
    type Err = String;

    fn from_str(text: &str) -> Result<ThreadType, String> {
        let Some(inner) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) else {
            return Ok(ThreadType::Vector(text.parse()?));
        };
        let (count, of) = inner.split_once('*').ok_or("registers are `<count*type>`")?;
        let count = count.trim().parse().map_err(|_| format!("`{count}` is no count"))?;
        Ok(ThreadType::Regs { of: of.parse()?, count })
    }
}
