//! Runs random cases one after another, and makes small what fails.
//!
//! | variable | |
//! |---|---|
//! | `NAIAD_RANDOM_ROUNDS` | so many seeds instead of a few |
//! | `NAIAD_RANDOM_MINUTES` | seeds until the time is over |
//! | `NAIAD_RANDOM_FROM` | the first seed |
//! | `NAIAD_RANDOM_SEED` | this seed alone; a crash is made small, too |
//! | `NAIAD_RANDOM_FAILURES` | go on until there are so many |

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "whoever runs this for hours wants to see how it goes"
)]

use naiad_diag::Source;
use naiad_ir::tile::Tile;
use std::collections::HashMap;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a kernel fared, for a count at the end.
pub type Fate = &'static str;

/// Checks the kernel of each seed; `check` says what is wrong, in a first line that tells kinds of faults
/// apart and more lines.
pub fn drive<T>(
    few: u64,
    make: impl Fn(u64) -> (String, T),
    check: impl Fn(&str, &T) -> Result<Fate, String>,
) {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let one = number("NAIAD_RANDOM_SEED");
    let from = one.or(number("NAIAD_RANDOM_FROM")).unwrap_or(0);
    let end = number("NAIAD_RANDOM_MINUTES").map(|m| Instant::now() + Duration::from_secs(60 * m));
    let rounds = match (one, end) {
        (Some(_), _) => 1,
        (None, Some(_)) => u64::MAX - from,
        (None, None) => number("NAIAD_RANDOM_ROUNDS").unwrap_or(few),
    };
    let most = number("NAIAD_RANDOM_FAILURES").unwrap_or(1);
    tell_of_crashes();
    let quietly = |text: &str, about: &T| {
        let caught = catch_unwind(AssertUnwindSafe(|| check(text, about)));
        caught.unwrap_or_else(|why| {
            let why = why.downcast_ref::<String>().map(String::as_str);
            Err(format!("panic: {}", why.unwrap_or("of no text")))
        })
    };
    let mut fates: Vec<(Fate, u64)> = Vec::new();
    let mut failures = Vec::new();
    for seed in from..from + rounds {
        if end.is_some_and(|end| Instant::now() > end) {
            break;
        }
        SEED.store(seed, Ordering::Relaxed);
        let (text, about) = make(seed);
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let first = match one {
            Some(_) => apart(|| quietly(&text, &about)),
            None => quietly(&text, &about),
        };
        let failed = match first {
            Ok(fate) => {
                match fates.iter_mut().find(|(f, _)| *f == fate) {
                    Some((_, count)) => *count += 1,
                    None => fates.push((fate, 1)),
                }
                None
            }
            Err(why) => {
                // All of it, as it may not come again.
                eprintln!("seed {seed}: {why}\nmaking it small");
                let apart_too = why.starts_with(CRASH);
                Some(smaller(&text, why, |text| match apart_too {
                    true => apart(|| quietly(text, &about)),
                    false => quietly(text, &about),
                }))
            }
        };
        std::panic::set_hook(hook);
        if let Some((text, why)) = failed {
            eprintln!("seed {seed}: {why}\n{text}\n");
            failures.push(format!("seed {seed}: {}", kind(&why)));
            if failures.len() as u64 >= most {
                break;
            }
        }
    }
    println!("{fates:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The first line, whatever its numbers.
fn kind(why: &str) -> String {
    let first = why.lines().next().unwrap_or("");
    first.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect()
}

/// How long a kernel is made smaller.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes out ops as long as the kernel fails in the same way: many stores at first, then op after op.
fn smaller(
    text: &str,
    why: String,
    check: impl Fn(&str) -> Result<Fate, String>,
) -> (String, String) {
    let mut best = (text.lines().map(String::from).collect::<Vec<_>>(), why);
    let start = Instant::now();
    let attempt = |best: &mut (Vec<String>, String), fewer: Vec<String>| {
        let text = fewer.join("\n");
        let valid = fewer.len() < best.0.len() || fewer != best.0;
        let valid = valid
            && naiad_ir::text::parse::<Tile>(&Source::new("<test>", &text))
                .is_ok_and(|f| naiad_ir::verify(&f).is_ok());
        match valid.then(|| check(&text)) {
            Some(Err(still)) if kind(&still) == kind(&best.1) => {
                *best = (fewer, still);
                true
            }
            _ => false,
        }
    };
    let stores = |lines: &[String]| -> Vec<usize> {
        (0..lines.len()).filter(|&i| lines[i].trim().starts_with("store ")).collect()
    };
    let mut part = stores(&best.0).len();
    while part > 0 {
        let mut from = 0;
        loop {
            let all = stores(&best.0);
            let Some(out) = all.get(from..) else { break };
            let out = &out[..out.len().min(part)];
            if out.is_empty() {
                break;
            }
            let kept = |(i, line): (usize, &String)| (!out.contains(&i)).then(|| line.clone());
            let fewer = best.0.iter().enumerate().filter_map(kept).collect();
            if !attempt(&mut best, without_unused(fewer)) {
                from += part;
            }
        }
        part /= 2;
    }
    loop {
        let before = best.0.len();
        let mut at = best.0.len();
        while at > 0 {
            at = (at - 1).min(best.0.len() - 1);
            for (end, instead) in pieces(&best.0, at) {
                let fewer = [&best.0[..at], &instead, &best.0[end..]].concat();
                if attempt(&mut best, without_unused(fewer.clone())) || attempt(&mut best, fewer) {
                    break;
                }
            }
        }
        if best.0.len() == before || start.elapsed() > PATIENCE {
            return (best.0.join("\n"), best.1);
        }
    }
}

/// Where the op that begins at this line ends; none if none begins there.
fn op_end(lines: &[String], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, line) in lines.iter().enumerate().skip(at) {
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        if depth <= 0 {
            return (depth == 0 && at > 0).then_some(i + 1);
        }
    }
    None
}

/// What can stand for the op that begins at this line: where it ends, and lines instead of it.
fn pieces(lines: &[String], at: usize) -> Vec<(usize, Vec<String>)> {
    let Some(end) = op_end(lines, at) else { return Vec::new() };
    let mut out = vec![(end, Vec::new())];
    // A number in the place of the op, where it gives one.
    let whole = lines[at..end].join(" ");
    if let Some((name, rest)) = whole.trim().split_once(" = ")
        && let Some((op, ty)) = rest.rsplit_once(" : ")
        && !name.contains(',')
        && !op.starts_with("const")
        && !ty.contains(['*', '<'])
    {
        out.push((end, vec![format!("  {name} = const value=1:{ty} : {ty}")]));
    }
    out
}

/// The kernel without ops that nobody uses and that write nothing.
fn without_unused(mut lines: Vec<String>) -> Vec<String> {
    let names = |line: &str| -> Vec<String> {
        let word = |part: &str| -> String {
            part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        line.split('%').skip(1).map(word).collect()
    };
    let mut uses: HashMap<String, usize> = HashMap::new();
    for name in lines.iter().flat_map(|line| names(line)) {
        *uses.entry(name).or_default() += 1;
    }
    // Users stand behind what they use.
    for at in (1..lines.len()).rev() {
        let Some(end) = op_end(&lines, at) else { continue };
        let Some((results, _)) = lines[at].split_once(" = ") else { continue };
        let writes = lines[at..end].iter().any(|l| l.contains("store") || l.contains("atomic"));
        if !writes && names(results).iter().all(|name| uses[name] == 1) {
            for line in lines.drain(at..end) {
                for name in names(&line) {
                    *uses.entry(name).or_default() -= 1;
                }
            }
        }
    }
    lines
}

/// What a check says in a process of its own, which may crash.
fn apart(check: impl FnOnce() -> Result<Fate, String>) -> Result<Fate, String> {
    let mut ends = [0; 2];
    // SAFETY: plain calls of the system; the child does nothing but the check and leaves.
    let child = unsafe {
        libc::pipe(ends.as_mut_ptr());
        libc::fork()
    };
    if child == 0 {
        if let Err(why) = check() {
            // SAFETY: the text outlives the call.
            unsafe { libc::write(ends[1], why.as_ptr().cast(), why.len().min(60_000)) };
        }
        // SAFETY: leaves at once.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: this process' own ends of the pipe.
    let (mut pipe, mut status) = unsafe {
        libc::close(ends[1]);
        (std::fs::File::from_raw_fd(ends[0]), 0)
    };
    let mut why = String::new();
    let _ = pipe.read_to_string(&mut why);
    // SAFETY: the child is this process' own.
    unsafe { libc::waitpid(child, &mut status, 0) };
    match (libc::WIFSIGNALED(status), why.is_empty()) {
        (true, _) => Err(format!("{CRASH} with signal {}", libc::WTERMSIG(status))),
        (false, false) => Err(why),
        (false, true) => Ok("ran apart"),
    }
}

const CRASH: &str = "crashed";

static SEED: AtomicU64 = AtomicU64::new(0);

/// Should machine code crash, the seed is told.
fn tell_of_crashes() {
    extern "C" fn crashed(signal: i32) {
        let mut text = *b"machine code crashed at seed 00000000000000000000\n";
        let mut seed = SEED.load(Ordering::Relaxed);
        for digit in text[29..49].iter_mut().rev() {
            *digit = b'0' + (seed % 10) as u8;
            seed /= 10;
        }
        // SAFETY: nothing here but calls that a signal handler may make.
        unsafe {
            libc::write(2, text.as_ptr().cast(), text.len());
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            // SAFETY: the handler does what handlers may do.
            unsafe { libc::signal(signal, crashed as *const () as usize) };
        }
    });
}
