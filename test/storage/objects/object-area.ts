import type { ObjectStore } from '../../../storage/object-store';

/** The store under test, and a prefix of its own for each test. */
export class Area {
  store!: ObjectStore;
  area = '';

  put(name: string, body: string | Uint8Array | AsyncIterable<Uint8Array>) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    return this.store.putIfAbsent(`${this.area}/${name}`, bytes);
  }

  /** Key and size of each object with this prefix, behind `after` if it is given. */
  async listed(prefix: string, after?: string): Promise<string[]> {
    const found: string[] = [];
    const options = after === undefined ? {} : { after: `${this.area}/${after}` };
    for await (const { key, size } of this.store.list(`${this.area}/${prefix}`, options)) {
      found.push(`${key.slice(this.area.length + 1)}:${size}`);
    }
    return found;
  }
}
