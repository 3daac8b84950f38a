import { isJsonObject } from '../../../core/openai/json-object';
import type { SimulatorSettings } from '../../settings';
import { generateContent } from '../google/generate-content';
import { outputFile } from '../result-files';
import type { ProviderSettings } from '../settings';

/** What the requests of a job are answered with. */
export interface JobRun {
  readonly modelName: string;
  /** How many of the lines, from the first, are answered. The others are in no file. */
  readonly answered: number;
  readonly processedMs: number;
  readonly model: SimulatorSettings;
  readonly results: ProviderSettings['results'];
}

/** The file with the results of a job. */
export interface JobResults {
  readonly bytes: Buffer;
  readonly completed: number;
  readonly failed: number;
}

const FOREIGN = {
  status: '',
  request: { contents: [], labels: { nightshift_line: 'someone-elses-line' } },
  response: { candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP' }] },
};
const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** The lines of an input file. */
export function linesOf(file: Buffer): readonly string[] {
  return file
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

/** Answers the requests of a job. Each result repeats its request, and has a `status` that is empty if it is good. */
export function runLines(lines: readonly string[], run: JobRun): JobResults {
  const ends = lines.slice(0, run.answered).map((line) => answered(line, run));
  const texts = ends.map(({ text }) => text);
  const failed = ends.filter(({ isFailed }) => isFailed).length;
  return {
    bytes: outputFile(texts, run.results, JSON.stringify(FOREIGN)),
    completed: ends.length - failed,
    failed,
  };
}

function answered(line: string, { modelName, model, processedMs }: JobRun) {
  const request = requestIn(line);
  const reply = generateContent(request, modelName, model);
  const isFailed = reply.kind === 'error';
  const result = {
    status: isFailed ? statusText(reply.status, reply.message) : '',
    processed_time: new Date(processedMs).toISOString(),
    request,
    response: isFailed ? {} : reply.response,
  };
  return { isFailed, text: JSON.stringify(result) };
}

function requestIn(line: string): unknown {
  try {
    const json: unknown = JSON.parse(line);
    return isJsonObject(json) ? json['request'] : undefined;
  } catch {
    return undefined;
  }
}

function statusText(status: number, message: string): string {
  const error = { code: status, message, status: PHRASES[status] ?? 'UNKNOWN' };
  return `${PHRASES[status] ?? 'Error'}: ${JSON.stringify({ error })}`;
}
