import { JOB_OUTCOMES, JOB_STEPS } from '../../../core/delegation/job-steps';
import {
  providerState,
  type ProviderStateKind,
  type StateJob,
  stateKind,
  stateStatus,
} from '../../../core/delegation/provider-state';

const job: StateJob = {
  ...{ externalId: 'x1', status: 'submitted', error: null },
  ...{ pollFailures: 2, model: 'long', outputUri: null },
  ...{ sourceUri: 'gs://b/a.wav', filename: 'a.wav' },
};
const state = (kind: ProviderStateKind, over: Partial<StateJob> = {}) =>
  providerState({
    ...{ kind, inputIds: ['file-1'], invalidUrls: ['http://bad'] },
    jobs: [{ ...job, ...over }],
  });

describe('the state of the jobs of a batch', () => {
  it('lists completions by model, with the place of the results once it is known', () => {
    const listed = { model: 'long', status: 'SUBMITTED', external_job_id: 'x1' };
    expect(state('COMPLETION')).toEqual({
      task_type: 'completion',
      input_dataset_ids: ['file-1'],
      jobs: [{ ...listed, transient_failures: 2 }],
    });
    expect(state('COMPLETION', { outputUri: 'gs://b/out', error: 'no' })['jobs']).toEqual([
      { ...listed, output_uri: 'gs://b/out', error: 'no', transient_failures: 2 },
    ]);
  });

  const frame = {
    task_type: 'transcription',
    dataset_ids: ['file-1'],
    invalid_urls: ['http://bad'],
  };
  const common = { external_job_id: 'x1', status: 'SUBMITTED' };
  const failures = { transient_failures: 2 };

  it.each<[ProviderStateKind, object, object]>([
    ['AZURE', {}, common],
    ['SARVAM', { gcs_map: { x1: 'gs://b/a.wav' } }, { ...common, ...failures }],
    ['AWS', {}, { ...common, ...failures, gcs_uri: 'gs://b/a.wav', filename: 'a.wav' }],
    ['GOOGLE', {}, { ...common, ...failures, model: 'long' }],
  ])('lists transcriptions of %s', (provider, members, listed) => {
    expect(state(provider)).toEqual({ ...frame, provider, ...members, jobs: [listed] });
    const result = [{ text: 'hello' }];
    const ended = state(provider, { status: 'completed', result });
    expect(ended['jobs']).toEqual([{ ...listed, status: 'COMPLETED', result }]);
  });

  it.each([
    [[], 'COMPLETION'],
    [[null, 'openai'], 'COMPLETION'],
    [[null, 'sarvam', 'aws_transcribe'], 'SARVAM'],
    [['aws_transcribe'], 'AWS'],
    [['azure_speech'], 'AZURE'],
    [['google_speech'], 'GOOGLE'],
  ])('has the shape for jobs at providers of the types %j: %s', (types, kind) => {
    expect(stateKind(types)).toBe(kind);
  });

  it('maps no source to a job that the provider does not know yet', () => {
    expect(state('SARVAM', { externalId: null })).toMatchObject({ gcs_map: {} });
  });
});

describe('the status of a job', () => {
  it('is its outcome once it is collected, unless it was refused or given up', () => {
    const ended = JOB_OUTCOMES.map((outcome) =>
      stateStatus({ step: 'collected', outcome, providerStatus: 'x' }),
    );
    expect(ended).toEqual('completed partial_complete failed expired cancelled'.split(' '));
    const end = { outcome: 'completed', providerStatus: 'x' } as const;
    expect(stateStatus({ ...end, step: 'ended' })).toBe('in_progress');
    for (const step of ['refused', 'abandoned'] as const) {
      expect(stateStatus({ ...end, step })).toBe('failed');
    }
  });

  it.each([
    ['pending', null, 'staging staged uploaded creating'],
    ['submitted', null, 'submitted'],
    ['in_progress', 'running', 'submitted'],
    ['failed', null, 'refused abandoned released'],
  ])('is %s without an outcome (provider: %s) for: %s', (status, providerStatus, steps) => {
    for (const step of JOB_STEPS.filter((one) => steps.split(' ').includes(one))) {
      expect(stateStatus({ step, outcome: null, providerStatus })).toBe(status);
    }
  });
});
