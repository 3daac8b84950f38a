/** An event for the client, without its `event_id` (docs/design/realtime.md#events). */
export type ServerEvent =
  | { readonly type: 'session.created' | 'session.updated'; readonly session: object }
  | {
      readonly type: 'input_audio_buffer.committed';
      readonly item_id: string;
      readonly previous_item_id: string | null;
    }
  | { readonly type: 'input_audio_buffer.cleared' }
  | {
      readonly type: 'input_audio_buffer.speech_started';
      readonly item_id: string;
      readonly audio_start_ms: number;
    }
  | {
      readonly type: 'input_audio_buffer.speech_stopped';
      readonly item_id: string;
      readonly audio_end_ms: number;
    }
  | (Transcribed & {
      readonly type: 'conversation.item.input_audio_transcription.delta';
      readonly delta: string;
    })
  | (Transcribed & {
      readonly type: 'conversation.item.input_audio_transcription.completed';
      readonly transcript: string;
      readonly usage: RealtimeUsage;
    })
  | (Transcribed & {
      readonly type: 'conversation.item.input_audio_transcription.failed';
      readonly error: RealtimeError;
    })
  | (Transcribed & { readonly type: 'transcript.partial'; readonly text: string })
  | { readonly type: 'error'; readonly error: RealtimeError };

/** The item whose transcript an event is about. An item has one content part. */
interface Transcribed {
  readonly item_id: string;
  readonly content_index: 0;
}

/** What an item used, in OpenAI's form. Seconds are rounded up. */
export type RealtimeUsage =
  | {
      readonly type: 'tokens';
      readonly input_tokens: number;
      readonly output_tokens: number;
      readonly total_tokens: number;
    }
  | { readonly type: 'duration'; readonly seconds: number };

/** An error in OpenAI's form. */
export interface RealtimeError {
  readonly type: 'invalid_request_error' | 'server_error';
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  /** The `event_id` that the client gave the message at fault. */
  readonly event_id?: string | null;
}
