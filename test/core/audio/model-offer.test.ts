import type { AudioNeed } from '../../../core/audio/audio-need';
import { missingOffer, type ModelOffer } from '../../../core/audio/model-offer';

const ANY: ModelOffer = {
  ...{ tasks: [], languages: [], contentTypes: [], segments: true, words: true },
  ...{ voices: [], speechFormats: [] },
};
const NEED: AudioNeed = {
  ...{ model: 'm', task: 'transcribe', language: 'en', contentType: 'audio/wav' },
  ...{ segments: true, words: true, voice: '', speechFormat: '' },
};
const SPEECH: AudioNeed = {
  ...{ ...NEED, task: 'speak', language: '', contentType: '', segments: false, words: false },
  ...{ voice: 'alloy', speechFormat: 'mp3' },
};

it('an empty list means any', () => {
  expect([missingOffer(ANY, NEED), missingOffer(ANY, SPEECH)]).toEqual([null, null]);
});

it.each<[string, Partial<ModelOffer>, AudioNeed]>([
  ['model', { tasks: ['SPEAK'] }, NEED],
  ['language', { languages: ['de'] }, NEED],
  ['file', { contentTypes: ['audio/flac'] }, NEED],
  ['timestamp_granularities', { words: false }, NEED],
  ['timestamp_granularities', { segments: false }, NEED],
  ['model', { tasks: ['TRANSCRIBE', 'TRANSLATE'] }, SPEECH],
  ['voice', { voices: ['nova'] }, SPEECH],
  ['response_format', { speechFormats: ['wav'] }, SPEECH],
])('names the parameter %s that a model cannot serve', (param, offer, need) => {
  expect(missingOffer({ ...ANY, ...offer }, need)).toMatchObject({ param });
});

it('accepts what is in its lists', () => {
  const offer = { tasks: ['TRANSCRIBE'], languages: ['en'], contentTypes: ['audio/wav'] };
  expect(missingOffer({ ...ANY, ...offer }, NEED)).toBeNull();
  expect(missingOffer({ ...ANY, languages: ['de'] }, { ...NEED, language: '' })).toBeNull();
});
