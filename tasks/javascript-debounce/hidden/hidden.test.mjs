import test from 'node:test';
import assert from 'node:assert';
import { debounce } from './debounce.mjs';

test('a burst is one call with the last arguments', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const calls = [];
  const object = { save: debounce(function (value) { calls.push([this === object, value]); }, 100) };
  object.save(1);
  t.mock.timers.tick(60);
  object.save(2);
  t.mock.timers.tick(60);
  assert.deepStrictEqual(calls, []);
  t.mock.timers.tick(40);
  assert.deepStrictEqual(calls, [[true, 2]]);
});
