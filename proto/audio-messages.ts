/*
 * The messages of proto/nightshift/audio/v1/audio.proto as they are decoded: names in camel case, enums as text, 64-bit
 * numbers as numbers, absent scalars as their defaults, absent messages as null. What is sent may leave fields out.
 * A test holds the names against the file.
 */

/** What a worker is asked to do. */
export type WireTask = 'TASK_UNSPECIFIED' | 'TRANSCRIBE' | 'TRANSLATE' | 'SPEAK';

/** What is wanted of one recording. */
export interface WireFileOptions {
  readonly requestId: string;
  readonly model: string;
  readonly task: WireTask;
  /** ISO 639-1; empty if the client did not say. */
  readonly language: string;
  readonly prompt: string;
  readonly temperature: number;
  readonly wantSegments: boolean;
  readonly wantWords: boolean;
  readonly wantDeltas: boolean;
  readonly filename: string;
  readonly contentType: string;
  /** Bytes of the recording. */
  readonly size: number;
  /** As its container states it, s; 0 if it does not. */
  readonly durationS: number;
}

/** First the options, then chunks of at most 256 KiB. */
export type WireFilePart = { readonly options: WireFileOptions } | { readonly chunk: Buffer };

/** One event of a recording, as decoded: `event` names the member that is set. */
export interface WireFileEvent {
  readonly event?: 'delta' | 'segment' | 'result';
  readonly delta?: string;
  readonly segment?: WireSegment;
  readonly result?: WireTranscript;
}

/** A part of one of several recordings. */
export interface WireBatchPart {
  readonly item: number;
  readonly part?: WireFilePart | null;
  readonly end?: boolean;
}

/** An event of one of several recordings, as decoded: `outcome` names the member that is set. */
export interface WireBatchEvent {
  readonly item: number;
  readonly outcome?: 'event' | 'failure';
  readonly event?: WireFileEvent;
  readonly failure?: WireFailure;
}

/** Why one recording of several failed. */
export interface WireFailure {
  /** A gRPC status code. */
  readonly code: number;
  readonly message: string;
}

/** One word, with its times in seconds. */
export interface WireWord {
  readonly text: string;
  readonly startS: number;
  readonly endS: number;
  readonly probability: number;
}

/** One segment, with its times in seconds. */
export interface WireSegment {
  readonly id: number;
  readonly startS: number;
  readonly endS: number;
  readonly text: string;
  readonly avgLogprob: number;
  readonly compressionRatio: number;
  readonly noSpeechProb: number;
  readonly temperature: number;
  readonly seek: number;
  readonly tokens: readonly number[];
}

/** What a call used. */
export interface WireUsage {
  readonly audioSeconds: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The result of one recording. */
export interface WireTranscript {
  readonly text: string;
  readonly language: string;
  readonly durationS: number;
  readonly segments: readonly WireSegment[];
  readonly words: readonly WireWord[];
  readonly usage: WireUsage | null;
}

/** What is wanted of a live stream. */
export interface WireStreamOptions {
  readonly sessionId: string;
  readonly model: string;
  readonly language: string;
  readonly prompt: string;
  /** `pcm16`, `mulaw` or `alaw`. */
  readonly encoding: string;
  readonly sampleRateHz: number;
  readonly serverVad: boolean;
  readonly vadThreshold: number;
  readonly prefixMs: number;
  readonly silenceMs: number;
  readonly wantPartials: boolean;
  readonly wantWords: boolean;
  /** Where the audio of this stream begins in the session. */
  readonly startMs: number;
}

/** A piece of live audio. */
export interface WireAudioFrame {
  readonly options?: WireStreamOptions | null;
  readonly audio?: Buffer;
  readonly commit?: boolean;
  readonly last?: boolean;
}

/** What happened in a live stream. */
export type WireEventKind =
  'KIND_UNSPECIFIED' | 'SPEECH_STARTED' | 'PARTIAL' | 'FINAL' | 'SPEECH_STOPPED' | 'ITEM_DONE';

/** One event of a live stream. */
export interface WireTranscriptEvent {
  readonly kind: WireEventKind;
  readonly segmentId: number;
  readonly text: string;
  /** The first characters of a `PARTIAL` that will not change. */
  readonly stableChars: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly confidence: number;
  readonly language: string;
  readonly words: readonly WireWord[];
  readonly usage: WireUsage | null;
}

/** A text to speak. */
export interface WireSpeechRequest {
  readonly requestId: string;
  readonly model: string;
  readonly input: string;
  readonly voice: string;
  /** `mp3`, `opus`, `aac`, `flac`, `wav` or `pcm`. */
  readonly format: string;
  readonly speed: number;
  readonly instructions: string;
  readonly language: string;
}

/** A piece of speech. */
export interface WireSpeechChunk {
  readonly audio: Buffer;
  readonly durationS: number;
  readonly usage: WireUsage | null;
}

/** Names the call or stream to stop. */
export interface WireCancelRequest {
  readonly requestId?: string;
  readonly sessionId?: string;
}

/** What became of a cancel. */
export interface WireCancelReply {
  /** The worker knew the call. */
  readonly acknowledged: boolean;
  /** It has stopped. */
  readonly stopped: boolean;
}

/** What a worker says of itself. */
export type WireHealthStatus = 'STATUS_UNSPECIFIED' | 'LOADING' | 'SERVING' | 'DRAINING' | 'ERROR';

/** The state of a worker. */
export interface WireHealthReply {
  readonly status: WireHealthStatus;
  readonly workerId: string;
  readonly engine: string;
  readonly message: string;
  readonly models: readonly WireModel[];
  /** 0 means 1. */
  readonly slots: number;
  readonly inFlight: number;
  readonly maxStreams: number;
  readonly streams: number;
}

/** What a model can do. An empty list means "any". */
export interface WireModel {
  readonly name: string;
  readonly tasks: readonly WireTask[];
  readonly languages: readonly string[];
  readonly contentTypes: readonly string[];
  readonly segments: boolean;
  readonly words: boolean;
  readonly deltas: boolean;
  /** 0 means 1. */
  readonly maxBatch: number;
  readonly streaming: boolean;
  readonly partials: boolean;
  readonly serverVad: boolean;
  readonly sampleRatesHz: readonly number[];
  readonly voices: readonly string[];
  readonly speechFormats: readonly string[];
}
