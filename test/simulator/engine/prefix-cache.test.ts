import { PrefixCache } from '../../../simulator/engine/prefix-cache';

describe('a prefix cache', () => {
  it('finds the leading blocks only', () => {
    const cache = new PrefixCache(10);
    cache.insert([1, 2, 3]);
    expect(cache.hits([1, 2, 9, 3])).toBe(2);
    expect(cache.hits([2, 3])).toBe(2);
    expect(cache.hits([9, 1])).toBe(0);
  });

  it('evicts the ends of the prompts that were not used for the longest time', () => {
    const cache = new PrefixCache(5);
    cache.insert([1, 2, 3]);
    cache.insert([1, 4, 5]);
    expect(cache.hits([1, 2, 3])).toBe(3);
    cache.insert([6]);
    expect([cache.hits([1, 4, 5]), cache.hits([1, 2, 3]), cache.hits([6])]).toEqual([2, 3, 1]);
    expect(cache.size).toBe(5);
  });

  it('keeps the front of a prompt that is larger than the cache', () => {
    const cache = new PrefixCache(2);
    cache.insert([1, 2, 3, 4]);
    expect([cache.size, cache.hits([1, 2, 3])]).toEqual([2, 2]);
  });

  it('shrinks at once, and holds nothing if it has no room', () => {
    const cache = new PrefixCache(4);
    cache.insert([1, 2, 3, 4]);
    cache.resize(1);
    expect([cache.size, cache.hits([1, 2])]).toEqual([1, 1]);
    cache.resize(0);
    cache.insert([5]);
    expect(cache.size).toBe(0);
  });
});
