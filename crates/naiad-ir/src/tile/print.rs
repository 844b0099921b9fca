//! How a print looks where it is a line for each element.

/// What stands between an element's place and its value, as Triton puts it: ` prefix: `. Alone behind
/// the program's place where a print has no operands.
pub fn print_label(prefix: &str, operands: usize) -> String {
    let mut label = prefix.trim().to_string();
    if operands > 0 {
        label.truncate(label.trim_end_matches(':').len());
        label.push_str(": ");
    }
    if !label.is_empty() && label != ": " {
        label.insert(0, ' ');
    }
    label
}
