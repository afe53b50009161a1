use proptest::prelude::*;

use super::*;

fn typed(text: &str) -> Editor {
    let mut editor = Editor::default();
    text.chars().for_each(|c| editor.type_char(c));
    editor
}

#[test]
fn words_are_cut_and_inserted_again() {
    let mut editor = typed("one two three");
    editor.kill_word_left();
    editor.kill_word_left();
    assert_eq!(editor.text(), "one ");
    editor.yank();
    assert_eq!(editor.text(), "one two ");
    editor.yank_pop();
    assert_eq!(editor.text(), "one three");
    editor.undo();
    editor.undo();
    assert_eq!(editor.text(), "one ");
}

#[test]
fn lines_are_walked_with_a_steady_column() {
    let mut editor = typed("long line\nab\nlast line");
    assert!(editor.up() && editor.up());
    assert_eq!(editor.caret(), 9);
    assert!(!editor.up());
    assert!(editor.down() && editor.down() && !editor.down());
    assert_eq!(editor.caret(), editor.raw().len());
}

#[test]
fn clusters_are_one_letter() {
    let mut editor = typed("e\u{301}👨\u{200d}👩\u{200d}👧x");
    editor.move_left();
    editor.backspace();
    assert_eq!(editor.text(), "e\u{301}x");
    editor.backspace();
    assert_eq!(editor.text(), "x");
}

#[test]
fn a_large_paste_is_a_chip_that_holds_it_whole() {
    let paste = "line\n".repeat(100);
    let mut editor = typed("see ");
    editor.paste(&paste);
    editor.type_char('!');
    assert_eq!(editor.text(), format!("see {paste}!"));
    assert_eq!(editor.raw().chars().count(), 6);
    let letter = editor.raw().chars().nth(4).unwrap();
    assert_eq!(editor.label(letter).unwrap(), "[paste 1: 100 lines]");
    editor.move_left();
    editor.backspace();
    assert_eq!(editor.text(), "see !");
    editor.undo();
    assert_eq!(editor.text(), format!("see {paste}!"));
}

proptest! {
    #[test]
    fn no_sequence_of_edits_breaks_the_text(edits in proptest::collection::vec(0u8..20, 0..80)) {
        let mut editor = typed("héllo wörld\n日本語 👨\u{200d}👩 end");
        for edit in edits {
            match edit {
                0 => editor.move_left(), 1 => editor.move_right(), 2 => editor.word_left(), 3 => editor.word_right(),
                4 => editor.to_line_start(), 5 => editor.to_line_end(), 6 => { editor.up(); } 7 => { editor.down(); }
                8 => editor.backspace(), 9 => editor.delete(), 10 => editor.kill_word_left(), 11 => editor.kill_word_right(),
                12 => editor.kill_to_end(), 13 => editor.kill_to_start(), 14 => editor.yank(), 15 => editor.yank_pop(),
                16 => editor.undo(), 17 => editor.type_char('\u{301}'), 18 => editor.paste("a\nb"), _ => editor.type_char('x'),
            }
            prop_assert!(editor.raw().is_char_boundary(editor.caret()));
        }
    }
}

#[test]
fn a_huge_text_from_the_history_or_a_draft_is_a_chip_and_stays_whole() {
    let text = "a line of a log\n".repeat(100_000);
    let mut editor = Editor::default();
    editor.set(&text);
    assert_eq!(editor.raw().chars().count(), 1);
    assert_eq!(editor.text(), text);
    editor.set("short");
    assert_eq!(editor.text(), "short");
}
