import { joinPath, withoutTrailingSlashes } from '../../platform/http-client/base-url';
import { openConnectionPool, type ConnectionPoolOptions } from '../../platform/http-client/pool';
import { probeRequest, type ProbeAnswer } from './probe-request';

/** A model as a backend lists it, with whatever members the backend gives it. */
export interface ListedModel {
  readonly id: string;
  readonly [member: string]: unknown;
}

/** How one backend is asked for its models. */
export interface ModelListingOptions {
  /** Base URL; its path precedes `/v1/models`, without repeating `/v1`. */
  readonly url: string;
  readonly authorization: string | null;
  readonly tls: ConnectionPoolOptions['tls'];
  /** Time limit of an answer, ms. */
  readonly timeoutMs: number;
}

/** Asks one backend for its models. */
export interface ModelListing {
  /** Its models; null if it gives no list in time. Never throws. */
  read(): Promise<readonly ListedModel[] | null>;
  close(): Promise<void>;
}

/** Models of one backend that are read. */
const MAX_MODELS = 10_000;

/** Opens no connection before the first call, and never more than one. */
export function openModelListing(options: ModelListingOptions): ModelListing {
  const { url, authorization, tls, timeoutMs } = options;
  const base = new URL(url);
  const pool = openConnectionPool(base.origin, { connections: 1, timeoutMs, tls });
  const path = joinPath(withoutTrailingSlashes(base.pathname), '/v1/models');
  return {
    read: () =>
      new Promise((resolve) => {
        const onEnd = (answer: ProbeAnswer): void => resolve(modelsOf(answer));
        probeRequest({ path, authorization, timeoutMs }, onEnd).send(pool);
      }),
    close: () => pool.destroy(),
  };
}

function modelsOf(answer: ProbeAnswer): readonly ListedModel[] | null {
  if (answer.kind !== 'page' || answer.status !== 200) return null;
  try {
    const page = JSON.parse(answer.text) as { readonly data?: unknown } | null;
    return Array.isArray(page?.data) ? page.data.filter(isModel).slice(0, MAX_MODELS) : null;
  } catch {
    return null;
  }
}

function isModel(value: unknown): value is ListedModel {
  return typeof value === 'object' && value !== null && 'id' in value && isName(value.id);
}

function isName(id: unknown): boolean {
  return typeof id === 'string' && id !== '';
}
