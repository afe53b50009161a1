use super::*;

fn picture(rows: &[&str], row: usize, column: usize) -> Picture {
    Picture {
        rows: rows.iter().map(|row| StyledLine::plain(*row)).collect(),
        caret: Some(Caret { row, column }),
    }
}

fn screen(columns: u16) -> vt100::Parser {
    vt100::Parser::new(10.try_into().unwrap(), columns.try_into().unwrap(), 100)
}

#[test]
fn finished_lines_appear_once_above_the_region() {
    let mut region = LiveRegion::new(20, true);
    let mut screen = screen(20);
    screen.process(region.paint("", picture(&["status", "> "], 1, 2)).as_bytes());
    for n in 0..30 {
        screen.process(region.paint(&format!("line {n}\r\n"), picture(&["status", "> x"], 1, 3)).as_bytes());
    }
    assert_eq!(
        screen.screen().contents(),
        "line 22\nline 23\nline 24\nline 25\nline 26\nline 27\nline 28\nline 29\nstatus\n> x"
    );
    assert_eq!(screen.screen().cursor_position(), (9, 3));
}

#[test]
fn only_what_changed_is_written() {
    let mut region = LiveRegion::new(80, true);
    let _ = region.paint("", picture(&["waiting for the model 12s", "> abc"], 1, 5));
    assert_eq!(region.paint("", picture(&["waiting for the model 12s", "> abc"], 1, 5)), "");
    let bytes = region.paint("", picture(&["waiting for the model 13s", "> abc"], 1, 5));
    assert_eq!(bytes, "\x1b[?2026h\x1b[1A\x1b[24G3\x1b[1B\x1b[6G\x1b[?2026l");
}

#[test]
fn any_sequence_of_pictures_equals_a_fresh_painting() {
    let pictures = [
        picture(&["a", "bb", "ccc"], 2, 1),
        picture(&["a"], 0, 0),
        picture(&["日本語", "b"], 1, 1),
        picture(&["日x本", "b", "", "d"], 3, 0),
        picture(&[], 0, 0),
        picture(&["👨\u{200d}👩\u{200d}👧 family", "e\u{301}x"], 0, 3),
        picture(&["👨\u{200d}👩\u{200d}👧 famine", "e\u{301}y", "z"], 2, 1),
        picture(&["a much longer row than fits the screen", "b"], 1, 0),
    ];
    for first in &pictures {
        for second in &pictures {
            let mut region = LiveRegion::new(20, true);
            let mut reused = screen(20);
            reused.process(region.paint("top\r\n", first.clone()).as_bytes());
            reused.process(region.paint("", second.clone()).as_bytes());
            let mut fresh = screen(20);
            fresh.process(LiveRegion::new(20, true).paint("top\r\n", second.clone()).as_bytes());
            assert_eq!(reused.screen().contents(), fresh.screen().contents(), "{first:?} {second:?}");
            assert_eq!(reused.screen().cursor_position(), fresh.screen().cursor_position());
        }
    }
}
