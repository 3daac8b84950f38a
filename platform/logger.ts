import pino from 'pino';
import pretty from 'pino-pretty';
import type { Config } from './config-schema';

export type { Logger } from 'pino';

/** Members that may carry a secret are replaced wherever they are logged by mistake. */
const REDACTED = [
  'authorization',
  'api_key',
  'password',
  'headers.authorization',
  'headers.cookie',
  'req.headers.authorization',
  '*.api_key',
  '*.password',
];

/**
 * A logger that writes to stderr (stdout belongs to results and the ready line). `format: auto` is
 * pretty on a terminal and JSON lines otherwise. Use it object first:
 * `logger.info({ batchId }, 'chunk finished')`; never log prompts, bodies or keys.
 *
 * @param name the process or room, logged with every line
 */
export function createLogger(log: Config['log'], name: string): pino.Logger {
  const options: pino.LoggerOptions = {
    name,
    level: log.level,
    base: { name },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    // The SDK logs failures under `error`, we under `err`; without this an error there is `{}`.
    serializers: { error: pino.stdSerializers.err },
    redact: { paths: REDACTED, censor: '[redacted]' },
  };
  return pino(options, wantsPretty(log.format) ? prettyStream() : jsonStream());
}

const STDERR = 2;

function wantsPretty(format: Config['log']['format']): boolean {
  return format === 'pretty' || (format === 'auto' && process.stderr.isTTY === true);
}

/**
 * Synchronous, in this thread: the last lines before an exit are the ones somebody needs. Written behind
 * our back they would also keep an exit waiting for ever where the reader of a pipe has gone.
 */
function jsonStream(): pino.DestinationStream {
  return pino.destination({ dest: STDERR, sync: true });
}

/** Synchronous for the same reasons. */
function prettyStream(): pino.DestinationStream {
  return pretty({
    destination: STDERR,
    sync: true,
    colorize: process.stderr.isTTY === true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname',
  });
}
