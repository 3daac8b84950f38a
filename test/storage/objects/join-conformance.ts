import { randomBytes } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import type { Area } from './object-area';

/** Joining, which every implementation of the object store must do in the same way. */
export function describeJoins(at: Area): void {
  const keysOf = (...names: string[]) => names.map((name) => `${at.area}/${name}`);

  it('joins objects in the given order, and keeps them', async () => {
    const long = randomBytes(700_000);
    await at.put('one', long);
    await at.put('two', 'second');
    await at.put('none', '');
    const parts = keysOf('two', 'one', 'none', 'two');
    expect(await at.store.concatenate(`${at.area}/joined`, parts)).toBe('created');
    const whole = Buffer.concat([Buffer.from('second'), long, Buffer.from('second')]);
    expect(Buffer.compare(await at.store.read(`${at.area}/joined`), whole)).toBe(0);
    expect((await at.store.read(`${at.area}/two`)).toString()).toBe('second');
    expect(await at.store.concatenate(`${at.area}/empty`, [])).toBe('created');
    expect(await at.store.head(`${at.area}/empty`)).toEqual({ size: 0 });
  });

  it('does not change an object that exists by joining others', async () => {
    await at.put('part', 'new');
    await at.put('taken', 'old');
    expect(await at.store.concatenate(`${at.area}/taken`, keysOf('part'))).toBe('exists');
    expect((await at.store.read(`${at.area}/taken`)).toString()).toBe('old');
  });

  it('creates nothing if an object to be joined is missing', async () => {
    await at.put('there', 'x');
    const joined = at.store.concatenate(`${at.area}/joined`, keysOf('there', 'nothing'));
    await expect(joined).rejects.toMatchObject({ code: 'object_missing' });
    expect(await at.store.head(`${at.area}/joined`)).toBeNull();
  });
}

/** What an inspector of a join sees and prevents. */
export function describeInspectedJoins(at: Area): void {
  const keysOf = (...names: string[]) => names.map((name) => `${at.area}/${name}`);

  it('shows an inspector every byte of a joined object in order, with the part that it is from', async () => {
    const parts = [randomBytes(700_000), Buffer.from('second'), Buffer.alloc(0)];
    for (const [i, part] of parts.entries()) await at.put(`p${i}`, part);
    const order = [1, 0, 2, 1];
    const seen = order.map((): Buffer[] => []);
    let finished = 0;
    const inspector = {
      update: (chunk: Buffer, part: number) => {
        expect(seen.slice(part + 1).flat()).toEqual([]);
        seen[part]?.push(Buffer.from(chunk));
      },
      finish: () => void finished++,
    };
    const keys = keysOf(...order.map((i) => `p${i}`));
    expect(await at.store.concatenate(`${at.area}/joined`, keys, inspector)).toBe('created');
    const whole = order.map((i) => parts[i] ?? Buffer.alloc(0));
    seen.forEach((chunks, i) =>
      expect(Buffer.concat(chunks).equals(whole[i] as Buffer)).toBe(true),
    );
    expect(finished).toBe(1);
    expect((await at.store.read(`${at.area}/joined`)).equals(Buffer.concat(whole))).toBe(true);
  });

  it.each(['update', 'finish'] as const)(
    'creates nothing if the inspector of a join refuses the bytes in %s',
    async (step) => {
      await at.put('part', 'bytes');
      const refusal = new NightshiftError('invalid_request', 'refused');
      const inspector = {
        ...{ update: () => undefined, finish: () => undefined },
        [step]: () => {
          throw refusal;
        },
      };
      const joined = at.store.concatenate(`${at.area}/joined`, keysOf('part'), inspector);
      await expect(joined).rejects.toBe(refusal);
      expect(await at.store.head(`${at.area}/joined`)).toBeNull();
    },
  );
}
