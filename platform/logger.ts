import pino from 'pino';
import pretty from 'pino-pretty';
import type { Config } from './config-schema';

export type { Logger } from 'pino';

/** Log fields that may hold a secret; they are replaced in case they are logged by mistake. */
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
 * A logger that writes to stderr; stdout is for results and the ready line. `format: auto` is readable
 * text on a terminal and JSON lines otherwise. Pass the object first:
 * `logger.info({ batchId }, 'chunk finished')`. Never log prompts, bodies or keys.
 *
 * @param name the process or component, logged with every line
 */
export function createLogger(log: Config['log'], name: string): pino.Logger {
  const options: pino.LoggerOptions = {
    name,
    level: log.level,
    base: { name },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    // The Temporal SDK logs failures under `error`; without a serializer they would show as `{}`.
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
 * Writes synchronously in this thread. The last lines before an exit are the most important ones, and
 * asynchronous writes would lose them. Asynchronous writes would also block an exit forever if the reader
 * of the pipe has gone.
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
