//! What the permission judgement must see through: where git finds its repository, what programs make of
//! their options, what a command does whatever its spelling, and what only looks dangerous.

mod actions;
mod options;
mod oversight;
mod refusals;
mod repositories;
