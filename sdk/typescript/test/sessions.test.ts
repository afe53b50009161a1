import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { SessionStore } from '@qwen-agent/sdk';
import { call, gate, place, say, sdk } from './harness.js';

test('a session goes on in a new worker with its history', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const manager = at.manager();
  const first = await manager.createSession();
  await first.run('a');
  await first.close();
  const second = await manager.resumeSession(first.id);
  assert.equal(second.id, first.id);
  assert.equal((await second.run('b')).text, 'two');
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
});

test('what was acknowledged can be resumed after a quick end', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const manager = at.manager();
  const first = await manager.createSession();
  await first.run('a');
  process.kill(first.pid ?? 0, 'SIGKILL');
  await first.close();
  const second = await manager.resumeSession(first.id);
  await second.run('b');
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
});

test('an id that nobody knows is an error and not an empty session', async (t) => {
  const at = await place(t, []);
  await assert.rejects(at.manager().resumeSession('no-such-session'), (error: Error & { code?: string }) => {
    assert.equal(error.code, 'unknown_session');
    assert.match(error.message, /no-such-session/);
    return true;
  });
});

test('a session that is open already is an error, and the open session continues', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const manager = at.manager();
  const first = await manager.createSession();
  await first.run('a');
  await assert.rejects(manager.resumeSession(first.id), { code: 'duplicate_session' });
  await assert.rejects(manager.createSession({ sessionId: first.id }), { code: 'duplicate_session' });
  assert.equal((await first.run('b')).text, 'two');
});

test('a fork has the history, an id of its own, and leaves the original as it is', async (t) => {
  const at = await place(t, [say('one'), say('in the fork'), say('in the original')]);
  const manager = at.manager();
  const original = await manager.createSession();
  await original.run('a');
  const fork = await manager.forkSession(original);
  assert.notEqual(fork.id, original.id);
  assert.equal((await fork.run('b')).text, 'in the fork');
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
  await original.run('c');
  assert.deepEqual(await at.history(), ['a', 'one', 'c']);
});

test('a fork can begin at an earlier prompt', async (t) => {
  const at = await place(t, [say('one'), say('two'), say('three')]);
  const original = await at.manager().createSession();
  const { promptId } = await original.run('a');
  await original.run('b');
  const fork = await original.fork({ at: promptId });
  await fork.run('c');
  assert.deepEqual(await at.history(), ['a', 'one', 'c']);
  await fork.close();
});

test('rewind puts files back to where they were before a prompt', async (t) => {
  const at = await place(t, [
    say(call('read_file', { file_path: 'notes.txt' })),
    say(call('write_file', { file_path: 'notes.txt', content: 'new' })),
    say('done'),
  ]);
  writeFileSync(join(at.work, 'notes.txt'), 'old');
  const session = await at.manager({ permissionMode: 'yolo' }).createSession();
  const { promptId } = await session.run('change it');
  assert.equal(readFileSync(join(at.work, 'notes.txt'), 'utf8'), 'new');
  const { filesChanged } = await session.rewindFiles(promptId);
  assert.equal(filesChanged.length, 1);
  assert.equal(readFileSync(join(at.work, 'notes.txt'), 'utf8'), 'old');
});

test('a settings profile takes the place of settings files and leaves nothing behind', async (t) => {
  const at = await place(t, [say('hi')]);
  mkdirSync(join(at.home, '.qwen'), { recursive: true });
  writeFileSync(join(at.home, '.qwen', 'settings.json'), JSON.stringify({ model: { name: 'from-user-settings' } }));
  const before = new Set(readdirSync(tmpdir()));
  const session = await at
    .manager({ env: { OPENAI_MODEL: undefined }, settingsProfile: { user: { general: {} }, overrides: { 'model.name': 'from-profile', 'model.baseUrl': at.env.OPENAI_BASE_URL } } })
    .createSession();
  const files = readdirSync(tmpdir()).filter((name) => name.startsWith('qwen-sdk-') && !before.has(name));
  const mine = files.map((name) => join(tmpdir(), name)).filter((path) => existsSync(join(path, 'profile.json')));
  for (const path of mine) assert.equal(statSync(path).mode & 0o077, 0);
  await session.run('hello');
  assert.equal((await at.requests())[0]?.model, 'from-profile');
  await session.close();
  for (const path of mine) assert.ok(!existsSync(path));
});

test('settings files count only when their source is named', async (t) => {
  const at = await place(t, [say('a'), say('b')]);
  mkdirSync(join(at.home, '.qwen'), { recursive: true });
  writeFileSync(join(at.home, '.qwen', 'settings.json'), JSON.stringify({ model: { name: 'from-user-settings' } }));
  const options = { env: { OPENAI_MODEL: undefined } };
  const manager = at.manager(options);
  const named = await manager.createSession({ settingSources: ['user'] });
  await named.run('hello');
  assert.equal((await at.requests())[0]?.model, 'from-user-settings');
  const plain = await manager.createSession();
  await plain.run('hello').catch(() => undefined);
  assert.notEqual((await at.requests())[1]?.model, 'from-user-settings');
});

test('rules for tools hold, with commas in them too', async (t) => {
  const at = await place(t, [say(call('write_file', { file_path: 'a,b.txt', content: 'x' }), call('write_file', { file_path: 'c.txt', content: 'x' })), say('done')]);
  const session = await at.manager({ allowedTools: ['Edit(/a,b.txt)'], disallowedTools: ['Edit(/c.txt)'] }).createSession();
  const result = await session.run('go');
  assert.ok(existsSync(join(at.work, 'a,b.txt')));
  assert.ok(!existsSync(join(at.work, 'c.txt')));
  assert.equal(result.permissionDenials.length, 1);
});

test('a store of the host gets every acknowledged line and brings a session back', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const kept = new Map<string, string>();
  const sessionStore: SessionStore = {
    load: (id) => Promise.resolve(kept.get(id)),
    append: (id, lines) => { kept.set(id, (kept.get(id) ?? '') + lines); return Promise.resolve(); },
  };
  const manager = at.manager({ sessionStore });
  const first = await manager.createSession();
  await first.run('a');
  assert.match(kept.get(first.id) ?? '', /"turn_end"/);
  await first.close();
  rmSync(join(at.home, '.qwen', 'sessions'), { recursive: true });
  const second = await manager.resumeSession(first.id);
  await second.run('b');
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
  for (const line of (kept.get(first.id) ?? '').trim().split('\n')) JSON.parse(line);
});

test('100 sessions run at once in one event loop', async (t) => {
  const at = await place(t, [say('hello')], { loop: true });
  const manager = at.manager({ timeouts: { start: 60_000 } });
  const sessions = await Promise.all(Array.from({ length: 100 }, () => manager.createSession()));
  const results = await Promise.all(sessions.map((session) => session.run('hi')));
  assert.ok(results.every(({ text }) => text === 'hello'));
  assert.equal(new Set(sessions.map(({ id }) => id)).size, 100);
  await manager.close();
});

test('manager.run answers one prompt and ends its worker', async (t) => {
  const at = await place(t, [say('42')]);
  const manager = at.manager();
  assert.equal((await manager.run('what?')).text, '42');
  await manager.close();
  await assert.rejects(manager.createSession(), { name: 'ClosedError' });
});

test('a session is disposed of with await using', async (t) => {
  const at = await place(t, [say('hi')]);
  let session: Awaited<ReturnType<ReturnType<typeof at.manager>['createSession']>>;
  {
    await using scoped = await at.manager().createSession();
    session = scoped;
    await scoped.run('hello');
  }
  await assert.rejects(session.run('again'), { name: 'ClosedError' });
});

test('the handshake tells protocol version and capabilities', async (t) => {
  const at = await place(t, []);
  const session = await at.manager().createSession();
  assert.equal(session.handshake?.protocolVersion, sdk.PROTOCOL_VERSION);
  assert.ok(session.handshake.capabilities.includes('can_use_tool'));
});

test('the manager closes the forks of its sessions too', async (t) => {
  const at = await place(t, [say('one')]);
  const manager = at.manager();
  const original = await manager.createSession();
  await original.run('a');
  const fork = await original.fork();
  await manager.close();
  await assert.rejects(fork.run('b'), { name: 'ClosedError' });
});

for (const whose of ['manager', 'session'] as const) {
  test(`an aborted signal of a ${whose} ends its turn with an AbortError and the session with it`, async (t) => {
    const at = await place(t, [say('begun ', gate('never'))]);
    const controller = new AbortController();
    const reason = new Error('enough');
    const manager = at.manager(whose === 'manager' ? { signal: controller.signal } : {});
    const session = await manager.createSession(whose === 'session' ? { signal: controller.signal } : {});
    const turn = session.run('long');
    await at.reached('never');
    controller.abort(reason);
    await assert.rejects(turn, (error: Error) => error.name === 'AbortError' && error.cause === reason);
    await assert.rejects(session.run('more'), { name: 'AbortError' });
    if (whose === 'manager') await assert.rejects(manager.createSession(), { name: 'AbortError' });
    await session.close();
  });
}
