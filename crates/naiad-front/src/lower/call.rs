//! Calls: binding arguments to parameters, builtins, inlining of jit functions.

use super::operator::Operand;
use super::stmt::Flow;
use super::{Env, Frame, Lower, MAX_INLINE_DEPTH};
use crate::host::{FnRef, HostValue, ObjRef};
use crate::names::{Call, Entry};
use crate::source::Result;
use crate::value::{Const, Tuple, Val, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::{Elem, Scalar, Shape, Value};
use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use std::rc::Rc;

/// The arguments of a call in the source, evaluated.
pub(crate) struct CallArgs {
    pub positional: Vec<Operand>,
    pub keywords: Vec<(String, Operand)>,
    pub range: TextRange,
}

/// A builtin's arguments, one slot for each parameter of its row.
pub(crate) struct Args {
    pub entry: &'static Entry,
    slots: Vec<Option<Operand>>,
    /// What `*name` collected.
    pub rest: Vec<Operand>,
    pub range: TextRange,
}

impl Args {
    /// The argument, or none if it was left out or is `None`.
    pub fn opt(&self, i: usize) -> Option<&Operand> {
        self.slots[i].as_ref().filter(|o| !o.val.is_none())
    }

    /// An argument that the row requires. Binding has seen to it.
    pub fn need(&self, i: usize) -> &Operand {
        self.slots[i].as_ref().expect("required arguments are bound")
    }
}

/// Evaluates a call expression whose callee is known.
pub(crate) fn call(l: &mut Lower<'_>, callee: Val, c: &ast::ExprCall) -> Result<Val> {
    let mut positional = Vec::new();
    for e in &c.arguments.args {
        let vals = l.items(std::slice::from_ref(e))?;
        positional.extend(vals.into_iter().map(|v| Operand::new(v, e.range())));
    }
    let mut keywords = Vec::new();
    for k in &c.arguments.keywords {
        let Some(name) = &k.arg else {
            return Err(l.error(
                Id::UnsupportedPython,
                "`**` arguments are not supported in a kernel",
                k.range(),
                "",
            ));
        };
        let val = l.eval(&k.value)?;
        keywords.push((name.to_string(), Operand::new(val, k.value.range())));
    }
    l.b.loc = l.loc(c.range());
    let args = CallArgs { positional, keywords, range: c.range() };
    l.call_value(&callee, args, c.func.range())
}

impl Lower<'_> {
    pub fn call_value(
        &mut self,
        callee: &Val,
        mut args: CallArgs,
        callee_range: TextRange,
    ) -> Result<Val> {
        match callee {
            Val::Builtin(entry) => self.call_builtin(entry, args),
            Val::Method(object, entry) => {
                args.positional.insert(0, Operand::new((**object).clone(), callee_range));
                self.call_builtin(entry, args)
            }
            Val::Function(f) => self.inline(*f, args),
            Val::Object(o, what) => self.call_object(*o, &what.clone(), args),
            Val::DType(_) => {
                args.positional.insert(
                    1.min(args.positional.len()),
                    Operand::new(callee.clone(), callee_range),
                );
                match crate::names::lookup("cast") {
                    Some(cast) => self.call_builtin(cast, args),
                    None => Ok(Val::NONE),
                }
            }
            Val::Missing(path) => {
                let message = format!("`tl.{path}` is not supported by Naiad yet");
                Err(self.error(Id::UnknownTlName, message, callee_range, ""))
            }
            other => {
                let what = self.describe(other);
                Err(self.error(Id::BadCall, format!("{what} cannot be called"), callee_range, ""))
            }
        }
    }

    fn call_builtin(&mut self, entry: &'static Entry, args: CallArgs) -> Result<Val> {
        if let (Call::Library, Some(f)) = (entry.call, crate::library::function(entry.path)) {
            // Its arithmetic wraps where it is meant to.
            let watched = std::mem::replace(&mut self.options.sanitize_overflow, false);
            let result = self.inline(f, args);
            self.options.sanitize_overflow = watched;
            return result;
        }
        let bound = bind_entry(self, entry, args)?;
        match entry.call {
            Call::Function(f) => f(self, &bound),
            Call::Unary(f) => crate::builtins::math::unary(self, f, &bound),
            Call::Value(f) => Ok(f()),
            // Those are seen to before.
            Call::Library | Call::Alias(_) | Call::Missing => Ok(Val::NONE),
        }
    }

    /// A class of named tuples on any values; any other function of the host on compile-time ones.
    fn call_object(&mut self, object: ObjRef, what: &str, args: CallArgs) -> Result<Val> {
        let run_time = |o: &Operand| o.val.to_host().is_none();
        if args.positional.iter().chain(args.keywords.iter().map(|(_, o)| o)).any(run_time)
            && let Ok(Some(HostValue::Tuple { items, .. })) = self.host.attribute(object, "_fields")
        {
            let field = |f: HostValue| match f {
                HostValue::Str(name) => Some(name),
                _ => None,
            };
            if let Some(fields) = items.into_iter().map(field).collect::<Option<Vec<String>>>() {
                let defaults = self.field_defaults(object);
                return self.named_tuple(what, fields, defaults, args);
            }
        }
        let mut positional = Vec::new();
        let mut keywords = Vec::new();
        let all = args
            .positional
            .iter()
            .map(|o| (None, o))
            .chain(args.keywords.iter().map(|(k, o)| (Some(k), o)));
        for (key, o) in all {
            let Some(value) = o.val.to_host() else {
                let d = self.describe(&o.val);
                let message = format!(
                    "{what} runs at compile time, and this argument is known only at run time"
                );
                let e = self.error(Id::NotConstexpr, message, o.range, format!("this is {d}"));
                return Err(Box::new((*e).help(
                    "a function that a kernel calls on run-time values needs `@triton.jit`",
                )));
            };
            match key {
                None => positional.push(value),
                Some(k) => keywords.push((k.clone(), value)),
            }
        }
        let result = self.host.call(object, &positional, &keywords);
        Ok(Val::from_host(result.map_err(|e| self.error(Id::BadCall, e.0, args.range, ""))?))
    }

    /// What the last fields of a class of named tuples have where nothing is given for them.
    fn field_defaults(&self, class: ObjRef) -> Vec<HostValue> {
        let new = match self.host.attribute(class, "__new__") {
            Ok(Some(HostValue::Object(new, _))) => new,
            _ => return Vec::new(),
        };
        match self.host.attribute(new, "__defaults__") {
            Ok(Some(HostValue::Tuple { items, .. })) => items,
            _ => Vec::new(),
        }
    }

    /// A named tuple of the values of its fields.
    fn named_tuple(
        &mut self,
        what: &str,
        fields: Vec<String>,
        defaults: Vec<HostValue>,
        args: CallArgs,
    ) -> Result<Val> {
        let needed = fields.len().saturating_sub(defaults.len());
        let param = |(i, name): (usize, &'_ String)| (name.clone(), i >= needed);
        let params: Vec<(String, bool)> = fields.iter().enumerate().map(param).collect();
        let params: Vec<Param> = params
            .iter()
            .map(|(name, optional)| Param { name, optional: *optional, variadic: false })
            .collect();
        let (slots, _) = bind(self, what, &params, args)?;
        let mut defaults = defaults.into_iter();
        let mut items = Vec::new();
        for (i, slot) in slots.into_iter().enumerate() {
            let default = if i >= needed { defaults.next() } else { None };
            items.push(match slot {
                Some(o) => o.val,
                None => default.map_or(Val::NONE, Val::from_host),
            });
        }
        Ok(Val::Tuple(Rc::new(Tuple { items, names: Some(fields.into()) })))
    }

    /// Compiles a jit function's body in place of a call.
    pub fn inline(&mut self, f: FnRef, args: CallArgs) -> Result<Val> {
        let parsed = self.parsed(f)?;
        let name = parsed.def.name.as_str();
        if self.frames.len() >= MAX_INLINE_DEPTH {
            let message = format!(
                "calls are nested {MAX_INLINE_DEPTH} deep: `{name}` seems to call itself without end"
            );
            let e = self.error(Id::TooLarge, message, args.range, "");
            return Err(Box::new((*e).help("functions are inlined, so a recursion must end at compile time, by a constexpr condition")));
        }
        let names: Vec<Param> = parsed
            .params
            .iter()
            .map(|p| Param { name: &p.name, optional: p.has_default, variadic: p.variadic })
            .collect();
        let range = args.range;
        let (slots, rest) = bind(self, name, &names, args)?;
        let places = parsed.info().places;
        let called_from = self.loc(range);
        let mut env = Env::default();
        let mut rest = Some(rest);
        for ((param, place), slot) in parsed.params.iter().zip(places).zip(slots) {
            let val = if param.variadic {
                Val::tuple(rest.take().unwrap_or_default().into_iter().map(|o| o.val).collect())
            } else {
                match slot {
                    Some(o) => o.val,
                    None => {
                        let default = self.host.default(f, &param.name);
                        Val::from_host(
                            default.map_err(|e| self.error(Id::BadCall, e.0, range, ""))?,
                        )
                    }
                }
            };
            self.next_version += 1;
            let binding = super::Binding { val, place, version: self.next_version };
            env.insert(param.name.as_str().into(), binding);
        }
        self.frames.push(Frame {
            function: f,
            parsed: parsed.clone(),
            env,
            called_from,
            loops: 0,
            branches: 0,
            declared_constexpr: Vec::new(),
        });
        let flow = self.block(&parsed.def.body)?;
        self.frames.pop();
        Ok(match flow {
            Flow::Next => Val::NONE,
            Flow::Returned(val) | Flow::Maybe { val, .. } => val,
        })
    }

    // ---- arguments of builtins ----------------------------------------------------------------

    fn wrong_argument(&mut self, o: &Operand, wanted: &str) -> Box<Diagnostic> {
        let what = self.describe(&o.val);
        self.error(
            Id::BadArgument,
            format!("{wanted} is wanted here, not {what}"),
            o.range,
            format!("this is {what}"),
        )
    }

    /// A value of the running kernel; a literal becomes a scalar.
    pub fn tensor(&mut self, o: &Operand) -> Result<Value> {
        match self.materialize(&o.val)? {
            Some(v) => Ok(v),
            None => Err(self.wrong_argument(o, "a tensor")),
        }
    }

    /// The items of a tuple, or the one value.
    pub fn each(&self, o: &Operand) -> Vec<Operand> {
        match &o.val {
            Val::Tuple(t) => t.items.iter().map(|v| Operand::new(v.clone(), o.range)).collect(),
            _ => vec![o.clone()],
        }
    }

    pub fn const_int(&mut self, o: &Operand, what: &str) -> Result<i128> {
        match &o.val {
            Val::Const(Const::Int(i)) => Ok(*i),
            Val::Const(Const::Bool(b)) => Ok(*b as i128),
            Val::Const(Const::Float(f)) => {
                let message = format!("{what} must be an integer, not the float {f:?}");
                let e = self.error(Id::BadArgument, message, o.range, "");
                Err(Box::new((*e).help("`/` gives a float, `//` an integer")))
            }
            Val::Tensor(_) => Err(self.not_constexpr(o, what)),
            _ => Err(self.wrong_argument(o, &format!("an integer for {what}"))),
        }
    }

    fn not_constexpr(&mut self, o: &Operand, what: &str) -> Box<Diagnostic> {
        let d = self.describe(&o.val);
        let text = self.place(o.range).text().to_string();
        let e = self.error(
            Id::NotConstexpr,
            format!("{what} must be known at compile time"),
            o.range,
            format!("this is a run-time {d}"),
        );
        let mut e = *e;
        if let Some(binding) = self.frame().env.get(text.as_str()) {
            e = e.secondary(binding.place.clone(), format!("`{text}` gets its value here"));
        }
        Box::new(e.help(format!("declare it constexpr: `{text}: tl.constexpr`, as a parameter or where it is assigned; a plain assignment makes a run-time value")))
    }

    pub fn const_bool(&mut self, o: Option<&Operand>, default: bool) -> Result<bool> {
        match o.map(|o| (&o.val, o)) {
            None => Ok(default),
            Some((Val::Const(c), _)) => Ok(c.truthy()),
            Some((Val::Tensor(_), o)) => Err(self.not_constexpr(o, "this flag")),
            Some((_, o)) => Err(self.wrong_argument(o, "a boolean")),
        }
    }

    pub fn const_str(&mut self, o: Option<&Operand>) -> Result<Option<Rc<str>>> {
        match o.map(|o| (&o.val, o)) {
            None => Ok(None),
            Some((Val::Const(Const::Str(s)), _)) => Ok(Some(s.clone())),
            Some((_, o)) => Err(self.wrong_argument(o, "a string")),
        }
    }

    /// A word out of a list of options.
    pub fn option<T: Copy>(
        &mut self,
        o: Option<&Operand>,
        what: &str,
        default: T,
        find: impl Fn(&str) -> Option<T>,
        all: &[&str],
    ) -> Result<T> {
        let Some(text) = self.const_str(o)? else { return Ok(default) };
        match (find(&text), o) {
            (Some(t), _) => Ok(t),
            (None, Some(o)) => {
                let list: Vec<String> = all.iter().map(|s| format!("\"{s}\"")).collect();
                let e =
                    self.error(Id::BadArgument, format!("\"{text}\" is no {what}"), o.range, "");
                Err(Box::new((*e).help(format!("possible are {}", list.join(", ")))))
            }
            (None, None) => Ok(default),
        }
    }

    pub fn scalar_type(&mut self, o: &Operand) -> Result<Scalar> {
        match &o.val {
            Val::DType(ty) if ty.is_scalar() && !ty.is_pointer() => {
                Ok(ty.elem.scalar().unwrap_or(Scalar::I32))
            }
            Val::Const(Const::Str(s)) if Scalar::from_name(s).is_some() => {
                Ok(Scalar::from_name(s).unwrap_or(Scalar::I32))
            }
            _ => Err(self.wrong_argument(o, "a dtype such as `tl.float32`")),
        }
    }

    pub fn elem_type(&mut self, o: &Operand) -> Result<Elem> {
        match &o.val {
            Val::DType(ty) => Ok(ty.elem),
            _ => Ok(Elem::Scalar(self.scalar_type(o)?)),
        }
    }

    /// Extents given as separate arguments, or as one tuple or list.
    pub fn dims(&mut self, given: &[Operand], what: &str) -> Result<Vec<i64>> {
        let items: Vec<Operand> = match given {
            [Operand { val: Val::Tuple(t), range }] => {
                t.items.iter().map(|v| Operand::new(v.clone(), *range)).collect()
            }
            several => several.to_vec(),
        };
        let mut out = Vec::with_capacity(items.len());
        for o in &items {
            let i = self.const_int(o, what)?;
            match i64::try_from(i) {
                Ok(i) => out.push(i),
                Err(_) => {
                    return Err(self.error(
                        Id::BadShape,
                        format!("{i} is out of range for {what}"),
                        o.range,
                        "",
                    ));
                }
            }
        }
        Ok(out)
    }

    pub fn shape(&mut self, given: &[Operand], range: TextRange) -> Result<Shape> {
        let dims = self.dims(given, "an extent of a shape")?;
        Shape::new(&dims).map_err(|e| {
            let rounded = dims.iter().map(|&d| {
                if d < 1 { 1 } else { (d as u64).checked_next_power_of_two().unwrap_or(1) }
            });
            let rounded: Vec<String> = rounded.map(|d| d.to_string()).collect();
            // All extents: one of them is made of what stands in any.
            let all = given.iter().map(|o| o.range).reduce(|a, b| a.cover(b));
            let d = self.bad_shape(e, all.unwrap_or(range));
            match e {
                naiad_ir::ShapeError::NotPowerOfTwo(_) => Box::new(
                    (*d).help(format!("take the shape ({}) and a mask", rounded.join(", "))),
                ),
                _ => d,
            }
        })
    }

    /// An axis, counted from the end if negative.
    pub fn axis(&mut self, o: &Operand, rank: usize) -> Result<usize> {
        let i = self.const_int(o, "an axis")?;
        let at = if i < 0 { i + rank as i128 } else { i };
        match usize::try_from(at) {
            Ok(a) if a < rank => Ok(a),
            _ => Err(self.error(
                Id::BadArgument,
                format!("axis {i} is out of range for a tile with {rank} axes"),
                o.range,
                "",
            )),
        }
    }

    /// A tile of numbers.
    pub fn number_tile(&mut self, o: &Operand) -> Result<(Value, Scalar)> {
        let v = self.tensor(o)?;
        match self.ty(v).elem {
            Elem::Scalar(s) => Ok((v, s)),
            Elem::Pointer(_) => {
                let what = type_name(self.ty(v));
                Err(self.error(
                    Id::TypeMismatch,
                    format!("numbers are wanted here, not {what}"),
                    o.range,
                    "",
                ))
            }
        }
    }
}

struct Param<'a> {
    name: &'a str,
    optional: bool,
    variadic: bool,
}

/// Binds a builtin's arguments to the parameters in its row: `pointer, mask=, *dims`.
pub(crate) fn bind_entry(l: &mut Lower<'_>, entry: &'static Entry, args: CallArgs) -> Result<Args> {
    let names: Vec<Param> = entry
        .params
        .split(',')
        .map(str::trim)
        .filter(|p| !p.is_empty())
        .map(|p| Param {
            name: p.trim_start_matches('*').trim_end_matches('='),
            optional: p.ends_with('='),
            variadic: p.starts_with('*'),
        })
        .collect();
    let range = args.range;
    let (slots, rest) = bind(l, &entry.display_name(), &names, args)?;
    Ok(Args { entry, slots, rest, range })
}

type Slots = (Vec<Option<Operand>>, Vec<Operand>);

/// Python's rules for positional and keyword arguments.
fn bind(l: &mut Lower<'_>, callee: &str, params: &[Param<'_>], args: CallArgs) -> Result<Slots> {
    let mut slots: Vec<Option<Operand>> = params.iter().map(|_| None).collect();
    let mut rest = Vec::new();
    let variadic = params.iter().position(|p| p.variadic);
    let room = variadic.unwrap_or(params.len());
    let signature = || {
        let list: Vec<String> = params
            .iter()
            .map(|p| match (p.variadic, p.optional) {
                (true, _) => format!("*{}", p.name),
                (_, true) => format!("{}=…", p.name),
                _ => p.name.to_string(),
            })
            .collect();
        format!("`{callee}({})`", list.join(", "))
    };
    for (i, o) in args.positional.into_iter().enumerate() {
        if i < room {
            slots[i] = Some(o);
        } else if variadic.is_some() {
            rest.push(o);
        } else {
            let message = format!("`{callee}` takes {room} arguments, {} are given", i + 1);
            let e = l.error(Id::BadCall, message, o.range, "one too many");
            return Err(Box::new((*e).note(format!("it is {}", signature()))));
        }
    }
    for (name, o) in args.keywords {
        let found = params.iter().position(|p| p.name == name);
        match found {
            Some(i) if params[i].variadic => rest = vec![o],
            Some(i) if slots[i].is_none() => slots[i] = Some(o),
            Some(_) => {
                return Err(l.error(
                    Id::BadCall,
                    format!("`{callee}` gets `{name}` twice"),
                    o.range,
                    "also given by position",
                ));
            }
            None => {
                let e = l.error(
                    Id::BadCall,
                    format!("`{callee}` has no parameter `{name}`"),
                    o.range,
                    "",
                );
                let e = match crate::names::nearest(&name, params.iter().map(|p| p.name)) {
                    Some(n) => (*e).help(format!("did you mean `{n}`?")),
                    None => *e,
                };
                return Err(Box::new(e.note(format!("it is {}", signature()))));
            }
        }
    }
    let missing: Vec<String> = params
        .iter()
        .zip(&slots)
        .filter(|(p, s)| s.is_none() && !p.optional && !p.variadic)
        .map(|(p, _)| format!("`{}`", p.name))
        .collect();
    if !missing.is_empty() {
        let e = l.error(
            Id::BadCall,
            format!("`{callee}` lacks {}", missing.join(", ")),
            args.range,
            "",
        );
        return Err(Box::new((*e).note(format!("it is {}", signature()))));
    }
    Ok((slots, rest))
}
