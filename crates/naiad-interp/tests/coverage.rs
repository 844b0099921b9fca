//! That every op of Tile IR is run by a test here, from its text.

use naiad_ir::tile::TileOp;

#[test]
fn every_op_is_run_by_a_test() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let mut text = String::new();
    let files = [folder.to_string(), format!("{folder}/common")];
    for file in files.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = file.unwrap().path();
        if path.is_file() && !path.ends_with("coverage.rs") {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    // An op stands in IR text before an operand, an attribute or its suffix.
    let runs = |name: &str| {
        [" ", ".", "\n", "\\n"].iter().any(|end| {
            ["= ", "  ", "\n", "\""]
                .iter()
                .any(|start| text.contains(&format!("{start}{name}{end}")))
        })
    };
    let missing: Vec<&str> =
        TileOp::TABLE.iter().map(|(name, _)| *name).filter(|name| !runs(name)).collect();
    assert!(missing.is_empty(), "no test runs {missing:?}");
}
