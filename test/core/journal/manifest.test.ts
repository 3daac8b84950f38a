import { encodeManifest, parseManifest, type Manifest } from '../../../core/journal/manifest';

const manifest: Manifest = {
  version: 1,
  nonce: '00ff00ff00ff00ff',
  cause: 'cancelled',
  seals: [
    { key: 'batches/b/seals/m/rest.1.seal', size: 7 },
    { key: 'batches/b/seals/m/0-5.1.seal', size: 9 },
  ],
  closed_at: 1_700_000_000,
};

it('writes a manifest as JSON with its seals in key order', () => {
  expect(encodeManifest(manifest).toString()).toBe(
    '{"version":1,"nonce":"00ff00ff00ff00ff","cause":"cancelled",' +
      '"seals":[{"key":"batches/b/seals/m/0-5.1.seal","size":9},' +
      '{"key":"batches/b/seals/m/rest.1.seal","size":7}],"closed_at":1700000000}',
  );
  expect(parseManifest(encodeManifest(manifest)).seals).toHaveLength(2);
  expect(parseManifest(encodeManifest({ ...manifest, cause: null })).cause).toBeNull();
});

it.each([
  ['{'],
  ['null'],
  ['[]'],
  ['{"version":2,"nonce":"a","cause":null,"seals":[],"closed_at":1}'],
  ['{"version":1,"nonce":"a","cause":"bored","seals":[],"closed_at":1}'],
  ['{"version":1,"nonce":"a","cause":null,"seals":[{"key":"a"}],"closed_at":1}'],
  ['{"version":1,"nonce":"a","cause":null,"seals":null,"closed_at":1}'],
])('reports %s as object_corrupt', (text) => {
  expect(() => parseManifest(Buffer.from(text))).toThrow(
    expect.objectContaining({ code: 'object_corrupt' }),
  );
});
