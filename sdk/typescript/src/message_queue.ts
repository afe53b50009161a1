import type { AgentMessage } from './wire/messages.js';

const MAX_MESSAGES = 4096;
const MAX_CHARACTERS = 4 * 1024 * 1024;
/** Messages of longer lines are counted by their characters, too. */
const LONG_LINE = 4096;

/** Messages between the reader of a connection and a consumer. `onFull` is called when it crosses its bounds. */
export class MessageQueue {
  #messages: AgentMessage[] = [];
  #head = 0;
  /** The sizes of messages of long lines that wait. */
  readonly #long = new Map<AgentMessage, number>();
  #characters = 0;
  #isFull = false;
  readonly #onFull: (isFull: boolean) => void;

  constructor(onFull: (isFull: boolean) => void) {
    this.#onFull = onFull;
  }

  push(message: AgentMessage, size: number): void {
    const length = this.#messages.push(message);
    if (size > LONG_LINE || length - this.#head > MAX_MESSAGES) this.#grow(message, size);
  }

  shift(): AgentMessage | undefined {
    const messages = this.#messages;
    const head = this.#head;
    const message = messages[head];
    if (message === undefined) return undefined;
    this.#head = head + 1;
    if (head + 1 === messages.length || this.#isFull || this.#characters > 0) this.#shrink(message);
    return message;
  }

  clear(): void {
    this.#messages = [];
    this.#head = 0;
    this.#long.clear();
    this.#characters = 0;
    this.#setFull(false);
  }

  #grow(message: AgentMessage, size: number): void {
    if (size > LONG_LINE) {
      this.#long.set(message, size);
      this.#characters += size;
    }
    if (this.#length > MAX_MESSAGES || this.#characters > MAX_CHARACTERS) this.#setFull(true);
  }

  #shrink(message: AgentMessage): void {
    const size = this.#long.get(message);
    if (size !== undefined) {
      this.#long.delete(message);
      this.#characters -= size;
    }
    if (this.#head === this.#messages.length || this.#head > MAX_MESSAGES) {
      this.#messages = this.#messages.slice(this.#head);
      this.#head = 0;
    }
    if (this.#length < MAX_MESSAGES / 2 && this.#characters < MAX_CHARACTERS / 2) this.#setFull(false);
  }

  get #length(): number {
    return this.#messages.length - this.#head;
  }

  #setFull(isFull: boolean): void {
    if (this.#isFull === isFull) return;
    this.#isFull = isFull;
    this.#onFull(isFull);
  }
}
