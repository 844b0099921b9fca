//! What the host answered while a kernel was compiled: a compiled variant is good for as long as
//! the host would answer the same.

use crate::specialize::encode;
use crate::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
use naiad_front::file::FileHost;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// A question that may be answered differently in a later launch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Question {
    /// What a free name of a function means: constants, helpers and modules are rebound in the
    /// ordinary work of a notebook.
    Name(FnRef, String),
    /// What an attribute of an object is.
    Attribute(ObjRef, String),
    /// Which text a function has.
    Text(FnRef),
    /// What an object that the compilation called reads besides its arguments.
    Reads(ObjRef),
}

/// A host whose answers may change between launches.
///
/// Asking everything again would cost each launch more than all the rest of it, so the host keeps
/// something by which it sees at a glance whether any answer can have changed.
pub trait LiveHost: Host {
    type Watch: Send + Sync;

    fn watch(&self, questions: &[Question]) -> Self::Watch;

    /// False where an answer may have changed; the questions are then asked again.
    fn unchanged(&self, watch: &Self::Watch) -> bool;

    /// Runs `f`, which will ask several questions: what it costs to ask is paid once.
    fn together<T>(&self, f: impl FnOnce() -> T) -> T {
        f()
    }
}

/// A file that was read stays as it was read.
impl LiveHost for FileHost {
    type Watch = ();

    fn watch(&self, _: &[Question]) {}

    fn unchanged(&self, (): &()) -> bool {
        true
    }
}

/// A host that notes what it is asked, and asks each question once: answers are stable while one
/// kernel is compiled, and to ask Python means to wait for other threads that run it.
pub(crate) struct Recorder<'h> {
    host: &'h dyn Host,
    answers: RefCell<Answers>,
    /// Answers that are known to stand, from another compilation.
    known: Option<&'h Answers>,
    /// Not noted: these are answered differently each time.
    fresh: RefCell<FxHashSet<Question>>,
}

/// The questions of one compilation with the answers they had.
#[derive(Default)]
pub(crate) struct Answers {
    values: FxHashMap<Question, Option<HostValue>>,
    texts: FxHashMap<FnRef, FunctionSource>,
}

impl<'h> Recorder<'h> {
    pub fn new(host: &'h dyn Host, known: Option<&'h Answers>) -> Recorder<'h> {
        Recorder { host, answers: RefCell::default(), known, fresh: RefCell::default() }
    }

    pub fn into_answers(self) -> Answers {
        let mut answers = self.answers.into_inner();
        for question in self.fresh.into_inner() {
            answers.values.remove(&question);
        }
        answers
    }

    fn ask(
        &self,
        question: Question,
        ask: impl Fn() -> Result<Option<HostValue>, HostError>,
    ) -> Result<Option<HostValue>, HostError> {
        if let Some(answer) = self.answers.borrow().values.get(&question) {
            return Ok(answer.clone());
        }
        let answer = match self.known.and_then(|known| known.values.get(&question)) {
            Some(answer) => answer.clone(),
            None => ask()?,
        };
        // A bound method is a new object each time that it is asked for. Held against its variant,
        // that would have the kernel compiled for every launch.
        let may_be_fresh =
            matches!((&question, &answer), (Question::Attribute(..), Some(HostValue::Object(..))));
        if may_be_fresh && ask()? != answer {
            self.fresh.borrow_mut().insert(question.clone());
        }
        self.answers.borrow_mut().values.insert(question, answer.clone());
        Ok(answer)
    }
}

impl Answers {
    pub fn questions(&self) -> Vec<Question> {
        let texts = self.texts.keys().map(|function| Question::Text(*function));
        self.values.keys().cloned().chain(texts).collect()
    }

    pub fn still_hold(&self, host: &dyn Host) -> bool {
        let same = |now: Result<Option<HostValue>, HostError>, then: &Option<HostValue>| {
            now.is_ok_and(|now| encoded(now.as_ref()) == encoded(then.as_ref()))
        };
        self.values.iter().all(|(question, then)| match question {
            Question::Name(function, name) => same(host.resolve(*function, name), then),
            Question::Attribute(object, name) => same(host.attribute(*object, name), then),
            Question::Reads(object) => same(host.reads(*object).map(Some), then),
            Question::Text(_) => true,
        }) && self.texts.iter().all(|(function, then)| {
            host.source(*function).is_ok_and(|now| text_of(&now) == text_of(then))
        })
    }
}

/// Not the values themselves: a NaN among them is equal to itself here.
fn encoded(value: Option<&HostValue>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(value) = value {
        encode(value, &mut out);
    }
    out
}

fn text_of(found: &FunctionSource) -> &str {
    found.source.text.get(found.range.clone()).unwrap_or_default()
}

impl Host for Recorder<'_> {
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError> {
        let known = self.known.and_then(|known| known.texts.get(&function));
        let found = match self.answers.borrow().texts.get(&function).or(known) {
            Some(found) => found.clone(),
            None => self.host.source(function)?,
        };
        self.answers.borrow_mut().texts.insert(function, found.clone());
        Ok(found)
    }

    fn resolve(&self, function: FnRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let question = Question::Name(function, name.to_string());
        self.ask(question, || self.host.resolve(function, name))
    }

    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let question = Question::Attribute(object, name.to_string());
        self.ask(question, || self.host.attribute(object, name))
    }

    fn default(&self, function: FnRef, param: &str) -> Result<HostValue, HostError> {
        self.host.default(function, param)
    }

    fn call(
        &self,
        object: ObjRef,
        args: &[HostValue],
        kwargs: &[(String, HostValue)],
    ) -> Result<HostValue, HostError> {
        let result = self.host.call(object, args, kwargs)?;
        self.reads(object)?;
        Ok(result)
    }

    fn reads(&self, called: ObjRef) -> Result<HostValue, HostError> {
        let answer = self.ask(Question::Reads(called), || self.host.reads(called).map(Some))?;
        Ok(answer.unwrap_or(HostValue::None))
    }
}
