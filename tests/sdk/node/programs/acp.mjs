// An editor's side of the Agent Client Protocol: JSON-RPC, one message per line, over the adapter's standard streams.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { binary } from '../model.mjs';

/** Starts the adapter at `entry`. `answer` decides about a permission request and returns the kind of option to select. */
export function editor(t, entry, at, answer = () => 'allow_once') {
  const adapter = spawn(process.execPath, [entry], {
    cwd: at.work,
    env: { ...at.env, CLAUDE_CODE_EXECUTABLE: binary },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const [updates, questions, waiting, watchers] = [[], [], new Map(), []];
  const send = (message) => adapter.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  createInterface(adapter.stdout).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method === undefined) {
      const { resolve, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) reject(new Error(JSON.stringify(message.error)));
      else resolve(message.result);
    } else if (message.method === 'session/update') {
      updates.push(message.params.update);
      for (const watcher of watchers.splice(0)) watcher();
    } else if (message.method === 'session/request_permission') {
      questions.push(message.params);
      const kind = answer(message.params);
      const option = message.params.options.find((offered) => offered.kind === kind);
      const outcome = option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' };
      send({ id: message.id, result: { outcome } });
    } else if (message.id !== undefined) {
      send({ id: message.id, error: { code: -32601, message: `${message.method} is not supported` } });
    }
  });
  adapter.once('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`the adapter exited with ${code}`));
  });
  const exited = new Promise((done) => adapter.once('exit', done));
  const close = async () => {
    adapter.kill();
    await exited;
  };
  t.after(close);
  let last = 0;
  const request = (method, params) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      send({ id: last, method, params });
    });
  return {
    updates,
    questions,
    request,
    close,
    notify: (method, params) => send({ method, params }),
    /** Resolves once an update for which `holds` is true has arrived. */
    async update(holds) {
      while (!updates.some(holds)) await new Promise((done) => watchers.push(done));
      return updates.find(holds);
    },
    initialize: () =>
      request('initialize', {
        protocolVersion: 1,
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } },
      }),
    /** The handshake and a new session in the workspace. */
    async open() {
      await this.initialize();
      this.session = await request('session/new', { cwd: at.work, mcpServers: [] });
      return this;
    },
    prompt(text) {
      return request('session/prompt', { sessionId: this.session.sessionId, prompt: [{ type: 'text', text }] });
    },
    /** What the agent said, joined. */
    said: () =>
      updates
        .filter((update) => update.sessionUpdate === 'agent_message_chunk')
        .map((update) => update.content.text)
        .join(''),
  };
}
