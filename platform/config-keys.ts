/**
 * A node of a zod schema, with its public `_zod.def`. It lists the keys that exist, so that an error about
 * an unknown key can suggest the nearest one.
 */
interface SchemaNode {
  readonly _zod: { readonly def: SchemaDef };
}

interface SchemaDef {
  readonly type: string;
  readonly shape?: Readonly<Record<string, SchemaNode>>;
  readonly innerType?: SchemaNode;
  readonly options?: readonly SchemaNode[];
  readonly valueType?: SchemaNode;
  readonly in?: SchemaNode;
}

/** Keys that the object at `path` may hold. */
export function keysAt(schema: unknown, path: readonly PropertyKey[]): string[] {
  let nodes = objectsOf(schema as SchemaNode);
  for (const step of path) nodes = nodes.flatMap((node) => childrenOf(node, String(step)));
  return [...new Set(nodes.flatMap((node) => Object.keys(node._zod.def.shape ?? {})))];
}

/** Every path of the schema that ends in `key`, dotted: the places where a misplaced key may belong. */
export function pathsEndingIn(schema: unknown, key: string): string[] {
  const found: string[] = [];
  const walk = (node: SchemaNode, prefix: string): void => {
    for (const object of objectsOf(node)) {
      for (const [name, child] of Object.entries(object._zod.def.shape ?? {})) {
        if (name === key) found.push(prefix + name);
        walk(child, `${prefix}${name}.`);
      }
    }
  };
  walk(schema as SchemaNode, '');
  return [...new Set(found)];
}

/** The known key that is at most three edits (and less than half its length) away. */
export function nearestKey(key: string, known: readonly string[]): string | null {
  let best: { name: string; edits: number } | null = null;
  for (const name of known) {
    const edits = editDistance(key.toLowerCase().replaceAll('-', '_'), name);
    if (edits <= Math.min(3, name.length / 2) && edits < (best?.edits ?? Infinity)) {
      best = { name, edits };
    }
  }
  return best?.name ?? null;
}

function objectsOf(node: SchemaNode): SchemaNode[] {
  const { def } = node._zod;
  if (def.shape !== undefined || def.type === 'record') return [node];
  const inner = def.innerType ?? def.in;
  if (inner !== undefined) return objectsOf(inner);
  return (def.options ?? []).flatMap(objectsOf);
}

function childrenOf(node: SchemaNode, step: string): SchemaNode[] {
  const { def } = node._zod;
  const child = def.type === 'record' ? def.valueType : def.shape?.[step];
  return child === undefined ? [] : objectsOf(child);
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
