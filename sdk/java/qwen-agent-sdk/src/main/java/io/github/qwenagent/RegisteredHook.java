package io.github.qwenagent;

/** A hook and what it is called for. A strict one refuses if it fails. */
record RegisteredHook(HookEvent event, String matcher, Hook hook, boolean isStrict) {}
