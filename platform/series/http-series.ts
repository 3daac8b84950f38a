import { Counter, type Registry } from 'prom-client';
import { Observations, type ObservedSeries, readHistogram } from './read-histogram';
import { readCounter, readGauge, type Reading } from './read-series';

/** The requests of one route, while they are answered and after. */
export interface RouteMeter {
  /** A request has arrived. */
  begin(): void;
  /** Its answer has ended, with this status, so many seconds after its arrival. */
  end(status: string, seconds: number): void;
}

/** Finds the meter of a method and the pattern of a path. */
export type RouteMeters = (method: string, path: string) => RouteMeter;

/** Upper bounds of the buckets of times, s: those of Prometheus's own clients. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Series of the HTTP requests that a server of ours answers (docs/metrics.md#api). */
export function createHttpSeries(registers: Registry[]) {
  return {
    routes: routeMeters(registers),
    connectionsClosed: new Counter({
      name: 'http_connections_closed_total',
      help: 'Connections that were refused or ended because of a limit or of invalid bytes',
      labelNames: ['reason'] as const,
      registers,
    }),
  };
}

/**
 * Meters count in plain fields, which are read at a scrape: four look-ups by labels for each request would cost as
 * much as the routing.
 */
function routeMeters(registers: Registry[]): RouteMeters {
  const routes = new Map<string, Map<string, Route>>();
  const all = () => [...routes.values()].flatMap((ofMethods) => [...ofMethods.values()]);
  const labelNames = ['method', 'path'];
  const answered = { name: 'http_requests_total', help: 'HTTP requests answered' };
  readCounter(registers, { ...answered, labelNames: [...labelNames, 'status'] }, () =>
    all().flatMap((route) => route.answered()),
  );
  const duration = {
    name: 'http_request_duration_seconds',
    help: 'Time from the request to the end of the response',
    labelNames: [...labelNames, 'status'],
    buckets: SECONDS,
  };
  readHistogram(registers, duration, () => all().flatMap((route) => route.durations()));
  const inFlight = { name: 'http_requests_in_flight', help: 'HTTP requests being answered' };
  readGauge(registers, { ...inFlight, labelNames }, () =>
    all().map(({ labels, inFlight: count }): Reading => [labels, count]),
  );
  return (method, path) => {
    const ofPath = routes.get(path) ?? new Map<string, Route>();
    const route = ofPath.get(method) ?? new Route({ method, path });
    if (!ofPath.has(method)) routes.set(path, ofPath.set(method, route));
    return route;
  };
}

interface RouteLabels extends Readonly<Record<string, string>> {
  readonly method: string;
  readonly path: string;
}

class Route implements RouteMeter {
  readonly labels: RouteLabels;
  inFlight = 0;
  readonly #durations = new Map<string, Observations>();

  constructor(labels: RouteLabels) {
    this.labels = labels;
  }

  begin(): void {
    this.inFlight++;
  }

  end(status: string, seconds: number): void {
    this.inFlight--;
    const durations = this.#durations.get(status) ?? new Observations(SECONDS);
    durations.observe(seconds);
    if (durations.count === 1) this.#durations.set(status, durations);
  }

  answered(): Reading[] {
    return this.durations().map(([labels, { count }]) => [labels, count]);
  }

  durations(): ObservedSeries[] {
    return [...this.#durations].map(([status, observed]) => [{ ...this.labels, status }, observed]);
  }
}
