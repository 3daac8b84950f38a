import { Readable } from 'node:stream';
import { openAwsCredentials } from '../../../providers/aws/aws-account';
import { openAwsTransport, type AwsExchange } from '../../../providers/aws/transport';
import { openS3Folder } from '../../../providers/s3-folder/s3-folder';
import { signal } from '../calls';
import { describeRemoteFolder, inputOf, type FolderHost } from '../remote-folder/suite';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function open(): Promise<FolderHost> {
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

describeRemoteFolder('S3', open);

it('states the address of an object in S3 as AWS takes it', async () => {
  const { folder } = await open();
  expect(folder.uri('a.wav')).toBe('s3://bucket/some/folder/a.wav');
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

it('does not read a list forever whose page names no other page', async () => {
  const body = () =>
    Readable.from([
      '<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>',
    ]);
  const handle = async (_: unknown, exchange: AwsExchange = { signal }) => {
    exchange.answered = { status: 200, retryAfterMs: null };
    exchange.failure = () => null;
    return { response: { statusCode: 200, headers: {}, body: body() } };
  };
  const transport = openAwsTransport(QUICK);
  const requestHandler = { ...transport.requestHandler, handle };
  const credentials = {
    config: {
      credentials: async () => ({
        ...{ accessKeyId: 'a', secretAccessKey: 'b' },
        expiration: new Date(),
      }),
    },
    mask: (text: string) => text,
  };
  const settings = { bucket: 'bucket', prefix: '', region: 'r', url: 'http://localhost' };
  const folder = openS3Folder(settings, {
    credentials,
    transport: { ...transport, requestHandler },
  });
  expect((await folder.list('', { signal })).outcome).toBe('transient');
});
