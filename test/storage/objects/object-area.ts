import type { ObjectStore } from '../../../storage/object-store';

/** The store under test, and a prefix of its own for each test. */
export class Area {
  store!: ObjectStore;
  area = '';

  put(name: string, body: string | Uint8Array | AsyncIterable<Uint8Array>) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    return this.store.putIfAbsent(`${this.area}/${name}`, bytes);
  }

  async listed(prefix: string): Promise<string[]> {
    const found: string[] = [];
    for await (const { key, size } of this.store.list(`${this.area}/${prefix}`)) {
      found.push(`${key.slice(this.area.length + 1)}:${size}`);
    }
    return found;
  }
}
