import fc from 'fast-check';
import {
  type FormFields,
  readTranscriptionRequest,
} from '../../../gateway/audio/transcription-request';
import { isNightshiftError } from '../../../core/errors';

const fields = (given: Record<string, string | string[]>): FormFields =>
  new Map(Object.entries({ model: 'm', ...given }).map(([name, value]) => [name, [value].flat()]));

it('reads the fields of a transcription, with the defaults of OpenAI', () => {
  expect(readTranscriptionRequest('transcribe', fields({}))).toEqual({
    ...{ task: 'transcribe', model: 'm', language: '', prompt: '', temperature: 0 },
    ...{ format: 'json', hasWords: false, hasSegments: false, needsSegments: false },
    isStream: false,
    isPostProcessed: true,
  });
  const all = fields({
    ...{ language: 'EN', prompt: 'p', temperature: '0.25', itn: 'False' },
    ...{ response_format: 'verbose_json', 'timestamp_granularities[]': ['word', 'segment'] },
  });
  expect(readTranscriptionRequest('transcribe', all)).toMatchObject({
    ...{ language: 'en', prompt: 'p', temperature: 0.25, format: 'verbose_json' },
    ...{ hasWords: true, hasSegments: true, isPostProcessed: false },
  });
});

it('gives segments in verbose_json unless the client chooses', () => {
  const read = (given: Record<string, string | string[]>) =>
    readTranscriptionRequest('transcribe', fields({ response_format: 'verbose_json', ...given }));
  expect(read({})).toMatchObject({ hasSegments: true, hasWords: false });
  const words = read({ 'timestamp_granularities[]': 'word' });
  expect(words).toMatchObject({ hasSegments: false, hasWords: true });
});

it.each<[Record<string, string | string[]>, string]>([
  [{ model: '' }, 'model'],
  [{ model: 'm'.repeat(2_000) }, 'model'],
  [{ model: ['a', 'b'] }, 'model'],
  [{ temperature: 'x' }, 'temperature'],
  [{ temperature: '1.1' }, 'temperature'],
  [{ temperature: '-0' }, 'temperature'],
  [{ temperature: 'Infinity' }, 'temperature'],
  [{ response_format: 'diarized_json' }, 'response_format'],
  [{ response_format: 'srt', stream: 'true' }, 'response_format'],
  [{ stream: 'maybe' }, 'stream'],
  [{ language: 'english!' }, 'language'],
  [{ 'timestamp_granularities[]': 'word' }, 'timestamp_granularities'],
  [
    { response_format: 'verbose_json', 'timestamp_granularities[]': 'line' },
    'timestamp_granularities',
  ],
  [{ chunking_strategy: 'auto' }, 'chunking_strategy'],
  [{ 'include[]': 'logprobs' }, 'include'],
  [{ 'known_speaker_names[]': 'Ada' }, 'known_speaker_names'],
  [{ wat: '1' }, 'wat'],
])('refuses %j with the param %s', (given, param) => {
  const read = () => readTranscriptionRequest('transcribe', fields(given));
  expect(read).toThrow(expect.objectContaining({ httpStatus: 400, param }) as Error);
});

it.each(['language', 'stream', 'timestamp_granularities[]'])(
  'refuses %s in a translation',
  (name) => {
    const read = () => readTranscriptionRequest('translate', fields({ [name]: 'true' }));
    expect(read).toThrow(expect.objectContaining({ apiCode: 'unknown_parameter' }) as Error);
  },
);

it('never fails but with a fault of the request', () => {
  const names = fc.oneof(
    fc.string(),
    fc.constantFrom('model', 'temperature', 'stream', 'itn', 'language', 'response_format'),
  );
  const forms = fc.array(fc.tuple(names, fc.array(fc.string(), { minLength: 1, maxLength: 2 })));
  fc.assert(
    fc.property(forms, (entries) => {
      try {
        readTranscriptionRequest('transcribe', new Map(entries));
      } catch (error) {
        expect(isNightshiftError(error, 'invalid_request')).toBe(true);
      }
    }),
  );
});
