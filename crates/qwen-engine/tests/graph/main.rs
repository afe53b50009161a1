//! What the graph engine promises.

mod building;
mod cancelling;
mod care;
mod running;
mod stage;
