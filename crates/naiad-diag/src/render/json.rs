//! Diagnostics as JSON of our own, one object each.

use crate::{Diagnostic, Picture, Place};
use serde_json::{Map, Value, json};

/// The diagnostic as one JSON object. Lines and columns count from 1.
pub fn json(diagnostic: &Diagnostic) -> Value {
    json!({
        "id": diagnostic.id.name(),
        "severity": diagnostic.severity.name(),
        "message": diagnostic.message,
        "labels": diagnostic.labels.iter().map(|l| {
            let mut at = json_place(&l.place);
            at["text"] = json!(l.text);
            at["primary"] = json!(l.primary);
            at
        }).collect::<Vec<_>>(),
        "called_from": diagnostic.called_from.iter().map(json_place).collect::<Vec<_>>(),
        "notes": diagnostic.notes,
        "help": diagnostic.help,
        "lanes": diagnostic.picture.as_deref().map(json_picture),
    })
}

/// How many lanes of a tile are of which kind, and its picture, line by line.
fn json_picture(picture: &Picture) -> Value {
    let counts = picture.counts.iter().map(|&(kind, n)| (kind.name().to_string(), json!(n)));
    json!({
        "shape": picture.shape,
        "counts": counts.collect::<Map<String, Value>>(),
        "picture": picture.to_string().lines().skip(1).collect::<Vec<_>>(),
    })
}

fn json_place(place: &Place) -> Value {
    let (line, column) = place.source.line_col(place.range.start);
    let (end_line, end_column) = place.source.line_col(place.range.end);
    json!({
        "file": place.source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    })
}
