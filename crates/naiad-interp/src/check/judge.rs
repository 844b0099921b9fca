//! Whether flagged lanes that changed a result where lanes meet changed what the kernel stores.
//!
//! The first few programs with a suspect at an op are run again, privately, with the op's flagged lanes
//! left out, and what they store is compared. Changed: an error that names the op, or the set of ops
//! that only together change it. Unchanged: a note. A program that cannot be run again, because it reads
//! what others write: a warning.

use super::lanes::{Arbitrary, Class};
use super::points::Suspect;
use super::replay::{self, Private};
use super::{Checked, P, checker, report};
use crate::exec::Exec;
use crate::ops::Results;
use naiad_diag::{Id, Severity};
use naiad_ir::Inst;
use std::rc::Rc;
use std::sync::PoisonError;

/// How often an op was suspected, and by whom last.
#[derive(Default)]
pub struct Tries {
    programs: u64,
    last: Option<u64>,
}

pub enum Verdict {
    /// Leaving out the flagged lanes here alone changes what is stored.
    Changes,
    /// Only together with those at other ops.
    Together(Vec<Inst>),
    Unchanged,
    Unknown,
}

impl Verdict {
    fn severity(&self) -> Severity {
        match self {
            Verdict::Changes | Verdict::Together(_) => Severity::Error,
            Verdict::Unknown => Severity::Warning,
            Verdict::Unchanged => Severity::Note,
        }
    }
}

pub fn suspect(
    exec: &mut Exec<'_, Checked>,
    p: &mut P,
    inst: Inst,
    results: &mut Results,
    suspect: Suspect,
) {
    if let Some(own) = &p.state.private {
        let mut own = own.borrow_mut();
        if suspect.changed && !own.suspects.contains(&inst) {
            own.suspects.push(inst);
        }
        if own.dropped.contains(&inst) {
            *results = suspect.live;
        }
        return;
    }
    let site = exec.site(p, inst);
    let findings = exec.shared.findings;
    let id = match suspect.class {
        Class::U => Id::UndefinedReduced,
        _ => Id::PaddingReduced,
    };
    if !suspect.changed {
        if findings.wants(&site, id, Severity::Warning) {
            let report =
                report::reduced(exec, &site, &suspect, &Verdict::Unchanged, Severity::Warning);
            findings.add(&site, report);
        }
        return;
    }
    if !is_turn(exec, p.number, inst) {
        return;
    }
    let verdict = judge(exec, p, inst);
    let source = suspect.source.and_then(|s| Some((s.inst, s.arbitrary?)));
    if suspect.class == Class::X
        && let Some((load, why)) = source
    {
        if verdict.severity() >= Severity::Warning {
            let id = match why {
                Arbitrary::OutsideView => Id::OutsideView,
                Arbitrary::Uninitialized => Id::UninitializedRead,
            };
            findings
                .escalate(load, id, verdict.severity(), |d| report::reaches(d, &site, &verdict));
        }
        return;
    }
    // Undefined lanes are never as they should be; padding that changes nothing is worth a note.
    let severity = match suspect.class {
        Class::U => verdict.severity().max(Severity::Warning),
        _ => verdict.severity(),
    };
    if findings.wants(&site, id, severity) {
        let report = report::reduced(exec, &site, &suspect, &verdict, severity);
        findings.add(&site, report);
    }
}

/// Whether this program's suspect at an op is one to judge: the first few, then ever rarer ones.
fn is_turn(exec: &Exec<'_, Checked>, number: u64, inst: Inst) -> bool {
    let mut all = checker(exec).judged.lock().unwrap_or_else(PoisonError::into_inner);
    let tries = all.entry(inst).or_default();
    if tries.last == Some(number) {
        return false;
    }
    tries.last = Some(number);
    tries.programs += 1;
    let known = [Id::PaddingReduced, Id::UndefinedReduced];
    let known = known.iter().any(|&id| exec.shared.findings.has(inst, id, Severity::Error));
    !known && (tries.programs <= 3 || tries.programs.is_power_of_two())
}

/// Whether a program reads, from its start, what it would have read.
pub fn is_replayable(exec: &Exec<'_, Checked>, p: &P) -> bool {
    p.traffic.writes == 0 || !checker(exec).regions.reads_what_it_writes()
}

fn judge(exec: &mut Exec<'_, Checked>, p: &mut P, inst: Inst) -> Verdict {
    if !is_replayable(exec, p) {
        return Verdict::Unknown;
    }
    let number = p.number;
    if p.state.base.is_none() {
        p.state.base = replay::run(exec, number, Private::default()).map(Rc::new);
    }
    let Some(base) = p.state.base.clone() else { return Verdict::Unknown };
    if base.observed {
        return Verdict::Unknown;
    }
    let mut changes = |dropped: Vec<Inst>| {
        let run = replay::run(exec, number, Private::dropping(dropped));
        run.map(|run| !run.agrees(&base))
    };
    match changes(vec![inst]) {
        None => return Verdict::Unknown,
        Some(true) => return Verdict::Changes,
        Some(false) => {}
    }
    let others: Vec<Inst> = base.suspects.iter().copied().filter(|&i| i != inst).collect();
    if others.is_empty() || changes(base.suspects.clone()) != Some(true) {
        return Verdict::Unchanged;
    }
    // Together they change something; if the others do so without this one, they are at fault.
    match changes(others.clone()) {
        Some(true) => Verdict::Unchanged,
        _ => Verdict::Together(others),
    }
}
