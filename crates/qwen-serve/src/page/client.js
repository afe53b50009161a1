// Requests with the token, and event streams over fetch: EventSource cannot send headers.
const KEY = 'qwen.token';

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

async function send(method, path, body, headers = {}, signal = undefined) {
  const authorization = `Bearer ${sessionStorage.getItem(KEY) ?? ''}`;
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(path, {
    method, signal, headers: { authorization, ...json, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: { message: `HTTP ${response.status}` } }));
    throw Object.assign(new Error(error.message), { status: response.status });
  }
  return response;
}

export async function request(method, path, body) {
  const response = await send(method, path, body);
  return response.status === 204 ? null : response.json();
}

export const get = (path) => request('GET', path);

/** The events of a stream after an id. `onOpen` is called once no further event can be missed. */
export async function* stream(path, after, signal = undefined, onOpen = () => {}) {
  const headers = after === null ? {} : { 'last-event-id': after };
  const response = await send('GET', path, undefined, headers, signal);
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const pieces = text.split('\n\n');
    text = pieces.pop();
    for (const piece of pieces) {
      const event = { id: null, name: null, data: null };
      for (const line of piece.split('\n')) {
        if (line.startsWith('id: ')) event.id = line.slice(4);
        else if (line.startsWith('event: ')) event.name = line.slice(7);
        else if (line.startsWith('data: ')) event.data = JSON.parse(line.slice(6));
      }
      if (event.data) yield event;
    }
  }
}
