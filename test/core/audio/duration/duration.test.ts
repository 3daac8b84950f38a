import { containerOf, type Container } from '../../../../core/audio/container';
import { probeDuration } from '../../../../core/audio/duration/duration';
import { mp3, RECORDINGS, wav } from './recordings';

/** The duration of a recording in memory. */
function durationInMemory(container: Container, bytes: Uint8Array): number | null {
  const probe = probeDuration(container, bytes.length);
  let step = probe.next();
  while (step.done !== true) {
    const { offset, length } = step.value;
    step = probe.next(bytes.subarray(offset, offset + length));
  }
  return step.value;
}

it.each(RECORDINGS)('finds the container and the stated duration of %s', (_, container, bytes) => {
  expect(containerOf(bytes)).toBe(container);
  const tolerance = container === 'mp3' ? 0.03 : 1e-6;
  expect(Math.abs((durationInMemory(container, bytes) ?? 0) - 10)).toBeLessThan(tolerance);
});

it('takes the bytes that there are for the length of a WAV that was streamed or cut', () => {
  expect(durationInMemory('wav', wav(3, { data: 0xffffffff }))).toBe(3);
  expect(durationInMemory('wav', wav(3, { data: 0 }))).toBe(3);
  expect(durationInMemory('wav', wav(3).subarray(0, 44 + 32_000))).toBe(1);
});

it('passes over chunks of odd length in front of the data of a WAV', () => {
  const list = Buffer.from('LIST\x05\0\0\0abcde\0', 'latin1');
  expect(durationInMemory('wav', wav(2, { extra: list }))).toBe(2);
});

it('states nothing for an MP3 whose first frame counts no frames', () => {
  const bytes = mp3(10);
  bytes.write('none', 10 + 300 + 36);
  expect(durationInMemory('mp3', bytes)).toBeNull();
});

it('does not believe a duration that no codec could reach', () => {
  const bytes = mp3(10);
  bytes.writeUInt32BE(0xffffffff, 10 + 300 + 44);
  expect(durationInMemory('mp3', bytes)).toBeNull();
});

it('reads little of a long recording', () => {
  for (const [name, container, bytes] of RECORDINGS) {
    let read = 0;
    const probe = probeDuration(container, bytes.length);
    for (let step = probe.next(); step.done !== true;) {
      const { offset, length } = step.value;
      read += length;
      step = probe.next(bytes.subarray(offset, offset + length));
    }
    expect([name, read <= 70_000]).toEqual([name, true]);
  }
});

it('ends without an error on 100,000 mutations, with a duration that is possible', () => {
  let seed = 1;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const small = RECORDINGS.map(([, container, bytes]) => {
    // Headers at both ends are what mutations should meet.
    const cut = Buffer.concat([bytes.subarray(0, 700), bytes.subarray(-700)]);
    return [container, cut] as const;
  });
  for (let i = 0; i < 100_000; i++) {
    const [container, original] = small[i % small.length] ?? ['wav', Buffer.alloc(0)];
    let bytes = Buffer.from(original);
    for (let changes = 1 + random(6); changes > 0; changes--) {
      const at = random(bytes.length);
      const kind = random(4);
      if (kind === 0) bytes[at] = random(256);
      else if (kind === 1)
        bytes.fill(random(2) * 255, at, Math.min(bytes.length, at + 1 + random(8)));
      else if (kind === 2) bytes.writeUInt32LE(random(2 ** 32), Math.min(at, bytes.length - 4));
      else bytes = bytes.subarray(0, Math.max(4, at));
    }
    const duration = durationInMemory(container, bytes);
    containerOf(bytes);
    const isPossible = duration === null || (duration > 0 && duration <= bytes.length / 125);
    if (!isPossible) throw new Error(`${container}: ${duration} s in ${bytes.length} bytes`);
  }
});
