/** How to run one component of the stack: its program, when it is ready, how it is stopped. */
export interface ComponentSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** User to run as. Default: the supervisor's own. */
  readonly uid?: number;
  readonly gid?: number;
  /** Polled until it returns true. A component that dies meanwhile is started again. */
  isReady(pid: number): boolean | Promise<boolean>;
  readonly readyTimeoutMs: number;
  readonly stopSignal: NodeJS.Signals;
  /** Longest graceful stop; after it the component is killed. */
  readonly stopTimeoutMs: number;
  /** Signal that ends it at once. */
  readonly killSignal: NodeJS.Signals;
}

/** What the supervisor reports about one component, in order. */
export type ComponentEvent =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'ready'; readonly tookMs: number }
  | { readonly kind: 'died'; readonly how: string; readonly restartInMs: number }
  | { readonly kind: 'killed'; readonly afterMs: number };

/** Components stop before those they use (docs/design/embedded-stack.md#stop-order). */
const STOP_ORDER = ['api', 'worker', 'gateway', 'simulator', 's3', 'temporal', 'postgres'];

/** Sorts components, or records of them, into the order in which they stop. */
export function inStopOrder<T>(items: readonly T[], nameOf: (item: T) => string): T[] {
  const rank = (item: T): number => STOP_ORDER.indexOf(nameOf(item));
  return [...items].sort((a, b) => rank(a) - rank(b));
}
