import { checkAudio } from './audio-check';
import { endpointRule, type EndpointRule } from './endpoints';
import type { ReportFault } from './input-errors';
import { kindOf, quoted } from './input-values';
import { isJsonObject } from './json-object';

/** Rules for all lines of one batch. */
export interface LineRules {
  /** The batch's endpoint; every `url` must equal it. */
  readonly endpoint: string;
  /** The model of a moderation that names none. */
  readonly moderationDefaultModel: string;
}

/** What planning needs of a line; a member is null if it is missing or wrong. */
export interface CheckedLine {
  readonly customId: string | null;
  /** The effective model: the default if it may be omitted. */
  readonly model: string | null;
  readonly body: Readonly<Record<string, unknown>> | null;
  /** Inputs of an embeddings request; 0 at other endpoints. */
  readonly inputs: number;
  /** The uploaded file that the request names; null for one without, and at endpoints without audio. */
  readonly fileId: string | null;
}

type Members = Readonly<Record<string, unknown>>;

const MAX_CUSTOM_ID = 512;
/** Model names are part of object names, task queues and workflow histories, which are bounded. */
const MAX_MODEL = 256;

/**
 * Checks a parsed line (docs/design/api-contract.md#line-format). All its faults are reported, in the order
 * `custom_id`, `method`, `url`, `body`, then the members of `body`. A member that is null counts as absent.
 * Of `body`, only `model`, the required members of the endpoint and `stream` are checked; the model server
 * checks the rest.
 */
export function checkLine(line: Members, rules: LineRules, report: ReportFault): CheckedLine {
  const customId = checkCustomId(line['custom_id'], report);
  checkMethod(line['method'], report);
  const urlFits = checkUrl(line['url'], rules.endpoint, report);
  const body = checkBody(line['body'], report);
  if (body === null) return { customId, model: null, body, inputs: 0, fileId: null };
  const model = checkModel(body['model'], rules, report);
  const rule = endpointRule(rules.endpoint);
  // A line for another endpoint has the members of that endpoint; only its URL is reported.
  if (urlFits) checkRequired(body, rule.required, report);
  checkStream(body, rule, report);
  const fileId = urlFits && rule.namesAudio ? checkAudio(body, report) : null;
  const inputs = rule.countsInputs ? countInputs(body['input']) : 0;
  return { customId, model, body, inputs, fileId };
}

function checkCustomId(value: unknown, report: ReportFault): string | null {
  if (isAbsent(value)) return missing('custom_id', report);
  if (typeof value !== 'string' || value === '' || isLonger(value, MAX_CUSTOM_ID)) {
    report('invalid_request', unfitText('custom_id', MAX_CUSTOM_ID, value), 'custom_id');
    return null;
  }
  return value;
}

function checkMethod(value: unknown, report: ReportFault): void {
  if (isAbsent(value)) missing('method', report);
  else if (value !== 'POST') {
    const message = `\`method\` must be "POST", not ${quoted(value)}.`;
    report('invalid_method', message, 'method');
  }
}

function checkUrl(value: unknown, endpoint: string, report: ReportFault): boolean {
  if (isAbsent(value)) missing('url', report);
  else if (value === endpoint) return true;
  else {
    const message = `\`url\` must be the endpoint of the batch, "${endpoint}", not ${quoted(value)}.`;
    report('invalid_url', message, 'url');
  }
  return false;
}

function checkBody(value: unknown, report: ReportFault): Members | null {
  if (isAbsent(value)) return missing('body', report);
  const body = isJsonObject(value) ? value : null;
  if (body === null) {
    report('invalid_request', `\`body\` must be a JSON object; it is ${kindOf(value)}.`, 'body');
  }
  return body;
}

function checkModel(value: unknown, rules: LineRules, report: ReportFault): string | null {
  if (isAbsent(value) && endpointRule(rules.endpoint).modelOptional) {
    return rules.moderationDefaultModel;
  }
  if (typeof value === 'string' && value !== '' && !isLonger(value, MAX_MODEL)) return value;
  const message = isAbsent(value)
    ? 'Missing required parameter: `body.model`.'
    : unfitText('body.model', MAX_MODEL, value);
  report('invalid_request', message, 'body.model');
  return null;
}

function checkRequired(body: Members, required: readonly string[], report: ReportFault): void {
  for (const name of required) if (isAbsent(body[name])) missing(`body.${name}`, report);
}

function checkStream(body: Members, rule: EndpointRule, report: ReportFault): void {
  if (body['stream'] === true) {
    const message = 'Streaming is not possible in a batch: remove `stream` or set it to false.';
    report('streaming_unsupported', message, 'body.stream');
  }
  if (body['stream_format'] !== 'sse' || !(rule.namesAudio || rule.answersAudio)) return;
  const message = 'Streaming is not possible in a batch: remove `stream_format`.';
  report('streaming_unsupported', message, 'body.stream_format');
}

/** A text or an array of tokens is one input; an array of these counts each element. */
function countInputs(input: unknown): number {
  if (!Array.isArray(input)) return 1;
  return typeof input[0] === 'number' ? 1 : input.length;
}

function missing(param: string, report: ReportFault): null {
  report('missing_required_parameter', `Missing required parameter: \`${param}\`.`, param);
  return null;
}

function unfitText(param: string, maxCharacters: number, value: unknown): string {
  const found = typeof value === 'string' ? (value === '' ? 'empty' : 'longer') : kindOf(value);
  return `\`${param}\` must be a string of 1 to ${maxCharacters} characters; it is ${found}.`;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Limits are in code points; a string never has more of them than code units. */
function isLonger(text: string, maxCharacters: number): boolean {
  if (text.length <= maxCharacters) return false;
  return text.length > 2 * maxCharacters || Array.from(text).length > maxCharacters;
}
