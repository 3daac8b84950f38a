import { randomUUID } from 'node:crypto';
import { NightshiftError } from '../core/errors';
import type { ObjectStore } from './object-store';

const WRITERS = 20;
/** Longer than what the S3 store sends in one request, so that it is written in parts. */
const LARGE_BYTES = 9 * 1024 ** 2;

/** The objects that the proofs write, in key order. */
const NAMES = ['joined', 'large', 'once', 'race'];
const PREFIX = 'doctor/';
/** Longer than any run, which gives up after two minutes. */
const LEFT_BEHIND_AFTER_MS = 3_600_000;

type ProvenStore = Pick<
  ObjectStore,
  'putIfAbsent' | 'read' | 'head' | 'list' | 'delete' | 'concatenate'
>;

/** One thing that a store must do, tried on keys below `area`. @throws what is wrong and what it would break */
type Proof = (store: ProvenStore, area: string) => Promise<void>;

/**
 * Tries everything that Nightshift relies on in a store (docs/design/journal.md#object-store), with objects
 * below `doctor/` that it removes again, as it does those of earlier runs that were killed. Takes about 40
 * requests and sends 20 MiB.
 * @throws object_store_failed with the first thing that the store does not do
 */
export async function proveStore(store: ProvenStore): Promise<void> {
  await removeLeftBehind(store);
  const area = `${PREFIX}${randomUUID()}`;
  try {
    for (const prove of PROOFS) await prove(store, area);
  } catch (error) {
    await removeAll(store, area).catch(() => undefined);
    throw error;
  }
  await removeAll(store, area);
  if ((await keysBelow(store, `${area}/`)).length > 0) {
    throw unfit(
      'an object is still listed after it was deleted',
      'Old data would never be removed',
    );
  }
}

/** Of two writes of a key, the second changes nothing. */
const secondWrite: Proof = async (store, area) => {
  const key = `${area}/once`;
  await store.putIfAbsent(key, Buffer.from('first'));
  const again = await store.putIfAbsent(key, Buffer.from('second'));
  const text = (await store.read(key)).toString();
  if (again !== 'exists' || text !== 'first') throw overwritten('a second write');
};

/** Of many writers at once, exactly one creates the object, and its bytes are there. */
const race: Proof = async (store, area) => {
  const key = `${area}/race`;
  const writers = Array.from({ length: WRITERS }, (_, i) => Buffer.from(`writer ${i}`));
  const results = await Promise.all(writers.map((body) => store.putIfAbsent(key, body)));
  const winners = results.filter((result) => result === 'created').length;
  if (winners !== 1) throw overwritten(`${winners} of ${WRITERS} writers at once each`);
  const winner = writers[results.indexOf('created')]?.toString();
  if ((await store.read(key)).toString() !== winner) throw overwritten('a writer that lost');
};

/** The same for objects that are written in parts: result files and large inputs. */
const inParts: Proof = async (store, area) => {
  const key = `${area}/large`;
  await store.putIfAbsent(key, inPieces('1'));
  const again = await store.putIfAbsent(key, inPieces('2'));
  const [first] = await store.read(key, { from: 0, to: 1 });
  if (again !== 'exists' || first !== '1'.charCodeAt(0)) {
    throw overwritten('a second write in parts');
  }
};

const ranges: Proof = async (store, area) => {
  const key = `${area}/large`;
  const size = (await store.head(key))?.size;
  const tail = await store.read(key, { from: LARGE_BYTES - 3, to: LARGE_BYTES + 5 });
  if (size === LARGE_BYTES && tail.toString() === '111') return;
  throw unfit('a range of an object has other bytes than were written', 'No input could be read');
};

const joining: Proof = async (store, area) => {
  const key = `${area}/joined`;
  await store.concatenate(key, [`${area}/large`, `${area}/once`]);
  const tail = await store.read(key, { from: LARGE_BYTES - 1, to: LARGE_BYTES + 5 });
  if (tail.toString() === '1first') return;
  throw unfit('objects are not joined in their order', 'Uploads in parts would be damaged');
};

/** The journal finds the answers of other workers by listing. */
const listing: Proof = async (store, area) => {
  const expected = NAMES.map((name) => `${area}/${name}`);
  const listed = await keysBelow(store, `${area}/`);
  const [first] = expected;
  const behind = await keysBelow(store, `${area}/`, first);
  if (listed.join() === expected.join() && behind.join() === expected.slice(1).join()) return;
  throw unfit(
    'a listing right after a write is not complete, or not in order',
    'A worker would miss answers of another one and send requests again',
  );
};

const PROOFS: readonly Proof[] = [secondWrite, race, inParts, ranges, joining, listing];

async function* inPieces(text: string): AsyncGenerator<Buffer> {
  const piece = Buffer.alloc(1024 ** 2, text);
  for (let done = 0; done < LARGE_BYTES; done += piece.length) yield piece;
}

async function keysBelow(store: ProvenStore, prefix: string, after?: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix, { after })) keys.push(key);
  return keys;
}

async function removeLeftBehind(store: ProvenStore): Promise<void> {
  const keys: string[] = [];
  for await (const { key, writtenAtMs } of store.list(PREFIX)) {
    if (Date.now() - writtenAtMs > LEFT_BEHIND_AFTER_MS) keys.push(key);
  }
  for (const key of keys) await store.delete(key);
}

async function removeAll(store: ProvenStore, area: string): Promise<void> {
  for (const name of NAMES) await store.delete(`${area}/${name}`);
}

/** The error of a store that does not honour `If-None-Match`. */
function overwritten(what: string): NightshiftError {
  return unfit(
    `${what} changed an object that existed: the store ignores If-None-Match`,
    'Workers could overwrite the plan and the answers of each other. Use a store with conditional writes',
  );
}

function unfit(what: string, consequence: string): NightshiftError {
  return new NightshiftError('object_store_failed', `${what}. ${consequence}`);
}
