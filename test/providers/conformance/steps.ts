import type {
  CreateResult,
  IdempotentResult,
  JobInput,
  JobRemains,
  JobStatus,
  JobToCreate,
  JobToFind,
  LineResult,
  NewJob,
  Provider,
  UploadOptions,
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
  /** The codes of a wrong key and of a refused request. */
  readonly codes: { readonly auth: string; readonly refused: string };
  /** A job is looked up in a list, which may lag behind, and not by its name. */
  readonly lists: boolean;
  /** Inputs are uploaded before the create. */
  readonly uploads: boolean;
  /** What a job leaves behind can be deleted. */
  readonly deletes: boolean;
  /** A job can be cancelled. */
  readonly cancels: boolean;
  /** A job tells its state in words. */
  readonly hasWords: boolean;
  /** A job tells how many of its lines are answered. */
  readonly counts: boolean;
  /** A job tells its tokens. */
  readonly usage: boolean;
  /** A job that failed names the lines to blame, and a full quota is such a failure. */
  readonly blamesLines: boolean;
  /** Results name the lines that did not run. */
  readonly namesUnrun: boolean;
  /** An expired job has the answers that were ready. */
  readonly keepsExpired: boolean;
  /** A status of a line that its provider may answer later, as results have it. */
  readonly busyStatus: number;
  /** Names the first job in {@link HostStats.creates}. */
  readonly marker: string;
}

export const JOB_ID = `job_${'c'.repeat(32)}`;
export const WIRE_IDS = ['n1', 'n2', 'n3', 'n4'];

export const ALL_TRAITS: HostTraits = {
  codes: { auth: 'invalid_api_key', refused: 'invalid_value' },
  lists: true,
  uploads: true,
  deletes: true,
  cancels: true,
  hasWords: true,
  counts: true,
  usage: true,
  blamesLines: true,
  namesUnrun: true,
  keepsExpired: true,
  busyStatus: 503,
  marker: JOB_ID,
};

/** Opens a host for one test. */
export type OpenHost = () => Promise<ConformanceHost>;

export function ok(value: unknown): object {
  return { outcome: 'ok', value };
}

/** The lines of the jobs of an adapter. */
export interface JobLines {
  readonly endpoint: string;
  /** Of the lines of a job. */
  readonly wireIds: readonly string[];
  /** The body of a line, without the model. */
  body(index: number): object;
  readonly openFile: UploadOptions['openFile'];
}

const CHATS: JobLines = {
  endpoint: '/v1/chat/completions',
  wireIds: WIRE_IDS,
  body: (index) => ({ messages: [{ role: 'user', content: `q${index}` }] }),
  openFile: UPLOAD.openFile,
};

/** Recordings of a second or more, each in a file of its own. */
export function recordings(wireIds: readonly string[]): JobLines {
  return {
    endpoint: '/v1/audio/transcriptions',
    wireIds,
    body: (index) => ({ file_id: `file-${index}`, response_format: 'verbose_json' }),
    openFile: async (fileId) => {
      const bytes = Buffer.alloc(32_000 + fileId.length, fileId);
      return { filename: 'Call 1.WAV', ...inputOfBytes(bytes) };
    },
  };
}

let jobLines = CHATS;

/** What the jobs of this test file are made of. Without it, four chats. */
export function runWith(lines: JobLines): void {
  jobLines = lines;
}

/** The ids of the lines of a job. */
export function lineIds(): readonly string[] {
  return jobLines.wireIds;
}

/** A body by which the simulated model refuses its line with a status. */
export function refusedWith(status: number): object {
  return { simulate: { status } };
}

export function inputOf(provider: Provider, bodies?: readonly object[]): Buffer {
  const { wireIds, body: bodyOf } = jobLines;
  const lines = (bodies ?? wireIds.map(() => ({}))).map((body, index) => {
    const request = { model: 'given', ...bodyOf(index) };
    // Types that translate know no such member. An extra member reaches their model.
    const line =
      lineOf(provider, index, { ...request, ...body }) ?? lineOf(provider, index, request, body);
    if (line === null) throw new Error(`line ${index} cannot be encoded`);
    return `${line.toString()}\n`;
  });
  return Buffer.from(lines.join(''));
}

/** Null if the provider cannot express the body. */
function lineOf(provider: Provider, index: number, body: object, extra: object = {}) {
  const line = provider.encode({
    wireId: jobLines.wireIds[index] ?? '',
    endpoint: jobLines.endpoint,
    model: 'model-there',
    body: Buffer.from(JSON.stringify(body)),
    translation: { ...STRICT, extraBody: { ...extra } },
  });
  return line.kind === 'refused' ? null : line.bytes;
}

const jobOf = (jobId: string): JobToCreate => {
  const { endpoint, wireIds } = jobLines;
  const model = 'model-there';
  return { jobId, storeId: 'store-0', endpoint, model, lines: wireIds.length, hops: 0 };
};

function inputOfBytes(bytes: Buffer): JobInput {
  return {
    bytes: bytes.length,
    async *open() {
      yield bytes;
    },
  };
}

export function uploadOf(
  provider: Provider,
  bodies?: readonly object[],
  jobId = JOB_ID,
): Promise<IdempotentResult<string>> {
  const input = inputOfBytes(inputOf(provider, bodies));
  return provider.upload(jobOf(jobId), input, { ...UPLOAD, openFile: jobLines.openFile });
}

/** A job that may be created, and looked up. */
export type ReadyJob = JobToFind & NewJob;

/** A job whose input is at the provider, or goes there with its create. */
export async function uploaded(
  provider: Provider,
  bodies?: readonly object[],
  jobId = JOB_ID,
): Promise<ReadyJob> {
  const isInline = provider.capabilities.input === 'inline';
  const inline = isInline ? inputOfBytes(inputOf(provider, bodies)) : null;
  const remoteInput = isInline ? null : valueOf(await uploadOf(provider, bodies, jobId));
  const window = provider.completionWindow(3_600_000);
  return { ...jobOf(jobId), inline, remoteInput, window, listFromMs: Date.now() - 600_000 };
}

export function created(
  provider: Provider,
  job: ReadyJob,
  timeoutMs = 5_000,
): Promise<CreateResult> {
  return provider.create(job, { signal, timeoutMs, mayLeave: () => true });
}

/** The job that a look-up finds, or all that may be the job, if only their results can prove it. */
export async function foundIds(provider: Provider, job: JobToFind): Promise<readonly string[]> {
  const found = valueOf(await provider.find(job, { signal }));
  switch (found.kind) {
    case 'none':
      return [];
    case 'job':
      return [found.job.externalId];
    case 'candidates':
      expect(provider.capabilities.find).toBe('window');
      return found.externalIds;
  }
}

export function idOf(result: CreateResult): string {
  if (result.outcome !== 'accepted') throw new Error(result.failure.message);
  return result.value.externalId;
}

export function valueOf<Value>(result: IdempotentResult<Value>): Value {
  if (result.outcome !== 'ok') throw new Error(`${result.outcome}: ${result.failure.message}`);
  return result.value;
}

/** What a job leaves at its provider. */
export function remainsOf(
  { remoteInput }: JobToFind,
  { externalId, resultFiles }: JobStatus,
): JobRemains {
  return { externalId, remoteInputs: remoteInput === null ? [] : [remoteInput], resultFiles };
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
