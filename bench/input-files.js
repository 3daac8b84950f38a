'use strict';

/** Input files, created once and kept in the scratch folder, with the same bytes on every machine. */
const fs = require('node:fs');
const { once } = require('node:events');
const path = require('node:path');

const SYSTEM_PROMPTS = 40;
const TEXT =
  'The night shift reads the letters that came in during the day and answers each of them. ' +
  'Gr\u00fc\u00dfe aus K\u00f6ln, \u4f60\u597d, \\"quoted\\", a tab\\t and an end of line\\n. ';
/** Lines of the batch-gateway's own measurements. */
const SMALL_BYTES = 279;
/** 50,000 of them are just below OpenAI's limit of 200 MiB. */
const LARGE_BYTES = 4_096;

/**
 * A file of `lines` requests of `lineBytes` each, including line feeds.
 *
 * @param {string} scratch folder to keep it in
 * @param {{ lines: number, lineBytes?: number, modelOf?: (index: number) => string, name?: string }} shape
 *   `name` is required with `modelOf`
 * @returns {Promise<string>} its path
 */
async function inputFile(scratch, { lines, lineBytes = SMALL_BYTES, modelOf, name = 'bench' }) {
  const file = path.join(scratch, `${name}-${lines}x${lineBytes}.jsonl`);
  if (fs.existsSync(file)) return file;
  const draft = `${file}.${process.pid}`;
  const out = fs.createWriteStream(draft, { highWaterMark: 1 << 20 });
  for (let i = 0; i < lines; i++) {
    const line = requestLine({ index: i, lineBytes, model: modelOf?.(i) ?? 'bench' });
    if (!out.write(line)) await once(out, 'drain');
  }
  out.end();
  await once(out, 'finish');
  fs.renameSync(draft, file);
  return file;
}

/** A system prompt that many lines share takes half of a long line, as it does in real batches. */
function requestLine({ index, lineBytes, model }) {
  const prompt = index % SYSTEM_PROMPTS;
  const shared =
    lineBytes > 1_000 ? cut(`${prompt}: ${repeat(lineBytes)}`, lineBytes / 2) : 'Brief.';
  const head =
    `{"custom_id":"request-${index}","method":"POST","url":"/v1/chat/completions",` +
    `"body":{"model":"${model}","messages":[{"role":"system","content":"${shared}"},` +
    `{"role":"user","content":"`;
  const tail = '"}]}}\n';
  const room = lineBytes - Buffer.byteLength(head) - Buffer.byteLength(tail);
  if (room < 0) throw new RangeError(`a request does not fit into ${lineBytes} bytes`);
  const text = cut(`${index} ${repeat(room)}`, room);
  return head + text + 'x'.repeat(room - Buffer.byteLength(text)) + tail;
}

function repeat(bytes) {
  return TEXT.repeat(Math.ceil(bytes / TEXT.length));
}

/** At most `bytes` of a text in UTF-8, ended between characters and between escapes. */
function cut(text, bytes) {
  const buffer = Buffer.from(text).subarray(0, Math.max(0, Math.floor(bytes) - 1));
  return buffer
    .toString('utf8')
    .replace(/\ufffd+$/, '')
    .replace(/\\+$/, '');
}

module.exports = { inputFile, LARGE_BYTES, SMALL_BYTES };
