import type { AgentMessage } from './wire/messages.js';

const MAX_MESSAGES = 4096;
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** Messages between the reader of a connection and a consumer. `onFull` is called when it crosses its bounds. */
export class MessageQueue {
  #messages: AgentMessage[] = [];
  #sizes: number[] = [];
  #head = 0;
  #characters = 0;
  #isFull = false;
  readonly #onFull: (isFull: boolean) => void;

  constructor(onFull: (isFull: boolean) => void) {
    this.#onFull = onFull;
  }

  push(message: AgentMessage, size: number): void {
    this.#messages.push(message);
    this.#sizes.push(size);
    this.#characters += size;
    if (!this.#isFull && (this.#length > MAX_MESSAGES || this.#characters > MAX_CHARACTERS)) this.#setFull(true);
  }

  shift(): AgentMessage | undefined {
    const message = this.#messages[this.#head];
    if (message === undefined) return undefined;
    this.#characters -= this.#sizes[this.#head] ?? 0;
    this.#head += 1;
    if (this.#head === this.#messages.length) this.#reset();
    else if (this.#head >= MAX_MESSAGES) this.#compact();
    if (this.#isFull && this.#length < MAX_MESSAGES / 2 && this.#characters < MAX_CHARACTERS / 2) this.#setFull(false);
    return message;
  }

  clear(): void {
    this.#reset();
    this.#characters = 0;
    if (this.#isFull) this.#setFull(false);
  }

  get #length(): number {
    return this.#messages.length - this.#head;
  }

  #reset(): void {
    this.#messages = [];
    this.#sizes = [];
    this.#head = 0;
  }

  #compact(): void {
    this.#messages = this.#messages.slice(this.#head);
    this.#sizes = this.#sizes.slice(this.#head);
    this.#head = 0;
  }

  #setFull(isFull: boolean): void {
    this.#isFull = isFull;
    this.#onFull(isFull);
  }
}
