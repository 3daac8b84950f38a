import fs from 'node:fs';
import { createLogger } from '../../platform/logger';

/** The log lines that `log` writes to stderr. */
function linesOf(log: (logger: ReturnType<typeof createLogger>) => void): unknown[] {
  const written: string[] = [];
  const spy = jest.spyOn(fs, 'writeSync').mockImplementation((_fd, text) => {
    written.push(String(text));
    return String(text).length;
  });
  try {
    log(createLogger({ level: 'info', format: 'json' }, 'worker'));
  } finally {
    spy.mockRestore();
  }
  return written.map((line) => JSON.parse(line) as unknown);
}

describe('a logger', () => {
  it.each(['err', 'error'])('logs message and stack of an error under %s', (member) => {
    const [line] = linesOf((logger) => logger.warn({ [member]: new Error('no plan') }, 'failed'));
    expect(line).toMatchObject({
      level: 'warn',
      msg: 'failed',
      [member]: { message: 'no plan', stack: expect.stringContaining('logger.test') },
    });
  });

  it('logs an error that is text unchanged', () => {
    const [line] = linesOf((logger) => logger.warn({ error: 'no plan' }, 'failed'));
    expect(line).toMatchObject({ error: 'no plan' });
  });

  it('redacts members that may hold secrets', () => {
    const [line] = linesOf((logger) => logger.info({ headers: { authorization: 'hunter2' } }, 'x'));
    expect(JSON.stringify(line)).not.toContain('hunter2');
  });
});
