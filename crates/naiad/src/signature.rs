//! Which argument of a launch belongs to which parameter of the kernel.

use crate::annotation::Annotation;
use crate::options::LaunchConfig;
use crate::{Error, ParamSelector, Result};
use naiad_diag::{Diagnostic, Id, Place};
use naiad_front::{KernelInfo, ParamInfo, names::nearest};

/// A kernel's parameters.
#[derive(Clone, Debug)]
pub struct Signature {
    pub kernel: String,
    pub params: Vec<Param>,
}

/// One parameter of a kernel.
#[derive(Clone, Debug)]
pub struct Param {
    pub info: ParamInfo,
    /// Where it stands in the source.
    pub place: Option<Place>,
    pub annotation: Annotation,
    /// Integers that are 1 become constexpr.
    pub specialize: bool,
    /// Code may be compiled for the alignment that an argument happens to have. None is so far.
    pub assume_alignment: bool,
}

/// What a parameter got.
#[derive(Clone, PartialEq, Debug)]
pub enum Slot<T> {
    Given(T),
    /// What was left for `*args`.
    Rest(Vec<T>),
    /// Nothing: its default stands.
    Default,
}

/// Arguments sorted to their parameters, and the keywords that are launch options.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound<K, T> {
    pub slots: Vec<Slot<T>>,
    pub options: Vec<(K, T)>,
}

impl Signature {
    /// `annotations` take the place of those in the text, where there are any.
    pub(crate) fn new(info: &KernelInfo, annotations: &[Option<String>]) -> Signature {
        let params = info.params.iter().enumerate().map(|(i, param)| {
            let mut own = param.clone();
            if let Some(Some(text)) = annotations.get(i) {
                own.is_constexpr = text == "constexpr";
                own.annotation = Some(text.clone());
            }
            let annotation = own.annotation.as_deref();
            Param {
                place: info.places.get(i).cloned(),
                annotation: annotation.map_or(Annotation::Free, Annotation::parse),
                specialize: true,
                assume_alignment: true,
                info: own,
            }
        });
        Signature { kernel: info.name.clone(), params: params.collect() }
    }

    /// The parameters that `option` of `@triton.jit` lists. As in Triton, what names no parameter
    /// is passed over.
    pub(crate) fn select(&self, option: &str, listed: &[ParamSelector]) -> Result<Vec<usize>> {
        let indices = listed.iter().filter_map(|selector| match selector {
            ParamSelector::Name(name) => self.index_of(name),
            ParamSelector::Index(i) => Some(*i).filter(|i| *i < self.params.len()),
        });
        let check = |index: usize| {
            let info = &self.params[index].info;
            if !info.is_constexpr {
                return Ok(index);
            }
            let message = format!("`{}` is constexpr and in `{option}` at once", info.name);
            let d = self.at(index, Diagnostic::new(Id::BadLaunch, message), "constexpr here");
            Err(d.help("a constexpr is specialized on by its nature: drop one of the two").into())
        };
        indices.map(check).collect()
    }

    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.info.name == name)
    }

    /// Sorts arguments to parameters by Python's rules. Keywords that name no parameter must be
    /// launch options.
    pub fn bind<K: AsRef<str>, T>(
        &self,
        positional: impl IntoIterator<Item = T>,
        keywords: impl IntoIterator<Item = (K, T)>,
    ) -> Result<Bound<K, T>> {
        let mut slots: Vec<Slot<T>> = Vec::with_capacity(self.params.len());
        let mut positional = positional.into_iter();
        for param in &self.params {
            if param.info.variadic {
                slots.push(Slot::Rest(positional.by_ref().collect()));
                break;
            }
            match positional.next() {
                Some(value) => slots.push(Slot::Given(value)),
                None => break,
            }
        }
        let by_position = slots.len();
        slots.resize_with(self.params.len(), || Slot::Default);
        let extra = positional.count();
        if extra > 0 {
            return Err(self.too_many(by_position + extra));
        }
        let mut options = Vec::new();
        for (name, value) in keywords {
            match self.index_of(name.as_ref()) {
                Some(i) if matches!(slots[i], Slot::Default) && !self.params[i].info.variadic => {
                    slots[i] = Slot::Given(value);
                }
                Some(i) => return Err(self.given_twice(i)),
                None if LaunchConfig::is_option(name.as_ref()) => options.push((name, value)),
                None => return Err(self.unknown(name.as_ref())),
            }
        }
        self.check_complete(&slots)?;
        Ok(Bound { slots, options })
    }

    fn check_complete<T>(&self, slots: &[Slot<T>]) -> Result<()> {
        let missing: Vec<usize> = (0..slots.len())
            .filter(|&i| matches!(slots[i], Slot::Default) && !self.params[i].info.has_default)
            .collect();
        let Some(&first) = missing.first() else { return Ok(()) };
        let names: Vec<_> =
            missing.iter().map(|&i| format!("`{}`", self.params[i].info.name)).collect();
        let (noun, verb) = if names.len() == 1 { ("argument", "is") } else { ("arguments", "are") };
        let message = format!(
            "{noun} {} {verb} missing in the launch of `{}`",
            names.join(", "),
            self.kernel
        );
        let mut d = self.at(first, Diagnostic::new(Id::BadLaunch, message), "has no default");
        if self.params[first].info.is_constexpr {
            d = d.help(format!("pass it by keyword: `{}=...`", self.params[first].info.name));
        }
        Err(d.into())
    }

    fn too_many(&self, given: usize) -> Error {
        let n = self.params.len();
        let takes = format!("{n} argument{}", if n == 1 { "" } else { "s" });
        let message =
            format!("`{}` takes {takes}, but {given} were given by position", self.kernel);
        let d = Diagnostic::new(Id::BadLaunch, message)
            .help("launch options such as `num_warps` are given by keyword");
        match n {
            0 => d.into(),
            _ => self.at(n - 1, d, "the last parameter").into(),
        }
    }

    fn given_twice(&self, i: usize) -> Error {
        let name = &self.params[i].info.name;
        let (message, label) = if self.params[i].info.variadic {
            (format!("`*{name}` cannot be given by keyword"), "takes what is left by position")
        } else {
            (format!("`{name}` is given by position and by keyword"), "both give this parameter")
        };
        self.at(i, Diagnostic::new(Id::BadLaunch, message), label).into()
    }

    fn unknown(&self, name: &str) -> Error {
        let message = format!(
            "`{}` has no parameter `{name}`, and no launch option has that name",
            self.kernel
        );
        let d = Diagnostic::new(Id::BadLaunch, message);
        let candidates =
            self.params.iter().map(|p| p.info.name.as_str()).chain(LaunchConfig::names());
        match nearest(name, candidates) {
            Some(near) => match self.index_of(near) {
                Some(i) => self.at(i, d, "did you mean this one?"),
                None => d.help(format!("did you mean the launch option `{near}`?")),
            },
            None => {
                let names: Vec<_> = self.params.iter().map(|p| p.info.name.as_str()).collect();
                d.note(format!("its parameters are {}", names.join(", ")))
            }
        }
        .into()
    }

    /// The error of an argument that the parameter at `index` cannot take: "argument `x` of `k` "
    /// goes on with `why`.
    pub fn misfit(&self, index: usize, why: &str, help: Option<&str>) -> Error {
        let message =
            format!("argument `{}` of `{}` {why}", self.params[index].info.name, self.kernel);
        let mut d = self.at(index, Diagnostic::new(Id::BadLaunch, message), "this parameter");
        d.help.extend(help.map(str::to_string));
        d.into()
    }

    /// Points a diagnostic at a parameter.
    pub(crate) fn at(&self, param: usize, d: Diagnostic, label: &str) -> Diagnostic {
        match &self.params[param].place {
            Some(place) => d.primary(place.clone(), label),
            None => d,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x!` is constexpr, `x=` has a default, `*x` is variadic.
    fn signature(params: &str) -> Signature {
        let params = params.split_whitespace().map(|text| {
            let name = text.trim_matches(['!', '=', '*']).to_string();
            ParamInfo {
                name,
                annotation: None,
                has_default: text.ends_with('='),
                is_constexpr: text.contains('!'),
                variadic: text.starts_with('*'),
            }
        });
        let info = KernelInfo { name: "k".into(), params: params.collect(), places: Vec::new() };
        Signature::new(&info, &[])
    }

    fn slots(
        s: &Signature,
        positional: &[i32],
        keywords: &[(&'static str, i32)],
    ) -> Vec<Slot<i32>> {
        s.bind(positional.iter().copied(), keywords.iter().copied()).unwrap().slots
    }

    #[test]
    fn arguments_find_their_parameters() {
        use Slot::{Default, Given, Rest};
        let s = signature("x n= BLOCK!");
        assert_eq!(slots(&s, &[1, 2, 3], &[]), [Given(1), Given(2), Given(3)]);
        assert_eq!(slots(&s, &[1], &[("BLOCK", 3)]), [Given(1), Default, Given(3)]);
        assert_eq!(
            slots(&s, &[], &[("BLOCK", 3), ("n", 2), ("x", 1)]),
            [Given(1), Given(2), Given(3)]
        );
        let s = signature("x *rest y=");
        assert_eq!(slots(&s, &[1, 2, 3], &[("y", 4)]), [Given(1), Rest(vec![2, 3]), Given(4)]);
        assert_eq!(slots(&s, &[1], &[]), [Given(1), Rest(vec![]), Default]);
    }

    #[test]
    fn options_are_set_aside_unless_a_parameter_has_their_name() {
        let s = signature("x num_warps!");
        let bound = s.bind([1], [("num_warps", 8), ("num_stages", 2)]).unwrap();
        assert_eq!(bound.slots, [Slot::Given(1), Slot::Given(8)]);
        assert_eq!(bound.options, [("num_stages", 2)]);
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        let s = signature("x_ptr n BLOCK_SIZE!");
        type Case = (&'static [i32], &'static [(&'static str, i32)], &'static str);
        let cases: [Case; 7] = [
            (&[1, 2, 3, 4], &[], "`k` takes 3 arguments, but 4 were given by position"),
            (&[1], &[], "arguments `n`, `BLOCK_SIZE` are missing in the launch of `k`"),
            (&[1, 2], &[], "by keyword: `BLOCK_SIZE=...`"),
            (&[1, 2, 3], &[("n", 2)], "`n` is given by position and by keyword"),
            (&[1, 2, 3], &[("num_wraps", 2)], "did you mean the launch option `num_warps`?"),
            (&[1, 2, 3], &[("BLOCK", 2)], "its parameters are x_ptr, n, BLOCK_SIZE"),
            (&[1, 2, 3], &[("stream", 2)], "has no parameter `stream`"),
        ];
        for (positional, keywords, want) in cases {
            let error = s.bind(positional.iter().copied(), keywords.iter().copied()).unwrap_err();
            assert_eq!(error.id(), Id::BadLaunch);
            assert!(error.to_string().contains(want), "{error}");
        }
    }
}
