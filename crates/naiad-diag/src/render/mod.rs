//! Drawing diagnostics: for people as rustc draws them; for tools as JSON, as SARIF, as annotations of
//! GitHub's.

mod github;
mod json;
mod sarif;

pub use github::github;
pub use json::json;
pub use sarif::sarif;

use crate::{Diagnostic, Place, Severity};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};

/// How human output looks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Style {
    pub color: bool,
    pub width: usize,
}

impl Style {
    pub const PLAIN: Style = Style { color: false, width: 120 };
    pub const COLOR: Style = Style { color: true, width: 120 };
}

/// The diagnostic as rustc would draw it, without a newline at the end.
pub fn human(diagnostic: &Diagnostic, style: Style) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.id.name());
    let mut main = Group::with_title(title);
    for snippet in snippets(diagnostic) {
        main = main.element(snippet);
    }
    if let Some(picture) = &diagnostic.picture {
        main = main.element(Level::NOTE.message(picture.to_string()));
    }
    for note in &diagnostic.notes {
        main = main.element(Level::NOTE.message(note));
    }
    for help in &diagnostic.help {
        main = main.element(Level::HELP.message(help));
    }
    let mut groups = vec![main];
    for call in &diagnostic.called_from {
        let snippet = source(call).annotation(AnnotationKind::Primary.span(range(call)));
        groups.push(
            Group::with_title(Level::NOTE.secondary_title("called from here")).element(snippet),
        );
    }
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).term_width(style.width).render(&groups)
}

/// One snippet for each source that has labels; that of the primary label first.
fn snippets(diagnostic: &Diagnostic) -> Vec<Snippet<'_, annotate_snippets::Annotation<'_>>> {
    let mut ordered: Vec<_> = diagnostic.labels.iter().collect();
    ordered.sort_by_key(|l| !l.primary);
    let mut out: Vec<(&Place, Snippet<'_, annotate_snippets::Annotation<'_>>)> = Vec::new();
    for label in ordered {
        let kind = if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let mut annotation = kind.span(range(&label.place));
        if !label.text.is_empty() {
            annotation = annotation.label(&label.text);
        }
        match out.iter().position(|(p, _)| p.source == label.place.source) {
            Some(i) => {
                let (place, snippet) = out.remove(i);
                out.insert(i, (place, snippet.annotation(annotation)));
            }
            None => out.push((&label.place, source(&label.place).annotation(annotation))),
        }
    }
    out.into_iter().map(|(_, snippet)| snippet).collect()
}

fn source(place: &Place) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    Snippet::source(place.source.text.as_str())
        .path(place.source.name.as_str())
        .line_start(place.source.first_line as usize)
}

/// The range, clamped to the text and to character boundaries: a bad range must never take the
/// message down with it. A range over several lines is cut to its first.
fn range(place: &Place) -> std::ops::Range<usize> {
    let text = &place.source.text;
    let floor = |mut i: usize| {
        i = i.min(text.len());
        while !text.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let start = floor(place.range.start);
    let mut end = floor(place.range.end).max(start);
    if let Some(newline) = text[start..end].find('\n') {
        end = start + newline;
    }
    start..end
}

/// Everything but the places as plain text: the message, then its notes and its help.
fn plain(diagnostic: &Diagnostic) -> String {
    let mut lines = vec![diagnostic.message.clone()];
    let label = diagnostic.labels.iter().find(|l| l.primary).map(|l| l.text.as_str());
    lines.extend(label.filter(|text| !text.is_empty()).map(str::to_string));
    lines.extend(diagnostic.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(diagnostic.help.iter().map(|help| format!("help: {help}")));
    lines.join("\n")
}

/// A file's name as seen from a folder, where it lies in there; slashes part the folders.
fn relative<'n>(name: &'n str, base: &str) -> &'n str {
    let base = base.trim_end_matches('/');
    let inner = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('/'));
    inner.filter(|_| !base.is_empty()).unwrap_or(name).trim_start_matches("./")
}

/// Whether the text that a place is in is no file's.
fn is_generated(place: &Place) -> bool {
    place.source.name.starts_with('<')
}
