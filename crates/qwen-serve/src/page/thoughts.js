// The tree or graph of thoughts of a turn, drawn as it grows.
import { element, visible } from '/page/markdown.js';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 320;
const ROW = 56;

function shape(name, attributes, title) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (title) {
    const text = document.createElementNS(SVG, 'title');
    text.textContent = visible(title);
    made.append(text);
  }
  return made;
}

export class ThoughtGraph {
  /** The levels of a tree: thoughts with score and choice. */
  #levels = [];
  /** The thoughts of a graph, by id. */
  #nodes = new Map();
  #edges = [];
  #last = null;
  #root;
  #due = false;

  constructor(root) {
    this.#root = root;
    this.restart();
  }

  restart() {
    this.#levels = [];
    this.#nodes.clear();
    this.#edges = [];
    this.#last = null;
    this.#draw();
  }

  /** Takes a thought; true if it is a step of a search. */
  take({ subject = '', description = '' }) {
    const step = /^(Expanding|Evaluating) \d+ candidates?$|^Backtracking to depth (\d+)$|^Planning \d+ thoughts?$|^(Starting|Completed|Failed|Expanding) thought (.+)$/.exec(subject);
    if (!step) return false;
    const [, search, depth, state, id] = step;
    if (search === 'Expanding') this.#levels.push(description.split('\n').map((text) => ({ text, score: null, chosen: false })));
    else if (search === 'Evaluating') this.#evaluate(description);
    else if (depth !== undefined) this.#levels.length = Math.min(this.#levels.length, Number(depth));
    else if (state) this.#node(state, id, description);
    else for (const name of description.split(';')[0].split(', ')) this.#nodes.set(name, { state: 'planned', text: '' });
    if (!this.#due) {
      this.#due = true;
      requestAnimationFrame(() => this.#draw());
    }
    return true;
  }

  #evaluate(description) {
    const level = this.#levels.at(-1) ?? [];
    const [, chosen, scores] = /^Chose candidate (\d+); scores: (.*)$/.exec(description) ?? [];
    (scores ?? '').split(', ').forEach((score, index) => {
      if (level[index]) level[index].score = Number(score);
    });
    if (level[chosen]) level[chosen].chosen = true;
  }

  #node(state, id, text) {
    const node = this.#nodes.get(id) ?? { state: 'planned', text: '' };
    if (state === 'Starting' && !this.#nodes.has(id) && this.#last) this.#edges.push([this.#last, id]);
    node.state = { Starting: 'running', Completed: 'done', Failed: 'failed' }[state] ?? node.state;
    if (text && state !== 'Expanding') node.text = text;
    if (state === 'Expanding') this.#last = id;
    this.#nodes.set(id, node);
  }

  #draw() {
    this.#due = false;
    const isTree = this.#levels.length > 0;
    const count = isTree ? this.#levels.flat().length : this.#nodes.size;
    this.#root.hidden = count === 0;
    if (count === 0) return this.#root.replaceChildren();
    const rows = isTree ? [[{ text: 'The task', chosen: true, score: null }], ...this.#levels] : this.#rows();
    const height = rows.length * ROW;
    const svg = shape('svg', { viewBox: `0 0 ${WIDTH} ${height}`, role: 'img' });
    const words = isTree ? `Tree of thoughts: ${this.#levels.length} levels, ${count} thoughts` : `Graph of thoughts: ${count} thoughts`;
    svg.setAttribute('aria-label', words);
    const place = (row, index, length) => [((index + 0.5) / length) * WIDTH, row * ROW + ROW / 2];
    const places = new Map();
    rows.forEach((row, at) => row.forEach((node, index) => places.set(node, place(at, index, row.length))));
    const line = (from, to, className) => {
      const [[x1, y1], [x2, y2]] = [places.get(from), places.get(to)];
      svg.append(shape('path', { d: `M${x1} ${y1} C${x1} ${y1 + ROW / 2} ${x2} ${y2 - ROW / 2} ${x2} ${y2}`, class: className }));
    };
    if (isTree) {
      rows.slice(1).forEach((row, at) => {
        const parent = rows[at].find(({ chosen }) => chosen) ?? rows[at][0];
        for (const node of row) line(parent, node, node.chosen ? 'edge chosen' : 'edge');
      });
    } else {
      for (const [from, to] of this.#edges) if (this.#nodes.get(from) && this.#nodes.get(to)) line(this.#nodes.get(from), this.#nodes.get(to), 'edge');
    }
    for (const row of rows) {
      const radius = Math.max(2.5, Math.min(9, WIDTH / row.length / 3));
      for (const node of row) {
        const [cx, cy] = places.get(node);
        const state = node.state ?? (node.chosen ? 'chosen' : 'open');
        const label = `${node.id ? `${node.id}: ` : ''}${node.text}${node.score === null || node.score === undefined ? '' : ` (${node.score.toFixed(2)})`}`;
        const circle = shape('circle', { cx, cy, r: node.chosen ? radius + 1.5 : radius, class: `node ${state}` }, label);
        if (!node.state && node.score !== null) circle.style.opacity = String(0.25 + 0.75 * Math.max(0, Math.min(1, node.score)));
        svg.append(circle);
        if (node.id) {
          const name = shape('text', { x: cx, y: cy + 24, class: 'name', 'text-anchor': 'middle' });
          name.textContent = visible(node.id).slice(0, 16);
          svg.append(name);
        }
      }
    }
    const path = isTree ? this.#levels.map((level) => level.find(({ chosen }) => chosen)).filter(Boolean) : [...this.#nodes.values()].filter(({ state }) => state === 'done');
    const list = element('ol', 'path', ...path.slice(-8).map(({ text }) => element('li', '', visible(text).slice(0, 200))));
    this.#root.replaceChildren(element('h2', '', isTree ? 'Tree of thoughts' : 'Graph of thoughts'), element('p', 'quiet', words.split(': ')[1]), svg, list);
  }

  /** The thoughts of a graph in rows of three. */
  #rows() {
    const all = [...this.#nodes].map(([id, node]) => Object.assign(node, { id }));
    const rows = [];
    for (let at = 0; at < all.length; at += 3) rows.push(all.slice(at, at + 3));
    return rows;
  }
}
