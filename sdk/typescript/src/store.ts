import { mkdirSync, openSync, readSync, closeSync, fstatSync, writeFileSync, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Keeps sessions outside of this machine's disk. A session is an append-only text of JSON lines; `append` is awaited
 * before the result of a turn is delivered, so what the host saw is stored.
 */
export interface SessionStore {
  /** The whole text of a session, or undefined when the store does not have it. */
  load(sessionId: string): Promise<string | undefined>;
  /** Adds whole lines to the text of a session, which begins empty. */
  append(sessionId: string, lines: string): Promise<void>;
}

/** Where workers with this environment keep their sessions. */
export function sessionFile(env: Readonly<Record<string, string | undefined>>, sessionId: string): string {
  const home = env.QWEN_HOME ?? join(env.HOME ?? homedir(), '.qwen');
  return join(home, 'sessions', `${sessionId}.jsonl`);
}

/** Copies a session between its file and a store. */
export class StoreMirror {
  readonly #store: SessionStore;
  readonly #sessionId: string;
  readonly #file: string;
  #stored = 0;

  constructor(store: SessionStore, sessionId: string, env: Readonly<Record<string, string | undefined>>) {
    this.#store = store;
    this.#sessionId = sessionId;
    this.#file = sessionFile(env, sessionId);
  }

  /** Writes the session's file from the store, unless the file exists. Call it before a worker resumes the session. */
  async restore(): Promise<void> {
    const text = await this.#store.load(this.#sessionId);
    if (text === undefined) return;
    const bytes = Buffer.from(text);
    this.#stored = bytes.length;
    if (existsSync(this.#file)) return;
    mkdirSync(join(this.#file, '..'), { recursive: true, mode: 0o700 });
    writeFileSync(this.#file, bytes, { mode: 0o600, flag: 'wx' });
  }

  /** Passes on the lines that were added since. The worker has synced them before it wrote the terminal record. */
  async flush(): Promise<void> {
    if (!existsSync(this.#file)) return;
    const descriptor = openSync(this.#file, 'r');
    let added: Buffer;
    try {
      const length = fstatSync(descriptor).size - this.#stored;
      if (length <= 0) return;
      added = Buffer.alloc(length);
      readSync(descriptor, added, 0, length, this.#stored);
    } finally {
      closeSync(descriptor);
    }
    const whole = added.subarray(0, added.lastIndexOf(0x0a) + 1);
    if (whole.length === 0) return;
    await this.#store.append(this.#sessionId, whole.toString('utf8'));
    this.#stored += whole.length;
  }
}
