// Markdown as elements that this file makes. Text only ever becomes text nodes: nothing that a model writes is markup,
// a link or an image.

/** Makes characters visible that would hide or reorder text. */
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `\\u${character.codePointAt(0).toString(16).padStart(4, '0')}`);
}

/** An element with a class and content: texts or elements. */
export function element(name, className, ...content) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|(\*\*|__)(?=\S)([\s\S]*?\S)\3|(\*|_)(?=\S)([^*_]*?\S)\5(?![\w*])|\[([^\][\n]+)\]\(((?:[^()\s]|\([^()\s]*\))+)\)/;

/** The text of a line, with code, emphasis, and links as their text and address. */
function inline(text) {
  const parts = [];
  let rest = text;
  for (;;) {
    const found = INLINE.exec(rest);
    if (!found || parts.length > 2000) break;
    parts.push(rest.slice(0, found.index));
    const [whole, , code, , strong, , em, label, address] = found;
    if (code !== undefined) parts.push(element('code', '', code));
    else if (strong !== undefined) parts.push(element('strong', '', ...inline(strong)));
    else if (em !== undefined) parts.push(element('em', '', em));
    else parts.push(label, element('span', 'address', ` (${address})`));
    rest = rest.slice(found.index + whole.length);
  }
  parts.push(rest);
  return parts.filter((part) => part !== '');
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => cell.trim());
const isRule = (line) => /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/.test(line ?? '') && line.includes('|');

function table(lines) {
  const row = (line, name) => element('tr', '', ...cells(line).map((cell) => element(name, '', ...inline(cell))));
  const body = lines.slice(2).map((line) => row(line, 'td'));
  return element('div', 'table', element('table', '', element('thead', '', row(lines[0], 'th')), element('tbody', '', ...body)));
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;

function list(lines) {
  const isOrdered = /\d/.test(ITEM.exec(lines[0])[2]);
  const made = document.createElement(isOrdered ? 'ol' : 'ul');
  if (isOrdered) made.start = Number.parseInt(ITEM.exec(lines[0])[2], 10);
  const depth = ITEM.exec(lines[0])[1].length;
  let item = [];
  const flush = () => {
    if (item.length === 0) return;
    const nested = item.findIndex((line, index) => index > 0 && ITEM.test(line));
    const own = nested < 0 ? item : item.slice(0, nested);
    const words = own.map((line, index) => (index ? line.trim() : line.replace(ITEM, ''))).join(' ');
    const task = /^\[([ xX])\] /.exec(words);
    const entry = element('li', '', ...inline(task ? `${task[1] === ' ' ? '☐' : '☑'} ${words.slice(4)}` : words));
    if (nested > 0) entry.append(list(item.slice(nested)));
    made.append(entry);
    item = [];
  };
  for (const line of lines) {
    const start = ITEM.exec(line);
    if (start && start[1].length <= depth) flush();
    item.push(line);
  }
  flush();
  return made;
}

/** The blocks of a text. */
export function markdown(text) {
  const lines = visible(text).split('\n');
  const blocks = [];
  let at = 0;
  const take = (matches) => {
    const start = at;
    while (at < lines.length && matches(lines[at], at - start)) at += 1;
    return lines.slice(start, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      at += 1;
      const code = take((inner) => !inner.trim().startsWith(fence[1]));
      at += 1;
      const block = element('pre', 'code', element('code', '', code.join('\n')));
      block.tabIndex = 0;
      if (fence[2]) block.dataset.language = fence[2];
      blocks.push(block);
    } else if (heading) {
      at += 1;
      // The page has the first levels.
      blocks.push(element(`h${Math.min(6, heading[1].length + 2)}`, '', ...inline(heading[2])));
    } else if (line.trim() === '') {
      at += 1;
    } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      at += 1;
      blocks.push(document.createElement('hr'));
    } else if (line.includes('|') && isRule(lines[at + 1])) {
      blocks.push(table(take((row, index) => index < 2 || (row.includes('|') && row.trim() !== ''))));
    } else if (/^\s{0,3}>/.test(line)) {
      const quoted = take((inner) => /^\s{0,3}>/.test(inner)).map((inner) => inner.replace(/^\s{0,3}>\s?/, ''));
      blocks.push(element('blockquote', '', ...inline(quoted.join('\n'))));
    } else if (ITEM.test(line)) {
      blocks.push(list(take((inner, index) => index === 0 || ITEM.test(inner) || /^\s{2,}\S/.test(inner))));
    } else {
      const paragraph = take((inner, index) => index === 0 || (inner.trim() !== '' && !/^(\s{0,3}(```|~~~|>)|#{1,6}\s)/.test(inner) && !ITEM.test(inner)));
      blocks.push(element('p', '', ...inline(paragraph.join('\n'))));
    }
  }
  return blocks;
}

/** A difference between two files, line by line. */
export function diff(text) {
  const made = element('pre', 'diff');
  made.tabIndex = 0;
  for (const line of visible(text.replace(/\n$/, '')).split('\n').slice(0, 2000)) {
    const kind = /^(\+\+\+|---)/.test(line) ? 'file' : { '+': 'added', '-': 'removed', '@': 'place' }[line[0]];
    made.append(element('span', kind ?? '', `${line}\n`));
  }
  return made;
}
