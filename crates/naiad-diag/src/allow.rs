//! Silencing a kind of finding at a line: `# naiad: allow(padding-reduced)`.
//!
//! The comment stands on a line of the statement that the finding is about, or alone on the line before;
//! or there at a call that led to it. Several kinds are separated by commas. Errors that end a launch
//! cannot be silenced: there is nothing to go on with.

use crate::{Diagnostic, Id, Place};

const MARK: &str = "naiad: allow(";

impl Diagnostic {
    /// Whether the source says that this kind of finding is meant to be there.
    pub fn is_allowed(&self) -> bool {
        let places = self.place().into_iter().chain(&self.called_from);
        places.into_iter().any(|place| allows(place, self.id))
    }
}

fn allows(place: &Place, id: Id) -> bool {
    let text = &place.source.text;
    let start = text.get(..place.range.start).map_or(0, |t| t.rfind('\n').map_or(0, |i| i + 1));
    let end = place.range.end.max(place.range.start);
    let end = text.get(end..).and_then(|t| t.find('\n')).map_or(text.len(), |i| end + i);
    let own = text.get(start..end).unwrap_or("");
    let before =
        text.get(..start.saturating_sub(1)).and_then(|t| t.rsplit('\n').next()).unwrap_or("");
    let before = if before.trim_start().starts_with('#') { before } else { "" };
    own.lines().chain([before]).any(|line| names(line, id))
}

/// Whether a line's comment names a kind of finding.
fn names(line: &str, id: Id) -> bool {
    let Some((_, comment)) = line.split_once('#') else { return false };
    let Some((_, rest)) = comment.split_once(MARK) else { return false };
    let Some((list, _)) = rest.split_once(')') else { return false };
    list.split(',').any(|name| name.trim() == id.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_comment_silences_its_kind_at_its_line() {
        let text = "a = tl.sum(x)  # naiad: allow(race, padding-reduced)\nb = 1\n# naiad: allow(race)\nc = (1 +\n  2)\n";
        let source = Source::new("<test>", text);
        let at = |what: &str, id| {
            let start = text.find(what).unwrap();
            let place = Place::new(source.clone(), start..start + what.len());
            Diagnostic::new(id, "").primary(place, "").is_allowed()
        };
        assert!(at("tl.sum(x)", Id::PaddingReduced) && at("tl.sum(x)", Id::Race));
        assert!(!at("tl.sum(x)", Id::WeakOrder) && !at("b = 1", Id::Race));
        assert!(at("c = (1", Id::Race) && !at("c = (1", Id::PaddingReduced));
    }
}
