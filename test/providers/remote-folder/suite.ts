import type { RemoteFolder } from '../../../providers/remote-folder';
import { signal } from '../calls';
import type { SimulatedHost } from '../simulated-host';

/** A folder that is open on a simulated bucket. */
export interface FolderHost {
  readonly folder: RemoteFolder;
  readonly host: SimulatedHost;
}

/** The input of a call, in two pieces. */
export function inputOf(text: string) {
  const bytes = Buffer.from(text);
  return {
    bytes: bytes.length,
    async *open() {
      yield bytes.subarray(0, 2);
      yield bytes.subarray(2);
    },
  };
}

async function textOf(folder: RemoteFolder, name: string) {
  const pieces: Buffer[] = [];
  const take = async (piece: Buffer) => void pieces.push(piece);
  const { outcome } = await folder.read(name, take, { signal });
  return { outcome, text: Buffer.concat(pieces).toString() };
}

/** What every folder of a bucket must do. @param open begins a folder at a simulator of its own */
export function describeRemoteFolder(name: string, open: () => Promise<FolderHost>): void {
  describe(`a folder of ${name}`, () => {
    describeObjects(open);
    describeFailures(open);
  });
}

function describeObjects(open: () => Promise<FolderHost>): void {
  it('writes, reads, lists and deletes objects below its prefix', async () => {
    const { folder } = await open();
    for (const name of ['a/1 of (2)*&.wav', 'a/2.wav', 'b/3.wav']) {
      const written = await folder.put(name, inputOf(`object ${name}`), { signal });
      expect(written).toEqual({ outcome: 'ok', value: undefined });
    }
    const text = 'object a/1 of (2)*&.wav';
    expect(await textOf(folder, 'a/1 of (2)*&.wav')).toEqual({ outcome: 'ok', text });
    const value = ['a/1 of (2)*&.wav', 'a/2.wav'];
    expect(await folder.list('a/', { signal })).toEqual({ outcome: 'ok', value });
    expect((await folder.delete('a/2.wav', { signal })).outcome).toBe('ok');
    expect((await folder.delete('a/2.wav', { signal })).outcome).toBe('ok');
    expect((await textOf(folder, 'a/2.wav')).outcome).toBe('gone');
  });

  it('lists more names than a page holds', async () => {
    const { folder, host } = await open();
    await host.configure({ max_page: 1 });
    const names = Array.from({ length: 25 }, (_, index) => `n${String(index).padStart(2, '0')}`);
    for (const name of names) await folder.put(name, inputOf('text'), { signal });
    expect(await folder.list('', { signal })).toEqual({ outcome: 'ok', value: names });
    expect((await host.stats()).calls['files.list']).toBe(3);
  });

  it('tells the name of an object from its address', async () => {
    const { folder } = await open();
    expect(folder.nameOf(folder.uri('a/1 of 2.wav'))).toBe('a/1 of 2.wav');
    expect(folder.nameOf(folder.uri('a.wav').replace('folder/', 'elsewhere/'))).toBeNull();
  });

  it('ends a download with the error of its consumer', async () => {
    const { folder } = await open();
    await folder.put('name', inputOf('text'), { signal });
    const take = () => Promise.reject(new Error('the journal is full'));
    await expect(folder.read('name', take, { signal })).rejects.toThrow('the journal is full');
  });
}

function describeFailures(open: () => Promise<FolderHost>): void {
  it.each<[string, object]>([
    ['capacity', { status: 429 }],
    ['transient', { status: 500 }],
    ['auth', { status: 401 }],
    ['transient', { drop: true }],
  ])('classifies a failure as %s without a second attempt: %j', async (outcome, fault) => {
    const { folder, host } = await open();
    await folder.put('name', inputOf('text'), { signal });
    const calls = ['files.create', 'files.content', 'files.list', 'files.delete'];
    await host.configure({ faults: calls.map((call) => ({ call, ...fault })) });
    expect((await folder.put('name', inputOf('text'), { signal })).outcome).toBe(outcome);
    expect((await textOf(folder, 'name')).outcome).toBe(outcome);
    expect((await folder.list('', { signal })).outcome).toBe(outcome);
    expect((await folder.delete('name', { signal })).outcome).toBe(outcome);
    const { calls: made } = await host.stats();
    expect(calls.map((call) => made[call])).toEqual([2, 1, 1, 1]);
  });

  it('says that an object was not read whole if its connection breaks', async () => {
    const { folder, host } = await open();
    await folder.put('name', inputOf('x'.repeat(100_000)), { signal });
    await host.configure({ faults: [{ call: 'files.content', cut: true }] });
    expect((await textOf(folder, 'name')).outcome).toBe('transient');
  });
}
