import test from 'node:test';
import assert from 'node:assert';
import { LruCache } from './lru.mjs';

test('the entry that was unused for longest is evicted', () => {
  const cache = new LruCache(2);
  cache.set('a', undefined);
  cache.set('b', 2);
  cache.get('a');
  cache.set('c', 3);
  assert.deepStrictEqual([...cache.entries.keys()].sort(), ['a', 'c']);
});
test('a new value of a known key evicts nothing', () => {
  const cache = new LruCache(2);
  cache.set('a', 1);
  cache.set('b', 2);
  cache.set('a', 3);
  assert.equal(cache.get('b'), 2);
  assert.equal(cache.get('a'), 3);
});
