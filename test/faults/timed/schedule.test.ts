import { writeFileSync } from 'node:fs';
import { checkRound } from '../checker/checker';
import type { Tolerance } from '../checker/evidence';
import { faultsApi } from '../round/api';
import type { FaultsModelServer } from '../round/model-server';
import { startFaultsModelServer } from '../round/model-server';
import type { FaultsParts } from '../round/parts';
import { faultsParts } from '../round/parts';
import { planRound, ROUTED_MODELS } from '../round/plan';
import { describeRound, FaultFigures, roundLine } from '../round/report';
import { playRound } from '../round/round';
import type { SecondWorker } from '../round/second-worker';
import { startSecondWorker } from '../round/second-worker';
import type { GatewayProcess } from '../../support/gateway-process';
import { startGatewayProcess } from '../../support/gateway-process';
import type { TestStack } from '../../support/stack';
import { STACK_START_MS, startStack } from '../../support/stack';
import { FLUSH_MS, PROCESSES, STORE } from '../../support/variant';

/** `npm run faults` sets these; `npm test` runs a few rounds of one schedule. */
const env = process.env;
const ROUNDS = Number(env['NIGHTSHIFT_FAULT_ROUNDS'] ?? 8);
const FIRST_ROUND = Number(env['NIGHTSHIFT_FAULT_FIRST_ROUND'] ?? 0);
const SEED = Number(env['NIGHTSHIFT_FAULT_SEED'] ?? 1);
const TWO_WORKERS = PROCESSES > 1;
const GATEWAY = env['NIGHTSHIFT_FAULT_GATEWAY'];
const HAS_GATEWAY = GATEWAY !== undefined;
const FLAGS = [
  ...(TWO_WORKERS ? [' --workers 2'] : []),
  ...(STORE === 's3' ? [' --store s3'] : []),
  ...(HAS_GATEWAY ? [` --gateway ${GATEWAY}`] : []),
].join('');
const LONG = env['NIGHTSHIFT_FAULT_ROUNDS'] !== undefined;
const ROUND_MS = 240_000;
/**
 * The long version checks the flush interval of 0.2 s. The few rounds of `npm test` run on machines of any
 * speed, where a starved process writes its journal late, so they check for loss and not for delays.
 */
const TOLERANCE: Tolerance = {
  lastFlushMs: STORE === 's3' || LONG ? FLUSH_MS : 1_500,
  // A gateway is one more process that a request passes.
  clockMs: LONG ? (HAS_GATEWAY ? 150 : 50) : 250,
  cancelGraceMs: 2_000,
};

const figures = new FaultFigures();
let modelServer: FaultsModelServer;
let gateway: GatewayProcess | null = null;
let stack: TestStack;
let second: SecondWorker | null = null;
let parts: FaultsParts;
let failed = false;

beforeAll(async () => {
  modelServer = await startFaultsModelServer();
  gateway = HAS_GATEWAY ? await startFaultsGateway(modelServer.url) : null;
  const route = {
    url: gateway?.url ?? modelServer.url,
    ...(gateway === null ? {} : { api_key_file: gateway.tokenFile, send_fairness_header: true }),
    request_timeout: '10s',
    // Failed connection attempts count, and a cut costs many of them. The link of the second worker accepts connections
    // while the gateway behind it is away, and closes them: such failures count for as long as that takes.
    max_retries: HAS_GATEWAY && TWO_WORKERS ? 40 : 15,
    initial_backoff: '20ms',
    max_backoff: '500ms',
  };
  stack = await startStack({
    // The second worker is one whose links are struck too.
    processes: 1,
    config: {
      model_gateways: Object.fromEntries(ROUTED_MODELS.map((model) => [model, route])),
      concurrency: { global: 40, per_model: 20 },
      worker: { heartbeat_timeout: '3s' },
      batch: { cancel_grace: `${TOLERANCE.cancelGraceMs}ms` },
    },
  });
  second = TWO_WORKERS ? await startSecondWorker(stack) : null;
  if (second !== null) modelServer.lateness.alsoThrough(second.links.models);
  parts = faultsParts({
    get stack() {
      return stack;
    },
    restart: async () => {
      stack = await stack.restart();
    },
    modelServer,
    secondWorker: second,
    gateway,
  });
}, STACK_START_MS);

afterAll(async () => {
  await second?.stop();
  await stack?.stop();
  if (failed) console.error(`kept for inspection: ${stack.dataDir}`);
  else stack?.remove();
  await gateway?.stop();
  await modelServer?.close();
  if (LONG) process.stderr.write(`${figures.toString()}\n`);
}, 90_000);

/** Half of the 40 lines that a worker has open wait at it. */
function startFaultsGateway(url: string): Promise<GatewayProcess> {
  return startGatewayProcess({
    backends: [url],
    settings: {
      drain_budget: '1500ms',
      fair_request_queue: { queue_ttl: '5s', batch_queue_ttl: '1500ms', no_backend_ttl: '1s' },
      // A line that gets a 429 lowers what is learnt. Many do here, so there is a least limit.
      ...(GATEWAY === 'learnt'
        ? { adaptive: { min: 8 } }
        : { request_queue_controller: { watermark_per_backend: 20 } }),
    },
    pool: { probe: { interval: '200ms' } },
  });
}

describe(`a schedule of faults, seed ${SEED}`, () => {
  const rounds = Array.from({ length: ROUNDS }, (_, i) => FIRST_ROUND + i);

  it.each(rounds)(
    'round %i: every batch ends complete, and no line is sent twice without a reason',
    async (round) => {
      const plan = planRound({
        ...{ seed: SEED, round, twoWorkers: TWO_WORKERS, store: STORE },
        hasGateway: HAS_GATEWAY,
      });
      await parts.calm();
      const api = faultsApi(stack.baseUrl);
      const evidence = await playRound(plan, {
        ...{ api, modelServer, parts, tolerance: TOLERANCE },
        gatewayUrl: gateway?.url ?? null,
      });
      const verdict = checkRound(evidence);
      figures.add(evidence, verdict);
      if (LONG) process.stderr.write(`${roundLine(round, evidence)}\n`);
      if (verdict.violations.length === 0) return;
      failed = true;
      const file = `${stack.dataDir}.round-${round}.json`;
      writeFileSync(file, JSON.stringify({ plan, evidence, verdict }));
      throw new Error(describeRound({ plan, evidence, verdict, file, flags: FLAGS }));
    },
    ROUND_MS,
  );
});
