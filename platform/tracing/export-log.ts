import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-node';
import type { Logger } from '../logger';

/** Where export failures are reported. */
export interface ExportLogOptions {
  readonly logger: Pick<Logger, 'warn' | 'info'>;
  /** Without credentials. */
  readonly endpoint: string;
  readonly nowMs?: () => number;
}

/** A collector that stays away is reported this often. */
const REPEAT_MS = 5 * 60_000;

/** `ExportResultCode.SUCCESS`. Packages of OpenTelemetry bring several copies of that enum. */
function isSuccess(code: number): boolean {
  return code === 0;
}

/**
 * The same exporter, with its failures logged: one line when they begin, one every 5 minutes, and one when
 * spans are exported again. A failure never reaches the work that is traced.
 */
export function logExports(
  exporter: SpanExporter,
  { logger, endpoint, nowMs = () => performance.now() }: ExportLogOptions,
): SpanExporter {
  let lostSpans = 0;
  let loggedAtMs = -Infinity;
  const failed = (error: Error | undefined, spans: number): void => {
    lostSpans += spans;
    if (nowMs() - loggedAtMs < REPEAT_MS) return;
    loggedAtMs = nowMs();
    const reason = error?.message ?? 'unknown';
    logger.warn({ endpoint, reason, lostSpans }, 'spans cannot be exported');
  };
  const worked = (): void => {
    if (lostSpans === 0) return;
    logger.info({ endpoint, lostSpans }, 'spans are exported again');
    lostSpans = 0;
    loggedAtMs = -Infinity;
  };
  return {
    export: (spans: ReadableSpan[], done) =>
      exporter.export(spans, (result) => {
        if (isSuccess(result.code)) worked();
        else failed(result.error, spans.length);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  };
}
