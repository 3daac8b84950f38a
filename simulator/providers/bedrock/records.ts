import { z } from 'zod';
import type { SimulatorSettings } from '../../settings';
import { chatReply } from '../chat-reply';

const image = z.strictObject({
  format: z.enum(['png', 'jpeg', 'gif', 'webp']),
  source: z.strictObject({ bytes: z.base64() }),
});
const block = z.union([
  z.strictObject({ text: z.string().min(1, 'must not be blank') }),
  z.strictObject({ image }),
]);
const share = z.number().min(0).max(1);
/**
 * The body of a `Converse` request, as far as batches take it
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). `simulate` asks for a fault.
 */
const input = z.strictObject({
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(block).min(1) }))
    .min(1),
  system: z.array(z.strictObject({ text: z.string().min(1) })).optional(),
  inferenceConfig: z
    .strictObject({
      maxTokens: z.int().min(1).optional(),
      temperature: share.optional(),
      topP: share.optional(),
      stopSequences: z.array(z.string().min(1)).optional(),
    })
    .optional(),
  outputConfig: z
    .strictObject({
      textFormat: z.strictObject({
        type: z.literal('json_schema'),
        structure: z.strictObject({
          jsonSchema: z.strictObject({ name: z.string(), schema: z.string() }),
        }),
      }),
    })
    .optional(),
  additionalModelRequestFields: z.looseObject({}).optional(),
  simulate: z.unknown().optional(),
});

const record = z.object({ recordId: z.string().min(1), modelInput: z.looseObject({}) });

/** One record of an input file. */
export type BatchRecord = z.infer<typeof record>;

/** The end of a record. */
export interface RecordEnd {
  /** In the output file. */
  readonly line: string;
  readonly isAnswer: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Reads an input file; null if a line is not a record. The model's own format is checked when it runs. */
export function readRecords(file: Buffer): BatchRecord[] | null {
  const lines = file.toString('utf8').split('\n').filter(Boolean);
  const records = lines.map((line) => record.safeParse(parsed(line)));
  if (records.length === 0) return null;
  const valid = records.flatMap(({ data }) => data ?? []);
  return valid.length === records.length ? valid : null;
}

/** Runs a record. The text is that of the model server. */
export function runRecord(
  { recordId, modelInput }: BatchRecord,
  modelId: string,
  model: SimulatorSettings,
): RecordEnd {
  const given = input.safeParse(modelInput);
  const failed = (errorCode: number, errorMessage: string): RecordEnd => {
    const line = JSON.stringify({ recordId, modelInput, error: { errorCode, errorMessage } });
    return { line, isAnswer: false, inputTokens: 0, outputTokens: 0 };
  };
  if (!given.success) {
    const [issue] = given.error.issues;
    return failed(400, `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'invalid'}`);
  }
  const reply = chatReply(chatOf(given.data, modelId), model);
  if (reply.kind === 'refused') {
    return failed(reply.status, 'The simulated model refused this request.');
  }
  const { promptTokens, cachedTokens, outputTokens, text, isCut } = reply;
  const modelOutput = {
    output: { message: { role: 'assistant', content: [{ text }] } },
    stopReason: isCut ? 'max_tokens' : 'end_turn',
    usage: {
      inputTokens: promptTokens - cachedTokens,
      outputTokens,
      totalTokens: promptTokens + outputTokens,
      cacheReadInputTokens: cachedTokens,
      cacheWriteInputTokens: 0,
    },
    metrics: { latencyMs: 1 },
  };
  const line = JSON.stringify({ recordId, modelInput, modelOutput });
  return { line, isAnswer: true, inputTokens: promptTokens, outputTokens };
}

function chatOf(
  { messages, system = [], inferenceConfig, simulate }: z.infer<typeof input>,
  model: string,
): object {
  return {
    model,
    messages: [
      ...system.map(({ text }) => ({ role: 'system', content: text })),
      ...messages.map(({ role, content }) => ({ role, content: content.map(partOf) })),
    ],
    max_tokens: inferenceConfig?.maxTokens,
    simulate,
  };
}

function partOf(one: z.infer<typeof block>): object {
  if ('text' in one) return { type: 'text', text: one.text };
  const { format, source } = one.image;
  const url = `data:image/${format};base64,${source.bytes}`;
  return { type: 'image_url', image_url: { url } };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return null;
  }
}
