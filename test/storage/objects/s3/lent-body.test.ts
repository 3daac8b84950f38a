import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fc from 'fast-check';
import { HttpAttempt } from '../../../../platform/http-client/attempt';
import { BODY_BUFFER_BYTES, LentBody } from '../../../../storage/objects/s3/lent-body';
import { SpareBuffers } from '../../../../storage/objects/spare-buffers';

const KIB = 1024;
const buffers = new SpareBuffers(BODY_BUFFER_BYTES, 4);

/** An attempt that notes whether it may read on. */
class Attempt extends HttpAttempt {
  isHeld = false;
  isAborted = false;

  constructor() {
    const nothing = (): void => undefined;
    const reader = { onHead: nothing, onBytes: nothing, onEnd: nothing, onFailure: nothing };
    super({ timeoutMs: 60_000, reader });
    this.liftTimer();
  }

  override hold(): void {
    this.isHeld = true;
  }

  override release(): void {
    this.isHeld = false;
  }

  override abort(): void {
    this.isAborted = true;
  }
}

function bodyOf(bytes: number | null, timeoutMs = 60_000): { body: LentBody; attempt: Attempt } {
  const attempt = new Attempt();
  const body = new LentBody({ attempt, buffers, bytes, timeoutMs });
  body.on('error', () => undefined);
  return { body, attempt };
}

async function gather(body: LentBody): Promise<Buffer> {
  const copies: Buffer[] = [];
  for (let bytes = await body.pull(); bytes !== null; bytes = await body.pull()) {
    copies.push(Buffer.from(bytes));
  }
  return Buffer.concat(copies);
}

describe('a body that is pulled', () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 64 * KIB }), { maxLength: 40 });
  /** Whether the next piece comes, or the consumer pulls. */
  const turns = fc.array(fc.boolean(), { maxLength: 80 });

  it('gives all bytes in their order, whenever they come and are asked for', async () => {
    await fc.assert(
      fc.asyncProperty(lengths, turns, fc.boolean(), async (sizes, comings, isLengthKnown) => {
        const sent = randomBytes(sizes.reduce((sum, size) => sum + size, 0));
        const { body, attempt } = bodyOf(isLengthKnown ? sent.length : null);
        const found: Buffer[] = [];
        let arrived = 0;
        let pulled = 0;
        const arrive = (size: number): void => {
          body.add(sent.subarray(arrived, arrived + size));
          arrived += size;
        };
        const left = [...sizes];
        for (const comes of comings) {
          // A connection that is held gives nothing.
          if (comes && !attempt.isHeld) arrive(left.shift() ?? 0);
          else if (arrived > pulled) {
            const bytes = await body.pull();
            found.push(Buffer.from(bytes ?? []));
            pulled = arrived;
            expect(attempt.isHeld).toBe(false);
          }
        }
        const rest = gather(body);
        for (const size of left) arrive(size);
        body.finish();
        found.push(await rest);
        expect(Buffer.concat(found).equals(sent)).toBe(true);
      }),
    );
  });

  it('leaves what it gave as it is until the next call, while more arrives', async () => {
    const { body } = bodyOf(null);
    const [first, second, third] = [randomBytes(60 * KIB), randomBytes(60 * KIB), randomBytes(10)];
    body.add(first);
    const given = await body.pull();
    body.add(second);
    body.add(third);
    expect(given?.equals(first)).toBe(true);
    expect((await body.pull())?.equals(Buffer.concat([second, third]))).toBe(true);
  });

  it('holds its connection at 192 KiB, and takes what comes nevertheless', async () => {
    const { body, attempt } = bodyOf(null);
    const sent = randomBytes(700 * KIB);
    for (let at = 0; at < sent.length; at += 50 * KIB) {
      body.add(sent.subarray(at, at + 50 * KIB));
      expect(attempt.isHeld).toBe(at >= 150 * KIB);
    }
    body.finish();
    expect((await gather(body)).equals(sent)).toBe(true);
    expect(attempt.isHeld).toBe(false);
  });

  it('uses the buffers of bodies before it', async () => {
    const memory = new Set<unknown>();
    for (let n = 0; n < 20; n++) {
      const { body } = bodyOf(null);
      for (let piece = 0; piece < 5; piece++) {
        body.add(randomBytes(64 * KIB));
        memory.add((await body.pull())?.buffer);
      }
      body.finish();
      expect(await body.pull()).toBeNull();
    }
    expect(memory.size).toBeLessThanOrEqual(6);
  });
});

describe('a body that breaks', () => {
  it('gives the bytes that came before, then the failure', async () => {
    const { body } = bodyOf(100);
    const failure = new Error('broken');
    body.add(Buffer.from('abc'));
    body.fail(failure);
    expect(String(await body.pull())).toBe('abc');
    await expect(body.pull()).rejects.toBe(failure);
  });

  it('ends a call that waits when it is destroyed, and gives up the request', async () => {
    const { body, attempt } = bodyOf(100);
    const pending = body.pull();
    body.destroy();
    await expect(pending).rejects.toThrow('given up');
    expect(attempt.isAborted).toBe(true);
  });

  it('does not use a buffer again that its consumer may still look at', async () => {
    const { body } = bodyOf(null);
    const sent = randomBytes(60 * KIB);
    body.add(sent);
    const given = await body.pull();
    body.destroy();
    const other = bodyOf(null).body;
    for (let n = 0; n < 8; n++) {
      other.add(randomBytes(60 * KIB));
      await other.pull();
    }
    expect(given?.equals(sent)).toBe(true);
  });

  it('breaks by itself if no byte comes while a consumer waits', async () => {
    const { body, attempt } = bodyOf(100, 20);
    await expect(body.pull()).rejects.toThrow('no byte for 0.02 s');
    expect(attempt.isAborted).toBe(true);
  });
});

it('gives copies as a stream', async () => {
  const { body } = bodyOf(null);
  const sent = randomBytes(500 * KIB);
  const chunks: Buffer[] = [];
  body.on('data', (chunk: Buffer) => chunks.push(chunk));
  for (let at = 0; at < sent.length; at += 50 * KIB) {
    body.add(sent.subarray(at, at + 50 * KIB));
    await new Promise((resolve) => setImmediate(resolve));
  }
  body.finish();
  await once(body, 'end');
  expect(Buffer.concat(chunks).equals(sent)).toBe(true);
});
