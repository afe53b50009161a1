// A session's events as elements, and what they say about plan, sub-agents and usage.
import { diff, element, markdown, visible } from '/page/markdown.js';
import { ThoughtGraph } from '/page/thoughts.js';

/** The most text that one entry shows. */
const LIMIT = 200_000;

/** Up to this size, a message is shown formatted while it is written; a longer one, when it is complete. */
const FORMATTED = 20_000;

/** The milliseconds between two times that a growing message is formatted. */
const PAUSE = 80;

const STATUS = { pending: '…', confirming: 'waits', executing: 'runs', success: 'done', error: 'failed', canceled: 'cancelled' };

/** The places in which a session is shown: the transcript, and the panels beside it. */
export class Transcript {
  #root;
  #panels;
  #graph;
  #message = null;
  #thought = null;
  #calls = new Map();
  #agents = new Map();
  #turns = [];
  #announce;
  /** True while the end is shown: what is added then scrolls. */
  #follows = true;
  #scrolled = 0;

  constructor(root, panels, announce = () => {}) {
    this.#root = root;
    this.#panels = panels;
    this.#announce = announce;
    this.#graph = new ThoughtGraph(panels.thoughts);
    root.addEventListener('scroll', () => {
      const isAtEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 40;
      if (isAtEnd) this.#follows = true;
      else if (root.scrollTop < this.#scrolled) this.#follows = false;
      this.#scrolled = root.scrollTop;
    });
    // An approval that opens makes the transcript smaller.
    new ResizeObserver(() => this.#kept(() => {})).observe(root);
    this.clear();
  }

  clear() {
    this.#root.replaceChildren();
    this.#calls.clear();
    this.#agents.clear();
    this.#turns = [];
    this.#message = null;
    this.#thought = null;
    this.#follows = true;
    this.#graph.restart();
    this.#showPlan([]);
    this.#showAgents();
    this.#showUsage();
  }

  /** Begins with a snapshot of the conversation. */
  restart({ messages }) {
    this.clear();
    for (const { role, content } of messages) {
      if (typeof content !== 'string' || !content) continue;
      if (role === 'assistant') this.#finish(this.#add('text', content));
      else this.#add(role === 'user' ? 'user' : 'output', content);
    }
  }

  /** Takes one line of the stream. */
  take(line) {
    const nested = line.parent_tool_call_id;
    const choice = line.choices?.[0];
    if (nested && (choice || line.type === 'x-qwen-thought')) return;
    if (choice) this.#chunk(choice, line);
    else if (line.type === 'x-qwen-thought') this.#think(line);
    else if (line.type === 'x-qwen-tool-display') nested ? this.#nested(nested, line) : this.#display(line);
    else if (line.type === 'x-qwen-terminal' && line.tool_call_id) this.#output(line);
    else if (line.type === 'result/command') this.#add('note', commandText(line.result));
    else if (line.value?.kind === 'prompt') this.#prompt(line.value);
    else if (line.value?.kind === 'approval_decided') this.#add('note', `Permission: ${line.value.decision}`);
    else if (line.value?.kind === 'prompt_lost') this.#add('note', 'A prompt was lost when the server was killed.');
    else if (line.type === 'x-qwen-session-event' && line.message && line.event !== 'Finished') this.#add('note', line.message);
  }

  #prompt({ parts, delivery }) {
    this.#endMessage();
    if (delivery !== 'steer') this.#graph.restart();
    this.#add('user', promptText(parts)).dataset.label = delivery === 'steer' ? 'You, into the turn' : 'You';
  }

  #chunk({ delta, finish_reason: finish }, line) {
    if (delta.role) {
      this.#endMessage();
      this.#thought = null;
    }
    if (delta.content) {
      this.#message ??= this.#add('text', '');
      this.#write(this.#message, delta.content);
    }
    for (const call of delta.tool_calls ?? []) {
      if (call.id) {
        const made = this.#card(call.id, call.function.name);
        this.#calls.set(call.index, made);
      }
      const card = this.#calls.get(call.index);
      if (card && call.function.arguments) {
        card.text += call.function.arguments;
        card.detail.textContent = visible(summary(card.text));
      }
    }
    const turn = line.metadata?.turn;
    if (finish || turn) this.#endMessage();
    if (turn) this.#end(turn, line.usage ?? {});
    if (line.metadata?.error) this.#add('note error', line.metadata.error.message);
  }

  #end(turn, usage) {
    this.#turns.push({ ...turn, usage });
    const seconds = (turn.duration_ms / 1000).toFixed(1);
    this.#add('note', `${turn.status} · ${count(usage.prompt_tokens)} tokens read, ${count(usage.completion_tokens)} written · ${turn.tool_calls} calls · ${seconds} s`);
    this.#showUsage();
    this.#announce(`The turn ended: ${turn.status}`);
  }

  #think(line) {
    if (this.#graph.take(line)) {
      const body = element('pre', '', visible(line.description).slice(0, LIMIT));
      const made = element('details', 'entry step', element('summary', '', visible(line.subject)), body);
      return this.#place(made);
    }
    this.#thought ??= this.#add('thought', '');
    this.#append(this.#thought, line.description || line.subject);
  }

  #card(id, name) {
    const status = element('span', 'chip', STATUS.pending);
    const detail = element('span', 'detail');
    const body = element('div', 'body');
    const made = element('div', 'entry call', element('div', 'head', element('strong', '', visible(name)), detail, status), body);
    const card = { root: made, status, detail, body, name, text: '', output: null };
    this.#calls.set(id, card);
    this.#place(made);
    return card;
  }

  #display({ tool_call_id: id, tool_name: name, status, result_display: result }) {
    const card = this.#calls.get(id) ?? this.#card(id, name ?? 'tool');
    card.status.textContent = STATUS[status] ?? visible(status);
    card.root.dataset.status = status;
    if (result?.kind === 'todo_list') this.#showPlan(result.todos);
    if (result?.kind === 'task_execution') {
      this.#agents.set(id, result);
      this.#showAgents();
    }
    if (result && status !== 'executing') this.#show(card, result);
  }

  #show(card, result) {
    const shown = {
      file_diff: () => [element('div', 'quiet', `${visible(result.file_name)} +${result.stat.ai_added_lines} −${result.stat.ai_removed_lines}`), diff(result.diff)],
      todo_list: () => [todos(result.todos)],
      task_execution: () => [element('div', 'quiet', `${visible(result.agent)}: ${visible(result.description)}`), ...markdown(result.result ?? '')],
      plan: () => markdown(result.plan ?? ''),
    }[result.kind]?.() ?? [block(result.text ?? JSON.stringify(result, null, 2))];
    const nested = card.body.querySelectorAll(':scope > .nested');
    this.#kept(() => card.body.replaceChildren(...nested, ...shown));
    card.output = null;
  }

  #nested(parent, { tool_call_id: id, tool_name: name, status }) {
    const card = this.#calls.get(parent);
    if (!card) return;
    let row = [...card.body.children].find((child) => child.dataset.id === id);
    if (!row) {
      row = element('div', 'nested');
      row.dataset.id = id;
      card.body.append(row);
    }
    row.textContent = `↳ ${visible(name)} · ${STATUS[status] ?? status}`;
  }

  #output({ tool_call_id: id, text }) {
    const card = this.#calls.get(id);
    if (!card) return;
    this.#kept(() => {
      if (!card.output) {
        card.output = block('');
        card.body.append(card.output);
      }
      this.#append(card.output, text);
    });
  }

  /** Adds text to a message that is shown formatted. */
  #write(entry, text) {
    entry.source = (entry.source ?? '') + text;
    if (entry.source.length > FORMATTED) return this.#kept(() => this.#append(entry, text));
    entry.due ??= setTimeout(() => {
      entry.due = null;
      if (entry.source.length <= FORMATTED) this.#kept(() => entry.replaceChildren(...markdown(entry.source)));
    }, entry.childNodes.length ? PAUSE : 0);
  }

  #endMessage() {
    if (this.#message) this.#finish(this.#message);
    this.#message = null;
  }

  #finish(entry) {
    clearTimeout(entry.due);
    entry.due = null;
    const source = entry.source ?? entry.textContent;
    const cut = source.length > LIMIT ? `${source.slice(0, LIMIT)}…` : source;
    this.#kept(() => entry.replaceChildren(...markdown(cut)));
    this.#announce(visible(source.slice(0, 500)));
  }

  #add(kind, text) {
    const made = element('div', `entry ${kind}`);
    this.#place(made);
    if (text) this.#append(made, text);
    return made;
  }

  #place(made) {
    this.#kept(() => this.#root.append(made));
  }

  /** Does work that makes the transcript longer, and stays at its end if its end is shown. */
  #kept(work) {
    work();
    if (this.#follows) this.#root.scrollTop = this.#root.scrollHeight;
  }

  #append(entry, text) {
    const length = Number(entry.dataset.length ?? 0);
    if (length >= LIMIT) return;
    const shown = visible(text).slice(0, LIMIT - length);
    entry.append(shown, length + shown.length >= LIMIT ? '…' : '');
    entry.dataset.length = String(length + shown.length);
  }

  #showPlan(entries) {
    this.#panels.plan.hidden = entries.length === 0;
    const done = entries.filter(({ status }) => status === 'completed').length;
    this.#panels.plan.replaceChildren(element('h2', '', 'Plan'), element('p', 'quiet', `${done} of ${entries.length} done`), todos(entries));
  }

  #showAgents() {
    this.#panels.agents.hidden = this.#agents.size === 0;
    const rows = [...this.#agents.values()].map((agent) => element('li', '', element('strong', '', visible(agent.agent)), ` ${visible(agent.description)}`,
      element('div', 'quiet', `${visible(agent.status)} · ${agent.tool_calls} calls · ${count(agent.tokens)} tokens`)));
    this.#panels.agents.replaceChildren(element('h2', '', 'Sub-agents'), element('ul', '', ...rows));
  }

  #showUsage() {
    const turns = this.#turns;
    this.#panels.usage.hidden = turns.length === 0;
    const sum = (read) => turns.reduce((total, turn) => total + (read(turn) ?? 0), 0);
    const costs = turns.flatMap((turn) => Object.values(turn.usage_by_model ?? {})).map(({ cost_usd: cost }) => cost);
    const known = costs.filter((cost) => cost !== undefined);
    const cost = known.length ? `$${known.reduce((total, cost) => total + cost, 0).toFixed(4)}${known.length < costs.length ? ' and unknown prices' : ''}` : 'unknown';
    const rows = [
      ['Turns', turns.length],
      ['Model calls', count(sum((turn) => turn.model_calls))],
      ['Tool calls', count(sum((turn) => turn.tool_calls))],
      ['Tokens read', count(sum(({ usage }) => usage.prompt_tokens))],
      ['Tokens written', count(sum(({ usage }) => usage.completion_tokens))],
      ['Cost', cost],
    ];
    this.#panels.usage.replaceChildren(element('h2', '', 'Usage'), element('dl', '', ...rows.flatMap(([name, value]) => [element('dt', '', name), element('dd', '', String(value))])));
  }
}

const count = (number = 0) => number.toLocaleString('en');

function block(text) {
  const made = element('pre', 'output', visible(text).slice(0, LIMIT));
  made.tabIndex = 0;
  return made;
}

function todos(entries) {
  const mark = { completed: '✓', in_progress: '▸', pending: '○' };
  return element('ul', 'todos', ...entries.map(({ content, status }) => {
    const item = element('li', '', element('span', 'mark', mark[status] ?? '○'), element('span', 'what', visible(content)));
    item.dataset.status = status;
    item.setAttribute('aria-label', `${visible(content)}: ${status}`);
    return item;
  }));
}

/** What a call does, from its arguments, which may be incomplete. */
function summary(text) {
  try {
    const values = JSON.parse(text);
    if (Array.isArray(values.todos)) return `${values.todos.length} entries`;
    const named = ['command', 'file_path', 'path', 'pattern', 'url', 'description', 'prompt'].find((key) => typeof values[key] === 'string');
    return named ? values[named] : JSON.stringify(values).slice(0, 300);
  } catch {
    return text.slice(0, 300);
  }
}

function commandText(result) {
  return typeof result?.content === 'string' ? result.content : JSON.stringify(result);
}

/** The text of a prompt's parts. */
export function promptText(parts) {
  return typeof parts === 'string' ? parts : parts.map((part) => part.text ?? '[attachment]').join(' ');
}
