//! What is seen of Python's text without parsing it: how deep it nests, and where a function ends.

/// The bytes that the function takes with whose first line a text begins, decorators included, and comments
/// behind it that stand as far in as its body; none where no function begins there.
///
/// Python's `inspect.getblock` says the same and takes milliseconds for a hundred lines.
pub fn function_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut end) = (0, 0);
    let (mut own, mut body) = (None, None);
    while at < bytes.len() {
        let (column, inset) = indentation(&bytes[at..]);
        let line = &bytes[at + inset..];
        match line.first() {
            None | Some(b'\n' | b'\r') => {
                at += inset + line_length(line);
                continue;
            }
            Some(b'#') => {
                at += inset + line_length(line);
                if body.is_some_and(|body| column >= body) {
                    end = at;
                }
                continue;
            }
            Some(_) => {}
        }
        match own {
            Some(own) if column <= own => break,
            Some(_) => body = body.or(Some(column)),
            None if line[0] == b'@' => {}
            None if is_def(line) => own = Some(column),
            None => return None,
        }
        at += inset + logical_line(line);
        end = at;
    }
    own.map(|_| end)
}

/// The column at which a line's first word stands, as Python counts, and the bytes before it.
fn indentation(text: &[u8]) -> (usize, usize) {
    let (mut column, mut at, mut of_first) = (0, 0, 0);
    loop {
        match text.get(at) {
            Some(b' ') => column += 1,
            Some(b'\t') => column = (column / 8 + 1) * 8,
            Some(b'\x0c') => column = 0,
            // Of lines that go on, the first that is indented counts.
            Some(b'\\') if ends_line(&text[at + 1..]) => {
                of_first = if of_first == 0 { column } else { of_first };
                at += line_length(&text[at..]);
                continue;
            }
            _ => return (if of_first == 0 { column } else { of_first }, at),
        }
        at += 1;
    }
}

fn is_def(line: &[u8]) -> bool {
    let line = after(line, b"async").map_or(line, |rest| &rest[indentation(rest).1..]);
    after(line, b"def").is_some()
}

/// What follows a word.
fn after<'t>(text: &'t [u8], word: &[u8]) -> Option<&'t [u8]> {
    let rest = text.strip_prefix(word)?;
    matches!(rest.first(), Some(b' ' | b'\t' | b'\x0c' | b'\\')).then_some(rest)
}

fn ends_line(text: &[u8]) -> bool {
    text.starts_with(b"\n") || text.starts_with(b"\r\n")
}

/// Bytes of a backslash in a text with what it takes its meaning from.
fn escape_length(text: &[u8]) -> usize {
    if text[1..].starts_with(b"\r\n") { 3 } else { 2 }
}

/// Bytes up to the next line.
fn line_length(text: &[u8]) -> usize {
    text.iter().position(|&b| b == b'\n').map_or(text.len(), |i| i + 1)
}

/// Bytes of a line with all that it goes on in: brackets and texts of several lines, and after backslashes.
fn logical_line(text: &[u8]) -> usize {
    let mut nesting = Nesting::default();
    let mut at = 0;
    while at < text.len() {
        let outside = nesting.open.is_empty() && nesting.text.is_none();
        match text[at] {
            b'\n' if outside => return at + 1,
            b'\\' if outside => at += line_length(&text[at..]),
            _ => at += nesting.step(text, at),
        }
    }
    text.len()
}

/// How deep a tree may be at a place of the text.
#[derive(Default)]
pub(crate) struct Nesting {
    /// For each bracket that is open: what may have made the tree deeper since the last comma in it.
    pub open: Vec<usize>,
    /// All of those, and what is outside of brackets since the line began.
    pub operators: usize,
    /// The quotes that end the text being read, and how many brackets were open before it. Of formatted
    /// text only: what is in its braces is code.
    text: Option<(&'static [u8], usize)>,
}

impl Nesting {
    fn deeper(&mut self) {
        self.operators += 1;
        if let Some(own) = self.open.last_mut() {
            *own += 1;
        }
    }

    fn close(&mut self, to: usize) {
        let closed: usize = self.open.drain(to.min(self.open.len())..).sum();
        self.operators -= closed;
    }

    /// Reads on, and says by how much.
    pub fn step(&mut self, bytes: &[u8], at: usize) -> usize {
        if let Some((quotes, before)) = self.text {
            match bytes[at] {
                b'\\' => return escape_length(&bytes[at..]),
                b'\n' if quotes.len() == 1 => self.end(before),
                _ if bytes[at..].starts_with(quotes) => {
                    self.end(before);
                    return quotes.len();
                }
                // Outside of braces it is text, and double ones are text too.
                _ if self.open.len() == before && bytes[at..].starts_with(b"{{") => return 2,
                b if self.open.len() == before && b != b'{' => return 1,
                _ => {}
            }
        } else if let b'"' | b'\'' = bytes[at] {
            let quotes: &[u8] = match bytes[at] {
                b'"' if bytes[at..].starts_with(b"\"\"\"") => b"\"\"\"",
                b'"' => b"\"",
                _ if bytes[at..].starts_with(b"\'\'\'") => b"\'\'\'",
                _ => b"\'",
            };
            let word = bytes[..at].iter().rev().take_while(|b| b.is_ascii_alphabetic());
            if word.take(2).any(|b| matches!(b, b'f' | b'F' | b't' | b'T')) {
                self.text = Some((quotes, self.open.len()));
                return quotes.len();
            }
            return quotes.len() + plain_text(&bytes[at + quotes.len()..], quotes);
        } else if bytes[at] == b'#' {
            return bytes[at..].iter().position(|&b| b == b'\n').unwrap_or(bytes.len() - at);
        }
        match bytes[at] {
            b'(' | b'[' | b'{' => {
                self.open.push(1);
                self.operators += 1;
            }
            b')' | b']' | b'}' => {
                self.close(self.open.len().saturating_sub(1));
                // A call of a call of a call.
                self.deeper();
            }
            // What follows stands beside what was before, but for functions with several parameters.
            b',' => {
                if let Some(own) = self.open.last_mut() {
                    self.operators -= std::mem::take(own);
                }
            }
            b'l' if bytes[at..].starts_with(b"lambda") => {
                self.operators += 1;
                // Kept by the bracket around it.
                if let [.., outer, _] = &mut self.open[..] {
                    *outer += 1;
                }
            }
            b'\n' if self.open.is_empty() => self.operators = 0,
            // Anything that may make a tree one level deeper.
            b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'.' | b'<' | b'>' => {
                self.deeper()
            }
            b' ' if at > 0 && !matches!(bytes[at - 1], b' ' | b'\n' | b',') => self.deeper(),
            _ => {}
        }
        1
    }

    fn end(&mut self, before: usize) {
        self.text = None;
        self.close(before);
    }
}

/// How long a text is whose first quotes have been read.
fn plain_text(rest: &[u8], quotes: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += escape_length(&rest[at..]),
            b'\n' if quotes.len() == 1 => return at,
            _ if rest[at..].starts_with(quotes) => return at + quotes.len(),
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::function_end;

    #[test]
    fn functions_end_where_python_says() {
        let ends = |function: &str, rest: &str| {
            let text = format!("{function}{rest}");
            assert_eq!(function_end(&text), Some(function.len()), "{text}");
        };
        for rest in
            ["", "x = 1\n", "\n\n@other\ndef g():\n    pass\n", "# of what follows\nx = 1\n"]
        {
            ends("def f(x):\n    return x\n", rest);
            ends("def f(x): return x\n", rest);
            ends(
                "@jit\n@tune(\n  [1,\n2])\n# of f\ndef f(\nx,\n):\n    if x:\n\n        y\n    z\n",
                rest,
            );
            ends(
                "def f():\n    \"\"\"Text,\nand\n\"\"\"\n    x = 1 + \\\n2\n    # its own\n",
                rest,
            );
            ends(
                "def f():\n    x = f\"{a['\"']}{'}'}\\n\" '#' r'\\'\n    y = {\n1: '''\n'''}  # (\n",
                rest,
            );
            ends("async def f():\n    pass\n\n\n    pass\n", rest);
        }
        // Form feeds begin a line anew; a line may go on before it has begun.
        ends("\x0c@jit\n\x0cdef f(x):\n return x\n", "\x0c\x0cy = 2\n");
        ends("def f():\n    x = 1\n\\\n    y = 2\n", "z = 3\n");
        ends("def f():\n\\\n    y = 2\n    z = 3\n", "    \x0cz = 3\n");
        for def in ["def\t", "def\x0c", "def\\\n ", "async  def ", "async\tdef\t"] {
            ends(&format!("@jit\n{def}f(x):\n\treturn x\n"), "x = 1\n");
        }
        ends("def f():\r\n    x = 'a\\\r\nb'\r\n    y = f'{x}\\\r\n'\r\n", "z = 1\r\n");
        // Within another.
        ends("    @jit\n    def f():\n        pass\n", "    return f\n");
        ends("    def f():\n        pass\n", "\n    # no body's\n    f()\n");
        // Without a last line's end, and what Python would not take.
        ends("def f():\n    x = (1", "");
        ends("def f():\n    'not ended\n", "g()\n");
        for text in ["", "x = 1\n", "class C:\n    def f(): pass\n", "@jit\n", "default = 1\n"] {
            assert_eq!(function_end(text), None, "{text}");
        }
    }
}
