//! Memory on a GPU for programs in Rust.

use crate::value::Location;
use crate::{Argument, Device, Element, ElementMut, Error, Result, Tensor};
use naiad_cuda::Memory;
use naiad_diag::{Diagnostic, Id};
use std::marker::PhantomData;

/// Elements on a GPU. Launches read and write it as they do slices on a CPU:
/// `args![&x, &mut y, n]`.
pub struct CudaBuffer<T> {
    memory: Memory,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: ElementMut> CudaBuffer<T> {
    /// Copies to the GPU.
    pub fn new(device: &Device, from: &[T]) -> Result<CudaBuffer<T>> {
        let mut buffer = CudaBuffer::room(device, from.len())?;
        buffer.write(from)?;
        Ok(buffer)
    }

    /// All bytes are 0.
    pub fn zeroed(device: &Device, len: usize) -> Result<CudaBuffer<T>> {
        let mut buffer = CudaBuffer::room(device, len)?;
        buffer.memory.fill(0).map_err(|e| super::error(&e))?;
        Ok(buffer)
    }

    fn room(device: &Device, len: usize) -> Result<CudaBuffer<T>> {
        let gpu = device.gpu().ok_or_else(|| {
            Error::from(
                Diagnostic::new(Id::Gpu, "a buffer on a GPU is made with a device that is a CPU")
                    .help("make it with `Device::cuda(0)`, or pass a slice"),
            )
        })?;
        let memory = match len.checked_mul(size_of::<T>()) {
            Some(bytes) => Memory::new(gpu.context(), bytes).map_err(|e| super::error(&e))?,
            None => {
                let message = format!("no memory holds {len} elements");
                return Err(Diagnostic::new(Id::OutOfMemory, message).into());
            }
        };
        Ok(CudaBuffer { memory, len, elements: PhantomData })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies to the GPU, behind the launches before.
    ///
    /// # Panics
    ///
    /// If there are not as many elements as this has.
    pub fn write(&mut self, from: &[T]) -> Result<()> {
        assert_eq!(from.len(), self.len, "a buffer is written as a whole");
        // SAFETY: elements are plain numbers without padding.
        let bytes =
            unsafe { std::slice::from_raw_parts(from.as_ptr().cast::<u8>(), size_of_val(from)) };
        self.memory.write(bytes).map_err(|e| self.fault(&e))
    }

    /// Copies from the GPU, when the launches before are done.
    ///
    /// # Panics
    ///
    /// If there are not as many elements as this has.
    pub fn read(&self, to: &mut [T]) -> Result<()> {
        assert_eq!(to.len(), self.len, "a buffer is read as a whole");
        // SAFETY: elements are plain numbers without padding, of which all bits are valid.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(to.as_mut_ptr().cast::<u8>(), size_of_val(to))
        };
        self.memory.read(bytes).map_err(|e| self.fault(&e))
    }

    /// A copy of all elements, when the launches before are done.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Default,
    {
        let mut elements = vec![T::default(); self.len];
        self.read(&mut elements)?;
        Ok(elements)
    }

    /// A copy waits for launches, and is told of their faults.
    fn fault(&self, e: &naiad_cuda::Error) -> Error {
        match super::Gpu::get(self.memory.context().ordinal()) {
            Ok(gpu) => gpu.fault(e),
            Err(_) => super::error(e),
        }
    }
}

impl<T: Element> CudaBuffer<T> {
    fn tensor(&self, writable: bool) -> Tensor {
        let address = self.memory.address() as usize;
        Tensor {
            elem: T::SCALAR,
            address,
            storage: address..address + self.memory.bytes(),
            view: None,
            writable,
            location: Location::Cuda(self.memory.context().ordinal()),
        }
    }
}

impl<'a, T: Element> From<&'a CudaBuffer<T>> for Argument<'a> {
    fn from(buffer: &'a CudaBuffer<T>) -> Argument<'a> {
        Argument::of(buffer.tensor(false))
    }
}

impl<'a, T: ElementMut> From<&'a mut CudaBuffer<T>> for Argument<'a> {
    fn from(buffer: &'a mut CudaBuffer<T>) -> Argument<'a> {
        Argument::of(buffer.tensor(true))
    }
}
