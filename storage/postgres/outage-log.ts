/** The methods of a logger that an outage log calls. */
export interface OutageLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Logs once when an operation begins to fail, and once, with the number of failures, when it works again. */
export interface OutageLog {
  /** The operation failed when it was last tried. */
  readonly isOutage: boolean;
  failed(error: unknown): void;
  worked(): void;
}

/** The two log messages of an outage. */
export interface OutageMessages {
  readonly begins: string;
  readonly ends: string;
}

/** An outage log. One log line per failure would be thousands of equal lines in an outage. */
export function createOutageLog(logger: OutageLogger, messages: OutageMessages): OutageLog {
  let outage: { readonly sinceMs: number; failures: number } | null = null;
  return {
    get isOutage() {
      return outage !== null;
    },
    failed(error) {
      outage ??= { sinceMs: performance.now(), failures: 0 };
      if (outage.failures++ === 0) logger.warn({ err: error }, messages.begins);
    },
    worked() {
      if (outage === null) return;
      const seconds = Math.round((performance.now() - outage.sinceMs) / 1_000);
      logger.info({ failures: outage.failures, seconds }, messages.ends);
      outage = null;
    },
  };
}
