//! The table of public names against its page, and against the library it leads to.

use naiad_front::names::{PublicName, State, table};
use naiad_ir::Scalar;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language.md");
const BEGIN: &str = "<!-- generated: begin -->";
const END: &str = "<!-- generated: end -->";

/// Parts of the page: title, prefix of the paths, and what is said first.
const PARTS: &[(&str, &str, &str)] = &[
    (
        "`triton.language`",
        "",
        "Below `tl`. A name marked *method* is one of tensors too: `x.sum(axis=0)`.",
    ),
    (
        "Block pointers and tensor descriptors",
        "window.",
        "Methods of what `make_block_ptr` and `make_tensor_descriptor` give.",
    ),
    ("dtypes", "dtype.", "Methods of dtypes and of pointer types."),
    ("`triton.language.extra.cuda`", "extra.cuda.", ""),
    ("`triton.language.target_info`", "target_info.", "Compile-time facts."),
    ("`triton.language.PropagateNan`", "PropagateNan.", ""),
    ("`triton`", "triton.", "Functions of the host that kernels may call on constexprs."),
    ("Python's own functions", "python.", ""),
    (
        "`libdevice`",
        "libdevice.",
        "Below `tl.extra.libdevice`, `tl.extra.cuda.libdevice`, `tl.libdevice` and, as up to Triton 2.3, `tl.math`.",
    ),
    ("Spellings that `tl.math` once had", "math.", ""),
];

#[test]
fn page() {
    let mut page = String::new();
    let mut shown = 0;
    let names = table();
    for &(title, prefix, first) in PARTS {
        let of_part = |n: &&PublicName| match prefix {
            "" => !n.path.contains('.'),
            _ => n.path.starts_with(prefix),
        };
        let rows: Vec<&PublicName> = names.iter().filter(of_part).collect();
        shown += rows.len();
        let _ = write!(page, "\n## {title}\n\n");
        if !first.is_empty() {
            let _ = write!(page, "{first}\n\n");
        }
        page += "| name | state |\n|---|---|\n";
        for n in rows {
            let state = match n.state {
                State::Supported if n.is_method && !n.signature.starts_with('.') => "method".into(),
                State::Supported => String::new(),
                State::Alias(of) => format!("the same as `{of}`"),
                State::Missing => "**not supported**".into(),
            };
            let _ = writeln!(page, "| `{}` | {state} |", n.signature.replace('|', "\\|"));
        }
    }
    assert_eq!(shown, names.len(), "a name falls in no part of the page");
    let missing = names.iter().filter(|n| n.state == State::Missing).count();
    let dtypes: Vec<String> =
        Scalar::ALL.iter().map(|s| format!("`{}`", s.triton_name())).collect();
    let head = format!(
        "\n{} names, of which {missing} are not supported. Types: {}, `pointer_type`, `block_type`.\n",
        names.len(),
        dtypes.join(", ")
    );
    let old = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = old.split_once(BEGIN).expect("the page has its markers");
    let (_, after) = rest.split_once(END).expect("the page has its markers");
    let new = format!("{before}{BEGIN}\n{head}{page}\n{END}{after}");
    if std::env::var_os("NAIAD_BLESS").is_some() {
        std::fs::write(PAGE, &new).unwrap();
    }
    let same = std::fs::read_to_string(PAGE).unwrap() == new;
    assert!(same, "docs/language.md is not what the table says: NAIAD_BLESS=1 rewrites it");
}

#[test]
fn paths_are_unique_and_aliases_lead_somewhere() {
    let names = table();
    let mut seen = std::collections::BTreeSet::new();
    for n in &names {
        assert!(seen.insert(n.path), "`{}` has two rows", n.path);
        if let State::Alias(of) = n.state {
            let target = names.iter().find(|m| m.path == of);
            assert!(target.is_some_and(|m| m.state == State::Supported), "`{of}` is no name");
        }
        // Only a function of the library has none in its row.
        assert!(!n.signature.contains("( "), "{}", n.signature);
    }
}
