// The queue of approvals of all sessions: what would run, why it is asked, and the decision, by keyboard and touch.
import { request } from '/page/client.js';
import { diff, element, visible } from '/page/markdown.js';

/** How long an approval ignores input after it appears: keys that were typed for something else. */
const SETTLE = 500;

export class ApprovalQueue {
  #root;
  #attempt;
  #changed;
  #shown = new Map();

  /** `attempt` runs work and reports its errors; `changed` is called after a decision. */
  constructor(root, attempt, changed) {
    this.#root = root;
    this.#attempt = attempt;
    this.#changed = changed;
    document.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Shows the open approvals; returns those that are new. */
  show(approvals, current, titles) {
    const open = new Set(approvals.map(({ id }) => id));
    const count = this.#shown.size;
    for (const [id, { root }] of this.#shown) {
      if (open.has(id)) continue;
      // The focus stays in the queue when an approval that had it goes away.
      const hadFocus = root.contains(document.activeElement);
      root.remove();
      this.#shown.delete(id);
      if (hadFocus) this.#root.querySelector('.approval')?.focus();
    }
    if (this.#shown.size < count) this.#settle([...this.#shown.values()]);
    const fresh = approvals.filter(({ id }) => !this.#shown.has(id));
    for (const approval of fresh) this.#shown.set(approval.id, this.#make(approval));
    this.#arrange(approvals, current);
    for (const { id, session_id: session } of approvals) {
      const { place } = this.#shown.get(id);
      place.textContent = session === current ? '' : `in another session: ${visible(titles.get(session) ?? session)}`;
    }
    return fresh;
  }

  /** Puts the approvals of the shown session first. */
  #arrange(approvals, current) {
    const sorted = [...approvals].sort((a, b) => (b.session_id === current) - (a.session_id === current));
    const wanted = sorted.map(({ id }) => this.#shown.get(id));
    const first = wanted.findIndex(({ root }, at) => this.#root.children[at] !== root);
    if (first < 0) return;
    const focused = document.activeElement;
    for (const { root } of wanted.slice(first)) this.#root.append(root);
    if (this.#root.contains(focused)) focused.focus();
    this.#settle(wanted.slice(first));
  }

  /** Approvals at another place ignore input anew. y and n decide the first one unless another has the focus, so it is in view. */
  #settle(moved) {
    for (const made of moved) made.appeared = performance.now();
    if (!this.#root.contains(document.activeElement)) this.#root.scrollTop = 0;
  }

  #make({ id, session_id: session, tool, metadata }) {
    const place = element('span', 'quiet place');
    const confirmation = metadata?.confirmation ?? {};
    const root = element('div', 'approval', element('div', 'head', element('strong', '', `${visible(tool.name)} needs permission`), place));
    root.tabIndex = -1;
    root.dataset.session = session;
    root.setAttribute('role', 'group');
    root.setAttribute('aria-label', `Permission for ${visible(tool.name)}`);
    root.append(this.#what(tool, confirmation));
    if (confirmation.root_command) root.append(element('div', 'quiet programs', 'Programs: ', element('code', '', visible(confirmation.root_command))));
    if (metadata?.reason) root.append(element('div', 'reason', visible(metadata.reason)));
    if (metadata?.blocked_path) root.append(element('div', 'reason', 'Outside of the workspace: ', element('code', '', visible(metadata.blocked_path))));
    const message = element('input', 'message');
    message.placeholder = 'With Deny: what to do instead';
    message.setAttribute('aria-label', 'What to do instead');
    const edited = element('textarea', 'edited');
    edited.value = JSON.stringify(tool.arguments, null, 2);
    edited.rows = 4;
    edited.setAttribute('aria-label', 'Arguments as JSON');
    const edit = element('details', '', element('summary', '', 'Edit the arguments'), edited);
    const decide = (decision) => {
      if (performance.now() - made.appeared < SETTLE) return;
      this.#attempt(async () => {
        const body = { decision };
        if (decision === 'deny' && message.value.trim()) body.message = message.value;
        if (decision === 'allow' && edit.open) body.updated_input = JSON.parse(edited.value);
        await request('POST', `/api/approvals/${encodeURIComponent(id)}`, body);
        await this.#changed();
      });
    };
    const buttons = element('div', 'buttons');
    for (const [decision, label] of [['allow', 'Allow'], ['deny', 'Deny']]) {
      const button = element('button', decision, label);
      button.type = 'button';
      button.dataset.decision = decision;
      button.setAttribute('aria-keyshortcuts', decision === 'allow' ? 'y' : 'n');
      button.addEventListener('click', () => decide(decision));
      buttons.append(button);
    }
    buttons.append(message);
    root.append(edit, buttons);
    const made = { root, place, decide, appeared: performance.now() };
    return made;
  }

  #what({ arguments: values }, confirmation) {
    if (confirmation.diff) return diff(confirmation.diff);
    const what = element('pre', 'command', visible(confirmation.command ?? values?.command ?? JSON.stringify(values, null, 2)));
    what.tabIndex = 0;
    return what;
  }

  /** y allows and n denies the approval that has the focus, or the first; j and k go to the next and the previous one. */
  #key(event) {
    const typing = event.target.closest?.('input, textarea, select, [contenteditable]');
    if (typing || event.ctrlKey || event.metaKey || event.altKey || this.#shown.size === 0) return;
    const all = [...this.#shown.values()].sort((a, b) => (a.root.compareDocumentPosition(b.root) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    const focused = all.findIndex(({ root }) => root.contains(document.activeElement));
    const step = { j: 1, k: -1 }[event.key];
    if (step) {
      event.preventDefault();
      all[(Math.max(focused, step > 0 ? -1 : 0) + step + all.length) % all.length].root.focus();
    } else if (event.key === 'y' || event.key === 'n') {
      event.preventDefault();
      all[Math.max(0, focused)].decide(event.key === 'y' ? 'allow' : 'deny');
    }
  }
}
