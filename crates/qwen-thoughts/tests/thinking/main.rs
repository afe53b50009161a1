//! What trees and graphs of thoughts promise.
#![expect(clippy::expect_used, reason = "what a test sets up may fail, and then the test does")]

mod failures;
mod fake;
mod harness;
mod limits;
mod order;
mod resume;
mod tools;
