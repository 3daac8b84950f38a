/** The part of a logger that is needed here. */
export interface OutageLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Says once that something began to fail, and once, with the count of failures, that it works again. */
export interface OutageLog {
  failed(error: unknown): void;
  worked(): void;
}

/** The two log messages of an outage. */
export interface OutageWords {
  readonly begins: string;
  readonly ends: string;
}

/** A line for each failure would be thousands in an outage, all of them the same. */
export function createOutageLog(logger: OutageLogger, words: OutageWords): OutageLog {
  let outage: { readonly sinceMs: number; failures: number } | null = null;
  return {
    failed(error) {
      outage ??= { sinceMs: performance.now(), failures: 0 };
      if (outage.failures++ === 0) logger.warn({ err: error }, words.begins);
    },
    worked() {
      if (outage === null) return;
      const seconds = Math.round((performance.now() - outage.sinceMs) / 1_000);
      logger.info({ failures: outage.failures, seconds }, words.ends);
      outage = null;
    },
  };
}
