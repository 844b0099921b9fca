//! Diagnostics as workflow commands, which GitHub shows beside the lines of a change.

use super::{is_generated, plain, relative};
use crate::{Diagnostic, Severity};

/// One line: `::error file=…,line=…,title=…::message`. Files are named as seen from the folder `base`,
/// which should be the repository's.
pub fn github(diagnostic: &Diagnostic, base: &str) -> String {
    let command = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties: Vec<(&str, String)> = Vec::new();
    // Of a helper that is in no file, the call to it is.
    let places = diagnostic.place().into_iter().chain(&diagnostic.called_from);
    if let Some(place) = places.into_iter().find(|place| !is_generated(place)) {
        let (line, column) = place.source.line_col(place.range.start);
        let (end_line, end_column) = place.source.line_col(place.range.end);
        properties.push(("file", relative(&place.source.name, base).to_string()));
        properties.push(("line", line.to_string()));
        properties.push(("endLine", end_line.to_string()));
        // Columns are taken of single lines only.
        if line == end_line {
            properties.push(("col", column.to_string()));
            properties.push(("endColumn", end_column.to_string()));
        }
    }
    properties.push(("title", format!("naiad: {}", diagnostic.id)));
    let properties: Vec<String> =
        properties.iter().map(|(name, value)| format!("{name}={}", property(value))).collect();
    format!("::{command} {}::{}", properties.join(","), data(&plain(diagnostic)))
}

/// The message's escapes.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property's, where two more characters part it from what follows.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Id, Place, Source};

    #[test]
    fn a_command_for_each_diagnostic() {
        let source = Source::new("/repo/a,b.py", "x = 1\ny = tl.sum(z)\n");
        let d = Diagnostic::new(Id::PaddingReduced, "50% of them")
            .primary(Place::new(source.clone(), 10..19), "here")
            .help("mask: first");
        assert_eq!(
            github(&d, "/repo"),
            "::error file=a%2Cb.py,line=2,endLine=2,col=5,endColumn=14,title=naiad%3A padding-reduced::\
             50%25 of them%0Ahere%0Ahelp: mask: first"
        );
        let several = Diagnostic::new(Id::FlatIndex, "m").primary(Place::new(source, 0..19), "");
        assert_eq!(
            github(&several, "/elsewhere"),
            "::notice file=/repo/a%2Cb.py,line=1,endLine=2,title=naiad%3A flat-index::m"
        );
        assert_eq!(
            github(&Diagnostic::new(Id::UnwrittenOutput, "m"), ""),
            "::warning title=naiad%3A unwritten-output::m"
        );
    }
}
