import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { checkRules } from '../../platform/config-rules';
import { configSchema } from '../../platform/config-schema';
import { ensureKeyFile, openHeaderVault } from '../../platform/header-vault';

const HEADERS = { authorization: 'Bearer secret', 'x-team': 'größe' };
const KEYS = ['a', 'b'].map((digit) => digit.repeat(64));

let folder: string;
beforeEach(() => (folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-vault-'))));
afterEach(() => fs.rmSync(folder, { recursive: true }));

function vault(text: string, settings: Record<string, unknown> = {}) {
  const file = path.join(folder, 'key');
  fs.writeFileSync(file, text);
  return openHeaderVault(configSchema.parse({ pass_through_key_file: file, ...settings }));
}

it('decrypts what it encrypted, and the ciphertext reveals nothing', () => {
  const { seal, open } = vault(`${KEYS[0]}\n`);
  const sealed = seal('batch_1', HEADERS);
  expect(sealed.sealed.includes(Buffer.from('secret'))).toBe(false);
  expect(seal('batch_1', HEADERS).sealed.equals(sealed.sealed)).toBe(false);
  expect(open('batch_1', sealed)).toEqual(HEADERS);
});

it('does not decrypt headers of another batch or altered ones, nor quote them in the error', () => {
  const { seal, open } = vault(`${KEYS[0]}`);
  const sealed = seal('batch_1', HEADERS);
  expect(() => open('batch_2', sealed)).toThrow(/cannot be decrypted/);
  for (let at = 0; at < sealed.sealed.length; at += 7) {
    const changed = Buffer.from(sealed.sealed);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    const opened = () => open('batch_1', { ...sealed, sealed: changed });
    expect(opened).toThrow(expect.objectContaining({ code: 'unavailable' }));
    expect(opened).not.toThrow(/secret/);
  }
  expect(() => open('batch_1', { ...sealed, sealed: Buffer.alloc(3) })).toThrow(
    /cannot be decrypted/,
  );
});

it('encrypts with the first key and decrypts with any key', () => {
  const old = vault(KEYS[0] ?? '').seal('batch_1', HEADERS);
  const both = vault(`${KEYS[1]}\n${KEYS[0]}\n`);
  expect(both.open('batch_1', old)).toEqual(HEADERS);
  const fresh = both.seal('batch_1', HEADERS);
  expect(vault(KEYS[1] ?? '').open('batch_1', fresh)).toEqual(HEADERS);
  expect(() => vault(KEYS[0] ?? '').open('batch_1', fresh)).toThrow(
    expect.objectContaining({ code: 'unavailable', retryable: true }),
  );
});

it('finds its key in the secrets folder if no file is configured', () => {
  fs.writeFileSync(path.join(folder, 'pass_through_key'), KEYS[0] ?? '');
  const found = openHeaderVault(configSchema.parse({ secrets_dir: folder }));
  expect(found.open('batch_1', found.seal('batch_1', HEADERS))).toEqual(HEADERS);
});

it.each([
  ['no key', { secrets_dir: '/nowhere' }],
  ['a key file that is not there', { pass_through_key_file: '/nowhere/key' }],
])('does not start with %s if headers must be passed on', (_what, settings) => {
  const config = configSchema.parse({ ...settings, pass_through_headers: ['x-team'] });
  expect(() => openHeaderVault(config)).toThrow(
    expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining('key') }),
  );
});

it.each(['', 'short', `${'a'.repeat(64)}\nbroken`])('refuses a malformed key: %j', (text) => {
  expect(() => vault(text)).toThrow(expect.objectContaining({ code: 'config_invalid' }));
});

it('creates a key file once, readable only by its owner', () => {
  const file = path.join(folder, 'made');
  ensureKeyFile(file);
  const text = fs.readFileSync(file, 'utf8');
  ensureKeyFile(file);
  expect(fs.readFileSync(file, 'utf8')).toBe(text);
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  const made = openHeaderVault(configSchema.parse({ pass_through_key_file: file }));
  expect(made.open('b', made.seal('b', HEADERS))).toEqual(HEADERS);
});

it("refuses to pass the API's own key through", () => {
  const broken = (mode: string, name: string) =>
    checkRules(configSchema.parse({ auth: { mode }, pass_through_headers: [name] }), []).map(
      ({ path: where }) => where.join('.'),
    );
  expect(broken('api_key', 'Authorization')).toEqual(['pass_through_headers.0']);
  expect(broken('api_key', 'x-team')).toEqual([]);
  expect(broken('header', 'authorization')).toEqual([]);
  expect(configSchema.safeParse({ pass_through_headers: ['a b'] }).success).toBe(false);
});

it.each(['Host', 'content-length', 'Connection', 'X-Request-Id', 'idempotency-key', 'TE'])(
  'reports that %s cannot be passed through, instead of ignoring it',
  (name) => {
    const names = ['x-team', name];
    const broken = checkRules(configSchema.parse({ pass_through_headers: names }), []);
    expect(broken).toEqual([
      {
        path: ['pass_through_headers', '1'],
        message: expect.stringContaining(`${name.toLowerCase()} is set by Nightshift`),
      },
    ]);
  },
);

it('names the batch that waits and the missing key', () => {
  const [old = '', fresh = ''] = KEYS;
  const sealed = vault(old).seal('batch_a', HEADERS);
  expect(() => vault(fresh).open('batch_a', sealed)).toThrow(
    expect.objectContaining({
      code: 'unavailable',
      message: expect.stringMatching(
        new RegExp(`^the headers of batch_a were encrypted with the key ${sealed.keyId}`),
      ),
    }),
  );
  expect(vault(`${fresh}\n${old}`).open('batch_a', sealed)).toEqual(HEADERS);
});
