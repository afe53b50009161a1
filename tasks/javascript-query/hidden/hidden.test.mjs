import test from 'node:test';
import assert from 'node:assert';
import { stringify } from './query.mjs';

test('keys and values are encoded', () => {
  assert.equal(stringify({ 'a b': 'ä&=' }), 'a%20b=%C3%A4%26%3D');
});
test('a list is one pair per element, and undefined is left out', () => {
  assert.equal(stringify({ tag: ['x', 'y'], none: undefined, zero: 0 }), 'tag=x&tag=y&zero=0');
});
