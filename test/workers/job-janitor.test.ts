import { wireId } from '../../core/delegation/job-ids';
import type { OpenProvider } from '../../activities/delegate/deps';
import { configSchema } from '../../platform/config-schema';
import type { CallFailure, JobStatus, Provider } from '../../providers/provider';
import {
  createProviderJobs,
  type ProviderJobs,
} from '../../storage/postgres/provider-jobs/repository';
import { startJobJanitor } from '../../workers/job-janitor';
import { ACCOUNT, leaseRequest, uploadedJob } from '../storage/postgres/provider-jobs/job-scene';
import { useDatabase } from '../support/postgres';
import { insertBatch } from '../support/rows';
import { until } from '../support/until';

const database = useDatabase('batches', 'provider_jobs');
let jobs: ProviderJobs;
beforeAll(() => {
  jobs = createProviderJobs(database.pool);
});

const FAILURE: CallFailure = { code: null, message: 'no', status: 500, retryAfterMs: null };
const USAGE = { inputTokens: 1_000_000, cachedTokens: 0, outputTokens: 0 };

function status(over: Partial<JobStatus> = {}): JobStatus {
  return {
    ...{ externalId: 'x', state: 'running', providerState: 'in_progress', isKnownState: true },
    ...{ counts: null, error: null, lineErrors: [], isQuotaRefusal: false },
    ...{ resultFiles: [], hasAllResults: true, usage: null },
    ...over,
  };
}

type Calls = Pick<Provider, 'find' | 'status' | 'results' | 'cancel' | 'cleanup'>;

/** A provider with scripted answers; notes its calls. */
function scripted(answers: Partial<Calls>, settings: object = {}) {
  const calls: string[] = [];
  const noted =
    <A extends unknown[], R>(name: string, answer: (...args: A) => R) =>
    (...args: A): R => {
      calls.push(`${name} ${JSON.stringify(args[0])}`);
      return answer(...args);
    };
  const unexpected = (name: string) => () => Promise.reject(new Error(`unexpected ${name}`));
  const api = {
    find: noted('find', answers.find ?? unexpected('find')),
    status: noted('status', answers.status ?? unexpected('status')),
    results: noted('results', answers.results ?? unexpected('results')),
    cancel: noted('cancel', answers.cancel ?? unexpected('cancel')),
    cleanup: noted('cleanup', answers.cleanup ?? unexpected('cleanup')),
  } as unknown as Provider;
  const config = configSchema.parse({
    providers: { openai: { type: 'openai', url: 'http://x/v1', ...settings } },
    delegates: { gpt: { provider: 'openai', price: { input: 2, output: 3 } } },
  });
  const provider = {
    ...{ name: 'openai', account: ACCOUNT, settleMs: 0, isExclusive: false },
    ...{ config: config.providers['openai'], api },
  };
  return { provider: provider as OpenProvider, config, calls };
}

const ok = <T>(value: T) => Promise.resolve({ outcome: 'ok' as const, value });
const fails = (outcome: 'auth' | 'transient' | 'refused' | 'gone') =>
  Promise.resolve({ outcome, failure: FAILURE });

interface Cost {
  readonly costUsd: number | null;
}

/** Runs rounds until `done`; returns the costs that were reported. */
async function cleanUp(
  { provider, config }: ReturnType<typeof scripted>,
  done: () => Promise<boolean> | boolean,
): Promise<Cost[]> {
  const costs: Cost[] = [];
  const errors: unknown[] = [];
  const janitor = startJobJanitor({
    jobs,
    batches: { find: async () => null },
    store: { storeId: async () => 'store' },
    providers: [provider],
    config,
    observer: {
      called: () => undefined,
      adopted: () => undefined,
      jobEnded: () => undefined,
      abandoned: () => undefined,
      collected: ({ costUsd }) => costs.push({ costUsd }),
    },
    logger: { warn: (log: unknown) => errors.push(log) } as never,
    everyMs: 10,
    idleMs: 0,
  });
  await until(done, 10_000, 'the janitor');
  await janitor.close();
  return costs;
}

const ended = async () => ({ batchId: await insertBatch(database.pool, { status: 'cancelled' }) });
const submitted = async (externalId = 'x') => {
  const { id } = await uploadedJob(database.pool, await ended());
  await jobs.recordCreated(id, { externalId, adopted: false });
  return id;
};
const CANDIDATES = { kind: 'candidates' as const, externalIds: ['theirs'] };
/** A job whose create was not answered, an hour ago. */
const unanswered = async () => {
  const { id, batchId } = await uploadedJob(database.pool);
  await jobs.takeLease(leaseRequest(id));
  await database.pool.query(`update provider_jobs set creating_until = now() - interval '1h'`);
  await database.pool.query(`update batches set status = 'expired' where id = $1`, [batchId]);
  return id;
};
const stepOf = async (id: string) => (await jobs.find(id))?.step;
const isReleased = (id: string) => async () => (await stepOf(id)) === 'released';

describe('the janitor', () => {
  it('cancels a job until it has ended, notes its cost, deletes its files', async () => {
    const id = await submitted();
    let looks = 0;
    const scene = scripted({
      status: () => {
        looks += 1;
        const end = { state: 'cancelled', usage: USAGE, resultFiles: ['out'] } as const;
        return ok(looks < 3 ? status() : status(end));
      },
      cancel: () => ok('requested' as const),
      cleanup: () => ok(undefined),
    });
    expect(await cleanUp(scene, isReleased(id))).toEqual([{ costUsd: 2 }]);
    const look = 'status "x"';
    expect(scene.calls).toEqual([
      ...[look, 'cancel "x"', look, 'cancel "x"', look],
      `cleanup ${JSON.stringify({ externalId: 'x', remoteInputs: [`file-${id}`], resultFiles: ['out'] })}`,
    ]);
    expect(await jobs.find(id)).toMatchObject({ usage: USAGE, costUsd: 2, outcome: null });
  });

  it('deletes the files of a collected job without a second cost', async () => {
    const id = await submitted();
    await jobs.recordEnd(id, { providerStatus: 'completed', outcome: 'completed', error: null });
    await jobs.recordCollected(id, { outcome: 'completed', costUsd: 7 });
    const done = status({ state: 'completed', resultFiles: ['out'], usage: USAGE });
    const scene = scripted({ status: () => ok(done), cleanup: () => ok(undefined) });
    expect(await cleanUp(scene, isReleased(id))).toEqual([]);
    expect(scene.calls).toHaveLength(2);
    expect(await jobs.find(id)).toMatchObject({ costUsd: 7, outcome: 'completed' });
  });

  it('leaves the files where they are with keep_remote', async () => {
    const collected = await submitted();
    await jobs.recordEnd(collected, { providerStatus: 'x', outcome: 'completed', error: null });
    await jobs.recordCollected(collected, { outcome: 'completed', costUsd: null });
    const running = await submitted('y');
    const end = status({ externalId: 'y', state: 'completed', resultFiles: ['out'] });
    const scene = scripted({ status: () => ok(end) }, { keep_remote: true });
    const both = [isReleased(collected), isReleased(running)];
    await cleanUp(scene, async () => (await Promise.all(both.map((is) => is()))).every(Boolean));
    expect(scene.calls).toEqual(['status "y"']);
  });

  it('looks for a job whose create was not answered, and cancels it', async () => {
    const { id, batchId } = await uploadedJob(database.pool);
    await jobs.takeLease(leaseRequest(id));
    await database.pool.query(`update batches set status = 'expired' where id = $1`, [batchId]);
    const scene = scripted({
      find: () => ok({ kind: 'job' as const, job: { externalId: 'found', createdAtMs: null } }),
      status: () => ok(status()),
      cancel: () => ok('requested' as const),
    });
    await cleanUp(scene, () => scene.calls.length > 3);
    expect(await jobs.find(id)).toMatchObject({
      ...{ externalId: 'found', isAdopted: true, step: 'abandoned' },
    });
    expect(scene.calls.slice(1, 3)).toEqual(['status "found"', 'cancel "found"']);
    const found = JSON.parse(scene.calls[0]?.slice(5) ?? '') as object;
    expect(found).toMatchObject({ jobId: id, storeId: 'store', remoteInput: `file-${id}` });
  });

  it('keeps looking while such a job may still appear, and then deletes its input', async () => {
    const { id, batchId } = await uploadedJob(database.pool);
    await jobs.takeLease(leaseRequest(id));
    await database.pool.query(`update batches set status = 'expired' where id = $1`, [batchId]);
    const scene = scripted({
      find: () => ok({ kind: 'none' as const }),
      cleanup: () => ok(undefined),
    });
    await cleanUp(scene, () => scene.calls.length > 3);
    expect(scene.calls.filter((call) => !call.startsWith('find'))).toEqual([]);
    await database.pool.query(`update provider_jobs set creating_until = now() - interval '1h'`);
    await cleanUp(scene, isReleased(id));
    expect(scene.calls.at(-1)).toContain(
      `cleanup {"externalId":null,"remoteInputs":["file-${id}"]`,
    );
  });

  it('only looks at jobs that may be those of others', async () => {
    const id = await unanswered();
    const scene = scripted({ find: () => ok(CANDIDATES), status: () => ok(status()) });
    await cleanUp(scene, () => scene.calls.length > 6);
    expect(await stepOf(id)).toBe('abandoned');
    expect(scene.calls.every((call) => /^(find|status)/.test(call))).toBe(true);
  });

  it('takes the candidate that its results prove, and releases a job without one', async () => {
    for (const isOurs of [true, false]) {
      const id = await unanswered();
      const result = { kind: 'unanswered' as const, reason: 'cancelled' as const };
      const of = isOurs ? id : `job_${'f'.repeat(32)}`;
      const scene = scripted({
        find: () => ok(CANDIDATES),
        status: () => ok(status({ state: 'cancelled', usage: USAGE })),
        results: async (_, take) => {
          await take({ ...result, wireId: wireId(of, 0) });
          return ok({ results: 1, malformed: 0 });
        },
        cleanup: () => ok(undefined),
      });
      await cleanUp(scene, isReleased(id));
      expect(await jobs.find(id)).toMatchObject({ externalId: isOurs ? 'theirs' : null });
    }
  });

  it('releases what was never sent without a call', async () => {
    const { id } = await jobs.open({
      ...(await uploadedJob(database.pool, await ended())),
      id: 'job_1',
      from: 7,
    });
    const scene = scripted({ cleanup: () => ok(undefined) });
    await cleanUp(scene, isReleased(id));
    expect(scene.calls.filter((call) => call.includes('"remoteInputs":[]'))).toEqual([]);
  });

  it('releases a job that its provider does not know, and one whose files it may not delete', async () => {
    const [gone, kept] = [await submitted('gone'), await submitted('kept')];
    const scene = scripted({
      status: (id) => (id === 'gone' ? fails('gone') : ok(status({ state: 'completed' }))),
      cleanup: () => fails('refused'),
    });
    const both = [isReleased(gone), isReleased(kept)];
    await cleanUp(scene, async () => (await Promise.all(both.map((is) => is()))).every(Boolean));
    expect(scene.calls).toHaveLength(4);
  });

  it('tries again after a failed call, and visits the other jobs although files are not deleted', async () => {
    const [first, second] = [await submitted('1'), await submitted('2')];
    let failures = 0;
    const scene = scripted({
      status: () => (++failures < 3 ? fails('transient') : ok(status({ state: 'completed' }))),
      cleanup: () => (++failures < 9 ? fails('auth') : ok(undefined)),
    });
    const both = [isReleased(first), isReleased(second)];
    await cleanUp(scene, async () => (await Promise.all(both.map((is) => is()))).every(Boolean));
  });

  it('asks a provider that refuses its key once a round', async () => {
    for (const name of ['1', '2', '3']) await submitted(name);
    const scene = scripted({ status: () => fails('auth') });
    const janitor = startJobJanitor({
      jobs,
      ...{ batches: { find: async () => null }, store: { storeId: async () => 'store' } },
      ...{ providers: [scene.provider], config: scene.config, everyMs: 600_000, idleMs: 0 },
      observer: { called: () => undefined } as never,
      logger: { warn: () => undefined } as never,
    });
    await until(() => scene.calls.length > 0, 5_000, 'the first call');
    await janitor.close();
    expect(scene.calls).toHaveLength(1);
  });
});
