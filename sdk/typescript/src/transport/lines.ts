const NEWLINE = 0x0a;

/** The longest line that is read whole. The protocol allows 64 MiB; sequence numbers and escapes come on top. */
export const MAX_LINE_BYTES = 128 * 1024 * 1024;

/** Splits a byte stream into lines. Its cost is linear however the bytes are cut into chunks. */
export class LineSplitter {
  readonly #onLines: (lines: readonly string[]) => void;
  readonly #onTooLong: (bytes: number) => void;
  readonly #limit: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  constructor(onLines: (lines: readonly string[]) => void, onTooLong: (bytes: number) => void, limit = MAX_LINE_BYTES) {
    this.#onLines = onLines;
    this.#onTooLong = onTooLong;
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    let from = 0;
    if (this.#pendingBytes > 0) {
      const end = chunk.indexOf(NEWLINE);
      if (end < 0) {
        this.#keep(chunk);
        return;
      }
      this.#keep(chunk.subarray(0, end));
      this.#flush();
      from = end + 1;
    }
    const last = chunk.lastIndexOf(NEWLINE);
    if (last >= from) {
      this.#onLines(chunk.toString('utf8', from, last).split('\n'));
      from = last + 1;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
  }

  /** Delivers a last line without a newline. */
  end(): void {
    if (this.#pendingBytes > 0) this.#flush();
  }

  #keep(part: Buffer): void {
    this.#pendingBytes += part.length;
    // Beyond the limit the bytes are counted and dropped.
    if (this.#pendingBytes <= this.#limit) this.#pending.push(part);
    else this.#pending = [];
  }

  #flush(): void {
    const [parts, bytes] = [this.#pending, this.#pendingBytes];
    this.#pending = [];
    this.#pendingBytes = 0;
    if (bytes > this.#limit) this.#onTooLong(bytes);
    else this.#onLines([(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, bytes)).toString('utf8')]);
  }
}
