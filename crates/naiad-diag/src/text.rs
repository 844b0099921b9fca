//! What a source's text shows of a call, for messages that show how to write it instead.

/// The parts of a call's text: what is called, and its arguments.
pub fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (callee, rest) = text.split_once('(')?;
    let inner = rest.strip_suffix(')')?;
    let callee = callee.trim();
    let plain = callee.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    if !plain || callee.is_empty() {
        return None;
    }
    let (mut depth, mut start, mut args) = (0i32, 0, Vec::new());
    for (i, c) in inner.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                args.push(inner[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    args.push(inner[start..].trim());
    Some((callee, args.into_iter().filter(|a| !a.is_empty()).collect()))
}

/// An argument of a call, by keyword or by position.
pub fn argument<'t>(args: &[&'t str], name: &str, position: usize) -> Option<&'t str> {
    let keyword = |a: &&'t str| {
        let (key, value) = a.split_once('=')?;
        (key.trim() == name && !value.starts_with('=')).then(|| value.trim())
    };
    args.iter()
        .find_map(keyword)
        .or_else(|| args.get(position).copied().filter(|a| !a.contains('=')))
}

/// The argument by which a load, given as its text, says what it gives where it reads nothing.
pub fn fill_of(load: &str) -> &'static str {
    if load.contains("boundary_check") { "padding_option" } else { "other" }
}

/// What a load, given as its text, has as its mask, and words that explain it. Block pointers and descriptors
/// have none: they know their extents.
pub fn mask_of(load: Option<&str>) -> (&str, &'static str) {
    match load.and_then(call).and_then(|(_, args)| argument(&args, "mask", 1)) {
        Some(mask) => (mask, ""),
        None => ("inside", ", where `inside` compares each index with its extent"),
    }
}

/// The names in a text, whatever else stands in it.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls() {
        let (callee, args) = call("tl.load(p + f(a, b), mask = m == n, other=[0, 1])").unwrap();
        assert_eq!(callee, "tl.load");
        assert_eq!(args, ["p + f(a, b)", "mask = m == n", "other=[0, 1]"]);
        assert_eq!(argument(&args, "mask", 1), Some("m == n"));
        assert_eq!(argument(&["p", "m"], "mask", 1), Some("m"));
        assert!(call("a + f(b)").is_none() && call("f(a) + g(b)").is_none());
        assert_eq!(names("a + tl.sum(b_1, 2)").collect::<Vec<_>>(), ["a", "tl", "sum", "b_1"]);
    }
}
