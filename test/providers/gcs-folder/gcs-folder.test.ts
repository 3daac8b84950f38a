import { openGcsFolder } from '../../../providers/gcs-folder/gcs-folder';
import { openAuthorizedHttp } from '../../../providers/google-oauth/authorized-http';
import type { RemoteFolder } from '../../../providers/remote-folder';
import { signal } from '../calls';
import { openGoogleHost, type GoogleHost } from '../google-host';
import { closeHosts, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function open(): Promise<{ folder: RemoteFolder; host: GoogleHost }> {
  const host = await openGoogleHost();
  const tokens = host.openTokens();
  const http = openAuthorizedHttp({ ...QUICK, url: host.api('gcs') }, tokens);
  host.onClose(() => http.close());
  const settings = { bucket: 'bucket', prefix: 'some/folder/' };
  return { folder: openGcsFolder(settings, { http, mask: (text) => tokens.mask(text) }), host };
}

function inputOf(text: string) {
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

it('writes, reads, lists and deletes objects below its prefix', async () => {
  const { folder } = await open();
  for (const name of ['a/1 of (2)&.wav', 'a/2.wav', 'b/3.wav']) {
    const put = await folder.put(name, inputOf(`object ${name}`), { signal });
    expect(put).toEqual({ outcome: 'ok', value: undefined });
  }
  const read = await textOf(folder, 'a/1 of (2)&.wav');
  expect(read).toEqual({ outcome: 'ok', text: 'object a/1 of (2)&.wav' });
  const listed = await folder.list('a/', { signal });
  expect(listed).toEqual({ outcome: 'ok', value: ['a/1 of (2)&.wav', 'a/2.wav'] });
  expect((await folder.delete('a/2.wav', { signal })).outcome).toBe('ok');
  expect((await folder.delete('a/2.wav', { signal })).outcome).toBe('ok');
  expect((await textOf(folder, 'a/2.wav')).outcome).toBe('gone');
  expect(await folder.list('c/', { signal })).toEqual({ outcome: 'ok', value: [] });
});

it('lists more names than a page holds', async () => {
  const { folder, host } = await open();
  await host.configure({ max_page: 1 });
  const names = Array.from({ length: 25 }, (_, index) => `n${String(index).padStart(2, '0')}`);
  for (const name of names) await folder.put(name, inputOf('text'), { signal });
  expect(await folder.list('', { signal })).toEqual({ outcome: 'ok', value: names });
  expect((await host.stats()).calls['files.list']).toBe(3);
});

it('states the address of an object, and the name of an address', async () => {
  const { folder } = await open();
  expect(folder.uri('a.wav')).toBe('gs://bucket/some/folder/a.wav');
  expect(folder.nameOf('gs://bucket/some/folder/a.wav')).toBe('a.wav');
  expect(folder.nameOf('gs://bucket/other/a.wav')).toBeNull();
});

it.each<[string, object]>([
  ['capacity', { status: 429 }],
  ['transient', { status: 500 }],
  ['auth', { status: 403 }],
  ['transient', { drop: true }],
])('classifies a failure as %s without a second attempt: %j', async (outcome, fault) => {
  const { folder, host } = await open();
  await folder.put('name', inputOf('text'), { signal });
  await host.configure({ faults: [{ call: 'files.create', ...fault }] });
  expect((await folder.put('name', inputOf('text'), { signal })).outcome).toBe(outcome);
  await host.configure({ faults: [{ call: 'files.content', ...fault }] });
  expect((await textOf(folder, 'name')).outcome).toBe(outcome);
  const { calls } = await host.stats();
  expect([calls['files.create'], calls['files.content']]).toEqual([2, 1]);
});

it('says that an object was not read whole if its connection breaks', async () => {
  const { folder, host } = await open();
  await folder.put('name', inputOf('x'.repeat(100_000)), { signal });
  await host.configure({ faults: [{ call: 'files.content', cut: true }] });
  expect((await textOf(folder, 'name')).outcome).toBe('transient');
});

it('ends a download with the error of its consumer', async () => {
  const { folder } = await open();
  await folder.put('name', inputOf('text'), { signal });
  const take = () => Promise.reject(new Error('the journal is full'));
  await expect(folder.read('name', take, { signal })).rejects.toThrow('the journal is full');
});
