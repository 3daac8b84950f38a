import { fnv64Hex } from './fnv';

const MAX_BYTES = 100;
const HASH_DIGITS = 16;

/**
 * A path segment for each model (docs/design/journal.md#safe-model-names): `[A-Za-z0-9._-]`, 1 to 100
 * bytes, never `.` or `..`, and no two equal after case folding. Other characters become `_`. If the name
 * would break a rule or equal another one, a hash of the model's name is appended. The result depends only
 * on the set of models, not on their order or repetition.
 */
export function safeModelNames(models: readonly string[]): Map<string, string> {
  const distinct = [...new Set(models)].sort();
  const holders = new Map<string, number>();
  for (const model of distinct) {
    const folded = plainName(model).toLowerCase();
    holders.set(folded, (holders.get(folded) ?? 0) + 1);
  }
  const taken = new Set(holders.keys());
  return new Map(
    distinct.map((model) => {
      const plain = plainName(model);
      const alone = holders.get(plain.toLowerCase()) === 1;
      return [model, alone && isUsable(plain) ? plain : hashedName(model, taken)];
    }),
  );
}

function plainName(model: string): string {
  return model.replace(/[^A-Za-z0-9._-]/g, '_');
}

function isUsable(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.length <= MAX_BYTES;
}

function hashedName(model: string, taken: Set<string>): string {
  const stem = plainName(model).slice(0, MAX_BYTES - HASH_DIGITS - 1);
  for (let salt = 0; ; salt++) {
    const name = `${stem}-${fnv64Hex(salt === 0 ? model : `${salt}:${model}`)}`;
    const folded = name.toLowerCase();
    if (taken.has(folded)) continue;
    taken.add(folded);
    return name;
  }
}
