import { openAzureContainer } from '../../../providers/azure-container/azure-container';
import { withXmlError } from '../../../providers/azure-container/blob-error';
import { readBlobPage } from '../../../providers/azure-container/blob-list';
import { signal } from '../calls';
import { describeRemoteFolder, inputOf, type FolderHost } from '../remote-folder/suite';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function open(): Promise<FolderHost> {
  const host = await openSimulatedHost('?sv=2021-12-02&sig=be%2Ffore');
  const url = `${host.url}/providers/azure-blob/recordings`;
  const folder = openAzureContainer({ url, prefix: 'some/folder/', sasToken: host.keyFile }, QUICK);
  host.onClose(() => folder.close());
  return { folder, host };
}

describeRemoteFolder('Azure Blob Storage', open);

it('states the address of a blob with the token that the file holds now', async () => {
  const { folder, host } = await open();
  const blob = `${host.url}/providers/azure-blob/recordings/some/folder/a%20b.wav`;
  expect(folder.uri('a b.wav')).toBe(`${blob}?sv=2021-12-02&sig=be%2Ffore`);
  host.writeKey('sv=2021-12-02&sig=after');
  expect(folder.uri('a b.wav')).toBe(`${blob}?sv=2021-12-02&sig=after`);
  expect(folder.nameOf(blob)).toBe('a b.wav');
});

it('is refused with a token that does not count any more, and shows no signature', async () => {
  const { folder, host } = await open();
  await host.configure({ keys: ['after'] });
  const refused = await folder.put('name', inputOf('text'), { signal });
  expect(refused).toMatchObject({ outcome: 'auth', failure: { code: 'AuthenticationFailed' } });
  expect(JSON.stringify(refused)).not.toMatch(/be(%2F|\/)fore/);
  host.writeKey('?sv=2021-12-02&sig=after');
  expect((await folder.put('name', inputOf('text'), { signal })).outcome).toBe('ok');
});

it('shows no signature of another address either', async () => {
  const { folder } = await open();
  const { mask } = folder as ReturnType<typeof openAzureContainer>;
  expect(mask('GET https://a.test/b?sv=1&sig=abc%3D failed, sig= too')).toBe(
    'GET https://a.test/b?sv=1&sig=*** failed, sig= too',
  );
});

it('reads names with the characters that XML escapes', () => {
  const page = '<EnumerationResults><Blobs><Blob><Name>a&amp;b &#60;&#x3e;&quot;.wav</Name></Blob>';
  expect(readBlobPage(`${page}</Blobs><NextMarker>m&lt;1</NextMarker>`)).toEqual({
    names: ['a&b <>".wav'],
    next: 'm<1',
  });
  expect(readBlobPage('<html>')).toBeNull();
});

it('takes a container that does not exist for a wrong address', () => {
  const text =
    '<Error><Code>ContainerNotFound</Code><Message>There is none.\nRequestId:1</Message></Error>';
  const end = { kind: 'answer', status: 404, json: undefined, text, retryAfterMs: null } as const;
  expect(withXmlError(end)).toMatchObject({
    status: 403,
    json: { code: 'ContainerNotFound', message: 'There is none.\nRequestId:1' },
  });
});
