import test from 'node:test';
import assert from 'node:assert';
import { Emitter } from './emitter.mjs';

test('a listener that removes itself does not skip the next', () => {
  const emitter = new Emitter();
  const calls = [];
  const first = () => { calls.push('first'); emitter.off('x', first); };
  emitter.on('x', first);
  emitter.on('x', () => calls.push('second'));
  emitter.emit('x');
  emitter.emit('x');
  assert.deepStrictEqual(calls, ['first', 'second', 'second']);
});
test('once calls a listener once, and off removes it before', () => {
  const emitter = new Emitter();
  const calls = [];
  const removed = () => calls.push('removed');
  emitter.once('x', (value) => calls.push(value));
  emitter.once('x', removed);
  emitter.off('x', removed);
  emitter.emit('x', 1);
  emitter.emit('x', 2);
  assert.deepStrictEqual(calls, [1]);
});
