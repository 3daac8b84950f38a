'use strict';

/**
 * Makes the journal of a batch, as its chunks leave it, and the result files that it must give:
 * `node bench/merge/make-batch.js ROOT FOLDER BYTES`. Prints `{ lines, bytes }` as JSON.
 *
 * Three models share the lines. The plan of one of them is ordered by system prompt, so each of its seals
 * spans the whole input. Answers come in a mixed order; one line in 97 fails, and one in 50 is tried again.
 * Every seventh chunk loses its worker after half its answers and is sealed in two overlapping pieces.
 */
const fs = require('node:fs');
const path = require('node:path');
const { crc32 } = require('node:zlib');
const { BATCH, loadProduct } = require('./product');

const CHUNK_LINES = 10_000;
/** Distance of two lines in the input, bytes; only their order matters here. */
const INPUT_LINE_BYTES = 300;
/** Mean length of a line of the output, so that the number of lines follows from the bytes. */
const MEAN_BYTES = 1_228;
const MODELS = [
  { name: 'even', share: 6, prompts: 0 },
  { name: 'prompts', share: 3, prompts: 20 },
  { name: 'rare', share: 1, prompts: 0 },
];
const TEXT = Buffer.alloc(
  4_096,
  'The night shift answers each letter that came in during the day. ',
);
const USAGE = { inputTokens: 60, cachedTokens: 0, outputTokens: 200, reasoningTokens: 0 };

async function main([root, folder, bytes]) {
  const product = loadProduct(root);
  const lines = Math.round(Number(bytes) / MEAN_BYTES);
  const storage = await product.openStorage({
    type: 'filesystem',
    path: path.join(folder, 'data'),
  });
  try {
    const plans = await writePlans(product, storage.store, lines);
    for (const [model, plan] of Object.entries(plans)) {
      for (let from = 0; from < plan.length; from += CHUNK_LINES) {
        const to = Math.min(from + CHUNK_LINES, plan.length);
        await runChunk({ product, storage, model, plan, from, to });
      }
    }
  } finally {
    await storage.close();
  }
  const size = writeExpected(product, folder, lines);
  process.stdout.write(JSON.stringify({ lines, bytes: size }));
}

/** The numbers of each model's lines, in the order of its plan. */
async function writePlans(product, store, lines) {
  const plans = Object.fromEntries(MODELS.map(({ name }) => [name, []]));
  for (let line = 0; line < lines; line++) plans[modelOf(line).name].push(line);
  for (const { name, prompts } of MODELS) {
    const plan = plans[name];
    if (prompts > 0) plan.sort((a, b) => (a % prompts) - (b % prompts) || a - b);
    const bytes = Buffer.alloc(plan.length * product.PLAN_ENTRY_BYTES);
    plan.forEach((line, i) => {
      const entry = { offset: offsetOf(line), length: INPUT_LINE_BYTES - 1, prefixHash: 0 };
      product.encodePlanEntry(bytes, i * product.PLAN_ENTRY_BYTES, entry);
    });
    await store.putIfAbsent(product.planKey(BATCH.id, BATCH.nonce, name), bytes);
  }
  const names = Object.fromEntries(MODELS.map(({ name }) => [name, name]));
  const map = {
    ...{ version: 1, nonce: BATCH.nonce, line_count: lines, unrouted: {} },
    ...{ model_to_safe: names, safe_to_model: names },
    entries: Object.fromEntries(Object.entries(plans).map(([name, plan]) => [name, plan.length])),
  };
  await store.putIfAbsent(product.modelMapKey(BATCH.id), product.encodeModelMap(map));
  return plans;
}

async function runChunk(chunk) {
  const { from, to } = chunk;
  const isKilled = (from / CHUNK_LINES) % 7 === 3;
  if (!isKilled) return seal(chunk, { from, to }, await answer(chunk, from, to));
  const middle = from + ((to - from) >> 1);
  const first = await answer(chunk, from, middle);
  await seal(chunk, { from, to: middle }, first);
  // The second attempt had not seen the last answers of the first one.
  const again = middle - ((middle - from) >> 3);
  await seal(chunk, { from: again, to }, await answer(chunk, again, to));
}

/** Answers the lines of a range into segments of their own; returns the frames to seal. */
async function answer({ product, storage, model, plan }, from, to) {
  const scope = { batchId: BATCH.id, safeModel: model };
  const writer = storage.journal.openWriter(scope, { from, to });
  for (const line of mixed(plan.slice(from, to))) {
    if (line % 50 === 7) {
      const retry = { offset: offsetOf(line), tries: 1, notBeforeMs: 0 };
      writer.append(product.retryHeader(retry), product.encodeRetryFrame(retry, crc32));
    }
    const header = frameHeader(product, line);
    const payload = resultLine(product, line);
    writer.append(
      { ...header, payloadLength: payload.length },
      product.encodeFrame(
        { ...header, modelTag: MODELS.indexOf(modelOf(line)) + 1 },
        payload,
        crc32,
      ),
    );
    if (writer.unwrittenBytes > 4 << 20) await writer.flush();
  }
  await writer.close();
  return writer.frames.filter(({ header }) => header.kind !== product.FRAME_KIND.retry);
}

function seal({ storage, model }, range, frames) {
  frames.sort((a, b) => a.header.offset - b.header.offset);
  return storage.journal.writeSeal({ batchId: BATCH.id, safeModel: model }, range, frames);
}

/** Answers overtake each other by up to 64 places, the requests in flight. */
function mixed(lines) {
  const order = lines.map((line, i) => ({ line, key: i + (hashOf(line) % 64) }));
  return order.sort((a, b) => a.key - b.key).map(({ line }) => line);
}

/** Both result files. `cp` copies the output, and the product's own must equal them. */
function writeExpected(product, folder, lines) {
  const files = { output: [], error: [] };
  const paths = (kind) => path.join(folder, `expected-${kind}.jsonl`);
  const flush = (kind) => {
    fs.appendFileSync(paths(kind), Buffer.concat(files[kind].flatMap((line) => [line, NEWLINE])));
    files[kind] = [];
  };
  for (let line = 0; line < lines; line++) {
    const kind = isFailed(line) ? 'error' : 'output';
    if (files[kind].push(resultLine(product, line)) === 1_000) flush(kind);
  }
  flush('output');
  flush('error');
  return fs.statSync(paths('output')).size;
}

const NEWLINE = Buffer.from('\n');

function frameHeader({ FRAME_KIND }, line) {
  const kind = isFailed(line) ? FRAME_KIND.error : FRAME_KIND.output;
  const usage = { ...USAGE, totalTokens: USAGE.inputTokens + USAGE.outputTokens };
  return { offset: offsetOf(line), kind, status: isFailed(line) ? 400 : 200, tries: 1, usage };
}

function resultLine({ answerLine, lineId }, line) {
  const id = lineId(BATCH.id, offsetOf(line));
  const length = 300 + (hashOf(line) % 1_000);
  const text = TEXT.toString('latin1', line % 64, (line % 64) + length);
  const json = Buffer.from(
    `{"id":"chatcmpl-${line}","object":"chat.completion","model":"${modelOf(line).name}",` +
      `"choices":[{"index":0,"message":{"role":"assistant","content":"${text}"},` +
      `"finish_reason":"stop"}],"usage":{"prompt_tokens":60,"completion_tokens":200,"total_tokens":260}}`,
  );
  const status = isFailed(line) ? 400 : 200;
  return answerLine({
    ...{ lineId: id, customId: `request-${line}`, status, requestId: null },
    embedded: { ok: status === 200, json },
  });
}

const isFailed = (line) => line % 97 === 5;
const offsetOf = (line) => line * INPUT_LINE_BYTES;
const hashOf = (line) => (Math.imul(line + 1, 0x9e3779b1) >>> 8) % 65_536;

/** One line in ten turns is of the model whose share it is in. */
function modelOf(line) {
  const turn = hashOf(line) % 10;
  if (turn < MODELS[0].share) return MODELS[0];
  return turn < MODELS[0].share + MODELS[1].share ? MODELS[1] : MODELS[2];
}

void main(process.argv.slice(2));
