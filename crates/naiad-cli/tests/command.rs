//! The command line: what reaches the runner, and exit codes.

use naiad_cli::{DeviceChoice, Format, Report, RunOptions, ScriptRunner};
use std::cell::RefCell;

/// Notes what it is to run.
#[derive(Default)]
struct Recorder(RefCell<Vec<(String, Vec<String>, RunOptions)>>);

impl ScriptRunner for Recorder {
    fn run(&self, script: &str, args: &[String], options: &RunOptions) -> i32 {
        self.0.borrow_mut().push((script.to_string(), args.to_vec(), options.clone()));
        7
    }
}

fn run(line: &str) -> (i32, Vec<(String, Vec<String>, RunOptions)>) {
    let recorder = Recorder::default();
    let words = ["naiad"].into_iter().chain(line.split_whitespace());
    let code = naiad_cli::main(words.map(Into::into), &recorder);
    (code, recorder.0.into_inner())
}

#[test]
fn run_hands_over_everything_after_the_script() {
    let options = RunOptions { device: DeviceChoice::Cpu, check: true, ..RunOptions::default() };
    let (code, ran) = run("run --device cpu --check s.py --check -x --device cuda");
    let args = ["--check", "-x", "--device", "cuda"].map(String::from).to_vec();
    assert_eq!((code, ran), (7, vec![("s.py".to_string(), args, options)]));
}

#[test]
fn options_survive_a_process_boundary() {
    let (device, gpu) = (DeviceChoice::Cpu, Some("l4".to_string()));
    let output = Some("found.sarif".to_string());
    let report = Report { format: Format::Sarif, output, deny_warnings: true, sweep: true };
    for options in [
        RunOptions::default(),
        RunOptions { device, check: true, report: None, gpu: gpu.clone() },
        RunOptions { device, check: false, report: Some(Report::default()), gpu },
        RunOptions { report: Some(report), ..RunOptions::default() },
    ] {
        let line = format!("{} s.py", options.to_args().join(" "));
        assert_eq!(run(&line).1[0].2, options);
    }
}

#[test]
fn exit_codes() {
    for (line, code) in [
        ("", 2),
        ("run", 2),
        ("check", 2),
        ("check --deny everything s.py", 2),
        ("nonsense", 2),
        ("--version", 0),
        ("compile no-such-file.py::k --signature x=i32", 1),
        ("lint", 2),
        ("lint --deny everything s.py", 2),
        ("lint no-such-file.py", 1),
    ] {
        assert_eq!(run(line).0, code, "{line}");
    }
}
