//! What can go wrong, the driver's errors among it.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// No driver is installed, or its library cannot be opened.
    NoDriver { why: String },
    /// The driver is too old to have a function that is needed.
    Outdated { symbol: &'static str },
    /// The driver refuses PTX, or cannot make code of it for this device.
    Compile { code: Code, log: String },
    /// Any other call that failed.
    Call { code: Code, doing: &'static str, text: String },
}

impl Error {
    /// The driver's own code, where it is the driver that failed.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::NoDriver { .. } | Error::Outdated { .. } => None,
            Error::Compile { code, .. } | Error::Call { code, .. } => Some(*code),
        }
    }

    /// Whether a kernel has broken the context: nothing more can be done with the device in this process.
    pub fn is_sticky(&self) -> bool {
        self.code().is_some_and(Code::is_sticky)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoDriver { why } => write!(f, "there is no CUDA driver: {why}"),
            Error::Outdated { symbol } => {
                write!(f, "the CUDA driver is too old: it has no `{symbol}`")
            }
            Error::Compile { code, log } => {
                write!(f, "the CUDA driver makes no code of the PTX ({code})")?;
                match log.is_empty() {
                    true => Ok(()),
                    false => write!(f, ":\n{log}"),
                }
            }
            Error::Call { code, doing, text } => write!(f, "{doing} failed with {code}: {text}"),
        }
    }
}

impl std::error::Error for Error {}

macro_rules! codes {
    ($( $number:literal $name:ident = $symbol:literal $($sticky:ident)?; )*) => {
        /// An error of the driver.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Code {
            $( $name, )*
            /// One that has no name here.
            Other(i32),
        }

        impl Code {
            pub fn of(number: i32) -> Code {
                match number {
                    $( $number => Code::$name, )*
                    other => Code::Other(other),
                }
            }

            pub fn number(self) -> i32 {
                match self {
                    $( Code::$name => $number, )*
                    Code::Other(number) => number,
                }
            }

            /// The driver's name for it.
            pub fn name(self) -> &'static str {
                match self {
                    $( Code::$name => $symbol, )*
                    Code::Other(_) => "an error without a name here",
                }
            }

            /// Whether it is a kernel's that broke the context.
            pub fn is_sticky(self) -> bool {
                match self {
                    $( $( Code::$name => codes!(@ $sticky), )? )*
                    _ => false,
                }
            }
        }
    };
    (@ sticky) => { true };
}

codes! {
    1 InvalidValue = "CUDA_ERROR_INVALID_VALUE";
    2 OutOfMemory = "CUDA_ERROR_OUT_OF_MEMORY";
    3 NotInitialized = "CUDA_ERROR_NOT_INITIALIZED";
    4 Deinitialized = "CUDA_ERROR_DEINITIALIZED";
    34 StubLibrary = "CUDA_ERROR_STUB_LIBRARY";
    46 DeviceUnavailable = "CUDA_ERROR_DEVICE_UNAVAILABLE";
    100 NoDevice = "CUDA_ERROR_NO_DEVICE";
    101 InvalidDevice = "CUDA_ERROR_INVALID_DEVICE";
    200 InvalidImage = "CUDA_ERROR_INVALID_IMAGE";
    201 InvalidContext = "CUDA_ERROR_INVALID_CONTEXT";
    209 NoBinaryForGpu = "CUDA_ERROR_NO_BINARY_FOR_GPU";
    214 EccUncorrectable = "CUDA_ERROR_ECC_UNCORRECTABLE" sticky;
    218 InvalidPtx = "CUDA_ERROR_INVALID_PTX";
    221 JitCompilerNotFound = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND";
    222 UnsupportedPtxVersion = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    400 InvalidHandle = "CUDA_ERROR_INVALID_HANDLE";
    500 NotFound = "CUDA_ERROR_NOT_FOUND";
    600 NotReady = "CUDA_ERROR_NOT_READY";
    700 IllegalAddress = "CUDA_ERROR_ILLEGAL_ADDRESS" sticky;
    701 LaunchOutOfResources = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    702 LaunchTimeout = "CUDA_ERROR_LAUNCH_TIMEOUT" sticky;
    709 ContextIsDestroyed = "CUDA_ERROR_CONTEXT_IS_DESTROYED";
    710 Assert = "CUDA_ERROR_ASSERT" sticky;
    714 HardwareStackError = "CUDA_ERROR_HARDWARE_STACK_ERROR" sticky;
    715 IllegalInstruction = "CUDA_ERROR_ILLEGAL_INSTRUCTION" sticky;
    716 MisalignedAddress = "CUDA_ERROR_MISALIGNED_ADDRESS" sticky;
    717 InvalidAddressSpace = "CUDA_ERROR_INVALID_ADDRESS_SPACE" sticky;
    718 InvalidPc = "CUDA_ERROR_INVALID_PC" sticky;
    719 LaunchFailed = "CUDA_ERROR_LAUNCH_FAILED" sticky;
    720 CooperativeLaunchTooLarge = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE";
    800 NotPermitted = "CUDA_ERROR_NOT_PERMITTED";
    801 NotSupported = "CUDA_ERROR_NOT_SUPPORTED";
    802 SystemNotReady = "CUDA_ERROR_SYSTEM_NOT_READY";
    803 SystemDriverMismatch = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    804 CompatNotSupported = "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE";
    900 StreamCaptureUnsupported = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    999 Unknown = "CUDA_ERROR_UNKNOWN";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names_and_tell_what_is_lost() {
        assert_eq!(Code::of(700), Code::IllegalAddress);
        assert_eq!(Code::of(700).to_string(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        assert_eq!(Code::of(4711).number(), 4711);
        assert!(Code::LaunchFailed.is_sticky());
        assert!(!Code::OutOfMemory.is_sticky() && !Code::LaunchOutOfResources.is_sticky());
    }
}
