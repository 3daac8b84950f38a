import { z } from 'zod';
import { NightshiftError } from '../../core/errors';

const share = z.number().min(0).max(1);
const ms = z.number().min(0).max(3_600_000);
const whole = z.number().int().min(0).max(1_000_000);

const model = z.strictObject({
  name: z.string().min(1),
  tasks: z.array(z.enum(['TRANSCRIBE', 'TRANSLATE', 'SPEAK'])).default([]),
  languages: z.array(z.string()).default([]),
  content_types: z.array(z.string()).default([]),
  segments: z.boolean().default(true),
  words: z.boolean().default(true),
  deltas: z.boolean().default(true),
  max_batch: whole.default(1),
  streaming: z.boolean().default(true),
  partials: z.boolean().default(true),
  server_vad: z.boolean().default(true),
  sample_rates_hz: z.array(whole).default([]),
  voices: z.array(z.string()).default([]),
  speech_formats: z.array(z.string()).default([]),
});

const MODELS = [
  { name: 'whisper-1', tasks: ['TRANSCRIBE', 'TRANSLATE'], max_batch: 8 },
  { name: 'tts-1', tasks: ['SPEAK'], streaming: false, voices: ['alloy', 'echo', 'nova'] },
];

/** `audio` in `/simulator/config`. All of it can be changed while the worker runs. */
export const audioSettings = z.strictObject({
  models: z.array(model).prefault(MODELS as never),
  slots: whole.default(4),
  max_streams: whole.default(16),
  /** Time of a call: base + per recording + per second of audio. */
  base_ms: ms.default(50),
  item_ms: ms.default(10),
  audio_sec_ms: ms.default(0),
  status: z.enum(['LOADING', 'SERVING', 'DRAINING', 'ERROR']).default('SERVING'),
  /** Answers no Health. */
  silent: z.boolean().default(false),
  /** Takes calls and answers none. */
  hang: z.boolean().default(false),
  /** Answers no Cancel, and stops nothing for it. */
  deaf_cancel: z.boolean().default(false),
  /** Answers RESOURCE_EXHAUSTED to calls above its slots. */
  strict_slots: z.boolean().default(true),
  /** Share of calls that fail, and their gRPC status code. */
  failure_rate: share.default(0),
  failure_code: z.number().int().min(1).max(16).default(14),
  /** Breaks all connections after so many more calls; 0 for never. */
  crash_after: whole.default(0),
  /** Reads no more of a recording than this many bytes a second; 0 for no limit. */
  read_bytes_per_sec: z.number().min(0).max(1e12).default(0),
});

/** How the simulated audio worker behaves. */
export type AudioSettings = z.output<typeof audioSettings>;

/** The settings with changes. @throws invalid_request for an unknown member or a value out of range */
export function changedAudioSettings(settings: AudioSettings, patch: unknown): AudioSettings {
  const merged = typeof patch === 'object' && patch !== null ? { ...settings, ...patch } : patch;
  const parsed = audioSettings.safeParse(merged);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = ['audio', ...(issue?.path ?? [])].join('.');
  throw new NightshiftError('invalid_request', `${path}: ${issue?.message ?? 'invalid'}`, {
    param: path,
  });
}
