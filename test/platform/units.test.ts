import { formatDuration, parseDurationMs, parseSizeBytes } from '../../platform/units';

describe('durations and sizes', () => {
  it.each([
    ['250ms', 250],
    ['4s', 4_000],
    ['1.5h', 5_400_000],
    ['30d', 2_592_000_000],
    [0, 0],
  ])('%s is %d ms', (text, ms) => expect(parseDurationMs(text)).toBe(ms));

  it.each(['5', 5, '', '-1s', '1 s', '1w', 's', '1e3s'])('%s is not a duration', (text) =>
    expect(parseDurationMs(text)).toBeNull(),
  );

  it.each([
    ['200MiB', 209_715_200],
    ['1KiB', 1_024],
    [42, 42],
  ])('%s is %d bytes', (text, bytes) => expect(parseSizeBytes(text)).toBe(bytes));

  it.each(['2MB', '-1', '1.5GiB', '', 'MiB'])('%s is not a size', (text) =>
    expect(parseSizeBytes(text)).toBeNull(),
  );

  it.each([0, 1, 250, 999, 1_000, 1_500, 30_000, 90_000, 5_400_000, 86_400_000, 123_456])(
    '%d ms is unchanged after it is printed and parsed',
    (ms) => expect(parseDurationMs(formatDuration(ms))).toBe(ms),
  );
});
