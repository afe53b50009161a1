//! Concurrent work inside a node.

use std::future::Future;

use futures_util::future::join_all;

/// Runs tasks concurrently and returns their results in the order of the tasks. It ends with the last task:
/// each task handles cancellation by itself, so that no task is dropped halfway.
pub async fn fan_out<T, F: Future<Output = T>>(tasks: impl IntoIterator<Item = F>) -> Vec<T> {
    join_all(tasks).await
}
