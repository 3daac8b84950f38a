import {
  hasCredentialFiles,
  isSameTls,
  rereadCredentials,
  type TemporalConfig,
  type TemporalCredentials,
} from './temporal-credentials';

/** The part of a logger that is needed here. */
export interface CredentialLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface CredentialWatchOptions {
  readonly config: TemporalConfig;
  /** What the connection was made with. */
  readonly initial: TemporalCredentials;
  /** Takes the new credentials into use; if it throws, they are offered again at the next look. */
  readonly use: (
    next: TemporalCredentials,
    change: { readonly tls: boolean },
  ) => void | Promise<void>;
  readonly logger?: CredentialLog | undefined;
  readonly everyMs?: number;
}

/** Looks at the files until it is closed. */
export interface CredentialWatch {
  close(): void;
}

const EVERY_MS = 10_000;

/**
 * Looks every ten seconds whether the files of API key and certificates hold something new. Looking
 * beats a watch of the file system: a mounted secret is replaced by moving a link two folders up.
 * Files that cannot be used (gone, half replaced) leave everything as it is, with one warning.
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

/** One look; never rejects. */
function createRound({ config, initial, use, logger }: CredentialWatchOptions) {
  let current = initial;
  let complaint = '';
  return async (): Promise<void> => {
    try {
      const next = await rereadCredentials(config);
      const tls = !isSameTls(current, next);
      const isChanged = tls || current.apiKey !== next.apiKey;
      if (isChanged) {
        await use(next, { tls });
        logger?.info({ certificates: tls }, 'new credentials for temporal are in use');
      }
      current = next;
      complaint = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== complaint) {
        logger?.warn({ err: error }, 'changed credentials for temporal cannot be used yet');
      }
      complaint = message;
    }
  };
}
