import { startGatewayProcess, type GatewayProcess } from '../support/gateway-process';
import { startRecordingBackend, type RecordingBackend } from '../support/recording-backend';
import {
  chatLines,
  resultLines,
  STACK_START_MS,
  startStack,
  submit,
  untilTerminal,
  type TestStack,
} from '../support/stack';
import { until } from '../support/until';

/** Batches that end, or whose worker stops, while a gateway holds most of their lines. */

/** Requests that the worker has open, and those of them that the gateway has in flight. */
const [OPEN, IN_FLIGHT] = [20, 4];
const LINES = 40;
const WAIT_MS = 30_000;
/** Long enough that a test fails if held lines are awaited. */
const GRACE = '60s';

let backend: RecordingBackend;
let gateway: GatewayProcess;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend();
  gateway = await startGatewayProcess({
    backends: [backend.url],
    settings: {
      request_queue_controller: {
        watermark_per_backend: IN_FLIGHT,
        lower_bound_per_backend: IN_FLIGHT,
        upper_bound_per_backend: IN_FLIGHT,
      },
      bands: { ceilings: [1, 1, 1] },
    },
  });
  stack = await startStack({
    config: {
      global_inference_gateway: {
        ...{ url: gateway.url, api_key_file: gateway.tokenFile, send_fairness_header: true },
        ...{ request_timeout: '3m', max_retries: 0 },
      },
      concurrency: { global: OPEN, per_model: OPEN },
      batch: { cancel_grace: GRACE, expiry_grace: '1s' },
      worker: { drain_budget: GRACE },
    },
    processes: 1,
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await gateway?.stop();
  await backend?.close();
}, 60_000);

/** Submits a batch, and waits until the backend has all that it takes and the rest of the permits wait. */
async function submitHeld(window = '24h'): Promise<string> {
  backend.seen.length = 0;
  backend.hold = () => true;
  const { id } = await submit(stack.client, chatLines(LINES), window);
  await untilQueued(OPEN - IN_FLIGHT);
  await until(() => backend.seen.length === IN_FLIGHT, WAIT_MS, 'dispatched lines', 5);
  return id;
}

async function untilQueued(count: number): Promise<void> {
  const isSo = async () => (await gateway.flow())?.queued.sheddable === count;
  await until(isSo, WAIT_MS, `${count} lines that wait at the gateway`, 5);
}

const untilIdle = () =>
  until(async () => (await gateway.flow())?.stock.requests === 0, WAIT_MS, 'an idle pool', 5);

it('a cancel keeps the answers of dispatched lines, and sends no held one', async () => {
  const id = await submitHeld();
  await stack.client.batches.cancel(id);
  await untilQueued(0);
  backend.hold = () => false;
  const batch = await untilTerminal(stack.client, id);
  expect(batch).toMatchObject({
    status: 'cancelled',
    request_counts: { total: LINES, completed: IN_FLIGHT },
  });
  await untilIdle();
  expect(backend.seen).toHaveLength(IN_FLIGHT);
  expect(await resultLines(stack.client, batch.output_file_id)).toHaveLength(IN_FLIGHT);
  const errors = await resultLines(stack.client, batch.error_file_id);
  expect(errors).toHaveLength(LINES - IN_FLIGHT);
  expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_cancelled']));
}, 60_000);

it('the end of the completion window sends no held line', async () => {
  const id = await submitHeld('5s');
  const batch = await untilTerminal(stack.client, id);
  expect(batch).toMatchObject({ status: 'expired', request_counts: { completed: 0 } });
  await untilIdle();
  await untilQueued(0);
  expect(backend.seen).toHaveLength(IN_FLIGHT);
}, 60_000);

it('a worker that stops waits for dispatched lines alone, and sends none of the others twice', async () => {
  const id = await submitHeld();
  const worker = stack.pidOf('worker');
  process.kill(worker, 'SIGTERM');
  await untilQueued(0);
  expect(backend.seen).toHaveLength(IN_FLIGHT);
  backend.hold = () => false;
  const isReplaced = () => ![null, worker].includes(stack.pidNow('worker'));
  await until(isReplaced, WAIT_MS, 'the next worker');
  const batch = await untilTerminal(stack.client, id);
  expect(batch).toMatchObject({ status: 'completed', request_counts: { completed: LINES } });
  const ids = backend.seen.map(({ requestId }) => requestId);
  expect([ids.length, new Set(ids).size]).toEqual([LINES, LINES]);
}, 60_000);
