//! A function's name is a verb phrase. The list can only shrink.

use crate::facts::{FACTS, Function};
use crate::remaining::check;

/// Prepositions, participles and other words that do not say what a function does.
const NOT_VERBS: &[&str] = &[
    "because", "before", "behind", "below", "beside", "between", "can", "chosen", "excuse", "found",
    "gathered", "given", "gone", "greets", "held", "here", "left", "listed", "matched", "named", "of", "on",
    "only", "ours", "over", "owned", "same", "shown", "told", "under", "unsaid", "until", "wanted", "whole",
    "written",
];

/// Functions that are still to be renamed.
const REMAINING: &[&str] = &[
    "crates/bench/src/pty.rs::Pty::until",
    "crates/bench/src/worker.rs::Worker::until",
    "crates/mock-model/src/http.rs::whole",
    "crates/mock-model/src/process/program.rs::Program::under",
    "crates/qwen-dialects/src/payload.rs::Payload::owned",
    "crates/qwen-dialects/src/qwen/chunk.rs::ChunkEncoder::on",
    "crates/qwen-dialects/src/qwen/encode.rs::MessageEncoder::on",
    "crates/qwen-engine/src/budget/mod.rs::Budget::whole",
    "crates/qwen-engine/src/commands/builtin/chat.rs::named",
    "crates/qwen-engine/src/log/file_backups.rs::written",
    "crates/qwen-events/src/tool/declaration.rs::ClaudeTool::named",
    "crates/qwen-http/src/error.rs::named",
    "crates/qwen-kernel/src/config/keys.rs::Keys::written",
    "crates/qwen-kernel/src/manager/options.rs::SessionOptions::over",
    "crates/qwen-kernel/src/process_manager/exit.rs::WorkerExit::because",
    "crates/qwen-mcp/src/transport/stdio.rs::StderrTail::shown",
    "crates/qwen-model/src/anthropic/decoder.rs::Decoder::whole",
    "crates/qwen-model/src/openai/decoder.rs::Decoder::whole",
    "crates/qwen-model/src/oracle/game24.rs::written",
    "crates/qwen-model/src/oracle/intersect.rs::wanted",
    "crates/qwen-model/src/oracle/random.rs::SeededRandom::below",
    "crates/qwen-model/src/oracle/rational.rs::Rational::whole",
    "crates/qwen-model/src/oracle/sort.rs::found",
    "crates/qwen-model/src/oracle/sort.rs::wanted",
    "crates/qwen-permissions/src/policy/command.rs::Policy::found",
    "crates/qwen-permissions/src/shell/command.rs::Reader::found",
    "crates/qwen-redact/src/stream.rs::TextStream::held",
    "crates/qwen-redact/src/stream.rs::TextStream::whole",
    "crates/qwen-sandbox/src/kernel/namespaces.rs::owned",
    "crates/qwen-sandbox/src/policy.rs::ProtectedName::named",
    "crates/qwen-sandbox/src/protection/directory.rs::DirectoryHandle::below",
    "crates/qwen-schema/src/equality.rs::same",
    "crates/qwen-schema/src/reader.rs::Reader::named",
    "crates/qwen-thoughts/src/got/operate.rs::named",
    "crates/qwen-thoughts/src/thinking/runner.rs::ThoughtRunner::named",
    "crates/qwen-tools/src/arguments.rs::whole",
    "crates/qwen-tools/src/builtin/grep_search/mod.rs::Findings::found",
    "crates/qwen-tools/src/builtin/grep_search/mod.rs::Lines::matched",
    "crates/qwen-tools/src/builtin/notebook_edit.rs::written",
    "crates/qwen-tools/src/memory.rs::same",
    "crates/qwen-tools/src/vocabulary.rs::ClaudeNamed::ours",
    "crates/qwen-tools/src/workspace/mod.rs::Workspace::shown",
    "crates/qwen-tui/src/editor/mod.rs::Editor::left",
    "crates/qwen-tui/src/picker.rs::Picker::shown",
    "crates/qwen-tui/src/view/tool.rs::found",
    "crates/qwen/src/claude_host/session_mirror.rs::until",
    "crates/qwen/src/io/input.rs::whole",
    "crates/qwen/src/io/output.rs::left",
    "crates/qwen/src/roles/worker/control/host_settings.rs::shown",
    "crates/qwen/src/roles/worker/control/mod.rs::shown",
    "crates/qwen/src/session/main_agent.rs::chosen",
    "crates/qwen/src/session/prompt.rs::given",
    "crates/qwen/src/session/slash.rs::named",
    "crates/qwen/src/settings/layers/mod.rs::Layered::given",
    "crates/qwen/src/subcommands/lines.rs::named",
];

#[test]
fn no_function_is_named_by_a_preposition_or_participle() {
    let is_misnamed = |function: &&Function| NOT_VERBS.contains(&&*function.name) && !function.is_test;
    let found: Vec<&str> =
        FACTS.functions.iter().filter(is_misnamed).map(|function| &*function.place).collect();
    check(&found, &[REMAINING]);
}
