//! A terminal that reflows its lines when it is resized: what was printed stays whole, in order and there
//! once.

use proptest::prelude::*;
use qwen_events::{Body, Event, Scope, Timestamp};
use qwen_tui::Terminal;

use crate::harness;

/// A line of code that is wider than most of the screens.
fn code_line(n: usize) -> String {
    format!("let value_{n} = compute_something({n}) + compute_something_else({n}); // line {n}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn printed_lines_survive_any_resizes(
        sizes in proptest::collection::vec((20usize..120, 4usize..40), 1..8),
        draft in "[a-z ]{0,30}",
    ) {
        let (columns, rows) = (80, 24);
        let mut screen = avt::Terminal::with_scrollback(columns, rows, None).unwrap();
        let mut terminal = Terminal::new(harness::options(columns, rows), 0);
        let event = |body: Body| Event { at: Timestamp(0), scope: Scope::default(), body };
        terminal.edited(&draft);
        screen.feed("shell line\r\n");
        terminal.event(&event(Body::MessageStart { message_id: "m".into(), model: "m".into() }), 0);
        terminal.event(&event(Body::TextDelta("```rust\n".into())), 0);
        let mut written = Vec::new();
        for (columns, rows) in sizes {
            for _ in 0..3 {
                let line = code_line(written.len());
                terminal.event(&event(Body::TextDelta(format!("{line}\n").into())), 0);
                written.push(line);
                screen.feed(terminal.frame().as_str());
            }
            screen.resize(columns, rows);
            terminal.resize(columns, rows);
            screen.feed(terminal.frame().as_str());
        }
        let text = screen.screen().text();
        let kept: Vec<&String> = text.iter().filter(|line| line.starts_with("let value_")).collect();
        prop_assert_eq!(kept, written.iter().collect::<Vec<_>>());
        prop_assert_eq!(text.iter().filter(|line| *line == "shell line").count(), 1);
    }
}
