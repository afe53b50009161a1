// Editors that speak the Agent Client Protocol, through the two published adapters around the Claude CLI.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { editor } from './acp.mjs';
import { call, gate, place, running, say, until } from '../model.mjs';

const entry = (name) => join(import.meta.dirname, '../../node_modules', name, 'dist/index.js');

for (const name of ['@agentclientprotocol/claude-agent-acp', '@zed-industries/claude-agent-acp']) {
  test(`${name}: a turn is answered in pieces and ends`, async (t) => {
    const at = await place(t, [say('Hello', ' there.')]);
    const client = await editor(t, entry(name), at).open();
    assert(client.session.modes.availableModes.length > 1);
    assert.equal((await client.prompt('hi')).stopReason, 'end_turn');
    assert.equal(client.said(), 'Hello there.');
    // What the adapter asks the program besides, such as 'auth status', is no prompt.
    assert.equal((await at.requests()).length, 1);
  });

  test(`${name}: an edit is asked about with its path and both texts, and runs when allowed`, async (t) => {
    const at = await place(t, (work) => {
      const file_path = join(work, 'notes.txt');
      writeFileSync(file_path, 'old\n');
      const edit = { file_path, old_string: 'old', new_string: 'new' };
      return [say(call('Read', { file_path })), say(call('Edit', edit)), say('done')];
    });
    const client = await editor(t, entry(name), at).open();
    assert.equal((await client.prompt('edit it')).stopReason, 'end_turn');
    const [question] = client.questions;
    assert.equal(question.toolCall.kind, 'edit');
    const diff = question.toolCall.content.find((part) => part.type === 'diff');
    assert.deepEqual([diff.path, diff.oldText, diff.newText], [join(at.work, 'notes.txt'), 'old', 'new']);
    assert.deepEqual(question.toolCall.locations.map((place) => place.path), [join(at.work, 'notes.txt')]);
    assert.equal(readFileSync(join(at.work, 'notes.txt'), 'utf8'), 'new\n');
    const states = client.updates.filter((u) => u.sessionUpdate === 'tool_call_update').map((u) => u.status);
    assert(states.includes('completed'), JSON.stringify(states));
  });

  test(`${name}: a rejected command does not run`, async (t) => {
    const at = await place(t, [say(call('Bash', { command: 'touch made', description: 'make a file' })), say('done')]);
    const client = await editor(t, entry(name), at, () => 'reject_once').open();
    await client.prompt('make it');
    assert.equal(client.questions.length, 1);
    assert.equal(client.questions[0].toolCall.kind, 'execute');
    assert(!existsSync(join(at.work, 'made')));
    assert(client.updates.some((u) => u.sessionUpdate === 'tool_call_update' && u.status === 'failed'));
  });

  test(`${name}: a turn can be cancelled and the session goes on`, async (t) => {
    const at = await place(t, [say('one', gate('held'), 'two'), say('again')]);
    const client = await editor(t, entry(name), at).open();
    const turn = client.prompt('go');
    await client.update((update) => update.sessionUpdate === 'agent_message_chunk');
    client.notify('session/cancel', { sessionId: client.session.sessionId });
    assert.equal((await turn).stopReason, 'cancelled');
    // Zed's adapter returns at the result and takes the state that follows it, idle, for the end of the next prompt.
    if (name.startsWith('@zed-industries')) return;
    assert.equal((await client.prompt('more')).stopReason, 'end_turn');
    assert.match(client.said(), /again$/);
  });

  test(`${name}: the mode can be changed`, async (t) => {
    const at = await place(t, [say(call('Write', { file_path: 'made', content: 'text' })), say('done')]);
    const client = await editor(t, entry(name), at).open();
    await client.request('session/set_mode', { sessionId: client.session.sessionId, modeId: 'acceptEdits' });
    await client.prompt('make it');
    assert.deepEqual(client.questions, []);
    assert(existsSync(join(at.work, 'made')));
  });

  test(`${name}: a stored session is loaded with its messages and goes on`, async (t) => {
    const at = await place(t, [say('I will.'), say('42')]);
    const first = await editor(t, entry(name), at).open();
    await first.prompt('Remember 42.');
    await first.close();
    await until('the first program is gone', () => !running((pid) => readlinkSync(`/proc/${pid}/cwd`) === at.work).length);
    const second = editor(t, entry(name), at);
    await second.initialize();
    await second.request('session/load', { sessionId: first.session.sessionId, cwd: at.work, mcpServers: [] });
    assert.equal(second.said(), 'I will.');
    second.session = first.session;
    await second.prompt('Which?');
    assert.deepEqual(await at.history(), ['Remember 42.', 'I will.', 'Which?']);
  });

  test(`${name}: a list of tasks is shown as a plan`, async (t) => {
    const todos = [{ content: 'first', status: 'in_progress', activeForm: 'doing the first' }];
    const at = await place(t, [say(call('TodoWrite', { todos })), say('done')]);
    const client = await editor(t, entry(name), at).open();
    await client.prompt('plan it');
    const plan = await client.update((update) => update.sessionUpdate === 'plan');
    assert.equal(plan.entries[0].status, 'in_progress');
    assert.match(plan.entries[0].content, /first/);
  });
}
