import {
  hasCredentialFiles,
  isSameTls,
  rereadCredentials,
  type TemporalConfig,
  type TemporalCredentials,
} from './temporal-credentials';

/** The logger methods that the watch uses. */
export interface CredentialLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Which files are watched, and what happens when they change. */
export interface CredentialWatchOptions {
  readonly config: TemporalConfig;
  /** The credentials that the connection was made with. */
  readonly initial: TemporalCredentials;
  /** Called with new credentials, to use them from now on. If it throws, the next check calls it again. */
  readonly use: (
    next: TemporalCredentials,
    change: { readonly tls: boolean },
  ) => void | Promise<void>;
  readonly logger?: CredentialLog | undefined;
  readonly everyMs?: number;
}

/** A running watch. */
export interface CredentialWatch {
  close(): void;
}

const EVERY_MS = 10_000;

/**
 * Checks every ten seconds whether the files of the API key and the certificates have changed. Polling is
 * more reliable than file-system events: a mounted secret is replaced by moving a link two folders up.
 * Files that cannot be used (missing, half replaced) change nothing and are reported once
 * (docs/design/temporal.md#temporal-credentials).
 */
export function watchCredentials(options: CredentialWatchOptions): CredentialWatch {
  const { config, everyMs = EVERY_MS } = options;
  if (!hasCredentialFiles(config)) return { close: () => undefined };
  const round = createRound(options);
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    if (isClosed) return;
    timer = setTimeout(() => void round().then(next), everyMs);
    timer.unref();
  };
  next();
  return {
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** One check. It never rejects. */
function createRound({ config, initial, use, logger }: CredentialWatchOptions) {
  let current = initial;
  let reported = '';
  return async (): Promise<void> => {
    try {
      const next = await rereadCredentials(config);
      const tls = !isSameTls(current, next);
      const isChanged = tls || current.apiKey !== next.apiKey;
      if (isChanged) {
        await use(next, { tls });
        logger?.info({ certificates: tls }, 'new Temporal credentials are in use');
      }
      current = next;
      reported = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== reported) {
        logger?.warn({ err: error }, 'changed Temporal credentials cannot be used yet');
      }
      reported = message;
    }
  };
}
