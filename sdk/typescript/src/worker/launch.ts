import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Limits, ResolvedOptions } from '../options.js';

/** Which session a worker holds. */
export type SessionOrigin =
  | { readonly kind: 'new' }
  | { readonly kind: 'resume'; readonly at?: string | undefined }
  | { readonly kind: 'fork'; readonly of: string; readonly at?: string | undefined };

/** Directories of open sessions; they are removed when the process exits. */
const openDirectories = new Set<PrivateDirectory>();
let exitHookInstalled = false;

function removeAtExit(directory: PrivateDirectory): void {
  openDirectories.add(directory);
  if (exitHookInstalled) return;
  exitHookInstalled = true;
  process.once('exit', () => {
    for (const each of openDirectories) each.remove();
  });
}

/** A directory for the files that a session brings along; mode 0700, removed with the session. */
export class PrivateDirectory {
  #path: string | undefined;

  /** Writes a file that only this user can read, and returns its path. */
  write(name: string, value: unknown): string {
    if (this.#path === undefined) {
      this.#path = mkdtempSync(join(tmpdir(), 'qwen-sdk-'));
      removeAtExit(this);
    }
    const path = join(this.#path, name);
    writeFileSync(path, JSON.stringify(value), { mode: 0o600 });
    return path;
  }

  remove(): void {
    if (this.#path === undefined) return;
    openDirectories.delete(this);
    rmSync(this.#path, { recursive: true, force: true });
    this.#path = undefined;
  }
}

/** Variables that choose a model, a server or a key. With a settings profile they count only if `env` passes them on. */
const CHOOSING = /^(OPENAI|ANTHROPIC|DASHSCOPE)_|^QWEN_(MODEL|DIALECT|SANDBOX)/;

/** The environment of a worker: that of this process with the session's over it. */
export function workerEnvironment(options: ResolvedOptions): Record<string, string> {
  const isIsolated = options.settingsProfile !== undefined;
  const inherited = Object.entries(process.env).filter(([name]) => !(isIsolated && CHOOSING.test(name)));
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...Object.fromEntries(inherited), ...options.env })) {
    if (value !== undefined) env[name] = value;
  }
  return env;
}

/** The arguments that say what a session is, whoever starts its worker. */
export function sessionArguments(options: ResolvedOptions, directory: PrivateDirectory): string[] {
  const args: string[] = [];
  const add = (flag: string, value: string | number | undefined): void => {
    if (value !== undefined) args.push(`${flag}=${String(value)}`);
  };
  if (options.settingsProfile === undefined) add('--setting-sources', (options.settingSources ?? []).join(','));
  add('--model', options.model);
  add('--approval-mode', options.permissionMode);
  add('--agent', options.agent);
  add('--core-tools', options.coreTools?.join(','));
  add('--include-directories', options.additionalDirectories?.join(','));
  for (const [flag, value] of limitFlags(options.limits ?? {})) add(flag, value);
  const { settings, settingsProfile } = options;
  const rules = ruleSettings(options);
  if (settings !== undefined || rules !== undefined) {
    add('--settings', directory.write('settings.json', withRules(settings ?? {}, rules)));
  }
  if (settingsProfile !== undefined) {
    const isPath = typeof settingsProfile === 'string';
    add('--settings-profile', isPath ? settingsProfile : directory.write('profile.json', settingsProfile));
  }
  args.push(...(options.extraArgs ?? []));
  return args;
}

function limitFlags(limits: Limits): Array<[string, number | undefined]> {
  return [
    ['--max-turns', limits.maxTurns],
    ['--max-session-turns', limits.maxSessionTurns],
    ['--max-tool-calls', limits.maxToolCalls],
    ['--max-wall-time', limits.maxWallTimeSeconds],
    ['--max-tokens-total', limits.maxTokensTotal],
    ['--max-budget-usd', limits.maxBudgetUsd],
  ];
}

interface Rules {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** Rules may contain commas, which the flags for them would split. */
function ruleSettings({ allowedTools = [], disallowedTools = [] }: ResolvedOptions): Rules | undefined {
  return allowedTools.length + disallowedTools.length > 0 ? { allow: allowedTools, deny: disallowedTools } : undefined;
}

function withRules(settings: Readonly<Record<string, unknown>>, rules: Rules | undefined): Record<string, unknown> {
  if (rules === undefined) return settings;
  const own = (settings.permissions ?? {}) as { allow?: string[]; deny?: string[] };
  const permissions = {
    ...own,
    allow: [...(own.allow ?? []), ...rules.allow],
    deny: [...(own.deny ?? []), ...rules.deny],
  };
  return { ...settings, permissions };
}
