//! What the graph engine promises.

mod building;
mod care;
mod running;
mod stage;
