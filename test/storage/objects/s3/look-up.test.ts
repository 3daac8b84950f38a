import { randomBytes } from 'node:crypto';
import type { ObjectStore } from '../../../../storage/object-store';
import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import { scriptedOptions, startScriptedS3, type ScriptedS3 } from '../../../support/scripted-s3';
import { until } from '../../../support/until';

const SIZE = 3_000_000;
let s3: ScriptedS3;
let store: ObjectStore;

beforeEach(async () => {
  s3 = await startScriptedS3();
  s3.objects.set('object', { bytes: randomBytes(SIZE), headers: {} });
  s3.objects.set('empty', { bytes: Buffer.alloc(0), headers: {} });
  store = await openS3Store({ ...scriptedOptions(s3), requestTimeoutMs: 1_000 });
  s3.calls.length = 0;
});
afterEach(async () => {
  await store.close();
  await s3.close();
});

const methods = (): string[] => s3.calls.map(({ method }) => method);

describe('an object that may be missing', () => {
  it('is looked up with one request, whether it is there or not', async () => {
    expect(await store.head('object')).toEqual({ size: SIZE });
    expect(await store.head('missing')).toBeNull();
    expect(methods()).toEqual(['GET', 'GET']);
  });

  it('leaves its connection to the next request', async () => {
    for (let i = 0; i < 5; i++) await store.head('object');
    expect(s3.connections()).toBe(1);
  });

  it('may be empty', async () => {
    expect(await store.head('empty')).toEqual({ size: 0 });
  });

  it('may be archived', async () => {
    s3.script = ({ method }) =>
      method === 'GET' ? { kind: 'answer', status: 403, code: 'InvalidObjectState' } : undefined;
    expect(await store.head('object')).toEqual({ size: SIZE });
  });

  it('may be in a store that ignores ranges', async () => {
    s3.script = () => ({ kind: 'ignore range' });
    expect(await store.head('object')).toEqual({ size: SIZE });
    await until(() => s3.busyConnections() === 0, 5_000, 'the connection to close');
  });

  it('is there although its first byte does not come', async () => {
    s3.script = () => ({ kind: 'stall', bytes: 0 });
    expect(await store.head('object')).toEqual({ size: SIZE });
    await until(() => s3.busyConnections() === 0, 5_000, 'the connection to close');
  });
});

describe('an object that should be there', () => {
  it('is looked up without its bytes', async () => {
    expect((await store.open('object')).size).toBe(SIZE);
    expect(methods()).toEqual(['HEAD']);
  });

  it('is asked for once more if it is missing, because the answer to HEAD does not say what is', async () => {
    await expect(store.open('missing')).rejects.toMatchObject({ code: 'object_missing' });
    expect(methods()).toEqual(['HEAD', 'GET']);
  });
});
