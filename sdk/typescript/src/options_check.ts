import type { Tool } from './control/tools.js';
import type { AgentManagerOptions } from './options.js';

/** Options of other SDKs for the same thing. Passed over, some of them would leave a program without its limits or rules. */
const FOREIGN: ReadonlyMap<string, string> = new Map([
  ['abortController', 'signal'],
  ['canUseTool', 'onPermissionRequest'],
  ['continue', 'manager.resumeSession(id)'],
  ['excludeTools', 'disallowedTools'],
  ['forkSession', 'manager.forkSession(id)'],
  ['maxBudgetUsd', 'limits.maxBudgetUsd'],
  ['maxSessionTurns', 'limits.maxSessionTurns'],
  ['maxToolCalls', 'limits.maxToolCalls'],
  ['maxTurns', 'limits.maxTurns'],
  ['outputFormat', 'outputSchema of a turn'],
  ['pathToClaudeCodeExecutable', 'binaryPath'],
  ['pathToQwenExecutable', 'binaryPath'],
  ['resume', 'manager.resumeSession(id)'],
  ['resumeSessionAt', 'at of manager.resumeSession(id, { at })'],
  ['spawnClaudeCodeProcess', 'transport'],
  ['timeout', 'timeouts'],
]);

const LISTS = [
  'additionalDirectories',
  'allowedTools',
  'coreTools',
  'disallowedTools',
  'extraArgs',
  'settingSources',
  'tools',
] as const satisfies ReadonlyArray<keyof AgentManagerOptions>;

/** Throws a TypeError for options that would be passed over or taken for something else. */
export function checkOptions(options: AgentManagerOptions): void {
  for (const [name, instead] of FOREIGN) {
    if ((options as Record<string, unknown>)[name] !== undefined) {
      throw new TypeError(`There is no option ${name}; use ${instead}`);
    }
  }
  for (const name of LISTS) {
    const value: unknown = options[name];
    if (value !== undefined && !Array.isArray(value)) throw new TypeError(`The option ${name} must be an array`);
  }
  for (const directory of options.additionalDirectories ?? []) {
    if (directory.includes(',')) throw new TypeError(`additionalDirectories has ${JSON.stringify(directory)}; a path with a comma cannot be passed to the worker`);
  }
  checkServers(options);
}

function checkServers({ tools = [], mcpServers = {} }: AgentManagerOptions): void {
  for (const [name, server] of Object.entries(mcpServers as Record<string, unknown>)) {
    const isServer = Array.isArray(server) ? server.every((each: unknown) => typeof (each as Partial<Tool> | null)?.run === 'function') : typeof server === 'object' && server !== null;
    if (!isServer) throw new TypeError(`mcpServers.${name} must be an array of tools (tool({...})), or an object such as { command: 'my-server' }`);
  }
  const names = new Set(Object.keys(mcpServers));
  for (const server of tools as ReadonlyArray<{ name?: unknown; tools?: unknown }>) {
    if (typeof server.name !== 'string' || !Array.isArray(server.tools)) throw new TypeError('The option tools takes what defineTools() returns');
    if (names.has(server.name)) throw new TypeError(`There are two tool servers named ${server.name}`);
    names.add(server.name);
  }
}
