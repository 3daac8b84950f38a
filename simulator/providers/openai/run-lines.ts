import { fnv32a } from '../../../core/names/fnv';
import { replyTo } from '../../replies';
import type { SimulatorSettings } from '../../settings';
import { Traffic } from '../../traffic';
import { outputFile, resultFile } from '../result-files';
import type { ProviderSettings } from '../settings';
import type { InputLine } from './input-lines';

/** What the requests of a batch are answered with. */
export interface BatchRun {
  readonly endpoint: string;
  /** How many of the lines, from the first, are answered. */
  readonly answered: number;
  /** Why the others are not. */
  readonly reason: 'expired' | 'cancelled';
  readonly model: SimulatorSettings;
  readonly results: ProviderSettings['results'];
}

/** The result files of a batch, without those that would be empty. */
export interface BatchResults {
  readonly output: Buffer | null;
  readonly errors: Buffer | null;
  readonly completed: number;
  readonly failed: number;
  readonly usage: Record<string, unknown>;
}

interface LineEnd {
  readonly isAnswer: boolean;
  readonly line: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

const FOREIGN: InputLine = { customId: 'someone-elses-line', body: Buffer.from('{"model":"m"}') };
const NOT_RUN = {
  expired: 'This request could not be executed before the completion window expired.',
  cancelled: 'This request was not executed because the batch was cancelled.',
};

/** Answers the requests of a batch with the simulator's own answers. */
export function runLines(lines: readonly InputLine[], run: BatchRun): BatchResults {
  const traffic = new Traffic();
  // Limits of requests at once are for the model server.
  const settings = { ...run.model, maxConcurrency: 0, notReady: false };
  const ends = lines.map((line, index) =>
    index < run.answered
      ? answered(line, run.endpoint, { settings, traffic, tries: 1 })
      : failedLine(line, `batch_${run.reason}`, NOT_RUN[run.reason]),
  );
  const answers = ends.filter(({ isAnswer }) => isAnswer);
  const errors = ends.filter(({ isAnswer }) => !isAnswer);
  const foreign = resultLine(FOREIGN, { status_code: 200, body: {} }, null);
  const shown = answers.map(({ line }) => line);
  return {
    output: shown.length === 0 ? null : outputFile(shown, run.results, foreign),
    errors: errors.length === 0 ? null : resultFile(errors.map(({ line }) => line)),
    completed: answers.length,
    failed: errors.length,
    usage: usageOf(answers),
  };
}

function answered(
  line: InputLine,
  endpoint: string,
  context: Parameters<typeof replyTo>[2],
): LineEnd {
  const reply = replyTo(endpoint, line.body, context);
  if (reply.generation === null) {
    if (reply.drop) return failedLine(line, 'request_timeout', 'The request timed out.');
    const end = failedLine(line, '', '');
    return { ...end, line: resultLine(line, response(line, reply.status, reply.body), null) };
  }
  const { promptTokens, outputTokens, estimatedCachedTokens: cachedTokens } = reply.generation;
  const body = reply.generation.body(cachedTokens);
  return {
    isAnswer: true,
    line: resultLine(line, response(line, 200, body), null),
    promptTokens,
    cachedTokens,
    outputTokens,
  };
}

function failedLine(line: InputLine, code: string, message: string): LineEnd {
  const text = resultLine(line, null, { code, message });
  return { isAnswer: false, line: text, promptTokens: 0, cachedTokens: 0, outputTokens: 0 };
}

function response({ customId }: InputLine, status: number, body: unknown): unknown {
  return { status_code: status, request_id: `req_${idOf(customId)}`, body };
}

function resultLine({ customId }: InputLine, answer: unknown, error: unknown): string {
  const id = `batch_req_${idOf(customId)}`;
  return JSON.stringify({ id, custom_id: customId, response: answer, error });
}

function idOf(customId: string): string {
  return fnv32a(Buffer.from(customId)).toString(16).padStart(8, '0');
}

function usageOf(answers: readonly LineEnd[]): Record<string, unknown> {
  const sum = (of: (end: LineEnd) => number): number =>
    answers.reduce((total, end) => total + of(end), 0);
  const input = sum(({ promptTokens }) => promptTokens);
  const output = sum(({ outputTokens }) => outputTokens);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: sum(({ cachedTokens }) => cachedTokens) },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}
