// A session's events as elements. Everything that a model, a tool or a user wrote becomes a text node.

/** The most text that one entry shows. */
const LIMIT = 200_000;

/** Makes characters visible that would hide or reorder text. */
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `\\u${character.codePointAt(0).toString(16).padStart(4, '0')}`);
}

export class Transcript {
  #root;
  #message = null;
  #thought = null;
  #calls = new Map();

  constructor(root) {
    this.#root = root;
    root.replaceChildren();
  }

  /** Begins with a snapshot of the conversation. */
  restart({ messages }) {
    this.#root.replaceChildren();
    this.#calls.clear();
    for (const { role, content } of messages) {
      if (typeof content === 'string' && content) this.#add(role === 'user' ? 'user' : role === 'tool' ? 'call' : 'text', content);
    }
  }

  /** Takes one line of the stream. */
  take(line) {
    const choice = line.choices?.[0];
    if (choice) this.#chunk(choice, line);
    else if (line.type === 'x-qwen-thought') this.#thought = this.#append(this.#thought, 'thought', line.description);
    else if (line.type === 'x-qwen-tool-display') this.#display(line);
    else if (line.type === 'x-qwen-terminal' && line.tool_call_id) this.#output(line);
    else if (line.value?.kind === 'prompt') this.#add('user', promptText(line.value.parts));
    else if (line.value?.kind === 'approval_decided') this.#add('note', `Permission: ${line.value.decision}`);
    else if (line.value?.kind === 'prompt_lost') this.#add('note', 'A prompt was lost when the server was killed.');
  }

  #chunk({ delta, finish_reason: finish }, line) {
    if (delta.role) {
      this.#message = null;
      this.#thought = null;
    }
    if (delta.content) this.#message = this.#append(this.#message, 'text', delta.content);
    for (const call of delta.tool_calls ?? []) {
      if (call.id) {
        const element = this.#add('call', `${call.function.name} `);
        this.#calls.set(call.id, element);
        this.#calls.set(call.index, element);
      }
      this.#append(this.#calls.get(call.index), 'call', call.function.arguments ?? '');
    }
    const turn = line.metadata?.turn;
    if (turn) {
      const { prompt_tokens: read = 0, completion_tokens: written = 0 } = line.usage ?? {};
      this.#add('note', `${turn.status} · ${read} tokens read, ${written} written · ${turn.tool_calls} calls`);
    }
    if (line.metadata?.error) this.#add('note', line.metadata.error.message);
    if (finish) this.#message = null;
  }

  #display({ tool_call_id: id, status, result_display: result }) {
    const element = this.#calls.get(id);
    if (!element || !result) return;
    const text = result.text ?? result.diff ?? JSON.stringify(result, null, 2);
    this.#append(element, 'call', `\n[${status}]\n${text}`);
  }

  #output({ tool_call_id: id, text }) {
    const element = this.#calls.get(id);
    if (element) this.#append(element, 'call', `\n${text}`);
  }

  #add(kind, text) {
    const element = document.createElement('div');
    element.className = `entry ${kind}`;
    const follows = this.#root.scrollHeight - this.#root.scrollTop - this.#root.clientHeight < 80;
    this.#root.append(element);
    this.#append(element, kind, text);
    if (follows) this.#root.scrollTop = this.#root.scrollHeight;
    return element;
  }

  /** Appends text to an entry, which is created if there is none. */
  #append(element, kind, text) {
    if (!element) return this.#add(kind, text);
    const room = LIMIT - Number(element.dataset.length ?? 0);
    if (room > 0) {
      const shown = visible(text).slice(0, room);
      element.append(shown, shown.length === room ? '…' : '');
      element.dataset.length = String(LIMIT - room + shown.length);
    }
    return element;
  }
}

function promptText(parts) {
  return typeof parts === 'string' ? parts : parts.map((part) => part.text ?? '[attachment]').join(' ');
}
