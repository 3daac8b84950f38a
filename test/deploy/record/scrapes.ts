import { setTimeout as delay } from 'node:timers/promises';
import type { RecordedPhase } from '../recording';
import type { Sample } from './series-values';

/** A process that Prometheus would scrape. */
export interface Target {
  readonly job: 'nightshift-api' | 'nightshift-worker' | 'nightshift-gateway';
  readonly instance: string;
  /** Address of its metrics page. */
  url(): string;
}

/** Scrapes of a run, one each second, while faults come and go. */
export interface Scrapes {
  /** Begins a part of the run. */
  begin(phase: string): void;
  /** Waits until the current part has so many scrapes. */
  until(steps: number): Promise<void>;
  /** Ends the scraping. */
  end(): Promise<ScrapedRun>;
}

/** Everything that was scraped. */
export interface ScrapedRun {
  readonly phases: readonly RecordedPhase[];
  readonly series: ReadonlyMap<string, readonly Sample[]>;
}

const STEP_MS = 1_000;
/** Less than a step, so a frozen process costs its own scrapes only. */
const TIMEOUT_MS = 800;

/** Starts to scrape. Keeps the series whose names `isWanted` accepts, and `up`. */
export function startScrapes(
  targets: readonly Target[],
  isWanted: (name: string) => boolean,
): Scrapes {
  const series = new Map<string, Sample[]>();
  const phases: { name: string; from: number; to: number }[] = [];
  let step = 0;
  let isGoing = true;
  const add = (name: string, value: number): void => {
    const samples = series.get(name) ?? [];
    series.set(name, samples);
    while (samples.length < step) samples.push(null);
    samples[step] = value;
  };
  const loop = async (): Promise<void> => {
    const startedMs = performance.now();
    while (isGoing) {
      const pages = await Promise.all(targets.map((target) => scrape(target)));
      pages.forEach((page, at) => addPage(add, targets[at] as Target, page, isWanted));
      step++;
      await delay(Math.max(0, startedMs + step * STEP_MS - performance.now()));
    }
  };
  const done = loop();
  const close = (): void => {
    const last = phases.at(-1);
    if (last !== undefined) last.to = step - 1;
  };
  return {
    begin: (name) => {
      close();
      phases.push({ name, from: step, to: step });
    },
    until: async (steps) => {
      const from = phases.at(-1)?.from ?? 0;
      while (step < from + steps) await delay(50);
    },
    end: async () => {
      isGoing = false;
      await done;
      close();
      for (const samples of series.values()) while (samples.length < step) samples.push(null);
      return { phases, series };
    },
  };
}

/** The metrics page; null if the process does not answer in time. */
async function scrape(target: Target): Promise<string | null> {
  try {
    const response = await fetch(target.url(), { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return response.ok ? await response.text() : null;
  } catch {
    return null;
  }
}

function addPage(
  add: (name: string, value: number) => void,
  { job, instance }: Target,
  page: string | null,
  isWanted: (name: string) => boolean,
): void {
  const labels = `instance="${instance}",job="${job}"`;
  add(`up{${labels}}`, page === null ? 0 : 1);
  for (const line of (page ?? '').split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match === null) continue;
    const [, name = '', own = '', value = ''] = match;
    const number = Number(value);
    if (!isWanted(name) || !Number.isFinite(number)) continue;
    add(`${name}{${own === '' ? labels : `${own},${labels}`}}`, number);
  }
}
