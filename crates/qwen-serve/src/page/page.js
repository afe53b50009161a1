// The page: sessions, a live transcript, approvals, a prompt. Foreign text only ever becomes text nodes.
import { get, request, stream, setToken } from '/page/client.js';
import { Transcript, visible } from '/page/transcript.js';

const $ = (id) => document.getElementById(id);

/** How long an approval ignores input after it appears: keys that were typed for something else. */
const SETTLE = 500;

let current = null;
let following = null;
const shownApprovals = new Map();

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
  const [{ sessions }, { approvals }] = await Promise.all([get('/api/sessions'), get('/api/approvals')]);
  const items = sessions.map((session) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = `${session.status === 'idle' ? '' : session.status === 'waiting' ? '● ' : '… '}${visible(session.title || session.id)}`;
    button.title = session.workspace;
    button.setAttribute('aria-current', String(session.id === current));
    button.dataset.id = session.id;
    button.addEventListener('click', () => open(session.id));
    const item = document.createElement('li');
    item.append(button);
    return item;
  });
  $('sessions').replaceChildren(...items);
  const session = sessions.find(({ id }) => id === current);
  $('title').textContent = session ? visible(session.title || session.id) : 'No session';
  $('status').textContent = session ? session.status : '';
  if (session && document.activeElement !== $('mode')) $('mode').value = session.mode ?? 'default';
  if (session && document.activeElement !== $('model')) $('model').value = session.model ?? '';
  showApprovals(approvals);
}

function showApprovals(approvals) {
  const open = new Set(approvals.map(({ id }) => id));
  for (const [id, element] of shownApprovals) {
    if (!open.has(id)) {
      element.remove();
      shownApprovals.delete(id);
    }
  }
  for (const approval of approvals) {
    if (!shownApprovals.has(approval.id)) {
      const element = approvalElement(approval);
      shownApprovals.set(approval.id, element);
      $('approvals').append(element);
    }
  }
}

function approvalElement({ id, session_id: session, tool, metadata }) {
  const appeared = performance.now();
  const element = document.createElement('div');
  element.className = 'approval';
  element.setAttribute('role', 'group');
  element.setAttribute('aria-label', `Permission for ${tool.name}`);
  const heading = document.createElement('strong');
  heading.textContent = `${tool.name} needs permission`;
  const reason = document.createElement('div');
  reason.textContent = visible(metadata?.reason ?? '');
  const what = document.createElement('pre');
  what.textContent = visible(tool.arguments?.command ?? JSON.stringify(tool.arguments, null, 2));
  element.append(heading, reason, what);
  for (const [decision, label] of [['allow', 'Allow'], ['deny', 'Deny']]) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = label;
    button.dataset.decision = decision;
    button.addEventListener('click', () => {
      if (performance.now() - appeared < SETTLE) return;
      attempt(async () => {
        await request('POST', `/api/approvals/${id}`, { decision });
        await refresh();
      });
    });
    element.append(button, ' ');
  }
  if (session !== current) {
    const place = document.createElement('span');
    place.textContent = 'in another session';
    element.append(place);
  }
  return element;
}

async function open(id) {
  current = id;
  following?.abort();
  following = new AbortController();
  const { signal } = following;
  const transcript = new Transcript($('transcript'));
  await attempt(refresh);
  let last = '0';
  while (!signal.aborted) {
    try {
      for await (const event of stream(`/api/sessions/${id}/events`, last, signal)) {
        if (event.id) last = event.id;
        if (event.name === 'deleted') return;
        if (event.name === 'snapshot') transcript.restart(event.data);
        else transcript.take(event.data);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 404) return report(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
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
  const { id } = await request('POST', '/api/sessions', {});
  open(id);
  $('prompt').focus();
}

function showLogin(message) {
  $('app').hidden = true;
  $('login').hidden = false;
  $('login-error').textContent = message ?? '';
}

async function start() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (fragment.has('token')) {
    setToken(fragment.get('token'));
    history.replaceState(null, '', location.pathname);
  }
  try {
    await refresh();
  } catch (error) {
    return showLogin(error.status === 401 && fragment.has('token') ? 'The token is wrong.' : '');
  }
  $('login').hidden = true;
  $('app').hidden = false;
  watch();
  const first = document.querySelector('#sessions button');
  if (first) open(first.dataset.id);
}

$('login').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken($('token').value);
  $('token').value = '';
  start();
});
$('new').addEventListener('click', () => attempt(create));
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
$('steer').addEventListener('click', () => submit('steer'));
$('cancel').addEventListener('click', () => current && attempt(() => request('POST', `/api/sessions/${current}/cancel`, {})));
$('mode').addEventListener('change', () => current && attempt(() => request('PATCH', `/api/sessions/${current}`, { mode: $('mode').value })));
$('model').addEventListener('change', () => current && $('model').value && attempt(() => request('PATCH', `/api/sessions/${current}`, { model: $('model').value })));
start();
