//! Screens as snapshots, at three sizes each: what a user sees, cell by cell.

use crate::harness::Stage;
use crate::scenes::scenes;

#[test]
fn screens_look_as_they_did() {
    for (name, play) in scenes() {
        for (columns, rows) in [(80, 24), (120, 40), (40, 12)] {
            let mut stage = Stage::new(columns, rows);
            play(&mut stage);
            insta::with_settings!({ snapshot_path => "../screens", prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("{name}-{columns}x{rows}"), stage.screen());
            });
        }
    }
}

#[test]
fn a_wall_clock_that_jumps_changes_nothing_on_the_screen() {
    for (name, play) in scenes() {
        let screen = |wall_clock: u64| {
            let mut stage = Stage::new(80, 24);
            stage.wall_clock = wall_clock;
            play(&mut stage);
            stage.screen()
        };
        assert_eq!(screen(0), screen(1000), "{name}");
    }
}
