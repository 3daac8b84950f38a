import { replyTo } from '../replies';
import type { SimulatorSettings } from '../settings';
import { Traffic } from '../traffic';

/** What the simulated model says to a chat, for APIs with a format of their own. */
export type ChatReply =
  | {
      readonly kind: 'refused';
      /** HTTP status of the refusal. */
      readonly status: number;
    }
  | {
      readonly kind: 'answer';
      readonly id: string;
      readonly text: string;
      /** Whether the limit of tokens has cut the text. */
      readonly isCut: boolean;
      readonly promptTokens: number;
      /** Of the prompt. */
      readonly cachedTokens: number;
      readonly outputTokens: number;
    };

interface Completion {
  readonly id: string;
  readonly choices: readonly {
    readonly message: { readonly content: string };
    readonly finish_reason: string;
  }[];
}

/** Asks the simulated model. @param chat the body of a chat completion; `simulate` asks for a fault */
export function chatReply(chat: object, model: SimulatorSettings): ChatReply {
  // Limits of requests at once are for the model server.
  const settings = { ...model, maxConcurrency: 0, notReady: false };
  const bytes = Buffer.from(JSON.stringify(chat));
  const context = { settings, traffic: new Traffic(), tries: 1 };
  const reply = replyTo('/v1/chat/completions', bytes, context);
  if (reply.generation === null) return { kind: 'refused', status: reply.status };
  const { promptTokens, outputTokens, estimatedCachedTokens: cachedTokens } = reply.generation;
  const { id, choices } = reply.generation.body(cachedTokens) as unknown as Completion;
  const [choice] = choices;
  return {
    kind: 'answer',
    id,
    text: choice?.message.content ?? '',
    isCut: choice?.finish_reason === 'length',
    promptTokens,
    cachedTokens,
    outputTokens,
  };
}
