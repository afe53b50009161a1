//! Work beside work, inside a node.

use std::future::Future;

use futures_util::future::join_all;

/// Runs tasks beside each other and gives back what they came to, in the order of the tasks. It ends when the last one
/// does: each task heeds the cancel by itself, so that nothing is left half said.
pub async fn fan_out<T, F: Future<Output = T>>(tasks: impl IntoIterator<Item = F>) -> Vec<T> {
    join_all(tasks).await
}
