//! The instructions that wide loops are made of: one table, a row for each.
//!
//! A row says how the instruction is encoded and where its operands go; nothing else in this crate
//! knows an opcode. Rows are written as the manuals of AMD and Intel write them: the opcode map, the
//! mandatory prefix, the opcode, and `W`.
//!
//! Instructions that exist with both prefixes get the short one (VEX) on AVX2 and the long one (EVEX)
//! on AVX-512, where it gives 32 registers, masks and operands that memory repeats.

use smallvec::SmallVec;

/// What the vector instructions of a machine are.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// 256 bits, with fused multiply-add and conversions of fp16.
    Avx2,
    /// 512 bits, with mask registers: the parts F, BW, DQ, VL and CD.
    Avx512,
}

impl Level {
    /// Bytes of a vector register.
    pub const fn bytes(self) -> u32 {
        match self {
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// Registers of a class that an allocator may give out; mask register 0 means "no mask".
    pub const fn registers(self, class: Class) -> std::ops::Range<u8> {
        match (self, class) {
            (Level::Avx2, Class::Vector) => 0..16,
            (Level::Avx512, Class::Vector) => 0..32,
            (Level::Avx2, Class::Mask) => 0..0,
            (Level::Avx512, Class::Mask) => 1..8,
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Class {
    Vector,
    Mask,
}

/// Of a vector instruction: 128, 256 or 512 bits.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    X,
    Y,
    Z,
}

impl Width {
    pub const fn bytes(self) -> u32 {
        match self {
            Width::X => 16,
            Width::Y => 32,
            Width::Z => 64,
        }
    }

    /// The narrowest that holds so many bytes.
    pub const fn of(bytes: u32) -> Width {
        match bytes {
            0..=16 => Width::X,
            17..=32 => Width::Y,
            _ => Width::Z,
        }
    }
}

/// Where the operands of an instruction go.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// To `reg`, from `rm`.
    Rm,
    /// To `reg`, from `vvvv` and `rm`.
    Rvm,
    /// `reg` is read and written; also from `vvvv` and `rm`.
    Fma,
    /// To `vvvv`, from `rm`; `reg` is part of the opcode.
    Vm(u8),
    /// To `rm`, from `reg`.
    Mr,
    /// To `rm`, from `vvvv` and `reg`.
    Mvr,
    /// To `reg`, from `vvvv`, `rm` and a register in the immediate.
    Rvmr,
}

/// What the instruction reads or writes where its `rm` is memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// A whole vector, or one element of so many bytes in all lanes.
    Full(u8),
    /// A whole vector.
    Whole,
    /// This part of a vector.
    Part(u8),
    /// So many bytes.
    Bytes(u8),
}

/// Which prefixes there are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Prefix {
    Both,
    Vex,
    Evex,
    /// Mask instructions: VEX, with this in the place of the width.
    Mask(u8),
}

#[derive(Copy, Clone, Debug)]
pub struct Row {
    pub map: u8,
    pub pp: u8,
    pub opcode: u8,
    pub w: u8,
    pub form: Form,
    pub reach: Reach,
    pub prefix: Prefix,
    pub commutes: bool,
}

const NP: u8 = 0;
const P66: u8 = 1;
const F3: u8 = 2;
const F2: u8 = 3;

macro_rules! rows {
    ($( $name:ident: $map:literal $pp:ident $opcode:literal $w:literal $form:expr, $reach:expr, $prefix:ident $(($l:literal))? $(, $commutes:ident)?; )*) => {
        /// An instruction: its row.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Op { $( $name, )* }

        const ROWS: &[Row] = {
            use Form::*;
            use Reach::*;
            &[ $( Row {
                map: $map,
                pp: $pp,
                opcode: $opcode,
                w: $w,
                form: $form,
                reach: $reach,
                prefix: Prefix::$prefix $(($l))?,
                commutes: commutes!($($commutes)?),
            }, )* ]
        };
    };
}

macro_rules! commutes {
    () => {
        false
    };
    (commutes) => {
        true
    };
}

rows! {
    // Floats.
    AddPs: 1 NP 0x58 0 Rvm, Full(4), Both, commutes;
    AddPd: 1 P66 0x58 1 Rvm, Full(8), Both, commutes;
    SubPs: 1 NP 0x5c 0 Rvm, Full(4), Both;
    SubPd: 1 P66 0x5c 1 Rvm, Full(8), Both;
    MulPs: 1 NP 0x59 0 Rvm, Full(4), Both, commutes;
    MulPd: 1 P66 0x59 1 Rvm, Full(8), Both, commutes;
    DivPs: 1 NP 0x5e 0 Rvm, Full(4), Both;
    DivPd: 1 P66 0x5e 1 Rvm, Full(8), Both;
    // The second operand where they are equal or not ordered.
    MinPs: 1 NP 0x5d 0 Rvm, Full(4), Both;
    MinPd: 1 P66 0x5d 1 Rvm, Full(8), Both;
    MaxPs: 1 NP 0x5f 0 Rvm, Full(4), Both;
    MaxPd: 1 P66 0x5f 1 Rvm, Full(8), Both;
    SqrtPs: 1 NP 0x51 0 Rm, Full(4), Both;
    SqrtPd: 1 P66 0x51 1 Rm, Full(8), Both;
    RoundPs: 3 P66 0x08 0 Rm, Full(4), Both;
    RoundPd: 3 P66 0x09 1 Rm, Full(8), Both;
    // dst = dst * third + second; second * dst + third; second * third + dst.
    Fma132Ps: 2 P66 0x98 0 Fma, Full(4), Both;
    Fma132Pd: 2 P66 0x98 1 Fma, Full(8), Both;
    Fma213Ps: 2 P66 0xa8 0 Fma, Full(4), Both;
    Fma213Pd: 2 P66 0xa8 1 Fma, Full(8), Both;
    Fma231Ps: 2 P66 0xb8 0 Fma, Full(4), Both;
    Fma231Pd: 2 P66 0xb8 1 Fma, Full(8), Both;

    // Integers.
    AddB: 1 P66 0xfc 0 Rvm, Whole, Both, commutes;
    AddW: 1 P66 0xfd 0 Rvm, Whole, Both, commutes;
    AddD: 1 P66 0xfe 0 Rvm, Full(4), Both, commutes;
    AddQ: 1 P66 0xd4 1 Rvm, Full(8), Both, commutes;
    SubB: 1 P66 0xf8 0 Rvm, Whole, Both;
    SubW: 1 P66 0xf9 0 Rvm, Whole, Both;
    SubD: 1 P66 0xfa 0 Rvm, Full(4), Both;
    SubQ: 1 P66 0xfb 1 Rvm, Full(8), Both;
    MulW: 1 P66 0xd5 0 Rvm, Whole, Both, commutes;
    MulD: 2 P66 0x40 0 Rvm, Full(4), Both, commutes;
    MulQ: 2 P66 0x40 1 Rvm, Full(8), Evex, commutes;
    // The products of the even lanes of 32 bits, in 64.
    MulUdq: 1 P66 0xf4 1 Rvm, Full(8), Both, commutes;
    AndD: 1 P66 0xdb 0 Rvm, Full(4), Both, commutes;
    AndnD: 1 P66 0xdf 0 Rvm, Full(4), Both;
    OrD: 1 P66 0xeb 0 Rvm, Full(4), Both, commutes;
    XorD: 1 P66 0xef 0 Rvm, Full(4), Both, commutes;
    MinSb: 2 P66 0x38 0 Rvm, Whole, Both, commutes;
    MinSw: 1 P66 0xea 0 Rvm, Whole, Both, commutes;
    MinSd: 2 P66 0x39 0 Rvm, Full(4), Both, commutes;
    MinSq: 2 P66 0x39 1 Rvm, Full(8), Evex, commutes;
    MaxSb: 2 P66 0x3c 0 Rvm, Whole, Both, commutes;
    MaxSw: 1 P66 0xee 0 Rvm, Whole, Both, commutes;
    MaxSd: 2 P66 0x3d 0 Rvm, Full(4), Both, commutes;
    MaxSq: 2 P66 0x3d 1 Rvm, Full(8), Evex, commutes;
    MinUb: 1 P66 0xda 0 Rvm, Whole, Both, commutes;
    MinUw: 2 P66 0x3a 0 Rvm, Whole, Both, commutes;
    MinUd: 2 P66 0x3b 0 Rvm, Full(4), Both, commutes;
    MinUq: 2 P66 0x3b 1 Rvm, Full(8), Evex, commutes;
    MaxUb: 1 P66 0xde 0 Rvm, Whole, Both, commutes;
    MaxUw: 2 P66 0x3e 0 Rvm, Whole, Both, commutes;
    MaxUd: 2 P66 0x3f 0 Rvm, Full(4), Both, commutes;
    MaxUq: 2 P66 0x3f 1 Rvm, Full(8), Evex, commutes;
    AbsB: 2 P66 0x1c 0 Rm, Whole, Both;
    AbsW: 2 P66 0x1d 0 Rm, Whole, Both;
    AbsD: 2 P66 0x1e 0 Rm, Full(4), Both;
    AbsQ: 2 P66 0x1f 1 Rm, Full(8), Evex;
    // Shifts by the immediate; a width or more shifts everything out.
    ShlImmW: 1 P66 0x71 0 Vm(6), Whole, Both;
    ShrImmW: 1 P66 0x71 0 Vm(2), Whole, Both;
    SarImmW: 1 P66 0x71 0 Vm(4), Whole, Both;
    ShlImmD: 1 P66 0x72 0 Vm(6), Full(4), Both;
    ShrImmD: 1 P66 0x72 0 Vm(2), Full(4), Both;
    SarImmD: 1 P66 0x72 0 Vm(4), Full(4), Both;
    ShlImmQ: 1 P66 0x73 1 Vm(6), Full(8), Both;
    ShrImmQ: 1 P66 0x73 1 Vm(2), Full(8), Both;
    SarImmQ: 1 P66 0x72 1 Vm(4), Full(8), Evex;
    // The same by the lanes of the second operand.
    ShlW: 2 P66 0x12 1 Rvm, Whole, Evex;
    ShrW: 2 P66 0x10 1 Rvm, Whole, Evex;
    SarW: 2 P66 0x11 1 Rvm, Whole, Evex;
    ShlD: 2 P66 0x47 0 Rvm, Full(4), Both;
    ShrD: 2 P66 0x45 0 Rvm, Full(4), Both;
    SarD: 2 P66 0x46 0 Rvm, Full(4), Both;
    ShlQ: 2 P66 0x47 1 Rvm, Full(8), Both;
    ShrQ: 2 P66 0x45 1 Rvm, Full(8), Both;
    SarQ: 2 P66 0x46 1 Rvm, Full(8), Evex;
    ClzD: 2 P66 0x44 0 Rm, Full(4), Evex;
    ClzQ: 2 P66 0x44 1 Rm, Full(8), Evex;

    // Comparisons into a mask register, and choices by one.
    CmpPsK: 1 NP 0xc2 0 Rvm, Full(4), Evex;
    CmpPdK: 1 P66 0xc2 1 Rvm, Full(8), Evex;
    CmpBK: 3 P66 0x3f 0 Rvm, Whole, Evex;
    CmpWK: 3 P66 0x3f 1 Rvm, Whole, Evex;
    CmpDK: 3 P66 0x1f 0 Rvm, Full(4), Evex;
    CmpQK: 3 P66 0x1f 1 Rvm, Full(8), Evex;
    CmpUbK: 3 P66 0x3e 0 Rvm, Whole, Evex;
    CmpUwK: 3 P66 0x3e 1 Rvm, Whole, Evex;
    CmpUdK: 3 P66 0x1e 0 Rvm, Full(4), Evex;
    CmpUqK: 3 P66 0x1e 1 Rvm, Full(8), Evex;
    TestBK: 2 P66 0x26 0 Rvm, Whole, Evex, commutes;
    BlendB: 2 P66 0x66 0 Rvm, Whole, Evex;
    BlendW: 2 P66 0x66 1 Rvm, Whole, Evex;
    BlendD: 2 P66 0x64 0 Rvm, Full(4), Evex;
    BlendQ: 2 P66 0x64 1 Rvm, Full(8), Evex;
    // Comparisons into lanes of ones, and choices by the signs of lanes.
    CmpPs: 1 NP 0xc2 0 Rvm, Whole, Vex;
    CmpPd: 1 P66 0xc2 0 Rvm, Whole, Vex;
    EqB: 1 P66 0x74 0 Rvm, Whole, Vex, commutes;
    EqW: 1 P66 0x75 0 Rvm, Whole, Vex, commutes;
    EqD: 1 P66 0x76 0 Rvm, Whole, Vex, commutes;
    EqQ: 2 P66 0x29 0 Rvm, Whole, Vex, commutes;
    GtB: 1 P66 0x64 0 Rvm, Whole, Vex;
    GtW: 1 P66 0x65 0 Rvm, Whole, Vex;
    GtD: 1 P66 0x66 0 Rvm, Whole, Vex;
    GtQ: 2 P66 0x37 0 Rvm, Whole, Vex;
    BlendvPs: 3 P66 0x4a 0 Rvmr, Whole, Vex;
    BlendvPd: 3 P66 0x4b 0 Rvmr, Whole, Vex;
    BlendvB: 3 P66 0x4c 0 Rvmr, Whole, Vex;

    // Masks.
    KAnd: 1 NP 0x41 1 Rvm, Bytes(8), Mask(1), commutes;
    KAndn: 1 NP 0x42 1 Rvm, Bytes(8), Mask(1);
    KOr: 1 NP 0x45 1 Rvm, Bytes(8), Mask(1), commutes;
    KXor: 1 NP 0x47 1 Rvm, Bytes(8), Mask(1), commutes;
    KNot: 1 NP 0x44 1 Rm, Bytes(8), Mask(0);
    KShl: 3 P66 0x33 1 Rm, Bytes(8), Mask(0);
    KShr: 3 P66 0x31 1 Rm, Bytes(8), Mask(0);
    KMov: 1 NP 0x90 1 Rm, Bytes(8), Mask(0);
    KStore: 1 NP 0x91 1 Mr, Bytes(8), Mask(0);
    MaskToB: 2 F3 0x28 0 Rm, Whole, Evex;

    // Conversions.
    I32ToPs: 1 NP 0x5b 0 Rm, Full(4), Both;
    U32ToPs: 1 F2 0x7a 0 Rm, Full(4), Evex;
    I32ToPd: 1 F3 0xe6 0 Rm, Part(2), Both;
    U32ToPd: 1 F3 0x7a 0 Rm, Part(2), Evex;
    I64ToPs: 1 NP 0x5b 1 Rm, Full(8), Evex;
    U64ToPs: 1 F2 0x7a 1 Rm, Full(8), Evex;
    I64ToPd: 1 F3 0xe6 1 Rm, Full(8), Evex;
    U64ToPd: 1 F3 0x7a 1 Rm, Full(8), Evex;
    PsToI32: 1 F3 0x5b 0 Rm, Full(4), Both;
    PsToU32: 1 NP 0x78 0 Rm, Full(4), Evex;
    PsToI64: 1 P66 0x7a 0 Rm, Part(2), Evex;
    PsToU64: 1 P66 0x78 0 Rm, Part(2), Evex;
    PdToI32: 1 P66 0xe6 1 Rm, Full(8), Both;
    PdToU32: 1 NP 0x78 1 Rm, Full(8), Evex;
    PdToI64: 1 P66 0x7a 1 Rm, Full(8), Evex;
    PdToU64: 1 P66 0x78 1 Rm, Full(8), Evex;
    PsToPd: 1 NP 0x5a 0 Rm, Part(2), Both;
    PdToPs: 1 P66 0x5a 1 Rm, Full(8), Both;
    PhToPs: 2 P66 0x13 0 Rm, Part(2), Both;
    PsToPh: 3 P66 0x1d 0 Mr, Part(2), Both;
    SextBW: 2 P66 0x20 0 Rm, Part(2), Both;
    SextBD: 2 P66 0x21 0 Rm, Part(4), Both;
    SextBQ: 2 P66 0x22 0 Rm, Part(8), Both;
    SextWD: 2 P66 0x23 0 Rm, Part(2), Both;
    SextWQ: 2 P66 0x24 0 Rm, Part(4), Both;
    SextDQ: 2 P66 0x25 0 Rm, Part(2), Both;
    ZextBW: 2 P66 0x30 0 Rm, Part(2), Both;
    ZextBD: 2 P66 0x31 0 Rm, Part(4), Both;
    ZextBQ: 2 P66 0x32 0 Rm, Part(8), Both;
    ZextWD: 2 P66 0x33 0 Rm, Part(2), Both;
    ZextWQ: 2 P66 0x34 0 Rm, Part(4), Both;
    ZextDQ: 2 P66 0x35 0 Rm, Part(2), Both;
    LowWB: 2 F3 0x30 0 Mr, Part(2), Evex;
    LowDB: 2 F3 0x31 0 Mr, Part(4), Evex;
    LowQB: 2 F3 0x32 0 Mr, Part(8), Evex;
    LowDW: 2 F3 0x33 0 Mr, Part(2), Evex;
    LowQW: 2 F3 0x34 0 Mr, Part(4), Evex;
    LowQD: 2 F3 0x35 0 Mr, Part(2), Evex;

    // Lanes.
    BroadcastB: 2 P66 0x78 0 Rm, Bytes(1), Both;
    BroadcastW: 2 P66 0x79 0 Rm, Bytes(2), Both;
    BroadcastD: 2 P66 0x58 0 Rm, Bytes(4), Both;
    BroadcastQ: 2 P66 0x59 1 Rm, Bytes(8), Both;
    HighY: 3 P66 0x3b 1 Mr, Bytes(32), Evex;
    HighX: 3 P66 0x39 0 Mr, Bytes(16), Both;
    JoinY: 3 P66 0x3a 1 Rvm, Bytes(32), Evex;
    JoinX: 3 P66 0x38 0 Rvm, Bytes(16), Both;
    ShuffleD: 1 P66 0x70 0 Rm, Full(4), Both;
    ShuffleB: 2 P66 0x00 0 Rvm, Whole, Both;
    PermuteQ: 3 P66 0x00 1 Rm, Full(8), Both;
    LowDwords: 1 P66 0x62 0 Rvm, Full(4), Both;
    LowQuads: 1 P66 0x6c 1 Rvm, Full(8), Both;

    // Moves. The masked ones leave out what is masked off, also faults.
    Move: 1 NP 0x28 0 Rm, Whole, Both;
    Load: 1 NP 0x10 0 Rm, Whole, Both;
    Store: 1 NP 0x11 0 Mr, Whole, Both;
    // Past the cache; the place must be aligned to the vector.
    StorePast: 1 NP 0x2b 0 Mr, Whole, Both;
    // Brings a line of cache to the second cache. Not encoded as a vector instruction.
    Ahead: 1 NP 0x18 0 Vm(2), Bytes(1), Vex;
    LoadD: 1 P66 0x6e 0 Rm, Bytes(4), Both;
    StoreD: 1 P66 0x7e 0 Mr, Bytes(4), Both;
    LoadQ: 1 F3 0x7e 1 Rm, Bytes(8), Both;
    StoreQ: 1 P66 0xd6 1 Mr, Bytes(8), Both;
    LoadMaskB: 1 F2 0x6f 0 Rm, Whole, Evex;
    StoreMaskB: 1 F2 0x7f 0 Mr, Whole, Evex;
    LoadMaskW: 1 F2 0x6f 1 Rm, Whole, Evex;
    StoreMaskW: 1 F2 0x7f 1 Mr, Whole, Evex;
    LoadMaskD: 1 F3 0x6f 0 Rm, Whole, Evex;
    StoreMaskD: 1 F3 0x7f 0 Mr, Whole, Evex;
    LoadMaskQ: 1 F3 0x6f 1 Rm, Whole, Evex;
    StoreMaskQ: 1 F3 0x7f 1 Mr, Whole, Evex;
    LoadSignD: 2 P66 0x8c 0 Rvm, Whole, Vex;
    LoadSignQ: 2 P66 0x8c 1 Rvm, Whole, Vex;
    // To memory, where the signs of the first operand are set, the second one.
    StoreSignD: 2 P66 0x8e 0 Mvr, Whole, Vex;
    StoreSignQ: 2 P66 0x8e 1 Mvr, Whole, Vex;
}

impl Op {
    pub const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Of what it makes.
    pub fn class(self) -> Class {
        use Op::{
            CmpBK, CmpDK, CmpPdK, CmpPsK, CmpQK, CmpUbK, CmpUdK, CmpUqK, CmpUwK, CmpWK, TestBK,
        };
        let compares = matches!(
            self,
            CmpPsK
                | CmpPdK
                | CmpBK
                | CmpWK
                | CmpDK
                | CmpQK
                | CmpUbK
                | CmpUwK
                | CmpUdK
                | CmpUqK
                | TestBK
        );
        if compares || matches!(self.row().prefix, Prefix::Mask(_)) {
            Class::Mask
        } else {
            Class::Vector
        }
    }
}

/// A value that will be in a register, or in memory until it is wanted.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Reg(pub u32);

/// A place in memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Addr {
    /// At the present place of a stream, and on.
    Stream { stream: u32, disp: i32 },
    /// In the loop's block of memory.
    Block(u32),
    /// In the constants behind the code.
    Pool(u32),
}

/// An instruction before registers are known.
#[derive(Clone, Debug)]
pub struct Inst {
    pub op: Op,
    pub width: Width,
    pub dst: Option<Reg>,
    /// Operands that are read, in the order of the form.
    pub src: SmallVec<[Reg; 4]>,
    /// In the place of `rm`.
    pub mem: Option<Addr>,
    /// Lanes whose bit is not set are 0, or not written to memory; for blends they choose.
    pub mask: Option<Reg>,
    pub imm: Option<u8>,
}
