// A codec for the setting temporal.payload_codec. It encrypts every payload that Nightshift sends to
// Temporal with AES-256-GCM, before it leaves the process.
//
//   openssl rand -hex 32 > /etc/nightshift/payload.key
//
// Copy this file, set KEY_FILE, and name the copy in the settings of the API, the workers and the command
// line:
//
//   temporal:
//     payload_codec: /etc/nightshift/payload-codec.js

const { createCipheriv, createDecipheriv, randomBytes } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const KEY_FILE = join(__dirname, 'payload.key');

const ENCODING = 'binary/encrypted';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const key = Buffer.from(readFileSync(KEY_FILE, 'utf8').trim(), 'hex');

/** Encrypts a whole payload, `{ metadata, data }`, whose values are bytes. */
function encrypt(payload) {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  const sealed = [nonce, cipher.update(serialize(payload)), cipher.final(), cipher.getAuthTag()];
  return { metadata: { encoding: Buffer.from(ENCODING) }, data: Buffer.concat(sealed) };
}

function decrypt(payload) {
  const encoding = Buffer.from(payload.metadata?.encoding ?? []).toString();
  // Payloads of batches that were created before the codec was configured are not encrypted.
  if (encoding !== ENCODING) return payload;
  const data = Buffer.from(payload.data);
  const decipher = createDecipheriv(CIPHER, key, data.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(data.subarray(-TAG_BYTES));
  const sealed = data.subarray(NONCE_BYTES, -TAG_BYTES);
  return deserialize(Buffer.concat([decipher.update(sealed), decipher.final()]));
}

function serialize({ metadata, data }) {
  const encoded = Object.entries(metadata ?? {}).map(([name, value]) => [name, base64(value)]);
  return JSON.stringify({ metadata: encoded, data: data ? base64(data) : null });
}

function deserialize(bytes) {
  const { metadata, data } = JSON.parse(bytes.toString());
  const decoded = metadata.map(([name, value]) => [name, Buffer.from(value, 'base64')]);
  return {
    metadata: Object.fromEntries(decoded),
    ...(data === null ? {} : { data: Buffer.from(data, 'base64') }),
  };
}

function base64(bytes) {
  return Buffer.from(bytes).toString('base64');
}

exports.payloadCodec = {
  encode: async (payloads) => payloads.map(encrypt),
  decode: async (payloads) => payloads.map(decrypt),
};
