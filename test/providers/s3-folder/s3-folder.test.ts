import { openAwsCredentials } from '../../../providers/aws/aws-account';
import { openAwsTransport } from '../../../providers/aws/transport';
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
