import type { IncomingHttpHeaders } from 'node:http';
import type { SimulatorSettings } from '../settings';
import type { ApiFault, ProviderAnswer } from './answer';
import type { ProviderState } from './job-store';
import type { ProviderCallName } from './settings';

/** The batch API of one provider, as the simulator has it (docs/design/simulator.md#providers). */
export interface FakeApi {
  /** Its calls are below `/providers/<prefix>`. */
  readonly prefix: string;
  /** The route of a method and a path below the prefix; null if there is none. Some APIs name it in a header. */
  findRoute(method: string, path: string, headers: IncomingHttpHeaders): ApiRoute | null;
  /** The key that a request carries; empty without one, null if the API takes none. */
  keyOf(headers: IncomingHttpHeaders, query: URLSearchParams): string | null;
  /** An error in the provider's format. */
  errorAnswer(error: ApiFault): ProviderAnswer;
}

/** One call, when it takes effect. */
export interface ApiCall {
  /** The groups of the route's pattern, decoded; the first one is `id`. */
  readonly params: readonly string[];
  /** The id in the path; empty if there is none. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The address of the API: the simulator's URL with `/providers/<prefix>`. */
  readonly baseUrl: string;
  readonly body: Buffer;
  readonly nowMs: number;
  readonly state: ProviderState;
  /** How the model answers. */
  readonly model: SimulatorSettings;
}

/** What a call does when it takes effect. */
export type ApiEffect = (call: ApiCall) => ProviderAnswer;

/** A route of an API, and what its path names. */
export interface ApiRoute {
  readonly name: ProviderCallName;
  readonly params: readonly string[];
  /**
   * Reads the body, before the call takes effect.
   * @throws invalid_request
   */
  prepare(body: Buffer, contentType: string): Promise<ApiEffect>;
}

/** Method and path of a route, its name, and what it does. A group of the pattern is a part of the path. */
export type RouteEntry = readonly [
  pattern: RegExp,
  name: ProviderCallName,
  prepare: ApiEffect | { readonly prepare: ApiRoute['prepare'] },
];

/** The first route of `table` that matches; null if there is none. */
export function routeIn(
  table: readonly RouteEntry[],
  method: string,
  path: string,
): ApiRoute | null {
  for (const [pattern, name, effect] of table) {
    const match = pattern.exec(`${method} ${path}`);
    if (match === null) continue;
    const params = match.slice(1).map((part) => decodeURIComponent(part));
    const prepare = typeof effect === 'function' ? async () => effect : effect.prepare;
    return { name, params, prepare };
  }
  return null;
}
