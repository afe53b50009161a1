package io.github.qwenagent;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The options that a session and, as their defaults, a manager have.
 *
 * @param <B> the builder
 */
public abstract sealed class OptionsBuilder<B extends OptionsBuilder<B>> permits AgentOptions.Builder, SessionOptions.Builder {
    final Option.Values values = new Option.Values();

    OptionsBuilder() {}

    abstract B self();

    <T> B set(Option<T> option, T value) {
        values.put(option, value);
        return self();
    }

    /**
     * Sets the model.
     *
     * @param model its name; `demo` and `script:FILE` need no server
     * @return this builder
     */
    public B model(String model) {
        return set(Option.MODEL, model);
    }

    /**
     * Sets the directory that the session works in.
     *
     * @param directory the directory; the current one by default
     * @return this builder
     */
    public B cwd(Path directory) {
        return set(Option.CWD, directory);
    }

    /**
     * Replaces the built-in instructions.
     *
     * @param instructions the instructions, which never appear on a command line
     * @return this builder
     */
    public B systemPrompt(String instructions) {
        return set(Option.SYSTEM_PROMPT, instructions);
    }

    /**
     * Adds to the built-in instructions.
     *
     * @param instructions the instructions, which never appear on a command line
     * @return this builder
     */
    public B appendSystemPrompt(String instructions) {
        return set(Option.APPEND_SYSTEM_PROMPT, instructions);
    }

    /**
     * Sets what the agent may do without asking.
     *
     * @param mode the mode; {@link PermissionMode#DEFAULT} by default
     * @return this builder
     */
    public B permissionMode(PermissionMode mode) {
        return set(Option.PERMISSION_MODE, mode);
    }

    /**
     * Sets rules for calls that run without asking. Deny beats ask beats allow.
     *
     * @param rules such as `Read` or `Bash(git log *)`
     * @return this builder
     */
    public B allowedTools(String... rules) {
        return set(Option.ALLOWED_TOOLS, List.of(rules));
    }

    /**
     * Sets rules for calls that always need permission.
     *
     * @param rules such as `Bash(git push *)`
     * @return this builder
     */
    public B askTools(String... rules) {
        return set(Option.ASK_TOOLS, List.of(rules));
    }

    /**
     * Sets rules for calls that never run.
     *
     * @param rules such as `Bash(rm *)`
     * @return this builder
     */
    public B disallowedTools(String... rules) {
        return set(Option.DISALLOWED_TOOLS, List.of(rules));
    }

    /**
     * Describes the host's policy to the model, which then knows beforehand what will be refused. It grants nothing.
     *
     * @param description the policy in plain words
     * @return this builder
     */
    public B policyDescription(String description) {
        return set(Option.POLICY_DESCRIPTION, description);
    }

    /**
     * Sets the built-in tools on offer.
     *
     * @param names their names; all of them by default
     * @return this builder
     */
    public B coreTools(String... names) {
        return set(Option.CORE_TOOLS, List.of(names));
    }

    /**
     * Sets further directories that tools may work in.
     *
     * @param directories the directories
     * @return this builder
     */
    public B additionalDirectories(Path... directories) {
        return set(Option.ADDITIONAL_DIRECTORIES, List.of(directories));
    }

    /**
     * Sets how turns are worked on.
     *
     * @param agent `react`, `tot`, `got`, `agot`, or one of the agents
     * @return this builder
     */
    public B agent(String agent) {
        return set(Option.AGENT, agent);
    }

    /**
     * Adds a sub-agent that the model may start.
     *
     * @param name its name
     * @param agent the agent
     * @return this builder
     */
    public B agent(String name, Agent agent) {
        Map<String, Agent> agents = new LinkedHashMap<>(values.get(Option.AGENTS, Map.of()));
        agents.put(name, agent);
        return set(Option.AGENTS, agents);
    }

    /**
     * Sets the servers of tools, in this process or elsewhere.
     *
     * @param servers the servers, each with a name of its own
     * @return this builder
     * @throws IllegalArgumentException if two servers have the same name
     */
    public B tools(ToolServer... servers) {
        Set<String> names = new HashSet<>();
        for (ToolServer server : servers) {
            if (!names.add(server.name())) {
                throw new IllegalArgumentException("Two tool servers have the name " + server.name() + ".");
            }
        }
        return set(Option.TOOLS, List.of(servers));
    }

    /**
     * Sets the callback that decides about calls that need permission.
     *
     * @param callback the callback; without one such calls are denied
     * @return this builder
     */
    public B canUseTool(CanUseTool callback) {
        return set(Option.CAN_USE_TOOL, callback);
    }

    /**
     * Adds a hook for every occurrence of an event.
     *
     * @param event the event
     * @param hook the hook
     * @return this builder
     */
    public B hook(HookEvent event, Hook hook) {
        return hook(event, "", hook);
    }

    /**
     * Adds a hook. An exception and a passed time-out are reported to the logger and otherwise ignored.
     *
     * @param event the event
     * @param matcher the tools that it is for: a name, several with `|` between them, or a regular expression; empty for all
     * @param hook the hook
     * @return this builder
     */
    public B hook(HookEvent event, String matcher, Hook hook) {
        return addHook(new RegisteredHook(event, matcher, hook, false));
    }

    /**
     * Adds a hook whose exceptions and passed time-outs refuse what it observes.
     *
     * @param event the event
     * @param matcher the tools that it is for: a name, several with `|` between them, or a regular expression; empty for all
     * @param hook the hook
     * @return this builder
     */
    public B strictHook(HookEvent event, String matcher, Hook hook) {
        return addHook(new RegisteredHook(event, matcher, hook, true));
    }

    private B addHook(RegisteredHook hook) {
        List<RegisteredHook> hooks = new ArrayList<>(values.get(Option.HOOKS, List.of()));
        hooks.add(hook);
        return set(Option.HOOKS, hooks);
    }

    /**
     * Sets the settings files that count.
     *
     * @param sources the sources; none by default
     * @return this builder
     */
    public B settingSources(SettingSource... sources) {
        return set(Option.SETTING_SOURCES, List.of(sources));
    }

    /**
     * Sets settings of this session alone.
     *
     * @param settings the settings
     * @return this builder
     */
    public B settings(Map<String, ?> settings) {
        return set(Option.SETTINGS, Map.copyOf(settings));
    }

    /**
     * Sets a profile that takes the place of all settings files.
     *
     * @param profile the profile
     * @return this builder
     */
    public B settingsProfile(SettingsProfile profile) {
        return set(Option.SETTINGS_PROFILE, profile);
    }

    /**
     * Bounds the session.
     *
     * @param limits the limits
     * @return this builder
     */
    public B limits(Limits limits) {
        return set(Option.LIMITS, limits);
    }

    /**
     * Adds variables to the environment of the workers.
     *
     * @param variables the variables
     * @return this builder
     */
    public B env(Map<String, String> variables) {
        Map<String, String> merged = new LinkedHashMap<>(values.get(Option.ENV, Map.of()));
        merged.putAll(variables);
        return set(Option.ENV, merged);
    }

    /**
     * Adds a variable to the environment of the workers.
     *
     * @param name its name
     * @param value its value
     * @return this builder
     */
    public B env(String name, String value) {
        return env(Map.of(name, value));
    }

    /**
     * Sets variables that workers do not get.
     *
     * @param names the names of the variables
     * @return this builder
     */
    public B unsetEnv(String... names) {
        return set(Option.UNSET_ENV, List.of(names));
    }

    /**
     * Sets what happens to a turn whose worker dies. The hub carries it out.
     *
     * @param policy the policy; {@link OnCrash#ERROR} by default
     * @return this builder
     */
    public B onCrash(OnCrash policy) {
        return set(Option.ON_CRASH, policy);
    }

    /**
     * Sets how hard the model thinks.
     *
     * @param effort `low`, `medium` or `high`
     * @return this builder
     */
    public B effort(String effort) {
        return set(Option.EFFORT, effort);
    }

    /**
     * Separates sessions: workers and files are never shared between tenants.
     *
     * @param tenant the tenant's name
     * @return this builder
     */
    public B tenant(String tenant) {
        return set(Option.TENANT, tenant);
    }

    /**
     * Gives every line a number, so that {@link Session#attach} can deliver lines again.
     *
     * @return this builder
     */
    public B numbered() {
        return set(Option.NUMBERED, true);
    }

    /**
     * Sets further command-line arguments of the worker.
     *
     * @param arguments the arguments
     * @return this builder
     */
    public B extraArgs(String... arguments) {
        return set(Option.EXTRA_ARGS, List.of(arguments));
    }
}
