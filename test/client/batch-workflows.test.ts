import type { Client } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/client';
import { createBatchWorkflows, type BatchWorkflowsOptions } from '../../client/batch-workflows';
import { createDescribe } from '../../client/describe-workflow';

/** Which calls to Temporal are made for one batch, and which of its answers are failures. */

const BATCH = {
  id: 'batch_1',
  tenant: 't',
  endpoint: '/v1/embeddings',
  inputFileId: 'file-x',
  expiresAtSec: 1_700_000_000,
};

interface Call {
  readonly what: string;
  readonly id: string;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Time that the call was given, ms. */
  readonly withinMs: number;
}

const calls: Call[] = [];
beforeEach(() => void (calls.length = 0));

/** A client whose every call ends as `answer` does. */
function fakeClient(answer: () => Promise<unknown> = async () => undefined): Client {
  let withinMs = NaN;
  const note = (what: string, id: string, options?: Record<string, unknown>) => {
    calls.push({ what, id, withinMs, ...(options === undefined ? {} : { options }) });
    return answer();
  };
  const workflow = {
    start: (type: string, options: Record<string, unknown>) =>
      note(`start ${type}`, String(options['workflowId']), options),
    getHandle: (id: string) => ({
      signal: (name: string) => note(`signal ${name}`, id),
      describe: () => note('describe', id),
    }),
  };
  const withDeadline = (deadline: number, call: () => unknown): unknown => {
    withinMs = deadline - Date.now();
    return call();
  };
  return { workflow, withDeadline } as unknown as Client;
}

const failing = (error: Error) => fakeClient(() => Promise.reject(error));
const gone = new WorkflowNotFoundError('gone', 'batch_1', undefined);
const away = new Error('14 UNAVAILABLE');
const running = Object.assign(new Error('already started'), {
  name: 'WorkflowExecutionAlreadyStartedError',
});

describe('the start of a batch', () => {
  it.each<[string, BatchWorkflowsOptions, string]>([
    ['the API never starts one a second time', {}, 'REJECT_DUPLICATE'],
    ['reconcile starts one again that was closed', { reuse: 'ALLOW_DUPLICATE' }, 'ALLOW_DUPLICATE'],
  ])('joins a running workflow, and %s', async (_, options, reuse) => {
    await createBatchWorkflows(fakeClient(), options).start(BATCH);
    expect(calls).toMatchObject([
      {
        what: 'start batchWorkflow',
        id: 'batch_1',
        options: {
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowIdReusePolicy: reuse,
          args: [{ batchId: 'batch_1' }],
        },
      },
    ]);
  });

  it('succeeds if the workflow was started before', async () => {
    await expect(createBatchWorkflows(failing(running)).start(BATCH)).resolves.toBeUndefined();
  });

  it('fails if it is unknown whether the workflow was started', async () => {
    await expect(createBatchWorkflows(failing(away)).start(BATCH)).rejects.toBe(away);
  });

  it.each([
    [{ default: 2, tenants: { [BATCH.tenant]: 3 }, models: {} }, 3],
    [{ default: 2, tenants: { other: 3 }, models: {} }, 2],
    [undefined, 1],
  ])('has the weight of its tenant: %j', async (fairness, weight) => {
    await createBatchWorkflows(fakeClient(), fairness && { fairness }).start(BATCH);
    expect(calls[0]?.options?.['priority']).toEqual({
      fairnessKey: BATCH.tenant,
      fairnessWeight: weight,
    });
  });

  it.each(['t'.repeat(65), 'ü'.repeat(40), '😀'.repeat(40)])(
    'has a fairness key that is short enough for the server: %s',
    async (tenant) => {
      await createBatchWorkflows(fakeClient()).start({ ...BATCH, tenant });
      const { fairnessKey } = calls[0]?.options?.['priority'] as { fairnessKey: string };
      expect(Buffer.byteLength(fairnessKey)).toBeLessThanOrEqual(64);
      expect(fairnessKey).not.toBe(tenant);
    },
  );
});

describe('the cancel of a batch', () => {
  it('is a signal, and succeeds if the workflow is closed or was never started', async () => {
    await createBatchWorkflows(fakeClient()).cancel('batch_1');
    expect(calls).toMatchObject([{ what: 'signal cancelBatch', id: 'batch_1' }]);
    await expect(createBatchWorkflows(failing(gone)).cancel('batch_1')).resolves.toBeUndefined();
  });

  it('fails if Temporal does not answer, so that the caller repeats it', async () => {
    await expect(createBatchWorkflows(failing(away)).cancel('batch_1')).rejects.toBe(away);
  });
});

describe('the state of the workflow of a batch', () => {
  it.each([
    ['RUNNING', 'running'],
    ['COMPLETED', 'closed'],
    ['FAILED', 'closed'],
    ['CANCELLED', 'closed'],
    ['TERMINATED', 'closed'],
    ['TIMED_OUT', 'closed'],
    ['CONTINUED_AS_NEW', 'running'],
    ['PAUSED', 'running'],
    ['UNKNOWN', 'running'],
  ])('%s in Temporal counts as %s', async (name, state) => {
    const client = fakeClient(async () => ({ status: { name } }));
    expect(await createDescribe(client)('batch_1')).toBe(state);
  });

  it('is missing only if Temporal says so', async () => {
    expect(await createDescribe(failing(gone))('batch_1')).toBe('missing');
    await expect(createDescribe(failing(away))('batch_1')).rejects.toBe(away);
  });
});

it('limits every call to Temporal to a few seconds', async () => {
  const client = fakeClient(async () => ({ status: { name: 'RUNNING' } }));
  await createBatchWorkflows(client).start(BATCH);
  await createBatchWorkflows(client).cancel('batch_1');
  await createDescribe(client)('batch_1');
  for (const { withinMs } of calls) {
    expect(withinMs).toBeGreaterThan(0);
    expect(withinMs).toBeLessThanOrEqual(10_000);
  }
});
