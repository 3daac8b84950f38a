import { createFailureTally } from '../../../cli/batches/failure-tally';

describe('the tally of an error file', () => {
  const file = Buffer.from(
    [
      '{"response":null,"error":{"code":"batch_expired","message":"ä"}}',
      '{"response":{"status_code":500,"body":{"error":{"message":"m"}}},"error":null}',
      '{"response":null,"error":{"code":"batch_expired","message":"b"}}',
      'nonsense',
      'null',
    ].join('\n'),
  );

  it.each([1, 7, 1_000])('is the same for chunks of any size (%i bytes)', (size) => {
    const tally = createFailureTally();
    for (let at = 0; at < file.length; at += size) tally.add(file.subarray(at, at + size));
    expect(tally.kinds()).toEqual([
      { code: 'batch_expired', count: 2, example: 'ä' },
      { code: 'unreadable line', count: 2, example: 'nonsense' },
      { code: 'HTTP 500', count: 1, example: 'm' },
    ]);
  });
});
