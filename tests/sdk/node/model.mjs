// The scripted model server and a clean place, for the tests beside it.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const binary = process.env.QWEN_BIN;

/** One reply of the model; a bare string is a piece of text. */
export const say = (...steps) => ({ steps: steps.map((step) => (typeof step === 'string' ? { text: step } : step)) });

/** A step that calls a tool. */
export const call = (name, args = {}, id) => ({ tool_call: { name, arguments: args, ...(id && { id }) } });

/** A step that holds until the test opens this gate. */
export const gate = (name) => ({ gate: name });

/** A reply made of these deltas of the OpenAI wire, each a write of its own. */
export const raw = (finish, ...deltas) => {
  const chunk = (delta, reason = null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'mock', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  return { steps: [...deltas.map((d) => chunk(d)), chunk({}, finish), 'data: [DONE]\n\n'].map((text) => ({ raw: text })) };
};

/** The text of a message that the model was sent. */
export const textOf = (message) =>
  typeof message.content === 'string' ? message.content : (message.content ?? []).map((part) => part.text ?? '').join('');

/** The smallest picture there is. */
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+P//PwAF/gL+pzWBDgAAAABJRU5ErkJggg==';

/**
 * A place with a home, a workspace and a model that gives these replies, which may depend on the workspace. Everything goes away with the test, and no
 * process of the program may be left by then.
 */
export async function place(t, replies, { loop = false } = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'qwen-sdk-')));
  const [home, work] = [join(root, 'home'), join(root, 'work')];
  mkdirSync(home);
  mkdirSync(work);
  const script = join(root, 'script.json');
  writeFileSync(script, JSON.stringify({ loop, replies: typeof replies === 'function' ? replies(work) : replies }));
  const server = spawn(process.env.MOCK_MODEL_BIN, ['--script', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { value: line } = await createInterface(server.stdout)[Symbol.asyncIterator]().next();
  const { base_url: url, origin } = JSON.parse(line);
  const control = async (path, method = 'GET') => {
    const answer = await fetch(`${origin}/control/${path}`, { method });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };
  const requests = async () => (await control('requests')).map((request) => request.body);
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(OPENAI|ANTHROPIC|DASHSCOPE|QWEN|CLAUDE|NODE_TEST)_/.test(name)),
  );
  t.after(async () => {
    await control('reset', 'POST');
    server.stdin.end();
    await new Promise((done) => server.once('exit', done));
    // The SDKs close a query without waiting for the program, which has its last lines to write.
    await until('no process of the program is left', () => !children().length);
    rmSync(root, { recursive: true, force: true });
  });
  return {
    home,
    work,
    env: {
      ...clean,
      HOME: home,
      QWEN_HOME: join(home, '.qwen'),
      CLAUDE_CONFIG_DIR: join(home, '.claude'),
      OPENAI_BASE_URL: url,
      OPENAI_API_KEY: 'sk-test',
      OPENAI_MODEL: 'mock',
    },
    open: (name) => control(`open/${name}`, 'POST'),
    reached: (name) => control(`reached/${name}`),
    gone: (number) => control(`gone/${number}`),
    requests,
    messages: async (number = -1) => (await requests()).at(number).messages,
    tools: async (number = -1) => ((await requests()).at(number).tools ?? []).map((tool) => tool.function.name),
    system: async (number = -1) =>
      (await requests()).at(number).messages.filter((m) => m.role === 'system').map(textOf).join(''),
    results: async (number = -1) =>
      (await requests()).at(number).messages.filter((m) => m.role === 'tool').map(textOf),
    history: async (number = -1) =>
      (await requests()).at(number).messages.filter((m) => m.role === 'user' || m.role === 'assistant').map(textOf),
  };
}

/** The processes of this one that run the program under test. */
export const children = () =>
  running((pid) => readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${process.pid}\n`));

/** The processes that run the program under test and for which `holds` is true. */
export function running(holds) {
  const wanted = realpathSync(binary);
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readlinkSync(`/proc/${pid}/exe`) === wanted && holds(pid);
    } catch {
      return false;
    }
  });
}

/** The processes on this machine that sleep so many seconds. */
export function sleeping(nap) {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1') === `sleep\0${nap}\0`;
    } catch {
      return false;
    }
  });
}

/** Waits until something is so, looking again and again; at most half a minute. */
export async function until(what, holds) {
  const end = Date.now() + 30_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`it never came that ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

/** Everything that an iteration gives. */
export async function all(iterable) {
  const messages = [];
  for await (const message of iterable) messages.push(message);
  return messages;
}

/** A line of the user. */
export const user = (content) => ({ type: 'user', session_id: '', message: { role: 'user', content }, parent_tool_use_id: null });

/** A promise with its key. */
export function signal() {
  let open;
  const promise = new Promise((resolve) => (open = resolve));
  return { promise, open };
}

export const result = (messages) => {
  const ends = messages.filter((m) => m.type === 'result');
  if (ends.length !== 1) throw new Error(`${ends.length} results in ${JSON.stringify(messages).slice(0, 2000)}`);
  return ends[0];
};

export const blocks = (messages, role, type) =>
  messages.filter((m) => m.type === role).flatMap((m) => (Array.isArray(m.message.content) ? m.message.content : [])).filter((b) => b.type === type);

export const text = (messages) => blocks(messages, 'assistant', 'text').map((b) => b.text).join('');
