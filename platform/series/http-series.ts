import { Counter, Histogram, type Registry } from 'prom-client';
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
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the request to the end of the response',
    labelNames: ['method', 'path', 'status'] as const,
    registers,
  });
  const labelNames = ['method', 'path'];
  const answered = { name: 'http_requests_total', help: 'HTTP requests answered' };
  readCounter(registers, { ...answered, labelNames: [...labelNames, 'status'] }, () =>
    all().flatMap((route) => route.answered()),
  );
  const inFlight = { name: 'http_requests_in_flight', help: 'HTTP requests being answered' };
  readGauge(registers, { ...inFlight, labelNames }, () =>
    all().map(({ labels, inFlight: count }): Reading => [labels, count]),
  );
  return (method, path) => {
    const ofPath = routes.get(path) ?? new Map<string, Route>();
    const route = ofPath.get(method) ?? new Route({ method, path }, duration);
    if (!ofPath.has(method)) routes.set(path, ofPath.set(method, route));
    return route;
  };
}

interface RouteLabels extends Readonly<Record<string, string>> {
  readonly method: string;
  readonly path: string;
}

interface Answers {
  count: number;
  readonly duration: { observe(seconds: number): void };
}

class Route implements RouteMeter {
  readonly labels: RouteLabels;
  inFlight = 0;
  readonly #duration: Histogram<'method' | 'path' | 'status'>;
  readonly #answers = new Map<string, Answers>();

  constructor(labels: RouteLabels, duration: Histogram<'method' | 'path' | 'status'>) {
    this.labels = labels;
    this.#duration = duration;
  }

  begin(): void {
    this.inFlight++;
  }

  end(status: string, seconds: number): void {
    this.inFlight--;
    const answers = this.#answers.get(status) ?? this.#begin(status);
    answers.count++;
    answers.duration.observe(seconds);
  }

  answered(): Reading[] {
    return [...this.#answers].map(([status, { count }]) => [{ ...this.labels, status }, count]);
  }

  #begin(status: string): Answers {
    const { method, path } = this.labels;
    const answers = { count: 0, duration: this.#duration.labels({ method, path, status }) };
    this.#answers.set(status, answers);
    return answers;
  }
}
