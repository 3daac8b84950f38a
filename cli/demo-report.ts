import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { DemoBatchResult } from './demo-batch';
import { grouped, table } from './output';

interface ResultLine {
  readonly custom_id: string;
  readonly response: { readonly status_code: number; readonly body: unknown } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

interface ReportData {
  readonly samples: readonly (readonly string[])[];
  readonly tokens: { readonly input: number; readonly cached: number; readonly output: number };
  /** How many lines failed, by what they failed with. */
  readonly failures: ReadonlyMap<string, number>;
}

const SAMPLES = 4;
const SAMPLE_CHARACTERS = 70;

/** What a person wants to see of a finished batch, read from its result files. */
export async function reportOf(result: DemoBatchResult): Promise<string> {
  const data = await readResults(result);
  return [...countLines(result, data), '', ...sampleLines(data), ...failureLines(data)].join('\n');
}

async function readResults({ outputFile, errorFile }: DemoBatchResult): Promise<ReportData> {
  const samples: string[][] = [];
  const tokens = { input: 0, cached: 0, output: 0 };
  const failures = new Map<string, number>();
  for await (const line of resultLines(outputFile)) {
    const body = line.response?.body;
    if (samples.length < SAMPLES) samples.push([line.custom_id, short(answerText(body))]);
    tokens.input += numberAt(body, ['usage', 'prompt_tokens'], ['usage', 'input_tokens']);
    tokens.output += numberAt(body, ['usage', 'completion_tokens'], ['usage', 'output_tokens']);
    tokens.cached += numberAt(body, ['usage', 'prompt_tokens_details', 'cached_tokens']);
  }
  for await (const line of resultLines(errorFile)) {
    const what = failureOf(line);
    failures.set(what, (failures.get(what) ?? 0) + 1);
  }
  return { samples, tokens, failures };
}

async function* resultLines(file: string | null): AsyncGenerator<ResultLine> {
  if (file === null) return;
  for await (const line of createInterface({ input: createReadStream(file) })) {
    yield JSON.parse(line) as ResultLine;
  }
}

function countLines({ batch, tookMs }: DemoBatchResult, { tokens }: ReportData): string[] {
  const { total = 0, completed = 0, failed = 0 } = batch.request_counts ?? {};
  const rate = Math.round(total / (tookMs / 1_000));
  const seconds = (tookMs / 1_000).toFixed(1);
  const { input, cached, output } = tokens;
  return [
    `${grouped(total)} requests: ${grouped(completed)} completed, ${grouped(failed)} failed, in ${seconds} s (${grouped(rate)} a second, upload to last result)`,
    `tokens: ${grouped(input)} in (${grouped(cached)} cached), ${grouped(output)} out`,
  ];
}

function sampleLines({ samples }: ReportData): string[] {
  return samples.length === 0 ? [] : ['some answers:', indent(table(samples))];
}

function failureLines({ failures }: ReportData): string[] {
  if (failures.size === 0) return [];
  const rows = [...failures].sort((a, b) => b[1] - a[1]).map(([what, n]) => [String(n), what]);
  return ['failed lines:', indent(table(rows))];
}

function failureOf({ response, error }: ResultLine): string {
  if (error !== null) return `${error.code}: ${short(error.message)}`;
  const message = textAt(response?.body, ['error', 'message']) ?? '';
  return `HTTP ${response?.status_code ?? 0}: ${short(message)}`;
}

/** The text of a chat, completions or responses answer; otherwise its kind. */
function answerText(body: unknown): string {
  return (
    textAt(body, ['choices', 0, 'message', 'content']) ??
    textAt(body, ['choices', 0, 'text']) ??
    textAt(body, ['output', 0, 'content', 0, 'text']) ??
    textAt(body, ['object']) ??
    ''
  );
}

function textAt(value: unknown, path: readonly (string | number)[]): string | null {
  const found = valueAt(value, path);
  return typeof found === 'string' ? found : null;
}

function numberAt(value: unknown, ...paths: readonly (readonly string[])[]): number {
  for (const path of paths) {
    const found = valueAt(value, path);
    if (typeof found === 'number') return found;
  }
  return 0;
}

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (at, step) =>
      typeof at === 'object' && at !== null
        ? (at as Readonly<Record<string | number, unknown>>)[step]
        : undefined,
    value,
  );
}

function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length <= SAMPLE_CHARACTERS ? line : `${line.slice(0, SAMPLE_CHARACTERS - 3)}...`;
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ');
}
