import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NightshiftError } from '../../../core/errors';
import type { OpenSpan, SpanAttributes } from '../../../platform/tracing/tracing';
import { traceStore } from '../../../storage/objects/traced-store';
import { openStorage } from '../../../storage/open-storage';
import { createMemoryStore } from '../../support/memory-store';
import { describeObjectStore } from './object-store-conformance';

interface NotedSpan {
  readonly name: string;
  attributes: SpanAttributes;
  error?: unknown;
  ended: boolean;
}

const spans: NotedSpan[] = [];
beforeEach(() => {
  spans.length = 0;
});

const tracing = {
  beginChild: (name: string, attributes: SpanAttributes): OpenSpan => {
    const span: NotedSpan = { name, attributes, ended: false };
    spans.push(span);
    return {
      set: (more) => (span.attributes = { ...span.attributes, ...more }),
      fail: (error) => (span.error = error),
      run: (work) => work(),
      headers: () => ({}),
      end: () => (span.ended = true),
      discard: () => undefined,
    };
  },
};

describe('a traced store is a store', () => {
  describeObjectStore(async () => traceStore(createMemoryStore(), tracing));
});

it('has a span for each operation that moves bytes, ended with it', async () => {
  const store = traceStore(createMemoryStore(), tracing);
  await store.putIfAbsent('a', Buffer.from('hello'));
  await store.concatenate('b', ['a', 'a']);
  await store.read('b');
  for await (const chunk of store.stream('a')) expect(String(chunk)).toBe('hello');
  const reader = await store.open('a');
  await reader.read(0, 5);
  await reader.close();
  await store.delete('a');
  await store.head('a');
  expect(spans.map(({ name, attributes }) => [name, attributes['storage.key']])).toEqual([
    ['storage.Store', 'a'],
    ['storage.Store', 'b'],
    ['storage.Retrieve', 'b'],
    ['storage.Retrieve', 'a'],
    ['storage.Retrieve', 'a'],
    ['storage.Delete', 'a'],
  ]);
  expect(spans.filter(({ ended, error }) => !ended || error !== undefined)).toEqual([]);
});

it('records a failure of the store, but not an object that is missing', async () => {
  const failure = new NightshiftError('object_store_failed', 'EIO');
  const memory = createMemoryStore();
  const store = traceStore({ ...memory, putIfAbsent: () => Promise.reject(failure) }, tracing);
  await expect(store.putIfAbsent('a', Buffer.of())).rejects.toBe(failure);
  await expect(store.read('a')).rejects.toMatchObject({ code: 'object_missing' });
  expect(spans).toMatchObject([
    { name: 'storage.Store', error: failure, ended: true },
    { name: 'storage.Retrieve', attributes: { 'error.type': 'object_missing' }, ended: true },
  ]);
  expect(spans[1]).not.toHaveProperty('error');
});

it('is what openStorage opens, also for other observers', async () => {
  const path = await mkdtemp(join(tmpdir(), 'nightshift-traced-'));
  const storage = await openStorage({ type: 'filesystem', path }, { tracing });
  spans.length = 0;
  await storage.store.putIfAbsent('a', Buffer.of());
  await storage.observedBy(() => undefined).delete('a');
  expect(spans.map(({ name }) => name)).toEqual(['storage.Store', 'storage.Delete']);
  await storage.close();
  await rm(path, { recursive: true });
});

it('is the store itself without tracing', () => {
  const store = createMemoryStore();
  expect(traceStore(store, null)).toBe(store);
});
