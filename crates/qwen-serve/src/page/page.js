// The page: sessions, a live transcript, approvals, a prompt. Foreign text only ever becomes text nodes.
import { ApprovalQueue } from '/page/approvals.js';
import { get, request, setToken, stream } from '/page/client.js';
import { element, visible } from '/page/markdown.js';
import { Replay } from '/page/replay.js';
import { Transcript, promptText } from '/page/transcript.js';

const $ = (id) => document.getElementById(id);

const panels = { plan: $('plan'), agents: $('agents'), thoughts: $('thoughts'), usage: $('usage') };
const transcript = new Transcript($('transcript'), panels, (text) => { $('announcer').textContent = text; });
const replay = new Replay($('recording'), transcript, () => current && open(current));
const queue = new ApprovalQueue($('approvals'), attempt, refresh);

let current = null;
let following = null;
/** The texts of prompts, to show those that wait. */
const prompts = new Map();
const titles = new Map();

function report(error) {
  $('error').textContent = error ? error.message : '';
}

async function attempt(work) {
  try {
    report(null);
    return await work();
  } catch (error) {
    report(error);
  }
}

async function refresh() {
  const [{ sessions }, { approvals }, { has_bus: hasBus, nodes }] =
    await Promise.all([get('/api/sessions'), get('/api/approvals'), get('/api/nodes')]);
  $('nodes').hidden = !hasBus;
  $('node-list').replaceChildren(...nodes.map(machine));
  titles.clear();
  for (const { id, title } of sessions) titles.set(id, title || id);
  const focused = document.activeElement?.dataset?.id;
  $('sessions').replaceChildren(...sessions.map(item));
  if (focused) document.querySelector(`#sessions [data-id="${CSS.escape(focused)}"]`)?.focus();
  const session = sessions.find(({ id }) => id === current);
  $('title').textContent = session ? visible(session.title || session.id) : 'No session';
  $('status').textContent = session?.status ?? '';
  $('status').className = session ? `chip ${session.status}` : '';
  for (const id of ['rename', 'fork', 'replay', 'delete', 'mode', 'model', 'cancel', 'steer']) $(id).disabled = !session;
  if (session && document.activeElement !== $('mode')) $('mode').value = session.mode ?? 'default';
  if (session && document.activeElement !== $('model')) $('model').value = session.model ?? '';
  $('queue').replaceChildren(...(session?.queued ?? []).map(waiting));
  const fresh = queue.show(approvals, current, titles);
  for (const { tool, session_id: id } of fresh) {
    $('announcer').textContent = `${visible(tool.name)} needs permission`;
    notify(`${tool.name} needs permission`, titles.get(id) ?? '', id);
  }
  document.title = approvals.length ? `(${approvals.length}) qwen` : 'qwen';
}

/** A node of the bus. */
function machine({ name, is_live: isLive, draining, sessions, free }) {
  const state = isLive ? (draining ? 'draining' : `${sessions} sessions, ${free} free`) : 'away';
  return element('li', '', element('span', 'name', visible(name)), element('span', 'where', state));
}

function item(session) {
  const status = element('span', `chip ${session.status}`, session.status);
  status.hidden = session.status === 'idle';
  const where = element('span', 'where', visible(session.workspace.split('/').slice(-2).join('/')));
  const button = element('button', '', element('span', 'name', visible(session.title || session.id)), status, where);
  button.type = 'button';
  button.title = visible(session.workspace);
  button.setAttribute('aria-current', String(session.id === current));
  button.dataset.id = session.id;
  button.addEventListener('click', () => open(session.id));
  return element('li', '', button);
}

function waiting(id) {
  const button = element('button', '', 'Withdraw');
  button.type = 'button';
  button.addEventListener('click', () => attempt(async () => {
    await request('DELETE', `/api/sessions/${current}/prompts/${encodeURIComponent(id)}`);
    await refresh();
  }));
  return element('li', '', 'Waits:', element('span', '', visible(prompts.get(id) ?? id)), button);
}

function notify(title, body, id) {
  if (!document.hidden || $('notify').getAttribute('aria-pressed') !== 'true') return;
  const shown = new Notification(visible(title).slice(0, 100), { body: visible(body).slice(0, 200), tag: id });
  shown.addEventListener('click', () => {
    window.focus();
    open(id);
  });
}

async function open(id) {
  current = id;
  following?.abort();
  following = new AbortController();
  const { signal } = following;
  replay.stop();
  $('recording').hidden = true;
  $('composer').hidden = false;
  showMenu(false);
  transcript.clear();
  await attempt(refresh);
  let last = '0';
  while (!signal.aborted) {
    try {
      for await (const event of stream(`/api/sessions/${id}/events`, last, signal)) {
        if (event.id) last = event.id;
        if (event.name === 'deleted') return;
        const { data } = event;
        if (data.value?.kind === 'prompt') prompts.set(data.value.prompt_id, promptText(data.value.parts));
        if (event.name === 'snapshot') transcript.restart(data);
        else transcript.take(data);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 404) return report(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/** Shows the session from its beginning, with a slider. */
async function record() {
  following?.abort();
  const { last_event_id: last } = await get(`/api/sessions/${current}`);
  const reading = new AbortController();
  const lines = [];
  if (last > 0) {
    for await (const event of stream(`/api/sessions/${current}/events`, '0', reading.signal)) {
      if (!event.name) lines.push(event.data);
      if (Number(event.id) >= last) break;
    }
    reading.abort();
  }
  $('composer').hidden = true;
  replay.open(lines);
}

async function watch() {
  let last = null;
  let due = null;
  for (;;) {
    try {
      // What happened before the stream was open is read after it.
      for await (const event of stream('/api/events', last, undefined, () => attempt(refresh))) {
        if (event.id) last = event.id;
        const { data } = event;
        if (data.metadata?.turn) notify(`The turn ended: ${data.metadata.turn.status}`, titles.get(data.session_id) ?? '', data.session_id);
        const matters = event.name || data.metadata || data.value || data.type?.startsWith('control_');
        if (matters && !due) {
          due = setTimeout(() => {
            due = null;
            attempt(refresh);
          }, 50);
        }
      }
    } catch (error) {
      if (error.status === 401) return showLogin('The token is wrong.');
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await attempt(refresh);
  }
}

async function submit(path) {
  const prompt = $('prompt').value;
  if (!prompt.trim()) return;
  await attempt(async () => {
    if (!current) await create();
    await request('POST', `/api/sessions/${current}/${path}`, { prompt });
    $('prompt').value = '';
    await refresh();
  });
}

async function create() {
  const chosen = { workspace: $('workspace').value || undefined, agent: $('agent').value || undefined };
  const { id } = await request('POST', '/api/sessions', chosen);
  open(id);
  $('prompt').focus();
}

/** Asks for a text, or for confirmation if `value` is null. Null if the user goes back. */
function ask(question, value = null) {
  $('question').textContent = question;
  $('answer').hidden = value === null;
  $('answer').value = value ?? '';
  $('dialog').returnValue = '';
  $('dialog').showModal();
  return new Promise((resolve) => {
    $('dialog').addEventListener('close', () => resolve($('dialog').returnValue === 'ok' ? $('answer').value : null), { once: true });
  });
}

async function rename() {
  const title = await ask('The name of the session', titles.get(current));
  if (title === null) return;
  await request('PATCH', `/api/sessions/${current}`, { title });
  await refresh();
}

async function remove() {
  if (await ask('Delete the session with its history?') === null) return;
  await request('DELETE', `/api/sessions/${current}`);
  current = null;
  following?.abort();
  transcript.clear();
  await refresh();
}

function showMenu(isOpen) {
  document.querySelector('nav').classList.toggle('open', isOpen);
  $('menu').setAttribute('aria-expanded', String(isOpen));
}

function showLogin(message) {
  $('app').hidden = true;
  $('login').hidden = false;
  $('login-error').textContent = message ?? '';
}

async function showOptions() {
  const { workspaces, agents } = await get('/api/capabilities');
  const option = (value) => {
    const made = element('option', '', visible(value));
    made.value = value;
    return made;
  };
  $('workspace').replaceChildren(...workspaces.map(option));
  $('agent').replaceChildren(...agents.map(option));
}

async function start() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (fragment.has('token')) {
    setToken(fragment.get('token'));
    history.replaceState(null, '', location.pathname);
  }
  try {
    await Promise.all([refresh(), showOptions()]);
  } catch (error) {
    return showLogin(error.status === 401 && fragment.has('token') ? 'The token is wrong.' : '');
  }
  $('login').hidden = true;
  $('app').hidden = false;
  watch();
  const first = document.querySelector('#sessions button');
  if (first) open(first.dataset.id);
}

const onClick = (id, work) => $(id).addEventListener('click', () => attempt(work));

$('login').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken($('token').value);
  $('token').value = '';
  start();
});
$('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  submit('prompts');
});
$('prompt').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit('prompts');
  }
});
onClick('new', create);
onClick('steer', () => submit('steer'));
onClick('cancel', () => current && request('POST', `/api/sessions/${current}/cancel`, {}));
onClick('rename', rename);
onClick('delete', remove);
onClick('replay', record);
onClick('fork', async () => open((await request('POST', `/api/sessions/${current}/fork`, {})).id));
onClick('menu', () => showMenu(!document.querySelector('nav').classList.contains('open')));
onClick('details', () => {
  const isOpen = panels.plan.parentElement.classList.toggle('open');
  $('details').setAttribute('aria-expanded', String(isOpen));
});
onClick('notify', async () => {
  const isOn = $('notify').getAttribute('aria-pressed') !== 'true' && await Notification.requestPermission() === 'granted';
  $('notify').setAttribute('aria-pressed', String(isOn));
});
$('mode').addEventListener('change', () => attempt(() => request('PATCH', `/api/sessions/${current}`, { mode: $('mode').value })));
$('model').addEventListener('change', () => $('model').value && attempt(() => request('PATCH', `/api/sessions/${current}`, { model: $('model').value })));
document.querySelector('main').addEventListener('pointerdown', (event) => event.target.closest('#menu') || showMenu(false));
start();
