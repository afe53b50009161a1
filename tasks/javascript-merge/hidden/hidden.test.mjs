import test from 'node:test';
import assert from 'node:assert';
import { merge } from './merge.mjs';

test('objects are merged into a new one', () => {
  const first = { a: { b: 1 } };
  assert.deepStrictEqual(merge(first, { a: { c: 2 }, d: 3 }), { a: { b: 1, c: 2 }, d: 3 });
  assert.deepStrictEqual(first, { a: { b: 1 } });
});
test('lists are replaced', () => {
  assert.deepStrictEqual(merge({ a: [1, 2] }, { a: [3] }), { a: [3] });
});
test('the prototype of other objects cannot be changed', () => {
  merge({}, JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}'));
  assert.equal({}.polluted, undefined);
});
