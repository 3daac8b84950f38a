import type { ModelRequest } from '../request';
import type { SimulatorSettings } from '../settings';
import { chatCompletion } from './chat-completion';
import { completion } from './completion';
import { embedding } from './embedding';
import type { Generation } from './generation';
import { moderation } from './moderation';
import { response } from './response';

/** Decides the answer to a valid request. @throws invalid_request */
type AnswerBuilder = (request: ModelRequest, settings: SimulatorSettings) => Generation;

/** Builds the answer of each model endpoint. Equal requests and settings give equal texts. */
export const ANSWER_BUILDERS: ReadonlyMap<string, AnswerBuilder> = new Map([
  ['/v1/chat/completions', chatCompletion],
  ['/v1/completions', completion],
  ['/v1/embeddings', embedding],
  ['/v1/responses', response],
  ['/v1/moderations', moderation],
]);
