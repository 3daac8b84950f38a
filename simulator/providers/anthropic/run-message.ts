import { z } from 'zod';
import type { SimulatorSettings } from '../../settings';
import { chatReply, type ChatReply } from '../chat-reply';
import { errorObject } from './errors';

/** From this version on, the API refuses parameters of sampling. */
const WITHOUT_SAMPLING = '2026-10-21';
const SAMPLING = ['temperature', 'top_p', 'top_k'];

const unit = z.number().min(0).max(1);
const block = z.looseObject({
  type: z.enum(['text', 'image', 'tool_use', 'tool_result', 'thinking', 'document']),
});
/** Parameters of a message (https://platform.claude.com/docs/en/api/messages). `simulate` asks for a fault. */
const params = z.strictObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  messages: z
    .array(
      z.strictObject({
        role: z.enum(['user', 'assistant']),
        content: z.union([z.string(), z.array(block).min(1)]),
      }),
    )
    .min(1),
  system: z.union([z.string(), z.array(block)]).optional(),
  stream: z.literal(false).optional(),
  temperature: unit.optional(),
  top_p: unit.optional(),
  top_k: z.int().min(0).optional(),
  stop_sequences: z.array(z.string().regex(/\S/, 'must contain non-whitespace')).optional(),
  tools: z
    .array(z.looseObject({ name: z.string(), input_schema: z.looseObject({ type: z.string() }) }))
    .optional(),
  tool_choice: z.looseObject({ type: z.enum(['auto', 'any', 'tool', 'none']) }).optional(),
  output_config: z.looseObject({}).optional(),
  thinking: z.looseObject({}).optional(),
  metadata: z.looseObject({}).optional(),
  service_tier: z.string().optional(),
  simulate: z.unknown().optional(),
});

/** The result of one request: `succeeded` or `errored`. The text is that of the model server. */
export function runMessage(given: unknown, version: string, model: SimulatorSettings): object {
  const parsed = params.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return errored(400, `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'invalid'}`);
  }
  const { system, messages, ...rest } = parsed.data;
  const refused = version < WITHOUT_SAMPLING ? undefined : SAMPLING.find((name) => name in rest);
  if (refused !== undefined) return errored(400, `${refused}: Extra inputs are not permitted`);
  const lead = system === undefined ? [] : [{ role: 'system', content: system }];
  const chat = {
    model: rest.model,
    messages: [...lead, ...messages],
    max_tokens: rest.max_tokens,
    simulate: rest.simulate,
  };
  const reply = chatReply(chat, model);
  if (reply.kind === 'refused') {
    return errored(reply.status, 'The simulated model refused this request.');
  }
  return { type: 'succeeded', message: messageOf(rest.model, reply) };
}

function messageOf(
  model: string,
  {
    id,
    text,
    isCut,
    promptTokens,
    cachedTokens,
    outputTokens,
  }: Extract<ChatReply, { kind: 'answer' }>,
): object {
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text }],
    stop_reason: isCut ? 'max_tokens' : 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: promptTokens - cachedTokens,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: cachedTokens,
      output_tokens: outputTokens,
      service_tier: 'batch',
    },
  };
}

/** The result of a request that failed. */
export function errored(status: number, message: string): object {
  return { type: 'errored', error: errorObject(status, message) };
}
