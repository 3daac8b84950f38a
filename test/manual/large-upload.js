'use strict';

/**
 * A whole upload of several GB in parts of 64 MB, eight at a time, against an API that is running;
 * no part of `npm test`, for it takes its size twice on disk. Watches the memory of the API.
 *
 *     npm start                                             # in another terminal
 *     node test/manual/large-upload.js --gb 8 --pid PID     # PID of the API, for its memory
 */
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const { parseArgs } = require('node:util');
const OpenAI = require('openai').default;

const PART_BYTES = 64 * 1024 ** 2;
const AT_ONCE = 8;

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8000/v1' },
    gb: { type: 'string', default: '8' },
    pid: { type: 'string' },
  },
});

async function main() {
  const count = Math.ceil((Number(values.gb) * 1024 ** 3) / PART_BYTES);
  const apiKey = process.env.OPENAI_API_KEY ?? 'none';
  const client = new OpenAI({ baseURL: values.url, apiKey, timeout: 3_600_000 });
  const memory = watchMemory();
  const bytes = count * PART_BYTES;
  const upload = await client.uploads.create({
    ...{ filename: 'large.bin', purpose: 'user_data', bytes, mime_type: 'application/x-large' },
  });
  const uploadedIn = await timed(async () => {
    const ids = new Array(count);
    let next = 0;
    const send = async () => {
      for (let i = next++; i < count; i = next++) {
        const data = new File([partBytes(i)], 'part');
        ids[i] = (await client.uploads.parts.create(upload.id, { data })).id;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, send));
    upload.part_ids = ids;
  });
  const md5 = createHash('md5');
  for (let i = 0; i < count; i++) md5.update(partBytes(i));
  const digest = md5.digest('hex');
  let done;
  const joinedIn = await timed(async () => {
    const body = { part_ids: upload.part_ids, md5: digest };
    done = await client.uploads.complete(upload.id, body);
  });
  if (done.status !== 'completed' || done.file.bytes !== bytes) throw new Error('not whole');
  await client.files.delete(done.file.id);
  const rate = (seconds) => `${seconds.toFixed(1)} s, ${(bytes / 1e6 / seconds).toFixed(0)} MB/s`;
  console.log(
    `${(bytes / 1024 ** 3).toFixed(1)} GiB: parts ${rate(uploadedIn)}; joined ${rate(joinedIn)}`,
  );
  console.log(memory());
}

/** Different for each part, cheap to make again. */
function partBytes(i) {
  return Buffer.alloc(PART_BYTES, createHash('sha256').update(String(i)).digest());
}

async function timed(work) {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1000;
}

function watchMemory() {
  if (values.pid === undefined) return () => 'memory of the API not watched: give --pid';
  let most = 0;
  const residentMb = () => {
    const status = fs.readFileSync(`/proc/${values.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  };
  const before = residentMb();
  const timer = setInterval(() => (most = Math.max(most, residentMb())), 100);
  return () => {
    clearInterval(timer);
    return `memory of the API: ${before.toFixed(0)} MB before, at most ${most.toFixed(0)} MB`;
  };
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
