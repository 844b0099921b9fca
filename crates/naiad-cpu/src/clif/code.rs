//! Memory that holds machine code.

use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, LibCall};
use cranelift_codegen::{Context, FinalizedRelocTarget};
use memmap2::{Mmap, MmapMut};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m128i;

/// The bytes of one function, in pages of their own that may be executed and not written.
pub struct Code {
    pages: Mmap,
    len: usize,
}

/// Where functions begin: a line of cache.
const ALIGN: usize = 64;

impl Code {
    /// The code of a context that has compiled a function, and of the functions beside it that it calls.
    pub fn new(context: &Context, beside: &[Vec<u8>]) -> Result<Code, String> {
        let compiled = context.compiled_code().ok_or("nothing was compiled")?;
        let bytes = compiled.code_buffer();
        let mut len = bytes.len();
        let places: Vec<usize> = beside
            .iter()
            .map(|f| {
                let at = len.next_multiple_of(ALIGN);
                len = at + f.len();
                at
            })
            .collect();
        let mut pages = MmapMut::map_anon(len).map_err(|e| e.to_string())?;
        pages[..bytes.len()].copy_from_slice(bytes);
        for (&at, f) in places.iter().zip(beside) {
            pages[at..at + f.len()].copy_from_slice(f);
        }
        let names = context.func.params.user_named_funcs();
        for reloc in compiled.buffer.relocs() {
            let at = reloc.offset as usize;
            let FinalizedRelocTarget::ExternalName(name) = &reloc.target else {
                return Err(format!("it refers to {:?}", reloc.target));
            };
            match (name, reloc.kind) {
                (ExternalName::LibCall(f), Reloc::Abs8) => {
                    let address = library(*f).ok_or_else(|| format!("it calls {f}"))?;
                    let value = (address as u64).wrapping_add_signed(reloc.addend);
                    pages[at..at + 8].copy_from_slice(&value.to_ne_bytes());
                }
                (ExternalName::User(name), Reloc::X86CallPCRel4) => {
                    let to = places[names[*name].index as usize] as i64;
                    let distance = to + reloc.addend - at as i64;
                    pages[at..at + 4].copy_from_slice(&(distance as i32).to_ne_bytes());
                }
                _ => return Err(format!("it refers to {:?}", reloc.target)),
            }
        }
        // SAFETY: the pages are mapped.
        unsafe { icache::clear_cache(pages.as_ptr().cast(), len) }.map_err(|e| e.to_string())?;
        let pages = pages.make_exec().map_err(|e| e.to_string())?;
        icache::pipeline_flush_mt().map_err(|e| e.to_string())?;
        Ok(Code { pages, len })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.pages[..self.len]
    }
}

/// What Cranelift calls on a machine that has no instruction for it.
fn library(f: LibCall) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if f == LibCall::X86Pshufb {
        return Some(shuffle_bytes as *const () as usize);
    }
    macro_rules! functions {
        ($( $Call:ident = $name:ident ($($x:ident: $t:ty),*) -> $out:ty $body:block )*) => {
            match f {
                $( LibCall::$Call => {
                    extern "C" fn $name($($x: $t),*) -> $out $body
                    Some($name as *const () as usize)
                } )*
                _ => None,
            }
        };
    }
    functions! {
        CeilF32 = ceil_f32(x: f32) -> f32 { x.ceil() }
        CeilF64 = ceil_f64(x: f64) -> f64 { x.ceil() }
        FloorF32 = floor_f32(x: f32) -> f32 { x.floor() }
        FloorF64 = floor_f64(x: f64) -> f64 { x.floor() }
        TruncF32 = trunc_f32(x: f32) -> f32 { x.trunc() }
        TruncF64 = trunc_f64(x: f64) -> f64 { x.trunc() }
        NearestF32 = nearest_f32(x: f32) -> f32 { x.round_ties_even() }
        NearestF64 = nearest_f64(x: f64) -> f64 { x.round_ties_even() }
        FmaF32 = fma_f32(x: f32, y: f32, z: f32) -> f32 { x.mul_add(y, z) }
        FmaF64 = fma_f64(x: f64, y: f64, z: f64) -> f64 { x.mul_add(y, z) }
    }
}

/// The bytes of `src` at these places; 0 where the highest bit of the place is set.
#[cfg(target_arch = "x86_64")]
#[allow(improper_ctypes_definitions, reason = "vectors are passed in registers, as Cranelift does")]
extern "C" fn shuffle_bytes(src: __m128i, places: __m128i) -> __m128i {
    // SAFETY: all three are 16 bytes, any of which may hold anything.
    unsafe {
        let src = std::mem::transmute::<__m128i, [u8; 16]>(src);
        let places = std::mem::transmute::<__m128i, [u8; 16]>(places);
        let byte = |at: u8| if at < 128 { src[usize::from(at % 16)] } else { 0 };
        std::mem::transmute::<[u8; 16], __m128i>(places.map(byte))
    }
}
