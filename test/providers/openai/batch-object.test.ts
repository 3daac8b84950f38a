import { hasEnded } from '../../../providers/job-end';
import { readBatch } from '../../../providers/openai/batch-object';

const mask = (text: string) => text.replaceAll('s3cret', '***');
const batch = (changes: object = {}) => ({ id: 'batch_1', status: 'in_progress', ...changes });
const read = (changes: object = {}) => {
  const result = readBatch(batch(changes), mask);
  if (result === null) throw new Error('no batch');
  return result;
};

describe('a batch object', () => {
  it.each([
    ['validating', 'submitted', true],
    ['in_progress', 'running', true],
    ['finalizing', 'running', true],
    ['cancelling', 'cancelling', true],
    ['completed', 'completed', true],
    ['failed', 'failed', true],
    ['expired', 'expired', true],
    ['cancelled', 'cancelled', true],
    ['COMPLETED', 'completed', true],
    ['Canceled', 'cancelled', true],
    ['paused', 'running', false],
    ['constructor', 'running', false],
    ['', 'running', false],
  ])('in the state %p is %s', (word, state, isKnownState) => {
    expect(read({ status: word }).status).toMatchObject({
      state,
      isKnownState,
      providerState: word,
    });
  });

  it('has ended in the four states that never change', () => {
    const states = [
      'submitted',
      'running',
      'cancelling',
      'completed',
      'failed',
      'expired',
    ] as const;
    expect([...states, 'cancelled' as const].filter(hasEnded)).toEqual([
      'completed',
      'failed',
      'expired',
      'cancelled',
    ]);
  });

  it.each([
    null,
    'text',
    [],
    {},
    { id: 1, status: 'failed' },
    { id: '', status: 'failed' },
    { id: 'b' },
  ])('is not %j', (json) => {
    expect(readBatch(json, mask)).toBeNull();
  });

  it('carries times, counts, usage, files and whose it is', () => {
    const full = read({
      status: 'completed',
      created_at: 1_700_000_000,
      input_file_id: 'file-in',
      metadata: { nightshift_job: 'job_1' },
      request_counts: { total: 3, completed: 2, failed: 1 },
      output_file_id: 'file-out',
      error_file_id: 'file-err',
      usage: { input_tokens: 10, input_tokens_details: { cached_tokens: 4 }, output_tokens: 5 },
    });
    expect(full).toMatchObject({
      createdAtMs: 1_700_000_000_000,
      inputFileId: 'file-in',
      metadata: { nightshift_job: 'job_1' },
      status: {
        counts: { total: 3, completed: 2, failed: 1 },
        resultFiles: ['file-out', 'file-err'],
        hasAllResults: true,
        usage: { inputTokens: 10, cachedTokens: 4, outputTokens: 5 },
        error: null,
        lineErrors: [],
        isQuotaRefusal: false,
      },
    });
    expect(read({ created_at: '2024-01-01T00:00:00Z' }).createdAtMs).toBe(1_704_067_200_000);
  });

  it('survives null and odd members', () => {
    const odd = read({
      created_at: null,
      request_counts: { total: null, completed: -1 },
      metadata: null,
      usage: {},
      errors: { data: null },
      output_file_id: '',
    });
    expect(odd).toMatchObject({ createdAtMs: null, metadata: {}, inputFileId: null });
    expect(odd.status).toMatchObject({ counts: null, usage: null, resultFiles: [], error: null });
  });

  it('names the lines that the provider blames, counted from 0, and masks its words', () => {
    const { status } = read({
      status: 'failed',
      errors: {
        data: [
          { code: 'invalid_json', message: 'key s3cret', param: 'body', line: 2 },
          { code: 'other', message: 'x'.repeat(3_000) },
        ],
      },
    });
    expect(status.lineErrors).toEqual([
      { code: 'invalid_json', message: 'key ***', param: 'body', index: 1 },
    ]);
    expect(status.error?.code).toBe('other');
    expect(status.error?.message).toHaveLength(2_000);
    expect(status.isQuotaRefusal).toBe(false);
  });

  it('that failed for a full quota is a quota refusal', () => {
    const errors = { data: [{ code: 'token_limit_exceeded', message: 'full', line: null }] };
    expect(read({ status: 'failed', errors }).status.isQuotaRefusal).toBe(true);
    expect(read({ status: 'completed', errors }).status.isQuotaRefusal).toBe(false);
  });

  const counts = (total: number, completed: number, failed: number) => ({
    request_counts: { total, completed, failed },
  });
  it.each<[string, object, boolean]>([
    ['runs', { status: 'in_progress', output_file_id: 'o' }, false],
    ['completed without files', { status: 'completed', ...counts(2, 2, 0) }, false],
    [
      'completed with its file',
      { status: 'completed', ...counts(2, 2, 0), output_file_id: 'o' },
      true,
    ],
    [
      'lacks the error file',
      { status: 'completed', ...counts(2, 1, 1), output_file_id: 'o' },
      false,
    ],
    [
      'lacks the output file',
      { status: 'completed', ...counts(2, 1, 1), error_file_id: 'e' },
      false,
    ],
    ['has errors only', { status: 'completed', ...counts(2, 0, 2), error_file_id: 'e' }, true],
    ['completed without counts', { status: 'completed' }, false],
    [
      'completed without counts, with both files',
      { status: 'completed', output_file_id: 'o', error_file_id: 'e' },
      true,
    ],
    [
      'completed without counts, with its output only',
      { status: 'completed', output_file_id: 'o' },
      false,
    ],
    [
      'completed without counts, with errors only',
      { status: 'completed', error_file_id: 'e' },
      false,
    ],
    ['completed with empty counts', { status: 'completed', ...counts(2, 0, 0) }, false],
    ['was cancelled before a line ran', { status: 'cancelled', ...counts(2, 0, 0) }, true],
    ['was cancelled half-way', { status: 'cancelled', ...counts(2, 1, 0) }, false],
    [
      'expired with both files',
      { status: 'expired', ...counts(2, 1, 1), output_file_id: 'o', error_file_id: 'e' },
      true,
    ],
    ['failed', { status: 'failed' }, true],
  ])('that %s has all its results: %#', (_, changes, expected) => {
    expect(read(changes).status.hasAllResults).toBe(expected);
  });
});
