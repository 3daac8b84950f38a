import { request } from 'node:http';
import { isGone } from '../support/process-state';
import { expectCompleted } from './expect-completed';
import type { RecordingBackend } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, submit } from '../support/stack';
import { until } from '../support/until';
import { PROCESSES } from '../support/variant';

const IN_FLIGHT = 20;
const TEST_MS = 180_000;
/** Less than the drain budget, which is the longest request timeout plus 15 s. */
const DRAIN_MS = 30_000;

let backend: RecordingBackend;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend(100);
  stack = await startStack({
    config: {
      global_inference_gateway: { url: backend.url, request_timeout: '30s' },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: '3s' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  backend.latencyMs = 0;
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);
beforeEach(() => {
  backend.seen.length = 0;
  backend.hold = () => false;
});

/** Signals processes of a part and waits for their end. */
async function signal(
  part: string,
  pids: readonly number[],
  name: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  for (const pid of pids) process.kill(pid, name);
  const limitMs = part === 'worker' ? DRAIN_MS : 60_000;
  await until(() => pids.every(isGone), limitMs, `the end of ${part}`, 5);
}

/** Resolves when all processes of a part run, none of them with this process id. */
async function untilBack(part: string, pid: number, count: number): Promise<void> {
  const isBack = () => {
    const now = stack.pidsOf(part);
    return now.length === count && !now.includes(pid);
  };
  await until(isBack, 60_000, `a new ${part}`);
}

/** The shutdown phases that a process of this part has logged. */
function phasesOf(part: string, pid: number): { phase: string; tookMs: number; result: string }[] {
  return stack
    .logOf(part)
    .split('\n')
    .filter((line) => line.includes('"shutdown phase"'))
    .map((line) => JSON.parse(line) as { phase: string; tookMs: number; result: string })
    .filter((line) => !('pid' in line) || (line as { pid?: number }).pid === pid);
}

async function startedBatch(lines: number, sent: number): Promise<string> {
  const { id } = await submit(stack.client, chatLines(lines));
  await until(() => backend.seen.length >= sent, 60_000, `${sent} requests`);
  return id;
}

describe('a worker that gets SIGTERM', () => {
  it(
    'waits for the requests in flight only, and none of them is sent twice',
    async () => {
      backend.latencyMs = 2_000;
      const id = await startedBatch(60, IN_FLIGHT);
      const pid = stack.pidOf('worker');
      await signal('worker', stack.pidsOf('worker'));
      const answered = backend.seen.filter((seen) => seen.answered).length;
      expect(answered).toBeGreaterThanOrEqual(IN_FLIGHT);
      expect(answered).toBeLessThanOrEqual(PROCESSES * IN_FLIGHT);
      const phases = phasesOf('worker', pid);
      expect(phases[0]).toMatchObject({ phase: 'drain', result: 'done' });
      expect(phases.map(({ phase }) => phase)).toEqual(
        expect.arrayContaining(['drain', 'object store', 'postgres', 'observability']),
      );
      backend.latencyMs = 100;
      await expectCompleted(stack.client, id, { lines: 60 });
      expect(backend.seen).toHaveLength(60);
    },
    TEST_MS,
  );

  it.each<NodeJS.Signals>(['SIGTERM', 'SIGINT'])(
    'ends at once on a second signal, %s, and its requests in flight are sent again',
    async (second) => {
      backend.latencyMs = 50;
      backend.hold = () => true;
      const id = await startedBatch(40, IN_FLIGHT);
      const pids = stack.pidsOf('worker');
      for (const pid of pids) process.kill(pid, 'SIGTERM');
      // The same signal within a second counts once: a terminal and npm both deliver it.
      const again = (): boolean => {
        const left = pids.filter((pid) => !isGone(pid));
        for (const pid of left) process.kill(pid, second);
        return left.length === 0;
      };
      // No answer comes meanwhile, so it did not wait for one.
      await until(again, DRAIN_MS, 'the end after the second signal', 100);
      backend.hold = () => false;
      await expectCompleted(stack.client, id, { lines: 40 });
      expect(backend.seen.length).toBeLessThanOrEqual(40 + PROCESSES * IN_FLIGHT);
    },
    TEST_MS,
  );
});

describe('an API that gets SIGTERM', () => {
  it(
    'finishes a running upload and a running download, and accepts no new connections',
    async () => {
      const pid = stack.pidOf('api');
      const text = chatLines(20_000);
      const stored = await upload(text).finish();
      const half = upload(text);
      await half.started;
      const download = await slowDownload(stored.id);

      process.kill(pid, 'SIGTERM');
      await until(refusesConnections, 20_000, 'no new connections', 5);
      expect(isGone(pid)).toBe(false);
      expect(await download.rest()).toBe(text.length);
      expect(await half.finish()).toMatchObject({ bytes: text.length, object: 'file' });

      await until(() => isGone(pid), 30_000, 'the end of the API', 5);
      await untilBack('api', pid, PROCESSES);
      const answers = (): Promise<boolean> => refusesConnections().then((refused) => !refused);
      await until(answers, 30_000, 'the next API');
      const phases = phasesOf('api', pid);
      expect(phases.map(({ phase }) => phase).slice(0, 2)).toEqual(['readiness', 'http']);
      for (const { tookMs } of phases) expect(tookMs).toBeGreaterThanOrEqual(0);
    },
    TEST_MS,
  );
});

describe('a rolling restart of all parts', () => {
  it(
    'under load fails no line and sends no answered line again',
    async () => {
      // Several workers are faster, but their restarts take as long.
      backend.latencyMs = PROCESSES * 100;
      const lines = PROCESSES * 1_100;
      const id = await startedBatch(lines, 150);
      const resent = (): number =>
        backend.seen.length - new Set(backend.seen.map(({ requestId }) => requestId)).size;
      let mayResend = 0;
      const kinds = ['worker', 'api', 'temporal', 'postgres', 'worker'];
      const each = kinds.flatMap((part) => stack.pidsOf(part).map((_, i) => ({ part, i })));
      for (const { part, i } of each) {
        const pids = stack.pidsOf(part);
        const pid = pids[i] ?? 0;
        // If Temporal is down for longer than a heartbeat timeout, it starts another attempt. The requests in
        // flight of the first one are aborted and sent again.
        if (part === 'temporal') mayResend = PROCESSES * IN_FLIGHT;
        // After SIGTERM PostgreSQL would wait until its clients disconnect.
        await signal(part, [pid], part === 'postgres' ? 'SIGINT' : 'SIGTERM');
        await untilBack(part, pid, pids.length);
        // The next part, too, is restarted while requests are in flight.
        const goal = Math.min(lines, backend.seen.length + 3 * IN_FLIGHT);
        await until(() => backend.seen.length >= goal, 60_000, `work after the end of ${part}`);
        expect(resent()).toBeLessThanOrEqual(mayResend);
      }
      await expectCompleted(stack.client, id, { lines });
      expect(resent()).toBeLessThanOrEqual(mayResend);
    },
    TEST_MS,
  );
});

interface Uploading {
  /** Resolves when the server has the first half. */
  readonly started: Promise<void>;
  /** Sends the rest and resolves with the answer. */
  finish(): Promise<{ id: string; bytes: number; object: string }>;
}

function upload(text: string): Uploading {
  const boundary = 'nightshift-boundary';
  const part = (name: string, value: string, more = ''): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
  const body = `${part('purpose', 'batch')}${part('file', text, '; filename="i.jsonl"')}--${boundary}--\r\n`;
  const middle = body.length / 2;
  const sending = request(`${stack.baseUrl}/files`, {
    method: 'POST',
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': Buffer.byteLength(body),
    },
  });
  const answer = new Promise<string>((resolve, reject) => {
    sending.on('error', reject);
    sending.on('response', (response) => {
      let reply = '';
      response.on('data', (chunk: Buffer) => (reply += chunk.toString()));
      response.on('end', () => resolve(reply));
    });
  });
  answer.catch(() => undefined);
  const started = new Promise<void>((resolve) => {
    sending.write(body.slice(0, middle), () => resolve());
  });
  return {
    started,
    finish: async () => {
      await started;
      sending.end(body.slice(middle));
      return JSON.parse(await answer) as { id: string; bytes: number; object: string };
    },
  };
}

/** A download that stops reading after its beginning until `rest` is called. */
async function slowDownload(fileId: string): Promise<{ rest(): Promise<number> }> {
  return new Promise((resolve, reject) => {
    const getting = request(`${stack.baseUrl}/files/${fileId}/content`, (response) => {
      response.pause();
      const rest = (): Promise<number> =>
        new Promise((done, failed) => {
          let bytes = 0;
          response.on('data', (chunk: Buffer) => (bytes += chunk.length));
          response.on('end', () => done(bytes));
          response.on('error', failed);
          response.resume();
        });
      resolve({ rest });
    });
    getting.on('error', reject);
    getting.end();
  });
}

async function refusesConnections(): Promise<boolean> {
  return new Promise((resolve) => {
    const asking = request(`${stack.baseUrl}/batches`, { agent: false }, (response) => {
      response.resume();
      resolve(false);
    });
    asking.on('error', () => resolve(true));
    asking.end();
  });
}
