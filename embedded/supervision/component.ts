/** How to run one part of the stack: a program, when it is ready, how it is told to stop. */
export interface ComponentSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** User to run as; the supervisor's own where left out. */
  readonly uid?: number;
  readonly gid?: number;
  /** Asked again and again until true; a part that dies meanwhile is started again. */
  isReady(pid: number): boolean | Promise<boolean>;
  readonly readyTimeoutMs: number;
  readonly stopSignal: NodeJS.Signals;
  /** How long a graceful stop may take, before the part is killed. */
  readonly stopTimeoutMs: number;
  /** For an end at once. */
  readonly killSignal: NodeJS.Signals;
}

/** What the supervisor tells about its parts, in order. */
export type ComponentEvent =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'ready'; readonly tookMs: number }
  | { readonly kind: 'died'; readonly how: string; readonly restartInMs: number }
  | { readonly kind: 'killed'; readonly afterMs: number };
