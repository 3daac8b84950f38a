import { terminalLine } from '../../embedded/terminal-lines';

describe('a log line on the terminal', () => {
  it('of ours becomes readable text after the name of its component', () => {
    const line = JSON.stringify({
      level: 'info',
      time: '2026-01-01T00:00:00.000Z',
      name: 'api',
      batchId: 'batch_1',
      note: 'two words',
      took: 3,
      msg: 'batch created',
    });
    expect(terminalLine('api', line, 'info')).toBe(
      'api       info  batch created batchId=batch_1 note="two words" took=3',
    );
  });

  it('shows only the message of an error', () => {
    const line =
      '{"level":"warn","msg":"lost","err":{"type":"E","message":"gone away","stack":"at x"}}';
    expect(terminalLine('api', line, 'info')).toBe('api       warn  lost err="gone away"');
  });

  it("is hidden if Temporal's SDK logs it at info about itself", () => {
    const line = (level: string) => `{"level":"${level}","msg":"state","sdkComponent":"worker"}`;
    expect(terminalLine('worker', line('info'), 'info')).toBeNull();
    expect(terminalLine('worker', line('warn'), 'info')).toContain('state');
  });

  it('is hidden if its level is below the shown one', () => {
    expect(terminalLine('api', '{"level":"info","msg":"m"}', 'warn')).toBeNull();
    expect(terminalLine('temporal', '{"level":"WARN","msg":"m"}', 'warn')).toContain('m');
    expect(terminalLine('api', '{"level":"fatal","msg":"m"}', 'none')).toBeNull();
  });

  it.each([
    ['api', 'TypeError: x is no function', true],
    ['temporal', 'UI:      http://localhost:8233', false],
    ['temporal', 'Error: address already in use', true],
    ['postgres', '2026-01-01 LOG:  ready', false],
    ['postgres', '2026-01-01 ERROR:  duplicate key', false],
    ['postgres', '2026-01-01 FATAL:  no space left', true],
    ['api', '   ', false],
  ])('of %s in plain text is judged by its words: %s', (part, line, isShown) => {
    expect(terminalLine(part, line, 'warn') !== null).toBe(isShown);
  });
});
