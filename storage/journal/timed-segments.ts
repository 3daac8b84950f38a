import type { SegmentSink } from './segment-writer';

/** The same segments; `onFlushed` gets the duration of each write, ms, failed ones included. */
export function timedSegments(sink: SegmentSink, onFlushed: (tookMs: number) => void): SegmentSink {
  return {
    write: async (frames) => {
      const startedMs = performance.now();
      try {
        return await sink.write(frames);
      } finally {
        onFlushed(performance.now() - startedMs);
      }
    },
    close: () => sink.close(),
  };
}
