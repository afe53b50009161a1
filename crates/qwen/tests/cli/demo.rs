//! `--model demo` with the agents that think in trees and graphs.

use crate::harness::qwen;

fn answer(prompt: &str, agent: &str) -> (String, String) {
    let ended = qwen().args(["-p", prompt, "--model", "demo", "--agent", agent]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("cannot be used") && !ended.stderr.contains("denied"), "{ended:?}");
    (ended.stdout, ended.stderr)
}

#[test]
fn a_tree_of_thoughts_finds_a_way_to_24_and_is_drawn() {
    for puzzle in ["4 9 10 13", "1 5 5 5", "2 3 4 6"] {
        let (found, drawn) = answer(puzzle, "tot");
        assert!(found.trim().ends_with("= 24"), "{puzzle}: {found}");
        assert!(drawn.contains("├─ ") && drawn.contains("the best is candidate"), "{drawn}");
    }
}

#[test]
fn a_graph_of_thoughts_sorts_and_is_drawn() {
    for agent in ["got", "agot"] {
        let (found, drawn) = answer("Sort ascending: 5 3 1 9 2 8", agent);
        assert_eq!(found, "1 2 3 5 8 9\n", "{agent}");
        assert!(drawn.contains("◇ ") && drawn.contains("sort: 1 2 3 5 8 9"), "{drawn}");
    }
    assert_eq!(answer("Intersect: 1 2 3 | 2 3 4", "got").0, "2 3\n");
}

#[test]
fn a_prompt_without_a_puzzle_gets_one_and_is_told_so() {
    for (agent, solved) in
        [("tot", "= 24"), ("got", "1 2 3 4 5 6 8 9 11 12 14 15 16 17 19 21 23 25 27 29 30 33 38 42")]
    {
        let (found, _) = answer("Look around", agent);
        assert!(found.contains(solved) && found.contains("built-in demo model"), "{agent}: {found}");
    }
}
