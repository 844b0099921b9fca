//! What the host answered while a kernel was compiled: a compiled variant is good for as long as
//! the host would answer the same.

use crate::specialize::encode;
use crate::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
use std::cell::RefCell;

/// A host that notes what it is asked.
pub(crate) struct Recorder<'h> {
    host: &'h dyn Host,
    answers: RefCell<Vec<Answer>>,
}

/// One question that may be answered differently later, with the answer it had.
pub(crate) struct Answer {
    question: Question,
    answer: Vec<u8>,
}

enum Question {
    Name(FnRef, String),
    Attribute(ObjRef, String),
}

impl<'h> Recorder<'h> {
    pub fn new(host: &'h dyn Host) -> Recorder<'h> {
        Recorder { host, answers: RefCell::default() }
    }

    pub fn into_answers(self) -> Vec<Answer> {
        self.answers.into_inner()
    }

    fn note(&self, question: Question, value: Option<&HostValue>) {
        // Rebinding a constant or a helper between launches is ordinary work in a notebook. Rebinding
        // `tl` or `tl.load` is not, and asking after each of them would cost every launch.
        let may_change = match value {
            Some(HostValue::Builtin(_) | HostValue::Object(..) | HostValue::DType(_)) => false,
            Some(_) | None => true,
        };
        if may_change {
            self.answers.borrow_mut().push(Answer { question, answer: encoded(value) });
        }
    }
}

impl Answer {
    pub fn still_holds(&self, host: &dyn Host) -> bool {
        let now = match &self.question {
            Question::Name(function, name) => host.resolve(*function, name),
            Question::Attribute(object, name) => host.attribute(*object, name),
        };
        now.is_ok_and(|now| encoded(now.as_ref()) == self.answer)
    }
}

fn encoded(value: Option<&HostValue>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(value) = value {
        encode(value, &mut out);
    }
    out
}

impl Host for Recorder<'_> {
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError> {
        self.host.source(function)
    }

    fn resolve(&self, function: FnRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let answer = self.host.resolve(function, name)?;
        self.note(Question::Name(function, name.to_string()), answer.as_ref());
        Ok(answer)
    }

    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let answer = self.host.attribute(object, name)?;
        self.note(Question::Attribute(object, name.to_string()), answer.as_ref());
        Ok(answer)
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
        self.host.call(object, args, kwargs)
    }
}
