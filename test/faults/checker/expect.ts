import type { BatchPlan } from '../round/plan';
import { finalAnswer, inputText, type PlacedLine, tokensOf, type Tokens } from '../round/answers';

/** The expected result of an input line, computed without product code. */
export interface ExpectedLine extends PlacedLine {
  readonly lineId: string;
  /** The result line, and the file that it belongs to. */
  readonly answered: { readonly text: string; readonly file: 'output' | 'errors' };
  /** Counted if it was answered. */
  readonly tokens: Tokens | null;
}

const MESSAGES = {
  model_not_found: 'No model server serves the model of this request.',
  batch_cancelled: 'This request was not executed, because the batch was cancelled.',
  batch_expired: 'This request could not be executed before the completion window expired.',
} as const;

/** Every line of a batch in the order of its input. */
export function expectedLines(plan: BatchPlan, batchId: string): ExpectedLine[] {
  const starts = lineStarts(inputText(plan));
  const isThroughGateway = plan.isThroughGateway === true;
  return plan.lines.map((line, index) => {
    const placed = { line, index };
    const offset = starts[index]!.toString(16).padStart(12, '0');
    const lineId = `batch_req_${batchId.slice('batch_'.length)}${offset}`;
    return { ...placed, lineId, ...ending(placed, { lineId, isThroughGateway }) };
  });
}

/** The line in the error file if the batch ended before its answer. */
export function unansweredText(
  expected: Pick<ExpectedLine, 'line' | 'lineId'>,
  code: keyof typeof MESSAGES,
): string {
  const { lineId: id, line } = expected;
  const error = { code, message: MESSAGES[code] };
  return JSON.stringify({ id, custom_id: line.customId, response: null, error });
}

function ending(
  placed: PlacedLine,
  { lineId, isThroughGateway }: { lineId: string; isThroughGateway: boolean },
): Pick<ExpectedLine, 'answered' | 'tokens'> {
  const { line } = placed;
  if (line.kind === 'unrouted') {
    const text = unansweredText({ line, lineId }, 'model_not_found');
    return { answered: { text, file: 'errors' }, tokens: null };
  }
  const { status, text, requestId } = finalAnswer(placed);
  // The gateway answers with the id that it was given.
  const answeredId = isThroughGateway ? lineId : (requestId ?? lineId);
  const response = { status_code: status, request_id: answeredId, body: JSON.parse(text) };
  const whole = { id: lineId, custom_id: line.customId, response, error: null };
  const ok = status === 200;
  return {
    answered: { text: ascii(JSON.stringify(whole)), file: ok ? 'output' : 'errors' },
    tokens: ok ? tokensOf(placed) : null,
  };
}

function ascii(json: string): string {
  return json.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Byte offset of each line. */
function lineStarts(text: string): number[] {
  const starts: number[] = [];
  let at = 0;
  for (const line of text.split('\n')) {
    starts.push(at);
    at += Buffer.byteLength(line) + 1;
  }
  return starts;
}
