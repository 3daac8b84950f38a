import { openAwsCredentials } from '../../../providers/aws/aws-account';
import { openAwsTransport } from '../../../providers/aws/transport';
import type { RemoteFolder } from '../../../providers/remote-folder';
import { openS3Folder } from '../../../providers/s3-folder/s3-folder';
import { signal } from '../calls';
import { closeHosts, openSimulatedHost, QUICK, type SimulatedHost } from '../simulated-host';

afterEach(closeHosts);

async function open(): Promise<{ folder: RemoteFolder; host: SimulatedHost }> {
  const host = await openSimulatedHost('AKIABEFORE:secret/one+two');
  const transport = openAwsTransport(QUICK);
  host.onClose(() => transport.close());
  const credentials = openAwsCredentials(host.keyFile);
  const settings = {
    bucket: 'bucket',
    prefix: 'some/folder/',
    region: 'eu-central-1',
    url: `${host.url}/providers/s3`,
  };
  return { folder: openS3Folder(settings, { credentials, transport }), host };
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
  for (const name of ['a/1 of (2)*.wav', 'a/2.wav', 'b/3.wav']) {
    expect(await folder.put(name, inputOf(`object ${name}`), { signal })).toEqual({
      outcome: 'ok',
      value: undefined,
    });
  }
  expect(await textOf(folder, 'a/1 of (2)*.wav')).toEqual({
    outcome: 'ok',
    text: 'object a/1 of (2)*.wav',
  });
  expect(await folder.list('a/', { signal })).toEqual({
    outcome: 'ok',
    value: ['a/1 of (2)*.wav', 'a/2.wav'],
  });
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

it('states the address of an object, and the name of an address', async () => {
  const { folder } = await open();
  expect(folder.uri('a.wav')).toBe('s3://bucket/some/folder/a.wav');
  expect(folder.nameOf('s3://bucket/some/folder/a.wav')).toBe('a.wav');
  expect(folder.nameOf('s3://bucket/other/a.wav')).toBeNull();
});

it.each<[string, object]>([
  ['capacity', { status: 429 }],
  ['transient', { status: 500 }],
  ['auth', { status: 401 }],
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

it('signs with the key that the file holds now, and shows no secret', async () => {
  const { folder, host } = await open();
  await host.configure({ keys: ['AKIAAFTER'] });
  const refused = await folder.put('name', inputOf('text'), { signal });
  expect(refused.outcome).toBe('auth');
  expect(JSON.stringify(refused)).not.toContain('secret/one+two');
  host.writeKey('AKIAAFTER:secret/two');
  expect((await folder.put('name', inputOf('text'), { signal })).outcome).toBe('ok');
});
