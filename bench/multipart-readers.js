'use strict';

/** Readers of multipart forms behind one function: `read(source, contentType, onChunk)`. */
const { createRequire } = require('node:module');
const path = require('node:path');

/**
 * @param {string} folder where the libraries are installed
 * @returns {Record<string, (source: import('node:stream').Readable, type: string,
 *   onChunk: (chunk: Buffer) => Promise<void>) => Promise<object[]>>} each resolves with the entries
 */
function of(folder) {
  const load = createRequire(path.resolve(folder, 'package.json'));
  return { nightshift: ours(), '@fastify/busboy': fastify(load), busboy: original(load) };
}

function ours() {
  const { formBoundary, formEntries } = require('../dist/http/multipart/form-entries.js');
  return async (source, type, onChunk) => {
    const entries = [];
    for await (const { name, filename, body } of formEntries(source, formBoundary(type))) {
      let bytes = 0;
      for await (const chunk of body) {
        bytes += chunk.length;
        await onChunk(chunk);
      }
      entries.push({ name, filename, bytes });
    }
    return entries;
  };
}

/** Its limits are set to ours. */
const LIMITS = { fileSize: Infinity, fieldSize: 64 * 1024, parts: 100 };

function fastify(load) {
  const Busboy = load('@fastify/busboy');
  const create = (type) => new Busboy({ headers: { 'content-type': type }, limits: LIMITS });
  const named = (name, file, filename) => ({ name, file, filename });
  return streaming(create, named);
}

function original(load) {
  const busboy = load('busboy');
  const create = (type) =>
    busboy({ headers: { 'content-type': type }, limits: LIMITS, defParamCharset: 'utf8' });
  const named = (name, file, info) => ({ name, file, filename: info.filename });
  return streaming(create, named);
}

/** A form is complete when the library is, and all of its files have been read. */
function streaming(create, named) {
  return (source, type, onChunk) =>
    new Promise((resolve, reject) => {
      const form = create(type);
      const entries = [];
      const files = [];
      const limited = (what) => () => reject(new Error(`more ${what} than the limit`));
      form.on('partsLimit', limited('parts')).on('fieldsLimit', limited('fields'));
      form.on('filesLimit', limited('files'));
      form.on('field', (name, value) => {
        entries.push({ name, filename: null, bytes: Buffer.byteLength(value) });
      });
      form.on('file', (...given) => {
        const { name, file, filename } = named(...given);
        const entry = { name, filename: filename ?? '', bytes: 0 };
        entries.push(entry);
        file.on('error', reject);
        files.push(consume(file, entry, onChunk).catch(reject));
      });
      form.on('error', reject);
      form.on('finish', done).on('close', done);
      function done() {
        void Promise.all(files).then(() => resolve(entries));
      }
      source.pipe(form);
    });
}

async function consume(file, entry, onChunk) {
  for await (const chunk of file) {
    entry.bytes += chunk.length;
    await onChunk(chunk);
  }
}

module.exports = { of };
