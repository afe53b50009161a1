//! Whatever a stream holds, the checker and the viewer live on, and the viewer's output harms no terminal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use qwen_dialects::Dialect;
use qwen_dialects::check::{Checker, Mode};
use qwen_dialects::view::{ViewOptions, Viewer};

fuzz_target!(|data: &[u8]| {
    let Some((choice, stream)) = data.split_first() else { return };
    let dialect = Dialect::ALL.get(usize::from(choice >> 1)).copied();
    let mode = if choice & 1 == 0 { Mode::Stream } else { Mode::Fragment };
    let mut checker = Checker::new(dialect, mode);
    let options = ViewOptions { color: false, width: usize::from(*choice), height: None };
    let mut viewer = Viewer::new(dialect, options);
    let (mut findings, mut shown, mut lines) = (Vec::new(), Vec::new(), 0);
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        findings.extend(checker.push_line(line));
        viewer.push_line(line, &mut shown);
        lines += 1;
    }
    findings.extend(checker.finish());
    viewer.finish(&mut shown);
    assert!(findings.iter().all(|finding| (1..=lines.max(1)).contains(&finding.line)));
    let shown = String::from_utf8(shown).expect("a transcript is text");
    assert!(!shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));
});
