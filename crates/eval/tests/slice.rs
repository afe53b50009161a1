//! A slice of `make eval` that is quick enough for every test run: the same ways on fewer tasks, with the
//! same order of merit.

use eval::{Played, Player, capacity, game24, lists};
use qwen_events::{AgentName, Thinking};
use qwen_thoughts::{GotOptions, Search, ThinkingOptions};

type Failed = Box<dyn std::error::Error>;

fn player(
    agent: AgentName,
    oracle: &str,
    change: impl FnOnce(&mut ThinkingOptions),
) -> Result<Player, Failed> {
    let mut options = ThinkingOptions::default();
    change(&mut options);
    Player::new(agent, oracle, options).map_err(|error| error.to_string().into())
}

/// How many of 25 puzzles are solved, and what the plays were.
async fn solved(
    agent: AgentName,
    change: impl FnOnce(&mut ThinkingOptions),
) -> Result<(usize, Vec<Played>), Failed> {
    let player = player(agent, "game24?q=0.3&p=0.7&seed=1", change)?;
    let mut plays = Vec::new();
    let mut right = 0;
    for puzzle in game24::puzzles(25) {
        let played = player.play(&game24::prompt(puzzle)).await;
        right += usize::from(game24::solves(puzzle, &played.end.reply));
        plays.push(played);
    }
    Ok((right, plays))
}

#[tokio::test]
async fn a_tree_solves_what_a_chain_does_not() -> Result<(), Failed> {
    let (chain, _) = solved(AgentName::React, |_| {}).await?;
    let (narrow, _) = solved(AgentName::Tot, |options| options.tot.breadth = 1).await?;
    let (wide, _) = solved(AgentName::Tot, |_| {}).await?;
    let (deep, plays) = solved(AgentName::Tot, |options| options.tot.search = Search::Dfs).await?;
    assert!(chain <= 5, "chain: {chain} of 25");
    assert!(narrow > chain && wide > narrow, "b=1: {narrow}, b=5: {wide} of 25");
    assert!(wide >= 17 && deep >= 19, "b=5: {wide}, depth first: {deep} of 25");
    let back = |step: &&Thinking| matches!(step, Thinking::TotBacktrack { .. });
    assert!(plays.iter().any(|played| played.steps.iter().any(|step| back(&step))), "nothing was given up");
    Ok(())
}

#[tokio::test]
async fn a_graph_sorts_and_intersects_what_a_tree_does_not() -> Result<(), Failed> {
    let errors = async |agent: AgentName, oracle: &str, tasks: &[lists::Task]| {
        let player = player(agent, oracle, |_| {})?;
        let (mut errors, mut calls) = (0, 0);
        for task in tasks {
            let played = player.play(&task.prompt).await;
            errors += task.errors(&played.end.reply);
            calls += played.end.model_calls;
        }
        Ok::<_, Failed>((errors, calls))
    };
    let tasks = lists::sorting(64, 5);
    let (tree, _) = errors(AgentName::Tot, "sort?seed=1", &tasks).await?;
    let (graph, calls) = errors(AgentName::Got, "sort?seed=1", &tasks).await?;
    assert!(tree >= 5 && graph <= 1, "ToT: {tree} errors, GoT: {graph}, in 5 lists");
    assert!(calls <= 5 * 60, "{calls} calls");
    let (graph, _) = errors(AgentName::Got, "intersect?seed=1", &lists::intersecting(32, 5)).await?;
    assert!(graph <= 1, "GoT: {graph} errors in 5 intersections");
    Ok(())
}

#[tokio::test]
async fn an_adaptive_graph_is_as_large_as_its_task() -> Result<(), Failed> {
    let got = GotOptions { adaptive: true, max_depth: 3, ..GotOptions::default() };
    let player = player(AgentName::Got, "capacity?cap=8", |options| options.got = got)?;
    for (size, thoughts) in capacity::SIZES {
        let played = player.play(&capacity::prompt(size)).await;
        assert!(capacity::solves(size, &played.end.reply), "size {size}: {}", played.end.reply);
        assert_eq!(capacity::thoughts(&played.steps), thoughts, "size {size}");
    }
    Ok(())
}

#[tokio::test]
async fn depth_bounds_what_an_adaptive_graph_can_solve() -> Result<(), Failed> {
    for (depth, size, right) in [(0, 24, true), (0, 25, false), (1, 72, true), (1, 73, false), (2, 216, true)]
    {
        let got = GotOptions { adaptive: true, max_depth: depth, ..GotOptions::default() };
        let player = player(AgentName::Got, "capacity?cap=8", |options| options.got = got)?;
        let played = player.play(&capacity::prompt(size)).await;
        assert_eq!(capacity::solves(size, &played.end.reply), right, "size {size} at depth {depth}");
    }
    Ok(())
}
