import { errorResult } from '../../../providers/chat/error-answer';

const TEXT = 'max_tokens: 9 exceeds 4 of org-7';

function messageOf(status: number, code: string | null, message: string | null = null): unknown {
  const result = errorResult({ wireId: 'w', status, code, message, requestId: null });
  if (result.kind !== 'answer') throw new Error(result.kind);
  const { error } = JSON.parse(result.body.toString()) as { error: { message: string } };
  return error.message;
}

it.each([400, 413, 422])('shows what the provider says of a request with %i', (status) => {
  expect(messageOf(status, 'invalid_request_error', TEXT)).toBe(
    `The provider answered this request with invalid_request_error: ${TEXT}`,
  );
});

it.each([401, 402, 403, 404, 429, 500, 529])(
  'keeps the text of an error with %i back',
  (status) => {
    expect(messageOf(status, 'word', TEXT)).not.toContain('org-7');
  },
);

it('shows the bare error of a provider that says no more', () => {
  expect(messageOf(400, 'bad')).toBe('The provider answered this request with bad.');
  expect(messageOf(400, null, '')).toBe('The provider answered this request with an error.');
});

it('cuts a long text', () => {
  expect(messageOf(400, 'bad', 'x'.repeat(5_000))).toHaveLength(2_045);
});
