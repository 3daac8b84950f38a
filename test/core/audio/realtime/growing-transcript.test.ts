import fc from 'fast-check';
import { GrowingTranscript } from '../../../../core/audio/realtime/growing-transcript';

describe('a transcript that grows', () => {
  it('delivers stable text at once and the rest when it is final', () => {
    const transcript = new GrowingTranscript();
    expect(transcript.partial('hel', 0)).toBe('');
    expect(transcript.partial('hello wor', 6)).toBe('hello');
    expect(transcript.partial('hello world', 9)).toBe(' wor');
    expect(transcript.final(' hello world. ')).toBe('ld.');
    expect(transcript.final('Next')).toBe(' Next');
    expect(transcript.text).toBe('hello world. Next');
  });

  it.each([
    ['a part that was recognised differently', 'one two', 'won two three', ' three'],
    ['a final text that is shorter', 'one two', 'one', ''],
    ['a final text without blanks', '你好世界', '你们好世界。', '界。'],
    ['characters outside of the first plane', '👋🏽', '🎉🎊 end', ' end'],
  ])('neither repeats nor withdraws: %s', (_, delivered, text, rest) => {
    const transcript = new GrowingTranscript();
    transcript.partial(delivered, 100);
    expect(transcript.final(text)).toBe(rest);
    expect(transcript.text).toBe(delivered + rest);
  });

  it('puts no blank between segments of scripts that have none', () => {
    const transcript = new GrowingTranscript();
    transcript.final('你好。');
    transcript.final('世界');
    transcript.final('ok');
    expect(transcript.text).toBe('你好。世界ok');
  });

  it('counts stable characters as code points and splits none', () => {
    const transcript = new GrowingTranscript();
    expect(transcript.partial('a😀b', 2)).toBe('a😀');
  });

  it('is always the deltas put together, whatever a worker says', () => {
    const step = fc.record({
      isFinal: fc.boolean(),
      text: fc.oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.lorem({ maxCount: 4 })),
      stable: fc.nat(14),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const transcript = new GrowingTranscript();
        let all = '';
        for (const { isFinal, text, stable } of steps) {
          all += isFinal ? transcript.final(text) : transcript.partial(text, stable);
          expect(transcript.text).toBe(all);
          expect(transcript.hypothesis(text).startsWith(all)).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
