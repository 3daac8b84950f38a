/** Sources of the server's program that take minutes. */
export type SlowSourceName = 'download' | 'go install';

/** Where to look for the server, and how to report progress. */
export interface FindServerOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Server version that created the data directory; programs of other versions are skipped. */
  readonly wantedVersion?: string | null;
  /** Aborts a download or a build. */
  readonly signal?: AbortSignal;
  /** Gets a sentence about each step that takes time. */
  say(message: string): void;
  /** Address of the download service. Default: the one that Temporal's SDK uses. */
  readonly downloadService?: string;
  /** SHA-256 of the archive that it has. Default: the pinned one. */
  readonly downloadSha256?: string;
  /** Which of the slow sources to try. Default: all. */
  readonly slowSources?: readonly SlowSourceName[];
}
