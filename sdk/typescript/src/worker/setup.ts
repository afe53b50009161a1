import { HookRegistry } from '../control/hooks.js';
import { InstanceEndpoint, ToolEndpoint } from '../control/mcp.js';
import type { McpEndpoint, McpServerInstance } from '../control/mcp.js';
import type { McpServerConfig, ResolvedOptions } from '../options.js';
import { defineTools } from '../control/tools.js';
import type { Tool } from '../control/tools.js';
import { sessionLogger } from '../logging.js';
import { runToolInSpan } from '../telemetry.js';
import { PROTOCOL_VERSION } from './connection.js';
import { PrivateDirectory } from './launch.js';

/** Capabilities that the SDK cannot do without. */
const REQUIRED = ['control', 'can_use_tool', 'hook_callback', 'mcp_message', 'heartbeat', 'cancel'];

/** What a session brings along: hooks, in-process servers, temporary files. It outlives the session's workers. */
export class Setup {
  readonly hooks: HookRegistry;
  readonly mcp: ReadonlyMap<string, McpEndpoint>;
  readonly directory = new PrivateDirectory();
  readonly #options: ResolvedOptions;

  constructor(options: ResolvedOptions) {
    this.#options = options;
    this.hooks = new HookRegistry(options.hooks, options.onHookEvent);
    this.mcp = new Map(endpoints(options));
  }

  /** The fields of `initialize`. */
  initialize(): Record<string, unknown> {
    const { mcpServers, agents, systemPrompt, appendSystemPrompt, policyDescription, timeouts, heartbeat } = this.#options;
    const external = Object.entries(mcpServers ?? {}).filter(([, config]) => !isTools(config) && !isInstance(config));
    return {
      protocol_version: PROTOCOL_VERSION,
      requires: REQUIRED,
      hooks: this.hooks.declared,
      sdkMcpServers: this.mcp.size > 0 ? [...this.mcp.keys()] : undefined,
      mcpServers: external.length > 0 ? Object.fromEntries(external) : undefined,
      agents,
      systemPrompt,
      appendSystemPrompt,
      policyDescription,
      timeout: timeouts?.permission === undefined ? undefined : { canUseTool: timeouts.permission },
      heartbeat_ms: heartbeat === false ? undefined : heartbeat?.intervalMs,
    };
  }

  dispose(): void {
    for (const endpoint of this.mcp.values()) endpoint.close();
    this.directory.remove();
  }
}

function isInstance(config: McpServerConfig): config is { type: 'sdk'; instance: McpServerInstance } {
  return config.type === 'sdk';
}

function isTools(config: McpServerConfig | readonly Tool[]): config is readonly Tool[] {
  return Array.isArray(config);
}

/** The servers of this process: tools of `defineTools`, lists of tools, and server objects. */
function* endpoints({ tools = [], mcpServers = {}, logger }: ResolvedOptions): Generator<[string, McpEndpoint]> {
  const log = sessionLogger(logger, {});
  for (const server of tools) yield [server.name, new ToolEndpoint(server, runToolInSpan, log)];
  for (const [name, config] of Object.entries(mcpServers)) {
    if (isTools(config)) yield [name, new ToolEndpoint(defineTools(name, config), runToolInSpan, log)];
    else if (isInstance(config)) yield [name, new InstanceEndpoint(config.instance)];
  }
}
