export class Emitter {
  #listeners = new Map();

  on(event, listener) {
    const list = this.#listeners.get(event) ?? [];
    list.push(listener);
    this.#listeners.set(event, list);
  }

  off(event, listener) {
    const list = this.#listeners.get(event) ?? [];
    const at = list.indexOf(listener);
    if (at >= 0) list.splice(at, 1);
  }

  emit(event, ...args) {
    for (const listener of this.#listeners.get(event) ?? []) listener(...args);
  }
}
