/**
 * Notices a worker that no longer says anything. It counts intervals without a line instead of comparing times, so a
 * machine that slept, or a host that was busy itself, costs one interval and not the worker.
 */
export class Watchdog {
  readonly #intervalMs: number;
  readonly #maxMissed: number;
  readonly #onDead: () => void;
  #timer: NodeJS.Timeout | undefined;
  #missed = 0;
  #isEnabled = true;

  constructor(intervalMs: number, maxMissed: number, onDead: () => void) {
    this.#intervalMs = intervalMs;
    this.#maxMissed = maxMissed;
    this.#onDead = onDead;
  }

  start(): void {
    this.#timer = setInterval(() => { this.#tick(); }, this.#intervalMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A line arrived. */
  reset(): void {
    this.#missed = 0;
  }

  /** Nothing is counted while nobody reads. */
  setEnabled(isEnabled: boolean): void {
    this.#isEnabled = isEnabled;
    this.#missed = 0;
  }

  #tick(): void {
    if (!this.#isEnabled) return;
    this.#missed += 1;
    if (this.#missed <= this.#maxMissed) return;
    this.stop();
    this.#onDead();
  }
}
