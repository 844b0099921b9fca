//! Launches like one that was made before.
//!
//! Which variant a launch runs follows from what its arguments become in the kernel, from its options and
//! from what the host says. All of that is found the long way once: the arguments are sorted, judged and
//! encoded, and the variant is looked for. A launch that becomes the same in every part runs the same
//! variant; that it does is tested here by the same rules, one argument after the other, and takes a
//! fraction of the time.

use crate::kernel::Plan;
use crate::recorder::LiveHost;
use crate::specialize::{Values, same_spec};
use crate::variants::Variant;
use crate::{Kernel, Launch, Value};
use std::sync::{Arc, Weak};

/// A variant with the kind of launches that it is right for.
pub struct Ready<H: LiveHost> {
    /// A kernel that forgets its variants must not be kept from it, and what the host watches is the
    /// variant's alone.
    variant: Weak<Variant<H::Watch>>,
    plan: Arc<Plan>,
}

/// A launch that is given its arguments.
pub struct Again<'r, H: LiveHost> {
    kernel: &'r Kernel<H>,
    variant: Arc<Variant<H::Watch>>,
    plan: &'r Arc<Plan>,
    /// The first parameter that may come next.
    next: usize,
    values: Values,
}

impl<H: LiveHost> Ready<H> {
    pub(crate) fn new(variant: &Arc<Variant<H::Watch>>, plan: &Arc<Plan>) -> Ready<H> {
        Ready { variant: Arc::downgrade(variant), plan: plan.clone() }
    }

    /// Whether the variant is there, and the host is seen to answer as it did.
    pub fn holds(&self, kernel: &Kernel<H>) -> bool {
        self.variant.upgrade().is_some_and(|variant| variant.holds(kernel.host()))
    }

    /// A launch with the options of the first one; none where the kernel has forgotten the variant.
    pub fn again<'r>(&'r self, kernel: &'r Kernel<H>) -> Option<Again<'r, H>> {
        let values = Values::new(self.plan.args);
        Some(Again { kernel, variant: self.variant.upgrade()?, plan: &self.plan, next: 0, values })
    }
}

impl<H: LiveHost> Again<'_, H> {
    /// Gives a parameter its value. Parameters come in their order; left out are those whose value the
    /// caller knows to be that of the first launch, and which are constants in the kernel. False where the
    /// launch is one of another kind after all, or none that is allowed.
    #[must_use]
    pub fn give(&mut self, param: usize, value: Value) -> bool {
        if param < self.next {
            return false;
        }
        self.next = param + 1;
        let known = self.values.memory.len();
        let spec = self.values.take(&self.kernel.signature().params[param], param, value);
        spec.is_ok_and(|spec| same_spec(&spec, &self.plan.specs[param]))
            && self.values.memory[known..].iter().all(|m| m.location == self.plan.location)
    }

    /// The launch; none where some argument is missing, or the host may answer otherwise by now. That is
    /// looked at last, since to read values may run what changes it.
    pub fn launch(self) -> Option<Launch> {
        let Again { kernel, variant, plan, values, .. } = self;
        let fits = values.args.len() == plan.args && variant.holds(kernel.host());
        fits.then(|| Launch::new(plan.clone(), values.args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grid, HostValue, Module, Slot};

    const SOURCE: &str = "
import triton
import triton.language as tl

@triton.jit
def kernel(a, b, C: tl.constexpr):
    tl.device_assert(a + b == C)
";

    fn int(value: i128) -> Value {
        Value::Host(HostValue::Int(value))
    }

    #[test]
    fn a_launch_like_another() {
        let kernel = Module::from_source("ready.py", SOURCE).unwrap().kernel("kernel").unwrap();
        let request = || {
            let slots = [2, 3, 5].map(|v| Slot::Given(int(v)));
            kernel.request(slots, [("debug", HostValue::Bool(true))]).unwrap()
        };
        request().compile(&kernel).unwrap();
        let (_, ready) = request().find(&kernel).unwrap_or_else(|_| panic!("it is compiled"));
        assert!(ready.holds(&kernel));

        let launch = |values: &[(usize, Value)]| {
            let mut again = ready.again(&kernel)?;
            let like = values.iter().all(|(param, value)| again.give(*param, value.clone()));
            like.then(|| again.launch()).flatten()
        };
        let options = crate::LaunchOptions::PLAIN;
        let run = |launch: Launch| {
            let grid = Grid::new(&[1]).unwrap();
            // SAFETY: there is no memory among the arguments.
            unsafe { launch.run(grid, crate::Executor::Eager, &options) }
        };
        // The constant may be left out or given; the option is that of the first launch.
        run(launch(&[(0, int(1 << 20)), (1, int(5 - (1 << 20)))]).unwrap()).unwrap();
        run(launch(&[(0, int(3)), (1, int(2)), (2, int(5))]).unwrap()).unwrap();
        run(launch(&[(0, int(3)), (1, int(3))]).unwrap()).unwrap_err();
        for unlike in [
            &[(0, int(3)), (1, int(1))][..],
            &[(0, int(1 << 40)), (1, int(2))],
            &[(0, int(1 << 70)), (1, int(2))],
            &[(0, Value::from(2.0)), (1, int(2))],
            &[(0, Value::from(true)), (1, int(2))],
            &[(0, int(3)), (1, int(2)), (2, int(6))],
            &[(0, int(3)), (1, int(2)), (2, Value::from(5.0))],
            // Missing, in another order, twice.
            &[(0, int(3))],
            &[(1, int(3)), (0, int(2))],
            &[(0, int(3)), (0, int(2))],
        ] {
            assert!(launch(unlike).is_none(), "{unlike:?}");
        }
        kernel.clear();
        assert!(!ready.holds(&kernel) && ready.again(&kernel).is_none());
    }
}
