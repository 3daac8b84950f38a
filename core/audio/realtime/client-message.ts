import { NightshiftError } from '../../errors';

/** A message of a client. */
export type ClientMessage =
  | { readonly type: 'session.update'; readonly session: unknown }
  | { readonly type: 'input_audio_buffer.append'; readonly audio: string }
  | { readonly type: 'input_audio_buffer.commit' | 'input_audio_buffer.clear' };

/** A message, or why it is none; and the `event_id` that the client gave it. */
export type ReadMessage =
  | { readonly eventId: string | null; readonly message: ClientMessage }
  | { readonly eventId: string | null; readonly fault: NightshiftError };

const SHOWN_CHARS = 100;

/** Reads a text message of a client. */
export function readClientMessage(text: string): ReadMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { eventId: null, fault: fault('The message is not valid JSON.', null, 'invalid_json') };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { eventId: null, fault: fault('The message must be a JSON object.', null) };
  }
  const given = value as Record<string, unknown>;
  const eventId = typeof given['event_id'] === 'string' ? given['event_id'].slice(0, 512) : null;
  const message = messageOf(given);
  return message instanceof NightshiftError ? { eventId, fault: message } : { eventId, message };
}

function messageOf({
  type,
  session,
  audio,
}: Record<string, unknown>): ClientMessage | NightshiftError {
  switch (type) {
    case 'session.update':
      return { type, session };
    case 'input_audio_buffer.append':
      if (typeof audio === 'string') return { type, audio };
      return fault('The audio must be a base64 text.', 'audio');
    case 'input_audio_buffer.commit':
    case 'input_audio_buffer.clear':
      return { type };
    default:
      return fault(
        `The type ${shown(type)} is not supported. Types are: session.update, input_audio_buffer.append, input_audio_buffer.commit, input_audio_buffer.clear.`,
        'type',
      );
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}

function fault(message: string, param: string | null, apiCode = 'invalid_value'): NightshiftError {
  const options = param === null ? { apiCode } : { apiCode, param };
  return new NightshiftError('invalid_request', message, options);
}
