import { transcriptionBody, type TranscriptionFormat } from '../../../core/audio/transcription';

const said = (startSec: number, endSec: number, text: string) => ({ startSec, endSec, text });

function subtitles(format: TranscriptionFormat, segments: ReturnType<typeof said>[]): unknown {
  const transcription = { text: 'all', language: 'en', durationSec: 9, segments, words: [] };
  const view = { format, hasSegments: false, hasWords: false };
  return transcriptionBody(transcription, view)['text'];
}

const SEGMENTS = [said(0, 1.5, ' Hello'), said(3_599.9996, 3_601, ' a\n\n b --> c ')];

it('are those of SubRip, without the spaces that segments begin with', () => {
  expect(subtitles('srt', SEGMENTS)).toBe(
    '1\n00:00:00,000 --> 00:00:01,500\nHello\n\n2\n01:00:00,000 --> 01:00:01,000\na\nb -> c\n\n',
  );
});

it('are those of WebVTT', () => {
  expect(subtitles('vtt', SEGMENTS)).toBe(
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello\n\n01:00:00.000 --> 01:00:01.000\na\nb -> c\n\n',
  );
});

it('are one for the whole recording if there are no segments', () => {
  expect(subtitles('srt', [])).toBe('1\n00:00:00,000 --> 00:00:09,000\nall\n\n');
});
