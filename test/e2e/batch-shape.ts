/** A batch as it comes over the wire, unparsed by any client. */
export type WireBatch = Readonly<Record<string, unknown>> & { readonly id: string };

const KEYS = [
  ...['id', 'object', 'endpoint', 'model', 'errors', 'input_file_id', 'completion_window'],
  ...['status', 'output_file_id', 'error_file_id', 'created_at', 'in_progress_at', 'expires_at'],
  ...['finalizing_at', 'completed_at', 'failed_at', 'expired_at', 'cancelling_at'],
  ...['cancelled_at', 'request_counts', 'usage', 'metadata'],
];
const TIMES = KEYS.filter((key) => key.endsWith('_at'));
const TERMINAL = ['completed', 'failed', 'expired', 'cancelled'];

/** Times that each status has, beside `created_at` and `expires_at`; and those that it may have. */
const TIMES_OF: Readonly<Record<string, { has: string[]; may: string[] }>> = {
  validating: { has: [], may: [] },
  in_progress: { has: ['in_progress_at'], may: [] },
  finalizing: { has: ['in_progress_at', 'finalizing_at'], may: [] },
  completed: { has: ['in_progress_at', 'finalizing_at', 'completed_at'], may: [] },
  failed: { has: ['failed_at'], may: ['in_progress_at', 'finalizing_at'] },
  expired: { has: ['expired_at'], may: ['in_progress_at', 'finalizing_at'] },
  cancelling: { has: ['cancelling_at'], may: ['in_progress_at', 'finalizing_at'] },
  cancelled: { has: ['cancelling_at', 'cancelled_at'], may: ['in_progress_at', 'finalizing_at'] },
};

/** Holds one answer against docs/design/api-contract.md#batch-object: every key, its type, and what its status allows. */
export function expectBatchShape(batch: WireBatch): void {
  expect(Object.keys(batch).sort()).toEqual([...KEYS].sort());
  expect(batch).toMatchObject({
    id: expect.stringMatching(/^batch_[0-9a-f]{32}$/),
    object: 'batch',
    endpoint: expect.stringMatching(/^\/v1\//),
    input_file_id: expect.any(String),
    completion_window: expect.any(String),
  });
  expectTimes(batch);
  expectCounts(batch);
  expectFiles(batch);
}

/** Holds the answers to one batch's polls against each other: nothing that was set changes or goes back. */
export function expectLife(seen: readonly WireBatch[]): void {
  seen.forEach(expectBatchShape);
  const fixed = [
    'id',
    'endpoint',
    'input_file_id',
    'completion_window',
    'created_at',
    'expires_at',
  ];
  for (const key of [...fixed, ...TIMES, 'output_file_id', 'error_file_id', 'metadata', 'errors']) {
    const values = seen
      .map((batch) => JSON.stringify(batch[key]))
      .filter((json) => json !== 'null');
    expect([key, new Set(values).size]).toEqual([key, Math.min(1, values.length)]);
  }
  for (const key of ['total', 'completed', 'failed']) {
    const counts = seen.map((batch) => counted(batch)[key] ?? -1);
    expect([key, counts]).toEqual([key, [...counts].sort((a, b) => a - b)]);
  }
}

function expectTimes(batch: WireBatch): void {
  const status = String(batch['status']);
  const { has, may } = TIMES_OF[status] ?? { has: [], may: [] };
  expect(Object.keys(TIMES_OF)).toContain(status);
  const always = ['created_at', 'expires_at'];
  for (const key of TIMES) {
    const value = batch[key];
    const isTime = Number.isSafeInteger(value) && Number(value) > 1_600_000_000;
    if (always.includes(key) || has.includes(key))
      expect([status, key, isTime]).toEqual([status, key, true]);
    else if (may.includes(key)) expect([key, value === null || isTime]).toEqual([key, true]);
    else expect([status, key, value]).toEqual([status, key, null]);
  }
  const order = ['created_at', 'in_progress_at', 'finalizing_at', 'cancelling_at'];
  const ends = ['completed_at', 'failed_at', 'expired_at', 'cancelled_at'];
  const times = [...order, ...ends].map((key) => batch[key]).filter((time) => time !== null);
  expect(times).toEqual([...times].sort((a, b) => Number(a) - Number(b)));
  expect(Number(batch['expires_at'])).toBeGreaterThan(Number(batch['created_at']));
}

function expectCounts(batch: WireBatch): void {
  const counts = counted(batch);
  expect(Object.keys(counts).sort()).toEqual(['completed', 'failed', 'total']);
  const { total = NaN, completed = NaN, failed = NaN } = counts;
  for (const count of [total, completed, failed]) expect(Number.isSafeInteger(count)).toBe(true);
  expect(Math.min(total, completed, failed)).toBeGreaterThanOrEqual(0);
  expect(completed + failed).toBeLessThanOrEqual(total);
  if (batch['status'] === 'completed') expect(completed + failed).toBe(total);
  if (batch['status'] === 'validating')
    expect(counts).toEqual({ total: 0, completed: 0, failed: 0 });
  expect(batch['usage']).toEqual({
    input_tokens: expect.any(Number),
    input_tokens_details: { cached_tokens: expect.any(Number) },
    output_tokens: expect.any(Number),
    output_tokens_details: { reasoning_tokens: expect.any(Number) },
    total_tokens: expect.any(Number),
  });
}

function expectFiles(batch: WireBatch): void {
  const { total = 0, completed = 0 } = counted(batch);
  const isTerminal = TERMINAL.includes(String(batch['status']));
  const { output_file_id: output, error_file_id: error, errors } = batch;
  for (const id of [output, error]) {
    if (id !== null) expect(id).toMatch(/^file-[0-9A-Za-z]+$/);
  }
  if (isTerminal)
    expect([output !== null, error !== null]).toEqual([completed > 0, total > completed]);
  else expect([output, error]).toEqual([null, null]);
  if (batch['status'] !== 'failed') expect(errors).toBeNull();
  else expectErrors(errors as Readonly<Record<string, unknown>>);
}

function expectErrors(errors: Readonly<Record<string, unknown>>): void {
  expect(Object.keys(errors).sort()).toEqual(['data', 'object']);
  expect(errors['object']).toBe('list');
  const data = errors['data'] as Readonly<Record<string, unknown>>[];
  expect(data.length).toBeGreaterThan(0);
  for (const entry of data) {
    expect(Object.keys(entry).sort()).toEqual(['code', 'line', 'message', 'param']);
    expect(entry['message']).toMatch(/.{10}/);
  }
}

function counted(batch: WireBatch): Readonly<Record<string, number>> {
  return batch['request_counts'] as Readonly<Record<string, number>>;
}
