import {
  hasCredentialFiles,
  isSameTls,
  rereadKey,
  rereadTls,
  type TemporalConfig,
  type TemporalCredentials,
} from './temporal-credentials';

/** The logger methods that the watch uses. */
export interface CredentialLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** A part of the credentials, as a label of metrics. */
export type ReloadedCredential = 'temporal_api_key' | 'temporal_certificates';

/** `success`: new credentials are in use. `failure`: a check found credentials that it could not use. */
export type ReloadResult = 'success' | 'failure';

/** Receives the outcome of reloads, for metrics. Must not throw. */
export interface ReloadObserver {
  reloaded(credential: ReloadedCredential, result: ReloadResult): void;
}

/** Who is told about reloads. */
export interface ReloadReports {
  readonly logger?: CredentialLog | undefined;
  readonly observer?: ReloadObserver | undefined;
}

/** Which files are watched, and what happens when they change. */
export interface CredentialWatchOptions extends ReloadReports {
  readonly config: TemporalConfig;
  /** The credentials that the connection was made with. */
  readonly initial: TemporalCredentials;
  /** Called with new credentials, to use them from now on. If it throws, the next check calls it again. */
  readonly use: (
    next: TemporalCredentials,
    change: { readonly tls: boolean },
  ) => void | Promise<void>;
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
 * Files that cannot be used (missing, half replaced) change nothing. The log reports them once, the observer
 * at every check (docs/design/temporal.md#temporal-credentials).
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
function createRound({ config, initial, use, logger, observer }: CredentialWatchOptions) {
  let current = initial;
  let reported = '';
  /** Counts a failure of `step` as one of `credential`. */
  const attempt = async <T>(
    credential: ReloadedCredential,
    step: () => T | Promise<T>,
  ): Promise<T> => {
    try {
      return await step();
    } catch (error) {
      observer?.reloaded(credential, 'failure');
      throw error;
    }
  };
  const check = async (): Promise<void> => {
    const apiKey = await attempt('temporal_api_key', () => rereadKey(config));
    const tls = await attempt('temporal_certificates', () => rereadTls(config));
    const next = { apiKey, tls };
    const changed = changesOf(current, next);
    const [first] = changed;
    if (first !== undefined) {
      const change = { tls: changed.includes('temporal_certificates') };
      await attempt(first, () => use(next, change));
      for (const credential of changed) observer?.reloaded(credential, 'success');
      logger?.info({ certificates: change.tls }, 'new Temporal credentials are in use');
    }
    current = next;
    reported = '';
  };
  return () =>
    check().catch((error: Error) => {
      if (error.message !== reported) {
        logger?.warn({ err: error }, 'changed Temporal credentials cannot be used yet');
      }
      reported = error.message;
    });
}

/** What has changed. Certificates come first: if both fail, the connection is what fails. */
function changesOf(current: TemporalCredentials, next: TemporalCredentials): ReloadedCredential[] {
  return [
    ...(isSameTls(current, next) ? [] : (['temporal_certificates'] as const)),
    ...(current.apiKey === next.apiKey ? [] : (['temporal_api_key'] as const)),
  ];
}
