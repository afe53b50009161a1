import type { HookHandler, HookTable } from './control/hooks.js';
import type { McpServerInstance } from './control/mcp.js';
import type { PermissionHandler, PermissionMode } from './control/permissions.js';
import type { Tool, ToolServer } from './control/tools.js';
import type { Logger } from './logging.js';
import type { SessionStore } from './store.js';
import type { TransportFactory } from './transport/transport.js';

/** The settings files that are read. */
export type SettingSource = 'user' | 'project' | 'local';

/** An MCP server that the worker starts or reaches itself, or a server object in this process. */
export type McpServerConfig =
  | {
      readonly type?: 'stdio';
      readonly command: string;
      readonly args?: readonly string[];
      readonly env?: Record<string, string>;
      readonly cwd?: string;
      readonly [key: string]: unknown;
    }
  | { readonly type: 'http'; readonly url: string; readonly headers?: Record<string, string>; readonly [key: string]: unknown }
  | { readonly type: 'sdk'; readonly instance: McpServerInstance };

/** An agent that the main agent can start for a part of the work. */
export interface AgentDefinition {
  readonly description: string;
  readonly prompt: string;
  readonly tools?: readonly string[];
  readonly model?: string;
  readonly [key: string]: unknown;
}

/** A set of settings that replaces all settings files. Parts are objects or paths. */
export interface SettingsProfile {
  readonly system?: object | string;
  readonly systemDefaults?: object | string;
  readonly user?: object | string;
  readonly workspace?: object | string;
  /** Values by dotted key, such as `model.name`. */
  readonly overrides?: Readonly<Record<string, unknown>>;
}

/** Bounds of a session. A turn that reaches one ends with the bound as its status. */
export interface Limits {
  /** Model calls for one prompt. */
  readonly maxTurns?: number;
  /** Model calls in the session. */
  readonly maxSessionTurns?: number;
  readonly maxToolCalls?: number;
  readonly maxWallTimeSeconds?: number;
  readonly maxTokensTotal?: number;
  readonly maxBudgetUsd?: number;
}

/** Time-outs in milliseconds. */
export interface Timeouts {
  /** Until a new worker has announced itself; 10,000. */
  readonly start?: number;
  /** Until a control request is answered; 60,000. */
  readonly request?: number;
  /** Until an unanswered permission request is denied; 600,000 at most. The worker's default is 60,000. */
  readonly permission?: number;
  /** Until `close()` returns, the worker's forced end included; 5,000. */
  readonly close?: number;
  /** Until a turn is interrupted; unlimited. */
  readonly turn?: number;
}

/** Signs of life of workers. The hub ends a worker that misses `maxMissed` intervals in a row; it counts as crashed. */
export interface HeartbeatOptions {
  /** 5,000; from 100 to 3,600,000. */
  readonly intervalMs?: number;
  /** 3. */
  readonly maxMissed?: number;
}

/**
 * What the hub does with a turn whose worker dies.
 * - `error` (the default): it ends as `interrupted`; the session continues with the next prompt.
 * - `resume`: a new worker continues it. Finished calls are not repeated.
 * - `retry`: the prompt runs again if no tool had started; otherwise as `error`.
 * - `fork`: as `resume`, in a fork of the session.
 */
export type OnCrash = 'error' | 'resume' | 'retry' | 'fork';

/** The pool of workers in the manager's `qwen hub`. */
export interface WorkerPoolOptions {
  readonly minWorkers?: number;
  readonly maxWorkers?: number;
  /** Seconds after which a worker without a session ends. */
  readonly idleTimeoutSeconds?: number;
  readonly maxSessionsPerWorker?: number;
  readonly healthCheckIntervalSeconds?: number;
}

/** The options of a session. Options of `createSession` override those of the manager. */
export interface SessionOptions {
  readonly model?: string;
  readonly cwd?: string;
  readonly systemPrompt?: string;
  readonly appendSystemPrompt?: string;
  /** The host's own rules about tool calls, in plain text for the model: what `canUseTool` will refuse, and why. */
  readonly policyDescription?: string;
  readonly permissionMode?: PermissionMode;
  /** Rules for calls that run without approval, such as `Read` or `Bash(git log *)`. */
  readonly allowedTools?: readonly string[];
  /** Rules for calls that never run. */
  readonly disallowedTools?: readonly string[];
  /** The built-in tools that are offered; all of them if absent. */
  readonly coreTools?: readonly string[];
  readonly additionalDirectories?: readonly string[];
  /** The agent that processes turns: `react`, `tot`, `got`, `agot`, or one of `agents`. */
  readonly agent?: string;
  readonly agents?: Readonly<Record<string, AgentDefinition>>;
  readonly tools?: readonly ToolServer[];
  /** By name: tools of this process (`tool({...})`), or how to reach a server. */
  readonly mcpServers?: Readonly<Record<string, McpServerConfig | readonly Tool[]>>;
  /** Decides about calls that need permission. Without it they are denied. */
  readonly onPermissionRequest?: PermissionHandler;
  /** Receives every hook event. Use `hooks` for single events. */
  readonly onHookEvent?: HookHandler;
  readonly hooks?: HookTable;
  /** The settings files that are read; none by default. */
  readonly settingSources?: readonly SettingSource[];
  /** Settings of this session alone. */
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly settingsProfile?: SettingsProfile | string;
  readonly limits?: Limits;
  readonly timeouts?: Timeouts;
  readonly heartbeat?: HeartbeatOptions | false;
  readonly onCrash?: OnCrash;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Text in pieces as the model writes it (the default), or whole messages. */
  readonly includePartialMessages?: boolean;
  /** Receives the worker's standard error, which is always read. */
  readonly stderr?: (text: string) => void;
  readonly logger?: Logger;
  /** Keeps sessions where the host wants them. */
  readonly sessionStore?: SessionStore;
  /** Further command-line arguments of the worker. */
  readonly extraArgs?: readonly string[];
  /** Closes the session when it is aborted; as an option of the manager, all its sessions. */
  readonly signal?: AbortSignal;
}

/** The options that all sessions of a manager share. */
export interface AgentManagerOptions extends SessionOptions {
  /** The `qwen` program. Otherwise `QWEN_BIN`, then the bundled one, then PATH. */
  readonly binaryPath?: string;
  readonly workerPool?: WorkerPoolOptions;
  /** Connects to the hub in another way than through a child process. */
  readonly transport?: TransportFactory;
}

/** The options of one turn. */
export interface TurnOptions<S = undefined> {
  readonly signal?: AbortSignal;
  readonly model?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  readonly effort?: string;
  /** The only tools that this turn may use. */
  readonly toolOverrides?: readonly string[];
  /** The result as data: a zod schema or a JSON Schema. */
  readonly outputSchema?: S;
  /** Milliseconds until the turn is interrupted. */
  readonly timeoutMs?: number;
  readonly promptId?: string;
}

export type ResolvedOptions = AgentManagerOptions;

/** Manager options with those of a session over them; `env` and `mcpServers` are merged. */
export function mergeOptions(manager: AgentManagerOptions, session: SessionOptions): ResolvedOptions {
  const given = Object.fromEntries(Object.entries(session).filter(([, value]) => value !== undefined)) as SessionOptions;
  return {
    ...manager,
    ...given,
    env: { ...manager.env, ...given.env },
    timeouts: { ...manager.timeouts, ...given.timeouts },
    limits: { ...manager.limits, ...given.limits },
  };
}
