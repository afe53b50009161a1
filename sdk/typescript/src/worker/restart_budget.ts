const MAX_RESTARTS = 5;
const WINDOW_MS = 10_000;

/** Bounds how often a session's worker is started again: five times in ten seconds. */
export class RestartBudget {
  #times: number[] = [];

  /** Takes one restart out of the budget; false when there is none left. */
  take(): boolean {
    const now = performance.now();
    this.#times = this.#times.filter((time) => now - time < WINDOW_MS);
    if (this.#times.length >= MAX_RESTARTS) return false;
    this.#times.push(now);
    return true;
  }
}
