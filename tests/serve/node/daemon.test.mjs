// The routes of Qwen Code's `qwen serve`, through its own TypeScript client.
import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { randomUUID } from 'node:crypto';
import { DaemonClient, DaemonSessionClient } from '@qwen-code/sdk/daemon';

const url = process.env.QWEN_SERVE_URL;
const token = process.env.QWEN_SERVE_TOKEN;
const workspace = process.env.QWEN_SERVE_WORKSPACE;
const made = join(workspace, 'made.txt');
const client = new DaemonClient({ baseUrl: url, token });
const authorization = { authorization: `Bearer ${token}` };
const thread = () => DaemonSessionClient.createOrAttach(client, { workspaceCwd: workspace, sessionScope: 'thread' });
const text = (text) => ({ prompt: [{ type: 'text', text }] });

/** The events of a session after an id, up to the one that `last` accepts. */
async function events(session, after, last) {
  const abort = new AbortController();
  const seen = [];
  for await (const event of client.subscribeEvents(session.sessionId, { lastEventId: after, clientId: session.clientId, signal: abort.signal })) {
    seen.push(event);
    if (last(event)) break;
  }
  abort.abort();
  return seen;
}

const isEnd = ({ type }) => type === 'turn_complete' || type === 'turn_error';
const said = (seen) => seen.map(({ data }) => data.update).filter((update) => update?.sessionUpdate === 'agent_message_chunk').map(({ content }) => content.text).join('');

test('health and capabilities', async () => {
  assert.equal((await client.health()).status, 'ok');
  const capabilities = await client.capabilities();
  assert.equal(capabilities.v, 1);
  assert.equal(capabilities.workspaceCwd, workspace);
  assert.ok(capabilities.transports.includes('rest'));
  for (const feature of ['session_scope_override', 'session_id_override', 'prompt_absolute_deadline', 'client_heartbeat']) {
    assert.ok(capabilities.features.includes(feature), feature);
  }
});

test('a prompt runs to its end', async () => {
  const session = await thread();
  assert.equal((await session.prompt(text('say hello'))).stopReason, 'end_turn');
  const seen = await events(session, 0, isEnd);
  assert.equal(said(seen), 'Hello from qwen.');
  assert.equal(seen[0].data.update.sessionUpdate, 'user_message_chunk');
  await session.close();
});

test('events are numbered without gaps, and name the prompt', async () => {
  const session = await thread();
  const { promptId, lastEventId } = await session.submitPrompt(text('list the files'));
  const seen = (await events(session, lastEventId, isEnd)).filter(({ id }) => id !== undefined);
  seen.forEach(({ id }, index) => assert.equal(id, lastEventId + 1 + index));
  assert.ok(seen.every((event) => event.promptId === promptId));
  const kinds = seen.map(({ data }) => data.update?.sessionUpdate).filter(Boolean);
  assert.deepEqual([...new Set(kinds)], ['user_message_chunk', 'agent_message_chunk', 'tool_call', 'tool_call_update']);
  await session.close();
});

for (const [option, exists] of [['proceed_once', true], ['cancel', false]]) {
  test(`a permission request is answered: ${option}`, async () => {
    rmSync(made, { force: true });
    const session = await thread();
    const { lastEventId } = await session.submitPrompt(text('make a file'));
    const asked = (await events(session, lastEventId, ({ type }) => type === 'permission_request')).at(-1).data;
    assert.equal(asked.toolCall.rawInput.command, 'touch made.txt');
    assert.ok(asked.options.some(({ optionId }) => optionId === option));
    assert.equal((await session.status()).isWaitingForPermission, true);
    const outcome = { outcome: { outcome: 'selected', optionId: option } };
    assert.equal(await session.respondToSessionPermission(asked.requestId, outcome), true);
    assert.equal(await session.respondToSessionPermission(asked.requestId, outcome), false, 'the first answer wins');
    const seen = await events(session, lastEventId, isEnd);
    const resolved = seen.find(({ type }) => type === 'permission_resolved').data;
    assert.deepEqual(resolved, { requestId: asked.requestId, outcome: outcome.outcome, voterClientId: session.clientId });
    assert.equal(existsSync(made), exists);
    await session.close();
  });
}

test('a turn is cancelled', async () => {
  const session = await thread();
  const { lastEventId } = await session.submitPrompt(text('write slowly'));
  await events(session, lastEventId, ({ data }) => data.update?.sessionUpdate === 'agent_message_chunk');
  await session.cancel();
  const seen = await events(session, lastEventId, isEnd);
  assert.equal(seen.at(-1).data.stopReason, 'cancelled');
  assert.ok(seen.some(({ type }) => type === 'prompt_cancelled'));
  await session.close();
});

test('a deadline ends its prompt', async () => {
  const session = await thread();
  await assert.rejects(session.prompt({ ...text('write slowly'), deadlineMs: 300 }), /deadline/);
  await session.close();
});

test('a failed turn is a turn error', async () => {
  const session = await thread();
  await assert.rejects(session.prompt(text('fail please')), /broken model/);
  await session.close();
});

test('clients of a workspace share a session, and a thread is separate', async () => {
  const one = await client.createOrAttachSession({ workspaceCwd: workspace });
  const two = await client.createOrAttachSession({ workspaceCwd: workspace });
  const other = await client.createOrAttachSession({ workspaceCwd: workspace, sessionScope: 'thread' });
  assert.equal(one.sessionId, two.sessionId);
  assert.equal(two.attached, true);
  assert.notEqual(one.clientId, two.clientId);
  assert.notEqual(other.sessionId, one.sessionId);
});

test('a session has the id that its client chooses, once', async () => {
  const sessionId = randomUUID();
  const session = await client.createOrAttachSession({ workspaceCwd: workspace, sessionScope: 'thread', sessionId });
  assert.equal(session.sessionId, sessionId);
  await assert.rejects(client.createOrAttachSession({ workspaceCwd: workspace, sessionScope: 'thread', sessionId }), ({ status, body }) => status === 409 && body.code === 'session_id_conflict');
});

test('a closed session is loaded with its history', async () => {
  const session = await thread();
  await session.prompt(text('say hello'));
  await session.close();
  await assert.rejects(client.sessionStatus(session.sessionId), ({ status }) => status === 404);
  const loaded = await client.loadSession(session.sessionId, { workspaceCwd: workspace });
  assert.equal(said(loaded.compactedReplay), 'Hello from qwen.');
  assert.deepEqual(loaded.liveJournal, []);
  assert.notEqual(loaded.eventEpoch, session.eventEpoch);
  const resumed = await client.resumeSession(session.sessionId, { workspaceCwd: workspace });
  assert.equal(resumed.compactedReplay, undefined);
  const again = new DaemonSessionClient({ client, session: resumed });
  assert.equal((await again.prompt(text('and again'))).stopReason, 'end_turn');
});

test('a position of another epoch is reported', async () => {
  const session = await thread();
  await session.prompt(text('say hello'));
  const seen = [];
  for await (const event of client.subscribeEvents(session.sessionId, { lastEventId: 3, epoch: 'another' })) {
    seen.push(event);
    if (event.type === 'replay_complete') break;
  }
  assert.equal(seen[0].type, 'state_resync_required');
  assert.equal(seen[0].data.reason, 'epoch_reset');
  assert.equal(seen.at(-1).data.replayedCount, seen.length - 2);
});

test('a session is renamed, configured and listed', async () => {
  const session = await thread();
  assert.deepEqual(await client.updateSessionMetadata(session.sessionId, { displayName: 'Named' }), { displayName: 'Named' });
  assert.equal((await client.setSessionApprovalMode(session.sessionId, 'plan')).previous, 'default');
  assert.equal((await session.setModel('other')).modelId, 'other');
  const { sessions } = await client.listWorkspaceSessionsPage(workspace, { pageSize: 1000 });
  assert.equal(sessions.find(({ sessionId }) => sessionId === session.sessionId).displayName, 'Named');
  const page = await client.listWorkspaceSessionsPage(workspace, { pageSize: 1 });
  assert.equal(page.sessions.length, 1);
  assert.ok(page.nextCursor);
  const types = (await events(session, 0, ({ type }) => type === 'replay_complete')).map(({ type }) => type);
  assert.deepEqual(types, ['session_metadata_updated', 'approval_mode_changed', 'model_switched', 'replay_complete']);
  await assert.rejects(client.setSessionApprovalMode(session.sessionId, 'auto'), ({ status, body }) => status === 400 && body.code === 'invalid_approval_mode');
});

test('a heartbeat names the client, and an unknown client is refused', async () => {
  const session = await thread();
  const beat = await session.heartbeat();
  assert.deepEqual([beat.sessionId, beat.clientId], [session.sessionId, session.clientId]);
  await assert.rejects(client.heartbeat(session.sessionId, 'someone-else'), ({ status, body }) => status === 400 && body.code === 'invalid_client_id');
  await session.detach();
  await assert.rejects(client.heartbeat(session.sessionId, session.clientId));
});

test('a message joins the running turn; an idle session takes none', async () => {
  const session = await thread();
  assert.deepEqual(await client.enqueueMidTurnMessage(session.sessionId, 'hello'), { accepted: false, reason: 'session_idle' });
  const { lastEventId } = await session.submitPrompt(text('write slowly'));
  await events(session, lastEventId, ({ data }) => data.update?.sessionUpdate === 'agent_message_chunk');
  assert.equal((await client.enqueueMidTurnMessage(session.sessionId, 'hello', { messageId: 'm1' })).messageId, 'm1');
  await session.cancel();
});

test('errors have the shape of the protocol', async () => {
  const get = (path, headers = {}) => fetch(`${url}${path}`, { headers });
  const unauthorised = await get('/capabilities');
  assert.deepEqual([unauthorised.status, await unauthorised.json()], [401, { error: 'Unauthorized' }]);
  const foreign = await get('/capabilities', { ...authorization, origin: 'https://evil.example' });
  assert.deepEqual([foreign.status, await foreign.json()], [403, { error: 'Request denied by CORS policy' }]);
  const missing = await get('/session/none/status', authorization);
  assert.equal((await missing.json()).code, 'session_not_found');
  const post = (path, body) => fetch(`${url}${path}`, { method: 'POST', headers: { ...authorization, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const code = async (path, body) => (await (await post(path, body)).json()).code;
  assert.equal(await code('/session', { cwd: '/etc' }), 'workspace_mismatch');
  assert.equal(await code('/session', { cwd: workspace, sessionScope: 'other' }), 'invalid_session_scope');
  assert.equal(await code('/session', { cwd: workspace, sessionId: '../x' }), 'invalid_session_id');
  const session = await thread();
  assert.equal(await code(`/session/${session.sessionId}/prompt`, { ...text('x'), deadlineMs: -1 }), 'invalid_deadline_ms');
  assert.equal(await code(`/session/${session.sessionId}/prompt`, { prompt: [] }), 'invalid_prompt');
  const queued = await get(`/session/${session.sessionId}/events?maxQueued=3`, authorization);
  assert.equal((await queued.json()).code, 'invalid_max_queued');
});
