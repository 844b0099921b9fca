//! Diagnostics as a SARIF 2.1.0 log, which code hosts and editors read.
//!
//! ```text
//! log ── runs[0] ─┬─ tool.driver ── rules[]        one for each kind that occurs
//!                 └─ results[] ─┬─ ruleId, ruleIndex, level, message
//!                               ├─ locations[0]       the primary label
//!                               └─ relatedLocations   other labels, then the chain of calls
//! ```

use super::{is_generated, plain, relative};
use crate::{Diagnostic, Id, Place, Severity};
use serde_json::{Value, json};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The log of several diagnostics. Files are named as seen from the folder `base`, as code hosts want it;
/// files elsewhere have an absolute URI. `version` is this program's.
pub fn sarif<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    base: &str,
    version: &str,
) -> Value {
    let mut rules: Vec<Id> = Vec::new();
    let results: Vec<Value> =
        diagnostics.into_iter().map(|d| result(d, base, &mut rules)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "naiad",
                "version": version,
                "rules": rules.into_iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(id: Id) -> Value {
    json!({
        "id": id.name(),
        "shortDescription": { "text": id.doc().trim() },
        "defaultConfiguration": { "level": level(id.severity()) },
    })
}

fn level(severity: Severity) -> &'static str {
    // SARIF's names are ours.
    severity.name()
}

fn result(d: &Diagnostic, base: &str, rules: &mut Vec<Id>) -> Value {
    let index = rules.iter().position(|&id| id == d.id).unwrap_or_else(|| {
        rules.push(d.id);
        rules.len() - 1
    });
    let mut out = json!({
        "ruleId": d.id.name(),
        "ruleIndex": index,
        "level": level(d.severity),
        "message": { "text": plain(d) },
    });
    if let Some(place) = d.place() {
        out["locations"] = json!([location(place, base)]);
    }
    let others = d.labels.iter().filter(|l| !l.primary).map(|l| (&l.place, l.text.as_str()));
    let calls = d.called_from.iter().map(|place| (place, "called from here"));
    let related: Vec<Value> = others
        .chain(calls)
        .enumerate()
        .map(|(i, (place, text))| {
            let mut at = location(place, base);
            at["id"] = json!(i);
            // Where there are words they are the label's; a label may have none.
            if !text.is_empty() {
                at["message"] = json!({ "text": text });
            }
            at
        })
        .collect();
    if !related.is_empty() {
        out["relatedLocations"] = json!(related);
    }
    out
}

fn location(place: &Place, base: &str) -> Value {
    if is_generated(place) {
        return json!({ "logicalLocations": [{ "name": place.source.name }] });
    }
    let (line, column) = place.source.line_col(place.range.start);
    let (end_line, end_column) = place.source.line_col(place.range.end);
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(relative(&place.source.name, base)) },
        "region": {
            "startLine": line,
            "startColumn": column,
            "endLine": end_line,
            "endColumn": end_column,
        },
    }})
}

/// A path as a URI reference; whatever could mean something else in one is written as its bytes.
fn uri(path: &str) -> String {
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loc, Places, Source};

    /// What the standard requires of an object, and what each of its properties must be. Written from
    /// the text of SARIF 2.1.0, of as much as is used here; a property that is not listed is a fault.
    enum Must {
        Text,
        Uri,
        /// An integer of at least this.
        Number(i64),
        OneOf(&'static [&'static str]),
        Object(&'static [(&'static str, bool, Must)]),
        List(&'static Must),
    }
    use Must::{List, Number, Object, OneOf, Text, Uri};

    const LEVELS: Must = OneOf(&["none", "note", "warning", "error"]);
    const MESSAGE: Must = Object(&[("text", true, Text)]);
    const REGION: Must = Object(&[
        ("startLine", true, Number(1)),
        ("startColumn", false, Number(1)),
        ("endLine", false, Number(1)),
        ("endColumn", false, Number(1)),
    ]);
    const PHYSICAL: Must = Object(&[
        ("artifactLocation", true, Object(&[("uri", true, Uri)])),
        ("region", false, REGION),
    ]);
    const LOCATION: Must = Object(&[
        ("id", false, Number(0)),
        ("physicalLocation", false, PHYSICAL),
        ("logicalLocations", false, List(&Object(&[("name", true, Text)]))),
        ("message", false, MESSAGE),
    ]);
    const RESULT: Must = Object(&[
        ("ruleId", true, Text),
        ("ruleIndex", true, Number(0)),
        ("level", true, LEVELS),
        ("message", true, MESSAGE),
        ("locations", false, List(&LOCATION)),
        ("relatedLocations", false, List(&LOCATION)),
    ]);
    const RULE: Must = Object(&[
        ("id", true, Text),
        ("shortDescription", true, MESSAGE),
        ("defaultConfiguration", true, Object(&[("level", true, LEVELS)])),
    ]);
    const DRIVER: Must =
        Object(&[("name", true, Text), ("version", true, Text), ("rules", true, List(&RULE))]);
    const RUN: Must = Object(&[
        ("tool", true, Object(&[("driver", true, DRIVER)])),
        ("columnKind", true, OneOf(&["utf16CodeUnits", "unicodeCodePoints"])),
        ("results", true, List(&RESULT)),
    ]);
    const LOG: Must = Object(&[
        ("$schema", false, Uri),
        ("version", true, OneOf(&["2.1.0"])),
        ("runs", true, List(&RUN)),
    ]);

    #[track_caller]
    fn validate(value: &Value, must: &Must, at: &str) {
        match must {
            Text => assert!(value.as_str().is_some_and(|s| !s.is_empty()), "{at}: {value}"),
            Uri => {
                let text = value.as_str().unwrap_or("");
                let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:%".contains(c);
                assert!(!text.is_empty() && text.chars().all(plain), "{at}: {value}");
            }
            Number(least) => assert!(value.as_i64().is_some_and(|n| n >= *least), "{at}: {value}"),
            OneOf(all) => {
                assert!(value.as_str().is_some_and(|s| all.contains(&s)), "{at}: {value}")
            }
            List(must) => {
                let items = value.as_array().unwrap_or_else(|| panic!("{at}: {value}"));
                items
                    .iter()
                    .enumerate()
                    .for_each(|(i, x)| validate(x, must, &format!("{at}[{i}]")));
            }
            Object(properties) => {
                let fields = value.as_object().unwrap_or_else(|| panic!("{at}: {value}"));
                for (name, required, must) in *properties {
                    match fields.get(*name) {
                        Some(x) => validate(x, must, &format!("{at}.{name}")),
                        None => assert!(!required, "{at} has no `{name}`"),
                    }
                }
                for name in fields.keys() {
                    assert!(properties.iter().any(|p| p.0 == name), "{at}: what is `{name}`?");
                }
            }
        }
    }

    fn log() -> Value {
        let file = Source::new("/repo/ker nel.py", "def k():\n    é = tl.sum(x)\n");
        let made = Source::new("<generated>", "tl.sum(y)\n");
        let mut places = Places::default();
        let call = places.add(&file, 0..8, "kernel", Loc::NONE);
        let inner = places.add(&made, 0..9, "helper", call);
        let all = [
            Diagnostic::new(Id::PaddingReduced, "first")
                .primary(Place::new(file.clone(), 18..27), "12 lanes")
                .secondary(Place::new(file.clone(), 0..8), "masked off here")
                .secondary(Place::new(file.clone(), 0..3), "")
                .note("a note")
                .help("write `it` so"),
            Diagnostic::new(Id::FlatIndex, "second").primary_at(&places, inner, ""),
            Diagnostic::new(Id::PaddingReduced, "third"),
            Diagnostic::new(Id::UnwrittenOutput, "fourth"),
        ];
        sarif(&all, "/repo/", "0.1.0")
    }

    #[test]
    fn a_log_is_as_the_standard_requires() {
        validate(&log(), &LOG, "log");
        validate(&sarif([], "", "0.1.0"), &LOG, "log");
        // Where there are results, each names a rule that is there.
        let run = &log()["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 3);
        for result in run["results"].as_array().unwrap() {
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
        }
    }

    #[test]
    fn what_stands_in_a_log() {
        let log = log();
        let results = &log["runs"][0]["results"];
        let first = &results[0];
        assert_eq!(first["message"]["text"], "first\n12 lanes\nnote: a note\nhelp: write `it` so");
        let at = &first["locations"][0]["physicalLocation"];
        assert_eq!(at["artifactLocation"]["uri"], "ker%20nel.py");
        assert_eq!(at["region"]["startColumn"], 9);
        assert_eq!(first["relatedLocations"][0]["message"]["text"], "masked off here");
        assert_eq!(first["relatedLocations"][1]["id"], 1);
        let second = &results[1];
        assert_eq!(second["level"], "note");
        assert_eq!(second["locations"][0]["logicalLocations"][0]["name"], "<generated>");
        assert_eq!(second["relatedLocations"][0]["message"]["text"], "called from here");
        assert!(results[2].get("locations").is_none());
        assert_eq!(uri("/a b/é.py"), "file:///a%20b/%C3%A9.py");
    }
}
