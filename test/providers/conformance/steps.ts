import type {
  CreateResult,
  IdempotentResult,
  JobStatus,
  JobToFind,
  LineResult,
  Provider,
} from '../../../providers/provider';
import { until } from '../../support/until';
import { RESULTS, signal, STRICT, UPLOAD } from '../calls';

export { signal };

/** A simulated provider with an adapter open on it, as {@link describeConformance} needs it. */
export interface ConformanceHost {
  readonly provider: Provider;
  /** Changes settings of the simulated providers (docs/design/simulator.md#providers). */
  configure(change: object): Promise<void>;
  /** `GET /simulator/providers/stats`. */
  stats(): Promise<HostStats>;
  /** Replaces the key that the adapter sends. */
  rotateKey(key: string): void;
}

/** A part of the statistics of the simulated providers. */
export interface HostStats {
  readonly calls: Readonly<Record<string, number>>;
  /** Jobs by the value of our marker. */
  readonly creates: Readonly<Record<string, number>>;
  readonly files: readonly { readonly id: string; readonly purpose: string }[];
}

/** What the adapter's calls are named in the faults of its provider. */
export interface CallNames {
  readonly upload: string;
  readonly create: string;
  readonly list: string;
  readonly status: string;
  readonly cancel: string;
  readonly content: string;
  readonly remove: string;
}

/** The calls of providers whose inputs and results are files. */
export const FILE_CALLS: CallNames = {
  upload: 'files.create',
  create: 'batches.create',
  list: 'batches.list',
  status: 'batches.retrieve',
  cancel: 'batches.cancel',
  content: 'files.content',
  remove: 'files.delete',
};

/** What not every provider says. */
export interface HostTraits {
  /** A job tells how many of its lines are answered. */
  readonly counts: boolean;
  /** A job tells its tokens. */
  readonly usage: boolean;
  /** A job that failed names the lines to blame, and a full quota is such a failure. */
  readonly blamesLines: boolean;
  /** Results name the lines that did not run. */
  readonly namesUnrun: boolean;
}

export const ALL_TRAITS: HostTraits = {
  counts: true,
  usage: true,
  blamesLines: true,
  namesUnrun: true,
};

/** Opens a host for one test. */
export type OpenHost = () => Promise<ConformanceHost>;

export const JOB_ID = `job_${'c'.repeat(32)}`;
export const WIRE_IDS = ['n1', 'n2', 'n3', 'n4'];

export function ok(value: unknown): object {
  return { outcome: 'ok', value };
}

export function inputOf(provider: Provider, bodies: readonly object[] = [{}, {}, {}, {}]): Buffer {
  const lines = bodies.map((body, index) => {
    const request = { model: 'given', messages: [{ role: 'user', content: `q${index}` }], ...body };
    const line = provider.encode({
      wireId: WIRE_IDS[index] ?? '',
      endpoint: '/v1/chat/completions',
      model: 'model-there',
      body: Buffer.from(JSON.stringify(request)),
      translation: STRICT,
    });
    if (line.kind === 'refused') throw new Error(line.message);
    return `${line.bytes.toString()}\n`;
  });
  return Buffer.from(lines.join(''));
}

export const JOB = {
  jobId: JOB_ID,
  storeId: 'store-0',
  endpoint: '/v1/chat/completions',
  model: 'model-there',
  lines: 4,
  hops: 0,
};

export function uploadOf(
  provider: Provider,
  bodies?: readonly object[],
  jobId = JOB_ID,
): Promise<IdempotentResult<string>> {
  const bytes = inputOf(provider, bodies);
  const input = {
    bytes: bytes.length,
    async *open() {
      yield bytes;
    },
  };
  return provider.upload({ ...JOB, jobId }, input, UPLOAD);
}

/** A job whose input is at the provider. */
export async function uploaded(
  provider: Provider,
  bodies?: readonly object[],
  jobId = JOB_ID,
): Promise<JobToFind> {
  const remoteInput = valueOf(await uploadOf(provider, bodies, jobId));
  const window = provider.completionWindow(3_600_000);
  return { ...JOB, jobId, remoteInput, window, listFromMs: Date.now() - 600_000 };
}

export function created(
  provider: Provider,
  job: JobToFind,
  timeoutMs = 5_000,
): Promise<CreateResult> {
  const call = { signal, timeoutMs, mayLeave: () => true };
  return provider.create({ ...job, inline: null }, call);
}

export function idOf(result: CreateResult): string {
  if (result.outcome !== 'accepted') throw new Error(result.failure.message);
  return result.value.externalId;
}

export function valueOf<Value>(result: IdempotentResult<Value>): Value {
  if (result.outcome !== 'ok') throw new Error(`${result.outcome}: ${result.failure.message}`);
  return result.value;
}

export const OPEN_STATES = ['submitted', 'running', 'cancelling'];

export function ended(provider: Provider, externalId: string): Promise<JobStatus> {
  return until(
    async () => {
      const status = valueOf(await provider.status(externalId, { signal }));
      return OPEN_STATES.includes(status.state) ? null : status;
    },
    5_000,
    'the end of the job',
  );
}

export async function resultsOf(
  provider: Provider,
  status: JobStatus,
): Promise<{ results: LineResult[]; malformed: number }> {
  const results: LineResult[] = [];
  const take = (result: LineResult) => void results.push(result);
  const totals = valueOf(await provider.results(status, take, RESULTS));
  expect(totals.results).toBe(results.length);
  return { results, malformed: totals.malformed };
}

export const idsOf = (results: readonly LineResult[]) => results.map(({ wireId }) => wireId);
export const statusOf = (result: LineResult) => (result.kind === 'answer' ? result.status : null);
export const reasonOf = (result: LineResult) =>
  result.kind === 'unanswered' ? result.reason : null;
