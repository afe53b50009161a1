// A scripted model over HTTP, a clean place to work in, and the SDK in the module format under test.

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, realpathSync, rmSync, writeFileSync, chmodSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

import type { AgentManager, AgentManagerOptions, AgentMessage } from '@qwen-agent/sdk';

export const packageRoot = join(dirname(fileURLToPath(import.meta.url)), '..');
export const repositoryRoot = join(packageRoot, '..', '..');
export const binary = process.env.QWEN_BIN ?? join(repositoryRoot, 'target', 'debug', 'qwen');
const mockModel = process.env.MOCK_MODEL_BIN ?? join(dirname(binary), 'mock-model');

/** `esm` or `cjs`: the suite runs once for each. */
export const format = process.env.QWEN_SDK_FORMAT ?? 'esm';

type Sdk = typeof import('@qwen-agent/sdk');

export const sdk: Sdk =
  format === 'cjs' ? (createRequire(import.meta.url)('@qwen-agent/sdk') as Sdk) : await import('@qwen-agent/sdk');

type Step = Record<string, unknown>;
export interface Reply {
  steps: Step[];
}

/** One reply of the model; a bare string is a piece of text. */
export const say = (...steps: Array<string | Step>): Reply => ({
  steps: steps.map((step) => (typeof step === 'string' ? { text: step } : step)),
});

/** A step that calls a tool. */
export const call = (name: string, args: object = {}, id?: string): Step => ({
  tool_call: { name, arguments: args, ...(id !== undefined && { id }) },
});

/** A step that holds until the test opens this gate. */
export const gate = (name: string): Step => ({ gate: name });

export interface ModelMessage {
  role: string;
  content: string | Array<{ text?: string }> | null;
  [key: string]: unknown;
}

export interface ModelRequest {
  messages: ModelMessage[];
  model: string;
  tools?: Array<{ function: { name: string } }>;
  [key: string]: unknown;
}

export const textOf = (message: ModelMessage): string =>
  typeof message.content === 'string' ? message.content : (message.content ?? []).map((part) => part.text ?? '').join('');

export interface Place {
  home: string;
  work: string;
  env: Record<string, string | undefined>;
  /** A manager whose workers use the scripted model. It is closed with the test. */
  manager(options?: AgentManagerOptions): AgentManager;
  open(name: string): Promise<unknown>;
  reached(name: string): Promise<unknown>;
  requests(): Promise<ModelRequest[]>;
  /** What the model was told about its situation in the last request. */
  situation(): Promise<string>;
  /** What the user and the assistant said in the last request. */
  history(): Promise<string[]>;
  /** The tool results in the last request. */
  toolResults(): Promise<string[]>;
}

/** Environment variables of this process that could lead a worker to another model. */
const FOREIGN = /^(OPENAI|ANTHROPIC|DASHSCOPE|QWEN|CLAUDE|NODE_TEST)_/;

/** A directory that is removed after the test, once `users` of it are gone. */
export function temporaryDirectory(t: TestContext, users: () => Promise<unknown> = () => Promise.resolve()): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'qwen-ts-')));
  t.after(async () => {
    await users();
    // A killed program's children may still create files for a moment.
    rmSync(root, { recursive: true, force: true, maxRetries: 50, retryDelay: 20 });
  });
  return root;
}

/** A home, a workspace and a model that gives these replies. No worker may be left when the test is over. */
export async function place(t: TestContext, replies: Reply[], { loop = false } = {}): Promise<Place> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'qwen-ts-')));
  const [home, work] = [join(root, 'home'), join(root, 'work')];
  mkdirSync(home);
  mkdirSync(work);
  const script = join(root, 'script.json');
  writeFileSync(script, JSON.stringify({ loop, replies }));
  const server = spawn(mockModel, ['--script', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { value: line } = (await createInterface(server.stdout)[Symbol.asyncIterator]().next()) as { value: string };
  const { base_url: url, origin } = JSON.parse(line) as { base_url: string; origin: string };
  const control = async (path: string, method = 'GET'): Promise<unknown> => {
    const answer = await fetch(`${origin}/control/${path}`, { method });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };
  const requests = async (): Promise<ModelRequest[]> =>
    ((await control('requests')) as Array<{ body: ModelRequest }>).map((request) => request.body);
  const last = async (): Promise<ModelMessage[]> => (await requests()).at(-1)?.messages ?? [];
  const hidden = Object.fromEntries(Object.keys(process.env).filter((name) => FOREIGN.test(name)).map((name) => [name, undefined]));
  const managers: AgentManager[] = [];
  t.after(async () => {
    await control('reset', 'POST');
    await Promise.all(managers.map((manager) => manager.close()));
    server.stdin.end();
    await exitOf(server);
    await until('no worker is left', () => workers().length === 0);
    rmSync(root, { recursive: true, force: true });
  });
  const env = {
    ...hidden,
    HOME: home,
    QWEN_HOME: join(home, '.qwen'),
    OPENAI_BASE_URL: url,
    OPENAI_API_KEY: 'sk-test',
    OPENAI_MODEL: 'mock',
  };
  return {
    home,
    work,
    env,
    manager(options = {}) {
      const manager = sdk.createAgentManager({ binaryPath: binary, cwd: work, ...options, env: { ...env, ...options.env } });
      managers.push(manager);
      return manager;
    },
    open: (name) => control(`open/${name}`, 'POST'),
    reached: (name) => control(`reached/${name}`),
    requests,
    situation: async () => {
      const sent = (await control('requests')) as Array<{ full_body: ModelRequest }>;
      return (sent.at(-1)?.full_body.messages ?? []).filter(({ role }) => role === 'user').map(textOf).join('\n');
    },
    history: async () => (await last()).filter(({ role }) => role === 'user' || role === 'assistant').map(textOf),
    toolResults: async () => (await last()).filter(({ role }) => role === 'tool').map(textOf),
  };
}

/** The first of these programs that this machine has: a path, or names on PATH. */
export function findProgram(path: string | undefined, ...names: string[]): string | undefined {
  const directories = (process.env.PATH ?? '').split(':');
  const candidates = names.flatMap((name) => directories.map((directory) => join(directory, name)));
  return [...(path ? [path] : []), ...candidates].find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** A program that stands in for a worker: a node script with this body. */
export function fakeWorker(t: TestContext, body: string): string {
  const path = join(temporaryDirectory(t), 'worker');
  writeFileSync(path, `#!${process.execPath}\n${FAKE_PRELUDE}\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** What fake workers are made of: a handshake, answers to requests, and lines as they please. */
const FAKE_PRELUDE = `
const write = (value) => process.stdout.write((typeof value === 'string' ? value : JSON.stringify(value)) + '\\n');
let id = 'hub';
const handshake = (version = '1.0') => write({ object: 'chat.completion.chunk', id: 'c', created: 1, model: 'fake', session_id: id, choices: [],
  metadata: { protocol_version: version, capabilities: [], session_id: id } });
const terminal = (prompt, more = {}) => write({ object: 'chat.completion.chunk', id: 'c', created: 1, model: 'fake', session_id: id, prompt_id: prompt,
  choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
  metadata: { turn: { status: 'done', duration_ms: 1, model_calls: 1, tool_calls: 0, permission_denials: [], usage_by_model: {} } }, ...more });
const text = (prompt, content) => write({ object: 'chat.completion.chunk', id: 'c', created: 1, model: 'fake', session_id: id, prompt_id: prompt,
  choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const serve = (onPrompt, onRequest = () => ({})) => {
  require('node:readline').createInterface(process.stdin).on('line', (line) => {
    const value = JSON.parse(line);
    id = value.session_id ?? id;
    if (value.type === 'control_request') write({ type: 'control_response', request_id: value.request_id, response: { subtype: 'success', result: onRequest(value) } });
    else if (value.type === 'control/cancel') terminal(value.prompt_id);
    else if (value.input) onPrompt(value.prompt_id, value);
  }).on('close', () => process.exit(0));
};
`;

/** The worker processes that this process started and that still run. */
export function workers(parent = process.pid): number[] {
  const wanted = realpathSync(binary);
  return readdirSync('/proc')
    .filter((pid) => {
      if (!/^\d+$/.test(pid)) return false;
      try {
        return readlinkSync(`/proc/${pid}/exe`) === wanted && readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${String(parent)}\n`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export function isRunning(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Waits until something holds, looking again and again. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const end = Date.now() + 30_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`It never came that ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

export function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: string | null }> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  return new Promise((resolve) => child.once('exit', (code, signal) => { resolve({ code, signal }); }));
}

export async function all(messages: AsyncIterable<AgentMessage>): Promise<AgentMessage[]> {
  const found: AgentMessage[] = [];
  for await (const message of messages) found.push(message);
  return found;
}

export type Of<T extends AgentMessage['type']> = Extract<AgentMessage, { type: T }>;

export const only = <T extends AgentMessage['type']>(messages: readonly AgentMessage[], type: T): Array<Of<T>> =>
  messages.filter((message): message is Of<T> => message.type === type);

/** A promise and what resolves it. */
export function signal<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open!: (value: T) => void;
  const promise = new Promise<T>((resolve) => { open = resolve; });
  return { promise, open };
}
