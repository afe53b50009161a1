//! What trees and graphs of thoughts promise.

mod failures;
mod fake;
mod limits;
mod order;
mod resume;
mod stage;
mod tools;
