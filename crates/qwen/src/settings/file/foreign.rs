//! Keys of Qwen Code, which uses the same settings file. They are ignored without a warning.

/// Whole sections and single keys.
const KEYS: &[&str] = &[
    "advanced",
    "advisorModel",
    "agents",
    "artifact",
    "channels",
    "codingPlan",
    "compactionModel",
    "context.autoCompactThreshold",
    "context.clearContextOnIdle",
    "context.discoveryMaxDirs",
    "context.fileFiltering",
    "context.importFormat",
    "context.loadFromIncludeDirectories",
    "context.loadMemoryFromIncludeDirectories",
    "dualOutput",
    "experimental",
    "extensions",
    "fastModel",
    "general.checkpointing",
    "general.cleanupPeriodDays",
    "general.debugKeystrokeLogging",
    "general.defaultFileEncoding",
    "general.disableAutoUpdate",
    "general.disableUpdateNag",
    "general.dynamicCommandTranslation",
    "general.enableAutoUpdate",
    "general.enablePromptCompletion",
    "general.gitCoAuthor",
    "general.language",
    "general.notificationMode",
    "general.outputLanguage",
    "general.preferredEditor",
    "general.preventSystemSleep",
    "general.sessionRecapAwayThresholdMinutes",
    "general.showSessionRecap",
    "general.terminalBell",
    "general.vimMode",
    "general.voice",
    "hooks.MessageDisplay",
    "hooks.PostToolBatch",
    "hooks.SessionDelete",
    "hooks.StopFailure",
    "hooks.UserPromptExpansion",
    "hooks.disabled",
    "hooks.enabled",
    "hooksConfig",
    "ide",
    "imageModel",
    "mcp.serverCommand",
    "mcp.toolIdleTimeoutMs",
    "memory",
    "model.chatCompression",
    "model.enableOpenAILogging",
    "model.generationConfig",
    "model.maxSubagentDepth",
    "model.maxToolCallsPerTurn",
    "model.openAILogRetentionDays",
    "model.openAILoggingDir",
    "model.reasoningEffort",
    "model.sessionTokenLimit",
    "model.skipLoopDetection",
    "model.skipNextSpeakerCheck",
    "model.skipStartupContext",
    "model.skipWorkflowUsageWarning",
    "model.summarizeToolOutput",
    "model.visionModelPreview",
    "modelFallbacks",
    "modelPricing",
    "modelProviders",
    "outboundCorrelation",
    "output.showTimestamps",
    "permissions.autoMode",
    "plansDirectory",
    "policy",
    "privacy",
    "providerProtocol",
    "review",
    "security.allowPrivateNetworkHooks",
    "security.allowedHttpHookUrls",
    "security.allowedInsecureVoiceBaseUrls",
    "security.auth",
    "security.folderTrust",
    "serve",
    "skills",
    "stopHookBlockingCap",
    "telemetry.includeSensitiveSpanAttributes",
    "telemetry.resourceAttributes",
    "telemetry.sensitiveSpanAttributeMaxLength",
    "telemetry.useCollector",
    "tools.autoAccept",
    "tools.callCommand",
    "tools.computerUse",
    "tools.disabled",
    "tools.discoveryCommand",
    "tools.enableToolOutputTruncation",
    "tools.experimental",
    "tools.listDirectory",
    "tools.sandboxImage",
    "tools.shell.defaultTimeoutMs",
    "tools.shell.enableInteractiveShell",
    "tools.shell.heartbeatIntervalMs",
    "tools.shell.pager",
    "tools.shell.showColor",
    "tools.toolOutputBatchBudget",
    "tools.toolSearch",
    "tools.truncateToolOutputLines",
    "tools.truncateToolOutputThreshold",
    "tools.useBuiltinRipgrep",
    "tools.useRipgrep",
    "tools.visible",
    "tools.webSearch",
    "ui",
    "visionBridgeTimeoutMs",
    "visionModel",
    "voiceModel",
    "webSearch",
    "worktree",
];

/// The key by which Qwen Code marks a file that it has written.
pub(super) const MARK: &str = "$version";

/// Sign-in methods that only Qwen Code has.
pub(super) const AUTH_TYPES: &[&str] = &["qwen-oauth", "gemini", "vertex-ai"];

/// True if the key or one of its parent sections belongs to Qwen Code.
pub(super) fn is_known(path: &str) -> bool {
    KEYS.iter().any(|key| path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_include_their_keys_and_similar_names_are_others() {
        for (path, known) in [
            ("ui", true),
            ("ui.theme", true),
            ("general.vimMode", true),
            ("general", false),
            ("uis", false),
            ("model.nmae", false),
        ] {
            assert_eq!(is_known(path), known, "{path}");
        }
    }

    #[test]
    fn no_key_of_ours_is_among_them() {
        let schema = super::super::schema();
        for key in KEYS.iter().filter(|key| !key.contains('.')) {
            assert!(schema.get("properties").and_then(|ours| ours.get(key)).is_none(), "{key}");
        }
    }
}
