import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createBatchService } from '../../../cli/batches/batch-service';
import { collectGarbage } from '../../support/collect-garbage';

const MIB = 1024 * 1024;
const CHUNKS = 64;

it('an upload is streamed, not kept in memory', async () => {
  let received = 0;
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => void (received += chunk.length));
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end('{"id":"file-1"}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const service = createBatchService({
    baseUrl,
    apiKey: null,
    headers: {},
    followUpFlags: '',
    isNamedByUser: true,
    env: {},
  });
  const sent: WeakRef<ArrayBufferLike>[] = [];
  let held = 0;
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < CHUNKS; i++) {
      const chunk = Buffer.alloc(MIB, 'x');
      sent.push(new WeakRef(chunk.buffer));
      yield chunk;
    }
    collectGarbage();
    held = sent.filter((ref) => ref.deref() !== undefined).length;
  }
  const file = { purpose: 'batch' as const, name: 'in.jsonl', bytes: bytes(), idempotencyKey: 'k' };
  await service.upload(file, new AbortController().signal);
  await new Promise((resolve) => server.close(resolve));
  expect(received).toBeGreaterThan(CHUNKS * MIB);
  expect(held).toBeLessThan(16);
});
