// A recorded session with a slider: the events up to a point, forwards and backwards.
import { element } from '/page/markdown.js';

/** The milliseconds between two events while the recording plays. */
const PACE = 60;

export class Replay {
  #root;
  #transcript;
  #lines = [];
  #at = 0;
  #timer = null;
  #slider = element('input');
  #place = element('output');
  #play = element('button', '', 'Play');

  /** A control in `root` that shows events in `transcript`; `done` is called when the user closes it. */
  constructor(root, transcript, done = null) {
    this.#root = root;
    this.#transcript = transcript;
    this.#slider.type = 'range';
    this.#slider.min = '0';
    this.#slider.setAttribute('aria-label', 'Position in the recording');
    this.#slider.addEventListener('input', () => this.#show(Number(this.#slider.value)));
    this.#play.type = 'button';
    this.#play.addEventListener('click', () => (this.#timer ? this.stop() : this.#start()));
    root.replaceChildren(this.#play, this.#slider, this.#place);
    if (done) {
      const close = element('button', '', 'Back to live');
      close.type = 'button';
      close.addEventListener('click', done);
      root.append(close);
    }
  }

  /** Shows the beginning or the end of a recording. */
  open(lines, at = lines.length) {
    this.#lines = lines;
    this.#slider.max = String(lines.length);
    this.#root.hidden = false;
    this.#transcript.clear();
    this.#at = 0;
    this.#show(at);
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.#play.textContent = 'Play';
  }

  #start() {
    if (this.#at === this.#lines.length) this.#show(0);
    this.#play.textContent = 'Pause';
    this.#timer = setInterval(() => {
      if (this.#at === this.#lines.length) this.stop();
      else this.#show(this.#at + 1);
    }, PACE);
  }

  #show(at) {
    if (at < this.#at) {
      this.#transcript.clear();
      this.#at = 0;
    }
    for (; this.#at < at; this.#at += 1) this.#transcript.take(this.#lines[this.#at]);
    this.#slider.value = String(at);
    this.#place.textContent = `${at} / ${this.#lines.length}`;
  }
}
