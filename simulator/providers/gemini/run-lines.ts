import { isJsonObject } from '../../../core/openai/json-object';
import type { SimulatorSettings } from '../../settings';
import { generateContent } from '../google/generate-content';
import { outputFile } from '../result-files';
import type { ProviderSettings } from '../settings';

/** What the requests of a batch are answered with. */
export interface BatchRun {
  /** Of the model. */
  readonly name: string;
  readonly model: SimulatorSettings;
  readonly results: ProviderSettings['results'];
}

/** The file with the results of a batch. */
export interface BatchResults {
  readonly bytes: Buffer;
  readonly completed: number;
  readonly failed: number;
}

const FOREIGN = {
  key: 'someone-elses-line',
  response: { candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP' }] },
};
/** `google.rpc.Code` by HTTP status. */
const CODES: Readonly<Record<number, number>> = {
  400: 3,
  404: 5,
  429: 8,
  500: 13,
  503: 14,
  504: 4,
};

/** The lines of an input file. */
export function linesOf(file: Buffer): readonly string[] {
  return file
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

/** Answers lines `{"key", "request"}` with `{"key", "response" | "error"}`. */
export function runLines(lines: readonly string[], run: BatchRun): BatchResults {
  const ends = lines.map((line) => answered(line, run));
  const texts = ends.map(({ text }) => text);
  const failed = ends.filter(({ isFailed }) => isFailed).length;
  return {
    bytes: outputFile(texts, run.results, JSON.stringify(FOREIGN)),
    completed: ends.length - failed,
    failed,
  };
}

function answered(line: string, { name, model }: BatchRun) {
  const { key, request } = partsOf(line);
  const reply = generateContent(request, name, model);
  const isFailed = reply.kind === 'error';
  const result = isFailed
    ? { key, error: { code: CODES[reply.status] ?? 2, message: reply.message } }
    : { key, response: reply.response };
  return { isFailed, text: JSON.stringify(result) };
}

function partsOf(line: string): { readonly key?: unknown; readonly request?: unknown } {
  try {
    const json: unknown = JSON.parse(line);
    return isJsonObject(json) ? json : {};
  } catch {
    return {};
  }
}
