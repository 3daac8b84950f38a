import fc from 'fast-check';
import { GroupTable } from '../../../core/plan/group-table';

/** Few keys that repeat, keys that share their places, and any others. */
const key = fc.oneof(
  fc.nat(5),
  fc.nat(64).map((n) => (n << 26) >>> 0),
  fc.integer({ min: 0, max: 2 ** 32 - 1 }),
);
const keySets = fc.array(fc.array(key, { maxLength: 300, size: 'max' }), { maxLength: 5 });

function numbersOf(table: GroupTable, keys: readonly number[]): number[] {
  let groups = 0;
  return keys.map((one) => {
    const number = table.numberOf(one, groups);
    groups = Math.max(groups, number + 1);
    return number;
  });
}

it('numbers keys in the order of first appearance, anew after each reset', () => {
  fc.assert(
    fc.property(keySets, (sets) => {
      const table = new GroupTable();
      for (const keys of sets) {
        table.reset(keys.length);
        const distinct = [...new Set(keys)];
        expect(numbersOf(table, keys)).toEqual(keys.map((one) => distinct.indexOf(one)));
      }
    }),
  );
});
